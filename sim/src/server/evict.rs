//! Eviction of keys when `maxmemory` is reached.
//!
//! As in Redis, the best keys to evict are not searched for but sampled: each time
//! `maxmemory-samples` keys of every database are drawn, and the best of all draws so far are kept
//! in a pool. The PRNG is the node's own, so that the same node always evicts the same keys.

use bytes::Bytes;

use super::Server;
use crate::{
    blob::Blob,
    config::{Config, Eviction},
    effect::{Changer, Class, Effects, PropagateTo, Propagated, Touch},
    env::Env,
    keyspace::{Db, Entry},
    node::{Node, lazy_free::deletion},
};

/// The maximum number of keys in the pool.
const POOL: usize = 16;

/// The state kept between evictions.
#[derive(Debug, Default)]
pub(super) struct Evictor {
    /// The limit at the last check.
    limit: u64,
    /// The policy under which the pool was filled.
    policy: Eviction,
    /// The best candidates; the best one is the last.
    pool: Vec<Candidate>,
    /// The database from which the last random key was drawn.
    last_db: usize,
}

/// A candidate for eviction.
#[derive(Debug)]
struct Candidate {
    /// The score; the highest is evicted first.
    reason: u64,
    db: usize,
    key: Bytes,
}

impl Evictor {
    /// Returns the key to evict next; `None` if the policy allows none.
    fn next(&mut self, dbs: &[Db], config: &Config, env: &mut Env) -> Option<(usize, Bytes)> {
        let policy = config.memory.maxmemory_policy;
        if self.policy != policy {
            self.policy = policy;
            self.pool.clear();
        }
        match policy {
            Eviction::NoEviction => None,
            Eviction::AllKeysRandom | Eviction::VolatileRandom => self.any(dbs, policy, env),
            _ => self.best(dbs, config, env),
        }
    }

    /// Draws a random key from the next database, in turn, that has one.
    fn any(&mut self, dbs: &[Db], policy: Eviction, env: &mut Env) -> Option<(usize, Bytes)> {
        for _ in dbs {
            self.last_db = (self.last_db + 1) % dbs.len();
            if let Some((key, _)) = draw(&dbs[self.last_db], policy, env) {
                return Some((self.last_db, key.to_bytes()));
            }
        }
        None
    }

    fn best(&mut self, dbs: &[Db], config: &Config, env: &mut Env) -> Option<(usize, Bytes)> {
        loop {
            self.sample(dbs, config, env);
            if self.pool.is_empty() {
                return None;
            }
            while let Some(Candidate { db, key, .. }) = self.pool.pop() {
                // The key may have been deleted since, or lost the expiry that made it a candidate.
                let entry = dbs[db].get(&key);
                if entry.is_some_and(|entry| {
                    !volatile(config.memory.maxmemory_policy) || entry.expires_ms().is_some()
                }) {
                    return Some((db, key));
                }
            }
        }
    }

    /// Draws keys of each database, and keeps the best in the pool.
    fn sample(&mut self, dbs: &[Db], config: &Config, env: &mut Env) {
        for (db, keys) in dbs.iter().enumerate() {
            for _ in 0..config.memory.maxmemory_samples.min(keys.len()) {
                let Some((key, entry)) = draw(keys, config.memory.maxmemory_policy, env) else { break };
                let reason = reason(config, entry, env.wall.as_millis());
                let at = self.pool.partition_point(|candidate| candidate.reason < reason);
                if at == 0 && self.pool.len() == POOL
                    || self.pool.iter().any(|candidate| candidate.db == db && *key == candidate.key)
                {
                    continue;
                }
                self.pool.insert(at, Candidate { reason, db, key: key.to_bytes() });
                if self.pool.len() > POOL {
                    self.pool.remove(0);
                }
            }
        }
    }
}

impl Server {
    /// Evicts keys until memory is below `maxmemory`, and sets `out_of_memory` if that is
    /// impossible.
    pub(super) fn make_room(&mut self, env: &mut Env) {
        self.node.out_of_memory = false;
        let limit = self.node.config.memory.maxmemory;
        if limit == 0 {
            if self.node.config.memory.maxmemory_clients.of(limit) == 0 {
                self.node.clients.sessions.stop_accounting();
            }
            return;
        }
        // A replica holds what its master holds. During a pause and in the middle of a script the
        // data must not change.
        if self.node.is_replica() || self.node.is_paused() || self.node.busy.is_some() {
            return;
        }
        if self.accounted_memory() as u64 <= limit {
            return;
        }
        let began = env.begin();
        while self.accounted_memory() as u64 > limit {
            let Some((db, key)) = self.evictor.next(&self.node.dbs, &self.node.config, env) else {
                self.node.out_of_memory = true;
                break;
            };
            self.evict(env, db, key);
        }
        self.node.note_spike(env, "eviction-cycle", began);
    }

    /// Makes room when `maxmemory` has changed, even if no command comes.
    pub(super) fn apply_new_limit(&mut self, env: &mut Env) {
        let limit = self.node.config.memory.maxmemory;
        if std::mem::replace(&mut self.evictor.limit, limit) != limit {
            self.make_room(env);
        }
    }

    fn accounted_memory(&mut self) -> usize {
        let keys: usize = self.node.dbs.iter_mut().map(Db::account).sum();
        keys.saturating_add(Node::STARTUP_MEMORY).saturating_add(self.node.clients.sessions.memory())
    }

    fn evict(&mut self, env: &mut Env, db: usize, key: Bytes) {
        if let Some(gone) = self.node.dbs[db].remove(&key) {
            self.node.count_freed(&gone.value, self.node.config.memory.lazy_free.eviction);
        }
        self.node.stats.evicted += 1;
        let mut effects = Effects::default();
        let args = deletion(self.node.config.memory.lazy_free.eviction, &key);
        effects.propagated.push(Propagated { db, args, to: PropagateTo::All });
        effects.touched.push(Touch::new(
            db,
            key,
            (Class::Evicted, "evicted"),
            self.node.config.keyspace.notify_keyspace_events,
            Changer::Server,
        ));
        self.settle(env, effects);
    }
}

/// Returns true if the policy evicts only keys with an expiry.
fn volatile(policy: Eviction) -> bool {
    matches!(
        policy,
        Eviction::VolatileLru | Eviction::VolatileLfu | Eviction::VolatileRandom | Eviction::VolatileTtl
    )
}

/// Draws a random key that the policy allows to evict.
fn draw<'a>(db: &'a Db, policy: Eviction, env: &mut Env) -> Option<(&'a Blob, &'a Entry)> {
    if volatile(policy) {
        let (key, ()) = db.volatile().random(|len| env.random_below(len))?;
        return Some((key, db.get(key)?));
    }
    db.entries().random(|len| env.random_below(len))
}

/// Returns the eviction score of a key: its idle time, its rareness of use, or the nearness of its
/// expiry.
fn reason(config: &Config, entry: &Entry, now_ms: i64) -> u64 {
    match config.memory.maxmemory_policy {
        Eviction::AllKeysLfu | Eviction::VolatileLfu => {
            u64::from(u8::MAX - entry.usage.frequency(now_ms, config.memory.lfu))
        }
        Eviction::VolatileTtl => {
            let when_ms = entry.expires_ms().unwrap_or(i64::MAX);
            u64::MAX - u64::try_from(when_ms).unwrap_or(0)
        }
        _ => u64::try_from(entry.usage.idle_ms(now_ms)).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        event::{Action, ConnId, Event},
        time::Wall,
    };

    /// A server with one client.
    struct Bench {
        env: Env,
        server: Server,
    }

    impl Bench {
        fn new(policy: Eviction) -> Bench {
            let mut env = Env::new(7);
            env.wall = Wall::from_millis(1_700_000_000_000);
            let config = Config::default().with(|config| config.memory.maxmemory_policy = policy);
            let mut server = Server::new(config, &mut env);
            let (peer, local) = ("c:1".into(), "n:6379".into());
            server.step(&mut env, Event::Connected { conn: ConnId(1), peer, local });
            Bench { env, server }
        }

        fn send(&mut self, command: &str) -> String {
            self.env.outbox.clear();
            let bytes = format!("{command}\r\n").into();
            self.server.step(&mut self.env, Event::Bytes { conn: ConnId(1), bytes });
            let sent = self.env.outbox.drain(..).filter_map(|action| match action {
                Action::Send { bytes, .. } => Some(String::from_utf8_lossy(&bytes).into_owned()),
                _ => None,
            });
            sent.collect()
        }

        fn pass(&mut self, ms: i64) {
            self.env.wall = Wall::from_millis(self.env.wall.as_millis() + ms);
        }

        /// Limits memory to that of about `keys_left` of 1000 keys. Returns the numbers of keys
        /// left of the first 500 and of the others.
        fn squeeze(&mut self, keys_left: u64) -> (usize, usize) {
            let used = self.server.node.data_memory() as u64;
            let startup = Node::STARTUP_MEMORY as u64;
            let limit = startup + (used - startup) * keys_left / 1000;
            self.server.node.config.memory.maxmemory =
                limit + self.server.node.clients.sessions.memory() as u64;
            assert_eq!(self.send("SET last v"), "+OK\r\n");
            let left = |range: std::ops::Range<i32>| {
                range.filter(|n| self.server.node.dbs[0].contains(format!("k:{n}").as_bytes())).count()
            };
            (left(0..500), left(500..1000))
        }
    }

    fn filled(policy: Eviction) -> Bench {
        let mut bench = Bench::new(policy);
        for n in 0..1000 {
            bench.send(&format!("SET k:{n} v EX {}", 1000 + n));
        }
        bench.pass(10_000);
        bench
    }

    #[test]
    fn what_was_used_lately_stays() {
        for policy in [Eviction::AllKeysLru, Eviction::VolatileLru] {
            let mut bench = filled(policy);
            (0..500).for_each(|n| drop(bench.send(&format!("GET k:{n}"))));
            bench.pass(10_000);
            let (used, unused) = bench.squeeze(600);
            assert!(used > 485 && unused < 120, "{policy:?}: {used} and {unused}");
        }
    }

    #[test]
    fn what_is_used_often_stays() {
        for policy in [Eviction::AllKeysLfu, Eviction::VolatileLfu] {
            let mut bench = filled(policy);
            // By the default factor the counters of most keys would not exceed two after twenty
            // uses.
            bench.server.node.config.memory.lfu.log_factor = 1;
            for _ in 0..20 {
                (0..500).for_each(|n| drop(bench.send(&format!("GET k:{n}"))));
            }
            (500..1000).for_each(|n| drop(bench.send(&format!("GET k:{n}"))));
            let (often, rarely) = bench.squeeze(600);
            assert!(often > 470 && rarely < 130, "{policy:?}: {often} and {rarely}");
        }
    }

    #[test]
    fn what_expires_first_goes_first() {
        let (soon, late) = filled(Eviction::VolatileTtl).squeeze(600);
        assert!(soon < 130 && late > 470, "{soon} and {late}");
    }

    #[test]
    fn a_random_policy_has_no_preference_and_the_same_node_evicts_the_same_keys() {
        for policy in [Eviction::AllKeysRandom, Eviction::VolatileRandom] {
            let (one, other) = filled(policy).squeeze(600);
            assert!(
                (250..350).contains(&one) && (250..350).contains(&other),
                "{policy:?}: {one} and {other}"
            );
            assert_eq!(filled(policy).squeeze(600), (one, other));
        }
    }

    #[test]
    fn a_reply_that_is_on_its_way_weighs_nothing_until_the_network_does_not_take_it() {
        let mut bench = Bench::new(Eviction::AllKeysLru);
        bench.server.node.config.memory.maxmemory = 10 << 20;
        bench.send("SETRANGE k 99999 x");
        let before = bench.server.node.clients.sessions.memory();
        assert!(bench.send("GET k").len() > 100_000);
        assert_eq!(bench.server.node.clients.sessions.memory(), before);
        bench.server.step(&mut bench.env, Event::Unsent { conn: ConnId(1), bytes: 100_000 });
        assert!(bench.server.node.clients.sessions.memory() > before + 80_000);
    }

    #[test]
    fn volatile_policies_leave_keys_that_do_not_expire_alone() {
        for policy in
            [Eviction::VolatileLru, Eviction::VolatileLfu, Eviction::VolatileRandom, Eviction::VolatileTtl]
        {
            let mut bench = Bench::new(policy);
            (0..50).for_each(|n| drop(bench.send(&format!("SET keep:{n} v"))));
            (0..50).for_each(|n| drop(bench.send(&format!("SET go:{n} v EX 100"))));
            bench.server.node.config.memory.maxmemory = 1;
            assert_eq!(bench.send("SET k v"), "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
            let keys: Vec<_> =
                bench.server.node.dbs[0].entries().iter().map(|(key, _)| key.clone()).collect();
            assert!(keys.len() == 50 && keys.iter().all(|key| key.starts_with(b"keep:")), "{policy:?}");
            assert_eq!(bench.server.node.stats.evicted, 50);
        }
    }

    #[test]
    fn a_candidate_that_lost_its_expiry_is_spared() {
        let mut bench = Bench::new(Eviction::VolatileTtl);
        (0..30).for_each(|n| drop(bench.send(&format!("SET k:{n} v EX 100"))));
        let used = bench.server.accounted_memory() as u64;
        bench.server.node.config.memory.maxmemory = used - 1;
        bench.send("PING");
        assert_eq!(bench.server.node.stats.evicted, 1);
        bench.server.node.config.memory.maxmemory = 0;
        (0..30).for_each(|n| drop(bench.send(&format!("PERSIST k:{n}"))));
        bench.server.node.config.memory.maxmemory = 1;
        bench.send("PING");
        assert_eq!((bench.server.node.stats.evicted, bench.server.node.dbs[0].len()), (1, 29));
    }
}
