//! The events at which a fault can begin, instead of a time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    file::{name::Name, selector::Hosts},
    units::{Draw, Span},
};

/// Something that a fault waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trigger {
    /// The client it happens to; any if left out.
    #[serde(default)]
    pub client: Option<Hosts>,
    /// The lock it happens with; any if left out.
    #[serde(default)]
    pub of: Option<Name>,
    /// What happens.
    pub event: Happening,
    /// The first time it counts, from 1.
    #[serde(default = "first")]
    pub nth: u64,
    /// Whether it counts every time from then on.
    #[serde(default)]
    pub always: bool,
    /// How long after it the fault begins.
    #[serde(default)]
    pub delay: Draw<Span>,
}

fn first() -> u64 {
    1
}

/// What a fault can wait for.
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
    /// A client asks to give the lock back.
    Releasing,
    /// A client learns that the lock is released.
    Released,
    /// A client learns that its lock is lost.
    Lost,
    /// A client's watchdog has renewed the lease.
    Renewed,
}
