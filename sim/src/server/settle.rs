//! Spending what commands did: messages to subscribers, broken watches, woken waiters, the replication stream.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::Server;
use crate::{
    effect::{Class, Effects, Propagated, Publication, Recipients, Resubscription, Signal, Touch},
    env::{Env, Observation},
    event::ConnId,
    glob::matches,
    keyspace::Db,
    pubsub::Subscription,
    resp::Reply,
    session::Session,
};

/// A client that may hear of what its own command does.
#[derive(Debug, Clone, Copy)]
struct Hearer<'a> {
    conn: ConnId,
    /// The number of the command in the transaction.
    command: Option<usize>,
    /// It hears of it behind the reply.
    behind: bool,
    /// What it began or stopped to listen to afterwards.
    later: &'a [Resubscription],
}

/// What a client has heard of its own transaction.
#[derive(Debug)]
pub(super) struct Heard {
    /// The number of the command that said it.
    command: usize,
    /// It comes behind the reply of that.
    behind: bool,
    push: Reply,
}

/// Who made a batch, and what matters to hearing it.
#[derive(Clone, Copy)]
struct Hearers<'a> {
    by: Option<ConnId>,
    cuts: &'a [(usize, usize)],
    resubscribed: &'a [Resubscription],
}

impl<'a> Hearers<'a> {
    fn of_touch(self, at: usize, behind: bool) -> Option<Hearer<'a>> {
        self.at(|(touched, _)| touched <= at, behind)
    }

    fn of_message(self, number: usize) -> Option<Hearer<'a>> {
        self.at(|(_, messages)| messages <= number, false)
    }

    /// The client as it was after all that `is_past` says has been.
    fn at(self, is_past: impl Fn((usize, usize)) -> bool, behind: bool) -> Option<Hearer<'a>> {
        let command = self.cuts.partition_point(|&cut| is_past(cut));
        let later = &self.resubscribed[self.resubscribed.partition_point(|change| is_past(change.at))..];
        let command = (command < self.cuts.len()).then_some(command);
        // What comes before the reply of a command that stands alone is sent at once.
        self.by.filter(|_| command.is_some() || behind).map(|conn| Hearer { conn, command, behind, later })
    }
}

impl Server {
    /// Carries out the effects of one batch: a command, a script, or a transaction.
    pub(super) fn settle(&mut self, env: &mut Env, by: Option<ConnId>, effects: Effects) {
        self.node.stats.dirty += effects.dirty;
        if effects.is_untold() {
            return;
        }
        for (db, was) in &effects.flushed {
            self.break_watches(*db, |key, _| was.contains(key));
            self.note_replaced(*db);
        }
        for &(a, b) in &effects.swapped {
            self.swap_watches(a, b, env.wall.as_millis());
            self.swap_watches(b, a, env.wall.as_millis());
            self.note_replaced(a);
            self.note_replaced(b);
        }
        let mut cached = effects.cached.into_iter().peekable();
        let mut published = effects.published.into_iter().enumerate().peekable();
        let hearers = Hearers { by, cuts: &effects.cuts, resubscribed: &effects.resubscribed };
        for (at, touch) in effects.touched.iter().enumerate() {
            while let Some((number, (_, message))) = published.next_if(|(_, (before, _))| *before <= at) {
                self.deliver(env, message, hearers.of_message(number));
            }
            while let Some((_, cached)) = cached.next_if(|(before, _)| *before <= at) {
                self.node.note_cached(cached, by);
            }
            if touch.signal == Signal::First {
                self.tell_of_change(touch, by);
            }
            self.notify(env, touch, hearers.of_touch(at, touch.behind));
            if touch.signal == Signal::Last {
                self.tell_of_change(touch, by);
            }
            // What nobody announces is no news, or is told of by the event that goes with it.
            if env.observing && !matches!(touch.class, Class::Miss | Class::Unannounced) {
                let (db, key, event) = (touch.db, touch.key.clone(), touch.event);
                env.observations.push(Observation::Key { db, key, event, by });
            }
        }
        cached.for_each(|(_, cached)| self.node.note_cached(cached, by));
        self.note_ready(&effects.touched);
        let now_ms = env.wall.as_millis();
        if effects.apart {
            effects.propagated.into_iter().for_each(|command| self.propagate(vec![command], now_ms));
        } else {
            self.propagate(effects.propagated, now_ms);
        }
        for (number, (_, message)) in published {
            self.deliver(env, message, hearers.of_message(number));
        }
    }

    /// Tells those who watch a key, and those who have read it, that it has changed.
    fn tell_of_change(&mut self, touch: &Touch, by: Option<ConnId>) {
        self.node.break_watches(touch.db, &touch.key);
        self.node.invalidate(touch, by);
    }

    /// Gives replicas and the append-only file what each of them is to have.
    fn propagate(&mut self, commands: Vec<Propagated>, now_ms: i64) {
        if commands.iter().all(|command| command.to == Recipients::All) {
            self.feed_batch(&commands, now_ms);
            self.append_batch(&commands, now_ms.div_euclid(1000));
            return;
        }
        let without = |other| {
            let wanted = commands.iter().filter(|command| command.to != other);
            wanted.cloned().collect::<Vec<_>>()
        };
        self.feed_batch(&without(Recipients::Log), now_ms);
        self.append_batch(&without(Recipients::Replicas), now_ms.div_euclid(1000));
    }

    /// Settles what a command, or all that went with it, has done for a client, and answers the reply as the client is to have it.
    pub(super) fn settle_reply(
        &mut self,
        env: &mut Env,
        conn: ConnId,
        effects: Effects,
        reply: Reply,
    ) -> Reply {
        self.settle(env, Some(conn), effects);
        let reply = if self.heard.is_empty() { reply } else { self.with_heard(conn, reply) };
        if let Some(session) = self.node.sessions.get_mut(conn) {
            session.last_write_offset = self.node.replication.history.offset;
        }
        reply
    }

    /// Puts what a client has heard of its own transaction where a server writes it: into the reply of EXEC, before the replies of
    /// the commands that said it, or behind them.
    fn with_heard(&mut self, conn: ConnId, mut reply: Reply) -> Reply {
        let silent = self.node.sessions.get(conn).is_some_and(Session::is_silent);
        let mut heard = std::mem::take(&mut self.heard);
        while let Some(Heard { command, behind, push }) = heard.pop() {
            let slot = match &mut reply {
                Reply::Array(replies) if !silent => replies.get_mut(command),
                _ => None,
            };
            let Some(slot) = slot else {
                // Nobody is to have the reply, but for the messages.
                heard.push(Heard { command, behind, push });
                heard.iter().for_each(|heard| self.node.send(conn, &heard.push));
                break;
            };
            match slot {
                // What comes behind the reply has come later, so the reply is still the first here.
                Reply::Several(all) => all.insert(usize::from(behind), push),
                _ => {
                    let reply = std::mem::replace(slot, Reply::Silence);
                    *slot = Reply::Several(if behind { vec![reply, push] } else { vec![push, reply] });
                }
            }
        }
        reply
    }

    /// Tells the watchers of those keys of a database that have changed with the whole of it.
    fn break_watches(&mut self, db: usize, changed: impl Fn(&Bytes, &[Db]) -> bool) {
        let keys = self.node.watchers.keys().filter(|(of, key)| *of == db && changed(key, &self.node.dbs));
        for (db, key) in keys.cloned().collect::<Vec<_>>() {
            self.node.break_watches(db, &key);
        }
    }

    /// Tells the watchers of keys of a database that has changed places with another one. A key that comes past its time is as good
    /// as one that is not there.
    fn swap_watches(&mut self, db: usize, other: usize, now_ms: i64) {
        let keys = self.node.watchers.keys().filter(|(of, _)| *of == db);
        for (_, key) in keys.cloned().collect::<Vec<_>>() {
            let is_expired = self.node.dbs[db].get(&key).map(|entry| entry.is_expired(now_ms));
            match is_expired {
                None if !self.node.dbs[other].contains(&key) => {}
                Some(true) => self.node.expire_watches(db, &key, self.node.dbs[other].contains(&key)),
                _ => self.node.break_watches(db, &key),
            }
        }
    }

    /// Publishes a keyspace event, as far as `notify-keyspace-events` asks for it.
    fn notify(&mut self, env: &mut Env, touch: &Touch, own: Option<Hearer<'_>>) {
        let wanted = touch.wanted;
        if !wanted.wants(touch.class.letter()) {
            return;
        }
        let Touch { db, key, event, .. } = touch;
        let event = Bytes::from_static(event.as_bytes());
        if wanted.wants(b'K') {
            let channel = [format!("__keyspace@{db}__:").as_bytes(), key].concat().into();
            self.deliver(env, Publication { channel, message: event.clone(), sharded: false }, own);
        }
        if wanted.wants(b'E') {
            let channel = [format!("__keyevent@{db}__:").as_bytes(), &event].concat().into();
            self.deliver(env, Publication { channel, message: key.clone(), sharded: false }, own);
        }
    }

    /// Who listens to a name, in the order of their connections; the client of a transaction as it did then.
    fn subscribers(&self, kind: Subscription, name: &Bytes, own: Option<Hearer<'_>>) -> BTreeSet<ConnId> {
        let mut subscribers = self.node.pubsub.of(kind).get(name).cloned().unwrap_or_default();
        if let Some(own) = own
            && let Some(change) = own.later.iter().find(|change| change.kind == kind && change.name == *name)
        {
            if change.was {
                subscribers.insert(own.conn);
            } else {
                subscribers.remove(&own.conn);
            }
        }
        subscribers
    }

    fn deliver(&mut self, env: &mut Env, publication: Publication, own: Option<Hearer<'_>>) {
        let Publication { channel, message, sharded } = publication;
        let mut pushes = Vec::new();
        let (kind, name) =
            if sharded { (Subscription::Shard, "smessage") } else { (Subscription::Channel, "message") };
        let subscribers = self.subscribers(kind, &channel, own);
        if !subscribers.is_empty() {
            let push = Reply::Push(vec![Reply::bulk(name), channel.clone().into(), message.clone().into()]);
            pushes.push((push, subscribers));
        }
        if !sharded {
            let changed = own.iter().flat_map(|own| own.later);
            let left = changed.filter(|change| change.kind == Subscription::Pattern && change.was);
            let patterns =
                self.node.pubsub.of(Subscription::Pattern).keys().chain(left.map(|change| &change.name));
            let heard: BTreeSet<&Bytes> = patterns.filter(|pattern| matches(pattern, &channel)).collect();
            for pattern in heard {
                let words = [pattern.clone(), channel.clone(), message.clone()].map(Reply::from);
                let push = [Reply::bulk("pmessage")].into_iter().chain(words).collect();
                pushes.push((Reply::Push(push), self.subscribers(Subscription::Pattern, pattern, own)));
            }
        }
        let mut receivers = 0;
        for (push, subscribers) in pushes {
            receivers += subscribers.len();
            for conn in subscribers {
                match own.filter(|own| own.conn == conn) {
                    Some(Hearer { command: Some(command), behind, .. }) => {
                        self.heard.push(Heard { command, behind, push: push.clone() });
                    }
                    Some(_) => self.node.behind.push(push.clone()),
                    None => self.node.send(conn, &push),
                }
            }
        }
        if env.observing {
            env.observations.push(Observation::Published { channel, message, receivers });
        }
    }
}
