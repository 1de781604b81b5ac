//! A builder for scenarios in Rust, for tests without a file.

use super::{Client, Lock, LockKind, Node, Resource, Scenario, Steps};
use crate::{
    file::code::Code,
    file::{fault::Fault, name::Name},
    judge::verdict::Expectation,
    units::{Draw, Span},
};

/// Builds a [`Scenario`] piece by piece. Each piece has the same name in the file format.
///
/// ```
/// use lockstorm::{file::{fault::{Crash, Fault}, scenario::Scenario}, units::Span};
/// let scenario = Scenario::builder("a crash loses the lock")
///     .node("m", Default::default())
///     .client("c1", Default::default())
///     .fault("crash", Fault::after(Span::millis(3), Crash("m".into())))
///     .build();
/// assert_eq!(scenario.fault.len(), 1);
/// ```
#[derive(Debug, Clone, Default)]
pub struct ScenarioBuilder(Scenario);

impl Scenario {
    /// Starts a scenario with a sentence about its subject, and without hosts.
    pub fn builder(about: impl Into<String>) -> ScenarioBuilder {
        ScenarioBuilder(Scenario { about: about.into(), ..Scenario::default() })
    }
}

impl Fault {
    /// Makes a fault that begins at this time after the start.
    pub fn after(at: Span, kind: impl Into<Fault>) -> Fault {
        Fault { at: Some(Draw::Fixed(at)), ..kind.into() }
    }
}

impl ScenarioBuilder {
    /// Adds a Redis node under this name; a node of the same name is replaced.
    pub fn node(mut self, name: impl Into<String>, node: Node) -> Self {
        self.0.node.insert(name.into(), node);
        self
    }

    /// Adds a replica with defaults; `of` is the name of its master.
    pub fn replica(self, name: impl Into<String>, of: impl Into<String>) -> Self {
        self.node(name, Node { replica_of: Some(Name::new(of)), ..Node::default() })
    }

    /// Adds a client under this name; a client of the same name is replaced.
    pub fn client(mut self, name: impl Into<String>, client: Client) -> Self {
        self.0.client.insert(name.into(), client);
        self
    }

    /// Adds a client with a script.
    pub fn script(self, name: impl Into<String>, steps: Steps) -> Self {
        self.client(name, Client { steps, ..Client::default() })
    }

    /// Adds a client that runs your code on a host of the world. See [`Code`].
    pub fn client_code(self, name: impl Into<String>, code: impl Into<Code>) -> Self {
        self.client(name, Client { code: Some(code.into()), ..Client::default() })
    }

    /// Sets the time that a packet takes between any two hosts.
    pub fn latency(mut self, latency: Draw<Span>) -> Self {
        self.0.network.latency = latency;
        self
    }

    /// Sets the only lock on trial.
    pub fn lock(mut self, lock: Lock) -> Self {
        self.0.lock = lock.into();
        self
    }

    /// Adds a lock under a name, for a scenario with several.
    pub fn lock_named(mut self, name: impl Into<String>, lock: Lock) -> Self {
        self.0.lock.add(name, lock);
        self
    }

    /// Sets the kind of every lock added so far.
    pub fn lock_kind(mut self, kind: LockKind) -> Self {
        self.0.lock.values_mut().for_each(|lock| lock.kind = kind);
        self
    }

    /// Adds the guarded resource.
    pub fn resource(mut self, resource: Resource) -> Self {
        self.0.resource = Some(resource);
        self
    }

    /// Adds a fault under this name; its draws from the seed depend on the name.
    pub fn fault(mut self, name: impl Into<String>, fault: Fault) -> Self {
        self.0.fault.insert(name.into(), fault);
        self
    }

    /// Sets the lengths of the storm and the calm.
    pub fn lasting(mut self, storm: Span, calm: Span) -> Self {
        self.0.run.storm = storm;
        self.0.run.calm = Some(calm);
        self
    }

    /// Sets the expectation for a checker.
    pub fn expect(mut self, checker: impl Into<String>, expectation: Expectation) -> Self {
        self.0.expect.insert(checker.into(), expectation);
        self
    }

    /// Returns the scenario without checking it.
    pub fn build(self) -> Scenario {
        self.0
    }
}
