//! A cell of the scoreboard: the results of one library for one claim.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::{
    judge::{
        history::FailedCalls,
        verdict::{CONFIDENCE, Count, Interval},
    },
    report::failed::failed_calls,
};

/// The result of one library for one claim, of all seeds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Cell {
    /// The verdict of the checkers that the file names; [`CameOut::DoesNotApply`] if nothing ran.
    /// Of several seeds, the worst: violated before undecided before holds.
    pub came_out: CameOut,
    /// True if the file expects this outcome of a right lock.
    pub expected: bool,
    /// The seeds, counted by their outcomes.
    pub runs: Runs,
    /// The interval of the share of violated seeds, with a confidence of 95 %.
    pub violated: Interval,
    /// The sentences that explain the outcome, each after the name of its checker: those of the
    /// first seed with this outcome, as are the calls and the command below.
    pub evidence: Vec<String>,
    /// The calls that returned an error, whatever the outcome.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_calls: Vec<FailedCalls>,
    /// The command that repeats the trial; empty if nothing ran.
    pub again: String,
    /// The number of plays: more than seeds if a busy machine may have decided an earlier outcome.
    pub plays: usize,
    /// The results on the other servers, each with the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<(String, Cell)>,
}

/// Seeds of a cell, counted by their outcomes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runs {
    /// The seeds with a counterexample.
    pub violated: u64,
    /// The seeds that show none.
    pub holds: u64,
    /// The seeds that do not decide.
    pub undecided: u64,
}

impl Runs {
    /// Counts one seed.
    pub fn one(came_out: CameOut) -> Runs {
        let is = |outcome| u64::from(came_out == outcome);
        Runs { violated: is(CameOut::Violated), holds: is(CameOut::Holds), undecided: is(CameOut::Undecided) }
    }

    /// Returns the number of seeds.
    pub fn all(self) -> u64 {
        self.violated + self.holds + self.undecided
    }

    /// Returns the interval of the share of violated seeds. An undecided seed may be violated.
    pub fn interval(self) -> Interval {
        let Runs { violated, holds, undecided } = self;
        Count { yes: violated, no: holds, undecided }.interval(CONFIDENCE)
    }

    fn of(self, came_out: CameOut) -> u64 {
        match came_out {
            CameOut::Violated => self.violated,
            CameOut::Holds => self.holds,
            CameOut::Undecided => self.undecided,
            CameOut::DoesNotApply => 0,
        }
    }
}

/// The outcome of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CameOut {
    /// The checked property holds.
    Holds,
    /// The checked property is violated.
    Violated,
    /// The run does not decide it.
    Undecided,
    /// The library has no such feature.
    DoesNotApply,
}

impl CameOut {
    /// The outcome in one word.
    pub fn word(self) -> &'static str {
        match self {
            CameOut::Holds => "holds",
            CameOut::Violated => "violated",
            CameOut::Undecided => "undecided",
            CameOut::DoesNotApply => "–",
        }
    }
}

impl Cell {
    /// Joins the results of several seeds, each a cell of one seed, on one server. Returns `None`
    /// for no seed.
    pub fn joined(seeds: Vec<Cell>) -> Option<Cell> {
        let severity = |cell: &Cell| match cell.came_out {
            CameOut::Violated if !cell.expected => 0,
            CameOut::Violated => 1,
            CameOut::Undecided => 2,
            CameOut::Holds => 3,
            CameOut::DoesNotApply => 4,
        };
        let (mut runs, mut plays) = (Runs::default(), 0);
        for cell in &seeds {
            runs.violated += cell.runs.violated;
            runs.holds += cell.runs.holds;
            runs.undecided += cell.runs.undecided;
            plays += cell.plays;
        }
        // `min_by_key` returns the first of equals.
        let worst = seeds.into_iter().min_by_key(severity)?;
        Some(Cell { runs, violated: runs.interval(), plays, ..worst })
    }

    /// Returns the result on each server.
    pub fn on_each_server(&self) -> impl Iterator<Item = &Cell> {
        std::iter::once(self).chain(self.elsewhere.iter().map(|(_, cell)| cell))
    }

    /// Returns the other servers whose results differ from this one, with their results.
    fn differing(&self) -> impl Iterator<Item = (&str, &Cell)> {
        let differs = |cell: &Cell| {
            let (here, there) = (&self.violated, &cell.violated);
            (cell.came_out, cell.expected) != (self.came_out, self.expected)
                || here.low > there.high
                || there.low > here.high
        };
        self.elsewhere.iter().filter(move |(_, cell)| differs(cell)).map(|(on, cell)| (&**on, cell))
    }

    /// Returns true if the result on any server is listed among the findings.
    pub(super) fn is_finding(&self) -> bool {
        self.on_each_server().any(Cell::is_bold)
    }

    /// Returns true if a right lock does not show this result.
    fn is_bold(&self) -> bool {
        !self.expected && matches!(self.came_out, CameOut::Violated | CameOut::Undecided)
    }

    /// Returns the outcome, with the outcomes on other servers that differ:
    /// `holds, **violated** 3/20 on Valkey 9.1.2`. The number of seeds is left out if there is one,
    /// and where all hold.
    pub(super) fn short(&self) -> String {
        let one = |cell: &Cell| {
            let (mark, word, all) =
                (if cell.is_bold() { "**" } else { "" }, cell.came_out.word(), cell.runs.all());
            let mut text = format!("{mark}{word}{mark}");
            if all > 1 && cell.came_out != CameOut::Holds {
                let _ = write!(text, " {}/{all}", cell.runs.of(cell.came_out));
                if cell.came_out == CameOut::Violated && cell.runs.undecided > 0 {
                    let _ = write!(text, ", {} undecided", cell.runs.undecided);
                }
            }
            text
        };
        let others = self.differing().map(|(on, cell)| format!(", {} on {on}", one(cell)));
        format!("{}{}", one(self), others.collect::<String>())
    }

    /// Returns the outcome with the number of seeds and the interval of the share of violated
    /// ones, and so for other servers that differ: `violated 20 of 20 (83.9%..100%)`.
    pub(super) fn words(&self) -> String {
        let one = |cell: &Cell| {
            let (word, all) = (cell.came_out.word(), cell.runs.all());
            if all < 2 {
                return word.to_owned();
            }
            let undecided = match (cell.came_out, cell.runs.undecided) {
                (CameOut::Violated, 1..) => format!(", {} undecided", cell.runs.undecided),
                _ => String::new(),
            };
            let of = cell.runs.of(cell.came_out);
            format!("{word} {of} of {all}{undecided} ({})", cell.violated)
        };
        let others = self.differing().map(|(on, cell)| format!(", {} on {on}", one(cell)));
        format!("{}{}", one(self), others.collect::<String>())
    }

    /// Returns the evidence, followed by the failed calls.
    pub(super) fn because(&self) -> String {
        let failed = failed_calls(&self.failed_calls);
        let failed = (!failed.is_empty()).then(|| format!("Calls failed: {}.", failed.join("; ")));
        let others = self.differing().map(|(on, cell)| format!("On {on}: {}", cell.because()));
        self.evidence.iter().cloned().chain(failed).chain(others).collect::<Vec<_>>().join(" ")
    }

    /// Returns the class of the cell in the page, which is that of its worst result.
    pub(super) fn class(&self) -> &'static str {
        let any = |is: fn(&Cell) -> bool| self.on_each_server().any(is);
        match self.came_out {
            _ if any(|cell| !cell.expected && cell.came_out == CameOut::Violated) => "otherwise",
            _ if any(|cell| cell.came_out == CameOut::Undecided) => "undecided",
            CameOut::DoesNotApply => "",
            _ if self.expected => "as-expected",
            _ => "otherwise",
        }
    }

    /// Returns the commands that run the results again which are among the findings: of this
    /// server, and of others that differ.
    pub(super) fn all_again(&self) -> Vec<&str> {
        let found = |cell: &&Cell| !cell.expected && !cell.again.is_empty();
        let all = std::iter::once(self).chain(self.differing().map(|(_, cell)| cell));
        let again: Vec<&str> = all.filter(found).map(|cell| &*cell.again).collect();
        if again.is_empty() && !self.again.is_empty() { vec![&self.again] } else { again }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cell of several seeds: the worst of them decides, and the others are counted.
    fn of_seeds(outcomes: &[(CameOut, u64)], expected: CameOut) -> Cell {
        let seeds = outcomes.iter().flat_map(|&(came_out, seeds)| (0..seeds).map(move |_| came_out));
        let seeds = seeds.enumerate().map(|(at, came_out)| Cell {
            came_out,
            expected: came_out == expected,
            runs: Runs::one(came_out),
            violated: Runs::one(came_out).interval(),
            evidence: vec![format!("seed {at}")],
            failed_calls: Vec::new(),
            again: String::new(),
            plays: 1,
            elsewhere: Vec::new(),
        });
        Cell::joined(seeds.collect()).expect("there are seeds")
    }

    #[test]
    fn a_cell_of_several_seeds_counts_them() {
        use CameOut::{Holds, Undecided, Violated};
        for (outcomes, expected, short, words, evidence) in [
            (vec![(Holds, 20)], Holds, "holds", "holds 20 of 20 (0%..16.1%)", "seed 0"),
            (vec![(Violated, 20)], Holds, "**violated** 20/20", "violated 20 of 20 (83.9%..100%)", "seed 0"),
            (
                vec![(Holds, 2), (Undecided, 1), (Violated, 1), (Holds, 16)],
                Holds,
                "**violated** 1/20, 1 undecided",
                "violated 1 of 20, 1 undecided (0.89%..30.1%)",
                "seed 3",
            ),
            (
                vec![(Holds, 2), (Undecided, 3)],
                Holds,
                "**undecided** 3/5",
                "undecided 3 of 5 (0%..88.2%)",
                "seed 2",
            ),
            // A lock that is expected to be violated, and is not by every seed.
            (
                vec![(Holds, 1), (Violated, 19)],
                Violated,
                "violated 19/20",
                "violated 19 of 20 (76.4%..99.1%)",
                "seed 1",
            ),
            (vec![(Violated, 1)], Holds, "**violated**", "violated", "seed 0"),
        ] {
            let cell = of_seeds(&outcomes, expected);
            assert_eq!(cell.short(), short);
            assert_eq!(cell.words(), words, "{short}");
            assert_eq!(cell.evidence, [evidence], "{short}");
        }
        assert!(Cell::joined(Vec::new()).is_none());
    }

    /// Shares whose intervals overlap may be the same.
    #[test]
    fn servers_differ_by_outcome_or_by_share() {
        use CameOut::{Holds, Violated};
        let mut cell = of_seeds(&[(Violated, 20)], Holds);
        cell.elsewhere = vec![
            ("Valkey 9.1.2".into(), of_seeds(&[(Violated, 18), (Holds, 2)], Holds)),
            ("Redis 8.2.3".into(), of_seeds(&[(Violated, 5), (Holds, 15)], Holds)),
        ];
        assert_eq!(cell.short(), "**violated** 20/20, **violated** 5/20 on Redis 8.2.3");
    }
}
