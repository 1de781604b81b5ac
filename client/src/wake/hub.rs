//! The connection that listens, and the channels it listens to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, Weak};

use redis::{PushInfo, PushKind, Value};
use tokio::sync::Notify;

use super::channel::{Channel, Wakes};
use crate::config::Config;
use crate::env::{Env, pause, within};
use crate::error::{Error, ErrorKind, Result};
use crate::hold::locked;
use crate::route::connection::{Connection, OnPush};
use crate::route::{Node, NodeId, Position, Router};
use crate::wire::Slot;

/// How many channels go into one command.
const CHANNELS_AT_ONCE: usize = 100;

/// The hubs of one client, by the slots of their channels.
pub(crate) struct Hubs {
    env: Arc<dyn Env>,
    config: Arc<Config>,
    router: Arc<Router>,
    by_node: Mutex<BTreeMap<NodeId, Arc<Hub>>>,
}

impl Hubs {
    pub(crate) fn new(env: Arc<dyn Env>, config: Arc<Config>, router: Arc<Router>) -> Self {
        Self { env, config, router, by_node: Mutex::default() }
    }

    /// The hub that listens to the node of `slot`.
    pub(crate) fn of(&self, slot: Slot) -> Arc<Hub> {
        let node = self.router.node(slot);
        let mut by_node = locked(&self.by_node);
        let new = || Hub::new(self.env.clone(), self.config.clone(), node.clone());
        by_node.entry(node.id()).or_insert_with(new).clone()
    }
}

/// The channels of one node that have waiters.
pub(crate) struct Hub {
    pub(super) env: Arc<dyn Env>,
    config: Arc<Config>,
    node: Arc<Node>,
    state: Mutex<State>,
    /// Notified when channels come or go, and when the hub itself goes.
    changed: Arc<Notify>,
}

#[derive(Default)]
struct State {
    channels: BTreeMap<String, Arc<Channel>>,
    served: bool,
}

impl Hub {
    pub(super) fn new(env: Arc<dyn Env>, config: Arc<Config>, node: Arc<Node>) -> Arc<Self> {
        Arc::new(Self { env, config, node, state: Mutex::default(), changed: Arc::default() })
    }

    /// Adds a waiter to a channel.
    pub(super) fn join(self: &Arc<Self>, wakes: &Wakes, wants_several: bool) -> Arc<Channel> {
        let mut state = locked(&self.state);
        let new = || Arc::new(Channel::new(wakes.policy));
        let channel = state.channels.entry(wakes.channel.clone()).or_insert_with(new).clone();
        channel.join(wants_several);
        let first = !std::mem::replace(&mut state.served, true);
        drop(state);
        if first {
            self.env.spawn(Box::pin(serve(Arc::downgrade(self), self.changed.clone())));
        }
        self.changed.notify_one();
        channel
    }

    /// Takes a waiter off; the last one takes the channel along.
    pub(super) fn leave(&self, name: &str, channel: &Channel, wanted_several: bool) {
        let mut state = locked(&self.state);
        if channel.leave(wanted_several) == 0 {
            state.channels.remove(name);
            self.changed.notify_one();
        }
    }

    fn channel(&self, name: &str) -> Option<Arc<Channel>> {
        locked(&self.state).channels.get(name).cloned()
    }

    /// The channels to listen for. Those that were refused have waiters until these are notified.
    fn wanted(&self) -> BTreeSet<String> {
        let state = locked(&self.state);
        let wanted = state.channels.iter().filter(|(_, channel)| channel.refusal().is_none());
        wanted.map(|(name, _)| name.clone()).collect()
    }

    fn dispatch(&self, push: &PushInfo) {
        let (PushKind::Message, [Value::BulkString(name), Value::BulkString(message)]) =
            (&push.kind, push.data.as_slice())
        else {
            return;
        };
        let Some(channel) = std::str::from_utf8(name).ok().and_then(|name| self.channel(name)) else {
            return;
        };
        channel.deliver(message);
    }

    async fn connect(self: &Arc<Self>) -> Result<Arc<Connection>> {
        let hub = Arc::downgrade(self);
        let on_push: OnPush = Arc::new(move |push| {
            if let Some(hub) = hub.upgrade() {
                hub.dispatch(&push);
            }
        });
        self.node.subscriber(on_push).await
    }

    /// Brings the subscriptions of `connection` in line with the channels that have waiters. An error is that of the
    /// connection; a refusal goes to the channel's waiters.
    async fn align(&self, connection: &Connection, subscribed: &mut BTreeSet<String>) -> Result<()> {
        let wanted = self.wanted();
        let gone: Vec<_> = subscribed.difference(&wanted).cloned().collect();
        for names in gone.chunks(CHANNELS_AT_ONCE) {
            self.answered(connection.unsubscribe(names)).await?;
        }
        subscribed.retain(|name| wanted.contains(name));
        let new: Vec<_> = wanted.difference(subscribed).cloned().collect();
        for names in new.chunks(CHANNELS_AT_ONCE) {
            match self.answered(connection.subscribe(names)).await {
                Ok(()) => self.begin(names, subscribed),
                // One channel that is refused refuses the command, so that each is asked for alone.
                Err(error) if is_refusal(&error) => {
                    for name in names.chunks(1) {
                        match self.answered(connection.subscribe(name)).await {
                            Ok(()) => self.begin(name, subscribed),
                            Err(error) if is_refusal(&error) => self.refuse(name, &error),
                            Err(error) => return Err(error),
                        }
                    }
                }
                Err(error) => return Err(error),
            }
        }
        for channel in subscribed.iter().filter_map(|name| self.channel(name)) {
            channel.confirm();
        }
        Ok(())
    }

    /// The server has begun to listen for `names`.
    fn begin(&self, names: &[String], subscribed: &mut BTreeSet<String>) {
        // Messages before this moment are lost for the present waiters.
        for channel in names.iter().filter_map(|name| self.channel(name)) {
            channel.wake_all();
        }
        subscribed.extend(names.iter().cloned());
    }

    fn refuse(&self, names: &[String], error: &Error) {
        for channel in names.iter().filter_map(|name| self.channel(name)) {
            channel.refuse(error);
        }
    }

    async fn answered<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let limit = self.env.now() + self.config.response_timeout;
        within(&*self.env, limit, work).await.unwrap_or_else(|| Err(self.config.no_reply()))
    }
}

/// Whether the server has understood, and will say the same again.
fn is_refusal(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Server { .. }) && !error.is_transient()
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.changed.notify_one();
    }
}

/// Keeps the subscriptions as long as the hub lives, over as many connections as it takes.
async fn serve(hub: Weak<Hub>, changed: Arc<Notify>) {
    let mut failures = 0;
    while let Some(strong) = hub.upgrade() {
        if strong.wanted().is_empty() {
            drop(strong);
            changed.notified().await;
            continue;
        }
        let (env, config) = (strong.env.clone(), strong.config.clone());
        let fails = match strong.connect().await {
            Ok(connection) => {
                let (position, begun) = (strong.node.position(), env.now());
                drop(strong);
                let ending = serve_on(&hub, &changed, &connection, &position).await;
                // A connection that ends at once is worth no more than none.
                matches!(ending, Ending::Broken) && env.now() - begun < config.retry_delay
            }
            Err(error) => {
                if is_refusal(&error) {
                    strong.refuse(&Vec::from_iter(strong.wanted()), &error);
                }
                drop(strong);
                true
            }
        };
        if fails {
            pause(&*env, config.retry_delay(&*env, failures)).await;
        }
        failures = if fails { failures + 1 } else { 0 };
    }
}

/// Why a connection is of no more use.
enum Ending {
    Broken,
    /// The master is elsewhere, or the hub is gone.
    Left,
}

/// Serves until the connection is of no more use: it broke, it is silent, or the master is elsewhere.
async fn serve_on(hub: &Weak<Hub>, changed: &Notify, connection: &Connection, position: &Position) -> Ending {
    let mut subscribed = BTreeSet::new();
    loop {
        let Some(strong) = hub.upgrade() else { return Ending::Left };
        if strong.align(connection, &mut subscribed).await.is_err() {
            return Ending::Broken;
        }
        let (env, ping_due) = (strong.env.clone(), strong.env.now() + strong.config.ping_interval);
        drop(strong);
        tokio::select! {
            biased;
            () = connection.ended() => return Ending::Broken,
            () = position.left() => return Ending::Left,
            () = changed.notified() => {}
            () = env.sleep_until(ping_due) => {
                let Some(strong) = hub.upgrade() else { return Ending::Left };
                if strong.answered(connection.call(&redis::cmd("PING"))).await.is_err() {
                    return Ending::Broken;
                }
            }
        }
    }
}
