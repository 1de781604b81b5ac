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
}
