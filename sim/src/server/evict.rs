//! Making room: keys that go when `maxmemory` is reached.

use bytes::Bytes;

use super::Server;
use crate::{
    config::Eviction,
    effect::{Class, Effects, Propagated, Touch},
    env::Env,
    keyspace::{Db, Entry},
};

impl Server {
    /// Evicts keys until memory is below `maxmemory`, and notes whether that could be done.
    pub(super) fn make_room(&mut self, env: &mut Env) {
        self.node.out_of_memory = false;
        let limit = self.node.config.maxmemory;
        // A replica holds what its master holds; and in a pause the data stays as it is.
        if limit == 0 || self.node.is_replica() || self.node.is_paused() {
            return;
        }
        while self.reckon() as u64 > limit {
            let Some((db, key)) = self.victim(env) else {
                self.node.out_of_memory = true;
                return;
            };
            self.evict(env, db, key);
        }
    }

    fn reckon(&mut self) -> usize {
        let keys: usize = self.node.dbs.iter_mut().map(Db::reckon).sum();
        keys.saturating_add(crate::node::Node::STARTUP_MEMORY)
    }

    /// The best key to evict among `maxmemory-samples` drawn from each database; `None` when the policy allows none.
    fn victim(&self, env: &mut Env) -> Option<(usize, Bytes)> {
        let policy = self.node.config.maxmemory_policy;
        let now_ms = env.wall.as_millis();
        let mut best: Option<(i64, usize, Bytes)> = None;
        for (index, db) in self.node.dbs.iter().enumerate() {
            for _ in 0..self.node.config.maxmemory_samples.min(db.len()) {
                let Some((key, entry)) = draw(db, policy, env) else { break };
                let worth = worth(policy, entry, now_ms, env);
                if best.as_ref().is_none_or(|(least, ..)| worth < *least) {
                    best = Some((worth, index, key.clone()));
                }
            }
        }
        best.map(|(_, db, key)| (db, key))
    }

    fn evict(&mut self, env: &mut Env, db: usize, key: Bytes) {
        self.node.dbs[db].remove(&key);
        self.node.stats.evicted += 1;
        let mut effects = Effects::default();
        effects.propagated.push(Propagated { db, args: vec![Bytes::from_static(b"DEL"), key.clone()] });
        effects.touched.push(Touch { db, key, class: Class::Evicted, event: "evicted" });
        self.settle(env, None, effects);
    }
}

/// A key that the policy allows to go.
fn draw<'a>(db: &'a Db, policy: Eviction, env: &mut Env) -> Option<(&'a Bytes, &'a Entry)> {
    match policy {
        Eviction::NoEviction => None,
        Eviction::AllKeysLru | Eviction::AllKeysLfu | Eviction::AllKeysRandom => {
            db.entries().random(|len| env.random_below(len))
        }
        Eviction::VolatileLru | Eviction::VolatileLfu | Eviction::VolatileRandom | Eviction::VolatileTtl => {
            let (key, ()) = db.volatile().random(|len| env.random_below(len))?;
            Some((key, db.get(key)?))
        }
    }
}

/// How much there is to be said for keeping a key: the least goes first.
fn worth(policy: Eviction, entry: &Entry, now_ms: i64, env: &mut Env) -> i64 {
    match policy {
        Eviction::AllKeysLru | Eviction::VolatileLru => -entry.usage.idle_ms(now_ms),
        Eviction::AllKeysLfu | Eviction::VolatileLfu => entry.usage.frequency(now_ms).into(),
        Eviction::VolatileTtl => entry.expires_ms.unwrap_or(i64::MAX),
        Eviction::AllKeysRandom | Eviction::VolatileRandom | Eviction::NoEviction => {
            (env.random() >> 1) as i64
        }
    }
}
