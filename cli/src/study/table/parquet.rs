//! Writes the table as Apache Parquet, column by column, without Arrow.

use std::{io::Write, sync::Arc};

use parquet::{
    basic::{LogicalType, Repetition, Type as Physical},
    data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type},
    errors::Result,
    file::{
        properties::WriterProperties,
        writer::{SerializedColumnWriter, SerializedFileWriter},
    },
    schema::types::{Type, TypePtr},
};

use super::{Cell, Column, Kind};

/// The number of rows in memory. It is small in tests, so that they have several groups.
const ROWS_OF_A_GROUP: usize = if cfg!(test) { 8 } else { 10_000 };

/// The name of this program, in the form that Parquet requires. The columns are those of this
/// version.
const CREATED_BY: &str = concat!("lockstorm version ", env!("CARGO_PKG_VERSION"));

/// Collects rows into row groups, and writes these to a file.
pub(super) struct Groups<W: Write + Send> {
    file: SerializedFileWriter<W>,
    columns: Vec<Column>,
    /// The rows of the current group.
    rows: Vec<Vec<Cell>>,
}

impl<W: Write + Send> std::fmt::Debug for Groups<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Groups").field("rows", &self.rows.len()).finish_non_exhaustive()
    }
}

impl<W: Write + Send> Groups<W> {
    pub(super) fn new(columns: &[Column], to: W) -> Result<Groups<W>> {
        let properties = WriterProperties::builder().set_created_by(CREATED_BY.to_owned()).build();
        let file = SerializedFileWriter::new(to, schema(columns)?, Arc::new(properties))?;
        Ok(Groups { file, columns: columns.to_vec(), rows: Vec::new() })
    }

    pub(super) fn add(&mut self, row: Vec<Cell>) -> Result<()> {
        self.rows.push(row);
        if self.rows.len() == ROWS_OF_A_GROUP { self.end_group() } else { Ok(()) }
    }

    fn end_group(&mut self) -> Result<()> {
        let mut writer = self.file.next_row_group()?;
        for (at, column) in self.columns.iter().enumerate() {
            let mut to = writer.next_column()?.expect("the schema has as many columns as the table");
            write(&mut to, column.kind, self.rows.iter().map(|row| &row[at]))?;
            to.close()?;
        }
        writer.close()?;
        self.rows.clear();
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<()> {
        if !self.rows.is_empty() {
            self.end_group()?;
        }
        self.file.close().map(drop)
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
        // Parquet stores an unsigned number in the bits of a signed one.
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
