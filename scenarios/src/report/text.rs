//! The verdicts as text for a terminal.

use std::fmt::Write;

use super::{ChainShown, Entry, Report, Standing, failed_calls};
use crate::judge::verdict::{Match, Verdict};

const BOLD: &str = "1";
const DIM: &str = "2";
const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";

fn paint(colour: bool, code: &str, text: &str) -> String {
    if colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

impl Report<'_> {
    /// Returns the verdicts in words, with colours if `colour` is set. A finding with an
    /// expectation is shown with the result of the comparison. Any other is shown if it is violated
    /// and, if nothing at all is expected, if it holds. The failed calls and the chain of a
    /// violation follow.
    pub fn text(&self, colour: bool, chain: ChainShown<'_>) -> String {
        let header = &self.history.header;
        let mut out = String::new();
        let title = paint(colour, BOLD, &header.scenario);
        let _ = writeln!(out, "{title}, seed {}, {}", header.seed, header.engine_in_words());
        let standing = self.standing();
        let shown = |entry: &&Entry| match entry.finding.verdict {
            Verdict::Violated { .. } => true,
            Verdict::Holds { .. } => entry.expected.is_some() || standing == Standing::NothingExpected,
            Verdict::Undecided { .. } => entry.expected.is_some(),
        };
        for entry in self.entries.iter().filter(shown) {
            line(&mut out, colour, entry);
        }
        for line in failed_calls(&self.history.failed_calls()) {
            let _ = writeln!(out, "  {line}");
        }
        // One chain is enough: those of the other findings show the same.
        let chained = self.entries.iter().filter(shown).find_map(|entry| {
            let witness = entry.finding.verdict.witness()?;
            let lines = super::chain::lines(self.history, witness);
            (!lines.is_empty()).then_some((entry.finding.checker, witness, lines))
        });
        if let Some((checker, witness, lines)) = chained {
            let _ = writeln!(out, "  {checker} was violated by this chain of events:");
            for line in super::chain::shown(self.history, (checker, witness), &lines, chain) {
                let _ = writeln!(out, "  {}", paint(colour, DIM, &line));
            }
        }
        if !header.fingerprint.is_empty() {
            let _ = writeln!(out, "  {}", paint(colour, DIM, &format!("fingerprint {}", header.fingerprint)));
        }
        let violated = self.entries.iter().any(|entry| entry.finding.verdict.witness().is_some());
        let fine = standing == Standing::AsExpected || standing == Standing::NothingExpected && !violated;
        if !header.replay.is_empty() && !fine {
            let _ = writeln!(out, "  have it again: {}", header.replay);
        }
        out
    }
}

fn line(out: &mut String, colour: bool, entry: &Entry) {
    let finding = &entry.finding;
    let word = finding.verdict.word();
    let (mark, code) = match (entry.matched(), &finding.verdict) {
        (Some(Match::AsExpected), _) => ("as expected", GREEN),
        (Some(Match::Otherwise(_)), _) => ("NOT AS EXPECTED", RED),
        (Some(Match::Undecided(_)), _) | (None, Verdict::Undecided { .. }) => ("", YELLOW),
        (None, _) => ("nothing expected", DIM),
    };
    let mut what = format!("{word:<9}");
    if !mark.is_empty() {
        let _ = write!(what, " ({mark})");
    }
    let _ = writeln!(
        out,
        "  {:<13} {} {}",
        finding.checker,
        paint(colour, code, &what),
        finding.verdict.sentence()
    );
    if let Some(Match::Otherwise(because)) = entry.matched() {
        let _ = writeln!(out, "                {}", paint(colour, code, &because));
    }
    for formula in &entry.formulas {
        let _ = writeln!(out, "                {}", paint(colour, DIM, formula));
    }
    for line in finding.verdict.witness().iter().flat_map(|witness| &witness.story) {
        let _ = writeln!(out, "                {}", paint(colour, DIM, line));
    }
}
