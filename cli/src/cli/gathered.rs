//! The runs of a command until they are reported. Only counts are printed of a run that came out as
//! expected, so only counts are kept, and a million runs take as much memory as one.

use std::collections::BTreeMap;

use lockstorm::{
    judge::{
        checker::Hold,
        verdict::{Count, Finding, Match},
    },
    report::FailedInRuns,
    run::{
        runner::{Judged, Runner},
        tally::{Counter, Tally},
    },
};

use super::Exit;

/// The runs so far.
#[derive(Default)]
pub(super) struct Gathered {
    /// If true, the results of all runs are kept.
    keeps_all: bool,
    counter: Counter,
    counts: BTreeMap<Exit, usize>,
    /// The results of the runs that are printed one by one, in order.
    pub(super) kept: Vec<Judged>,
    /// The run that matters most, and its rank.
    chosen: Option<(Rank, Judged)>,
    /// The failed calls of the runs that are not kept.
    pub(super) failed: FailedInRuns,
    /// The holds of all runs, if the runner keeps them.
    pub(super) holds: Vec<Hold>,
}

/// The weight of a run: the least rank matters most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Unexpected,
    Undecided,
    Violated,
    Other,
}

impl Rank {
    fn of(judged: &Judged) -> Rank {
        match judged.verdict() {
            Match::Otherwise(_) => Rank::Unexpected,
            Match::Undecided(_) => Rank::Undecided,
            Match::AsExpected => {
                let is_violated = |finding: &Finding| finding.verdict.witness().is_some();
                if judged.findings.iter().any(is_violated) { Rank::Violated } else { Rank::Other }
            }
        }
    }
}

/// Returns the run that matters most: the first that is not as expected, or else undecided, or else
/// violated, or else the first of all.
pub(super) fn most_telling(judged: &[Judged]) -> Option<&Judged> {
    judged.iter().min_by_key(|one| Rank::of(one))
}

impl Gathered {
    /// Returns a collection that keeps the results of all runs, or of those alone that are not as
    /// expected.
    pub(super) fn new(keeps_all: bool) -> Gathered {
        Gathered { keeps_all, ..Gathered::default() }
    }

    /// Adds a run. Runs must be added in order.
    pub(super) fn add(&mut self, mut judged: Judged) {
        let (verdict, rank) = (Exit::of(&judged.verdict()), Rank::of(&judged));
        *self.counts.entry(verdict).or_default() += 1;
        for finding in &judged.findings {
            self.counter.add(judged.case, finding.checker, Count::of([finding]));
        }
        self.holds.append(&mut judged.holds);
        let is_kept = self.keeps_all || verdict != Exit::Expected;
        if !is_kept {
            self.failed.add(&judged.failed);
        }
        if self.chosen.as_ref().is_none_or(|(best, _)| rank < *best) {
            self.chosen = Some((rank, judged.clone()));
        }
        if is_kept {
            self.kept.push(judged);
        }
    }

    /// Returns the run that matters most, see [`most_telling`].
    pub(super) fn chosen(&self) -> Option<&Judged> {
        self.chosen.as_ref().map(|(_, judged)| judged)
    }

    /// Returns the number of runs.
    pub(super) fn runs(&self) -> usize {
        self.counts.values().sum()
    }

    /// Returns the number of runs with this verdict.
    pub(super) fn count(&self, verdict: Exit) -> usize {
        self.counts.get(&verdict).copied().unwrap_or(0)
    }

    /// Returns the exit status of the worst run; as expected if there is none.
    pub(super) fn worst(&self) -> Exit {
        self.counts.keys().max().copied().unwrap_or(Exit::Expected)
    }

    /// Returns the counts of each variant.
    pub(super) fn tallies<'a>(&self, trial: &'a Runner<'_>) -> Vec<Tally<'a>> {
        self.counter.tallies(trial)
    }
}

#[cfg(test)]
mod tests {
    use lockstorm::run::runner::Case;

    use super::*;

    fn judged(seed: u64, verdict: Match) -> Judged {
        Judged {
            case: Case { source: 0, variant: 0, seed },
            servers: String::new(),
            findings: Vec::new(),
            matches: vec![("l1".to_owned(), verdict)],
            compared: Vec::new(),
            fingerprint: String::new(),
            report_digest: String::new(),
            simulated: 1.0,
            failed: Vec::new(),
            holds: Vec::new(),
            chains: BTreeMap::new(),
        }
    }

    fn seeds(kept: &[Judged]) -> Vec<u64> {
        kept.iter().map(|one| one.case.seed).collect()
    }

    #[test]
    fn runs_that_are_as_expected_leave_counts_and_the_first_of_them() {
        let mut gathered = Gathered::new(false);
        (0..1_000).for_each(|seed| gathered.add(judged(seed, Match::AsExpected)));
        assert_eq!((gathered.runs(), gathered.count(Exit::Expected)), (1_000, 1_000));
        assert_eq!((gathered.kept.len(), gathered.worst()), (0, Exit::Expected));
        assert_eq!(gathered.chosen().map(|one| one.case.seed), Some(0));
    }

    #[test]
    fn the_first_of_the_worst_runs_matters_most() {
        let undecided = || Match::Undecided("unclear".to_owned());
        let otherwise = || Match::Otherwise("violated".to_owned());
        let verdicts = [Match::AsExpected, undecided(), otherwise(), undecided(), otherwise()];
        for (keeps_all, kept) in [(false, vec![1, 2, 3, 4]), (true, vec![0, 1, 2, 3, 4])] {
            let mut gathered = Gathered::new(keeps_all);
            let all: Vec<Judged> =
                (0..).zip(verdicts.clone()).map(|(seed, verdict)| judged(seed, verdict)).collect();
            all.iter().for_each(|one| gathered.add(one.clone()));
            assert_eq!(seeds(&gathered.kept), kept);
            assert_eq!(gathered.chosen().map(|one| one.case.seed), Some(2));
            assert_eq!(most_telling(&all).map(|one| one.case.seed), Some(2));
            assert_eq!(gathered.worst(), Exit::Unexpected);
            assert_eq!(
                [1, 2, 2],
                [Exit::Expected, Exit::Undecided, Exit::Unexpected].map(|exit| gathered.count(exit))
            );
        }
    }
}
