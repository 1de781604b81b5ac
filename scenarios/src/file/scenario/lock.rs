//! The locks on trial, their implementations, and the resource that they guard.

use std::{borrow::Cow, ops::Deref, rc::Rc, time::Duration};

use indexmap::IndexMap;
use lockstorm_client::limits as client;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use super::{
    Subject,
    limits::{self, Wrong},
    traits::{Grant, OtherTraits, Traits},
};
pub use crate::judge::{history::Fence, object::LockKind};
use crate::{
    file::name::Name,
    judge::object::{Amount, Object},
    units::{Span, millis},
};

/// The locks on trial, by name, in the order in which a workload takes them.
///
/// A file with one lock has a table `[lock]`, and the lock is called `lock`. A file with several
/// locks has a table for each, such as `[lock.stock]` and `[lock.cash]`; the keys of `[lock]`
/// itself apply to all of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Locks(IndexMap<String, Lock>);

/// The name of the only lock of a file.
pub(super) const ONLY: &str = "lock";

/// The keys of `[lock]` whose values are tables but not locks.
pub(super) const OWN_TABLES: &[&str] = &["traits"];

impl Locks {
    /// Returns the key of each lock in Redis, in order.
    pub fn keys_in_redis(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, lock)| lock.name.as_deref().unwrap_or(name))
    }

    /// Adds a lock. The first one replaces the default lock that every scenario has.
    pub fn add(&mut self, name: impl Into<String>, lock: Lock) {
        if *self == Locks::default() {
            self.0.clear();
        }
        self.0.insert(name.into(), lock);
    }

    /// Iterates over the locks mutably.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Lock> {
        self.0.values_mut()
    }
}

impl Default for Locks {
    fn default() -> Locks {
        Locks::from(Lock::default())
    }
}

impl From<Lock> for Locks {
    fn from(lock: Lock) -> Locks {
        Locks(IndexMap::from([(ONLY.to_owned(), lock)]))
    }
}

impl Deref for Locks {
    type Target = IndexMap<String, Lock>;
    fn deref(&self) -> &IndexMap<String, Lock> {
        &self.0
    }
}

/// The schema of the table in a file: the settings of a lock, and beside them a table for each
/// lock.
impl JsonSchema for Locks {
    fn schema_name() -> Cow<'static, str> {
        "Locks".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let named = generator.subschema_for::<Lock>();
        let mut schema = Lock::json_schema(generator);
        schema.insert("additionalProperties".to_owned(), named.to_value());
        let about = "The lock on trial; or, of several, what they have in common, with a table for each: [lock.stock].";
        schema.insert("description".to_owned(), about.into());
        schema
    }
}

/// A lock on trial: `[lock]`; or `[lock.stock]`, one of several, whose common settings are in
/// `[lock]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Lock {
    /// Its key in Redis. Default: its name in the file.
    pub name: Option<String>,
    /// The kind of lock, as in the client.
    pub kind: LockKind,
    /// The implementation of the lock: the production client, or a model of another algorithm
    /// (`lockstorm list subjects`).
    pub subject: Subject,
    /// Differences of the subject from its usual behaviour, such as `{ release = "delete" }`
    /// (`lockstorm list traits`).
    pub traits: OtherTraits,
    /// The nodes that the lock lives on: one master for a plain lock (its replicas follow by
    /// themselves), several masters for a Redlock. Default: all masters.
    pub nodes: Option<Vec<Name>>,
    /// The lease of every acquisition that names none. Default: the lease of the watchdog, which
    /// renews it.
    pub lease: Option<Span>,
    /// The lease that the watchdog keeps renewing.
    pub watchdog: Span,
    /// The time that a client waits for a reply. Default: 3 s; for a peer of a trial, the default
    /// of its library.
    pub response_timeout: Option<Span>,
    /// The time that a Redlock waits for one node. Default: 50 ms.
    pub node_timeout: Option<Span>,
    /// The longest random delay between two attempts of a Redlock. Default: 200 ms.
    pub retry_delay: Option<Span>,
    /// The replicas that must acknowledge an acquisition (WAIT).
    pub sync: Sync,
    /// The time to wait for their acknowledgement. Default: 1 s. Models always wait for 100 ms.
    pub sync_timeout: Option<Span>,
    /// The disks that must have an acquisition (WAITAOF), for the production client. Their nodes
    /// need an append-only file (`node.durability`). A model has the trait `synced`.
    pub synced: Synced,
    /// The time to wait for the disks. Default: 3 s.
    pub synced_timeout: Option<Span>,
    /// The time that a queued waiter of a fair lock may be silent before it loses its place.
    /// Default: 5 min.
    pub fair_wait: Option<Span>,
    /// The number of permits of a semaphore, or of each window of a rate limiter. Default: one.
    pub permits: Option<u32>,
    /// The number of count-downs that open a latch after it is set. Default: one.
    pub count: Option<u32>,
    /// The window of a rate limiter, the time to which its number of permits applies. Default: one
    /// second.
    pub window: Option<Span>,
    /// True if the permits of a rate limiter apply to each client, and not to all clients together.
    /// A restarted client counts as another client.
    pub per_client: bool,
    /// The time after a lease that ended without a release in which no other owner is granted the
    /// lock, for a model with the trait `grant = "after-delay"`. Default: none.
    pub delay: Option<Span>,
    /// The time for which the script of an acquisition keeps the node busy (DEBUG SLEEP) before it
    /// looks at the lock, for a model with the trait `grant = "after-work"`. Default: none.
    pub script_time: Option<Span>,
}

impl Default for Lock {
    fn default() -> Lock {
        Lock {
            name: None,
            kind: LockKind::Plain,
            subject: Subject::default(),
            traits: OtherTraits::default(),
            nodes: None,
            lease: None,
            watchdog: Span::secs(30),
            response_timeout: None,
            node_timeout: None,
            retry_delay: None,
            sync: Sync::None,
            sync_timeout: None,
            synced: Synced::None,
            synced_timeout: None,
            fair_wait: None,
            permits: None,
            count: None,
            window: None,
            per_client: false,
            delay: None,
            script_time: None,
        }
    }
}

/// The shortest window of a rate limiter, from the limits of the production client.
const WINDOW_MIN: Span = Span(client::RATE_INTERVAL.least);

impl Lock {
    /// Checks that each key is valid for this kind of lock, and that its value is possible.
    pub(super) fn check(&self) -> Result<(), Wrong> {
        limits::lease("lease", self.lease, self)?;
        let wrong = |key, message: &str| Err(Wrong::at(key, message));
        if self.permits.is_some() && !self.kind.has_permits() {
            let message = "only a semaphore or a rate limiter has permits: lock.kind = \"semaphore\"";
            return wrong("permits", message);
        }
        if self.permits == Some(0) {
            return wrong("permits", "no client could ever get a permit");
        }
        if self.window.is_some() && !self.kind.is_rate() {
            return wrong("window", "only a rate limiter has a window: lock.kind = \"rate\"");
        }
        if self.window.is_some_and(|window| window < WINDOW_MIN) {
            return wrong("window", &format!("a window must be at least {WINDOW_MIN} long"));
        }
        if self.per_client && !self.kind.is_rate() {
            return wrong("per_client", "only a rate limiter counts by client: lock.kind = \"rate\"");
        }
        if limits::are_of_client(self) {
            limits::length("watchdog", &client::WATCHDOG_TIMEOUT, Some(self.watchdog))?;
            limits::length("response_timeout", &client::RESPONSE_TIMEOUT, self.response_timeout)?;
            limits::length("window", &client::RATE_INTERVAL, self.window)?;
            limits::number("permits", &client::RATE, self.permits.filter(|_| self.kind.is_rate()))?;
            if self.name.as_ref().is_some_and(|name| !client::NAME_LENGTH.takes(name.len())) {
                return wrong("name", "the client takes no lock without a name");
            }
        } else {
            limits::lease("watchdog", Some(self.watchdog), self)?;
        }
        if self.count == Some(0) {
            return wrong("count", "a latch with a count of zero is open already");
        }
        if self.count.is_some() && !self.kind.is_latch() {
            return wrong("count", "only a latch has a count: lock.kind = \"latch\"");
        }
        if self.sync != Sync::None && self.kind == LockKind::Redlock {
            let message = "a Redlock counts on its masters alone, and asks no replica to confirm: only the other kinds have sync";
            return wrong("sync", message);
        }
        if self.synced != Synced::None && self.kind == LockKind::Redlock {
            return wrong("synced", "a Redlock waits for no disk: only the other kinds have synced");
        }
        if self.synced != Synced::None && !limits::are_of_client(self) {
            let message = "only the production client has synced; a model has lock.traits.synced = true";
            return wrong("synced", message);
        }
        if self.delay.is_some() && self.all_traits().grant != Grant::AfterDelay {
            let message =
                "only a model with the trait grant = \"after-delay\" has a delay: lock.traits.grant";
            return wrong("delay", message);
        }
        if self.script_time.is_some() && self.all_traits().grant != Grant::AfterWork {
            let message =
                "only a model with the trait grant = \"after-work\" works in its script: lock.traits.grant";
            return wrong("script_time", message);
        }
        Ok(())
    }

    /// Returns the traits of the subject, overridden by those of the lock.
    pub(crate) fn all_traits(&self) -> Traits {
        self.subject.traits.with(&self.traits)
    }

    /// Returns true for a rate limiter that keeps the grants of each client in a separate key.
    pub(crate) fn is_counted_apart(&self) -> bool {
        self.kind.is_rate() && self.all_traits().counted.is_apart(self.per_client)
    }

    /// Returns true if the lock is acquired and released by an owner, false for latches and rate
    /// limiters, which are counted.
    pub(crate) fn has_owners(&self) -> bool {
        !self.kind.is_latch() && !self.kind.is_rate()
    }

    /// Returns the adapter of the lock's kind.
    pub(crate) fn object(&self) -> Rc<dyn Object> {
        let number = self.permits.or(self.count).unwrap_or(1);
        let (window_ms, per_client) = (millis(self.window()), self.per_client);
        self.kind.object(Amount { number, window_ms, per_client })
    }

    /// Returns the window of a rate limiter.
    pub(crate) fn window(&self) -> Duration {
        self.window.map_or(Duration::from_secs(1), |Span(window)| window)
    }
}

/// The replicas that must acknowledge an acquisition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sync {
    /// None: replication is asynchronous.
    #[default]
    None,
    /// One, if the master has any.
    One,
    /// As many as make a majority of all nodes, together with the master.
    Majority,
    /// Every replica.
    All,
}

/// The disks that must have an acquisition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Synced {
    /// None: an acquisition counts as soon as it is in memory.
    #[default]
    None,
    /// The disk of the master.
    Master,
    /// The disks of the master and of the replicas that `sync` names.
    All,
}

/// The resource that the lock guards: `[resource]`. It is a host, so writes to it travel over the
/// network.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Resource {
    /// The fencing tokens that it refuses.
    pub fence: Fence,
}
