//! The systems under test: the production client, or a small model of another algorithm.
//!
//! Models exist only to be judged; the production client contains no part of them. To add a model,
//! add a line to [`TABLE`](crate::file::scenario::TABLE). An algorithm that no traits describe
//! needs a file of its own with its [`Subject`], an [`Algorithm`] and a line in [`make`].

pub(crate) mod client;
mod leased;
pub(crate) mod model;
pub(crate) mod peer;
pub(crate) mod together;

use std::{collections::BTreeMap, pin::Pin, rc::Rc, time::Duration};

use lockstorm_world::HostCtx;

use crate::{
    file::{
        plan::{LockEntry, Plan, PlannedLock},
        scenario::Algorithm,
    },
    judge::history::Mode,
    run::recorder::{HistoryWriter, Line},
};

/// A future on one host of the world. It never leaves its thread.
pub(crate) type Local<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// The context of a client process, for creating its subjects and recording what they believe.
#[derive(Clone)]
pub(crate) struct SubjectContext {
    /// The host.
    pub ctx: HostCtx,
    /// The plan, with the scenario's locks and nodes.
    pub plan: Rc<Plan>,
    /// For each lock the nodes that this client knows, in groups of replicas.
    pub groups: Vec<Vec<Vec<String>>>,
    /// The Sentinels that this client asks for the masters. If empty, it connects to the nodes
    /// directly.
    pub sentinels: Vec<String>,
    /// The user and the password with which this client authenticates. `None` for the default user
    /// without a password.
    pub login: Option<(String, String)>,
    /// The number of times that a model's driver sends a command again.
    pub retries: u32,
    /// The history writer, for the first line of work and the first lock.
    pub history: HistoryWriter,
}

impl SubjectContext {
    /// Returns the plan of a lock on trial.
    pub(crate) fn lock(&self, lock: LockEntry) -> &PlannedLock {
        self.plan.entry(lock)
    }

    /// Returns the nodes of a lock, in groups of replicas.
    pub(crate) fn groups_of(&self, lock: LockEntry) -> &[Vec<String>] {
        &self.groups[usize::from(lock.0)]
    }
}

/// The result of acquiring several locks: all of them, or `None`.
pub(crate) type AllOrNone = Result<Option<Rc<dyn HeldTogether>>, Failure>;

/// The subjects of one line of work, by lock. A subject with several locks appears once for each of
/// them.
pub(crate) type Subjects = Vec<Rc<dyn Subject>>;

/// Creates the subjects of a process, for each of its lines of work.
///
/// # Errors
/// The first failure of the production client's setup.
pub(crate) fn make(context: &SubjectContext, lines: &[Line]) -> Result<Vec<Subjects>, Failure> {
    let locks = context.plan.entries().map(|(entry, _)| entry);
    let (ours, models): (Vec<LockEntry>, Vec<LockEntry>) =
        locks.partition(|lock| context.lock(*lock).written.subject.algorithm == Algorithm::Client);
    // The whole process shares one production client with all its locks. A model is created for
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

/// An application's request for a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ask {
    /// The lock on trial.
    pub lock: LockEntry,
    /// The length of the lease. `None` for the watchdog.
    pub lease: Option<Duration>,
    /// The longest wait.
    pub wait: Patience,
    /// The mode. In shared mode several owners may hold the lock together.
    pub mode: Mode,
    /// The number of permits, of a semaphore.
    pub permits: u32,
}

/// The longest time for which an application waits for a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Do not wait.
    None,
    /// Wait no longer than this.
    For(Duration),
    /// Wait without a limit.
    Unbounded,
}

/// A failed call, as opposed to a refusal because another owner holds the lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// True if the lock certainly did not change.
    pub definite: bool,
    /// The message of the error.
    pub message: String,
}

/// A lock algorithm on one client.
pub(crate) trait Subject {
    /// Connects, and does the one-time work of a process at its start, so that an experiment
    /// measures the lock alone.
    fn warm_up(&self) -> Local<'static, ()>;
    /// Acquires the lock. Returns `None` if it was refused.
    fn acquire(&self, ask: Ask) -> Local<'_, Result<Option<Rc<dyn Held>>, Failure>>;
    /// Acquires several locks, all or none. Returns `None` for an algorithm with single locks only,
    /// whose locks are [composed](together::acquire_all).
    fn acquire_all(&self, asks: Vec<Ask>) -> Option<Local<'_, AllOrNone>> {
        let _ = asks;
        None
    }
    /// Performs an operation on a latch or a rate limiter, which have no holder. Returns false if
    /// it was refused.
    fn count(&self, lock: LockEntry, counting: Counting) -> Local<'_, Result<bool, Failure>>;
}

/// An operation on a latch or a rate limiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counting {
    /// Sets a latch to its count, unless it is closed.
    Set,
    /// Counts a latch down by one, unless it is open.
    Down,
    /// Waits until a latch is open or the wait is over.
    Await(Patience),
    /// Deletes a latch, unless it does not exist.
    Delete,
    /// Takes permits of a rate limiter, unless the wait ends before they are free.
    Take {
        /// The number of permits.
        permits: u32,
        /// The longest wait.
        wait: Patience,
    },
}

/// Several locks that were granted together.
pub(crate) trait HeldTogether {
    /// Releases them. Returns the results in the order of the requests.
    fn release_each(&self) -> Local<'_, Vec<Result<(), Failure>>>;
    /// Resolves when the algorithm reports one of them as lost.
    fn lost(&self) -> Local<'_, ()>;
    /// Returns the name of the first lock's owner in Redis.
    fn owner(&self) -> Option<String>;
    /// Returns the fencing token of the first lock, if it has one.
    fn token(&self) -> Option<u64>;
}

/// A lock that was granted, as far as the algorithm knows.
pub(crate) trait Held {
    /// Releases the lock.
    fn release(&self) -> Local<'_, Result<(), Failure>>;
    /// Sets a new lease that begins now.
    fn extend(&self, lease: Duration) -> Local<'_, Result<(), Failure>>;
    /// Stops the renewal and keeps the permits, so that a release names them by their IDs. Does
    /// nothing for a lock without permits.
    fn forget(&self) {}
    /// Returns true if the algorithm considers the lock held.
    fn is_held(&self) -> bool;
    /// Resolves when the algorithm reports the lock as lost; never if it cannot detect that.
    fn lost(&self) -> Local<'_, ()>;
    /// Returns the name of this hold's owner in Redis.
    fn owner(&self) -> Option<String>;
    /// Returns the fencing token, if the algorithm issues tokens.
    fn token(&self) -> Option<u64>;
}

/// Returns a failure for a request that no valid scenario makes.
fn not_so(message: &str) -> Failure {
    Failure { definite: true, message: message.to_owned() }
}

fn failure(error: lockstorm_client::Error) -> Failure {
    Failure { definite: error.is_definite(), message: error.to_string() }
}
