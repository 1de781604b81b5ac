//! Tests that the alarms ring: deliberately broken locks, and mistakes of the simulator itself,
//! each with the scenario and the checker that must catch it.
//!
//! A row names the broken lock, the right one beside it, and the expectation for the right one. The
//! right one must meet the expectation on each of 25 seeds; the broken one must fail it on one of
//! the first thousand. The last line of the output is the mutation score.
//!
//! `LOCKSTORM_RULER=2000 cargo test --profile bench --test bugs` compares hunts with storms
//! instead: the runs until each finds a mistake, of at most so many.

mod hunted;
mod list;
mod ruler;
mod scenarios;
mod subtle;
mod table;

use std::sync::atomic::{AtomicUsize, Ordering};

use libtest_mimic::{Arguments, Failed, Trial as Test};
use list::{BUGS, Bug};
use lockstorm::{
    judge::{checker, verdict::Match},
    run::Engine,
    run::runner::{Judged, Runner, Stop},
};

/// The number of seeds within which a broken lock must be caught.
const SEEDS: u64 = 1_000;

/// The number of seeds on which the right lock must meet the same expectation.
const SEEDS_OF_THE_RIGHT_ONE: u64 = 25;

impl Bug {
    fn judge(&self, is_broken: bool, case: &str, seeds: u64) -> Vec<Judged> {
        let sources = [self.source(is_broken, case)];
        let trial =
            Runner::new(&sources).seeds(Some(0..seeds)).engine(Engine::Event).stop(Stop::AtUnexpected);
        trial.run(&|_| {})
    }

    /// The first seed that reveals the mistake; an error if the right one fails, or no seed reveals
    /// it.
    fn caught(&self, case: &str) -> Result<u64, Failed> {
        for one in self.judge(false, case, SEEDS_OF_THE_RIGHT_ONE) {
            if one.verdict() != Match::AsExpected {
                let seed = one.case.seed;
                return Err(format!("the right one fails it too, with seed {seed}: {:?}", one.matches).into());
            }
        }
        let broken = self.judge(true, case, SEEDS);
        let last = broken.iter().find(|one| matches!(one.verdict(), Match::Otherwise(_)));
        last.map(|one| one.case.seed)
            .ok_or_else(|| format!("{SEEDS} seeds did not give it away ({})", self.expect).into())
    }
}

fn main() {
    static TRIED: AtomicUsize = AtomicUsize::new(0);
    static CAUGHT: AtomicUsize = AtomicUsize::new(0);
    let arguments = Arguments::from_args();
    if let Ok(budget) = std::env::var("LOCKSTORM_RULER") {
        table::print(budget.parse().expect("a number of runs"), arguments.filter.as_deref());
        return;
    }
    let tests = BUGS.iter().map(|(bug, case)| {
        let (name, checker) = (bug.broken.name(), bug.checker());
        Test::test(format!("{name} is caught by {checker}"), move || {
            TRIED.fetch_add(1, Ordering::Relaxed);
            let seed = bug.caught(case)?;
            println!("{name}: seed {seed}");
            CAUGHT.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
    });
    let every = Test::test("every checker has something broken to catch", || {
        let deaf = |name: &&str| !BUGS.iter().any(|(bug, _)| bug.checker() == *name);
        let deaf: Vec<&str> = checker::LIST.iter().map(|checker| checker.name).filter(deaf).collect();
        if deaf.is_empty() { Ok(()) } else { Err(format!("nothing is there for {deaf:?} to catch").into()) }
    });
    let tests: Vec<Test> = tests.chain([every]).chain(hunted::tests()).collect();
    let conclusion = libtest_mimic::run(&arguments, tests);
    if !arguments.list {
        let tried = TRIED.load(Ordering::Relaxed);
        println!("mutation score: {} of {tried} mistakes caught", CAUGHT.load(Ordering::Relaxed));
    }
    conclusion.exit();
}
