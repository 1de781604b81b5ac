//! The faults: one file each. A fault names its targets and is composed of the world's verbs; it
//! adds none.
//!
//! To add a fault, write `fault/<name>.rs` with its parameters, its [`Effect`] and its `ABOUT`, and
//! add its line to `faults!`. The scenario format, `lockstorm list faults` and the schema follow.

mod clock_freeze;
mod clock_rate;
mod clock_slew;
mod clock_step;
mod command;
mod crash;
mod cut;
mod delay;
mod disk_fails;
mod disk_full;
mod drop_connection;
mod failover;
mod follow;
mod lose_disk;
mod lose_reply;
mod loss;
mod matching;
mod move_address;
mod pause;
mod promote;
mod reset;
mod reshard;
mod restart;
mod slow;
mod suspend;
mod trigger;

use std::{collections::BTreeSet, time::Duration};

use lockstorm_sim::{
    event::DiskFault,
    world::{Condition, Verb},
};

use crate::{
    file::{one_of::one_of, selector::Hosts},
    units::{Draw, Span},
};

pub use failover::How;
pub use matching::Matching;
pub use reshard::Moved;
pub use trigger::{Happening, Trigger};

/// One thing a fault does.
#[derive(Debug, Clone, PartialEq)]
pub enum FaultAction {
    /// A condition of the world, which is in force until the fault ends. Where faults overlap, each
    /// keeps up its own.
    For(Condition),
    /// A verb of the world, which nothing undoes.
    World(Verb),
    /// What a node or Sentinel has on its disk is gone when it starts again.
    LoseDisk {
        /// The node or Sentinel.
        host: String,
    },
    /// The disk of a node takes nothing until the fault ends.
    Disk {
        /// The node.
        node: String,
        /// Why.
        fault: DiskFault,
    },
    /// A command given to a node at its own console, with no network in between, as an operator or
    /// a sentinel would.
    Console {
        /// The node.
        node: String,
        /// Name and arguments.
        command: Vec<String>,
    },
    /// An address leads to another node.
    MoveAddress {
        /// The address.
        address: String,
        /// The node.
        to: String,
        /// Whether connections to the node that it led to are reset, of the clients that know the
        /// address.
        reset: bool,
    },
    /// An operator begins to move slots of a cluster.
    Reshard {
        /// Which.
        moved: Moved,
        /// To which master.
        to: String,
        /// How long after each of its parts the next one begins.
        step: Duration,
    },
}

impl FaultAction {
    /// Whether a node answers otherwise from then on, until it is told otherwise again.
    pub(crate) fn reconfigures(&self) -> bool {
        let name = match self {
            FaultAction::Console { command, .. } => command.first(),
            _ => None,
        };
        name.is_some_and(|name| command::RECONFIGURING.iter().any(|known| name.eq_ignore_ascii_case(known)))
    }
}

/// The hosts a fault is about, once its selectors have been resolved: one list for each of
/// [`Effect::hosts`], in its order.
pub type Targets<'a> = &'a [Vec<String>];

/// What a kind of fault does.
pub trait Effect {
    /// The selectors of the hosts it is about.
    fn hosts(&self) -> Vec<&Hosts>;
    /// Draws each range among its parameters, by a fraction from 0 to 1 each.
    fn draw(&mut self, _fraction: &mut dyn FnMut() -> f64) {}
    /// What it does when it begins. Whatever of it lasts is over when the fault ends.
    fn actions(&self, targets: Targets<'_>) -> Vec<FaultAction>;
    /// Whether it means nothing to hosts other than nodes.
    fn is_of_nodes(&self) -> bool {
        false
    }
    /// Whether it is in force until it is undone, rather than done at once.
    fn lasts(&self) -> bool {
        false
    }
    /// What it does, in plain words, for the timeline and the witness.
    fn words(&self, targets: Targets<'_>) -> String;
}

/// Declares the faults: their types, their list, and the keys of [`Fault`].
macro_rules! faults {
    ($($name:ident: $Type:ident,)+) => {
        $(pub use $name::$Type;)+

        /// Name and one line about each fault, for `lockstorm list faults`.
        pub const LIST: &[(&str, &str)] = &[$((stringify!($name), $name::ABOUT),)+];

        one_of! {
            /// What goes wrong, when, and for how long: `[fault.some-name]`. Exactly one of the
            /// kinds is given.
            #[expect(missing_docs, reason = "each kind is documented at its type")]
            pub struct Fault {
                /// When, after the start; when `on` says if left out.
                pub at: Option<Draw<Span>>,
                /// When an event has happened, instead of a time; when `at` says if left out.
                pub on: Option<Trigger>,
                /// After how long it is undone, of kinds that can be; never if left out.
                #[serde(rename = "for")]
                pub length: Option<Draw<Span>>,
                /// How long after one occurrence begins the next one does; only once if left out.
                pub every: Option<Draw<Span>>,
                /// No further occurrence begins after this; at the end of the storm if left out.
                pub until: Option<Span>,
                /// Leave it out; for variants.
                pub off: bool,
            }

            /// A kind of fault.
            #[expect(missing_docs, reason = "each kind is documented at its type")]
            pub enum FaultKind: Effect { $($name: $Type,)+ }
        }
    };
}

faults! {
    clock_freeze: ClockFreeze,
    clock_rate: ClockRate,
    clock_slew: ClockSlew,
    clock_step: ClockStep,
    command: Command,
    crash: Crash,
    cut: Cut,
    delay: Delay,
    disk_fails: DiskFails,
    disk_full: DiskFull,
    drop_connection: DropConnection,
    failover: Failover,
    follow: Follow,
    lose_disk: LoseDisk,
    lose_reply: LoseReply,
    loss: Loss,
    move_address: MoveAddress,
    pause: Pause,
    promote: Promote,
    reset: Reset,
    reshard: Reshard,
    restart: Restart,
    slow: Slow,
    suspend: Suspend,
}

impl FaultKind {
    /// Whether something of it ends after `for`, rather than that all of it is done at once. No
    /// host has to be known for that.
    pub(crate) fn can_end(&self) -> bool {
        let hosts: Vec<Vec<String>> =
            (0..self.hosts().len()).map(|number| vec![number.to_string()]).collect();
        self.actions(&hosts)
            .iter()
            .any(|action| matches!(action, FaultAction::For(_) | FaultAction::Disk { .. }))
    }
}

/// One action for each host.
fn each<A: Into<FaultAction>>(hosts: &[String], action: impl Fn(String) -> A) -> Vec<FaultAction> {
    hosts.iter().map(|host| action(host.clone()).into()).collect()
}

impl From<Condition> for FaultAction {
    fn from(condition: Condition) -> FaultAction {
        FaultAction::For(condition)
    }
}

impl From<Verb> for FaultAction {
    fn from(verb: Verb) -> FaultAction {
        FaultAction::World(verb)
    }
}

/// One condition for each ordered pair of different hosts.
fn each_way(
    from: &[String],
    to: &[String],
    both: bool,
    condition: impl Fn(String, String) -> Condition,
) -> Vec<FaultAction> {
    let mut pairs = BTreeSet::new();
    for from in from {
        for to in to.iter().filter(|to| *to != from) {
            pairs.insert((from.clone(), to.clone()));
            if both {
                pairs.insert((to.clone(), from.clone()));
            }
        }
    }
    pairs.into_iter().map(|(from, to)| FaultAction::For(condition(from, to))).collect()
}

/// The hosts with what they do, of one and of several.
fn does(hosts: &[String], one: &str, several: &str) -> String {
    format!("{} {}", list(hosts), if hosts.len() > 1 { several } else { one })
}

fn list(hosts: &[String]) -> String {
    match hosts {
        [] => "nobody".to_owned(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}
