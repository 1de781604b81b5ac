//! Spending what commands did: messages to subscribers, broken watches, woken waiters, the replication stream.

use super::Server;
use crate::{
    effect::{Effects, Publication},
    env::{Env, Observation},
    event::ConnId,
    glob::matches,
    pubsub::Subscription,
    resp::Reply,
};

impl Server {
    /// Carries out the effects of one batch: a command, a script, or a transaction.
    pub(super) fn settle(&mut self, env: &mut Env, by: Option<ConnId>, effects: Effects) {
        self.node.stats.dirty += effects.dirty;
        for touch in &effects.touched {
            self.node.break_watches(touch.db, &touch.key);
            if env.observing {
                let (db, key, event) = (touch.db, touch.key.clone(), touch.event);
                env.observations.push(Observation::Key { db, key, event, by });
            }
        }
        self.feed_batch(&effects.propagated);
        self.append_batch(&effects.propagated);
        for publication in effects.published {
            self.deliver(env, publication);
        }
    }

    fn deliver(&mut self, env: &mut Env, publication: Publication) {
        let Publication { channel, message, sharded } = publication;
        let mut pushes = Vec::new();
        let (kind, name) =
            if sharded { (Subscription::Shard, "smessage") } else { (Subscription::Channel, "message") };
        if let Some(subscribers) = self.node.pubsub.of(kind).get(&channel) {
            let push = Reply::Push(vec![Reply::bulk(name), channel.clone().into(), message.clone().into()]);
            pushes.push((push, subscribers.clone()));
        }
        if !sharded {
            for (pattern, subscribers) in self.node.pubsub.of(Subscription::Pattern) {
                if matches(pattern, &channel) {
                    let words = [pattern.clone(), channel.clone(), message.clone()].map(Reply::Bulk);
                    let push = [Reply::bulk("pmessage")].into_iter().chain(words).collect();
                    pushes.push((Reply::Push(push), subscribers.clone()));
                }
            }
        }
        let mut receivers = 0;
        for (push, subscribers) in pushes {
            receivers += subscribers.len();
            subscribers.into_iter().for_each(|conn| self.node.send(conn, &push));
        }
        if env.observing {
            env.observations.push(Observation::Published { channel, message, receivers });
        }
    }
}
