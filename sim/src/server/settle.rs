//! Settles the effects of commands: sends messages to subscribers, breaks watches, wakes waiters,
//! and appends to the replication stream.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::{Server, own_pushes::OwnPushes};
use crate::{
    effect::{
        Class, Effects, Framing, PropagateTo, Propagated, Publication, Resubscription, Signal, Subscription,
        Touch,
    },
    env::{Env, Observation},
    event::ConnId,
    generation::Feature,
    glob::matches,
    keyspace::{Db, ExpiryRule},
    resp::Reply,
};

/// The client of a batch, while one event or message of the batch is published.
#[derive(Debug, Clone, Copy)]
struct Author<'a> {
    conn: ConnId,
    /// The index of the command, if the batch is a transaction.
    command: Option<usize>,
    /// True if pushes to this client come after the reply.
    after_reply: bool,
    /// The subscriptions that it began or ended later in the batch.
    later: &'a [Resubscription],
}

/// The client of a batch, the ends of the commands in its transaction, and the changes of its
/// subscriptions.
#[derive(Clone, Copy)]
struct Batch<'a> {
    by: Option<ConnId>,
    command_ends: &'a [(usize, usize)],
    resubscribed: &'a [Resubscription],
    /// Set if all pushes to this client come after the reply.
    pushes_last: bool,
}

impl<'a> Batch<'a> {
    fn at_touch(self, at: usize, after_reply: bool) -> Option<Author<'a>> {
        self.at(|(touched, _)| touched <= at, after_reply)
    }

    fn at_message(self, number: usize) -> Option<Author<'a>> {
        self.at(|(_, messages)| messages <= number, false)
    }

    /// Returns the client at the point of the batch after all positions for which `is_past` holds.
    fn at(self, is_past: impl Fn((usize, usize)) -> bool, after_reply: bool) -> Option<Author<'a>> {
        let command = self.command_ends.partition_point(|&end| is_past(end));
        let later = &self.resubscribed[self.resubscribed.partition_point(|change| is_past(change.at))..];
        let command = (command < self.command_ends.len()).then_some(command);
        if self.pushes_last {
            return Some(Author { conn: self.by?, command: None, after_reply: true, later });
        }
        // A push that comes before the reply of a single command is sent immediately, so it needs
        // no author.
        let conn = self.by.filter(|_| command.is_some() || after_reply)?;
        Some(Author { conn, command, after_reply, later })
    }
}

impl Server {
    /// Carries out effects that no client caused.
    pub(super) fn settle(&mut self, env: &mut Env, effects: Effects) {
        self.settle_batch(env, None, effects);
    }

    /// Carries out the effects of one batch of a client: a command, a script, or a transaction.
    /// Returns the pushes to the client itself, which are sent with its reply.
    pub(super) fn settle_for(&mut self, env: &mut Env, conn: ConnId, effects: Effects) -> OwnPushes {
        self.settle_batch(env, Some(conn), effects)
    }

    fn settle_batch(&mut self, env: &mut Env, by: Option<ConnId>, mut effects: Effects) -> OwnPushes {
        self.node.stats.dirty += effects.dirty;
        let mut own = OwnPushes::new(std::mem::take(&mut effects.monitor_lines));
        if effects.is_untold() {
            return own;
        }
        if !effects.flushed.is_empty() {
            self.end_flushed_migrations(env);
        }
        for (db, was) in &effects.flushed {
            self.break_watches(*db, |key, _| was.contains(key));
            self.note_replaced(*db);
        }
        for &(a, b) in &effects.swapped {
            let rule = self.node.config.expiry_rule(env.wall.as_millis());
            self.swap_watches(a, b, rule);
            self.swap_watches(b, a, rule);
            self.note_replaced(a);
            self.note_replaced(b);
        }
        let mut cached = effects.cached.into_iter().peekable();
        let mut published = effects.published.into_iter().enumerate().peekable();
        let batch = Batch {
            by,
            command_ends: &effects.command_ends,
            resubscribed: &effects.resubscribed,
            pushes_last: self.node.config.generation.has(Feature::PushesLast),
        };
        for (at, touch) in effects.touched.iter().enumerate() {
            while let Some((number, (_, message))) = published.next_if(|(_, (before, _))| *before <= at) {
                self.deliver(env, message, batch.at_message(number), &mut own);
            }
            while let Some((_, cached)) = cached.next_if(|(before, _)| *before <= at) {
                own.invalidate_all(self.node.note_cached(cached, by));
            }
            if touch.signal == Signal::First {
                self.signal_change(touch, by, &mut own);
            }
            self.notify(env, touch, batch.at_touch(at, touch.after_reply), &mut own);
            if touch.signal == Signal::Last {
                self.signal_change(touch, by, &mut own);
            }
            // Misses are no changes. A change without an event of its own comes together with one
            // that has an event.
            if env.observing && !matches!(touch.class, Class::Miss | Class::Unannounced) {
                let (db, key, event) = (touch.db, touch.key.clone(), touch.event);
                env.observations.push(Observation::Key { db, key, event, by });
            }
        }
        cached.for_each(|(_, cached)| own.invalidate_all(self.node.note_cached(cached, by)));
        self.note_ready(&effects.touched);
        let now_ms = env.wall.as_millis();
        if effects.framing == Framing::Never {
            let commands = effects.propagated.into_iter();
            commands.for_each(|command| self.propagate(vec![command], Framing::Never, now_ms));
        } else {
            self.propagate(effects.propagated, effects.framing, now_ms);
        }
        for (number, (_, message)) in published {
            self.deliver(env, message, batch.at_message(number), &mut own);
        }
        own
    }

    /// Breaks the watches of a key that has changed, and sends its invalidations.
    fn signal_change(&mut self, touch: &Touch, by: Option<ConnId>, own: &mut OwnPushes) {
        self.node.break_watches(touch.db, &touch.key);
        if self.node.invalidate(touch, by) {
            own.invalidate(touch.key.clone());
        }
    }

    /// Sends each batch to the replicas and the append-only file, as far as its commands are for
    /// them.
    fn propagate(&mut self, commands: Vec<Propagated>, framing: Framing, now_ms: i64) {
        self.stream_to_targets(&commands);
        if commands.iter().all(|command| command.to == PropagateTo::All) {
            self.feed_batch(&commands, framing, now_ms);
            self.append_batch(&commands, framing, now_ms.div_euclid(1000));
            return;
        }
        let without = |other| {
            let wanted = commands.iter().filter(|command| command.to != other);
            wanted.cloned().collect::<Vec<_>>()
        };
        self.feed_batch(&without(PropagateTo::Aof), framing, now_ms);
        self.append_batch(&without(PropagateTo::Replicas), framing, now_ms.div_euclid(1000));
    }

    /// Signals the keys that have changed with their whole database to watchers.
    fn break_watches(&mut self, db: usize, changed: impl Fn(&Bytes, &[Db]) -> bool) {
        let keys =
            self.node.clients.watchers.keys().filter(|(of, key)| *of == db && changed(key, &self.node.dbs));
        for (db, key) in keys.cloned().collect::<Vec<_>>() {
            self.node.break_watches(db, &key);
        }
    }

    /// Signals the keys of a database that was swapped with another to watchers. An expired key
    /// counts as a missing one, but not on Redis 6.2.
    fn swap_watches(&mut self, db: usize, other: usize, rule: ExpiryRule) {
        let knows_expired = self.node.config.generation.has(Feature::ExpiredWatches);
        let keys = self.node.clients.watchers.keys().filter(|(of, _)| *of == db);
        for (_, key) in keys.cloned().collect::<Vec<_>>() {
            let is_expired = self.node.dbs[db].get(&key).map(|entry| entry.is_expired(rule));
            match is_expired {
                None if !self.node.dbs[other].contains(&key) => {}
                Some(true) if knows_expired => {
                    self.node.expire_watches(db, &key, self.node.dbs[other].contains(&key))
                }
                _ => self.node.break_watches(db, &key),
            }
        }
    }

    /// Publishes a keyspace event, as far as `notify-keyspace-events` selects it.
    fn notify(&mut self, env: &mut Env, touch: &Touch, author: Option<Author<'_>>, own: &mut OwnPushes) {
        let wanted = touch.wanted;
        if !wanted.wants(touch.class.letter()) {
            return;
        }
        let Touch { db, key, event, .. } = touch;
        let event = Bytes::from_static(event.as_bytes());
        if wanted.wants(b'K') {
            let channel = [format!("__keyspace@{db}__:").as_bytes(), key].concat().into();
            self.deliver(env, Publication { channel, message: event.clone(), sharded: false }, author, own);
        }
        if wanted.wants(b'E') {
            let channel = [format!("__keyevent@{db}__:").as_bytes(), &event].concat().into();
            self.deliver(env, Publication { channel, message: key.clone(), sharded: false }, author, own);
        }
    }

    /// Returns the subscribers of a name, in the order of their connections. The client of the
    /// batch is included if it was subscribed at that point.
    fn subscribers(&self, kind: Subscription, name: &Bytes, author: Option<Author<'_>>) -> BTreeSet<ConnId> {
        let mut subscribers = self.node.clients.pubsub.of(kind).get(name).cloned().unwrap_or_default();
        if let Some(author) = author
            && let Some(change) =
                author.later.iter().find(|change| change.kind == kind && change.name == *name)
        {
            if change.was {
                subscribers.insert(author.conn);
            } else {
                subscribers.remove(&author.conn);
            }
        }
        subscribers
    }

    /// Sends a message to the subscribers of its channel. Copies for the client of the batch that
    /// come with its reply are added to `own`.
    fn deliver(
        &mut self,
        env: &mut Env,
        publication: Publication,
        author: Option<Author<'_>>,
        own: &mut OwnPushes,
    ) {
        let Publication { channel, message, sharded } = publication;
        let mut pushes = Vec::new();
        let (kind, name) =
            if sharded { (Subscription::Shard, "smessage") } else { (Subscription::Channel, "message") };
        let subscribers = self.subscribers(kind, &channel, author);
        if !subscribers.is_empty() {
            let push = Reply::Push(vec![Reply::bulk(name), channel.clone().into(), message.clone().into()]);
            pushes.push((push, subscribers));
        }
        if !sharded {
            let changed = author.iter().flat_map(|author| author.later);
            let left = changed.filter(|change| change.kind == Subscription::Pattern && change.was);
            let patterns = self
                .node
                .clients
                .pubsub
                .of(Subscription::Pattern)
                .keys()
                .chain(left.map(|change| &change.name));
            let heard: BTreeSet<&Bytes> = patterns.filter(|pattern| matches(pattern, &channel)).collect();
            for pattern in heard {
                let words = [pattern.clone(), channel.clone(), message.clone()].map(Reply::from);
                let push = [Reply::bulk("pmessage")].into_iter().chain(words).collect();
                pushes.push((Reply::Push(push), self.subscribers(Subscription::Pattern, pattern, author)));
            }
        }
        let mut receivers = 0;
        for (push, subscribers) in pushes {
            receivers += subscribers.len();
            for conn in subscribers {
                match author.filter(|author| author.conn == conn) {
                    Some(Author { command, after_reply, .. }) => {
                        own.publish(command, after_reply, push.clone());
                    }
                    None => self.node.send(conn, &push),
                }
            }
        }
        if env.observing {
            env.observations.push(Observation::Published { channel, message, receivers });
        }
    }
}
