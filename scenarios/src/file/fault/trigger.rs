//! The events at which a fault can begin, instead of at a time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    file::{name::Name, selector::Hosts},
    units::{Draw, Span},
};

/// An event at which the fault begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trigger {
    /// The client of the event. Default: any.
    #[serde(default)]
    pub client: Option<Hosts>,
    /// The lock of the event. Default: any.
    #[serde(default)]
    pub of: Option<Name>,
    /// The kind of event, such as `acquired` or `renewed`.
    pub event: Happening,
    /// The first event that counts, from 1. Default: the first.
    #[serde(default = "first")]
    pub nth: u64,
    /// True if every later event counts as well. Default: only one.
    #[serde(default)]
    pub always: bool,
    /// The time from the event to the start of the fault.
    #[serde(default)]
    pub delay: Draw<Span>,
}

fn first() -> u64 {
    1
}

impl Trigger {
    /// Returns a key whose value means nothing, and the reason.
    pub(crate) fn wrong(&self) -> Option<(&'static str, &'static str)> {
        if self.event == Happening::Promoted {
            let why = "a node is promoted, not a client or a lock: leave this key out";
            let of_client = [("client", self.client.is_some()), ("of", self.of.is_some())];
            if let Some((key, _)) = of_client.into_iter().find(|(_, is_named)| *is_named) {
                return Some((key, why));
            }
        }
        (self.nth == 0).then_some(("nth", "the first time is nth = 1"))
    }
}

/// An event that can start a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Happening {
    /// A client begins to ask for the lock.
    Asked,
    /// A client learns that it has the lock.
    Acquired,
    /// A client learns that it does not get the lock.
    Refused,
    /// A client begins to wait.
    Waiting,
    /// A client asks to release the lock.
    Releasing,
    /// A client learns that the lock is released.
    Released,
    /// A client learns that its lock is lost.
    Lost,
    /// A client's watchdog has renewed the lease.
    Renewed,
    /// A node becomes a master: an operator, a Sentinel or its cluster has promoted it. It is no
    /// event of a client or a lock.
    Promoted,
}
