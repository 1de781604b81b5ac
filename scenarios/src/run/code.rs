//! A user's own code on a host of the world: its clocks, its PRNG and its connections are those of
//! the experiment, and the checkers judge what it does with the lock.

use std::{any::Any, fmt, pin::Pin, rc::Rc, sync::Arc, time::Duration};

use lockstorm_client::{Boottime, Builder, Env, Error, Guard};
use lockstorm_sim::time;

pub use crate::file::code::Code;
use crate::{
    judge::history::{Call, Deadline, Lock, Mode, Outcome, Owner, Reason},
    run::{
        bridge::HostEnv,
        recorder::{HistoryWriter, Line},
    },
};

/// What a host's code does: it stays on the thread of its world.
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
    /// Begins to run on a host.
    pub(crate) fn start(&self, host: CodeHost) -> Running {
        let begin = self.0.downcast_ref::<Begin>().expect("code is made by `From` alone");
        begin(host)
    }
}

/// A way to write to the guarded resource: under a lock, for an owner, with a fencing token or
/// without.
pub(crate) type Write = Rc<dyn Fn(Lock, Owner, Option<u64>) -> Pin<Box<dyn Future<Output = bool>>>>;

/// Sets up a client of each group of nodes of a lock, by its place.
pub(crate) type Builders = Rc<dyn Fn(usize) -> Vec<Builder>>;

/// A lock on trial, as a user's code sees it.
#[derive(Debug)]
pub(crate) struct CodeLock {
    /// What the scenario calls it.
    pub(crate) name: String,
    pub(crate) key: String,
    /// Its number in the history.
    pub(crate) number: Lock,
    /// How it is held where the name of its owner does not tell it, because another lock has the
    /// same key.
    pub(crate) asked_in: Option<Mode>,
}

/// The host that a user's code runs on, for one of its lines of work and one of the locks on trial.
#[derive(Clone)]
pub struct CodeHost {
    env: HostEnv,
    name: String,
    locks: Rc<Vec<CodeLock>>,
    /// The place of the one that this is about.
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

/// What a client that is not ours believes of a lock: see [`CodeHost::acquired`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a belief counts when it is reported"]
pub struct Belief {
    until: Option<Boottime>,
    token: Option<u64>,
    count: u32,
    mode: Mode,
}

impl Belief {
    /// It holds the lock, once and alone, until the boottime clock of its host shows this.
    pub fn until(deadline: Boottime) -> Belief {
        Belief { until: Some(deadline), ..Belief::open_ended() }
    }

    /// It holds the lock, once and alone, until it learns otherwise.
    pub fn open_ended() -> Belief {
        Belief { until: None, token: None, count: 1, mode: Mode::Exclusive }
    }

    /// With this fencing token.
    pub fn token(self, token: u64) -> Belief {
        Belief { token: Some(token), ..self }
    }

    /// So many times, one inside the other.
    pub fn times(self, count: u32) -> Belief {
        Belief { count, ..self }
    }

    /// Together with others that hold it so.
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

    /// The host's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The key of the lock that this is about: the first of the scenario, unless [`CodeHost::of`]
    /// chose another.
    pub fn lock_name(&self) -> &str {
        &self.locks[self.lock].key
    }

    /// The same host, about the lock that the scenario calls so.
    ///
    /// # Panics
    /// When the scenario has no such lock.
    #[must_use]
    pub fn of(&self, lock: &str) -> CodeHost {
        let at = self.locks.iter().position(|one| one.name == lock);
        let at = at.unwrap_or_else(|| {
            let known: Vec<&str> = self.locks.iter().map(|one| one.name.as_str()).collect();
            panic!("the scenario has no lock {lock:?}; it has: {}", known.join(", "))
        });
        CodeHost { lock: at, history: self.history.about(self.locks[at].number), ..self.clone() }
    }

    /// The same host, for another line of work, an owner of its own; the host itself is that of
    /// line 1. The production client knows it as `OwnerId::new(number)`.
    #[must_use]
    pub fn line(&self, number: u32) -> CodeHost {
        let history = self.history.on(Line(number));
        CodeHost { owner: history.owner(), history, ..self.clone() }
    }

    /// Under which name the production client writes this line of work into a lock's key. A client
    /// of another kind may write any other: see [`CodeHost::asks_as`].
    pub fn owner_name(&self) -> String {
        self.history.line().owner_of(&self.history.client_id())
    }

    /// Says that this line of work asks under another name than [`CodeHost::owner_name`] from now
    /// on, such as a token. Without it an unannounced name is that of line 1.
    pub fn asks_as(&self, name: &str) {
        self.history.asks_as(name);
    }

    /// The clocks, PRNG, connections and tasks of the host, for code that takes an [`Env`].
    pub fn env(&self) -> Arc<dyn Env> {
        Arc::new(self.env.clone())
    }

    /// A client of the lock's nodes, ready to build: on this host's environment, with the
    /// scenario's time-outs, and with the observer that tells the checkers what the client
    /// believes. Of the masters of a Redlock it knows the first.
    ///
    /// # Panics
    /// When the scenario gives the client no node.
    pub fn client(&self) -> Builder {
        self.clients().into_iter().next().expect("a client knows a node")
    }

    /// The same for each master of a Redlock, in the order of the scenario.
    pub fn clients(&self) -> Vec<Builder> {
        (self.builders)(self.lock)
    }

    /// Waits by the host's own clock.
    pub async fn sleep(&self, length: Duration) {
        let now = self.env.now();
        self.env.sleep_until(lockstorm_client::Monotonic(now.0.saturating_add(length))).await;
    }

    /// Asks for the lock, and tells the checkers that it was asked for and what came of it. `wait`
    /// is how long the code is ready to wait; `None` for as long as it takes. Of an error that is
    /// not the production client's nothing is known but its words: the lock may have changed.
    ///
    /// # Errors
    /// That of the acquisition.
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

    /// Gives the lock back, and tells the checkers so.
    ///
    /// # Errors
    /// That of the release.
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

    /// Reports what a client that is not ours believes from now on: that it holds the lock.
    /// Reported again when it has renewed its lease. The production client reports its beliefs by
    /// its observer.
    pub fn acquired(&self, belief: Belief) {
        let Belief { until, token, count, mode } = belief;
        let until = until.map(|until| {
            let nanos = i64::try_from(until.0.as_nanos()).unwrap_or(i64::MAX);
            Deadline::from(time::Boottime::from_nanos(nanos))
        });
        self.history.believes(self.owner, until, token, count, mode);
    }

    /// Reports that a client that is not ours is about to give the lock back, and does not count on
    /// it any more.
    pub fn released(&self) {
        self.history.disbelieves_all(self.owner, Reason::Released);
    }

    /// Reports that a client that is not ours has learned that it has lost the lock.
    pub fn lost(&self) {
        self.history.disbelieves_all(self.owner, Reason::Lost);
    }

    /// Writes to the guarded resource over the network; whether the write was accepted. Without a
    /// resource in the scenario no write is.
    pub async fn write(&self, token: Option<u64>) -> bool {
        // A line of work may hold the lock under any number of the client's owners.
        (self.write)(self.locks[self.lock].number, self.history.writer(self.owner), token).await
    }
}

/// What an acquisition answers: a guard, or perhaps one, or whether there is one.
pub trait Granted {
    /// Whether the lock was granted.
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
