//! Which server to talk to, and talking to it again when that is safe.

pub(crate) mod connection;
mod moves;
mod replicas;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use redis::{Cmd, Value};
use tokio::sync::Mutex;

use crate::config::{Config, ReplicaWait, millis};
use crate::env::{Env, pause, within};
use crate::error::{Error, ErrorKind, Result};
use crate::script::Call;
use connection::{Connection, End, OnPush};
use moves::Moves;
pub(crate) use moves::Position;

/// The number of connected replicas is not known (any more).
const UNKNOWN: usize = usize::MAX;

/// The way to the master. One connection at a time is used for new requests; it is made when it is needed.
pub(crate) struct Router {
    env: Arc<dyn Env>,
    config: Arc<Config>,
    current: Mutex<Option<Arc<Connection>>>,
    /// Tells the subscriber of every new connection, so that it can follow to a new master.
    moves: Arc<Moves>,
    replicas: AtomicUsize,
    closed: AtomicBool,
}

impl Router {
    pub(crate) fn new(env: Arc<dyn Env>, config: Arc<Config>) -> Self {
        let (current, moves) = (Mutex::new(None), Arc::default());
        Self {
            env,
            config,
            current,
            moves,
            replicas: AtomicUsize::new(UNKNOWN),
            closed: AtomicBool::new(false),
        }
    }

    /// The connection for new requests. An error is always definite: nothing was sent.
    pub(crate) async fn connection(&self) -> Result<Arc<Connection>> {
        let mut current = self.current.lock().await;
        if self.closed.load(Ordering::Acquire) {
            *current = None;
            return Err(Error::definite(ErrorKind::Shutdown));
        }
        if let Some(connection) = current.as_ref().filter(|connection| connection.is_fit()) {
            return Ok(connection.clone());
        }
        *current = None;
        self.replicas.store(UNKNOWN, Ordering::Relaxed);
        let limit = self.env.now() + self.config.connect_timeout;
        let connection = match self.config.endpoints.as_slice() {
            [only] => Connection::open(&self.env, only, None, limit).await?,
            several => replicas::find_master(&self.env, several, limit).await?,
        };
        *current = Some(connection.clone());
        self.moves.moved();
        Ok(connection)
    }

    /// Lets go of the connection, and makes none any more.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        if let Ok(mut current) = self.current.try_lock() {
            *current = None;
        }
        self.moves.moved();
    }

    /// A second connection to the same server, for subscriptions.
    pub(crate) async fn subscriber(&self, on_push: OnPush) -> Result<Arc<Connection>> {
        let master = self.connection().await?;
        let limit = self.env.now() + self.config.connect_timeout;
        Connection::open(&self.env, &master.endpoint, Some(on_push), limit).await
    }

    /// Where requests go now, to hear when they take a new connection.
    pub(crate) fn position(&self) -> Position {
        self.moves.position()
    }

    /// What must happen for a server to come back with other data: the connection in use ends, or another one is made.
    pub(crate) fn disturbance(&self) -> Disturbance {
        let position = self.position();
        // Locked, it is about to be another one.
        let current = self.current.try_lock().ok();
        let end = current.and_then(|current| current.as_ref().map(|connection| connection.end()));
        Disturbance { position, end: end.filter(|end| !end.has_come()) }
    }

    /// The WAIT that must follow a change and the acknowledgements it must bring, when replicas are asked for.
    pub(crate) async fn replica_wait(&self, connection: &Connection) -> Result<Option<(Cmd, usize)>> {
        if self.config.replica_wait == ReplicaWait::None {
            return Ok(None);
        }
        let mut connected = self.replicas.load(Ordering::Relaxed);
        if connected == UNKNOWN || connected == 0 {
            // Zero is asked again each time, lest replicas that join later are never waited for.
            connected = replicas::connected_replicas(connection).await?.unwrap_or(0);
            self.replicas.store(connected, Ordering::Relaxed);
        }
        let needed = replicas::needed(self.config.replica_wait, self.config.endpoints.len() - 1, connected);
        if needed == 0 {
            return Ok(None);
        }
        // Ask for all that are connected: one more acknowledgement than needed costs nothing.
        let mut wait = redis::cmd("WAIT");
        wait.arg(needed.max(connected)).arg(millis(self.config.replica_timeout).max(1));
        Ok(Some((wait, needed)))
    }

    /// Takes note of how many replicas acknowledged.
    pub(crate) fn acknowledged(&self, acked: usize, needed: usize) -> Result<()> {
        if acked != self.replicas.load(Ordering::Relaxed) {
            self.replicas.store(UNKNOWN, Ordering::Relaxed);
        }
        if acked < needed {
            return Err(Error::indefinite(ErrorKind::NotReplicated { acked, needed }));
        }
        Ok(())
    }

    /// Sends a call once on `connection`, with its WAIT, and takes the response time-out into account.
    pub(crate) async fn run_on(&self, connection: &Connection, call: &Call) -> Result<Value> {
        let whole = async {
            let Some((wait, needed)) = self.replica_wait(connection).await? else {
                return connection.run(call, None).await.map(|(reply, _)| reply);
            };
            let (reply, acked) = connection.run(call, Some(&wait)).await?;
            self.acknowledged(acked, needed).map(|()| reply)
        };
        self.limited(connection, whole).await
    }

    /// The outcome of `work` on `connection` within the response time-out; the connection is suspect afterwards when
    /// there is none.
    pub(crate) async fn limited<T>(
        &self,
        connection: &Connection,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let done = within(&*self.env, self.env.now() + self.response_limit(), work).await;
        let done = done.unwrap_or_else(|| Err(self.no_reply()));
        if let Err(error) = &done {
            self.blame(connection, error);
        }
        done
    }

    pub(crate) fn response_limit(&self) -> std::time::Duration {
        match self.config.replica_wait {
            ReplicaWait::None => self.config.response_timeout,
            _ => self.config.response_timeout + self.config.replica_timeout,
        }
    }

    pub(crate) fn no_reply(&self) -> Error {
        Error::indefinite(ErrorKind::ResponseTimeout(self.response_limit()))
    }

    /// Leaves the connection when `error` says that it is broken, silent, or leads to a server that is no master.
    pub(crate) fn blame(&self, connection: &Connection, error: &Error) {
        let elsewhere = match error.kind() {
            ErrorKind::Disconnected(_) | ErrorKind::ResponseTimeout(_) => true,
            ErrorKind::Server { code, .. } => code == "READONLY" || code == "MASTERDOWN",
            _ => false,
        };
        if elsewhere {
            connection.suspect();
        }
    }

    /// Runs a call that may run twice without harm, repeating it after transient and indefinite errors.
    pub(crate) async fn run_repeatable(&self, call: &Call) -> Result<Value> {
        self.repeat(Repeatable::Script(call)).await
    }

    /// As [`Router::run_repeatable`], without asking replicas to confirm.
    pub(crate) async fn run_unconfirmed(&self, call: &Call) -> Result<Value> {
        self.repeat(Repeatable::Unconfirmed(call)).await
    }

    /// Runs a plain command that may run twice without harm.
    pub(crate) async fn ask(&self, command: &Cmd) -> Result<Value> {
        self.repeat(Repeatable::Command(command)).await
    }

    /// Runs a plain command once.
    pub(crate) async fn ask_once(&self, command: &Cmd) -> Result<Value> {
        self.once(&Repeatable::Command(command)).await
    }

    async fn repeat(&self, what: Repeatable<'_>) -> Result<Value> {
        let mut attempt = 0;
        loop {
            match self.once(&what).await {
                Err(error) if self.may_repeat(&error, attempt) => {
                    pause(&*self.env, self.config.retry_delay(&*self.env, attempt)).await;
                    attempt += 1;
                }
                done => return done,
            }
        }
    }

    async fn once(&self, what: &Repeatable<'_>) -> Result<Value> {
        let connection = self.connection().await?;
        match what {
            Repeatable::Script(call) => self.run_on(&connection, call).await,
            Repeatable::Unconfirmed(call) => {
                self.limited(&connection, connection.run(call, None)).await.map(|(reply, _)| reply)
            }
            Repeatable::Command(command) => self.limited(&connection, connection.call(command)).await,
        }
    }

    fn may_repeat(&self, error: &Error, attempt: u32) -> bool {
        attempt < self.config.retry_attempts && (error.is_transient() || !error.is_definite())
    }
}

/// See [`Router::disturbance`].
pub(crate) struct Disturbance {
    position: Position,
    end: Option<End>,
}

impl Disturbance {
    pub(crate) async fn come(&self) {
        let end = async {
            match &self.end {
                Some(end) => end.come().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.position.left() => {}
            () = end => {}
        }
    }
}

enum Repeatable<'a> {
    Script(&'a Call),
    Unconfirmed(&'a Call),
    Command(&'a Cmd),
}
