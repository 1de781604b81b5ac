//! A user's own code on a host of the world: its clocks, its dice and its wires are those of the experiment, and the checkers
//! judge what it does with the lock.

use std::{fmt, pin::Pin, rc::Rc, sync::Arc, time::Duration};

use lockstorm_client::{Builder, Env, Error, Guard};

use crate::{
    bridge::HostEnv,
    history::{Call, Outcome, Owner},
    recorder::HistoryWriter,
};

/// What a host's code does: it stays on the thread of its world.
type Running = Pin<Box<dyn Future<Output = ()>>>;

/// Code that a client of a scenario runs instead of steps. It is started again when the host restarts after a crash, and
/// a host whose code has ended keeps what it holds.
///
/// The client's observer tells the checkers what the code believes; [`CodeHost::acquiring`] and [`CodeHost::releasing`] tell
/// them what it asked for. All code of one host is one line of work, one owner of the lock; two lines of work are two hosts.
///
/// ```
/// use std::time::Duration;
/// use lockstorm::{code::CodeHost, scenario::Scenario, units::Span, verdict::Expectation};
///
/// async fn worker(host: CodeHost) {
///     let client = host.client().build().expect("the scenario has a node");
///     let lock = client.lock(host.lock_name());
///     if let Ok(guard) = host.acquiring(None, lock.acquire()).await {
///         host.sleep(Duration::from_millis(20)).await;
///         let _ = host.releasing(guard.release()).await;
///     }
/// }
///
/// let scenario = Scenario::builder("two workers of my own")
///     .node("redis", Default::default())
///     .client_code("w1", worker)
///     .client_code("w2", worker)
///     .lasting(Span::secs(5), Span::secs(0))
///     .expect("l2", Expectation::holds())
///     .build();
/// lockstorm::experiment(scenario).seeds(0..3).check();
/// ```
#[derive(Clone)]
pub struct Code(Arc<dyn Fn(CodeHost) -> Running + Send + Sync>);

impl<C, F> From<C> for Code
where
    C: Fn(CodeHost) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + 'static,
{
    fn from(code: C) -> Code {
        Code(Arc::new(move |host| Box::pin(code(host))))
    }
}

impl Code {
    /// Begins to run on a host.
    pub(crate) fn start(&self, host: CodeHost) -> Running {
        (self.0)(host)
    }
}

/// Two pieces of code are the same when they are one.
impl PartialEq for Code {
    fn eq(&self, other: &Code) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Code")
    }
}

/// A way to write to the guarded resource, with a fencing token or without.
pub(crate) type Write = Rc<dyn Fn(Option<u64>) -> Pin<Box<dyn Future<Output = bool>>>>;

/// The host that a user's code runs on.
#[derive(Clone)]
pub struct CodeHost {
    pub(crate) env: HostEnv,
    pub(crate) name: String,
    pub(crate) lock: String,
    pub(crate) owner: Owner,
    pub(crate) teller: HistoryWriter,
    /// Sets up a client of each group of nodes.
    pub(crate) builders: Rc<dyn Fn() -> Vec<Builder>>,
    pub(crate) write: Write,
}

impl fmt::Debug for CodeHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodeHost").field("name", &self.name).field("lock", &self.lock).finish_non_exhaustive()
    }
}

impl CodeHost {
    /// The host's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of the lock on trial. The checkers know of no other.
    pub fn lock_name(&self) -> &str {
        &self.lock
    }

    /// The clocks, dice, wires and tasks of the host, for code that takes an [`Env`].
    pub fn env(&self) -> Arc<dyn Env> {
        Arc::new(self.env.clone())
    }

    /// A client of the lock's nodes, ready to build: on this host's environment, with the scenario's time-outs, and with the
    /// observer that tells the checkers what the client believes. Of a RedLock's masters it knows the first.
    ///
    /// # Panics
    /// When the scenario gives the client no node.
    pub fn client(&self) -> Builder {
        self.clients().into_iter().next().expect("a client knows a node")
    }

    /// The same for each master of a RedLock, in the order of the scenario.
    pub fn clients(&self) -> Vec<Builder> {
        (self.builders)()
    }

    /// Waits by the host's own clock.
    pub async fn sleep(&self, length: Duration) {
        let now = self.env.now();
        self.env.sleep_until(lockstorm_client::Monotonic(now.0.saturating_add(length))).await;
    }

    /// Asks for the lock, and tells the checkers that it was asked for and what came of it. `wait` is how long the code is
    /// ready to wait; `None` for as long as it takes.
    ///
    /// # Errors
    /// That of the acquisition.
    pub async fn acquiring<G: Granted>(
        &self,
        wait: Option<Duration>,
        asked: impl IntoFuture<Output = Result<G, Error>>,
    ) -> Result<G, Error> {
        let call = Call::Acquire { wait: HistoryWriter::wait(wait), lease_ms: None };
        let op = self.teller.invoked(self.owner, call);
        let granted = asked.await;
        let outcome = match &granted {
            Ok(granted) if granted.is_granted() => Outcome::Ok,
            Ok(_) => Outcome::Refused,
            Err(error) => failed(error),
        };
        if outcome != Outcome::Ok {
            self.teller.gave_up(self.owner);
        }
        self.teller.returned(op, call, outcome);
        granted
    }

    /// Gives the lock back, and tells the checkers so.
    ///
    /// # Errors
    /// That of the release.
    pub async fn releasing(&self, released: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
        let op = self.teller.invoked(self.owner, Call::Release);
        let released = released.await;
        let outcome = match &released {
            Ok(()) => Outcome::Ok,
            Err(error) => failed(error),
        };
        self.teller.returned(op, Call::Release, outcome);
        released
    }

    /// Writes to the guarded resource over the network; whether the write was accepted. Without a resource in the scenario
    /// nothing is.
    pub async fn write(&self, token: Option<u64>) -> bool {
        (self.write)(token).await
    }
}

/// What an acquisition answers: a guard, or perhaps one.
pub trait Granted {
    /// Whether the lock was granted.
    fn is_granted(&self) -> bool;
}

impl Granted for Guard {
    fn is_granted(&self) -> bool {
        true
    }
}

impl Granted for Option<Guard> {
    fn is_granted(&self) -> bool {
        self.is_some()
    }
}

fn failed(error: &Error) -> Outcome {
    Outcome::Failed { definite: error.is_definite(), message: error.to_string().into() }
}
