//! A second judge for every checker, and tests that the two agree.
//!
//! Each checker of `lockstorm::checker` is quick and explains its verdict. Its reference here does
//! neither: a file states the definition in plain sentences and computes it from the raw events,
//! however long that takes. Both judge generated histories, plausible and absurd ones, and every
//! stock scenario. A difference means that one of the two is wrong.
//!
//! `cargo test -p lockstorm --test judges` tries 2,000 histories of each kind.
//! `LOCKSTORM_SEEDS=0..1000000 cargo test --release -p lockstorm --test judges -- generated` tries
//! a million of each kind, and `LOCKSTORM_SEEDS=17..18` a single seed.

mod commands;
mod fairness;
mod generate;
mod hygiene;
mod l1;
mod l2;
mod l3;
mod l4;
mod latch;
mod lease;
mod observer;
mod owner_safety;
mod past;
mod permits;
mod progress;
mod rate;
mod read_write;
mod reentrancy;
mod runs;
mod section;
mod stock;
mod together;
mod waiting;
mod wake_ups;
mod windows;
mod wire;

use std::{
    collections::BTreeMap,
    fmt::{self, Write},
    ops::Range,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use lockstorm::{
    judge::{
        checker,
        history::History,
        verdict::{Finding, Quantity},
    },
    report::timeline,
    run::runner::parse_seeds,
};
use proptest::strategy::{Strategy, ValueTree};

/// The answer of a reference: the word of its verdict, and its measures.
#[derive(Debug, PartialEq)]
pub(crate) struct Answer {
    word: &'static str,
    measures: Vec<(&'static str, Quantity)>,
}

impl Answer {
    pub(crate) fn of(word: &'static str) -> Answer {
        Answer { word, measures: Vec::new() }
    }

    pub(crate) fn measured(mut self, name: &'static str, quantity: Quantity) -> Answer {
        self.measures.push((name, quantity));
        self
    }

    pub(crate) fn time(self, name: &'static str, length: Duration) -> Answer {
        self.measured(name, Quantity::Time(length))
    }

    pub(crate) fn count(self, name: &'static str, count: usize) -> Answer {
        self.measured(name, Quantity::Number(count as f64))
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word)?;
        self.measures.iter().try_for_each(|(name, quantity)| match quantity {
            Quantity::Time(length) => write!(f, " {name}={length:?}"),
            Quantity::Number(number) => write!(f, " {name}={number}"),
        })
    }
}

/// The type of a reference.
type Judge = fn(&History) -> Answer;

/// The references by the names of their checkers.
const JUDGES: &[(&str, Judge)] = &[
    ("l1", l1::judge),
    ("l2", l2::judge),
    ("l3", l3::judge),
    ("l4", l4::judge),
    ("commands", commands::judge),
    ("fairness", fairness::judge),
    ("hygiene", hygiene::judge),
    ("latch", latch::judge),
    ("lease", lease::judge),
    ("owner-safety", owner_safety::judge),
    ("permits", permits::judge),
    ("progress", progress::judge),
    ("rate", rate::judge),
    ("read-write", read_write::judge),
    ("reentrancy", reentrancy::judge),
    ("together", together::judge),
    ("waiting", waiting::judge),
    ("wake-ups", wake_ups::judge),
    ("windows", windows::judge),
];

/// The answer of one checker about a history.
struct Said {
    checker: &'static str,
    word: &'static str,
    /// Both answers, if the checker and its reference differ.
    difference: Option<String>,
}

/// Runs every checker and its reference on a history.
fn judged(history: &History) -> Vec<Said> {
    let of_clients = past::without_probe(history);
    let judge = |finding: Finding| {
        let (name, judge) = JUDGES
            .iter()
            .find(|(name, _)| *name == finding.checker)
            .unwrap_or_else(|| panic!("{} has no reference: add one to JUDGES", finding.checker));
        let measures = finding.measures.iter().map(|measure| (measure.name, measure.quantity)).collect();
        let checker = Answer { word: finding.verdict.word(), measures };
        let reference = judge(if name == &"progress" { history } else { &of_clients });
        let differ = || {
            let why = finding.verdict.sentence();
            format!("{name}: the checker says {checker} ({why})\n    its reference says {reference}")
        };
        let difference = (checker != reference).then(differ);
        Said { checker: finding.checker, word: checker.word, difference }
    };
    checker::check(history).into_iter().map(judge).collect()
}

/// The checkers that differ from their references: the name, and both answers.
pub(crate) fn differences(history: &History) -> Vec<(&'static str, String)> {
    let said = judged(history).into_iter();
    said.filter_map(|one| Some((one.checker, one.difference?))).collect()
}

/// A text of the differences and their history, for a person.
pub(crate) fn told(history: &History, differences: &[(&str, String)]) -> String {
    let mut text = String::new();
    for lock in history.header.locks() {
        let _ = writeln!(text, "  lock {lock}: {:?}", history.lock(lock));
    }
    for (host, clock) in history.header.hosts.iter().zip(&history.clocks) {
        if clock.segments().len() > 1 || clock.segments()[0].rates != [1_000_000_000; 3] {
            let _ = writeln!(text, "  clock of {}: {:?}", host.name, clock.segments());
        }
    }
    let header = &history.header;
    let _ = writeln!(
        text,
        "  calm {:?}, end {:?}, {:?}, {:?}",
        header.calm, header.end, header.ended, header.resource
    );
    text.push_str(&timeline(history, 60));
    for (_, difference) in differences {
        let _ = writeln!(text, "  {difference}");
    }
    text
}

/// A description of the smallest history that the judges of one checker differ about, shrunk from
/// the histories of one seed.
fn smallest<S: Strategy>(
    seed: u64,
    strategy: &S,
    history: fn(S::Value) -> History,
    checker: &'static str,
) -> String {
    let differ = |history: &History| {
        let mut differences = differences(history);
        // Shrinking must keep to one checker, or it goes from one mistake to another.
        differences.retain(|(of, _)| *of == checker);
        (!differences.is_empty()).then_some(differences)
    };
    let mut tree = strategy.new_tree(&mut generate::runner(seed)).expect("a strategy that rejects nothing");
    let mut smallest = tree.current();
    while tree.simplify() {
        while differ(&history(tree.current())).is_none() && tree.complicate() {}
        if differ(&history(tree.current())).is_none() {
            break;
        }
        smallest = tree.current();
    }
    let history = history(smallest);
    format!("seed {seed}, made small:\n{}", told(&history, &differ(&history).unwrap_or_default()))
}

/// The seeds of each kind if the environment names none.
const SEEDS: Range<u64> = 0..2_000;

/// The least number of histories that each checker must find to hold, and to be violated; with
/// fewer, the judges were not really compared.
const OF_EACH_VERDICT: u64 = 5;

fn seeds() -> Range<u64> {
    std::env::var("LOCKSTORM_SEEDS").map_or(SEEDS, |seeds| parse_seeds(&seeds).expect("a range"))
}

/// The number of histories by checker and verdict.
type Verdicts = BTreeMap<(&'static str, &'static str), u64>;

/// Judges histories on every processor. Panics with the number of differences, and for each checker
/// with the first one, shrunk.
fn generated<S: Strategy>(strategy: impl Fn() -> S + Sync, history: fn(S::Value) -> History) -> Verdicts {
    let seeds = seeds();
    let next = AtomicU64::new(seeds.start);
    let found: Mutex<(BTreeMap<&'static str, Vec<u64>>, Verdicts)> = Mutex::default();
    let work = || {
        let strategy = strategy();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            let tree =
                strategy.new_tree(&mut generate::runner(seed)).expect("a strategy that rejects nothing");
            let said = judged(&history(tree.current()));
            let (differ, verdicts) = &mut *found.lock().expect("no thread panics");
            for one in said {
                *verdicts.entry((one.checker, one.word)).or_default() += 1;
                if one.difference.is_some() {
                    differ.entry(one.checker).or_default().push(seed);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let (found, verdicts) = found.into_inner().expect("every thread is done");
    let mut text = String::new();
    for (checker, differ) in &found {
        let first = differ.iter().min().expect("one at least");
        let smallest = smallest(*first, &strategy(), history, checker);
        let _ = writeln!(text, "{checker}: the judges differ in {} of {seeds:?}; {smallest}", differ.len());
    }
    assert!(found.is_empty(), "{text}");
    verdicts
}

/// Agreement proves nothing without violations: with the default number of seeds, the histories of
/// both kinds together include every verdict of every checker.
#[test]
fn the_judges_agree_on_generated_histories() {
    // Plausible histories.
    let mut verdicts = generated(generate::world::strategy, generate::world::history);
    // Impossible histories.
    for (verdict, count) in generated(generate::noise::strategy, generate::noise::history) {
        *verdicts.entry(verdict).or_default() += count;
    }
    let judges = JUDGES.iter().flat_map(|(checker, _)| ["holds", "violated"].map(|word| (*checker, word)));
    let rare = judges.filter(|verdict| verdicts.get(verdict).is_none_or(|count| *count < OF_EACH_VERDICT));
    let rare: Vec<_> = rare.collect();
    // A few seeds are for inspection.
    let is_few = seeds().count() < SEEDS.count();
    assert!(
        is_few || rare.is_empty(),
        "verdicts of fewer than {OF_EACH_VERDICT} histories: {rare:?} of {verdicts:?}"
    );
}
