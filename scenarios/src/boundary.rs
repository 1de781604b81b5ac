//! Where along an axis a verdict changes: exact for each seed, with an interval over many.
//!
//! A run is a pure function of scenario and seed, so bisection finds the very value at which a seed's verdict changes. Over many
//! seeds these values are a sample, whose median has an interval without any assumption about their distribution.

use std::ops::{ControlFlow, Range};

use statrs::distribution::{Binomial, DiscreteCDF};

use crate::{
    checker::Checker,
    run::Engine,
    runner,
    scenario::{ScenarioError, Setting, Source, Ticks},
    worklist::work_through,
};

/// An axis of one variant, and whose verdict is looked at.
#[derive(Debug, Clone)]
pub struct Search<'a> {
    /// The file.
    pub source: &'a Source,
    /// The name of the variant; empty for a file without any.
    pub variant: &'a str,
    /// The key that is moved, by its path: `fault.jump.clock_step.by`.
    pub key: &'a str,
    /// The least value.
    pub from: Ticks,
    /// The largest value.
    pub to: Ticks,
    /// How near a change is found.
    pub within: Ticks,
    /// How many equal parts the range is cut into before bisection begins: a verdict that changes and changes back between two of
    /// their ends is not seen.
    pub parts: u32,
    /// Whose verdict.
    pub checker: &'static Checker,
    /// What moves time on.
    pub engine: Engine,
}

/// A value up to which a verdict is one, and a value a little larger from which it is another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// The verdict below.
    pub below: &'static str,
    /// The largest value tried that has it.
    pub last: Ticks,
    /// The least value tried that has another.
    pub first: Ticks,
    /// The verdict above.
    pub above: &'static str,
}

/// Every change of one seed's verdict, in the order of the axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The seed.
    pub seed: u64,
    /// The verdict at the least value.
    pub start: &'static str,
    /// The changes.
    pub changes: Vec<Change>,
    /// How many runs it took.
    pub runs: usize,
}

impl Search<'_> {
    /// Finds the changes of each seed, in the order of the seeds; `told` is called with each as soon as it is known.
    ///
    /// # Errors
    /// When the key is none of the format, or the scenario cannot be one with a value of the axis.
    pub fn of(
        &self,
        seeds: Range<u64>,
        jobs: usize,
        told: &(dyn Fn(&Found) + Sync),
    ) -> Result<Vec<Found>, Box<ScenarioError>> {
        let seeds: Vec<u64> = seeds.collect();
        let found = work_through(&seeds, jobs, |seed| {
            let found = self.of_seed(*seed);
            found.iter().for_each(told);
            if found.is_ok() { ControlFlow::Continue(found) } else { ControlFlow::Break(found) }
        });
        found.into_iter().collect()
    }

    fn of_seed(&self, seed: u64) -> Result<Found, Box<ScenarioError>> {
        let mut runs = 0;
        let mut verdict = |step: u64| {
            runs += 1;
            self.verdict(self.from.step(self.to, self.within, step), seed)
        };
        // All values tried are whole steps from the least one, so that they are as short to read as the step.
        let steps = self.from.steps(self.to, self.within);
        let parts = u64::from(self.parts).clamp(1, steps.max(1));
        let start = verdict(0)?;
        let (mut found, mut last, mut below) = (Vec::new(), 0, start);
        for part in 1..=parts {
            let end = steps / parts * part + steps % parts * part / parts;
            let at_end = verdict(end)?;
            // Between two ends that differ, every change is found in turn.
            while below != at_end {
                let (mut first, mut above) = (end, at_end);
                while first - last > 1 {
                    let middle = last + (first - last) / 2;
                    let at_middle = verdict(middle)?;
                    if at_middle == below {
                        last = middle;
                    } else {
                        (first, above) = (middle, at_middle);
                    }
                }
                found.push((below, last, first, above));
                (last, below) = (first, above);
            }
            last = end;
        }
        let value = |step| self.from.step(self.to, self.within, step);
        let change =
            |(below, last, first, above)| Change { below, last: value(last), first: value(first), above };
        Ok(Found { seed, start, changes: found.into_iter().map(change).collect(), runs })
    }

    fn verdict(&self, at: Ticks, seed: u64) -> Result<&'static str, Box<ScenarioError>> {
        let variant = self.source.variant_with(self.variant, &[Setting::of(self.key, at)])?;
        Ok(runner::verdict(&variant.scenario, seed, self.engine, self.checker).word())
    }
}

/// The middle of many seeds' boundaries, and how far off it may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Median {
    /// The least of them.
    pub least: Ticks,
    /// No less than this, with the confidence asked for.
    pub low: Ticks,
    /// The median.
    pub middle: Ticks,
    /// No more than this.
    pub high: Ticks,
    /// The largest.
    pub most: Ticks,
}

/// The median of values and its interval, by order statistics: as many of `n` values lie below the true median as of `n` coins
/// show heads. `None` for fewer values than the confidence needs (six, for 95 %).
pub fn median(mut values: Vec<Ticks>, confidence: f64) -> Option<Median> {
    values.sort_by(|one, other| one.partial_cmp(other).unwrap_or(std::cmp::Ordering::Equal));
    let n = values.len();
    let coins = Binomial::new(0.5, n as u64).ok()?;
    // The largest rank below which the median lies with no more than half of what may go wrong.
    let tail = (1.0 - confidence) / 2.0;
    let rank = (0..n as u64).take_while(|heads| coins.cdf(*heads) <= tail).count().checked_sub(1)?;
    Some(Median {
        least: values[0],
        low: values[rank],
        middle: values[n / 2],
        high: values[n - 1 - rank],
        most: values[n - 1],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::parse;

    /// c2 asks 2 s after the grant of 10 s, so a jump of more than 8 s frees the key.
    const JUMP: &str = include_str!("../tests/jump.toml");

    fn search<'a>(source: &'a Source, from: &str, to: &str) -> Search<'a> {
        let ticks = |text: &str| text.parse().expect("a value");
        Search {
            source,
            variant: "",
            key: "fault.jump.clock_step.by",
            from: ticks(from),
            to: ticks(to),
            within: ticks("1ms"),
            parts: 4,
            checker: Checker::named("l1").expect("a checker"),
            engine: Engine::Event,
        }
    }

    #[test]
    fn a_jump_frees_the_lock_where_what_is_left_of_the_lease_says_so() {
        let source = parse("jump.toml", JUMP).expect("a scenario");
        let found = search(&source, "0s", "12s").of(0..1, 1, &|_| {}).expect("it runs");
        let [change] = found[0].changes[..] else { panic!("{found:?}") };
        assert_eq!((change.below, change.above), ("holds", "violated"));
        // A key lives to the end of its last millisecond.
        assert_eq!(change.last.to_string(), "8s");
        assert_eq!(change.first.to_string(), "8.001s");
    }

    #[test]
    fn a_range_without_a_change_has_none() {
        let source = parse("jump.toml", JUMP).expect("a scenario");
        let found = search(&source, "0s", "5s").of(0..1, 1, &|_| {}).expect("it runs");
        assert_eq!((found[0].start, found[0].changes.len()), ("holds", 0));
    }

    #[test]
    fn a_key_or_a_variant_that_is_none_is_refused() {
        let source = parse("jump.toml", JUMP).expect("a scenario");
        let search = Search { key: "fault.jump.clock_step.buy", ..search(&source, "0s", "5s") };
        let error = search.of(0..1, 1, &|_| {}).expect_err("no such key");
        assert!(error.to_string().contains("unknown field `buy`"), "{error}");
        let search = Search { variant: "slow", ..self::search(&source, "0s", "5s") };
        let error = search.of(0..1, 1, &|_| {}).expect_err("no such variant");
        assert!(error.to_string().contains("no variant \"slow\""), "{error}");
    }

    /// Of six values the least and the largest are the interval: all six lie on one side once in 32 times.
    #[test]
    fn the_median_of_few_values_lies_between_all_of_them() {
        let values =
            |n: u32| (1..=n).map(|one| one.to_string().parse().expect("a value")).collect::<Vec<Ticks>>();
        assert_eq!(median(values(5), 0.95), None);
        let of = median(values(6), 0.95).expect("enough");
        assert_eq!([of.low, of.middle, of.high].map(|one| one.to_string()), ["1", "4", "6"]);
        let of = median(values(100), 0.95).expect("enough");
        // Ranks 40 and 61 of a hundred: the textbook's interval.
        assert_eq!([of.low, of.high].map(|one| one.to_string()), ["40", "61"]);
    }
}
