//! Sends messages: builds the header of every message and the gossip of pings, and selects the
//! receivers.

use super::{
    Around, Cluster,
    extension::Extensions,
    message::{Body, Gossip, Header, Kind, Marks, Message},
    node::{Address, Flags, Key, Known},
};
use crate::{
    env::Env,
    event::{Action, ConnId},
    generation::{Feature, Generation},
};

impl Cluster {
    /// Returns the current state of this node as the header of a message.
    fn header(&self, around: &Around<'_>) -> Header {
        let myself = self.myself();
        let master = self.my_master().map_or(myself, |master| self.known(master));
        let mut marks = Marks::empty();
        marks.set(Marks::PAUSED, myself.is_master() && self.manual.ends_at != 0);
        // Redis marks every message, Valkey those that may have extensions.
        let reads_extensions = self.generation.has(Feature::ShardIds);
        marks.set(Marks::EXTENDED, reads_extensions && !self.generation.is_valkey());
        Header {
            sender: myself.id,
            current_epoch: self.current_epoch,
            config_epoch: master.config_epoch,
            offset: around.offset(),
            slots: master.slots.clone(),
            master: myself.master.map(|master| self.known(master).id),
            address: Address { ip: around.config.cluster.announce_ip.clone(), ..announced(around) },
            flags: myself.flags | self.abilities(),
            down: !self.is_ok,
            marks,
        }
    }

    /// Returns the flags of the messages that this node takes.
    fn abilities(&self) -> Flags {
        match self.generation {
            Generation::Valkey81 => Flags::LIGHT | Flags::LIGHT_MODULE,
            Generation::Valkey91 => Flags::ABILITIES,
            _ => Flags::empty(),
        }
    }

    fn message(&self, around: &Around<'_>, kind: Kind, body: Body) -> Message {
        Message { kind, header: self.header(around), body }
    }

    fn write(&mut self, conn: ConnId, message: &Message) {
        *self.sent.entry(message.kind).or_default() += 1;
        self.out.actions.push(Action::Send { conn, bytes: message.encode() });
    }

    /// Sends a message to a node, if it is connected.
    fn send(&mut self, key: Key, message: &Message) {
        let node = self.known(key);
        let Some(conn) = node.link.as_ref().map(|link| link.conn) else { return };
        let is_publish = matches!(message.kind, Kind::Publish | Kind::PublishShard);
        if !(is_publish && node.is_light && self.generation.has(Feature::LightMessages)) {
            return self.write(conn, message);
        }
        *self.sent.entry(message.kind).or_default() += 1;
        self.out.actions.push(Action::Send { conn, bytes: message.encode_light() });
    }

    /// Sends a message to all connected nodes that have sent their names.
    fn broadcast(&mut self, message: &Message) {
        for key in self.keys() {
            if !self.known(key).is(Flags::MYSELF | Flags::HANDSHAKE) {
                self.send(key, message);
            }
        }
    }

    /// Sends PING, MEET or PONG to a node, if it is connected.
    pub(super) fn ping(&mut self, env: &mut Env, around: &Around<'_>, key: Key, kind: Kind) {
        let Some(conn) = self.known(key).link.as_ref().map(|link| link.conn) else { return };
        if kind == Kind::Ping {
            self.known_mut(key).ping_sent = around.now;
        }
        self.ping_on(env, around, conn, kind);
    }

    /// Sends PING, MEET or PONG on a connection, with gossip.
    pub(super) fn ping_on(&mut self, env: &mut Env, around: &Around<'_>, conn: ConnId, kind: Kind) {
        let entries = self.gossip(env);
        let extensions = self.extensions(around, self.at(conn));
        let mut message = self.message(around, kind, Body::Gossip { entries, extensions });
        if self.generation.has(Feature::ShardIds) {
            message.header.marks |= Marks::EXTENDED;
        }
        self.write(conn, &message);
    }

    /// Returns the extensions of a message to a node. Redis 7.0 sends its host name to every node;
    /// newer servers send extensions only to a node that reads them.
    fn extensions(&self, around: &Around<'_>, to: Option<Key>) -> Extensions {
        let hostname = around.config.cluster.announce_hostname.clone();
        if !self.generation.has(Feature::ShardIds) {
            return Extensions { hostname, ..Extensions::default() };
        }
        if !to.is_some_and(|key| self.known(key).is_extended) {
            return Extensions::default();
        }
        Extensions {
            hostname,
            human_name: String::new(),
            forgotten: self.blacklisted(around.now),
            shard: Some(self.shard_id(self.me)),
            fourth: self.secret.map_or_else(String::new, |secret| secret.to_string()),
        }
    }

    /// Returns reports of a few random nodes, and of all that are PFAIL.
    fn gossip(&self, env: &mut Env) -> Vec<Gossip> {
        let count = self.nodes.len();
        let mut fresh = count.saturating_sub(2);
        let wanted = (count / 10).max(3).min(fresh);
        let mut chosen: Vec<Key> = Vec::with_capacity(wanted);
        let mut draws = 3 * wanted;
        while fresh > 0 && chosen.len() < wanted && draws > 0 {
            draws -= 1;
            let (key, node) = self.draw(env);
            if key == self.me || node.is(Flags::PFAIL) {
                continue;
            }
            let unreachable = node.link.is_none() && node.slots.is_empty();
            if node.is(Flags::HANDSHAKE | Flags::NO_ADDRESS) || unreachable {
                fresh -= 1;
            } else if !chosen.contains(&key) {
                fresh -= 1;
                chosen.push(key);
            }
        }
        let down = self
            .nodes
            .iter()
            .filter(|(_, node)| node.is(Flags::PFAIL) && !node.is(Flags::HANDSHAKE | Flags::NO_ADDRESS));
        let down = down.map(|(key, _)| *key).take(self.down_nodes);
        chosen.into_iter().chain(down).map(|key| gossip_about(self.known(key))).collect()
    }

    /// Draws a random node of the table, perhaps this one.
    pub(super) fn draw(&self, env: &mut Env) -> (Key, &Known) {
        let at = env.random_below(self.nodes.len());
        let (key, node) = self.nodes.iter().nth(at).expect("it is below their number");
        (*key, node)
    }

    /// Sends a PONG with the changed state of this node: to all nodes, or to the replicas of its
    /// master.
    pub(super) fn broadcast_pong(&mut self, env: &mut Env, around: &Around<'_>, to_replicas: bool) {
        let shard = self.my_master();
        for key in self.keys() {
            let node = self.known(key);
            let is_near = node.is_replica() && node.master.is_some() && node.master == shard;
            if key != self.me && !node.is(Flags::HANDSHAKE) && (!to_replicas || is_near) {
                self.ping(env, around, key, Kind::Pong);
            }
        }
    }

    /// Sends to all nodes that a node has failed.
    pub(super) fn broadcast_fail(&mut self, around: &Around<'_>, key: Key) {
        let message = self.message(around, Kind::Fail, Body::Fail(self.known(key).id));
        self.broadcast(&message);
    }

    /// Requests a vote from all nodes; only masters with slots vote.
    pub(super) fn ask_for_votes(&mut self, around: &Around<'_>) {
        let mut message = self.message(around, Kind::AuthRequest, Body::Empty);
        message.header.marks.set(Marks::FORCE, self.manual.ends_at != 0);
        self.broadcast(&message);
    }

    pub(super) fn send_bare(&mut self, around: &Around<'_>, key: Key, kind: Kind) {
        let message = self.message(around, kind, Body::Empty);
        self.send(key, &message);
    }

    /// Sends a node the current slots of another one.
    pub(super) fn send_update(&mut self, around: &Around<'_>, to: Key, about: Key) {
        let node = self.known(about);
        let mut slots = node.slots.clone();
        for slot in self.unclaimed.iter() {
            slots.remove(slot);
        }
        let body = Body::Update { id: node.id, config_epoch: node.config_epoch, slots };
        let message = self.message(around, Kind::Update, body);
        self.send(to, &message);
    }

    /// Sends a message of a channel to all nodes; one of a shard channel to the nodes of this
    /// shard.
    pub fn publish(&mut self, around: &Around<'_>, channel: &[u8], message: &[u8], sharded: bool) {
        let (channel, text) = (channel.to_vec().into(), message.to_vec().into());
        let kind = if sharded { Kind::PublishShard } else { Kind::Publish };
        let message = self.message(around, kind, Body::Publish { channel, message: text });
        if !sharded {
            return self.broadcast(&message);
        }
        for key in self.shard() {
            self.send(key, &message);
        }
    }
}

/// Returns the ports that this node announces; the IP address is empty.
pub(super) fn announced(around: &Around<'_>) -> Address {
    let (config, cluster) = (around.config, &around.config.cluster);
    let either = |announced: u16, own: u16| if announced == 0 { own } else { announced };
    Address {
        ip: String::new(),
        port: either(cluster.announce_port, config.network.port),
        bus_port: either(cluster.announce_bus_port, config.bus_port().unwrap_or(0)),
    }
}

fn gossip_about(node: &Known) -> Gossip {
    let secs = |ms: i64| u32::try_from(ms / 1000).unwrap_or(0);
    Gossip {
        id: node.id,
        ping_sent_secs: secs(node.ping_sent),
        pong_received_secs: secs(node.pong_received),
        address: node.address.clone(),
        flags: node.flags,
    }
}
