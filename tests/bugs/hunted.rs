//! Mistakes that a hunt finds within a number of runs, with no fault of a scenario's own; and the
//! same hunt for the right lock, to the end, finds nothing.
//!
//! A hunt plays one run without faults, and places each fault a nanosecond before and after each
//! event, in two or three sizes. So a scenario with some 50 instants has some hundred placements of
//! one kind on all hosts, and the decisive one is among them wherever it lies. A bound is about
//! twice the number of runs that the hunt needed when it was written, so that a client with other
//! messages does not fail the test.

use libtest_mimic::{Failed, Trial as Test};
use lockstorm::{
    file::scenario::HuntedKind,
    run::hunt::{End, Hunted},
};

use crate::{
    list::{BUGS, Bug},
    ruler::Ruled,
    subtle::SUBTLE,
};

/// A mistake that a hunt must find.
struct Hunt {
    /// The name of the mistake and its checker.
    mistake: (&'static str, &'static str),
    kinds: &'static [HuntedKind],
    /// The most runs.
    within: u64,
}

/// The most runs for all placements with the right lock.
const RUNS_OF_THE_RIGHT_ONE: u64 = 2_000;

const HUNTS: &[Hunt] = &[
    // The client stops before its release.
    hunt("del-without-token", "owner-safety", &[HuntedKind::Pause], 50),
    // The client is gone between SET and PEXPIRE.
    hunt("grant-in-two-steps", "progress", &[HuntedKind::Crash], 60),
    // The client stops between GET and DEL.
    hunt("release-in-two-steps", "owner-safety", &[HuntedKind::Pause], 50),
    // The command that makes the token is late.
    hunt("fence-taken-separately", "l4", &[HuntedKind::Cut], 150),
    // The reply to a release is late.
    hunt("release-resent", "reentrancy", &[HuntedKind::Cut], 350),
];

const fn hunt(name: &'static str, checker: &'static str, kinds: &'static [HuntedKind], within: u64) -> Hunt {
    Hunt { mistake: (name, checker), kinds, within }
}

pub(crate) fn tests() -> impl Iterator<Item = Test> {
    HUNTS.iter().map(|hunt| {
        let ((name, checker), within) = (hunt.mistake, hunt.within);
        Test::test(format!("a hunt finds {name} by {checker} within {within} runs"), || hunt.test())
    })
}

impl Hunt {
    fn test(&self) -> Result<(), Failed> {
        let is_meant = |(bug, _): &&(Bug, &str)| (bug.broken.name(), bug.checker()) == self.mistake;
        let (bug, case) = BUGS.iter().chain(SUBTLE).find(is_meant).ok_or("no such mistake")?;
        let mut ruled = Ruled::of(bug, case).ok_or("it shows without a fault")?.among(self.kinds);
        let hunted = ruled.hunt(self.within, 1);
        if ruled.kinds() != self.kinds {
            return Err("the right one does not withstand the faults".into());
        }
        if hunted.found().is_none_or(|found| found.placed.len() != 1) {
            return Err(format!("no fault reveals it: {}", hunted.sentence()).into());
        }
        println!("{}: {} of {} runs", self.mistake.0, hunted.runs, self.within);
        excludes(&ruled.hunt_the_right_one(RUNS_OF_THE_RIGHT_ONE, 1))
    }
}

/// Returns an error if the hunt did not try everything, or found something.
fn excludes(hunted: &Hunted) -> Result<(), Failed> {
    match hunted.end {
        End::HoldsWithin if hunted.untested.is_empty() => Ok(()),
        _ => Err(format!("the right one: {}, untested {:?}", hunted.sentence(), hunted.untested).into()),
    }
}
