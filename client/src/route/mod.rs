//! Which server to talk to, and talking to it again when that is safe.

mod greeting;
pub(crate) mod connection;
mod moves;
mod redirect;
mod replicas;
mod kinship;
mod node;
mod retry;
mod single;
mod replica_set;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::{BoxFuture, FutureExt, select_all};

use crate::config::Config;
use crate::env::{Env, Monotonic};
use crate::error::Result;
use crate::hold::locked;
use crate::wire::Slot;
use connection::Connection;
pub(crate) use moves::Position;
use node::Disturbance;
pub(crate) use node::Node;
use redirect::Redirect;
use replica_set::ReplicaSet;
pub(crate) use retry::Confirm;
use single::Single;

/// One of the nodes of a route, as the route numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeId(u16);

impl NodeId {
    /// The node of a route that has one master.
    const ONLY: Self = Self(0);
}

/// A topology: which servers there are, and which of them has a key. Each is one file; it makes connections, and [`Node`]
/// uses them.
pub(crate) trait Route: Send + Sync + 'static {
    /// The node whose master has the keys of `slot`, as far as is known.
    fn node(&self, slot: Slot) -> NodeId;

    /// A new connection to the master of `node`, which must be there before `limit`.
    fn dial(&self, node: NodeId, limit: Monotonic) -> BoxFuture<'_, Result<Arc<Connection>>>;

    /// How many replicas of `node` are configured.
    fn replicas(&self, _node: NodeId) -> usize {
        0
    }

    /// Whether keys of different slots must not be in one script.
    fn divides(&self) -> bool {
        false
    }

    /// A server says that another one has a slot. True when requests follow there, so that asking again helps.
    fn follows(&self, _to: &Redirect) -> bool {
        false
    }

    /// The command that publishes a message, as scripts are told.
    fn publish(&self) -> &'static str {
        "PUBLISH"
    }

    /// Whether the servers that answer until `limit` belong together.
    ///
    /// # Errors
    /// When they do not.
    fn check(&self, _limit: Monotonic) -> BoxFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// The way to the masters of one client.
pub(crate) struct Router {
    env: Arc<dyn Env>,
    config: Arc<Config>,
    route: Arc<dyn Route>,
    /// Those that were used.
    nodes: Mutex<BTreeMap<NodeId, Arc<Node>>>,
    closed: Arc<AtomicBool>,
}

impl Router {
    /// The route that the configuration describes.
    pub(crate) fn new(env: Arc<dyn Env>, config: Arc<Config>) -> Self {
        let route: Arc<dyn Route> = match config.endpoints.as_slice() {
            [only] => Arc::new(Single::new(env.clone(), only.clone())),
            several => Arc::new(ReplicaSet::new(env.clone(), several.to_vec())),
        };
        Self::with(env, config, route)
    }

    fn with(env: Arc<dyn Env>, config: Arc<Config>, route: Arc<dyn Route>) -> Self {
        Self { env, config, route, nodes: Mutex::default(), closed: Arc::default() }
    }

    /// The node whose master has the keys of `slot`.
    pub(crate) fn node(&self, slot: Slot) -> Arc<Node> {
        let id = self.route.node(slot);
        let new = || {
            let (env, config, route) = (self.env.clone(), self.config.clone(), self.route.clone());
            Node::new(id, env, config, route, self.closed.clone())
        };
        locked(&self.nodes).entry(id).or_insert_with(new).clone()
    }

    /// The slots that `slot` may share a script with, by one that stands for them all.
    pub(crate) fn together(&self, slot: Slot) -> Slot {
        if self.route.divides() { slot } else { Slot(0) }
    }

    /// The command that publishes a message, as scripts are told.
    pub(crate) fn publish(&self) -> &'static str {
        self.route.publish()
    }

    /// Connects, and looks whether the servers that can be reached belong together.
    pub(crate) async fn connect(&self) -> Result<()> {
        self.node(Slot(0)).connection().await?;
        self.route.check(self.env.now() + self.config.response_timeout).await
    }

    /// Lets go of all connections, and makes none any more.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        for node in locked(&self.nodes).values() {
            node.close();
        }
    }

    /// Completes when a server may have come back with other data: a connection in use has ended, or another one is made.
    pub(crate) fn disturbance(&self) -> impl Future<Output = ()> + Send + 'static {
        let all: Vec<Disturbance> = locked(&self.nodes).values().map(|node| node.disturbance()).collect();
        async move {
            if all.is_empty() {
                return std::future::pending().await;
            }
            select_all(all.iter().map(|one| one.come().boxed())).await;
        }
    }
}
