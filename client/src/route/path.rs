//! The path of one request: to a node, and from there to wherever cluster nodes redirect it.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use redis::Value;

use super::confirmation::Confirmation;
use super::connection::{Connection, Left};
use super::node::Node;
use super::redirect::{MasterAddress, Remedy, master, remedy};
use super::{Confirm, NodeId, Request, Router};
use crate::endpoint::Endpoint;
use crate::env::{Monotonic, draw, pause};
use crate::error::{Error, Result};
use crate::script::Call;
use crate::wire::Slot;

/// The maximum number of redirections that one request follows.
const MOST: usize = 16;

/// The maximum number of servers that one request follows to a master.
const MOST_MASTERS: usize = 4;

/// The pause before a request returns to a node that it has visited. Two nodes may redirect to each
/// other while the news of a failover spreads. Drawn between the two values.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(500));

/// The node and connection that one request uses.
#[derive(Clone)]
pub(crate) struct RequestPath {
    pub(crate) node: Arc<Node>,
    pub(crate) connection: Arc<Connection>,
    /// Set while the slot is being moved to this node, which accepts the request only after ASKING.
    asking: bool,
}

impl RequestPath {
    /// Runs a call once, followed by the commands of its confirmation.
    pub(crate) async fn run(
        &self,
        call: &Call,
        confirmation: Option<&Confirmation>,
    ) -> Result<(Value, Vec<Value>)> {
        let then = confirmation.map(Confirmation::commands).unwrap_or_default();
        self.connection.run(call, then, self.asking).await
    }

    /// See [`Node::confirmation`].
    pub(crate) async fn confirmation(&self) -> Result<Option<Confirmation>> {
        self.node.limited(&self.connection, pin!(self.node.confirmation(&self.connection))).await
    }

    /// See [`Node::retire_on`].
    pub(crate) fn retire_on(&self, error: Error) -> Error {
        self.node.retire_on(&self.connection, error)
    }

    /// See [`Node::verified`].
    pub(crate) fn verified<T>(&self, done: Result<T>) -> Result<T> {
        self.node.verified(&self.connection, done)
    }

    /// See [`Node::replaced`].
    pub(crate) fn replaced(&self) -> Option<String> {
        self.node.replaced(&self.connection)
    }

    pub(super) fn leave(&self) -> Left {
        self.connection.leave()
    }

    async fn send(&self, request: &Request<'_>) -> Result<Value> {
        let Self { node, connection, asking } = self;
        match request {
            Request::Script(call) => node.run_on(connection, call, *asking, false).await,
            Request::Remembered(call, Confirm::AsConfigured) => {
                node.run_on(connection, call, *asking, true).await
            }
            Request::Unconfirmed(call) | Request::Remembered(call, Confirm::No) => node
                .limited(connection, pin!(connection.run(call, &[], *asking)))
                .await
                .map(|(reply, _)| reply),
            Request::Question(command) => {
                node.limited(connection, pin!(connection.ask(command, *asking))).await
            }
        }
    }
}

/// The nodes that one request has visited.
pub(crate) struct Trail {
    slot: Slot,
    steps: usize,
    visited: Vec<NodeId>,
    /// The servers that were replicas, for routes that follow those to their masters.
    replicas: Vec<Endpoint>,
    until: Monotonic,
}

impl Router {
    /// Returns the path to the node that has `slot`. An error is always definite: nothing was sent.
    pub(crate) async fn path(&self, slot: Slot) -> Result<RequestPath> {
        self.ready().await?;
        let node = self.node(slot);
        let connection = node.connection().await?;
        Ok(RequestPath { node, connection, asking: false })
    }

    /// Returns the path to the node that has the keys of `call`.
    ///
    /// # Errors
    /// As [`Router::path`], and when no node has all of the keys.
    pub(crate) async fn path_of(&self, call: &Call) -> Result<RequestPath> {
        self.check(call)?;
        self.path(call.slot()).await
    }

    /// Refuses a call whose keys are in different slots of a cluster. A name with a brace but no
    /// hash tag, such as `a{b`, has its companion keys in other slots than its own.
    pub(super) fn check(&self, call: &Call) -> Result<()> {
        if self.route.divides()
            && let Some((one, other)) = call.divided()
        {
            return Err(Error::config(format!(
                "a cluster keeps {one} and {other} in different slots, and no script has both: name the lock without braces, or \
                 with a hash tag"
            )));
        }
        Ok(())
    }

    /// Starts a request. At most half of the response timeout may go into finding the node.
    pub(crate) fn trail(&self, slot: Slot) -> Trail {
        let until = self.env.now() + self.config.response_timeout / 2;
        Trail { slot, steps: 0, visited: Vec::new(), replicas: Vec::new(), until }
    }

    /// Sends one request, and sends it again wherever the nodes redirect it. Sets `path` to the
    /// path last used.
    pub(crate) async fn once(
        &self,
        slot: Slot,
        path: &mut RequestPath,
        request: &Request<'_>,
    ) -> Result<Value> {
        let mut trail = self.trail(slot);
        loop {
            match path.send(request).await {
                // Boxed because it is rare and its future is large: it must not enlarge every
                // request.
                Err(error) => Box::pin(self.follow(path, &mut trail, error, request.key())).await?,
                done => return done,
            }
        }
    }

    /// Sets `path` to where the request must go after `error`. Returns `error` if it allows no
    /// other path. `key` is a key of the request, if it is a script.
    pub(crate) async fn follow(
        &self,
        path: &mut RequestPath,
        trail: &mut Trail,
        error: Error,
        key: Option<&str>,
    ) -> Result<()> {
        if self.route.follows_masters() {
            return Box::pin(self.follow_master(path, trail, error, key)).await;
        }
        let remedy = remedy(&error);
        if !matches!(remedy, Remedy::Redirect(_) | Remedy::Wait) || !self.route.divides() {
            return Err(error);
        }
        if trail.steps == MOST || self.env.now() >= trail.until {
            return Err(error.made_transient());
        }
        trail.steps += 1;
        trail.visited.push(path.node.id());
        if let Remedy::Redirect(to) = &remedy {
            let Some(id) = self.route.follow(to, &path.connection.endpoint) else { return Err(error) };
            if trail.visited.contains(&id) {
                self.hesitate().await;
            }
            let node = self.node_of(id);
            let connection = node.connection().await?;
            *path = RequestPath { node, connection, asking: to.once };
        } else {
            // The request has several keys of a slot that is being moved, some on either node. Wait
            // until all are on one node.
            self.hesitate().await;
            *path = self.path(trail.slot).await?;
        }
        Ok(())
    }

    /// Sets `path` to the master of the server that has refused the request because it is a
    /// replica.
    async fn follow_master(
        &self,
        path: &mut RequestPath,
        trail: &mut Trail,
        error: Error,
        key: Option<&str>,
    ) -> Result<()> {
        let Some(named) = named_master(path, &error, key).await else { return Err(error) };
        let replica = path.connection.endpoint.clone();
        trail.replicas.push(replica.clone());
        let is_loop = trail.replicas.iter().any(|replica| replica.is_at(&named.host, named.port));
        if is_loop
            || trail.replicas.len() > MOST_MASTERS
            || self.env.now() >= trail.until
            || !self.route.follow_master(&named, &replica)
        {
            return Err(error);
        }
        path.connection.retire();
        *path = self.path(trail.slot).await?;
        Ok(())
    }

    async fn hesitate(&self) {
        let (least, most) = PAUSE;
        let more = u64::try_from((most - least).as_micros()).unwrap_or(0);
        pause(&*self.env, least + Duration::from_micros(draw(&*self.env, more))).await;
    }
}

/// Returns the master that the server of `path` names after it has refused a request with `error`.
///
/// A server refuses the commands of a script with READONLY, which names no master. Reading the
/// script's key with a plain command does.
async fn named_master(path: &RequestPath, error: &Error, key: Option<&str>) -> Option<MasterAddress> {
    if let named @ Some(_) = master(error) {
        return named;
    }
    let key = key.filter(|_| error.is_server("READONLY") && path.connection.is_redirected())?;
    let mut get = redis::cmd("GET");
    get.arg(key);
    let asked = path.node.limited(&path.connection, pin!(path.connection.call(&get))).await;
    asked.err().as_ref().and_then(master)
}
