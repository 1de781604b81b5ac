//! The faults: one file each. A fault says whom it is about and composes the world's verbs; it adds none of its own.
//!
//! To add a fault, write `fault/<name>.rs` with its parameters and its [`Kind`], add a field to [`Fault`] and a line to
//! [`LIST`]. The scenario format, `lockstorm list faults` and the schema follow.

mod clock_freeze;
mod clock_rate;
mod clock_slew;
mod clock_step;
mod command;
mod crash;
mod cut;
mod delay;
mod drop_connection;
mod follow;
mod lose_reply;
mod loss;
mod matching;
mod pause;
mod promote;
mod reset;
mod restart;
mod slow;
mod suspend;
mod trigger;

use std::collections::BTreeSet;

use lockstorm_sim::world::{Condition, Verb};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    selector::Hosts,
    units::{Draw, Span},
};

pub use clock_freeze::ClockFreeze;
pub use clock_rate::ClockRate;
pub use clock_slew::ClockSlew;
pub use clock_step::ClockStep;
pub use command::Command;
pub use crash::Crash;
pub use cut::Cut;
pub use delay::Delay;
pub use drop_connection::DropConnection;
pub use follow::Follow;
pub use lose_reply::LoseReply;
pub use loss::Loss;
pub use matching::Matching;
pub use pause::Pause;
pub use promote::Promote;
pub use reset::Reset;
pub use restart::Restart;
pub use slow::Slow;
pub use suspend::Suspend;
pub use trigger::{Happening, Trigger};

/// One thing a fault does.
#[derive(Debug, Clone, PartialEq)]
pub enum Deed {
    /// A condition of the world, which is in force until the fault ends. Where faults overlap, each keeps up its own.
    For(Condition),
    /// A verb of the world, which nothing undoes.
    World(Verb),
    /// A command given to a node at its own console, with no network in between, as an operator or a sentinel would.
    Console {
        /// The node.
        node: String,
        /// Name and arguments.
        command: Vec<String>,
    },
}

/// The hosts a fault is about, once its selectors have been resolved: one list for each of [`Kind::hosts`], in its order.
pub type Targets<'a> = &'a [Vec<String>];

/// A kind of fault.
pub trait Kind {
    /// The selectors of the hosts it is about.
    fn hosts(&self) -> Vec<&Hosts>;
    /// Draws each range among its parameters, by a fraction from 0 to 1 each.
    fn draw(&mut self, _fraction: &mut dyn FnMut() -> f64) {}
    /// What it does when it begins. Whatever of it lasts is over when the fault ends.
    fn deeds(&self, targets: Targets<'_>) -> Vec<Deed>;
    /// Whether it is in force until it is undone, rather than done at once.
    fn lasts(&self) -> bool {
        false
    }
    /// What it does, in plain words, for the timeline and the witness.
    fn words(&self, targets: Targets<'_>) -> String;
}

/// What goes wrong, when, and for how long: `[fault.some-name]`. Exactly one of the kinds is given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[expect(missing_docs, reason = "each field is documented at its type")]
pub struct Fault {
    /// When, after the start.
    pub at: Option<Draw<Span>>,
    /// When something has happened, instead of a time.
    pub on: Option<Trigger>,
    /// After how long it is undone, where it can be; never if left out.
    #[serde(rename = "for")]
    pub length: Option<Draw<Span>>,
    /// How long after one occurrence begins the next one does; only once if left out.
    pub every: Option<Draw<Span>>,
    /// No further occurrence begins after this; at the end of the storm if left out.
    pub until: Option<Span>,
    /// Leave it out; for variants.
    pub off: bool,
    pub clock_freeze: Option<ClockFreeze>,
    pub clock_rate: Option<ClockRate>,
    pub clock_slew: Option<ClockSlew>,
    pub clock_step: Option<ClockStep>,
    pub command: Option<Command>,
    pub crash: Option<Crash>,
    pub cut: Option<Cut>,
    pub delay: Option<Delay>,
    pub drop_connection: Option<DropConnection>,
    pub follow: Option<Follow>,
    pub lose_reply: Option<LoseReply>,
    pub loss: Option<Loss>,
    pub pause: Option<Pause>,
    pub promote: Option<Promote>,
    pub reset: Option<Reset>,
    pub restart: Option<Restart>,
    pub slow: Option<Slow>,
    pub suspend: Option<Suspend>,
}

/// Name and one line about each fault, for `lockstorm list faults`.
pub const LIST: &[(&str, &str)] = &[
    ("clock_freeze", clock_freeze::ABOUT),
    ("clock_rate", clock_rate::ABOUT),
    ("clock_slew", clock_slew::ABOUT),
    ("clock_step", clock_step::ABOUT),
    ("command", command::ABOUT),
    ("crash", crash::ABOUT),
    ("cut", cut::ABOUT),
    ("delay", delay::ABOUT),
    ("drop_connection", drop_connection::ABOUT),
    ("follow", follow::ABOUT),
    ("lose_reply", lose_reply::ABOUT),
    ("loss", loss::ABOUT),
    ("pause", pause::ABOUT),
    ("promote", promote::ABOUT),
    ("reset", reset::ABOUT),
    ("restart", restart::ABOUT),
    ("slow", slow::ABOUT),
    ("suspend", suspend::ABOUT),
];

/// What is done with each kind, whichever is given.
macro_rules! kinds {
    ($($kind:ident)*) => {
        /// The faults that are given; a valid entry has exactly one.
        pub fn kinds(&self) -> Vec<&dyn Kind> {
            [$(self.$kind.as_ref().map(|kind| kind as &dyn Kind)),*].into_iter().flatten().collect()
        }

        /// The same fault with every range among its parameters drawn, by a fraction from 0 to 1 each.
        #[must_use]
        pub fn drawn(&self, fraction: &mut dyn FnMut() -> f64) -> Fault {
            let mut fault = self.clone();
            $(fault.$kind.iter_mut().for_each(|kind| kind.draw(fraction));)*
            fault
        }
    };
}

impl Fault {
    kinds! {
        clock_freeze clock_rate clock_slew clock_step command crash cut delay drop_connection follow lose_reply loss pause
        promote reset restart slow suspend
    }
}

/// One deed for each host.
fn each<D: Into<Deed>>(hosts: &[String], deed: impl Fn(String) -> D) -> Vec<Deed> {
    hosts.iter().map(|host| deed(host.clone()).into()).collect()
}

impl From<Condition> for Deed {
    fn from(condition: Condition) -> Deed {
        Deed::For(condition)
    }
}

impl From<Verb> for Deed {
    fn from(verb: Verb) -> Deed {
        Deed::World(verb)
    }
}

/// One condition for each ordered pair of different hosts.
fn each_way(
    from: &[String],
    to: &[String],
    both: bool,
    condition: impl Fn(String, String) -> Condition,
) -> Vec<Deed> {
    let mut pairs = BTreeSet::new();
    for from in from {
        for to in to.iter().filter(|to| *to != from) {
            pairs.insert((from.clone(), to.clone()));
            if both {
                pairs.insert((to.clone(), from.clone()));
            }
        }
    }
    pairs.into_iter().map(|(from, to)| Deed::For(condition(from, to))).collect()
}

fn list(hosts: &[String]) -> String {
    match hosts {
        [] => "nobody".to_owned(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}
