//! Handles the messages of the bus.

use bytes::Bytes;

use super::{
    Around, Cluster,
    extension::Extensions,
    links::ip_of,
    message::{Body, Gossip, Header, Kind, Marks, Message},
    node::{Address, Flags, Key},
    outbox::Want,
};
use crate::{env::Env, event::ConnId, generation::Feature};

impl Cluster {
    /// Handles a message: updates the table of nodes, answers and votes.
    pub(super) fn process(&mut self, env: &mut Env, around: &mut Around<'_>, conn: ConnId, message: Message) {
        let Message { kind, header, body } = message;
        *self.received.entry(kind).or_default() += 1;
        if self.dropped == Some(kind) {
            return;
        }
        let linked = self.at(conn).filter(|key| !self.known(*key).is(Flags::HANDSHAKE));
        let sender = linked.or_else(|| self.find(header.sender)).filter(|key| *key != self.me);
        if let Some(key) = sender {
            self.identify(conn, key);
            let node = self.known_mut(key);
            node.data_received = around.now;
            node.is_extended |= header.marks.contains(Marks::EXTENDED);
            node.is_light = header.flags.contains(Flags::LIGHT);
            if !self.known(key).is(Flags::HANDSHAKE) {
                self.note_header(around, key, &header);
            }
        }
        match body {
            Body::Gossip { entries, extensions } => {
                if matches!(kind, Kind::Ping | Kind::Meet) {
                    self.answer(env, around, conn, kind, sender, &header, &entries);
                }
                self.learn(around, conn, kind, sender, &header, (&entries, extensions));
            }
            Body::Fail(id) => {
                if let Some(failing) = sender.and_then(|_| self.find(id))
                    && !self.known(failing).is(Flags::FAIL | Flags::MYSELF)
                {
                    self.log(format!("FAIL message received from {} about {id}", header.sender));
                    self.mark_failed(around, failing);
                }
            }
            Body::Publish { channel, message } => {
                if sender.is_some() {
                    let sharded = kind == Kind::PublishShard;
                    self.out.wants.push(Want::Publish { channel, message, sharded });
                }
            }
            Body::Update { id, config_epoch, slots } => {
                let Some(about) = sender.and_then(|_| self.find(id)) else { return };
                if self.known(about).config_epoch >= config_epoch {
                    return;
                }
                self.make_master(about);
                self.known_mut(about).config_epoch = config_epoch;
                self.changed();
                self.take_claims(around, about, config_epoch, &slots);
            }
            Body::Empty => {
                let Some(key) = sender else { return };
                match kind {
                    Kind::AuthRequest => self.vote(around, key, &header),
                    Kind::AuthAck => self.take_vote(key, &header),
                    Kind::ManualFailover => self.begin_hand_over(env, around, conn, key),
                    _ => {}
                }
            }
        }
    }

    /// Records the sender's epochs and offset from the header of a message.
    fn note_header(&mut self, around: &Around<'_>, key: Key, header: &Header) {
        self.current_epoch = self.current_epoch.max(header.current_epoch);
        let node = self.known_mut(key);
        node.offset = header.offset;
        if header.config_epoch > node.config_epoch {
            node.config_epoch = header.config_epoch;
            self.out.unsaved = true;
        }
        let is_mine = self.myself().is_replica() && self.myself().master == Some(key);
        if self.manual.ends_at != 0
            && is_mine
            && header.marks.contains(Marks::PAUSED)
            && self.manual.master_offset.is_none()
        {
            self.manual.master_offset = Some(header.offset);
            self.election_due = true;
            let (now, offset) = (around.now, header.offset);
            self.log(format!(
                "Received replication offset for paused master manual failover: {offset} at {now}"
            ));
        }
    }

    /// Answers PING and MEET with PONG, and adds the unknown sender of a MEET to the table. Unless
    /// this node announces its IP address, it learns the address from the connection.
    #[expect(clippy::too_many_arguments, reason = "what a message consists of")]
    fn answer(
        &mut self,
        env: &mut Env,
        around: &Around<'_>,
        conn: ConnId,
        kind: Kind,
        sender: Option<Key>,
        header: &Header,
        entries: &[Gossip],
    ) {
        let is_meet = kind == Kind::Meet;
        if (is_meet || self.myself().address.ip.is_empty()) && around.config.cluster.announce_ip.is_empty() {
            let local = ip_of(self.local_of(conn)).to_owned();
            if !local.is_empty() && self.myself().address.ip != local {
                self.log(format!("IP address for this node updated to {local}"));
                self.myself_mut().address.ip = local;
                self.out.unsaved = true;
            }
        }
        if is_meet && sender.is_none() && self.find(header.sender) != Some(self.me) {
            let address = self.address_of(conn, header);
            self.add_stranger(env, Flags::empty(), address, around.now);
            self.out.unsaved = true;
            self.take_gossip(around, None, entries);
        }
        self.ping_on(env, around, conn, Kind::Pong);
    }

    fn local_of(&self, conn: ConnId) -> &str {
        if let Some(inbound) = self.inbound.get(&conn) {
            return &inbound.local;
        }
        let link = self.dialed.get(&conn).and_then(|key| self.known(*key).link.as_ref());
        link.map_or("", |link| &link.local)
    }

    /// Returns the address of a message's sender: with the IP address that it announces, or else
    /// that of the connection.
    fn address_of(&self, conn: ConnId, header: &Header) -> Address {
        let mut address = header.address.clone();
        if address.ip.is_empty() {
            let inbound = self.inbound.get(&conn).map(|inbound| inbound.ip.clone());
            let dialed = || self.dialed.get(&conn).map(|key| self.known(*key).address.ip.clone());
            address.ip = inbound.or_else(dialed).unwrap_or_default();
        }
        address
    }

    /// Updates the table from a PING, PONG or MEET.
    fn learn(
        &mut self,
        around: &mut Around<'_>,
        conn: ConnId,
        kind: Kind,
        sender: Option<Key>,
        header: &Header,
        (entries, extensions): (&[Gossip], Extensions),
    ) {
        let outbound = self.dialed.get(&conn).copied();
        if let Some(key) = outbound {
            if self.known(key).is(Flags::HANDSHAKE) {
                if sender.is_some() || header.sender == self.my_id() {
                    // The node is in the table already, or is this node itself.
                    if let Some(known) = sender {
                        self.update_address(known, conn, header);
                    }
                    return self.remove(key);
                }
                self.rename(key, header.sender);
                let role = header.flags & (Flags::MASTER | Flags::REPLICA);
                let node = self.known_mut(key);
                node.flags = (node.flags - (Flags::HANDSHAKE | Flags::MEET)) | role;
                self.log(format!("Handshake with node {} completed.", header.sender));
                self.changed();
            } else if self.known(key).id != header.sender {
                let node = self.known_mut(key);
                node.flags |= Flags::NO_ADDRESS;
                node.address = Address::default();
                self.drop_link(key);
                self.out.unsaved = true;
                return;
            }
        }
        if let Some(key) = sender {
            let announced = header.flags & Flags::NO_FAILOVER;
            let node = self.known_mut(key);
            node.flags = (node.flags - Flags::NO_FAILOVER) | announced;
            if kind == Kind::Ping && !self.known(key).is(Flags::HANDSHAKE) {
                self.update_address(key, conn, header);
            }
        }
        if let Some(key) = outbound
            && kind == Kind::Pong
        {
            self.note_pong(around, key);
        }
        let Some(sender) = sender else { return };
        self.note_role(sender, header);
        let is_master = self.known(sender).is_master();
        let claimant = if is_master { Some(sender) } else { self.known(sender).master };
        let differs = claimant.is_some_and(|claimant| self.known(claimant).slots != header.slots);
        if is_master && differs {
            self.take_claims(around, sender, header.config_epoch, &header.slots);
        }
        if differs {
            self.correct(around, sender, header);
        }
        let same_epoch = header.config_epoch == self.myself().config_epoch;
        if self.myself().is_master() && self.known(sender).is_master() && same_epoch {
            self.end_collision(sender);
        }
        self.take_gossip(around, Some(sender), entries);
        self.note_extensions(around, sender, extensions);
    }

    /// Records what a node says about itself in extensions, and forgets the nodes that it was told
    /// to forget.
    fn note_extensions(&mut self, around: &Around<'_>, sender: Key, extensions: Extensions) {
        let Extensions { hostname, human_name, forgotten, shard, fourth } = extensions;
        if self.known(sender).hostname != hostname {
            self.known_mut(sender).hostname = hostname;
            self.out.unsaved = true;
        }
        if !self.generation.has(Feature::ShardIds) {
            return;
        }
        // A replica of an older server does not announce its shard, which is that of its master.
        let master = self.known(sender).master;
        let shard = shard.or_else(|| master.map(|master| self.shard_id(master)));
        let client_ip = if self.generation.is_valkey() { fourth } else { String::new() };
        let follows = self.myself().is_replica() && self.myself().master == Some(sender);
        let node = self.known_mut(sender);
        let shard = shard.or(node.shard);
        if (&node.human_name, &node.client_ip, node.shard) != (&human_name, &client_ip, shard) {
            (node.human_name, node.client_ip, node.shard) = (human_name, client_ip, shard);
            self.out.unsaved = true;
        }
        if follows && shard.is_some() && self.myself().shard != shard {
            self.myself_mut().shard = shard;
            self.out.unsaved = true;
        }
        for (id, seconds) in forgotten {
            let Some(key) = self.find(id) else { continue };
            let is_mine = self.myself().is_replica() && self.myself().master == Some(key);
            if key != self.me && !is_mine {
                self.blacklist(id, around.now, i64::try_from(seconds).unwrap_or(i64::MAX));
                self.remove(key);
                self.changed();
            }
        }
    }

    /// Handles a light message, which has no sender but the node at the other end.
    pub(super) fn process_light(
        &mut self,
        now: i64,
        conn: ConnId,
        kind: Kind,
        channel: Bytes,
        message: Bytes,
    ) {
        *self.received.entry(kind).or_default() += 1;
        let linked = self.at(conn).filter(|key| !self.known(*key).is(Flags::HANDSHAKE));
        let Some(sender) = linked.filter(|_| self.generation.has(Feature::LightMessages)) else { return };
        self.known_mut(sender).data_received = now;
        if self.dropped != Some(kind) {
            self.out.wants.push(Want::Publish { channel, message, sharded: kind == Kind::PublishShard });
        }
    }

    /// Returns the node at the other end of a connection, once it is known.
    pub(super) fn at(&self, conn: ConnId) -> Option<Key> {
        let outbound = self.dialed.get(&conn).copied();
        outbound.or_else(|| self.inbound.get(&conn).and_then(|inbound| inbound.node))
    }

    /// Records a pong: clears PFAIL, and FAIL if [`Self::recover`] allows it.
    fn note_pong(&mut self, around: &Around<'_>, key: Key) {
        let node = self.known_mut(key);
        (node.pong_received, node.ping_sent) = (around.now, 0);
        if node.is(Flags::PFAIL) {
            node.flags -= Flags::PFAIL;
            self.tell_of("recovered", key);
            self.changed();
        } else if node.has_failed() {
            self.recover(around, key);
        }
    }

    /// Records that the sender is a master, or whose replica it is.
    fn note_role(&mut self, sender: Key, header: &Header) {
        let Some(master) = header.master else { return self.make_master(sender) };
        if self.known(sender).is_master() {
            self.unbind_all(sender);
            let node = self.known_mut(sender);
            node.flags = (node.flags - (Flags::MASTER | Flags::MIGRATE_TO)) | Flags::REPLICA;
            self.changed();
        }
        if let Some(master) = self.find(master)
            && self.known(sender).master != Some(master)
            && master != sender
        {
            self.set_master(sender, Some(master));
            self.out.unsaved = true;
        }
    }

    /// Records the address of a message's sender, unless the message came on the connection that
    /// this node dialed to it.
    fn update_address(&mut self, key: Key, conn: ConnId, header: &Header) {
        if self.dialed.get(&conn) == Some(&key) {
            return;
        }
        let address = self.address_of(conn, header);
        if self.known(key).address == address || address.ip.is_empty() {
            return;
        }
        let Address { ip, port, .. } = address.clone();
        let node = self.known_mut(key);
        node.address = address;
        node.flags -= Flags::NO_ADDRESS;
        let id = node.id;
        self.log(format!("Address updated for node {id}, now {ip}:{port}"));
        self.drop_link(key);
        if self.myself().is_replica() && self.myself().master == Some(key) {
            self.replicate(key);
        }
        self.changed();
    }

    /// Reads a sender's reports of other nodes. Reports of an unknown sender are ignored.
    fn take_gossip(&mut self, around: &Around<'_>, sender: Option<Key>, entries: &[Gossip]) {
        let Some(sender) = sender else { return };
        let failing = Flags::PFAIL | Flags::FAIL;
        for entry in entries {
            let is_well = !entry.flags.intersects(failing);
            let Some(key) = self.find(entry.id) else {
                if !entry.flags.contains(Flags::NO_ADDRESS) && !self.is_blacklisted(entry.id, around.now) {
                    let flags = entry.flags - Flags::MIGRATE_TO;
                    self.add(entry.id, flags, entry.address.clone(), around.now);
                }
                continue;
            };
            if self.known(sender).is_master() && key != self.me {
                if is_well {
                    self.known_mut(key).reports.remove(&sender);
                } else {
                    self.known_mut(key).reports.insert(sender, around.now);
                    self.fail_by_majority(around, key);
                }
            }
            let unreported = self.count_reports(around, key) == 0;
            let is_other = key != self.me;
            let node = self.known_mut(key);
            if is_well && node.ping_sent == 0 && unreported && !node.is(failing) {
                let pong = i64::from(entry.pong_received_secs) * 1000;
                if pong <= around.now + 500 && pong > node.pong_received {
                    node.pong_received = pong;
                }
            }
            let moved = node.is(failing) && is_well && node.address != entry.address;
            if moved && !entry.flags.contains(Flags::NO_ADDRESS) && is_other {
                node.address = entry.address.clone();
                node.flags -= Flags::NO_ADDRESS;
                self.drop_link(key);
            }
        }
    }
}
