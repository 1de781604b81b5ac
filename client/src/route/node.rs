//! One node that requests are sent to: its connection, made on demand, and its replicas.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::{Either, select};
use redis::Value;
use tokio::sync::Mutex;

use super::confirmation::{self, Confirmation};
use super::connection::{Connection, End, Left, OnPush, refused};
use super::moves::{Moves, Position};
use super::redirect::{Remedy, remedy};
use super::{NodeId, Route, replicas};
use crate::config::{Config, Durability, ReplicaWait};
use crate::endpoint::Endpoint;
use crate::env::{Env, Monotonic, within};
use crate::error::{Error, ErrorKind, Result};
use crate::script::Call;

/// The number of connected replicas is unknown.
const UNKNOWN: usize = usize::MAX;

/// The time after which a server that has not accepted a connection or replied may be gone. The
/// route then looks for another master.
pub(super) const SLOW: Duration = Duration::from_millis(250);

/// The time between two searches for another master while a server does not reply.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The time that a replaced server has to reply to a request. A cluster node that is alive refuses
/// the request within that time, so that the request certainly was not executed. Waiting for a dead
/// one would take the whole response timeout.
const LAST_REPLY: Duration = Duration::from_millis(250);

/// The path to the master of one node of a route. New requests use one connection at a time, which
/// is made on demand.
///
/// Before requests use a new connection, the old one is ended on the server. So a request that was
/// left without a reply is executed before any later one, or never. This is what makes a retry
/// safe.
pub(crate) struct Node {
    id: NodeId,
    env: Arc<dyn Env>,
    config: Arc<Config>,
    route: Arc<dyn Route>,
    connections: Mutex<Connections>,
    /// The number of failed attempts to connect.
    failures: AtomicU64,
    /// Notifies the subscriber of each new connection, so that it can follow to a new master.
    moves: Arc<Moves>,
    replicas: AtomicUsize,
    /// Set once the server of the connection has shown that it can confirm syncs.
    syncs: AtomicBool,
    closed: Arc<AtomicBool>,
}

#[derive(Default)]
struct Connections {
    current: Option<Arc<Connection>>,
    /// Connections to end before requests use a new connection to the same server; at most one for
    /// each endpoint.
    left: Vec<Left>,
    /// The error of the last attempt to connect, if it failed.
    failure: Option<Error>,
}

impl Node {
    pub(super) fn new(
        id: NodeId,
        env: Arc<dyn Env>,
        config: Arc<Config>,
        route: Arc<dyn Route>,
        closed: Arc<AtomicBool>,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            env,
            config,
            route,
            connections: Mutex::default(),
            failures: AtomicU64::new(0),
            moves: Arc::default(),
            replicas: AtomicUsize::new(UNKNOWN),
            syncs: AtomicBool::new(false),
            closed,
        })
    }

    pub(crate) fn id(&self) -> NodeId {
        self.id
    }

    /// Returns the connection for new requests. An error is always definite: nothing was sent.
    pub(crate) async fn connection(&self) -> Result<Arc<Connection>> {
        let failures = self.failures.load(Ordering::Acquire);
        let mut connections = self.connections.lock().await;
        let connections = &mut *connections;
        if self.closed.load(Ordering::Acquire) {
            connections.current = None;
            return Err(Error::definite(ErrorKind::Closed));
        }
        // Requests that waited for the same attempt to connect share its outcome instead of each
        // trying again.
        if let Some(error) = &connections.failure
            && failures != self.failures.load(Ordering::Acquire)
        {
            return Err(error.clone());
        }
        if let Some(connection) = &connections.current
            && connection.is_usable()
            && self.leads_to_master(connection)
        {
            connections.failure = None;
            return Ok(connection.clone());
        }
        // Boxed because it is rare and its future is large: it must not enlarge every request.
        let connected = Box::pin(self.connect(connections)).await;
        connections.failure = connected.as_ref().err().cloned();
        if connected.is_err() {
            self.failures.fetch_add(1, Ordering::AcqRel);
        }
        connected
    }

    async fn connect(&self, connections: &mut Connections) -> Result<Arc<Connection>> {
        if let Some(retired) = connections.current.take() {
            connections.left.push(retired.leave());
        }
        self.replicas.store(UNKNOWN, Ordering::Relaxed);
        self.syncs.store(false, Ordering::Relaxed);
        let limit = self.env.now() + self.config.connect_timeout;
        let connection = self.route.dial(self.id, limit).await.inspect_err(|_| self.route.suspect())?;
        fence(&*self.env, limit, &connection, &mut connections.left).await?;
        connections.current = Some(connection.clone());
        self.moves.moved();
        Ok(connection)
    }

    /// Returns true if the server of `connection` still is the master, as far as is known.
    fn leads_to_master(&self, connection: &Connection) -> bool {
        self.route.leads_to(self.id, &connection.endpoint)
    }

    /// Opens a second connection to the same server, for subscriptions.
    pub(crate) async fn subscriber(&self, on_push: OnPush) -> Result<Arc<Connection>> {
        let master = self.connection().await?;
        let limit = self.env.now() + self.config.connect_timeout;
        Connection::open(&self.env, &master.endpoint, Some(on_push), limit).await
    }

    /// Returns the current position: a waiter can await that requests use a new connection.
    pub(crate) fn position(&self) -> Position {
        self.moves.position()
    }

    /// Returns the events after which the server may have other data: the connection in use ends,
    /// or a new one is made.
    pub(super) fn disturbance(&self) -> Disturbance {
        let position = self.position();
        // If the mutex is taken, a new connection is being made.
        let connections = self.connections.try_lock().ok();
        let current = connections.as_ref().and_then(|connections| connections.current.as_ref());
        Disturbance {
            position,
            end: current.map(|connection| connection.end()).filter(|end| !end.has_come()),
        }
    }

    /// Returns the confirmation that a change needs. `None` if it needs none.
    ///
    /// # Errors
    /// If the server certainly cannot confirm a change.
    pub(crate) async fn confirmation(&self, connection: &Connection) -> Result<Option<Confirmation>> {
        if self.config.durability != Durability::Memory && !self.syncs.load(Ordering::Relaxed) {
            Box::pin(confirmation::can_sync(connection)).await?;
            self.syncs.store(true, Ordering::Relaxed);
        }
        let (needed, connected) = self.replicas_needed(connection).await?;
        Ok(Confirmation::of(&self.config, needed, connected))
    }

    /// Returns the number of replicas that must confirm a change, and that of connected ones.
    async fn replicas_needed(&self, connection: &Connection) -> Result<(usize, usize)> {
        if self.config.replica_wait == ReplicaWait::None {
            return Ok((0, 0));
        }
        let mut connected = self.replicas.load(Ordering::Relaxed);
        if connected == UNKNOWN || connected == 0 {
            // Ask again each time it is zero, or replicas that join later would never be waited
            // for.
            connected = Box::pin(replicas::connected_replicas(connection)).await?.unwrap_or(0);
            self.replicas.store(connected, Ordering::Relaxed);
        }
        let needed = replicas::needed(self.config.replica_wait, self.route.replicas(self.id), connected);
        Ok((needed, connected))
    }

    /// Checks the replies to the commands of `confirmation`. If the number of acknowledgements
    /// differs from the known number of replicas, that number is asked for again.
    pub(crate) fn confirmed(
        &self,
        endpoint: &Endpoint,
        confirmation: &Confirmation,
        replies: &[Value],
    ) -> Result<()> {
        let acked = confirmation.acked(replies);
        if acked.is_some_and(|acked| acked != self.replicas.load(Ordering::Relaxed)) {
            self.replicas.store(UNKNOWN, Ordering::Relaxed);
        }
        confirmation.check(replies, endpoint).inspect_err(|error| {
            // The server or its replicas may have changed.
            self.syncs.store(false, Ordering::Relaxed);
            if matches!(error.kind(), ErrorKind::NotSynced { .. }) {
                self.replicas.store(UNKNOWN, Ordering::Relaxed);
            }
        })
    }

    /// Sends a call once on `connection`, followed by the commands of its confirmation, within the
    /// response timeout. A call that the server remembers, such as a release, is sent even if the
    /// server cannot confirm it.
    pub(super) async fn run_on(
        &self,
        connection: &Connection,
        call: &Call,
        asking: bool,
        is_remembered: bool,
    ) -> Result<Value> {
        let whole = pin!(async {
            let confirmation = match self.confirmation(connection).await {
                Err(error) if is_remembered && matches!(error.kind(), ErrorKind::NoAppendOnlyFile { .. }) => {
                    connection.run(call, &[], asking).await?;
                    return Err(error.made_indefinite());
                }
                confirmation => confirmation?,
            };
            let Some(confirmation) = confirmation else {
                return connection.run(call, &[], asking).await.map(|(reply, _)| reply);
            };
            let (reply, replies) = connection.run(call, confirmation.commands(), asking).await?;
            self.confirmed(&connection.endpoint, &confirmation, &replies).map(|()| reply)
        });
        self.limited(connection, whole).await
    }

    /// Returns the outcome of `work` on `connection` within the response timeout. Retires the
    /// connection if there is none.
    pub(crate) async fn limited<T>(
        &self,
        connection: &Connection,
        work: impl Future<Output = Result<T>> + Unpin,
    ) -> Result<T> {
        let done = self.reply_in_time(|| self.replaced(connection), work).await;
        self.verified(connection, done)
    }

    /// Returns the outcome of `work` within the response timeout. Ends earlier, soon after the
    /// server that was asked has been replaced; `replaced` then names that server.
    pub(crate) async fn reply_in_time<T>(
        &self,
        replaced: impl Fn() -> Option<String>,
        work: impl Future<Output = Result<T>> + Unpin,
    ) -> Result<T> {
        let limit = self.env.now() + self.config.response_limit();
        match self.route.changes() {
            None => {
                let done = within(&*self.env, limit, work).await;
                done.unwrap_or_else(|| Err(self.config.no_reply()))
            }
            // Boxed because its future is large; routes with a fixed server do not need it.
            Some(changes) => Box::pin(self.reply_until_replaced(changes, replaced, limit, work)).await,
        }
    }

    async fn reply_until_replaced<T>(
        &self,
        changes: &Arc<Moves>,
        replaced: impl Fn() -> Option<String>,
        limit: Monotonic,
        mut work: impl Future<Output = Result<T>> + Unpin,
    ) -> Result<T> {
        let confirmed = self.config.confirmation_limit();
        let mut slow = self.env.now() + SLOW + confirmed;
        // The server that was replaced, and the time until which it may reply.
        let mut last: Option<(String, Monotonic)> = None;
        loop {
            // Take the position before checking, or a change in between is lost.
            let layout = changes.position();
            let now = self.env.now();
            if now >= limit {
                return Err(self.config.no_reply());
            }
            // The request may be at another server by now, because cluster nodes redirect requests.
            last = replaced().map(|server| {
                let same = last.take().filter(|(known, _)| *known == server);
                same.unwrap_or_else(|| (server, now + LAST_REPLY + confirmed))
            });
            let next = match &last {
                Some((server, until)) if now >= *until => {
                    let reason = format!("it was given up, for {server} is no master any more");
                    return Err(Error::indefinite(ErrorKind::Disconnected(reason)));
                }
                Some((_, until)) => *until,
                None => {
                    if now >= slow {
                        self.route.suspect();
                        slow = now + LOOK_AGAIN;
                    }
                    slow
                }
            };
            let changed = pin!(layout.left());
            if let Some(Either::Left((done, _))) =
                within(&*self.env, next.min(limit), select(&mut work, changed)).await
            {
                return done;
            }
        }
    }

    /// Returns the server of `connection` if, as far as is known, it is no longer the master.
    pub(crate) fn replaced(&self, connection: &Connection) -> Option<String> {
        (!self.leads_to_master(connection)).then(|| connection.endpoint.to_string())
    }

    /// Checks a reply on `connection`. If the server has been replaced since, the reply says
    /// nothing about the data of the new master, and an error is returned.
    pub(crate) fn verified<T>(&self, connection: &Connection, done: Result<T>) -> Result<T> {
        let done = done.and_then(|done| match self.replaced(connection) {
            Some(endpoint) => Err(Error::indefinite(ErrorKind::Replaced { endpoint })),
            None => Ok(done),
        });
        done.map_err(|error| self.retire_on(connection, error))
    }

    /// Handles what `error` says about the route. Retires a connection that is broken, silent, or
    /// leads to a server that is no master.
    pub(crate) fn retire_on(&self, connection: &Connection, error: Error) -> Error {
        match remedy(&error) {
            // A redirection concerns only the request that got it.
            Remedy::None | Remedy::Redirect(_) => {}
            Remedy::Wait | Remedy::Look => self.route.suspect(),
            Remedy::Retire => {
                connection.retire();
                self.route.suspect();
            }
        }
        error
    }

    /// Drops the connection.
    pub(super) fn close(&self) {
        if let Ok(mut connections) = self.connections.try_lock() {
            connections.current = None;
        }
        self.moves.moved();
    }
}

/// See [`super::Router::disturbance`].
pub(super) struct Disturbance {
    position: Position,
    end: Option<End>,
}

impl Disturbance {
    pub(super) async fn come(&self) {
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

/// Ends, through `connection`, the connections left on the same server.
async fn fence(env: &dyn Env, limit: Monotonic, connection: &Connection, left: &mut Vec<Left>) -> Result<()> {
    while let Some(at) = left.iter().position(|left| left.endpoint.is_same_place(&connection.endpoint)) {
        let ended = within(env, limit, pin!(connection.fence(&left[at]))).await;
        ended
            .unwrap_or_else(|| Err(refused(&connection.endpoint, "timed out")))
            .map_err(|error| refused(&connection.endpoint, &error.to_string()))?;
        left.swap_remove(at);
    }
    Ok(())
}
