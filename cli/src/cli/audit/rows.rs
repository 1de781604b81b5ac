//! The option `--results`: a table with a row for every finding.

use std::{fs::File, io::BufWriter};

use lockstorm::audit::findings::{Evidence, Finding};
use miette::Result;

use crate::{
    cli::{
        out::errln,
        table::{Target, written},
    },
    study::table::{Cell, Column, Kind, Rows},
};

/// The columns of a finding.
const COLUMNS: [(&str, Kind); 12] = [
    ("finding", Kind::Whole),
    ("kind", Kind::Text),
    ("node", Kind::Text),
    ("db", Kind::Whole),
    ("lock", Kind::Text),
    ("owner", Kind::Text),
    ("at", Kind::Text),
    ("unix_seconds", Kind::Number),
    ("times", Kind::Whole),
    ("says", Kind::Text),
    ("claim", Kind::Text),
    ("commands", Kind::Whole),
];

/// The columns of a command that proves a finding, after `first.` and `last.`.
const OF_COMMAND: [(&str, Kind); 6] = [
    ("place", Kind::Whole),
    ("unit", Kind::Text),
    ("at", Kind::Text),
    ("client", Kind::Text),
    ("part", Kind::Text),
    ("command", Kind::Text),
];

/// A table while it is written.
pub(super) struct Table<'a> {
    target: &'a Target,
    rows: Rows<BufWriter<File>>,
}

impl<'a> Table<'a> {
    /// Creates the file, before the audit begins.
    pub(super) fn create(target: &'a Target) -> Result<Table<'a>> {
        Ok(Table { target, rows: target.create(&columns())? })
    }

    /// Writes the findings.
    pub(super) fn write(mut self, findings: &[Finding]) -> Result<()> {
        let path = self.target.path();
        for (number, finding) in (1..).zip(findings) {
            written(path, self.rows.add(row(number, finding)))?;
        }
        written(path, self.rows.finish())?;
        errln!("{} has {} findings in {} columns", path.display(), findings.len(), columns().len());
        Ok(())
    }
}

fn columns() -> Vec<Column> {
    let column = |(name, kind): &(&str, Kind)| Column { name: (*name).to_owned(), kind: *kind };
    let mut columns: Vec<Column> = COLUMNS.iter().map(column).collect();
    for part in ["first", "last"] {
        columns.extend(
            OF_COMMAND.iter().map(|(name, kind)| Column { name: format!("{part}.{name}"), kind: *kind }),
        );
    }
    columns
}

fn row(number: u64, finding: &Finding) -> Vec<Cell> {
    let Finding { kind, node, db, lock, owner, at, says, times, evidence, at_us, .. } = finding;
    let text = |text: &str| Cell::Text(text.to_owned());
    // An append-only file without annotations has no times.
    let is_timed = *at_us != 0;
    let mut row = vec![
        Cell::Whole(number),
        text(kind.name()),
        text(node),
        Cell::Whole(u64::from(*db)),
        text(lock),
        text(owner),
        if is_timed { text(at) } else { Cell::Empty },
        if is_timed { Cell::Number(*at_us as f64 / 1e6) } else { Cell::Empty },
        Cell::Whole(*times),
        text(says),
        kind.claim().map_or(Cell::Empty, text),
        Cell::Whole(evidence.len() as u64),
    ];
    for one in [evidence.first(), evidence.last()] {
        let Some(Evidence { line, unit, at, client, command, role }) = one else {
            row.extend(OF_COMMAND.map(|_| Cell::Empty));
            continue;
        };
        row.extend([
            Cell::Whole(*line),
            text(unit.name()),
            if is_timed { text(at) } else { Cell::Empty },
            text(client),
            text(role),
            text(command),
        ]);
    }
    row
}
