//! The route to a master that Sentinels watch. The newest of their configurations decides where it
//! is.
//!
//! One Sentinel may be cut off from the others and know an older master, so all are asked. A client
//! may be cut off together with it, so the newest known epoch is remembered. Sentinels announce a
//! new master to subscribers. Such a message is a reason to ask them, and so is a failed request.
//! In addition they are polled: for about ten seconds after a requested failover nothing ends
//! connections to the old master, which continues to grant locks.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::Notify;

use super::connection::Connection;
use super::epochs::Epochs;
use super::gather::gather;
use super::moves::Moves;
use super::replicas::connected_replicas;
use super::sentinel_link::{SentinelLink, View};
use super::{NodeId, Route};
use crate::config::Config;
use crate::endpoint::Endpoint;
use crate::env::{Env, Monotonic, draw, pause, within};
use crate::error::{Error, ErrorKind, Result};
use crate::mutex::locked;
use crate::wire::Slot;

/// The default interval at which the Sentinels are asked.
const SCAN: Duration = Duration::from_secs(1);

/// The least time between two refreshes that each have a reason.
const LEAST: Duration = Duration::from_millis(50);

/// The time that the Sentinels have to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// The pause between two refreshes while a request needs a master. Drawn from the first value to
/// the sum of both.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(400));

/// The maximum number of Sentinels that a client asks.
const MOST: usize = 32;

/// The Sentinels of one master, which has all keys.
pub(super) struct SentinelSet {
    me: Weak<Self>,
    env: Arc<dyn Env>,
    config: Arc<Config>,
    /// The name of the master in the Sentinels.
    master: String,
    /// An endpoint with the login of the master; its host is replaced.
    nodes: Endpoint,
    links: Mutex<Vec<Arc<SentinelLink>>>,
    known: Mutex<Known>,
    /// Notified when there is a reason to ask.
    reason: Arc<Notify>,
    changes: Arc<Moves>,
    closed: AtomicBool,
}

#[derive(Default)]
struct Known {
    master: Option<Endpoint>,
    epochs: Epochs,
    replicas: usize,
    is_watched: bool,
}

/// The newest configuration.
struct Found {
    master: Endpoint,
    /// The reason for which the Sentinels are about to replace the master, if they are.
    ends: Option<String>,
}

impl SentinelSet {
    pub(super) fn new(env: Arc<dyn Env>, config: Arc<Config>, master: &str, nodes: &Endpoint) -> Arc<Self> {
        let links =
            config.endpoints.iter().map(|endpoint| SentinelLink::new(endpoint.clone(), true)).collect();
        let (master, nodes) = (master.to_owned(), nodes.clone());
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            env,
            config,
            master,
            nodes,
            links: Mutex::new(links),
            known: Mutex::default(),
            reason: Arc::default(),
            changes: Arc::default(),
            closed: AtomicBool::new(false),
        })
    }

    /// Returns the master that the newest report names.
    pub(super) async fn master(&self, limit: Monotonic) -> Result<Endpoint> {
        Ok(self.look(limit).await?.master)
    }

    /// Asks all Sentinels, and accepts the newest of their reports.
    async fn look(&self, limit: Monotonic) -> Result<Found> {
        let links = locked(&self.links).clone();
        let limit = limit.min(self.env.now() + PATIENCE);
        let asked = links.iter().map(|link| -> BoxFuture<'_, Result<Option<View>>> {
            Box::pin(link.view(&self.env, &self.master, &self.reason, limit))
        });
        let (answers, errors) = gather(&*self.env, limit, asked.collect()).await;
        let answered = answers.len();
        let mut views: Vec<View> = answers.into_iter().flatten().collect();
        let named = || links.iter().map(|link| link.endpoint.to_string()).collect::<Vec<_>>().join(", ");
        if answered == 0 {
            let reason =
                errors.first().map_or_else(|| "none answers in time".to_owned(), ToString::to_string);
            let (endpoints, master) = (named(), self.master.clone());
            let error = Error::definite(ErrorKind::NoSentinel { endpoints, master, reason });
            return Err(errors.into_iter().next().map_or(error.clone(), |cause| error.caused_by(cause)));
        }
        for view in &mut views {
            self.meet(std::mem::take(&mut view.others));
        }
        // `max_by_key` returns the last maximum. Reversed, so that the first to answer wins among
        // equals.
        views.reverse();
        let Some(best) = views.into_iter().max_by_key(|view| view.epoch) else {
            let (endpoints, master) = (named(), self.master.clone());
            return Err(Error::definite(ErrorKind::UnknownMaster { endpoints, master }));
        };
        let master = self.nodes.at(&best.host, best.port)?;
        let mut known = locked(&self.known);
        let by_most = answered * 2 > links.len();
        if !known.epochs.believe(best.epoch, by_most, self.env.now()) {
            let newest = known.epochs.newest();
            let reason = format!(
                "the Sentinels that answer know the configuration {}, and there was {newest} already",
                best.epoch
            );
            return Err(self.no_master(&named(), &reason));
        }
        known.replicas = best.replicas;
        let moved = known.master.as_ref().is_some_and(|before| !before.is_same_place(&master));
        known.master = Some(master.clone());
        drop(known);
        if moved {
            self.changes.moved();
        }
        let ends = best.ends.map(|flag| format!("the Sentinels are about to replace {master} ({flag})"));
        Ok(Found { master, ends })
    }

    /// Adds the Sentinels that another one has named. One that is already listed under another
    /// address is recognized once it reports its id.
    fn meet(&self, others: Vec<(String, u16, String)>) {
        let mut links = locked(&self.links);
        for (host, port, id) in others {
            let is_known = |link: &Arc<SentinelLink>| {
                link.id().as_ref() == Some(&id) || link.endpoint.is_at(&host, port)
            };
            if links.len() < MOST
                && !links.iter().any(is_known)
                && let Some(Ok(endpoint)) = self.config.endpoints.first().map(|first| first.at(&host, port))
            {
                links.push(SentinelLink::new(endpoint, false));
            }
        }
        let ids: Vec<_> = links.iter().map(|link| (link.id(), link.is_configured)).collect();
        let mut at = 0;
        links.retain(|link| {
            let (id, place) = (link.id(), at);
            at += 1;
            // Of two links with the same id keep the first one, or the configured one if the other
            // is not configured.
            link.is_configured
                || id.is_none()
                || !ids.iter().enumerate().any(|(other, (of, configured))| {
                    *of == id && (*configured || other < place) && other != place
                })
        });
    }

    /// Connects to the master before `limit`. That may take until a failover has ended.
    async fn connect(&self, limit: Monotonic) -> Result<Arc<Connection>> {
        self.watch();
        loop {
            let layout = self.changes.position();
            let found = self.look(limit).await?;
            let (master, reason) = match found {
                Found { master, ends: Some(reason) } => (master, reason),
                Found { master, ends: None } => {
                    let opened = self.open(&master, limit);
                    let opened = tokio::select! {
                        biased;
                        opened = opened => opened,
                        () = layout.left() => continue,
                    };
                    match opened {
                        Err(error) if error.is_transient() => (master, error.to_string()),
                        done => return done,
                    }
                }
            };
            let (least, more) = PAUSE;
            let more = draw(&*self.env, u64::try_from(more.as_micros()).unwrap_or(0));
            let next = self.env.now() + least + Duration::from_micros(more);
            if next >= limit {
                let names =
                    locked(&self.links).iter().map(|link| link.endpoint.to_string()).collect::<Vec<_>>();
                let endpoints =
                    format!("{master}, which is {} by the Sentinels {}", self.master, names.join(", "));
                return Err(self.no_master(&endpoints, &reason));
            }
            tokio::select! {
                biased;
                () = layout.left() => {}
                () = self.env.sleep_until(next) => {}
            }
        }
    }

    /// Connects to `master`, which must itself report to be a master.
    async fn open(&self, master: &Endpoint, limit: Monotonic) -> Result<Arc<Connection>> {
        let connection = Connection::open(&self.env, master, None, limit).await?;
        let told = within(&*self.env, limit, pin!(connected_replicas(&connection))).await;
        match told {
            Some(Ok(Some(_))) => Ok(connection),
            Some(Ok(None)) => Err(self.no_master(&master.to_string(), "it says that it is a replica")),
            Some(Err(error)) => Err(self.no_master(&master.to_string(), &error.to_string()).caused_by(error)),
            None => Err(self.no_master(&master.to_string(), "it does not answer")),
        }
    }

    fn no_master(&self, endpoints: &str, reason: &str) -> Error {
        Error::definite(ErrorKind::NoMaster { endpoints: endpoints.to_owned(), reason: reason.to_owned() })
    }

    /// Starts the background task that polls the Sentinels, once.
    fn watch(&self) {
        if !std::mem::replace(&mut locked(&self.known).is_watched, true) {
            self.env.spawn(Box::pin(watch(self.me.clone(), self.env.clone(), self.reason.clone())));
        }
    }
}

impl Route for SentinelSet {
    fn node(&self, _slot: Slot) -> NodeId {
        NodeId::ONLY
    }

    fn dial(&self, _node: NodeId, limit: Monotonic) -> BoxFuture<'_, Result<Arc<Connection>>> {
        Box::pin(self.connect(limit))
    }

    fn replicas(&self, _node: NodeId) -> usize {
        locked(&self.known).replicas
    }

    fn leads_to(&self, _node: NodeId, endpoint: &Endpoint) -> bool {
        locked(&self.known).master.as_ref().is_none_or(|master| master.is_same_place(endpoint))
    }

    fn suspect(&self) {
        self.reason.notify_one();
    }

    fn changes(&self) -> Option<&Arc<Moves>> {
        Some(&self.changes)
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Release);
        for link in locked(&self.links).iter() {
            link.close();
        }
        self.reason.notify_one();
    }
}

impl Drop for SentinelSet {
    fn drop(&mut self) {
        self.reason.notify_one();
    }
}

/// Asks the Sentinels at each interval and when there is a reason. Ends with the client.
async fn watch(set: Weak<SentinelSet>, env: Arc<dyn Env>, reason: Arc<Notify>) {
    loop {
        let Some(strong) = set.upgrade() else { return };
        if strong.closed.load(Ordering::Acquire) {
            return;
        }
        let due = env.now() + strong.config.scan_interval.unwrap_or(SCAN);
        // The known master remains valid until a newer report.
        let _ = strong.look(due.max(env.now() + PATIENCE)).await;
        drop(strong);
        pause(&*env, LEAST).await;
        tokio::select! {
            biased;
            () = reason.notified() => {}
            () = env.sleep_until(due) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::scripted::Scripted;
    use super::*;
    use crate::env::TokioEnv;

    /// A set with Sentinels at these endpoints and the master `m`.
    fn set_of(env: &Arc<dyn Env>, endpoints: Vec<Endpoint>) -> Arc<SentinelSet> {
        let config = Config { endpoints, ..Config::default() };
        let nodes = Endpoint::parse("redis://10.0.0.1:6379").unwrap();
        SentinelSet::new(env.clone(), Arc::new(config), "m", &nodes)
    }

    #[tokio::test]
    async fn there_are_as_many_replicas_as_the_sentinels_said_last() {
        let env: Arc<dyn Env> = Arc::new(TokioEnv::current().unwrap());
        let sentinel = Scripted::start(&env).await;
        let set = set_of(&env, vec![sentinel.endpoint.clone()]);
        for replicas in [2, 0, 3] {
            sentinel.describes("10.0.0.1", replicas, 0);
            set.look(env.now() + PATIENCE).await.unwrap();
            assert_eq!(set.replicas(NodeId::ONLY), replicas);
        }
    }

    /// The next look would be in an hour.
    #[tokio::test]
    async fn the_watch_ends_with_the_set_that_it_watches() {
        let env: Arc<dyn Env> = Arc::new(TokioEnv::current().unwrap());
        let sentinel = Scripted::start(&env).await;
        sentinel.describes("10.0.0.1", 1, 0);
        let (endpoints, scan_interval) = (vec![sentinel.endpoint.clone()], Some(Duration::from_secs(3600)));
        let config = Config { endpoints, scan_interval, ..Config::default() };
        let nodes = Endpoint::parse("redis://10.0.0.1:6379").unwrap();
        let set = SentinelSet::new(env.clone(), Arc::new(config), "m", &nodes);
        let watched = watch(Arc::downgrade(&set), env.clone(), set.reason.clone());
        // The watch looks for the master when the set is dropped.
        let ended = futures_util::future::join(watched, async { drop(set) });
        let ended = within(&*env, env.now() + Duration::from_secs(10), pin!(ended)).await;
        assert!(ended.is_some(), "it goes on");
    }

    /// A lying Sentinel could name any number.
    #[tokio::test]
    async fn no_more_sentinels_are_known_than_thirty_two() {
        let env: Arc<dyn Env> = Arc::new(TokioEnv::current().unwrap());
        let sentinel = Scripted::start(&env).await;
        sentinel.describes("10.0.0.1", 1, 40);
        let others: Vec<(Endpoint, String)> = (1..=40)
            .map(|at| (Endpoint::parse(&format!("redis://127.0.0.1:{at}")).unwrap(), format!("id{at}")))
            .collect();
        let named: Vec<(&Endpoint, &str)> = others.iter().map(|(at, id)| (at, id.as_str())).collect();
        sentinel.names(&named);
        let set = set_of(&env, vec![sentinel.endpoint.clone()]);
        set.look(env.now() + PATIENCE).await.unwrap();
        assert_eq!(locked(&set.links).len(), MOST);
    }

    /// No number of Sentinels makes an older configuration believed immediately. A majority that
    /// reports it makes the newer one doubtful; a minority does not.
    #[tokio::test]
    async fn most_of_the_sentinels_may_know_an_older_configuration() {
        let env: Arc<dyn Env> = Arc::new(TokioEnv::current().unwrap());
        for (count, silent, is_doubted) in
            [(3, 2, false), (3, 1, true), (3, 0, true), (2, 1, false), (5, 3, false), (5, 2, true)]
        {
            let mut sentinels = Vec::new();
            for _ in 0..count {
                let sentinel = Scripted::start(&env).await;
                sentinel.describes_in(5, "10.0.0.1", 1, count - 1);
                sentinels.push(sentinel);
            }
            let endpoints = sentinels.iter().map(|sentinel| sentinel.endpoint.clone()).collect();
            let set = set_of(&env, endpoints);
            set.look(env.now() + PATIENCE).await.unwrap();
            for (at, sentinel) in sentinels.iter().enumerate() {
                sentinel.describes_in(4, "10.0.0.2", 1, count - 1);
                if at < silent {
                    sentinel.says("MASTER", "-ERR busy\r\n".to_owned());
                }
            }
            // On a busy machine an answer may come too late to be counted.
            for look in 0.. {
                let Err(refused) = set.look(env.now() + PATIENCE).await else {
                    panic!("{silent} of {count}: it is believed")
                };
                assert!(
                    matches!(refused.kind(), ErrorKind::NoMaster { .. }),
                    "{silent} of {count}: {refused}"
                );
                if locked(&set.known).epochs.are_doubted() == is_doubted {
                    break;
                }
                assert!(is_doubted && look < 20, "{silent} of {count} do not say");
            }
        }
    }

    /// A Sentinel that has moved is listed at two addresses, by ids that the others remember. It
    /// reports the same id at both.
    #[tokio::test]
    async fn of_two_sentinels_that_call_themselves_the_same_the_first_stays() {
        let env: Arc<dyn Env> = Arc::new(TokioEnv::current().unwrap());
        let mut sentinels = Vec::new();
        for id in ["one", "two", "two"] {
            let sentinel = Scripted::start(&env).await;
            sentinel.describes("10.0.0.1", 1, 2);
            sentinel.says("MYID", format!("${}\r\n{id}\r\n", id.len()));
            sentinels.push(sentinel);
        }
        let at: Vec<Endpoint> = sentinels.iter().map(|sentinel| sentinel.endpoint.clone()).collect();
        sentinels[0].names(&[(&at[1], "before"), (&at[2], "after")]);
        let set = set_of(&env, vec![at[0].clone()]);
        let links = || locked(&set.links).iter().map(|link| link.endpoint.to_string()).collect::<Vec<_>>();
        let named = |known: usize| at.iter().take(known).map(ToString::to_string).collect::<Vec<_>>();
        set.look(env.now() + PATIENCE).await.unwrap();
        assert_eq!(links(), named(3));
        // The own ids become known only once these Sentinels have been asked themselves.
        for _ in 0..20 {
            set.look(env.now() + PATIENCE).await.unwrap();
            if links().len() < 3 {
                break;
            }
        }
        assert_eq!(links(), named(2));
    }
}
