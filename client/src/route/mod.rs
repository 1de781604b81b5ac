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

    /// The command that publishes a message, which scripts get as an argument.
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
    /// The nodes that were used.
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

    /// The command that publishes a message, which scripts get as an argument.
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

/// A route whose keys are divided among nodes, as those of a cluster are: everything above it goes by the slot.
#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU16, Ordering};
    use std::time::Duration;

    use lockstorm_sim::TestServer;

    use super::*;
    use crate::client::Client;
    use crate::endpoint::Endpoint;
    use crate::env::{TokioEnv, pause};
    use crate::error::{Error, ErrorKind};
    use crate::hold::ClientContext;
    use crate::observer::Observers;
    use crate::session::Session;

    const WATCHDOG: Duration = Duration::from_millis(600);

    /// Even slots are on the first node and odd ones on the second.
    struct Halves {
        env: Arc<dyn Env>,
        endpoints: [Endpoint; 2],
        /// The slot of the last redirection.
        followed: AtomicU16,
    }

    impl Route for Halves {
        fn node(&self, slot: Slot) -> NodeId {
            NodeId(slot.0 % 2)
        }

        fn dial(&self, node: NodeId, limit: Monotonic) -> BoxFuture<'_, Result<Arc<Connection>>> {
            Box::pin(Connection::open(&self.env, &self.endpoints[usize::from(node.0)], None, limit))
        }

        fn divides(&self) -> bool {
            true
        }

        fn follows(&self, to: &Redirect) -> bool {
            self.followed.store(to.slot.0, Ordering::Relaxed);
            !to.once
        }
    }

    struct Cluster([TestServer; 2]);

    impl Cluster {
        async fn start() -> Self {
            Self([TestServer::start().await.unwrap(), TestServer::start().await.unwrap()])
        }

        fn client(&self) -> (Client, Arc<Halves>) {
            let env: Arc<dyn Env> = Arc::new(TokioEnv::current().unwrap());
            let endpoints = [&self.0[0], &self.0[1]].map(|server| Endpoint::parse(&server.url()).unwrap());
            let config =
                Config { endpoints: endpoints.to_vec(), watchdog_timeout: WATCHDOG, ..Config::default() };
            let route = Arc::new(Halves { env: env.clone(), endpoints, followed: AtomicU16::new(0) });
            let ctx = ClientContext {
                env: env.clone(),
                observer: Arc::<Observers>::default(),
                ledger: Arc::default(),
                work: Arc::default(),
                call_timeout: config.call_timeout,
            };
            let config = Arc::new(config);
            let router = Router::with(env, config.clone(), route.clone());
            (Client { session: Session::with(ctx, config, "client".to_owned(), router) }, route)
        }

        /// The locks that each node has.
        async fn keys(&self) -> [Vec<String>; 2] {
            let mut found = [Vec::new(), Vec::new()];
            for (server, found) in self.0.iter().zip(&mut found) {
                let client = redis::Client::open(server.url()).unwrap();
                let mut connection = client.get_multiplexed_async_connection().await.unwrap();
                *found = redis::cmd("KEYS").arg("stock*").query_async(&mut connection).await.unwrap();
                found.sort();
            }
            found
        }
    }

    fn names() -> (Vec<String>, [Vec<String>; 2]) {
        let all: Vec<_> = (0..6).map(|n| format!("stock{n}")).collect();
        let (even, odd): (Vec<_>, Vec<_>) =
            all.iter().cloned().partition(|name| Slot::of(name).0.is_multiple_of(2));
        assert!(even.len() > 1 && odd.len() > 1, "several on each node: {even:?} {odd:?}");
        (all, [even, odd])
    }

    #[tokio::test]
    async fn locks_of_different_nodes_are_renewed_waited_for_and_released_where_they_are() {
        let cluster = Cluster::start().await;
        let ((client, _), (all, by_node)) = (cluster.client(), names());
        let mut guards = Vec::new();
        for name in &all {
            guards.push(client.lock(name).acquire().await.unwrap());
        }
        assert_eq!(cluster.keys().await, by_node);
        // Renewed: each node gets scripts with its own keys alone. Another would find none of the others, and lose them.
        pause(&TokioEnv::current().unwrap(), 2 * WATCHDOG).await;
        assert!(guards.iter().all(crate::Guard::is_valid), "{guards:?}");
        assert_eq!(cluster.keys().await, by_node);

        // The waiters sleep for as long as the leases last, unless a message of their own node wakes them.
        let waiting =
            futures_util::future::join_all(all.iter().map(|name| client.lock(name).acquire().into_future()));
        let release = async {
            for guard in guards {
                guard.release().await.unwrap();
            }
        };
        let (woken, ()) = futures_util::future::join(waiting, release).await;
        let woken: Result<Vec<_>> = woken.into_iter().collect();
        assert_eq!(woken.unwrap().len(), all.len());
        client.close().await.unwrap();
        assert_eq!(cluster.keys().await, [Vec::<String>::new(), Vec::new()]);
    }

    /// `MOVED` makes a request worth repeating, where the route goes along; the connection serves other slots still.
    #[tokio::test]
    async fn a_redirection_that_the_route_follows_is_transient() {
        let cluster = Cluster::start().await;
        let (client, route) = cluster.client();
        let node = client.session.router.node(Slot(0));
        let connection = node.connection().await.unwrap();
        let server = |code: &str, message: &str| {
            Error::definite(ErrorKind::Server { code: code.to_owned(), message: message.to_owned() })
        };
        for (code, slot, transient, usable) in
            [("MOVED", 7, true, true), ("ASK", 8, false, true), ("READONLY", 8, true, false)]
        {
            let error = node.retire_on(&connection, server(code, &format!("{slot} 127.0.0.1:1")));
            assert_eq!(error.is_transient(), transient, "{code}");
            assert_eq!(route.followed.load(Ordering::Relaxed), slot, "{code}");
            assert_eq!(connection.is_usable(), usable, "{code}");
        }
    }
}
