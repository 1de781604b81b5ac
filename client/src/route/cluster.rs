//! The route to the nodes of a Redis Cluster. The newest configuration that any node reports
//! decides which node serves a slot.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::Notify;

use super::connection::Connection;
use super::demand::{Demand, Waiting};
use super::gather::gather;
use super::masters::Masters;
use super::moves::Moves;
use super::node::SLOW;
use super::redirect::Redirect;
use super::slots::View;
use super::{NodeId, Route};
use crate::config::Config;
use crate::endpoint::Endpoint;
use crate::env::{Env, Monotonic, draw, pause};
use crate::error::{Error, ErrorKind, Result};
use crate::mutex::locked;
use crate::wire::Slot;

/// The default interval at which the nodes are asked for the slots.
const SCAN: Duration = Duration::from_secs(5);

/// The pause between two refreshes that have a reason: a failed request, or a caller that waits for
/// a new master. The first value is fixed; up to the second is drawn and added, because all clients
/// of a master lose it at the same moment.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(400));

/// The maximum number of times that the pause doubles while no node answers: to 2 s at most.
const DOUBLINGS: u32 = 2;

/// The number of nodes that are asked in parallel, and the time that they get.
const ASKED_AT_ONCE: usize = 3;
const PATIENCE: Duration = Duration::from_secs(1);

/// The masters of a cluster and their slots.
pub(super) struct Cluster {
    me: Weak<Self>,
    env: Arc<dyn Env>,
    config: Arc<Config>,
    map: Mutex<Masters>,
    /// The connections on which the nodes are asked for the slots.
    asked_on: Mutex<Vec<Arc<Connection>>>,
    refreshing: tokio::sync::Mutex<()>,
    /// Notified when there is a reason to refresh the slots.
    reason: Arc<Notify>,
    /// Counts the callers that wait for a new master.
    demand: Arc<Demand>,
    changes: Arc<Moves>,
    closed: AtomicBool,
}

/// A node's report, and the host that was asked.
struct Told {
    host: String,
    view: View,
    is_sharded: bool,
}

impl Cluster {
    pub(super) fn new(env: Arc<dyn Env>, config: Arc<Config>) -> Arc<Self> {
        let reason = Arc::<Notify>::default();
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            env,
            config,
            map: Mutex::new(Masters::unknown()),
            asked_on: Mutex::default(),
            refreshing: tokio::sync::Mutex::default(),
            demand: Demand::new(reason.clone()),
            reason,
            changes: Arc::default(),
            closed: AtomicBool::new(false),
        })
    }

    /// Asks nodes for the slots until a report is accepted. Returns the number of nodes that
    /// answered.
    async fn refresh(&self, limit: Monotonic) -> (usize, Result<()>) {
        let (candidates, at_once) = self.candidates();
        let (mut answers, mut last) = (0, None);
        for some in candidates.chunks(at_once) {
            if self.env.now() >= limit || self.closed.load(Ordering::Acquire) {
                break;
            }
            let patience = limit.min(self.env.now() + PATIENCE);
            let asked = some
                .iter()
                .map(|endpoint| -> BoxFuture<'_, Result<Told>> { Box::pin(self.ask(endpoint, patience)) });
            let (told, errors) = gather(&*self.env, patience, asked.collect()).await;
            answers += told.len();
            match self.learn(told) {
                Ok(true) => return (answers, Ok(())),
                Ok(false) => last = errors.into_iter().last().or(last),
                Err(error) => last = Some(error),
            }
            if let Some(error) = &last
                && !error.is_transient()
            {
                return (answers, Err(error.clone()));
            }
        }
        let reason = last.as_ref().map_or_else(|| "none answers in time".to_owned(), ToString::to_string);
        (answers, Err(self.no_master(&candidates, &reason)))
    }

    /// Asks the nodes, and returns the masters with their slots.
    pub(super) async fn masters(
        &self,
        limit: Monotonic,
    ) -> Result<Vec<(Endpoint, Vec<RangeInclusive<u16>>)>> {
        self.refresh(limit).await.1?;
        let map = locked(&self.map);
        let mut all: Vec<(NodeId, Vec<RangeInclusive<u16>>)> = Vec::new();
        let mut first = 0;
        for same in map.slots.chunk_by(|one, next| one == next) {
            let (begin, end) = (first, first + same.len() - 1);
            first = end + 1;
            let range = u16::try_from(begin).unwrap_or(u16::MAX)..=u16::try_from(end).unwrap_or(u16::MAX);
            match all.iter_mut().find(|(id, _)| same.first() == Some(id)) {
                Some((_, ranges)) => ranges.push(range),
                None => all.extend(same.first().map(|id| (*id, vec![range]))),
            }
        }
        let named = |(id, ranges)| Some((map.master(id)?.endpoint.clone(), ranges));
        Ok(all.into_iter().filter_map(named).collect())
    }

    /// Returns the nodes to ask, in order, and the number to ask in parallel: first the known
    /// masters in random order, then the configured endpoints.
    fn candidates(&self) -> (Vec<Endpoint>, usize) {
        let map = locked(&self.map);
        let mut all: Vec<Endpoint> = map.owners().into_iter().map(|master| master.endpoint.clone()).collect();
        for i in (1..all.len()).rev() {
            let other = draw(&*self.env, i as u64);
            all.swap(i, usize::try_from(other).unwrap_or(0));
        }
        for seed in &self.config.endpoints {
            if !all.iter().any(|endpoint| endpoint.is_same_place(seed)) {
                all.push(seed.clone());
            }
        }
        // Only a majority can show that no newer configuration exists, so ask all.
        let at_once = if map.epochs.are_doubted() { all.len() } else { ASKED_AT_ONCE };
        (all, at_once.max(1))
    }

    async fn ask(&self, endpoint: &Endpoint, limit: Monotonic) -> Result<Told> {
        let open = |connection: &&Arc<Connection>| {
            connection.endpoint.is_same_place(endpoint) && connection.is_usable()
        };
        let known = locked(&self.asked_on).iter().find(open).cloned();
        let (connection, is_new) = match known {
            Some(connection) => (connection, false),
            None => (Connection::open(&self.env, endpoint, None, limit).await?, true),
        };
        // Take the node's connection off the list; it is put back only after an answer. So a silent
        // connection is not used again.
        locked(&self.asked_on).retain(|other| !other.endpoint.is_same_place(endpoint));
        // Ask for the epoch first: if the slots change in between, they are newer than the epoch
        // says, not older.
        let nodes = connection.call(redis::cmd("CLUSTER").arg("NODES")).await;
        let nodes = nodes.map_err(|error| self.no_cluster(endpoint, error))?;
        let slots = connection.call(redis::cmd("CLUSTER").arg("SLOTS")).await?;
        let view = View::read(&slots, &nodes).map_err(Error::made_definite)?;
        let is_sharded = if is_new {
            // Use the test that Redisson uses: both clients must choose the same command.
            connection.call(redis::cmd("PUBSUB").arg("SHARDNUMSUB")).await.is_ok()
        } else {
            self.is_sharded()
        };
        let mut asked_on = locked(&self.asked_on);
        asked_on.push(connection);
        let surplus = asked_on.len().saturating_sub(2 * ASKED_AT_ONCE);
        asked_on.drain(..surplus);
        let host = endpoint.host().unwrap_or_default().to_owned();
        Ok(Told { host, view, is_sharded })
    }

    fn no_cluster(&self, endpoint: &Endpoint, error: Error) -> Error {
        if error.to_string().contains("cluster support disabled") {
            return Error::config(format!("{endpoint} is no node of a cluster"));
        }
        error
    }

    /// Accepts the newest of the reports. Returns false if there are none; an error if the newest
    /// is older than what is known.
    fn learn(&self, mut told: Vec<Told>) -> Result<bool> {
        let answers = told.len();
        // `max_by_key` returns the last maximum. Reversed, so that the first node to answer wins
        // among equals.
        told.reverse();
        let Some(told) = told.into_iter().max_by_key(|told| told.view.epoch) else { return Ok(false) };
        if told.view.ranges.is_empty() {
            return Err(self.no_master(&self.config.endpoints, "no node has slots"));
        }
        let mut map = locked(&self.map);
        let by_most = answers * 2 > map.owners().len();
        let now = self.env.now();
        if !map.epochs.believe(told.view.epoch, by_most, now) {
            let newest = map.epochs.newest();
            let reason =
                format!("the nodes that answer know the epoch {}, and there was {newest}", told.view.epoch);
            drop(map);
            return Err(self.no_master(&self.config.endpoints, &reason));
        }
        let before: Vec<bool> = map.masters.iter().map(|master| master.is_replaced).collect();
        let mut slots = vec![NodeId::NONE; usize::from(Slot::COUNT)];
        let mut owners = Vec::new();
        for range in &told.view.ranges {
            let host = range.host.as_ref().unwrap_or(&told.host);
            let Some(id) = map.number(host, range.port, &self.config)? else { continue };
            let all = usize::from(range.first)..=usize::from(range.last);
            let fallen = map.fallen(all.clone(), &told.view.fallen);
            if let Some(master) = map.masters.get_mut(usize::from(id.0)) {
                master.id.clone_from(&range.id);
                master.replicas = range.replicas;
                master.fallen.extend(fallen);
                master.fallen.retain(|id| told.view.fallen.contains(id));
            }
            slots[all].fill(id);
            owners.push(id);
        }
        map.succeed(&slots, now);
        let had: Vec<NodeId> = map.slots.clone();
        for (at, master) in map.masters.iter_mut().enumerate() {
            let id = u16::try_from(at).map_or(NodeId::NONE, NodeId);
            let is_replica = || {
                told.view.ranges.iter().flat_map(|range| &range.others).any(|(host, port)| {
                    let host = host.as_ref().unwrap_or(&told.host);
                    master.endpoint.is_at(host, *port)
                })
            };
            // A master without slots may be about to get its first ones, so it counts as replaced
            // only if it had some.
            master.is_replaced =
                !owners.contains(&id) && (master.is_replaced || had.contains(&id) || is_replica());
        }
        let changed = map.slots != slots
            || map.masters.iter().zip(before).any(|(master, before)| master.is_replaced != before);
        map.told.clone_from(&slots);
        map.slots = slots;
        map.is_sharded = told.is_sharded;
        map.is_loaded = true;
        drop(map);
        if changed {
            self.changes.moved();
        }
        Ok(true)
    }

    fn no_master(&self, asked: &[Endpoint], reason: &str) -> Error {
        let endpoints = asked.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        Error::definite(ErrorKind::NoMaster { endpoints, reason: reason.to_owned() })
    }

    /// Starts the background task that refreshes the slots, once.
    fn watch(&self) {
        if !std::mem::replace(&mut locked(&self.map).is_watched, true) {
            self.env.spawn(Box::pin(watch(self.me.clone(), self.env.clone(), self.reason.clone())));
        }
    }

    async fn connect(&self, node: NodeId, limit: Monotonic) -> Result<Arc<Connection>> {
        let endpoint = {
            let map = locked(&self.map);
            map.master(node).map(|master| (master.endpoint.clone(), master.is_replaced))
        };
        let endpoint = match endpoint {
            Some((endpoint, false)) => endpoint,
            Some((endpoint, true)) => return Err(self.no_master(&[endpoint], "it has no slots any more")),
            None => return Err(self.no_master(&self.config.endpoints, "no node has the slot")),
        };
        let mut opened = Box::pin(Connection::open(&self.env, &endpoint, None, limit));
        let (slow, mut waiting) = (self.env.now() + SLOW, None);
        loop {
            let layout = self.changes.position();
            if !self.leads_to(node, &endpoint) {
                return Err(self.no_master(std::slice::from_ref(&endpoint), "it has no slots any more"));
            }
            tokio::select! {
                biased;
                opened = &mut opened => return opened,
                () = layout.left() => {}
                () = self.env.sleep_until(slow), if waiting.is_none() => waiting = Some(self.demand.begin()),
            }
        }
    }
}

impl Route for Cluster {
    fn node(&self, slot: Slot) -> NodeId {
        locked(&self.map).slots.get(usize::from(slot.0)).copied().unwrap_or(NodeId::NONE)
    }

    fn dial(&self, node: NodeId, limit: Monotonic) -> BoxFuture<'_, Result<Arc<Connection>>> {
        Box::pin(async move {
            self.ready(limit).await?;
            self.connect(node, limit).await
        })
    }

    fn ready(&self, limit: Monotonic) -> BoxFuture<'_, Result<()>> {
        if locked(&self.map).is_loaded {
            return Box::pin(std::future::ready(Ok(())));
        }
        Box::pin(async move {
            let _one = self.refreshing.lock().await;
            if !locked(&self.map).is_loaded {
                self.refresh(limit).await.1?;
            }
            self.watch();
            Ok(())
        })
    }

    fn replicas(&self, node: NodeId) -> usize {
        locked(&self.map).master(node).map_or(0, |master| master.replicas(self.env.now()))
    }

    fn divides(&self) -> bool {
        true
    }

    fn leads_to(&self, node: NodeId, _endpoint: &Endpoint) -> bool {
        locked(&self.map).master(node).is_some_and(|master| !master.is_replaced)
    }

    fn follow(&self, to: &Redirect, from: &Endpoint) -> Option<NodeId> {
        let host = if to.host.is_empty() { from.host()? } else { &to.host };
        let mut map = locked(&self.map);
        let id = map.number(host, to.port, &self.config).ok().flatten()?;
        let mut changed = false;
        if let Some(master) = map.masters.get_mut(usize::from(id.0)) {
            changed = std::mem::take(&mut master.is_replaced);
        }
        if !to.once {
            let owner = map.slots.get_mut(usize::from(to.slot.0))?;
            let before = std::mem::replace(owner, id);
            changed |= before != id;
            // The target may be a promoted replica. The notification below has the nodes asked.
            let now = self.env.now();
            let inherited = map.master(before).map(|master| master.legacy(now));
            if let Some(master) = map.masters.get_mut(usize::from(id.0)).filter(|master| master.id.is_none())
            {
                master.inherited = master.inherited.or(inherited);
            }
            self.reason.notify_one();
        }
        drop(map);
        if changed {
            self.changes.moved();
        }
        Some(id)
    }

    fn suspect(&self) {
        self.reason.notify_one();
    }

    fn awaited(&self) -> Option<Waiting> {
        Some(self.demand.begin())
    }

    fn changes(&self) -> Option<&Arc<Moves>> {
        Some(&self.changes)
    }

    fn is_sharded(&self) -> bool {
        locked(&self.map).is_sharded
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Release);
        locked(&self.asked_on).clear();
        self.reason.notify_one();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.reason.notify_one();
    }
}

/// Refreshes the slots at each interval, when notified of a reason, and repeatedly while callers
/// wait for a new master. Ends with the client.
async fn watch(cluster: Weak<Cluster>, env: Arc<dyn Env>, reason: Arc<Notify>) {
    let mut unanswered = 0;
    loop {
        let Some(strong) = cluster.upgrade() else { return };
        if strong.closed.load(Ordering::Acquire) {
            return;
        }
        if !strong.demand.is_any() {
            let due = env.now() + strong.config.scan_interval.unwrap_or(SCAN);
            drop(strong);
            tokio::select! {
                biased;
                () = reason.notified() => {}
                () = env.sleep_until(due) => {}
            }
        }
        let Some(strong) = cluster.upgrade() else { return };
        let (answers, _) = {
            let _one = strong.refreshing.lock().await;
            // The known slots remain valid until a newer report.
            strong.refresh(env.now() + strong.config.connect_timeout).await
        };
        drop(strong);
        let (least, more) = PAUSE;
        let more = draw(&*env, u64::try_from(more.as_micros()).unwrap_or(0));
        pause(&*env, lengthened(least + Duration::from_micros(more), &mut unanswered, answers)).await;
    }
}

/// Returns the pause after a refresh that `answers` nodes have answered: `drawn`, doubled for each
/// refresh without answers since the last answered one, up to [`DOUBLINGS`] times.
fn lengthened(drawn: Duration, unanswered: &mut u32, answers: usize) -> Duration {
    *unanswered = if answers > 0 { 0 } else { (*unanswered + 1).min(DOUBLINGS) };
    drawn * (1 << *unanswered)
}

#[cfg(test)]
mod tests {
    use super::super::masters::SUCCESSION;
    use super::super::slots::Range;
    use super::*;
    use crate::env::TokioEnv;

    /// A report of two masters, one with slots 0 to 99 and one with the rest, each with the given
    /// number of replicas.
    fn told(epoch: u64, masters: [(&str, usize); 2], fallen: &[&str]) -> Told {
        let mut ranges = Vec::new();
        for ((id, replicas), (first, last)) in masters.into_iter().zip([(0, 99), (100, Slot::COUNT - 1)]) {
            let (host, others) = (Some(id.to_owned()), Vec::new());
            ranges.push(Range { first, last, host, port: 7000, id: Some(id.to_owned()), replicas, others });
        }
        let fallen = fallen.iter().map(|id| (*id).to_owned()).collect();
        Told { host: "a".to_owned(), view: View { epoch, ranges, fallen }, is_sharded: false }
    }

    /// If nodes refuse connections a refresh ends immediately, so only the pauses separate it
    /// from the next one.
    #[test]
    fn pauses_double_twice_while_no_node_answers() {
        let (drawn, mut unanswered) = (Duration::from_millis(7), 0);
        let pauses = [0, 0, 0, 0, 2, 0, 1].map(|answers| lengthened(drawn, &mut unanswered, answers));
        assert_eq!(pauses.map(|pause| pause.as_millis()), [14, 28, 28, 28, 7, 14, 7]);
    }

    /// The last refresh of a client that is being closed asks no node.
    #[tokio::test]
    async fn a_client_that_is_closed_asks_for_no_slots() {
        let env: Arc<dyn Env> = Arc::new(TokioEnv::current().unwrap());
        let server = lockstorm_sim::TestServer::start().await.unwrap();
        let endpoints = vec![Endpoint::parse(&server.url()).unwrap()];
        let cluster = Cluster::new(env.clone(), Arc::new(Config { endpoints, ..Config::default() }));
        let refused = async || cluster.refresh(env.now() + PATIENCE).await.1.unwrap_err().to_string();
        assert!(refused().await.contains("is no node of a cluster"), "it asks while it is open");
        cluster.close();
        assert!(refused().await.contains("none answers"), "and then no more");
    }

    /// A master that is down comes back as a replica of the one that took over its slots. Until
    /// then the new master counts it as a replica.
    #[tokio::test]
    async fn a_fallen_master_counts_as_a_replica_of_the_one_that_has_its_slots() {
        let env = Arc::new(TokioEnv::current().unwrap());
        let endpoints = vec![Endpoint::parse("redis://a:7000").unwrap()];
        let cluster = Cluster::new(env, Arc::new(Config { endpoints, ..Config::default() }));
        for (what, told, replicas) in [
            ("all are up", told(1, [("a", 1), ("b", 1)], &[]), [1, 1]),
            ("c has replaced a", told(2, [("c", 0), ("b", 1)], &["a"]), [1, 1]),
            ("it still has", told(2, [("c", 0), ("b", 1)], &["a"]), [1, 1]),
            ("another one is down that had no slots", told(2, [("c", 0), ("b", 1)], &["a", "x"]), [1, 1]),
            ("d has replaced b", told(3, [("c", 0), ("d", 0)], &["a", "b", "x"]), [1, 1]),
            ("a has come back", told(3, [("c", 1), ("d", 0)], &["b", "x"]), [1, 1]),
            ("all have", told(3, [("c", 1), ("d", 1)], &[]), [1, 1]),
        ] {
            cluster.learn(vec![told]).unwrap();
            let counted = [0, 100].map(|slot| cluster.replicas(cluster.node(Slot(slot))));
            assert_eq!(counted, replicas, "{what}");
        }
    }

    /// After CLUSTER FAILOVER no node is down, and the replicas have not yet reported their new
    /// master. The promoted one counted no replicas, so that the required majority of replicas was
    /// zero. A master that slots are moved to keeps its own count.
    #[tokio::test]
    async fn a_promoted_replica_counts_the_replicas_of_its_master_for_a_while() {
        let env: Arc<dyn Env> = Arc::new(TokioEnv::current().unwrap());
        let endpoints = vec![Endpoint::parse("redis://a:7000").unwrap()];
        let config = || Arc::new(Config { endpoints: endpoints.clone(), ..Config::default() });
        let slot = Slot(50);
        let counted = |cluster: &Cluster, later: Duration| {
            let map = locked(&cluster.map);
            map.master(map.slots[50]).map(|master| master.replicas(env.now() + later))
        };
        let (soon, late) = (Duration::ZERO, SUCCESSION);
        let known = || {
            let cluster = Cluster::new(env.clone(), config());
            cluster.learn(vec![told(1, [("a", 2), ("b", 1)], &[])]).unwrap();
            cluster
        };
        let promoted = known();
        promoted.learn(vec![told(2, [("c", 0), ("b", 1)], &[])]).unwrap();
        assert_eq!((counted(&promoted, soon), counted(&promoted, late)), (Some(2), Some(0)));

        let moved = known();
        let mut view = told(2, [("c", 0), ("b", 1)], &[]);
        let of_a =
            Range { first: 0, last: 49, id: Some("a".to_owned()), host: Some("a".to_owned()), ..range() };
        view.view.ranges[0].first = 50;
        view.view.ranges.push(of_a);
        moved.learn(vec![view]).unwrap();
        assert_eq!(counted(&moved, soon), Some(0));

        // The client sends a request there before any node has reported its role.
        let redirected = known();
        let to = Redirect { slot, host: "c".to_owned(), port: 7000, once: false };
        redirected.follow(&to, &endpoints[0]).unwrap();
        assert_eq!((counted(&redirected, soon), counted(&redirected, late)), (Some(2), Some(0)));
    }

    fn range() -> Range {
        Range { first: 0, last: 0, host: None, port: 7000, id: None, replicas: 0, others: Vec::new() }
    }
}
