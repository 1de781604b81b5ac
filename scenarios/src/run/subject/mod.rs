//! Who is on trial: the production client, or a small model of another algorithm.
//!
//! Models exist to be judged; nothing of them is in the production client. To add a model, add a
//! line to [`TABLE`](crate::file::scenario::TABLE); an algorithm that no traits describe gets a file of
//! its own with its [`Subject`], an [`Algorithm`] and a line in [`make`].

pub(crate) mod client;
mod leased;
pub mod model;
pub(crate) mod peer;
pub mod together;

use std::{collections::BTreeMap, pin::Pin, rc::Rc, time::Duration};

use lockstorm_sim::world::HostCtx;

use crate::{
    file::{
        plan::{LockEntry, Plan, PlannedLock},
        scenario::Algorithm,
    },
    judge::history::Mode,
    run::recorder::{HistoryWriter, Line},
};

/// A future on one host of the world; it never leaves its thread.
pub type Local<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// A host with a process whose subjects are made: what they should know, and where they report what
/// they believe.
#[derive(Clone)]
pub struct SubjectContext {
    /// The host.
    pub ctx: HostCtx,
    /// The scenario, for its locks and its nodes.
    pub plan: Rc<Plan>,
    /// The nodes that this client knows of for each lock, one group of replicas each.
    pub groups: Vec<Vec<Vec<String>>>,
    /// The Sentinels that this client asks for the masters; without any it goes by the nodes.
    pub sentinels: Vec<String>,
    /// The user and the password by which this client logs in at the nodes; none if it is the user
    /// that needs none.
    pub login: Option<(String, String)>,
    /// How many times the driver of a model sends a command again.
    pub retries: u32,
    /// The history, for the first line of work about the first lock.
    pub history: HistoryWriter,
}

impl SubjectContext {
    /// A lock on trial.
    pub fn lock(&self, lock: LockEntry) -> &PlannedLock {
        self.plan.entry(lock)
    }

    /// The nodes of a lock, one group of replicas each.
    pub fn groups_of(&self, lock: LockEntry) -> &[Vec<String>] {
        &self.groups[usize::from(lock.0)]
    }
}

/// What came of asking for several locks: all of them, or none.
pub type AllOrNone = Result<Option<Rc<dyn HeldTogether>>, Failure>;

/// The subjects of one line of work, by lock; one that has several locks stands there for each of
/// them.
pub type Subjects = Vec<Rc<dyn Subject>>;

/// Makes the subjects of a process, for each of its lines of work.
///
/// # Errors
/// When one of them cannot begin.
pub fn make(context: &SubjectContext, lines: &[Line]) -> Result<Vec<Subjects>, Failure> {
    let locks = context.plan.entries().map(|(entry, _)| entry);
    let (ours, models): (Vec<LockEntry>, Vec<LockEntry>) =
        locks.partition(|lock| context.lock(*lock).written.subject.algorithm == Algorithm::Client);
    // The production client is one for the whole process, with all its locks; a model is made for
    // each line and lock.
    let client = client::make(context, &ours)?;
    let mut all = Vec::new();
    for line in lines {
        let mut subjects: BTreeMap<LockEntry, Rc<dyn Subject>> = BTreeMap::new();
        let of_line: Rc<dyn Subject> = Rc::new(client.on(*line));
        subjects.extend(ours.iter().map(|lock| (*lock, of_line.clone())));
        for lock in &models {
            subjects.insert(*lock, model::make(context, *lock, *line));
        }
        all.push(subjects.into_values().collect());
    }
    Ok(all)
}

/// What an application asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// Which of the locks on trial.
    pub lock: LockEntry,
    /// For how long; `None` for the watchdog.
    pub lease: Option<Duration>,
    /// How long to wait.
    pub wait: Patience,
    /// Whether other owners may hold it in the same mode.
    pub mode: Mode,
    /// How many permits, of a semaphore.
    pub permits: u32,
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

/// A call failed, which is not the same as a lock that another owner has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The lock certainly did not change.
    pub definite: bool,
    /// The error's words.
    pub message: String,
}

/// A lock algorithm on one client.
pub trait Subject {
    /// Connects, and does what a process does once at its start, so that an experiment's times are
    /// those of the lock alone.
    fn warm_up(&self) -> Local<'static, ()>;
    /// Asks for the lock; `None` when it was refused.
    fn acquire(&self, ask: Ask) -> Local<'_, Result<Option<Rc<dyn Held>>, Failure>>;
    /// Asks for several locks, all or none; `None` of an algorithm that knows one lock alone, and
    /// is [composed](together::acquire_all).
    fn acquire_all(&self, asks: Vec<Ask>) -> Option<Local<'_, AllOrNone>> {
        let _ = asks;
        None
    }
    /// Does something with what has no holder, a latch or a rate limiter; whether it came to what
    /// it was to.
    fn count(&self, lock: LockEntry, counting: Counting) -> Local<'_, Result<bool, Failure>>;
}

/// What is done with a latch or a rate limiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    /// A latch is set to its count, unless it is closed.
    Set,
    /// It is counted down by one, unless it is open.
    Down,
    /// It is waited for, until it is open or the wait is over.
    Await(Patience),
    /// It is deleted, unless there is none.
    Delete,
    /// Permits are taken, unless the wait is over before they are there.
    Take {
        /// How many.
        permits: u32,
        /// How long to wait.
        wait: Patience,
    },
}

/// Several locks that were granted together.
pub trait HeldTogether {
    /// Gives them back; what came of each, in the order in which they were asked for.
    fn release_each(&self) -> Local<'_, Vec<Result<(), Failure>>>;
    /// Resolves when the algorithm says that one of them is lost.
    fn lost(&self) -> Local<'_, ()>;
    /// The name by which Redis knows the owner of the first.
    fn owner(&self) -> Option<String>;
    /// The fencing token of the first, if it has one.
    fn token(&self) -> Option<u64>;
}

/// A lock that was granted, as far as the algorithm knows.
pub trait Held {
    /// Gives it back.
    fn release(&self) -> Local<'_, Result<(), Failure>>;
    /// Holds it for so much longer from now.
    fn extend(&self, lease: Duration) -> Local<'_, Result<(), Failure>>;
    /// Keeps it without renewing it, to be given back by the names of its permits; nothing for what
    /// has none.
    fn forget(&self) {}
    /// Whether the algorithm would say that the lock is still held.
    fn is_held(&self) -> bool;
    /// Resolves when the algorithm says that the lock is lost; never if it has no means to tell.
    fn lost(&self) -> Local<'_, ()>;
    /// The name by which Redis knows the owner of this hold.
    fn owner(&self) -> Option<String>;
    /// The fencing token, if the algorithm hands them out.
    fn token(&self) -> Option<u64>;
}

/// What no valid scenario asks for.
fn not_so(message: &str) -> Failure {
    Failure { definite: true, message: message.to_owned() }
}

fn failure(error: lockstorm_client::Error) -> Failure {
    Failure { definite: error.is_definite(), message: error.to_string() }
}
