//! The runs of a trial as a table with a row per run. Its columns depend only on the scenarios that
//! were run, never on the results.

#[cfg(feature = "parquet")]
mod parquet;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use lockstorm::{
    file::plan::Plan,
    judge::{
        checker,
        verdict::{Match, Quantity},
    },
    run::runner::{Judged, Runner},
};

/// A column of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    /// The column's name, unique in the table.
    pub(crate) name: String,
    /// The type of its cells.
    pub(crate) kind: Kind,
}

/// The type of a column. Any cell may also be empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text.
    Text,
    /// A whole number from 0.
    Whole,
    /// A number: a time in seconds, or a rate in percent.
    Number,
}

/// A cell of a row. Its variant is the column's [`Kind`] of the same name, or `Empty`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Text(String),
    Whole(u64),
    Number(f64),
    /// The value is unknown, or does not exist in this run.
    Empty,
}

impl Cell {
    /// Parses the text of a CSV field for a column of this kind. Returns `None` if it is not valid.
    pub(crate) fn read(kind: Kind, text: &str) -> Option<Cell> {
        Some(match kind {
            _ if text.is_empty() => Cell::Empty,
            Kind::Text => Cell::Text(text.to_owned()),
            Kind::Whole => Cell::Whole(text.parse().ok()?),
            Kind::Number => Cell::Number(text.parse().ok()?),
        })
    }
}

/// The table of the runs of a trial: its columns, and the row of each run.
#[derive(Debug)]
pub(crate) struct Table<'a> {
    trial: &'a Runner<'a>,
    columns: Vec<Column>,
    /// The axes, in the order of their columns.
    axes: Vec<Column>,
    /// The paths of values that are drawn from the seed, in the order of their columns.
    drawn: Vec<Column>,
}

impl<'a> Table<'a> {
    /// Returns the table of the runs of this trial.
    pub(crate) fn of(trial: &'a Runner<'a>) -> Table<'a> {
        let (mut axes, mut drawn) = (Vec::new(), Vec::new());
        for variant in trial.sources().iter().flat_map(|source| &source.variants) {
            for at in &variant.point {
                add(&mut axes, &at.axis, at.number.is_some());
            }
            for one in Plan::draw(&variant.scenario, 0).drawn() {
                add(&mut drawn, &one.path, one.number.is_some());
            }
        }
        let column = |name: &str, kind| Column { name: name.to_owned(), kind };
        let mut columns = vec![
            column("case", Kind::Text),
            column("file", Kind::Text),
            column("variant", Kind::Text),
            column("seed", Kind::Whole),
            column("verdict", Kind::Text),
            column("ended_at", Kind::Number),
            column("fingerprint", Kind::Text),
        ];
        columns.extend(axes.iter().map(|axis| column(&format!("sweep.{}", axis.name), axis.kind)));
        columns.extend(drawn.iter().map(|one| column(&format!("drawn.{}", one.name), one.kind)));
        for checker in checker::LIST {
            columns.push(column(&format!("{}.verdict", checker.name), Kind::Text));
            let measures = checker.measures.iter();
            columns
                .extend(measures.map(|(name, _)| column(&format!("{}.{name}", checker.name), Kind::Number)));
        }
        columns.extend([
            column("failed_calls", Kind::Whole),
            column("first_failed_at", Kind::Number),
            column("first_failed", Kind::Text),
        ]);
        Table { trial, columns, axes, drawn }
    }

    /// The columns, in order.
    pub(crate) fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Returns the row of a run, with a cell for each column.
    pub(crate) fn row(&self, judged: &Judged) -> Vec<Cell> {
        let (case, variant) = (judged.case, self.trial.variant(judged.case));
        let verdict = match judged.verdict() {
            Match::AsExpected => "as-expected",
            Match::Otherwise(_) => "otherwise",
            Match::Undecided(_) => "undecided",
        };
        let mut row = vec![
            Cell::Text(self.trial.token(case)),
            Cell::Text(self.trial.sources()[case.source].file.clone()),
            if variant.of.is_empty() { Cell::Empty } else { Cell::Text(variant.of.clone()) },
            Cell::Whole(case.seed),
            Cell::Text(verdict.to_owned()),
            Cell::Number(judged.simulated),
            Cell::Text(judged.fingerprint.clone()),
        ];
        for axis in &self.axes {
            let at = variant.point.iter().find(|at| at.axis == axis.name);
            row.push(at.map_or(Cell::Empty, |at| cell(axis.kind, &at.value, at.number)));
        }
        let drawn = Plan::draw(&variant.scenario, case.seed).drawn();
        for column in &self.drawn {
            let one = drawn.iter().find(|one| one.path == column.name);
            row.push(one.map_or(Cell::Empty, |one| cell(column.kind, &one.text, one.number)));
        }
        for checker in checker::LIST {
            let finding = judged.finding(checker.name);
            row.push(finding.map_or(Cell::Empty, |found| Cell::Text(found.verdict.word().to_owned())));
            for (name, _) in checker.measures {
                row.push(match finding.and_then(|found| found.measure(name)) {
                    Some(Quantity::Time(length)) => Cell::Number(length.as_secs_f64()),
                    Some(Quantity::Number(number)) => Cell::Number(number),
                    None => Cell::Empty,
                });
            }
        }
        let first = judged.failed.iter().min_by_key(|failed| failed.first_at);
        row.extend([
            Cell::Whole(judged.failed.iter().map(|failed| failed.count).sum()),
            first.map_or(Cell::Empty, |first| Cell::Number(first.first_at.as_nanos() as f64 / 1e9)),
            first.map_or(Cell::Empty, |first| Cell::Text(first.first_in_words())),
        ]);
        row
    }
}

/// Writes rows to a file.
#[derive(Debug)]
pub(crate) struct Rows<W: Write + Send>(To<W>);

#[derive(Debug)]
enum To<W: Write + Send> {
    Csv(Box<csv::Writer<W>>),
    #[cfg(feature = "parquet")]
    Parquet(Box<parquet::Groups<W>>),
}

impl<W: Write + Send> Rows<W> {
    /// Begins a CSV file (RFC 4180) with the names of the columns in its first line. An empty cell
    /// becomes an empty field.
    ///
    /// # Errors
    /// Fails if the first line cannot be written.
    pub(crate) fn csv(columns: &[Column], to: W) -> io::Result<Rows<W>> {
        let mut to = csv::Writer::from_writer(to);
        to.write_record(columns.iter().map(|column| &column.name))?;
        Ok(Rows(To::Csv(Box::new(to))))
    }

    /// Begins a Parquet file: texts are UTF-8 strings, whole numbers unsigned 64-bit integers,
    /// numbers doubles, and an empty cell is null.
    ///
    /// # Errors
    /// Fails if the file cannot be begun.
    #[cfg(feature = "parquet")]
    pub(crate) fn parquet(columns: &[Column], to: W) -> io::Result<Rows<W>> {
        Ok(Rows(To::Parquet(Box::new(parquet::Groups::new(columns, to)?))))
    }

    /// Adds a row, which must have a cell for each column.
    ///
    /// # Errors
    /// Fails if the row cannot be written.
    pub(crate) fn add(&mut self, row: Vec<Cell>) -> io::Result<()> {
        match &mut self.0 {
            To::Csv(to) => Ok(to.write_record(row.iter().map(|cell| match cell {
                Cell::Text(text) => text.clone(),
                Cell::Whole(number) => number.to_string(),
                Cell::Number(number) => number.to_string(),
                Cell::Empty => String::new(),
            }))?),
            #[cfg(feature = "parquet")]
            To::Parquet(to) => Ok(to.add(row)?),
        }
    }

    /// Writes the remaining data. Without this call the file is incomplete.
    ///
    /// # Errors
    /// Fails if the data cannot be written.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self.0 {
            To::Csv(mut to) => to.flush(),
            #[cfg(feature = "parquet")]
            To::Parquet(to) => Ok(to.finish()?),
        }
    }
}

/// Adds a column with this name. Its kind is number as long as all of its values are numbers.
fn add(columns: &mut Vec<Column>, name: &str, is_number: bool) {
    let kind = if is_number { Kind::Number } else { Kind::Text };
    match columns.iter_mut().find(|column| column.name == name) {
        Some(column) if !is_number => column.kind = Kind::Text,
        Some(_) => {}
        None => columns.push(Column { name: name.to_owned(), kind }),
    }
}

fn cell(kind: Kind, text: &str, number: Option<f64>) -> Cell {
    match (kind, number) {
        (Kind::Number, Some(number)) => Cell::Number(number),
        _ => Cell::Text(text.to_owned()),
    }
}
