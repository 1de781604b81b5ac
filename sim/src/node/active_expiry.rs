//! Active expiry: a master deletes all its expired keys and fields, a replica only the keys that
//! clients wrote to it.

use bytes::Bytes;

use crate::{
    effect::{Changer, Class, Effects, PropagateTo, Propagated, Touch},
    env::Env,
    keyspace::{ExpiryRule, Hash},
    node::{Node, lazy_free::deletion},
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
        let is_ours = || purpose == Purpose::Write && !self.config.replication.replica_read_only;
        !self.is_paused() && (!self.is_replica() || is_ours())
    }

    /// Returns when to look for the next expired key or field that this node deletes unasked, in
    /// milliseconds of the wall clock.
    pub fn next_expiry_ms(&self) -> Option<i64> {
        if !self.debug.active_expire || self.is_paused() || self.loading.is_some() {
            return None;
        }
        if self.is_replica() {
            return self.replication.own_expiries.next_ms();
        }
        self.dbs.iter().flat_map(|db| [db.next_expiry_ms(), db.next_field_ms()]).flatten().min()
    }

    /// Deletes a key whose TTL has ended, with the effects of an expiry.
    pub fn expire(&mut self, env: &Env, effects: &mut Effects, db: usize, key: Bytes) {
        let began = self.times_spikes().then(|| env.begin()).flatten();
        let Some(gone) = self.dbs[db].remove(&key) else { return };
        self.count_freed(&gone.value, self.config.memory.lazy_free.expire);
        drop(gone);
        self.note_spike(env, "expire-del", began);
        self.stats.expired += 1;
        let args = deletion(self.config.memory.lazy_free.expire, &key);
        effects.propagated.push(Propagated { db, args, to: PropagateTo::All });
        let wanted = self.config.keyspace.notify_keyspace_events;
        effects.touched.push(Touch::new(db, key, (Class::Expired, "expired"), wanted, Changer::Server));
    }

    /// Deletes the fields of a hash whose TTL has ended, and the key if no field is left. Redis
    /// propagates each field on its own, Valkey all in one command.
    pub fn expire_fields(&mut self, effects: &mut Effects, db: usize, key: &Bytes, rule: ExpiryRule) {
        let Ok(Some(hash)) = self.dbs[db].typed_mut::<Hash>(key) else { return };
        let mut gone = Vec::new();
        while let Some(field) = hash.next_expired(rule).map(|field| field.to_bytes()) {
            hash.remove(&field);
            gone.push(field);
        }
        if gone.is_empty() {
            return;
        }
        let is_empty = hash.is_empty();
        let is_valkey = self.config.generation.is_valkey();
        let wanted = self.config.keyspace.notify_keyspace_events;
        let touch = |class, event| Touch::new(db, key.clone(), (class, event), wanted, Changer::Server);
        let mut propagate = |name: &'static str, rest: &[Bytes]| {
            let args = [&[Bytes::from_static(name.as_bytes()), key.clone()][..], rest].concat();
            effects.propagated.push(Propagated { db, args, to: PropagateTo::All });
        };
        gone.chunks(if is_valkey { gone.len() } else { 1 }).for_each(|fields| propagate("HDEL", fields));
        effects.touched.push(touch(if is_valkey { Class::Expired } else { Class::Hash }, "hexpired"));
        if is_empty {
            if is_valkey {
                propagate("UNLINK", &[]);
            }
            self.dbs[db].remove(key);
            effects.touched.push(touch(Class::Generic, "del"));
        }
    }
}
