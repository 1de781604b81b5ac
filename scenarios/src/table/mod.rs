//! Runs as a table: a row for each, in columns that depend on what was run and never on what came out.

#[cfg(feature = "parquet")]
mod parquet;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use crate::{
    checker,
    plan::Plan,
    runner::{Judged, Runner},
    verdict::{Match, Quantity},
};

/// A column of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What is in it.
    pub kind: Kind,
}

/// What is in a column. Every cell may be empty as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// A whole number from 0.
    Whole,
    /// A number: seconds of a time, percent of a rate.
    Number,
}

/// What stands in a row under a column of the kind of the same name.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "they are documented at the kinds of columns")]
pub enum Cell {
    Text(String),
    Whole(u64),
    Number(f64),
    /// Nothing is known, or nothing of the kind exists in this run.
    Empty,
}

/// The runs of a trial as a table.
///
/// ```
/// use lockstorm::{library, runner::Runner, scenario::parse, table::Table};
/// let stock = library::find("single/wall_clock_step.toml").expect("a stock scenario");
/// let sources = [parse(stock.path, stock.text).expect("a scenario")];
/// let trial = Runner::new(&sources);
/// let judged = trial.run(&|_| {});
/// let mut csv = Vec::new();
/// Table::of(&trial, &judged).csv(&mut csv).expect("memory does not fail");
/// assert!(csv.starts_with(b"case,file,variant,seed,verdict,"));
/// ```
#[derive(Debug)]
pub struct Table<'a> {
    trial: &'a Runner<'a>,
    judged: &'a [Judged],
    columns: Vec<Column>,
    /// Names of axes, in the order of their columns.
    axes: Vec<Column>,
    /// Paths of values that are drawn from the seed, in the order of their columns.
    drawn: Vec<Column>,
}

impl<'a> Table<'a> {
    /// The table of these runs.
    pub fn of(trial: &'a Runner<'a>, judged: &'a [Judged]) -> Table<'a> {
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
        Table { trial, judged, columns, axes, drawn }
    }

    /// The columns, in their order.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// A row for each run, with a cell for each column.
    pub fn rows(&self) -> impl Iterator<Item = Vec<Cell>> {
        self.judged.iter().map(|judged| self.row(judged))
    }

    fn row(&self, judged: &Judged) -> Vec<Cell> {
        let (case, variant) = (judged.case, self.trial.variant(judged.case));
        let verdict = match judged.verdict() {
            Match::AsExpected => "as-expected",
            Match::Otherwise(_) => "otherwise",
            Match::Undecided(_) => "undecided",
        };
        let mut row = vec![
            Cell::Text(self.trial.token(case)),
            Cell::Text(self.trial.sources()[case.source].file.clone()),
            Cell::Text(variant.of.clone()),
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
        row
    }

    /// Writes the table as CSV (RFC 4180), with the names of the columns in its first line. An empty cell is an empty field.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn csv(&self, to: impl Write) -> io::Result<()> {
        let mut to = csv::Writer::from_writer(to);
        to.write_record(self.columns.iter().map(|column| &column.name))?;
        for row in self.rows() {
            to.write_record(row.iter().map(|cell| match cell {
                Cell::Text(text) => text.clone(),
                Cell::Whole(number) => number.to_string(),
                Cell::Number(number) => number.to_string(),
                Cell::Empty => String::new(),
            }))?;
        }
        to.flush()
    }
}

/// A column of this name, for numbers as long as all of its values are.
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
