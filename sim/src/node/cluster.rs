//! The node as a member of a cluster: gives the cluster access to the node's state, and carries out
//! the cluster's requests to the node.

use bytes::Bytes;

use super::{Node, lazy_free::deletion};
use crate::{
    cluster::{Around, Cluster, Want, key_slot},
    durability::keys_as_commands,
    effect::{
        Cached, Changer, Class, Effects, Framing, PropagateTo, Propagated, Publication, Signal, Subscription,
        Touch,
    },
    env::Env,
    generation::Feature,
    resp::Reply,
};

impl Node {
    /// Calls `act` with the cluster of this node and the parts of the node that it reads; returns
    /// `None` if the node is in no cluster.
    pub fn with_cluster<T>(
        &mut self,
        env: &mut Env,
        act: impl FnOnce(&mut Cluster, &mut Env, &mut Around<'_>) -> T,
    ) -> Option<T> {
        let mut cluster = self.cluster.take()?;
        let mut around = Around {
            config: &self.config,
            db: self.dbs.first_mut().expect("a node has a database"),
            history: &self.replication.history,
            link: self.replication.master.as_ref(),
            now: env.wall.as_millis(),
            busy: self.busy.is_some(),
        };
        let done = act(&mut cluster, env, &mut around);
        self.cluster = Some(cluster);
        Some(done)
    }

    /// Returns true if a slot migration is bringing the slot of a key here. Commands about all keys
    /// leave such a key out, and it does not expire.
    pub fn hides(&self, key: &[u8]) -> bool {
        self.cluster.as_ref().is_some_and(|cluster| cluster.hides(key))
    }

    /// Executes what the cluster has asked of the rest of the node.
    pub fn carry_out_for_cluster(&mut self, env: &mut Env, effects: &mut Effects) {
        let Some(cluster) = &mut self.cluster else { return };
        for want in cluster.take_wants() {
            self.carry_out(env, effects, want);
        }
    }

    fn carry_out(&mut self, env: &mut Env, effects: &mut Effects, want: Want) {
        let now_secs = env.wall.as_secs();
        match want {
            Want::Follow { host, port } => {
                let backlog_size = self.config.replication.backlog_size;
                self.config.replication.replicaof = Some((host.clone(), port));
                self.replication.follow(host, port, backlog_size, now_secs);
            }
            Want::Lead => {
                self.config.replication.replicaof = None;
                self.replication.promote(env.random_id(), now_secs);
            }
            Want::DropKeys(slot) => self.drop_slot(effects, slot),
            Want::DropAll => {
                for (number, db) in self.dbs.iter_mut().enumerate() {
                    effects.flushed.push((number, std::mem::take(db)));
                }
                effects.cache(Cached::Flushed);
                self.replication.own_expiries.clear();
            }
            Want::EndShardChannels(slot) => self.end_shard_channels(slot),
            Want::Publish { channel, message, sharded } => {
                effects.publish(Publication { channel, message, sharded });
            }
            Want::Pause(ms) => {
                let until = env.monotonic + std::time::Duration::from_millis(ms);
                self.cluster.iter_mut().for_each(|cluster| cluster.set_pause(Some(until)));
            }
            Want::Unpause => self.cluster.iter_mut().for_each(|cluster| cluster.set_pause(None)),
            Want::CopySlots { conn, slots } => {
                let keys = self.dbs[0].by_slot(key_slot);
                let keys: Vec<Bytes> = slots.iter().flat_map(|slot| keys.keys(slot)).cloned().collect();
                let copy = keys_as_commands(&self.dbs[0], &keys);
                self.cluster.iter_mut().for_each(|cluster| cluster.send_copy(conn, &copy));
            }
            Want::Tell { conn, bytes } => self.clients.send_raw(conn, &bytes),
            Want::HangUp(conn) => self.clients.close(conn),
            Want::Propagate(args) => {
                effects.framing = Framing::Never;
                effects.propagated.push(Propagated { db: 0, args, to: PropagateTo::All });
            }
        }
    }

    /// Deletes the keys of a slot that another node serves now. This is no write: it is neither
    /// counted as a change nor signalled to watchers and trackers. Older generations do not even
    /// propagate it to replicas and the append-only file, which keep the keys.
    fn drop_slot(&mut self, effects: &mut Effects, slot: u16) {
        let keys: Vec<Bytes> = self.dbs[0].by_slot(key_slot).keys(slot).cloned().collect();
        for key in keys {
            let Some(gone) = self.dbs[0].remove(&key) else { continue };
            let lazily = self.config.memory.lazy_free.server_del;
            self.count_freed(&gone.value, lazily);
            if self.config.generation.has(Feature::PropagatedSlotLoss) {
                effects.framing = Framing::Never;
                let args = deletion(lazily, &key);
                effects.propagated.push(Propagated { db: 0, args, to: PropagateTo::All });
            }
            let wanted = self.config.keyspace.notify_keyspace_events;
            let touch = Touch::new(0, key, (Class::Unannounced, ""), wanted, Changer::Server);
            effects.touched.push(Touch { signal: Signal::Apart, ..touch });
        }
    }

    /// Ends the subscriptions to the shard channels of a slot that another shard serves now, and
    /// sends the subscribers `sunsubscribe`.
    fn end_shard_channels(&mut self, slot: u16) {
        let shards = self.clients.pubsub.of(Subscription::Shard);
        let of_slot = shards.iter().filter(|(channel, _)| key_slot(channel) == slot);
        let ended: Vec<_> = of_slot.map(|(channel, conns)| (channel.clone(), conns.clone())).collect();
        for (channel, conns) in ended {
            for conn in conns {
                self.clients.unsubscribe(conn, Subscription::Shard, &channel);
                let Some(session) = self.clients.sessions.get(conn) else { continue };
                let left = session.subscriptions_beside(Subscription::Shard).into();
                let push = vec![Reply::bulk("sunsubscribe"), Reply::from(&channel), left];
                self.send(conn, &Reply::Push(push));
            }
        }
    }
}
