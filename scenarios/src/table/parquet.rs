//! The table as Apache Parquet, written by its columns, without Arrow in between.

use std::{io::Write, sync::Arc};

use parquet::{
    basic::{LogicalType, Repetition, Type as Physical},
    data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type},
    errors::Result,
    file::writer::{SerializedColumnWriter, SerializedFileWriter},
    schema::types::{Type, TypePtr},
};

use super::{Cell, Column, Kind, Table};

/// How many rows are in memory at a time.
const ROWS_OF_A_GROUP: usize = 10_000;

impl Table<'_> {
    /// Writes the table as Parquet: texts as UTF-8 strings, whole numbers as unsigned ones of 64 bits, numbers as doubles, and an
    /// empty cell as null.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn parquet(&self, to: impl Write + Send) -> Result<()> {
        let mut file = SerializedFileWriter::new(to, schema(self.columns())?, Arc::default())?;
        let mut rows = self.rows();
        loop {
            let group: Vec<Vec<Cell>> = rows.by_ref().take(ROWS_OF_A_GROUP).collect();
            if group.is_empty() {
                break;
            }
            let mut writer = file.next_row_group()?;
            for (at, column) in self.columns().iter().enumerate() {
                let mut to = writer.next_column()?.expect("the schema has as many columns as the table");
                write(&mut to, column.kind, group.iter().map(|row| &row[at]))?;
                to.close()?;
            }
            writer.close()?;
        }
        file.close().map(drop)
    }
}

fn schema(columns: &[Column]) -> Result<TypePtr> {
    let field = |column: &Column| {
        let (physical, logical) = match column.kind {
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Kind::Whole => (Physical::INT64, Some(LogicalType::integer(64, false))),
            Kind::Number => (Physical::DOUBLE, None),
        };
        let field = Type::primitive_type_builder(&column.name, physical).with_logical_type(logical);
        field.with_repetition(Repetition::OPTIONAL).build().map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<_>>()?;
    Type::group_type_builder("runs").with_fields(fields).build().map(Arc::new)
}

fn write<'a>(
    to: &mut SerializedColumnWriter<'_>,
    kind: Kind,
    cells: impl Iterator<Item = &'a Cell>,
) -> Result<()> {
    match kind {
        Kind::Text => values::<ByteArrayType>(to, cells, |cell| match cell {
            Cell::Text(text) => Some(ByteArray::from(text.as_str())),
            _ => None,
        }),
        // Parquet keeps an unsigned number in the bits of a signed one.
        Kind::Whole => values::<Int64Type>(to, cells, |cell| match cell {
            Cell::Whole(number) => Some(number.cast_signed()),
            _ => None,
        }),
        Kind::Number => values::<DoubleType>(to, cells, |cell| match cell {
            Cell::Number(number) => Some(*number),
            _ => None,
        }),
    }
}

fn values<'a, D: DataType>(
    to: &mut SerializedColumnWriter<'_>,
    cells: impl Iterator<Item = &'a Cell>,
    value: impl Fn(&Cell) -> Option<D::T>,
) -> Result<()> {
    let cells: Vec<Option<D::T>> = cells.map(value).collect();
    let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
    let values: Vec<D::T> = cells.into_iter().flatten().collect();
    to.typed::<D>().write_batch(&values, Some(&levels), None).map(drop)
}
