//! The subscribing connections of a client, and their channels.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, Mutex, Weak};

use redis::{PushInfo, PushKind, Value};
use tokio::sync::Notify;

use super::channel::{Channel, Wakes};
use super::crowd::{Crowds, HeldBack, Listening, Pace, Place};
use crate::config::Config;
use crate::env::{Env, pause, within};
use crate::error::{Error, ErrorKind, Result};
use crate::mutex::locked;
use crate::route::connection::{Connection, OnPush};
use crate::route::{NodeId, Position, Router};
use crate::wire::Slot;

/// The number of channels in one command.
const CHANNELS_AT_ONCE: usize = 100;

/// The channels of one client that have waiters, and the tasks that listen: one for each node that
/// has a channel.
///
/// A channel may move to another node. Its waiters then look at the lock, as after every new
/// subscription.
pub(crate) struct Hub {
    pub(super) env: Arc<dyn Env>,
    config: Arc<Config>,
    router: Arc<Router>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    channels: BTreeMap<String, Listened>,
    /// For each node that is listened to: notified when channels come or go, and when the hub is
    /// dropped.
    bells: BTreeMap<NodeId, Arc<Notify>>,
    /// The subscriptions that a node has ended unasked.
    dropped: BTreeSet<(NodeId, String)>,
    crowds: Crowds,
}

struct Listened {
    channel: Arc<Channel>,
    slot: Slot,
    /// True if messages reach only those who subscribe at the node of the channel's slot.
    is_sharded: bool,
}

impl Hub {
    pub(crate) fn new(env: Arc<dyn Env>, config: Arc<Config>, router: Arc<Router>) -> Arc<Self> {
        Arc::new(Self { env, config, router, state: Mutex::default() })
    }

    /// Adds a waiter to a channel, to which scripts with keys of `slot` publish.
    pub(super) fn join(self: &Arc<Self>, wakes: &Wakes, slot: Slot, wants_several: bool) -> Arc<Channel> {
        let own_slot = Slot::of(&wakes.channel);
        // To a shard other than its own, a script publishes with PUBLISH, which reaches all nodes.
        let is_sharded = self.router.is_sharded() && own_slot == slot;
        let mut state = locked(&self.state);
        let now = self.env.now();
        let new =
            || Listened { channel: Arc::new(Channel::new(wakes.policy, now)), slot: own_slot, is_sharded };
        let channel = state.channels.entry(wakes.channel.clone()).or_insert_with(new).channel.clone();
        channel.join(wants_several);
        self.attend(&mut state, self.router.node_id(own_slot)).notify_one();
        channel
    }

    /// Returns the bell of the task that listens to a node; starts the task if necessary.
    fn attend(self: &Arc<Self>, state: &mut State, id: NodeId) -> Arc<Notify> {
        let new = || {
            let bell = Arc::new(Notify::new());
            self.env.spawn(Box::pin(serve(Arc::downgrade(self), id, bell.clone())));
            bell
        };
        state.bells.entry(id).or_insert_with(new).clone()
    }

    /// Removes a waiter, and the channel with the last one.
    pub(super) fn leave(&self, name: &str, channel: &Channel, wanted_several: bool) {
        let mut state = locked(&self.state);
        if channel.leave(wanted_several) == 0 {
            state.channels.remove(name);
            state.crowds.leave(name);
            ring(&state);
        }
    }

    /// Returns the state of this client's subscription to a channel. Ask before a release, and pass
    /// the result to [`Hub::released`].
    pub(crate) fn listening(&self, name: &str) -> Listening {
        let state = locked(&self.state);
        state.crowds.listening(name, state.channels.contains_key(name))
    }

    /// Records that the message of this client's release has reached `reached` clients.
    pub(crate) fn released(&self, name: &str, reached: u32, listening: Listening) {
        locked(&self.state).crowds.released(name, reached, listening, self.env.now());
    }

    /// Records that this client has got the lock after `passed` messages, and their pace.
    pub(super) fn granted(&self, name: &str, passed: u32, pace: Option<Pace>) {
        locked(&self.state).crowds.granted(name, passed, pace);
    }

    /// Returns the place of this client among those that wait, after `passed` messages.
    pub(super) fn place(&self, name: &str, passed: u32) -> Place {
        locked(&self.state).crowds.place(name, passed, self.env.now())
    }

    /// Returns true if this client knows of waiters of other clients at any channel.
    pub(crate) fn knows_others(&self) -> bool {
        !locked(&self.state).crowds.is_empty()
    }

    /// Returns the limits of a wait for the first turn, if waiters of other clients come first. If
    /// this client has waiters, a new one queues behind them as always.
    pub(crate) fn held_back(&self, name: &str) -> Option<HeldBack> {
        let now = self.env.now();
        let state = locked(&self.state);
        if state.channels.contains_key(name) { None } else { state.crowds.held_back(name, now) }
    }

    /// Has every channel listened to at the node that has it now.
    fn follow(self: &Arc<Self>) {
        let mut state = locked(&self.state);
        let ids: BTreeSet<_> =
            state.channels.values().map(|listened| self.router.node_id(listened.slot)).collect();
        for id in ids {
            self.attend(&mut state, id);
        }
        ring(&state);
    }

    fn channel(&self, name: &str) -> Option<Arc<Channel>> {
        locked(&self.state).channels.get(name).map(|listened| listened.channel.clone())
    }

    /// Returns the channels to listen to at a node; the value is true for sharded channels. Refused
    /// channels are left out: they remain only until their waiters have been notified.
    fn wanted(&self, id: NodeId) -> BTreeMap<String, bool> {
        let state = locked(&self.state);
        let wanted = state.channels.iter().filter(|(_, listened)| listened.channel.refusal().is_none());
        let here = wanted.filter(|(_, listened)| self.router.node_id(listened.slot) == id);
        here.map(|(name, listened)| (name.clone(), listened.is_sharded)).collect()
    }

    fn dispatch(&self, id: NodeId, push: &PushInfo) {
        let name = match push.data.first() {
            Some(Value::BulkString(name)) => std::str::from_utf8(name).ok(),
            _ => None,
        };
        let Some(name) = name else { return };
        match (&push.kind, push.data.get(1)) {
            (PushKind::Message | PushKind::SMessage, Some(Value::BulkString(message))) => {
                if let Some(channel) = self.channel(name) {
                    channel.deliver(message);
                }
            }
            // Recorded for our own SUNSUBSCRIBE as well; `align` discards it once that is
            // confirmed.
            (PushKind::SUnsubscribe, _) => {
                let mut state = locked(&self.state);
                if state.channels.contains_key(name) {
                    state.dropped.insert((id, name.to_owned()));
                    ring(&state);
                }
            }
            _ => {}
        }
    }

    /// Takes out the channels whose subscriptions a node has ended.
    fn take_dropped(&self, id: NodeId) -> BTreeSet<String> {
        let mut state = locked(&self.state);
        state.dropped.extract_if(.., |(node, _)| *node == id).map(|(_, name)| name).collect()
    }

    async fn connect(self: &Arc<Self>, id: NodeId) -> Result<Arc<Connection>> {
        let hub = Arc::downgrade(self);
        let on_push: OnPush = Arc::new(move |push| {
            if let Some(hub) = hub.upgrade() {
                hub.dispatch(id, &push);
            }
        });
        self.router.node_of(id).subscriber(on_push).await
    }

    /// Brings the subscriptions of `connection` in line with the channels that have waiters. An
    /// error is one of the connection; a refusal goes to the waiters of the channel.
    async fn align(
        &self,
        id: NodeId,
        connection: &Connection,
        subscribed: &mut BTreeMap<String, bool>,
    ) -> Result<()> {
        for name in self.take_dropped(id) {
            subscribed.remove(&name);
        }
        let leaving = locked(&self.state).crowds.leaving();
        let wanted = self.wanted(id);
        let gone: Vec<_> = without(subscribed, &wanted, false);
        for names in gone.chunks(CHANNELS_AT_ONCE) {
            self.answered(pin!(connection.unsubscribe(names))).await?;
        }
        for name in without(subscribed, &wanted, true) {
            self.answered(pin!(connection.subscribe_sharded(&name, false))).await?;
        }
        if subscribed.keys().any(|name| !wanted.contains_key(name)) {
            subscribed.retain(|name, _| wanted.contains_key(name));
            self.take_dropped(id);
        }
        if !leaving.is_empty() {
            locked(&self.state).crowds.left(&leaving);
        }
        let new: Vec<_> = without(&wanted, subscribed, false);
        for names in new.chunks(CHANNELS_AT_ONCE) {
            match self.answered(pin!(connection.subscribe(names))).await {
                Ok(()) => self.begin(names, false, subscribed),
                // One refused channel makes the server refuse the whole command, so subscribe to
                // each alone.
                Err(error) if is_refusal(&error) => {
                    for name in names {
                        self.subscribe_one(name, false, connection, subscribed).await?;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        for name in without(&wanted, subscribed, true) {
            self.subscribe_one(&name, true, connection, subscribed).await?;
        }
        for channel in subscribed.keys().filter_map(|name| self.channel(name)) {
            channel.confirm();
        }
        Ok(())
    }

    async fn subscribe_one(
        &self,
        name: &String,
        is_sharded: bool,
        connection: &Connection,
        subscribed: &mut BTreeMap<String, bool>,
    ) -> Result<()> {
        let names = std::slice::from_ref(name);
        let done = if is_sharded {
            self.answered(pin!(connection.subscribe_sharded(name, true))).await
        } else {
            self.answered(pin!(connection.subscribe(names))).await
        };
        match done {
            Ok(()) => self.begin(names, is_sharded, subscribed),
            Err(error) if is_refusal(&error) => self.refuse(names, &error),
            Err(error) => {
                self.router.refused(&connection.endpoint, &error);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Records that the server has subscribed this client to `names`.
    fn begin(&self, names: &[String], is_sharded: bool, subscribed: &mut BTreeMap<String, bool>) {
        // The present waiters may have missed earlier messages, so wake them.
        for channel in names.iter().filter_map(|name| self.channel(name)) {
            channel.wake_all();
        }
        subscribed.extend(names.iter().map(|name| (name.clone(), is_sharded)));
    }

    fn refuse(&self, names: &[String], error: &Error) {
        for channel in names.iter().filter_map(|name| self.channel(name)) {
            channel.refuse(error);
        }
    }

    async fn answered<T>(&self, work: impl Future<Output = Result<T>> + Unpin) -> Result<T> {
        let limit = self.env.now() + self.config.response_timeout;
        within(&*self.env, limit, work).await.unwrap_or_else(|| Err(self.config.no_reply()))
    }
}

/// Returns the names in `these` but not in `those`, either only sharded or only plain ones.
fn without(these: &BTreeMap<String, bool>, those: &BTreeMap<String, bool>, is_sharded: bool) -> Vec<String> {
    let names = these.iter().filter(|(name, sharded)| **sharded == is_sharded && !those.contains_key(*name));
    names.map(|(name, _)| name.clone()).collect()
}

fn ring(state: &State) {
    for bell in state.bells.values() {
        bell.notify_one();
    }
}

/// Returns true if the server has refused the request itself and would do so again.
fn is_refusal(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Server { code, .. } if code != "MOVED" && code != "ASK")
        && !error.is_transient()
}

impl Drop for Hub {
    fn drop(&mut self) {
        ring(&locked(&self.state));
    }
}

/// Keeps the subscriptions at a node, over successive connections, as long as the hub lives.
async fn serve(hub: Weak<Hub>, id: NodeId, bell: Arc<Notify>) {
    let mut failures = 0;
    while let Some(strong) = hub.upgrade() {
        let layout = strong.router.layout();
        if strong.wanted(id).is_empty() {
            drop(strong);
            tokio::select! {
                biased;
                () = bell.notified() => {}
                () = layout.left() => follow(&hub),
            }
            continue;
        }
        let (env, config) = (strong.env.clone(), strong.config.clone());
        let connected = tokio::select! {
            biased;
            connected = strong.connect(id) => connected,
            () = layout.left() => {
                strong.follow();
                continue;
            }
        };
        let fails = match connected {
            Ok(connection) => {
                let (position, begun) = (strong.router.node_of(id).position(), env.now());
                drop(strong);
                let ending = serve_on(&hub, id, &bell, &connection, &position).await;
                // A connection that ends soon counts as a failure to connect.
                matches!(ending, Ending::Broken) && env.now() - begun < config.retry_delay
            }
            Err(error) => {
                let names = Vec::from_iter(strong.wanted(id).into_keys());
                if is_refusal(&error) {
                    strong.refuse(&names, &error);
                }
                for channel in names.iter().filter_map(|name| strong.channel(name)) {
                    channel.trouble.failed(&error);
                }
                drop(strong);
                true
            }
        };
        if fails {
            // The connection may have been given up because a new master is known; then do not
            // pause.
            let paused = pause(&*env, config.retry_delay(&*env, failures));
            tokio::select! {
                biased;
                () = layout.left() => {}
                () = paused => {}
            }
        }
        // Another node may have the channels by now; a refused subscription may just have shown
        // that.
        follow(&hub);
        failures = if fails { failures + 1 } else { 0 };
    }
}

fn follow(hub: &Weak<Hub>) {
    if let Some(strong) = hub.upgrade() {
        strong.follow();
    }
}

/// The reason for which a connection is not used any more.
enum Ending {
    Broken,
    /// Another server is the master, or the hub is gone.
    Left,
}

/// Serves until the connection is of no more use: it broke, it is silent, or another server is the
/// master.
async fn serve_on(
    hub: &Weak<Hub>,
    id: NodeId,
    bell: &Notify,
    connection: &Connection,
    position: &Position,
) -> Ending {
    let mut subscribed = BTreeMap::new();
    loop {
        let Some(strong) = hub.upgrade() else { return Ending::Left };
        let layout = strong.router.layout();
        if strong.align(id, connection, &mut subscribed).await.is_err() {
            return Ending::Broken;
        }
        let (env, ping_due) = (strong.env.clone(), strong.env.now() + strong.config.ping_interval);
        drop(strong);
        tokio::select! {
            biased;
            () = connection.ended() => return Ending::Broken,
            () = position.left() => return Ending::Left,
            () = layout.left() => {
                let Some(strong) = hub.upgrade() else { return Ending::Left };
                strong.follow();
                if !strong.router.leads_to(id, connection) {
                    return Ending::Left;
                }
            }
            () = bell.notified() => {}
            () = env.sleep_until(ping_due) => {
                let Some(strong) = hub.upgrade() else { return Ending::Left };
                if strong.answered(pin!(connection.call(&redis::cmd("PING")))).await.is_err() {
                    return Ending::Broken;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::Endpoint;
    use crate::env::TokioEnv;
    use crate::wake::Wake;

    #[tokio::test]
    async fn a_subscription_that_a_node_has_ended_is_told_once_and_of_channels_with_waiters() {
        let env: Arc<dyn Env> = Arc::new(TokioEnv::current().unwrap());
        let endpoints = vec![Endpoint::parse("redis://127.0.0.1:1").unwrap()];
        let config = Arc::new(Config { endpoints, ..Config::default() });
        let router = Arc::new(Router::new(env.clone(), config.clone()));
        let id = router.node_id(Slot(0));
        let hub = Hub::new(env, config, router);
        for channel in ["stock", "cash"] {
            hub.join(
                &Wakes {
                    channel: channel.to_owned(),
                    policy: |_| Wake::All,
                    exclusive: false,
                    in_turns: false,
                },
                Slot(0),
                false,
            );
        }
        for ended in ["stock", "till"] {
            let data = vec![Value::BulkString(ended.into())];
            hub.dispatch(id, &PushInfo { kind: PushKind::SUnsubscribe, data });
        }
        assert_eq!(hub.take_dropped(id), BTreeSet::from(["stock".to_owned()]));
        assert_eq!(hub.take_dropped(id), BTreeSet::new());
    }
}
