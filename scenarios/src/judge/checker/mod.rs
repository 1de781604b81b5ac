//! The checkers: one file per question about a history.
//!
//! A checker is a pure function of a [`History`]: it imports nothing that runs. A question decides
//! and returns a `Decision`, which is data; `wording/` puts it in words. To
//! add a checker, add its file in `questions/`, one in `wording/`, and its line in [`LIST`].
//! `evidence/` has the tools of the questions: promises, beliefs and causal chains.

#[cfg(test)]
mod came_back;
mod decision;
pub(crate) mod evidence;
mod questions;
#[cfg(test)]
mod tests;
mod wording;

use std::time::Duration;

use crate::judge::{
    history::{Bounds, History, Lock},
    verdict::{Finding, Measure, Verdict},
};

pub use evidence::holds::{Hold, holds};
pub use evidence::words::many;
pub use evidence::{Evidence, Stretch};

/// A question about a history, with the function that answers it.
#[derive(Debug, Clone, Copy)]
pub struct Checker {
    /// The name in scenario files.
    pub name: &'static str,
    /// The question in a sentence, as reports print it beside the verdict.
    pub question: &'static str,
    /// The measures: name and meaning. Expectations may bound them.
    pub measures: &'static [(&'static str, &'static str)],
    /// The bound within which its measures pass, in words. A larger value means *violated*,
    /// whatever a file expects. `None` if a single certain case is a violation.
    pub bound: Option<fn(Bounds) -> String>,
    /// Returns the finding without the sentence that all violations share; [`Checker::ask`] adds
    /// it.
    check: fn(&Evidence<'_>) -> Finding,
}

/// All checkers: the four layers, then the rest by name.
pub const LIST: &[Checker] = &[
    questions::l1_server::L1,
    questions::l2_belief::L2,
    questions::l3_effect::L3,
    questions::l4_fenced::L4,
    questions::commands::COMMANDS,
    questions::fairness::FAIRNESS,
    questions::hygiene::HYGIENE,
    questions::latch::LATCH,
    questions::lease::LEASE,
    questions::owner_safety::OWNER_SAFETY,
    questions::permits::PERMITS,
    questions::progress::PROGRESS,
    questions::rate::RATE,
    questions::read_write::READ_WRITE,
    questions::reentrancy::REENTRANCY,
    questions::together::TOGETHER,
    questions::waiting::WAITING,
    questions::wake_ups::WAKE_UPS,
    questions::windows::WINDOWS,
];

impl Checker {
    /// Finds the checker by its name in scenario files; `None` if there is no such checker.
    pub fn named(name: &str) -> Option<&'static Self> {
        LIST.iter().find(|checker| checker.name == name)
    }

    /// Answers the question for a history. A violation's story ends with the faults in its causal
    /// chain.
    pub fn ask(&self, evidence: &Evidence<'_>) -> Finding {
        let history = evidence.history;
        let mut finding = (self.check)(evidence);
        if let Verdict::Violated { witness } = &mut finding.verdict
            && witness.lock.is_some()
        {
            witness.story.push(evidence::words::faults(
                history,
                &evidence::chain::faults(history, witness),
                witness,
            ));
        }
        finding
    }

    fn finding(&self, verdict: Verdict, measures: Vec<Measure>) -> Finding {
        Finding { checker: self.name, question: self.question, verdict, measures, tolerance: Duration::ZERO }
    }
}

/// Returns the bound of a checker whose measure may be as large as a file's `run.progress`.
fn up_to_progress(measure: &str, Bounds { progress, .. }: Bounds) -> String {
    format!("`{measure}` up to `run.progress`, {progress:?} if left out")
}

/// Returns true if this violation is a stall of one of these locks, which
/// [never worked](never_worked) in another run of the scenario: faults are not the reason for it.
pub(crate) fn is_of_setup(finding: &Finding, broken: &[Lock]) -> bool {
    let lock = finding.verdict.witness().and_then(|witness| witness.lock);
    finding.checker == questions::progress::PROGRESS.name && lock.is_some_and(|lock| broken.contains(&lock))
}

/// Returns the locks that could not be acquired because of the setup of the run, whatever the later
/// faults.
pub(crate) fn never_worked(history: &History) -> Vec<Lock> {
    questions::progress::broken(&Evidence::of(history))
}

/// Answers all questions about a history, in the order of [`LIST`]. The events of lockstorm's own
/// client count for `progress` alone.
pub fn check(history: &History) -> Vec<Finding> {
    let without_probe = history.without_probe();
    let evidence = Evidence::of(&without_probe);
    let tolerance = history.header.tolerance();
    let of_probe = history.probe().map(|_| Evidence::of(history));
    let ask = |checker: &Checker| {
        let with_probe = of_probe.as_ref().filter(|_| checker.name == questions::progress::PROGRESS.name);
        Finding { tolerance, ..checker.ask(with_probe.unwrap_or(&evidence)) }
    };
    LIST.iter().map(ask).collect()
}
