//! Who is on trial: the production client, or a small model of another algorithm.
//!
//! Models exist to be judged; nothing of them is in the production client. To add a model, add a line to
//! [`TABLE`](crate::scenario::TABLE); an algorithm that no traits describe gets a file of its own with its [`Subject`], an
//! [`Algorithm`] and a line in [`maker`].

pub(crate) mod client;
pub mod model;

use std::{pin::Pin, rc::Rc, time::Duration};

use lockstorm_sim::world::HostCtx;

use crate::{
    history::{Lock, Mode},
    plan::Plan,
    recorder::HistoryWriter,
    scenario::Algorithm,
};

/// A future on one host of the world; it never leaves its thread.
pub type Local<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Makes a subject for one client.
pub type Make = fn(Seat) -> Local<'static, Result<Rc<dyn Subject>, Failure>>;

/// What makes the subjects of an algorithm.
pub fn maker(algorithm: Algorithm) -> Make {
    match algorithm {
        Algorithm::Client => client::make,
        Algorithm::Model => model::make,
    }
}

/// Where a subject sits: its host, what it should know, and whom it tells what it believes.
#[derive(Clone)]
pub struct Seat {
    /// The host.
    pub ctx: HostCtx,
    /// The scenario, for its lock and its nodes.
    pub plan: Rc<Plan>,
    /// The nodes this client knows of, one group of replicas each.
    pub groups: Vec<Vec<String>>,
    /// Whom it tells.
    pub teller: HistoryWriter,
}

/// What an application asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// Which of the locks on trial.
    pub lock: Lock,
    /// For how long; `None` for the watchdog.
    pub lease: Option<Duration>,
    /// How long to wait.
    pub wait: Patience,
    /// Whether others may hold it as well who ask so.
    pub mode: Mode,
}

/// How long an application waits for a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Not at all.
    None,
    /// No longer than this.
    For(Duration),
    /// As long as it takes.
    Unbounded,
}

/// A call went wrong, which is something else than a lock that somebody else has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The lock certainly did not change.
    pub definite: bool,
    /// The error's words.
    pub message: String,
}

/// A lock algorithm on one client.
pub trait Subject {
    /// Connects, and does what a process does once at its start, so that an experiment's times are those of the lock alone.
    fn warm_up(&self) -> Local<'static, ()>;
    /// Asks for the lock; `None` when it was refused.
    fn acquire(&self, ask: Ask) -> Local<'_, Result<Option<Rc<dyn Held>>, Failure>>;
}

/// A lock that was granted, as far as the algorithm knows.
pub trait Held {
    /// Gives it back.
    fn release(&self) -> Local<'_, Result<(), Failure>>;
    /// Holds it for so much longer from now.
    fn extend(&self, lease: Duration) -> Local<'_, Result<(), Failure>>;
    /// Whether the algorithm would say that the lock is still held.
    fn is_held(&self) -> bool;
    /// Resolves when the algorithm says that the lock is lost; never if it has no means to tell.
    fn lost(&self) -> Local<'_, ()>;
    /// The name by which Redis knows the owner of this hold.
    fn owner(&self) -> Option<String>;
    /// The fencing token, if the algorithm hands them out.
    fn token(&self) -> Option<u64>;
}
