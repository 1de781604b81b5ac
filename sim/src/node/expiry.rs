//! Which keys past their time a node deletes by itself, and how: those of a master, and on a
//! replica those that clients wrote to it.

use bytes::Bytes;

use crate::{
    effect::{Changer, Class, Effects, PropagateTo, Propagated, Touch},
    env::Env,
    keyspace::Db,
    node::Node,
};

/// What an expired key was looked up for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To read it.
    Read,
    /// To write under its name.
    Write,
}

impl Node {
    /// Whether an expired key that was found is deleted. While clients are paused it stays, lest
    /// the data change under a failover; on a replica deleting it is the master's to do, unless
    /// clients may write there.
    pub fn deletes_expired(&self, purpose: Purpose) -> bool {
        let is_ours = || purpose == Purpose::Write && !self.config.replica_read_only;
        !self.is_paused() && (!self.is_replica() || is_ours())
    }

    /// When to look for an expired key that this node deletes without being asked for it, in
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

    /// Deletes a key that is past its time, with the effects of an expiry.
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
