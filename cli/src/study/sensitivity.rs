//! Finds the values drawn from the seeds that separate violated runs from the others.
//!
//! Each value is tested separately: the mutual information between the verdict and the value, split
//! in two at its best place, in bits. The G-test, corrected for the number of places and values
//! that were tried, decides if chance could do as well.

use std::collections::BTreeMap;

use indexmap::IndexSet;
use serde::Serialize;
use statrs::distribution::{ChiSquared, ContinuousCDF};

use lockstorm::{file::plan::Drawn, judge::verdict::Count};

/// The highest accepted probability that chance separates the runs as well.
const CHANCE_MAX: f64 = 0.05;

/// A subset of the runs with a common property.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Part {
    /// The property in words: `up to 3s`, or the value.
    pub(crate) of: String,
    /// The violations among them.
    pub(crate) violated: Count,
}

/// A drawn value that separates the runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Separator {
    /// The value, by the path of its key.
    pub(crate) path: String,
    /// Its mutual information with the verdict in bits, at most 1.
    pub(crate) bits: f64,
    /// An upper bound on the probability that an independent value yields as much information.
    pub(crate) chance: f64,
    /// The runs on both sides of the best split of a number, or with each value of a text.
    pub(crate) parts: Vec<Part>,
}

/// Returns the values that separate the runs, the most informative first. A run consists of its
/// drawn values, and true if it was violated. The caller omits undecided runs.
pub(crate) fn separators(runs: &[(Vec<Drawn>, bool)]) -> Vec<Separator> {
    // A fault that does not happen in a run has no values there.
    let paths: IndexSet<&str> = runs.iter().flat_map(|(drawn, _)| drawn).map(|drawn| &*drawn.path).collect();
    let asked = |path: &&str| {
        let of_run = |(drawn, violated): &(Vec<Drawn>, bool)| {
            let one = drawn.iter().find(|one| one.path == *path)?;
            Some((one.clone(), *violated))
        };
        let runs: Vec<(Drawn, bool)> = runs.iter().filter_map(of_run).collect();
        let best = if runs.iter().all(|(drawn, _)| drawn.number.is_some()) { cut(runs) } else { each(runs) };
        best.map(|best| best.separator(path, paths.len()))
    };
    let mut all: Vec<Separator> =
        paths.iter().filter_map(asked).filter(|one| one.chance <= CHANCE_MAX).collect();
    all.sort_by(|one, other| other.bits.total_cmp(&one.bits));
    all
}

/// The best division of the runs by one value.
struct Division {
    bits: f64,
    runs: u64,
    /// The number of divisions that were tried.
    tried: usize,
    parts: Vec<Part>,
}

impl Division {
    fn separator(self, path: &str, values: usize) -> Separator {
        // G is twice the runs times the mutual information in nats. Under independence it has a
        // chi-squared distribution.
        let g = 2.0 * self.runs as f64 * self.bits * std::f64::consts::LN_2;
        let freedom = self.parts.len().saturating_sub(1).max(1) as f64;
        let alone = ChiSquared::new(freedom).map_or(1.0, |distribution| distribution.sf(g));
        let chance = (alone * (self.tried * values) as f64).min(1.0);
        Separator { path: path.to_owned(), bits: self.bits, chance, parts: self.parts }
    }
}

/// Splits the runs by a number, at the most informative place.
fn cut(mut runs: Vec<(Drawn, bool)>) -> Option<Division> {
    runs.sort_by(|(one, _), (other, _)| {
        one.number.partial_cmp(&other.number).unwrap_or(std::cmp::Ordering::Equal)
    });
    let all = counted(runs.iter().map(|(_, violated)| *violated));
    let (mut below, mut tried) = (Count::default(), 0);
    let mut best: Option<Division> = None;
    for pair in runs.windows(2) {
        let [(last, violated), (first, _)] = pair else { continue };
        count(&mut below, *violated);
        if last.number == first.number {
            continue;
        }
        tried += 1;
        let above = Count { yes: all.yes - below.yes, no: all.no - below.no, undecided: 0 };
        let bits = mutual_information(&[below, above]);
        if best.as_ref().is_none_or(|best| bits > best.bits) {
            let sides = [(format!("up to {}", last.text), below), (format!("from {}", first.text), above)];
            let parts = sides.map(|(of, violated)| Part { of, violated }).into();
            best = Some(Division { bits, runs: all.runs(), tried, parts });
        }
    }
    best.map(|best| Division { tried, ..best })
}

/// Divides the runs by each distinct value of a text.
fn each(runs: Vec<(Drawn, bool)>) -> Option<Division> {
    let mut parts: BTreeMap<String, Count> = BTreeMap::new();
    for (drawn, violated) in runs {
        count(parts.entry(drawn.text).or_default(), violated);
    }
    if parts.len() < 2 {
        return None;
    }
    let counts: Vec<Count> = parts.values().copied().collect();
    let parts: Vec<Part> = parts.into_iter().map(|(of, violated)| Part { of, violated }).collect();
    let runs = counts.iter().map(|count| count.runs()).sum();
    Some(Division { bits: mutual_information(&counts), runs, tried: 1, parts })
}

fn count(counts: &mut Count, violated: bool) {
    *(if violated { &mut counts.yes } else { &mut counts.no }) += 1;
}

fn counted(all: impl Iterator<Item = bool>) -> Count {
    let mut counts = Count::default();
    all.for_each(|violated| count(&mut counts, violated));
    counts
}

/// Returns the mutual information between the part of a run and its verdict, in bits.
fn mutual_information(parts: &[Count]) -> f64 {
    let yes: u64 = parts.iter().map(|part| part.yes).sum();
    let no: u64 = parts.iter().map(|part| part.no).sum();
    let runs = (yes + no) as f64;
    let told = parts.iter().map(|part| (part.yes + part.no) as f64 / runs * entropy(part.yes, part.no));
    // Rounding may give a value slightly below zero.
    (entropy(yes, no) - told.sum::<f64>()).max(0.0)
}

/// Returns the entropy of a verdict with these counts, in bits.
fn entropy(yes: u64, no: u64) -> f64 {
    let of = |part: u64| {
        let share = part as f64 / (yes + no) as f64;
        if part == 0 { 0.0 } else { -share * share.log2() }
    };
    of(yes) + of(no)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(path: &str, number: Option<f64>, text: String) -> Drawn {
        Drawn { path: path.to_owned(), text, number }
    }

    /// Returns this many runs, violated if the jump is above 3.5 s on host b. The delay is
    /// independent of the verdict.
    fn runs(count: u32) -> Vec<(Vec<Drawn>, bool)> {
        let run = |n: u32| {
            let (jump, delay) = (f64::from(n % 8), f64::from(n * 37 % 101));
            let host = if (n / 8).is_multiple_of(2) { "a" } else { "b" };
            let values = vec![
                drawn("fault.delay.at", Some(delay), format!("{delay}ms")),
                drawn("fault.jump.by", Some(jump), format!("{jump}s")),
                drawn("fault.jump.host", None, host.to_owned()),
            ];
            (values, jump > 3.5 && host == "b")
        };
        (0..count).map(run).collect()
    }

    #[test]
    fn what_the_verdict_depends_on_is_named_and_where_it_is_cut() {
        let found = separators(&runs(160));
        let names: Vec<&str> = found.iter().map(|one| one.path.as_str()).collect();
        assert_eq!(names, ["fault.jump.by", "fault.jump.host"]);
        let parts: Vec<(&str, u64, u64)> =
            found[0].parts.iter().map(|part| (&*part.of, part.violated.yes, part.violated.no)).collect();
        assert_eq!(parts, [("up to 3s", 0, 80), ("from 4s", 40, 40)]);
        let hosts: Vec<(&str, u64)> =
            found[1].parts.iter().map(|part| (&*part.of, part.violated.yes)).collect();
        assert_eq!(hosts, [("a", 0), ("b", 40)]);
        // A quarter is violated: 0.811 bits. Half of the runs have a large jump, and each of these
        // leaves one bit of uncertainty.
        assert!((found[0].bits - 0.311).abs() < 0.001, "{}", found[0].bits);
    }

    /// Regression: only the values of the first run were tested.
    #[test]
    fn a_fault_that_did_not_happen_in_the_first_run_was_left_out() {
        let mut runs = runs(160);
        runs[0].0.retain(|drawn| drawn.path != "fault.jump.by");
        assert!(separators(&runs).iter().any(|one| one.path == "fault.jump.by"));
    }

    /// The best place of many separates a few runs well by chance.
    #[test]
    fn a_few_runs_prove_nothing() {
        assert_eq!(separators(&runs(14)), []);
        assert_eq!(separators(&[]), []);
        let alike: Vec<(Vec<Drawn>, bool)> = runs(160).into_iter().map(|(drawn, _)| (drawn, true)).collect();
        assert_eq!(separators(&alike), [], "all are violated");
    }
}
