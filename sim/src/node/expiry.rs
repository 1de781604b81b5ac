//! Active expiry: a master deletes all its expired keys, a replica only those that clients wrote to
//! it.

use bytes::Bytes;

use crate::{
    effect::{Changer, Class, Effects, PropagateTo, Propagated, Touch},
    env::Env,
    keyspace::Db,
    node::Node,
};

/// The purpose of the lookup that found an expired key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To read the key; a replica does not delete it then.
    Read,
    /// To write to the key.
    Write,
}

impl Node {
    /// Returns true if a lookup for `purpose` deletes the expired key it found. While clients are
    /// paused the key stays, because the data must not change during a failover. A replica leaves
    /// the deletion to its master, except for lookups to write when clients may write to it.
    pub fn deletes_expired(&self, purpose: Purpose) -> bool {
        let is_ours = || purpose == Purpose::Write && !self.config.replica_read_only;
        !self.is_paused() && (!self.is_replica() || is_ours())
    }

    /// Returns when to look for the next expired key that this node deletes unasked, in
    /// milliseconds of the wall clock.
    pub fn next_expiry_ms(&self) -> Option<i64> {
        if !self.debug.active_expire || self.is_paused() || self.loading.is_some() {
            return None;
        }
        if self.is_replica() {
            return self.replication.own_expiries.next_ms();
        }
        self.dbs.iter().filter_map(Db::next_expiry_ms).min()
    }

    /// Deletes a key whose TTL has ended, with the effects of an expiry.
    pub fn expire(&mut self, env: &Env, effects: &mut Effects, db: usize, key: Bytes) {
        let began = self.times_spikes().then(|| env.begin()).flatten();
        let Some(gone) = self.dbs[db].remove(&key) else { return };
        self.count_freed(&gone.value, self.config.lazy_free.expire);
        drop(gone);
        self.note_spike(env, "expire-del", began);
        self.stats.expired += 1;
        let args = vec![Bytes::from_static(b"DEL"), key.clone()];
        effects.propagated.push(Propagated { db, args, to: PropagateTo::All });
        let wanted = self.config.notify_keyspace_events;
        effects.touched.push(Touch::new(db, key, (Class::Expired, "expired"), wanted, Changer::Server));
    }
}
