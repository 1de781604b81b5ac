//! Checks that simulated processes come near enough to real ones, and that the table says so.
//!
//! A simulated median must lie within [`TOLERANCE`] and a third of the real range from the real
//! median. The third allows for something that a run cannot choose: the position of its zero in the
//! periods of PING and INFO. The median of ten times spread evenly over an interval is within a
//! third of their range from the middle of the interval in 93 of 100 cases; if all runs take the
//! same time, the third adds nothing. A number of times must be within the real range, or a tenth
//! of its end beside it. A known larger difference has a reason in its row ([`Differs`]), with a
//! limit. A difference beyond the limit is wrong, and so is a reason for a difference within
//! [`TOLERANCE`].
//!
//! An ordinary test run plays a row fewer times than the table does. With fewer than [`MANY`]
//! values the median may be off by [`TOLERANCE`] and half of the real range; with fewer than
//! [`FEW`] it is not compared.

use std::{collections::BTreeMap, fmt};

use crate::row::{Differs, Expect, Row};

/// Tolerated difference of a real and a simulated median, in milliseconds.
const TOLERANCE: i64 = 150;

/// From `MANY` values on, the median is within a third of their range; the median of fewer than
/// `FEW` says little.
const MANY: usize = 10;
const FEW: usize = 4;

/// The median and the range of all runs of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) median: i64,
    pub(crate) least: i64,
    pub(crate) most: i64,
}

impl Span {
    pub(crate) fn of(mut values: Vec<i64>) -> Option<Span> {
        values.sort_unstable();
        let (least, most) = (*values.first()?, *values.last()?);
        Some(Span { median: values[values.len() / 2], least, most })
    }

    /// Parses `2045 [2023..2084]`.
    fn parse(text: &str) -> Option<Span> {
        let (median, range) = text.strip_suffix(']')?.split_once(" [")?;
        let (least, most) = range.split_once("..")?;
        Some(Span { median: median.parse().ok()?, least: least.parse().ok()?, most: most.parse().ok()? })
    }

    fn half(self) -> i64 {
        (self.most - self.least + 1) / 2
    }

    fn third(self) -> i64 {
        (self.most - self.least + 2) / 3
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}..{}]", self.median, self.least, self.most)
    }
}

/// The tolerated difference of a simulated median without a reason; `None` for a number of times.
fn tolerance(expect: &Expect, real: Span) -> Option<i64> {
    (!matches!(expect, Expect::Count(..))).then(|| TOLERANCE + real.third())
}

/// The error in the two medians of an expectation; `None` if they agree or nothing is measured.
pub(crate) fn compare(
    row: &Row,
    expect: &Expect,
    real: Option<Span>,
    simulated: Option<Span>,
) -> Option<String> {
    let label = expect.label()?;
    let (real, simulated) = match (real, simulated) {
        (Some(real), Some(simulated)) => (real, simulated),
        (None, None) => return Some(format!("{label}: it was not measured")),
        _ => return Some(format!("{label}: it was measured on one side only")),
    };
    let off = (simulated.median - real.median).abs();
    let is_within = match tolerance(expect, real) {
        Some(tolerance) => off <= tolerance,
        None => {
            let tenth = real.most / 10;
            (real.least - tenth..=real.most + tenth).contains(&simulated.median)
        }
    };
    let told = format!("{label}: real {real}, simulated {simulated}");
    match row.differs.iter().find(|Differs(what, ..)| *what == label) {
        None => (!is_within).then(|| format!("{told}: off by {off}, which no reason is given for")),
        Some(Differs(_, most, _)) if off > *most => {
            Some(format!("{told}: off by {off}, and the reason is for {most}"))
        }
        Some(_) if is_within && off <= TOLERANCE => {
            Some(format!("{told}: it has a reason for a difference that there is not"))
        }
        Some(_) => None,
    }
}

/// The table's line of an expectation.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    real: Option<Span>,
    simulated: Option<Span>,
    expected: String,
}

/// The table's entry of a row.
#[derive(Debug, Default, Clone)]
struct Printed {
    about: String,
    /// The number of real runs, in words.
    runs: String,
    /// The lines of its expectations by their labels.
    lines: BTreeMap<String, Line>,
}

/// A table that was printed.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: BTreeMap<String, Printed>,
    wrong: Vec<String>,
}

impl Table {
    pub(crate) fn parse(text: &str) -> Table {
        let (mut table, mut current) = (Table::default(), String::new());
        for line in text.lines() {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let &[id, what, real, simulated, expected] = cells.as_slice() else { continue };
            if let Some(id) = id.strip_prefix("**").and_then(|id| id.strip_suffix("**")) {
                id.clone_into(&mut current);
                let (about, runs) = (what.to_owned(), real.to_owned());
                let printed = Printed { about, runs, lines: BTreeMap::new() };
                if table.rows.insert(id.to_owned(), printed).is_some() {
                    table.wrong.push(format!("{id} is in the table twice"));
                }
            } else if id.is_empty() && !expected.is_empty() {
                let (real, simulated) = (Span::parse(real), Span::parse(simulated));
                let line = Line { real, simulated, expected: expected.to_owned() };
                let Some(printed) = table.rows.get_mut(&current) else { continue };
                if printed.lines.insert(what.to_owned(), line).is_some() {
                    table.wrong.push(format!("{current}: the table has {what} twice"));
                }
            }
        }
        table
    }

    fn line(&self, row: &Row, expect: &Expect) -> Option<&Line> {
        self.rows.get(row.id)?.lines.get(&expect.label()?)
    }

    /// The measurement of real processes.
    pub(crate) fn real(&self, row: &Row, expect: &Expect) -> Option<Span> {
        self.line(row, expect)?.real
    }

    /// The number of real runs in words; `None` if the table lacks the row.
    pub(crate) fn runs(&self, row: &Row) -> Option<&str> {
        self.rows.get(row.id).map(|printed| &*printed.runs)
    }

    /// Reports entries that only the table or only the rows have, and medians with a larger
    /// difference than allowed.
    pub(crate) fn check<'a>(&self, rows: impl Iterator<Item = &'a Row>) -> Vec<String> {
        let mut wrong = self.wrong.clone();
        let mut left = self.rows.clone();
        for row in rows {
            let Some(Printed { about, mut lines, .. }) = left.remove(row.id) else {
                wrong.push(format!("{} is not in the table", row.id));
                continue;
            };
            if about != row.about {
                wrong.push(format!("{} is about something else: {about}", row.id));
            }
            let unknown = |Differs(what, ..): &&Differs| !lines.contains_key(*what);
            wrong.extend(row.differs.iter().filter(unknown).map(|Differs(what, ..)| {
                format!("{}: a reason why {what} differs, which is not measured", row.id)
            }));
            for expect in row.expect {
                let (Some(label), Some((least, most))) = (expect.label(), expect.bounds()) else { continue };
                let Some(line) = lines.remove(&label) else {
                    wrong.push(format!("{}: the table does not have {label}", row.id));
                    continue;
                };
                if line.expected != format!("{least}..{most}") {
                    wrong.push(format!("{}: {label} is expected otherwise: {}", row.id, line.expected));
                }
                let compared = compare(row, expect, line.real, line.simulated);
                wrong.extend(compared.map(|why| format!("{}: {why}", row.id)));
            }
            wrong.extend(lines.keys().map(|label| format!("{} has no {label}", row.id)));
        }
        wrong.extend(left.keys().map(|id| format!("there is no row {id}")));
        wrong
    }

    /// Checks that the median of new simulated runs is near the real one. A simulator that is late
    /// by the same amount at both ends of a range is late in the median, too.
    ///
    /// # Errors
    /// The difference of the medians.
    pub(crate) fn is_near(&self, row: &Row, expect: &Expect, values: Vec<i64>) -> Result<(), String> {
        let (Some(label), Some(real)) = (expect.label(), self.real(row, expect)) else { return Ok(()) };
        let few = values.len() < MANY;
        if values.len() < FEW {
            return Ok(());
        }
        let Some(fresh) = Span::of(values) else { return Ok(()) };
        let known =
            row.differs.iter().find(|Differs(what, ..)| *what == label).map(|Differs(_, most, _)| *most);
        let tolerance = tolerance(expect, real).map(|all| if few { TOLERANCE + real.half() } else { all });
        let Some(most) = known.or(tolerance) else { return Ok(()) };
        match (fresh.median - real.median).abs() {
            off if off > most => {
                Err(format!("{label}: {fresh}, and real {real}: off by {off}, not up to {most}"))
            }
            _ => Ok(()),
        }
    }

    /// Checks that the values of one simulated run are within the table's simulated range and the
    /// tolerance.
    ///
    /// # Errors
    /// The value that is outside.
    pub(crate) fn holds(&self, row: &Row, expect: &Expect, values: &[i64]) -> Result<(), String> {
        let Some(label) = expect.label() else { return Ok(()) };
        let Some(span) = self.line(row, expect).and_then(|line| line.simulated) else { return Ok(()) };
        let by = tolerance(expect, span).unwrap_or_else(|| span.third());
        match values.iter().find(|value| !(span.least - by..=span.most + by).contains(value)) {
            Some(value) => Err(format!("{label}: {value}, and sim/TOPOLOGY.md has {span} of simulated runs")),
            None => Ok(()),
        }
    }
}
