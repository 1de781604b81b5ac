//! What is on trial: the locks, their implementations, and the resource they guard.

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
/// A file that has one says `[lock]`, and it is called `lock`. A file that has several gives each a
/// table of its own, such as `[lock.stock]` and `[lock.cash]`, and what stands in `[lock]` itself
/// is common to them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Locks(IndexMap<String, Lock>);

/// What the only lock of a file is called.
pub(super) const ONLY: &str = "lock";

/// The keys of `[lock]` whose values are tables, so that they are no locks.
pub(super) const OWN_TABLES: &[&str] = &["traits"];

impl Locks {
    /// The key of each lock in Redis, in order.
    pub fn keys_in_redis(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, lock)| lock.name.as_deref().unwrap_or(name))
    }

    /// Adds a lock; the first that is added takes the place of the one that every scenario has.
    pub fn add(&mut self, name: impl Into<String>, lock: Lock) {
        if *self == Locks::default() {
            self.0.clear();
        }
        self.0.insert(name.into(), lock);
    }

    /// All of them, to be changed.
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

/// As a file has them: the settings, and beside them a table for each lock.
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

/// A lock on trial: `[lock]`, or `[lock.stock]` of several, for which `[lock]` says what they have
/// in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Lock {
    /// Its key in Redis; what the file calls it if left out.
    pub name: Option<String>,
    /// Which lock of the client it is.
    pub kind: LockKind,
    /// Who implements it: the production client, or a model of another algorithm (`lockstorm list
    /// subjects`).
    pub subject: Subject,
    /// What the subject does otherwise than its name says, such as `{ release = "delete" }`
    /// (`lockstorm list traits`).
    pub traits: OtherTraits,
    /// The nodes it lives on: one for a plain lock (its replicas follow by themselves), several for
    /// a Redlock. All masters if left out.
    pub nodes: Option<Vec<Name>>,
    /// The lease of every acquisition that names none; that of the watchdog, which renews it, if
    /// left out.
    pub lease: Option<Span>,
    /// The lease the watchdog keeps renewing.
    pub watchdog: Span,
    /// How long a client waits for a reply; 3 s if left out. A peer of a trial then does as its
    /// library does.
    pub response_timeout: Option<Span>,
    /// How long a Redlock waits for one node; 50 ms if left out.
    pub node_timeout: Option<Span>,
    /// The longest random delay between two attempts of a Redlock; 200 ms if left out.
    pub retry_delay: Option<Span>,
    /// Which replicas must have acknowledged an acquisition (WAIT).
    pub sync: Sync,
    /// How long to wait for their acknowledgement; 1 s if left out. A model waits for 100 ms,
    /// whatever this says.
    pub sync_timeout: Option<Span>,
    /// How long a queued waiter of a fair lock may be silent before it loses its place; 5 min if
    /// left out.
    pub fair_wait: Option<Span>,
    /// How many permits a semaphore has, or a rate limiter in each window; one if left out.
    pub permits: Option<u32>,
    /// How many times a latch that is set must be counted down until it opens; once if left out.
    pub count: Option<u32>,
    /// The time in which a rate limiter has so many permits; one second if left out.
    pub window: Option<Span>,
    /// Whether a rate limiter has so many permits for each client, and not for all of them
    /// together. A client that was started again is another one.
    pub per_client: bool,
    /// How long after a lease that ended by itself the lock is granted to no other owner, for a
    /// model with the trait `grant = "after-delay"`; no time if left out.
    pub delay: Option<Span>,
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
            fair_wait: None,
            permits: None,
            count: None,
            window: None,
            per_client: false,
            delay: None,
        }
    }
}

/// The shortest window of a rate limiter, as of the production client.
const WINDOW_MIN: Span = Span(client::RATE_INTERVAL.least);

impl Lock {
    /// Checks that each key is one of the lock's kind, with a value that such a lock can have.
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
        if self.delay.is_some() && self.all_traits().grant != Grant::AfterDelay {
            let message =
                "only a model with the trait grant = \"after-delay\" has a delay: lock.traits.grant";
            return wrong("delay", message);
        }
        Ok(())
    }

    /// What its implementation does: the traits of the subject, with its own laid over them.
    pub(crate) fn all_traits(&self) -> Traits {
        self.subject.traits.with(&self.traits)
    }

    /// Whether what each client is granted has a key of its own, of a rate limiter.
    pub(crate) fn is_counted_apart(&self) -> bool {
        self.kind.is_rate() && self.all_traits().counted.is_apart(self.per_client)
    }

    /// Whether an owner acquires it and gives it back, rather than that it is counted.
    pub(crate) fn has_owners(&self) -> bool {
        !self.kind.is_latch() && !self.kind.is_rate()
    }

    /// The adapter of its kind.
    pub(crate) fn object(&self) -> Rc<dyn Object> {
        let number = self.permits.or(self.count).unwrap_or(1);
        let (window_ms, per_client) = (millis(self.window()), self.per_client);
        self.kind.object(Amount { number, window_ms, per_client })
    }

    /// The time in which a rate limiter has its permits.
    pub(crate) fn window(&self) -> Duration {
        self.window.map_or(Duration::from_secs(1), |Span(window)| window)
    }
}

/// Which replicas must have acknowledged an acquisition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sync {
    /// None: replication is asynchronous.
    #[default]
    None,
    /// One, if the master has any.
    One,
    /// As many as make a majority of all nodes together with the master.
    Majority,
    /// Every replica.
    All,
}

/// The resource that the lock guards: `[resource]`. It is a host of its own, so a write takes its
/// time over the network.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Resource {
    /// Which tokens it refuses.
    pub fence: Fence,
}
