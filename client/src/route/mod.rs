//! Decides which server to talk to, and sends requests again when that is safe.

mod greeting;
pub(crate) mod connection;
mod moves;
mod demand;
mod redirect;
mod replicas;
mod confirmation;
mod same_set;
mod gather;
mod epochs;
mod node;
mod path;
mod retry_pause;
mod retry;
mod single;
mod replica_set;
mod slots;
mod masters;
mod sentinel_link;
mod sentinel;
mod cluster;
mod deployment;
#[cfg(test)]
mod scripted;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::{BoxFuture, FutureExt, select_all};
use redis::Cmd;

use crate::address::Topology;
use crate::config::{Config, Durability};
use crate::endpoint::Endpoint;
use crate::env::{Env, Monotonic, pause};
use crate::error::{Error, Result};
use crate::mutex::locked;
use crate::script::Call;
use crate::wire::Slot;
use cluster::Cluster;
pub(crate) use confirmation::Confirmation;
use connection::Connection;
use demand::Waiting;
pub use deployment::{Deployment, Master};
use moves::Moves;
pub(crate) use moves::Position;
use node::Disturbance;
pub(crate) use node::Node;
pub(crate) use path::RequestPath;
use redirect::{MasterAddress, Redirect, Remedy, remedy};
use replica_set::ReplicaSet;
pub(crate) use retry::{OnFailure, Persistence, Remembered};
pub(crate) use retry_pause::Repeats;
use sentinel::SentinelSet;
use single::Single;

/// The index of a node within its route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeId(u16);

impl NodeId {
    /// The only node of a route with one master.
    const ONLY: Self = Self(0);

    /// The node of slots that no master serves.
    const NONE: Self = Self(u16::MAX);
}

/// A request to a node.
pub(crate) enum Request<'a> {
    Script(&'a Call),
    Unconfirmed(&'a Call),
    Remembered(&'a Call, Confirm),
    Question(&'a Cmd),
}

impl<'a> Request<'a> {
    /// Returns the first key of a script.
    fn key(&self) -> Option<&'a str> {
        match self {
            Self::Script(call) | Self::Unconfirmed(call) | Self::Remembered(call, _) => call.key(),
            Self::Question(_) => None,
        }
    }
}

/// Decides if a change must be confirmed by replicas and disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Confirm {
    AsConfigured,
    No,
}

/// A topology: the servers of a deployment and the distribution of keys among them. Each topology
/// is one file. It makes connections; [`Node`] uses them.
pub(crate) trait Route: Send + Sync + 'static {
    /// Returns the node whose master has the keys of `slot`, as far as is known.
    fn node(&self, slot: Slot) -> NodeId;

    /// Connects to the master of `node`, before `limit`.
    fn dial(&self, node: NodeId, limit: Monotonic) -> BoxFuture<'_, Result<Arc<Connection>>>;

    /// Returns the number of replicas of `node` in the configuration.
    fn replicas(&self, _node: NodeId) -> usize {
        0
    }

    /// Returns true if the keys of a script must all be in one slot.
    fn divides(&self) -> bool {
        false
    }

    /// Completes when the nodes of the slots are known. An error if they cannot be found out before
    /// `limit`.
    fn ready(&self, _limit: Monotonic) -> BoxFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Returns true if `endpoint` still is the master of `node`, as far as is known.
    fn leads_to(&self, _node: NodeId, _endpoint: &Endpoint) -> bool {
        true
    }

    /// Follows a redirection by the server at `from`: returns the node that now has the slot.
    /// `None` for routes without redirections.
    fn follow(&self, _to: &Redirect, _from: &Endpoint) -> Option<NodeId> {
        None
    }

    /// Returns true if requests may follow a server that has become a replica to its master.
    fn follows_masters(&self) -> bool {
        false
    }

    /// Follows `replica` to the master that it names. Returns false if the route does not.
    fn follow_master(&self, _named: &MasterAddress, _replica: &Endpoint) -> bool {
        false
    }

    /// Handles a request that failed in a way that suggests a new master.
    fn suspect(&self) {}

    /// Registers a caller that waits for a new master of a slot. The route watches for one while
    /// any caller is registered.
    fn awaited(&self) -> Option<Waiting> {
        None
    }

    /// Returns the counter of changes of a master. `None` for routes that notice a change only
    /// through their connections.
    fn changes(&self) -> Option<&Arc<Moves>> {
        None
    }

    /// Stops all queries: the client is closed.
    fn close(&self) {}

    /// Returns true if messages stay within the node that has the slot of their channel (SPUBLISH).
    fn is_sharded(&self) -> bool {
        false
    }

    /// Checks that the servers that answer until `limit` belong together.
    ///
    /// # Errors
    /// When they do not.
    fn check(&self, _limit: Monotonic) -> BoxFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Routes the requests of one client to the masters.
pub(crate) struct Router {
    env: Arc<dyn Env>,
    config: Arc<Config>,
    route: Arc<dyn Route>,
    changes: Arc<Moves>,
    /// The nodes that have been used.
    nodes: Mutex<BTreeMap<NodeId, Arc<Node>>>,
    closed: Arc<AtomicBool>,
}

impl Router {
    /// Makes the route for the configured topology.
    pub(crate) fn new(env: Arc<dyn Env>, config: Arc<Config>) -> Self {
        let route: Arc<dyn Route> = match (&config.topology, config.endpoints.as_slice()) {
            (Topology::Sentinel { master, nodes }, _) => {
                SentinelSet::new(env.clone(), config.clone(), master, nodes)
            }
            (Topology::Cluster, _) => Cluster::new(env.clone(), config.clone()),
            (Topology::Set, [only]) => {
                Arc::new(Single::new(env.clone(), only.clone(), config.redirects.clone()))
            }
            (Topology::Set, several) => Arc::new(ReplicaSet::new(env.clone(), several.to_vec())),
        };
        Self::with(env, config, route)
    }

    fn with(env: Arc<dyn Env>, config: Arc<Config>, route: Arc<dyn Route>) -> Self {
        let changes = route.changes().cloned().unwrap_or_default();
        Self { env, config, route, changes, nodes: Mutex::default(), closed: Arc::default() }
    }

    /// Returns the id of the node whose master has the keys of `slot`, as far as is known.
    pub(crate) fn node_id(&self, slot: Slot) -> NodeId {
        self.route.node(slot)
    }

    /// Returns the node whose master has the keys of `slot`, as far as is known.
    fn node(&self, slot: Slot) -> Arc<Node> {
        self.node_of(self.route.node(slot))
    }

    /// Returns the node with this id.
    pub(crate) fn node_of(&self, id: NodeId) -> Arc<Node> {
        let new = || {
            let (env, config, route) = (self.env.clone(), self.config.clone(), self.route.clone());
            Node::new(id, env, config, route, self.closed.clone())
        };
        locked(&self.nodes).entry(id).or_insert_with(new).clone()
    }

    /// Completes when the nodes of the slots are known.
    pub(crate) async fn ready(&self) -> Result<()> {
        self.route.ready(self.env.now() + self.config.connect_timeout).await
    }

    /// As [`Router::ready`], with retries as for a call. For callers that need the nodes before
    /// they can write a call.
    pub(crate) async fn made_ready(&self) -> Result<()> {
        let (mut attempt, until) = (0, self.env.now() + self.config.call_timeout);
        loop {
            match self.ready().await {
                Err(error)
                    if error.is_transient() && self.config.may_repeat(attempt) && self.env.now() < until =>
                {
                    pause(&*self.env, self.config.retry_delay(&*self.env, attempt)).await;
                    attempt += 1;
                }
                done => return done,
            }
        }
    }

    /// Returns the slot that represents all slots that may share a script with `slot`.
    pub(crate) fn together(&self, slot: Slot) -> Slot {
        if self.route.divides() { slot } else { Slot(0) }
    }

    /// Returns the command with which scripts publish a message. Valid once the route is
    /// [ready](Router::ready).
    pub(crate) fn publish(&self) -> &'static str {
        if self.route.is_sharded() { "SPUBLISH" } else { "PUBLISH" }
    }

    /// Returns true if subscribers must use the node that has the slot of the channel.
    pub(crate) fn is_sharded(&self) -> bool {
        self.route.is_sharded()
    }

    /// Returns true if the server of `connection` still is the master of the node, as far as is
    /// known.
    pub(crate) fn leads_to(&self, node: NodeId, connection: &Connection) -> bool {
        self.route.leads_to(node, &connection.endpoint)
    }

    /// Returns the current layout of the slots: a waiter can await its change.
    pub(crate) fn layout(&self) -> Position {
        self.changes.position()
    }

    /// Records that the server at `from` refused a request with `error` because it does not have
    /// the slot.
    pub(crate) fn refused(&self, from: &Endpoint, error: &Error) {
        if let Remedy::Redirect(to) = remedy(error) {
            self.route.follow(&to, from);
        }
        self.route.suspect();
    }

    /// Connects, and checks that the servers that can be reached belong together.
    pub(crate) async fn connect(&self) -> Result<()> {
        let path = self.path(Slot(0)).await?;
        if self.config.durability != Durability::Memory {
            path.confirmation().await?;
        }
        self.route.check(self.env.now() + self.config.response_timeout).await
    }

    /// Drops all connections, and makes no new ones.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.route.close();
        for node in locked(&self.nodes).values() {
            node.close();
        }
    }

    /// Completes when a server may have come back with other data: a connection in use has ended,
    /// or a new one is made.
    pub(crate) fn disturbance(&self) -> impl Future<Output = ()> + Send + 'static {
        let all: Vec<Disturbance> = locked(&self.nodes).values().map(|node| node.disturbance()).collect();
        let layout = self.layout();
        async move {
            let moved = layout.left().boxed();
            select_all(all.iter().map(|one| one.come().boxed()).chain([moved])).await;
        }
    }
}

/// Uses a route whose keys are divided among nodes, as those of a cluster are. Everything above the
/// route must then go by the slot.
#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
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
        /// The slots that have moved to the other node.
        moved: Mutex<BTreeSet<Slot>>,
    }

    impl Route for Halves {
        fn node(&self, slot: Slot) -> NodeId {
            NodeId((slot.0 + u16::from(locked(&self.moved).contains(&slot))) % 2)
        }

        fn dial(&self, node: NodeId, limit: Monotonic) -> BoxFuture<'_, Result<Arc<Connection>>> {
            Box::pin(Connection::open(&self.env, &self.endpoints[usize::from(node.0)], None, limit))
        }

        fn divides(&self) -> bool {
            true
        }

        fn follow(&self, to: &Redirect, _from: &Endpoint) -> Option<NodeId> {
            let port = |endpoint: &Endpoint| endpoint.to_string().ends_with(&format!(":{}", to.port));
            let at = self.endpoints.iter().position(port)?;
            if !to.once && at != usize::from(self.node(to.slot).0) {
                locked(&self.moved).insert(to.slot);
            }
            Some(NodeId(u16::try_from(at).unwrap()))
        }
    }

    struct Pair([TestServer; 2]);

    impl Pair {
        async fn start() -> Self {
            Self([TestServer::start().await.unwrap(), TestServer::start().await.unwrap()])
        }

        fn client(&self) -> (Client, Arc<Halves>) {
            let env: Arc<dyn Env> = Arc::new(TokioEnv::current().unwrap());
            let endpoints = [&self.0[0], &self.0[1]].map(|server| Endpoint::parse(&server.url()).unwrap());
            let config =
                Config { endpoints: endpoints.to_vec(), watchdog_timeout: WATCHDOG, ..Config::default() };
            let route = Arc::new(Halves { env: env.clone(), endpoints, moved: Mutex::default() });
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

        /// The reply of a server that redirects a request for slot 8 to a node.
        fn redirect(&self, code: &str, node: usize) -> Error {
            let port = self.0[node].url().rsplit_once(':').unwrap().1.to_owned();
            server_error(code, &format!("8 127.0.0.1:{port}"))
        }

        /// Returns the lock keys on each node.
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

    fn server_error(code: &str, message: &str) -> Error {
        Error::definite(ErrorKind::Server { code: code.to_owned(), message: message.to_owned() })
    }

    /// A route that fails a number of times, with a server's error, because it does not know the
    /// nodes.
    struct Unready {
        code: &'static str,
        left: Mutex<u32>,
        asked: Mutex<u32>,
    }

    impl Route for Unready {
        fn node(&self, _slot: Slot) -> NodeId {
            NodeId(0)
        }

        fn dial(&self, _node: NodeId, _limit: Monotonic) -> BoxFuture<'_, Result<Arc<Connection>>> {
            unreachable!("nothing is asked")
        }

        fn ready(&self, _limit: Monotonic) -> BoxFuture<'_, Result<()>> {
            *locked(&self.asked) += 1;
            let mut left = locked(&self.left);
            let is_ready = *left == 0;
            *left = left.saturating_sub(1);
            let ready = if is_ready { Ok(()) } else { Err(server_error(self.code, "not yet")) };
            Box::pin(std::future::ready(ready))
        }

        fn divides(&self) -> bool {
            false
        }

        fn follow(&self, _to: &Redirect, _from: &Endpoint) -> Option<NodeId> {
            None
        }
    }

    #[tokio::test]
    async fn a_route_is_asked_for_as_often_as_a_request_is_repeated() {
        let env: Arc<dyn Env> = Arc::new(TokioEnv::current().unwrap());
        let retry_delay = Duration::from_millis(1);
        let config = Arc::new(Config { retry_attempts: Some(2), retry_delay, ..Config::default() });
        for (code, fails, asked, is_made) in [
            ("LOADING", 0, 1, true),
            ("LOADING", 2, 3, true),
            ("LOADING", 3, 3, false),
            ("WRONGPASS", 1, 1, false),
        ] {
            let route = Arc::new(Unready { code, left: Mutex::new(fails), asked: Mutex::default() });
            let router = Router::with(env.clone(), config.clone(), route.clone());
            assert_eq!(router.made_ready().await.is_ok(), is_made, "{code} {fails} times");
            assert_eq!(*locked(&route.asked), asked, "{code} {fails} times");
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
        let cluster = Pair::start().await;
        let ((client, _), (all, by_node)) = (cluster.client(), names());
        let mut guards = Vec::new();
        for name in &all {
            guards.push(client.lock(name).acquire().await.unwrap());
        }
        assert_eq!(cluster.keys().await, by_node);
        // Each node got renewal scripts with only its own keys. A script with other keys would find
        // these missing, and their holds would be lost.
        pause(&TokioEnv::current().unwrap(), 2 * WATCHDOG).await;
        assert!(guards.iter().all(crate::Guard::is_valid), "{guards:?}");
        assert_eq!(cluster.keys().await, by_node);

        // The waiters sleep for as long as the leases last, unless a message of their own node
        // wakes them.
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

    /// A subscriber learns from the node's refusal that a slot has moved. No request of its own
    /// follows the redirection.
    #[tokio::test]
    async fn a_refusal_that_names_another_node_is_taken_into_account() {
        let cluster = Pair::start().await;
        let (client, route) = cluster.client();
        let router = &client.session.router;
        let (noperm, ask, moved) = (
            server_error("NOPERM", "this user has no permissions"),
            cluster.redirect("ASK", 1),
            cluster.redirect("MOVED", 1),
        );
        for (refusal, node) in [(noperm, 0), (ask, 0), (moved, 1)] {
            router.refused(&route.endpoints[0], &refusal);
            assert_eq!(router.node_id(Slot(8)), NodeId(node), "{refusal}");
        }
    }

    /// A redirected request goes to a new node without a pause, and to a node that it has visited
    /// after a pause. Time and number of redirections are bounded.
    #[tokio::test]
    async fn redirections_are_followed_within_bounds() {
        let cluster = Pair::start().await;
        let (client, route) = cluster.client();
        let router = client.session.router.clone();
        let to = |code: &str, node: usize| cluster.redirect(code, node);
        let slot = Slot(8);
        let (mut path, mut trail) = (router.path(slot).await.unwrap(), router.trail(slot));
        // ASK redirects this request only; MOVED redirects all later ones as well.
        for (code, moved) in [("ASK", false), ("MOVED", true)] {
            router.follow(&mut path, &mut trail, to(code, 1), None).await.unwrap();
            assert_eq!(path.node.id(), NodeId(1), "{code}");
            assert_eq!(router.path(slot).await.unwrap().node.id(), NodeId(u16::from(moved)), "{code}");
        }
        assert_eq!(locked(&route.moved).len(), 1);
        for unknown in
            [server_error("MOVED", "8 127.0.0.1:1"), server_error("NOPERM", "this user has no permissions")]
        {
            router.follow(&mut path, &mut trail, unknown.clone(), None).await.unwrap_err();
        }

        let (begun, mut trail, mut followed) = (router.env.now(), router.trail(slot), 0);
        let error = loop {
            match router.follow(&mut path, &mut trail, to("MOVED", followed % 2), None).await {
                Ok(()) => followed += 1,
                Err(error) => break error,
            }
        };
        assert!(error.is_transient() && error.is_definite(), "{error}");
        let took = router.env.now() - begun;
        assert!(
            (3..=16).contains(&followed) && took >= Duration::from_millis(1000),
            "{followed} in {took:?}"
        );
    }
}
