//! A user's own code on a host of the world. It uses the clocks, the PRNG and the connections of
//! the experiment, and the checkers judge its use of the lock.

use std::{any::Any, fmt, pin::Pin, rc::Rc, sync::Arc, time::Duration};

use lockstorm_client::{Boottime, Builder, Env, Error, Guard};
use lockstorm_world::time;

pub use crate::file::code::Code;
use crate::{
    judge::history::{Call, Deadline, Lock, Mode, Outcome, Owner, Reason},
    run::{
        bridge::HostEnv,
        recorder::{HistoryWriter, Line},
    },
};

/// The running code of a host. It stays on the thread of its world.
type Running = Pin<Box<dyn Future<Output = ()>>>;

/// Starts code on a host.
type Begin = Box<dyn Fn(CodeHost) -> Running + Send + Sync>;

impl<C, F> From<C> for Code
where
    C: Fn(CodeHost) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + 'static,
{
    fn from(code: C) -> Code {
        let begin: Begin = Box::new(move |host| Box::pin(code(host)));
        Code(Arc::new(begin))
    }
}

impl Code {
    /// Starts the code on a host.
    pub(crate) fn start(&self, host: CodeHost) -> Running {
        let begin = self.0.downcast_ref::<Begin>().expect("code is made by `From` alone");
        begin(host)
    }
}

/// Writes to the guarded resource under a lock, for an owner, with or without a fencing token.
pub(crate) type Write = Rc<dyn Fn(Lock, Owner, Option<u64>) -> Pin<Box<dyn Future<Output = bool>>>>;

/// Returns a client builder for each group of nodes of a lock, given by its index.
pub(crate) type Builders = Rc<dyn Fn(usize) -> Vec<Builder>>;

/// A lock on trial, as a user's code sees it.
#[derive(Debug)]
pub(crate) struct CodeLock {
    /// The lock's name in the scenario.
    pub(crate) name: String,
    pub(crate) key: String,
    /// Its number in the history.
    pub(crate) number: Lock,
    /// The mode to record with a request. Set if another lock has the same key, because then the
    /// owner's name does not show the mode.
    pub(crate) asked_in: Option<Mode>,
}

/// The host on which a user's code runs, for one of its lines of work and one of the locks on
/// trial.
#[derive(Clone)]
pub struct CodeHost {
    env: HostEnv,
    name: String,
    locks: Rc<Vec<CodeLock>>,
    /// The index of the lock.
    lock: usize,
    owner: Owner,
    history: HistoryWriter,
    builders: Builders,
    write: Write,
}

impl fmt::Debug for CodeHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lock = self.lock_name();
        f.debug_struct("CodeHost").field("name", &self.name).field("lock", &lock).finish_non_exhaustive()
    }
}

/// A third-party client's belief about a lock: see [`CodeHost::acquired`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a belief counts when it is reported"]
pub struct Belief {
    until: Option<Boottime>,
    token: Option<u64>,
    count: u32,
    mode: Mode,
}

impl Belief {
    /// A single exclusive hold until the boottime clock of its host shows `deadline`.
    pub fn until(deadline: Boottime) -> Belief {
        Belief { until: Some(deadline), ..Belief::open_ended() }
    }

    /// A single exclusive hold without a known end.
    pub fn open_ended() -> Belief {
        Belief { until: None, token: None, count: 1, mode: Mode::Exclusive }
    }

    /// Adds a fencing token.
    pub fn token(self, token: u64) -> Belief {
        Belief { token: Some(token), ..self }
    }

    /// Sets the number of nested levels.
    pub fn times(self, count: u32) -> Belief {
        Belief { count, ..self }
    }

    /// Changes the mode to shared.
    pub fn shared(self) -> Belief {
        Belief { mode: Mode::Shared, ..self }
    }
}

impl CodeHost {
    pub(crate) fn new(
        env: HostEnv,
        name: &str,
        locks: Vec<CodeLock>,
        history: HistoryWriter,
        builders: Builders,
        write: Write,
    ) -> CodeHost {
        let (name, locks, owner) = (name.to_owned(), Rc::new(locks), history.owner());
        CodeHost { env, name, locks, lock: 0, owner, history, builders, write }
    }

    /// Returns the host's name in the scenario.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The key of the current lock: the first of the scenario, unless [`CodeHost::of`] selected
    /// another.
    pub fn lock_name(&self) -> &str {
        &self.locks[self.lock].key
    }

    /// Returns the same host for the lock with this name in the scenario.
    ///
    /// # Panics
    /// Panics if the scenario has no such lock.
    #[must_use]
    pub fn of(&self, lock: &str) -> CodeHost {
        let at = self.locks.iter().position(|one| one.name == lock);
        let at = at.unwrap_or_else(|| {
            let known: Vec<&str> = self.locks.iter().map(|one| one.name.as_str()).collect();
            panic!("the scenario has no lock {lock:?}; it has: {}", known.join(", "))
        });
        CodeHost { lock: at, history: self.history.about(self.locks[at].number), ..self.clone() }
    }

    /// Returns the same host for another line of work, which is a separate owner. The host itself
    /// is line 1. The production client's name for the line is `OwnerId::new(number)`.
    #[must_use]
    pub fn line(&self, number: u32) -> CodeHost {
        let history = self.history.on(Line(number));
        CodeHost { owner: history.owner(), history, ..self.clone() }
    }

    /// Returns the production client's name for this line of work in a lock's key. Another client
    /// may use any other name: see [`CodeHost::asks_as`].
    pub fn owner_name(&self) -> String {
        self.history.line().owner_of(&self.history.client_id())
    }

    /// Records that this line of work makes its next requests under another name than
    /// [`CodeHost::owner_name`], such as a token. A name without such a record belongs to line 1.
    pub fn asks_as(&self, name: &str) {
        self.history.asks_as(name);
    }

    /// Returns the clocks, PRNG, connections and tasks of the host, for code that takes an [`Env`].
    pub fn env(&self) -> Arc<dyn Env> {
        Arc::new(self.env.clone())
    }

    /// Returns the builder of a client of the lock's nodes. It has this host's environment, the
    /// scenario's timeouts, and the observer that reports the client's beliefs to the checkers. For
    /// a Redlock it is the client of the first master.
    ///
    /// # Panics
    /// Panics if the scenario gives the client no node.
    pub fn client(&self) -> Builder {
        self.clients().into_iter().next().expect("a client knows a node")
    }

    /// Like [`CodeHost::client`], for each master of a Redlock, in the order of the scenario.
    pub fn clients(&self) -> Vec<Builder> {
        (self.builders)(self.lock)
    }

    /// Waits by the host's own clock.
    pub async fn sleep(&self, length: Duration) {
        let now = self.env.now();
        self.env.sleep_until(lockstorm_client::Monotonic(now.0.saturating_add(length))).await;
    }

    /// Awaits an acquisition of the lock, and records the request and its outcome. `wait` is the
    /// longest wait of the code; `None` for no limit. For an error of a third-party client only the
    /// message is recorded, and the lock may have changed.
    ///
    /// # Errors
    /// Returns the error of the acquisition.
    pub async fn acquiring<G: Granted, E: fmt::Display + 'static>(
        &self,
        wait: Option<Duration>,
        asked: impl IntoFuture<Output = Result<G, E>>,
    ) -> Result<G, E> {
        let call = Call::Acquire { wait: HistoryWriter::wait(wait), lease_ms: None, mode: Mode::Exclusive };
        if let Some(mode) = self.locks[self.lock].asked_in {
            self.history.asks_in(self.owner, mode);
        }
        let op = self.history.invoked(self.owner, call);
        let granted = asked.await;
        let outcome = match &granted {
            Ok(granted) if granted.is_granted() => Outcome::Ok,
            Ok(_) => Outcome::Refused,
            Err(error) => failed(error),
        };
        if outcome != Outcome::Ok {
            self.history.gave_up(self.owner);
        }
        self.history.returned(op, call, outcome);
        granted
    }

    /// Awaits a release of the lock, and records it.
    ///
    /// # Errors
    /// Returns the error of the release.
    pub async fn releasing<E: fmt::Display + 'static>(
        &self,
        released: impl Future<Output = Result<(), E>>,
    ) -> Result<(), E> {
        let op = self.history.invoked(self.owner, Call::Release);
        let released = released.await;
        let outcome = match &released {
            Ok(()) => Outcome::Ok,
            Err(error) => failed(error),
        };
        self.history.returned(op, Call::Release, outcome);
        released
    }

    /// Reports that a third-party client believes it holds the lock. Must be called again after
    /// each renewal of the lease. The production client reports its beliefs through its observer.
    pub fn acquired(&self, belief: Belief) {
        let Belief { until, token, count, mode } = belief;
        let until = until.map(|until| {
            let nanos = i64::try_from(until.0.as_nanos()).unwrap_or(i64::MAX);
            Deadline::from(time::Boottime::from_nanos(nanos))
        });
        self.history.believes(self.owner, until, token, count, mode);
    }

    /// Reports that a third-party client is about to release the lock, and no longer relies on it.
    pub fn released(&self) {
        self.history.disbelieves_all(self.owner, Reason::Released);
    }

    /// Reports that a third-party client has learned that it lost the lock.
    pub fn lost(&self) {
        self.history.disbelieves_all(self.owner, Reason::Lost);
    }

    /// Writes to the guarded resource over the network. Returns true if the write was accepted;
    /// false without a resource in the scenario.
    pub async fn write(&self, token: Option<u64>) -> bool {
        // A line of work may hold the lock under several of the client's owners.
        (self.write)(self.locks[self.lock].number, self.history.writer(self.owner), token).await
    }
}

/// The result of an acquisition: a guard, an optional guard, or true if it was granted.
pub trait Granted {
    /// Returns true if the lock was granted.
    fn is_granted(&self) -> bool;
}

impl<G> Granted for Guard<G> {
    fn is_granted(&self) -> bool {
        true
    }
}

impl<T> Granted for Option<T> {
    fn is_granted(&self) -> bool {
        self.is_some()
    }
}

impl Granted for bool {
    fn is_granted(&self) -> bool {
        *self
    }
}

fn failed<E: fmt::Display + 'static>(error: &E) -> Outcome {
    let ours = (error as &dyn Any).downcast_ref::<Error>();
    Outcome::Failed { definite: ours.is_some_and(Error::is_definite), message: error.to_string().into() }
}
