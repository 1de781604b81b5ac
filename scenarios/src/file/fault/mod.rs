//! The faults, one file each. A fault names its targets and is composed of the world's verbs and
//! conditions; it adds none.
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

use lockstorm_sim::event::DiskFault;
use lockstorm_world::{Condition, Verb};

use crate::{
    file::{one_of::one_of, selector::Hosts},
    units::{Draw, Span},
};

pub use failover::How;
pub use matching::Matching;
pub use reshard::Moved;
pub use trigger::{Happening, Trigger};

/// One action of a fault, with its hosts resolved to names.
#[derive(Debug, Clone, PartialEq)]
pub enum FaultAction {
    /// A condition of the world, in force until the fault ends. If two faults cause the same
    /// condition, it lasts until both have ended.
    For(Condition),
    /// A verb of the world that nothing undoes, such as the reset of a connection.
    World(Verb),
    /// A node or Sentinel loses its disk: it starts without the data.
    LoseDisk {
        /// The name of the node or Sentinel.
        host: String,
    },
    /// The disk of a node refuses all writes until the fault ends.
    Disk {
        /// The name of the node whose disk it is.
        node: String,
        /// The error that the writes fail with.
        fault: DiskFault,
    },
    /// A command given at a node's own console, without a network, as by an operator or a Sentinel.
    Console {
        /// The name of the node at whose console the command runs.
        node: String,
        /// The name of the command and its arguments.
        command: Vec<String>,
    },
    /// An address leads to another node from now on, or nowhere.
    MoveAddress {
        /// The name of the address in the file: `[address.NAME]`.
        address: String,
        /// The name of the node to which the address leads from now on; `None` for nowhere.
        to: Option<String>,
        /// True if connections between the old node and the clients that know the address are
        /// reset.
        reset: bool,
    },
    /// An operator begins to move slots of a cluster.
    Reshard {
        /// The slots to move, or the lock whose slot to move.
        moved: Moved,
        /// The name of the master that gets the slots.
        to: String,
        /// The delay from the start of each of the three parts to the start of the next.
        step: Duration,
        /// True if the old master moves the slots by itself.
        atomic: bool,
    },
}

impl FaultAction {
    /// Returns true for a command after which the node may answer differently, until another
    /// command changes it back.
    pub(crate) fn reconfigures(&self) -> bool {
        let name = match self {
            FaultAction::Console { command, .. } => command.first(),
            _ => None,
        };
        name.is_some_and(|name| command::RECONFIGURING.iter().any(|known| name.eq_ignore_ascii_case(known)))
    }
}

/// The hosts of a fault after its selectors are resolved: one list for each of [`Effect::hosts`],
/// in its order.
pub type Targets<'a> = &'a [Vec<String>];

/// The behaviour of a kind of fault.
pub trait Effect {
    /// Returns the selectors of its targets.
    fn hosts(&self) -> Vec<&Hosts>;
    /// Draws a value from each of its ranges. Each call of the argument returns a fraction from 0
    /// to 1.
    fn draw(&mut self, _fraction: &mut dyn FnMut() -> f64) {}
    /// Returns the actions with which it begins. Lasting ones are undone when the fault ends.
    fn actions(&self, targets: Targets<'_>) -> Vec<FaultAction>;
    /// Returns true if its targets must be nodes.
    fn is_of_nodes(&self) -> bool {
        false
    }
    /// Returns true if it is in force until it is undone, false if it is a matter of a moment.
    fn lasts(&self) -> bool {
        false
    }
    /// Describes it in plain words, for the timeline and the witness.
    fn words(&self, targets: Targets<'_>) -> String;
}

/// Declares the faults: their types, their list, and the keys of [`Fault`].
macro_rules! faults {
    ($($name:ident: $Type:ident,)+) => {
        $(pub use $name::$Type;)+

        /// The name of each fault and a line about it, for `lockstorm list faults`.
        pub const LIST: &[(&str, &str)] = &[$((stringify!($name), $name::ABOUT),)+];

        one_of! {
            /// A fault, with its start and its length: `[fault.some-name]`. Exactly one kind is
            /// given.
            #[expect(missing_docs, reason = "each kind is documented at its type")]
            pub struct Fault {
                /// The time after the start of the run at which it begins, in the storm or in the
                /// calm. Default: the event of `on`.
                pub at: Option<Draw<Span>>,
                /// The event at which it begins, instead of a time. Default: the time of `at`.
                pub on: Option<Trigger>,
                /// The time after which it is undone, for kinds that can be undone; the end of the
                /// storm undoes it if that is earlier. Default: never.
                #[serde(rename = "for")]
                pub length: Option<Draw<Span>>,
                /// The time from the start of an occurrence to the start of the next. Default: it
                /// occurs once.
                pub every: Option<Draw<Span>>,
                /// The time after the start of the run from which no further occurrence begins.
                /// Default: the end of the storm.
                pub until: Option<Span>,
                /// Leave the fault out; for variants.
                pub off: bool,
            }

            /// A fault without its start and length: its kind, with the parameters of that kind.
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
    /// Returns true if a part of it can be undone, so that `for` applies. The placeholder targets
    /// suffice, because no kind decides this by its hosts.
    pub(crate) fn can_end(&self) -> bool {
        let hosts: Vec<Vec<String>> =
            (0..self.hosts().len()).map(|number| vec![number.to_string()]).collect();
        self.actions(&hosts)
            .iter()
            .any(|action| matches!(action, FaultAction::For(_) | FaultAction::Disk { .. }))
    }
}

/// Makes one action for each host.
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

/// Makes one condition for each ordered pair of different hosts.
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

/// Joins the hosts with a verb, in the singular or the plural.
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
