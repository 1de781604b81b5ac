//! Which server to talk to, and talking to it again when that is safe.

mod greeting;
pub(crate) mod connection;
mod kinship;
mod moves;
mod replicas;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use redis::{Cmd, Value};
use tokio::sync::Mutex;

use crate::config::{Config, ReplicaWait, millis};
use crate::env::{Env, Monotonic, pause, within};
use crate::error::{Error, ErrorKind, Result};
use crate::script::Call;
use connection::{Connection, End, Left, OnPush, refused};
use moves::Moves;
pub(crate) use moves::Position;

/// The number of connected replicas is not known (any more).
const UNKNOWN: usize = usize::MAX;

/// The way to the master. One connection at a time is used for new requests; it is made when it is needed.
///
/// Before requests take a new connection, the one before is ended on the server. Whatever was left on it without a reply
/// happens before anything that is sent later, or never: it is what makes sending again safe.
pub(crate) struct Router {
    env: Arc<dyn Env>,
    config: Arc<Config>,
    routes: Mutex<Routes>,
    /// How many tries to connect have failed.
    failures: AtomicU64,
    /// Tells the subscriber of every new connection, so that it can follow to a new master.
    moves: Arc<Moves>,
    replicas: AtomicUsize,
    closed: AtomicBool,
}

#[derive(Default)]
struct Routes {
    current: Option<Arc<Connection>>,
    /// To be ended before requests take a new connection to the same server; at most one for each endpoint.
    left: Vec<Left>,
    /// Why the last try to connect failed, if it did.
    failure: Option<Error>,
}

impl Router {
    pub(crate) fn new(env: Arc<dyn Env>, config: Arc<Config>) -> Self {
        Self {
            env,
            config,
            routes: Mutex::default(),
            failures: AtomicU64::new(0),
            moves: Arc::default(),
            replicas: AtomicUsize::new(UNKNOWN),
            closed: AtomicBool::new(false),
        }
    }

    /// The connection for new requests. An error is always definite: nothing was sent.
    pub(crate) async fn connection(&self) -> Result<Arc<Connection>> {
        let failures = self.failures.load(Ordering::Acquire);
        let mut routes = self.routes.lock().await;
        let routes = &mut *routes;
        if self.closed.load(Ordering::Acquire) {
            routes.current = None;
            return Err(Error::definite(ErrorKind::Shutdown));
        }
        // Those who waited for somebody else's connection share what became of it, instead of trying one after another.
        if let Some(error) = &routes.failure
            && failures != self.failures.load(Ordering::Acquire)
        {
            return Err(error.clone());
        }
        let connected = self.connect(routes).await;
        routes.failure = connected.as_ref().err().cloned();
        if connected.is_err() {
            self.failures.fetch_add(1, Ordering::AcqRel);
        }
        connected
    }

    async fn connect(&self, routes: &mut Routes) -> Result<Arc<Connection>> {
        if let Some(connection) = routes.current.as_ref().filter(|connection| connection.is_fit()) {
            return Ok(connection.clone());
        }
        if let Some(unfit) = routes.current.take() {
            routes.left.push(unfit.leave());
        }
        self.replicas.store(UNKNOWN, Ordering::Relaxed);
        let limit = self.env.now() + self.config.connect_timeout;
        let connection = match self.config.endpoints.as_slice() {
            [only] => Connection::open(&self.env, only, None, limit).await?,
            several => replicas::find_master(&self.env, several, limit).await?,
        };
        fence(&*self.env, limit, &connection, &mut routes.left).await?;
        routes.current = Some(connection.clone());
        self.moves.moved();
        Ok(connection)
    }

    /// Lets go of the connection, and makes none any more.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        if let Ok(mut routes) = self.routes.try_lock() {
            routes.current = None;
        }
        self.moves.moved();
    }

    /// As [`Router::connection`], after a look at whether the endpoints that can be reached belong together.
    pub(crate) async fn connect_all(&self) -> Result<()> {
        self.connection().await?;
        if self.config.endpoints.len() > 1 {
            let limit = self.env.now() + self.config.response_timeout;
            kinship::check(&self.env, &self.config.endpoints, limit).await?;
        }
        Ok(())
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
        let routes = self.routes.try_lock().ok();
        let end = routes.and_then(|routes| routes.current.as_ref().map(|connection| connection.end()));
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

    /// Runs a call that may run twice without harm, within the time of a call of the application, repeating it after transient errors, and after lost replies once it
    /// is certain that the earlier request will not be obeyed later.
    pub(crate) async fn run_repeatable(&self, call: &Call) -> Result<Value> {
        self.in_time(self.repeat(What::Script(call))).await.map(|(reply, _)| reply)
    }

    /// As [`Router::run_repeatable`], for as long as its repeats take, and without asking replicas to confirm.
    pub(crate) async fn run_unconfirmed(&self, call: &Call) -> Result<Value> {
        self.repeat(What::Unconfirmed(call)).await.map(|(reply, _)| reply)
    }

    /// As [`Router::run_repeatable`], of a call that the server itself remembers for as long as that is of use. It is
    /// repeated in any case. Also says whether the reply is final: no request of this call can be obeyed later.
    pub(crate) async fn run_remembered(&self, call: &Call, confirm: Confirm) -> Result<(Value, bool)> {
        self.repeat(What::Remembered(call, confirm)).await
    }

    /// Runs a plain command that changes nothing, within the time of a call of the application.
    pub(crate) async fn ask(&self, command: &Cmd) -> Result<Value> {
        self.in_time(self.repeat(What::Question(command))).await.map(|(reply, _)| reply)
    }

    /// The outcome of `work` within the time of a call of the application.
    async fn in_time<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let time = self.config.call_timeout;
        let done = within(&*self.env, self.env.now() + time, work).await;
        done.unwrap_or_else(|| Err(Error::indefinite(ErrorKind::ResponseTimeout(time))))
    }

    /// Runs a plain command once.
    pub(crate) async fn ask_once(&self, command: &Cmd) -> Result<Value> {
        let connection = self.connection().await?;
        self.once(&connection, &What::Question(command)).await
    }

    async fn repeat(&self, what: What<'_>) -> Result<(Value, bool)> {
        let mut attempt = 0;
        // The connections that took the request and brought no reply, and the last error of one.
        let (mut unanswered, mut lost): (Vec<Left>, Option<Error>) = (Vec::new(), None);
        loop {
            let done = match self.connection().await {
                Ok(connection) => {
                    let is_final = unanswered.iter().all(Left::is_fenced);
                    if let (false, What::Script(_) | What::Unconfirmed(_), Some(error)) =
                        (is_final, &what, &lost)
                    {
                        return Err(error.clone());
                    }
                    let done = self.once(&connection, &what).await;
                    if let Err(error) = &done
                        && error.is_lost_reply()
                    {
                        unanswered.push(connection.leave());
                        lost = Some(error.clone());
                    }
                    done.map(|reply| (reply, is_final))
                }
                Err(error) => Err(error),
            };
            match done {
                Err(error) if self.may_repeat(&error, attempt) => {
                    pause(&*self.env, self.config.retry_delay(&*self.env, attempt)).await;
                    attempt += 1;
                }
                // What was sent before may have been obeyed, whatever became of the last attempt.
                Err(error) if lost.is_some() => return Err(error.made_indefinite()),
                done => return done,
            }
        }
    }

    async fn once(&self, connection: &Connection, what: &What<'_>) -> Result<Value> {
        match what {
            What::Script(call) | What::Remembered(call, Confirm::AsConfigured) => {
                self.run_on(connection, call).await
            }
            What::Unconfirmed(call) | What::Remembered(call, Confirm::No) => {
                self.limited(connection, connection.run(call, None)).await.map(|(reply, _)| reply)
            }
            What::Question(command) => self.limited(connection, connection.call(command)).await,
        }
    }

    fn may_repeat(&self, error: &Error, attempt: u32) -> bool {
        attempt < self.config.retry_attempts && (error.is_transient() || error.is_lost_reply())
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

/// Whether the replicas that the configuration asks for must confirm a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Confirm {
    AsConfigured,
    No,
}

enum What<'a> {
    Script(&'a Call),
    Unconfirmed(&'a Call),
    Remembered(&'a Call, Confirm),
    Question(&'a Cmd),
}

/// Ends, from `connection`, what was left on the same server.
async fn fence(env: &dyn Env, limit: Monotonic, connection: &Connection, left: &mut Vec<Left>) -> Result<()> {
    while let Some(at) = left.iter().position(|left| left.endpoint.is_same_place(&connection.endpoint)) {
        let ended = within(env, limit, connection.fence(&left[at])).await;
        ended
            .unwrap_or_else(|| Err(refused(&connection.endpoint, "timed out")))
            .map_err(|error| refused(&connection.endpoint, &error.to_string()))?;
        left.swap_remove(at);
    }
    Ok(())
}
