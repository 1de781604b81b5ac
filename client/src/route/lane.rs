//! The path of one request: to a node, and from there to wherever cluster nodes redirect it.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, Value};

use super::connection::{Connection, Left};
use super::node::Node;
use super::redirect::{Remedy, remedy};
use super::{Confirm, NodeId, Request, Router};
use crate::env::{Monotonic, draw, pause};
use crate::error::{Error, Result};
use crate::script::Call;
use crate::wire::Slot;

/// The maximum number of redirections that one request follows.
const MOST: usize = 16;

/// The pause before a request returns to a node that it has visited. Two nodes may redirect to each
/// other while the news of a failover spreads. Drawn between the two values.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(500));

/// The node and connection that one request uses.
#[derive(Clone)]
pub(crate) struct Lane {
    pub(crate) node: Arc<Node>,
    pub(crate) connection: Arc<Connection>,
    /// Set while the slot is being moved to this node, which accepts the request only after ASKING.
    asking: bool,
}

impl Lane {
    /// Runs a call once, followed by `wait` for its replicas.
    pub(crate) async fn run(&self, call: &Call, wait: Option<&Cmd>) -> Result<(Value, usize)> {
        self.connection.run(call, wait, self.asking).await
    }

    /// See [`Node::replica_wait`].
    pub(crate) async fn replica_wait(&self) -> Result<Option<(Cmd, usize)>> {
        self.node.limited(&self.connection, pin!(self.node.replica_wait(&self.connection))).await
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
            Request::Script(call) | Request::Remembered(call, Confirm::AsConfigured) => {
                node.run_on(connection, call, *asking).await
            }
            Request::Unconfirmed(call) | Request::Remembered(call, Confirm::No) => node
                .limited(connection, pin!(connection.run(call, None, *asking)))
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
    until: Monotonic,
}

impl Router {
    /// Returns the lane to the node that has `slot`. An error is always definite: nothing was sent.
    pub(crate) async fn lane(&self, slot: Slot) -> Result<Lane> {
        self.ready().await?;
        let node = self.node(slot);
        let connection = node.connection().await?;
        Ok(Lane { node, connection, asking: false })
    }

    /// Returns the lane to the node that has the keys of `call`.
    ///
    /// # Errors
    /// As [`Router::lane`], and when no node has all of the keys.
    pub(crate) async fn lane_of(&self, call: &Call) -> Result<Lane> {
        self.check(call)?;
        self.lane(call.slot()).await
    }

    /// Refuses a call whose keys are in different slots of a cluster. A name with a brace but no
    /// hash tag, such as `a{b`, has its companion keys in other slots than its own.
    pub(super) fn check(&self, call: &Call) -> Result<()> {
        if let (true, Some((one, other))) = (self.route.divides(), call.divided()) {
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
        Trail { slot, steps: 0, visited: Vec::new(), until }
    }

    /// Sends one request, and sends it again wherever the nodes redirect it. Sets `lane` to the
    /// lane last used.
    pub(crate) async fn once(&self, slot: Slot, lane: &mut Lane, request: &Request<'_>) -> Result<Value> {
        let mut trail = self.trail(slot);
        loop {
            match lane.send(request).await {
                // Boxed because it is rare and its future is large: it must not enlarge every
                // request.
                Err(error) => Box::pin(self.follow(lane, &mut trail, error)).await?,
                done => return done,
            }
        }
    }

    /// Sets `lane` to where the request must go after `error`. Returns `error` if it allows no
    /// other lane.
    pub(crate) async fn follow(&self, lane: &mut Lane, trail: &mut Trail, error: Error) -> Result<()> {
        let remedy = remedy(&error);
        if !matches!(remedy, Remedy::Redirect(_) | Remedy::Wait) || !self.route.divides() {
            return Err(error);
        }
        if trail.steps == MOST || self.env.now() >= trail.until {
            return Err(error.made_transient());
        }
        trail.steps += 1;
        trail.visited.push(lane.node.id());
        if let Remedy::Redirect(to) = &remedy {
            let Some(id) = self.route.follow(to, &lane.connection.endpoint) else { return Err(error) };
            if trail.visited.contains(&id) {
                self.hesitate().await;
            }
            let node = self.node_of(id);
            let connection = node.connection().await?;
            *lane = Lane { node, connection, asking: to.once };
        } else {
            // The request has several keys of a slot that is being moved, some on either node. Wait
            // until all are on one node.
            self.hesitate().await;
            *lane = self.lane(trail.slot).await?;
        }
        Ok(())
    }

    async fn hesitate(&self) {
        let (least, most) = PAUSE;
        let more = u64::try_from((most - least).as_micros()).unwrap_or(0);
        pause(&*self.env, least + Duration::from_micros(draw(&*self.env, more))).await;
    }
}
