//! Finds the values along an axis at which a verdict changes: exactly for each seed, and with an
//! interval over many.
//!
//! A run is a pure function of scenario and seed, so bisection finds the exact value at which a
//! seed's verdict changes. Over many seeds these values are a sample. Its median has an interval
//! without any assumption about the distribution. A seed with the same verdict over the whole range
//! changes outside of it, which is precise enough for a median.

use std::ops::{ControlFlow, Range};

use statrs::distribution::{Binomial, DiscreteCDF};

use lockstorm::{
    file::scenario::{ScenarioError, Setting, Source, Ticks, Variant},
    judge::checker::Checker,
    run::Engine,
    run::{runner, worklist::work_through},
};

/// An axis of one variant, and the checker whose verdict is searched.
#[derive(Debug, Clone)]
pub(crate) struct Search<'a> {
    /// The file.
    pub(crate) source: &'a Source,
    /// The condition of the rest of the scenario.
    pub(crate) variant: Variant,
    /// The path of the varied key, such as `fault.jump.clock_step.by`.
    pub(crate) key: &'a str,
    /// The least value.
    pub(crate) from: Ticks,
    /// The largest value.
    pub(crate) to: Ticks,
    /// The precision of a change's position.
    pub(crate) within: Ticks,
    /// The number of equal parts into which the range is divided before bisection. A verdict that
    /// changes and changes back within one part is not detected.
    pub(crate) parts: u32,
    /// The checker whose verdict is searched.
    pub(crate) checker: &'static Checker,
    /// The engine that advances the time.
    pub(crate) engine: Engine,
}

/// A change of the verdict between two adjacent values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Change {
    /// The verdict below.
    pub(crate) below: &'static str,
    /// The largest tried value with the verdict below.
    pub(crate) last: Ticks,
    /// The least tried value with the verdict above.
    pub(crate) first: Ticks,
    /// The verdict above.
    pub(crate) above: &'static str,
}

/// Every change of one seed's verdict, in the order of the axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Found {
    /// The seed.
    pub(crate) seed: u64,
    /// The verdict at the least value.
    pub(crate) start: &'static str,
    /// The changes.
    pub(crate) changes: Vec<Change>,
    /// The number of runs that the search took.
    pub(crate) runs: usize,
}

impl Search<'_> {
    /// Finds the changes of each seed, and returns them in the order of the seeds. Calls `told` for
    /// each seed as soon as it is done.
    ///
    /// # Errors
    /// Fails if the key is unknown, or a value of the axis makes the scenario invalid.
    pub(crate) fn of(
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
        // Try only whole steps from the least value, so that the values have no more digits than
        // the step.
        let steps = self.from.steps(self.to, self.within);
        let parts = u64::from(self.parts).clamp(1, steps.max(1));
        let start = verdict(0)?;
        let (mut found, mut last, mut below) = (Vec::new(), 0, start);
        for part in 1..=parts {
            let end = steps / parts * part + steps % parts * part / parts;
            let at_end = verdict(end)?;
            // If the verdicts at the two ends differ, find each change in turn.
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
        let variant = self.source.variant_with(&self.variant, &[Setting::of(self.key, at)])?;
        Ok(runner::verdict(&variant.scenario, seed, self.engine, self.checker).word())
    }
}

/// The position of a seed's change on an axis, relative to the searched range.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(crate) enum Place {
    /// Below the range: at the least value the verdict has already changed.
    Below,
    /// The verdict changes at this value.
    At(Ticks),
    /// Above the range: at the largest value the verdict has not changed.
    Above,
}

/// The changes of many seeds between the same two verdicts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    /// The verdict below the change.
    pub(crate) below: &'static str,
    /// The verdict above it.
    pub(crate) above: &'static str,
    /// The position for each seed that has this change, or one of the two verdicts over the whole
    /// range.
    pub(crate) places: Vec<Place>,
    /// The number of seeds with another change, or with several. Their positions are not
    /// comparable.
    pub(crate) others: usize,
}

/// Returns the most frequent change, with its position for each seed. A seed with one verdict over
/// the whole range changes outside of it; without such seeds the median would move towards the
/// middle of the range. Returns `None` if no seed changes exactly once.
pub(crate) fn sample(found: &[Found]) -> Option<Sample> {
    let single = |found: &Found| if let [change] = found.changes[..] { Some(change) } else { None };
    let kind = |change: Change| (change.below, change.above);
    let of_kind = |of: (&str, &str)| found.iter().filter_map(single).filter(|one| kind(*one) == of).count();
    let kinds = found.iter().filter_map(single).map(kind);
    // Of two equally frequent changes, take the one that occurs first in the order of the seeds.
    let (below, above) = kinds.rev().max_by_key(|of| of_kind(*of))?;
    let place = |found: &Found| match found.changes[..] {
        [] if found.start == below => Some(Place::Above),
        [] if found.start == above => Some(Place::Below),
        [change] if kind(change) == (below, above) => Some(Place::At(change.first)),
        _ => None,
    };
    let places: Vec<Place> = found.iter().filter_map(place).collect();
    let others = found.len() - places.len();
    Some(Sample { below, above, places, others })
}

/// The median of many seeds' positions, and its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Median {
    /// The lower bound at the requested confidence.
    pub(crate) low: Place,
    /// The median.
    pub(crate) middle: Place,
    /// The upper bound at the requested confidence.
    pub(crate) high: Place,
}

/// Returns the median of positions and its interval, by order statistics. The number of `n` values
/// below the true median is distributed like the heads of `n` coins, for any distribution and also
/// for values outside of the range. Returns `None` for fewer values than the confidence needs (six,
/// for 95 %).
pub(crate) fn median(mut places: Vec<Place>, confidence: f64) -> Option<Median> {
    places.sort_by(|one, other| one.partial_cmp(other).unwrap_or(std::cmp::Ordering::Equal));
    let n = places.len();
    let coins = Binomial::new(0.5, n as u64).ok()?;
    // Find the largest rank for which the median lies below it with at most half of the allowed
    // error.
    let tail = (1.0 - confidence) / 2.0;
    let rank = (0..n as u64).take_while(|heads| coins.cdf(*heads) <= tail).count().checked_sub(1)?;
    Some(Median { low: places[rank], middle: places[n / 2], high: places[n - 1 - rank] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstorm::file::scenario::parse;

    /// c2 asks 2 s after a grant with a lease of 10 s, so a jump of more than 8 s frees the key.
    const JUMP: &str = include_str!("../../tests/jump.toml");

    fn search<'a>(source: &'a Source, from: &str, to: &str) -> Search<'a> {
        let ticks = |text: &str| text.parse().expect("a value");
        Search {
            source,
            variant: source.variants[0].clone(),
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
    fn a_key_that_is_none_is_refused() {
        let source = parse("jump.toml", JUMP).expect("a scenario");
        let search = Search { key: "fault.jump.clock_step.buy", ..search(&source, "0s", "5s") };
        let error = search.of(0..1, 1, &|_| {}).expect_err("no such key");
        assert!(error.to_string().contains("unknown field `buy`"), "{error}");
    }

    /// Regression: only this variant has the fault with the key. The other variant got the key as
    /// well, and a fault without an action is invalid.
    #[test]
    fn a_key_that_only_one_variant_has_could_not_be_moved() {
        let text =
            format!("{JUMP}\n[variant.other]\n[variant.crashed.fault.end]\ncrash = \"m\"\nat = \"20s\"\n");
        let source = parse("jump.toml", &text).expect("a scenario");
        let setting = Setting::of("fault.end.at", "12s".parse().expect("a value"));
        let points = source.points_of("crashed", setting).expect("it is a scenario");
        assert_eq!(points.iter().map(|point| point.of.as_str()).collect::<Vec<_>>(), ["crashed"]);
    }

    /// The interval of six values reaches from the least to the largest: all six lie on one side of
    /// the median in 1 of 32 cases.
    #[test]
    fn the_median_of_few_values_lies_between_all_of_them() {
        let places = |n: u32| (1..=n).map(|one| at(&one.to_string())).collect::<Vec<Place>>();
        assert_eq!(median(places(5), 0.95), None);
        let of = median(places(6), 0.95).expect("enough");
        assert_eq!([of.low, of.middle, of.high], [at("1"), at("4"), at("6")]);
        let of = median(places(100), 0.95).expect("enough");
        // Ranks 40 and 61 of 100 are the textbook's interval.
        assert_eq!([of.low, of.high], [at("40"), at("61")]);
    }

    fn at(value: &str) -> Place {
        Place::At(value.parse().expect("a value"))
    }

    /// Twenty seeds from an actual search: three had changed below the range, nine did not change
    /// within it. The median of the other eight was in the middle of the range, where hardly any
    /// seed changes.
    #[test]
    fn seeds_that_do_not_change_within_the_range_were_left_out_of_the_median() {
        let alike =
            |start, count| (0..count).map(move |seed| Found { seed, start, changes: Vec::new(), runs: 9 });
        let change = |(seed, value): (u64, &str)| {
            let value: Ticks = value.parse().expect("a value");
            let change = Change { below: "holds", last: value, first: value, above: "violated" };
            Found { seed, start: "holds", changes: vec![change], runs: 9 }
        };
        let values = ["1s", "2s", "3s", "4s", "5s", "6s", "7s", "8s"];
        let mut found: Vec<Found> = alike("violated", 3).chain(alike("holds", 9)).collect();
        found.extend((12..).zip(values).map(change));
        found.extend(alike("undecided", 1));
        let sample = sample(&found).expect("some change");
        assert_eq!((sample.below, sample.above, sample.others), ("holds", "violated", 1));
        let of = median(sample.places, 0.95).expect("enough");
        assert_eq!([of.low, of.middle, of.high], [at("3s"), at("8s"), Place::Above]);
    }

    /// A file also sweeps the time of the request. A request one second later leaves one second
    /// less of the lease, which a jump has to end.
    #[test]
    fn each_point_of_a_sweep_along_another_axis_has_its_own_boundary() {
        let text = format!("{JUMP}\n[sweep]\n\"client.c2.steps.0.at\" = [\"11s\", \"12s\"]\n");
        let source = parse("jump.toml", &text).expect("a scenario");
        let key = "fault.jump.clock_step.by";
        let from = "0s".parse().expect("a value");
        let points = source.points_of("", Setting::of(key, from)).expect("it is a scenario");
        let firsts = points.into_iter().map(|variant| {
            let search = Search { variant, ..search(&source, "0s", "12s") };
            let found = search.of(0..1, 1, &|_| {}).expect("it runs");
            found[0].changes[0].first.to_string()
        });
        assert_eq!(firsts.collect::<Vec<_>>(), ["9.001s", "8.001s"]);
    }
}
