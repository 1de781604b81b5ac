//! The connection that listens, and the channels it listens to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, Weak};

use redis::{PushInfo, PushKind, Value};
use tokio::sync::Notify;

use super::channel::Channel;
use crate::config::Config;
use crate::env::{Env, pause, within};
use crate::hold::locked;
use crate::route::connection::{Connection, OnPush};
use crate::route::{Position, Router};

/// How many channels go into one command.
const CHANNELS_AT_ONCE: usize = 100;

/// All channels that somebody waits for.
pub(crate) struct Hub {
    pub(super) env: Arc<dyn Env>,
    config: Arc<Config>,
    router: Arc<Router>,
    state: Mutex<State>,
    /// Rings when channels come or go, and when the hub itself goes.
    changed: Arc<Notify>,
}

#[derive(Default)]
struct State {
    channels: BTreeMap<String, Arc<Channel>>,
    served: bool,
}

impl Hub {
    pub(crate) fn new(env: Arc<dyn Env>, config: Arc<Config>, router: Arc<Router>) -> Arc<Self> {
        Arc::new(Self { env, config, router, state: Mutex::default(), changed: Arc::default() })
    }

    /// Adds a waiter to the channel `name`.
    pub(super) fn join(self: &Arc<Self>, name: &str) -> Arc<Channel> {
        let mut state = locked(&self.state);
        let channel = state.channels.entry(name.to_owned()).or_default().clone();
        channel.join();
        let first = !std::mem::replace(&mut state.served, true);
        drop(state);
        if first {
            self.env.spawn(Box::pin(serve(Arc::downgrade(self), self.changed.clone())));
        }
        self.changed.notify_one();
        channel
    }

    /// Takes a waiter off; the last one takes the channel along.
    pub(super) fn leave(&self, name: &str, channel: &Channel) {
        let mut state = locked(&self.state);
        if channel.leave() == 0 {
            state.channels.remove(name);
            self.changed.notify_one();
        }
    }

    fn channel(&self, name: &str) -> Option<Arc<Channel>> {
        locked(&self.state).channels.get(name).cloned()
    }

    fn wanted(&self) -> BTreeSet<String> {
        locked(&self.state).channels.keys().cloned().collect()
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
        // `1` tells that the lock may be free for several at once; anything else is worth one look.
        if message == b"1" { channel.wake_all() } else { channel.wake_one() }
    }

    async fn connect(self: &Arc<Self>) -> crate::error::Result<Arc<Connection>> {
        let hub = Arc::downgrade(self);
        let on_push: OnPush = Arc::new(move |push| {
            if let Some(hub) = hub.upgrade() {
                hub.dispatch(&push);
            }
        });
        self.router.subscriber(on_push).await
    }

    /// Brings the subscriptions of `connection` in line with the channels that have waiters. False when it is broken.
    async fn align(&self, connection: &Connection, subscribed: &mut BTreeSet<String>) -> bool {
        let wanted = self.wanted();
        let gone: Vec<_> = subscribed.difference(&wanted).cloned().collect();
        for names in gone.chunks(CHANNELS_AT_ONCE) {
            if self.answered(connection.unsubscribe(names)).await.is_none() {
                return false;
            }
        }
        let new: Vec<_> = wanted.difference(subscribed).cloned().collect();
        for names in new.chunks(CHANNELS_AT_ONCE) {
            if self.answered(connection.subscribe(names)).await.is_none() {
                return false;
            }
            // Messages before this moment are lost to those who wait already.
            for channel in names.iter().filter_map(|name| self.channel(name)) {
                channel.wake_all();
            }
        }
        *subscribed = wanted;
        for channel in subscribed.iter().filter_map(|name| self.channel(name)) {
            channel.confirm();
        }
        true
    }

    async fn answered<T>(&self, work: impl Future<Output = crate::error::Result<T>>) -> Option<T> {
        within(&*self.env, self.env.now() + self.config.response_timeout, work).await?.ok()
    }
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
        match strong.connect().await {
            Ok(connection) => {
                failures = 0;
                let position = strong.router.position();
                drop(strong);
                serve_on(&hub, &changed, &connection, &position).await;
            }
            Err(_) => {
                let (env, wait) = (strong.env.clone(), strong.config.retry_delay(&*strong.env, failures));
                drop(strong);
                failures += 1;
                pause(&*env, wait).await;
            }
        }
    }
}

/// Serves until the connection is of no more use: it broke, it is silent, or the master is elsewhere.
async fn serve_on(hub: &Weak<Hub>, changed: &Notify, connection: &Connection, position: &Position) {
    let mut subscribed = BTreeSet::new();
    loop {
        let Some(strong) = hub.upgrade() else { return };
        if !strong.align(connection, &mut subscribed).await {
            return;
        }
        let (env, ping_due) = (strong.env.clone(), strong.env.now() + strong.config.ping_interval);
        drop(strong);
        tokio::select! {
            biased;
            () = connection.ended() => return,
            () = position.left() => return,
            () = changed.notified() => {}
            () = env.sleep_until(ping_due) => {
                let Some(strong) = hub.upgrade() else { return };
                if strong.answered(connection.call(&redis::cmd("PING"))).await.is_none() {
                    return;
                }
            }
        }
    }
}
