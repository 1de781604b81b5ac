//! Changes of CLUSTER's subcommands to the state of a node.

use std::net::IpAddr;

use super::{
    Around, Cluster,
    id::NodeId,
    node::{Address, Flags, Key},
    outbox::Want,
    slot::{SLOTS, key_slot},
    state::{FORGOTTEN_SECS, random_id},
};
use crate::{
    env::Env,
    generation::{Feature, Generation},
};

/// The change that CLUSTER SETSLOT makes to a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetSlot<'a> {
    /// Its keys move to the node of this name.
    Migrating(&'a [u8]),
    /// Its keys move here from the node of this name.
    Importing(&'a [u8]),
    /// Neither migrating nor importing.
    Stable,
    /// It belongs to the node of this name.
    Node(&'a [u8]),
}

impl Cluster {
    /// Gives this node slots that no node owns (`takes`), or takes slots away from whichever nodes
    /// own them. Changes all of the slots or, on an error, none.
    ///
    /// # Errors
    /// If a slot is owned (`takes`) or not owned (not `takes`), or is listed twice.
    pub fn change_slots(&mut self, slots: &[u16], takes: bool) -> Result<(), String> {
        let mut seen = super::slot_set::SlotSet::default();
        for &slot in slots {
            let owned = self.owner(slot).is_some();
            if !takes && !owned {
                return Err(format!("Slot {slot} is already unassigned"));
            }
            if takes && owned {
                return Err(format!("Slot {slot} is already busy"));
            }
            if !seen.add(slot) {
                return Err(format!("Slot {slot} specified multiple times"));
            }
        }
        for &slot in slots {
            self.importing.remove(&slot);
            if takes {
                self.bind(slot, self.me);
            } else {
                self.unbind(slot);
            }
        }
        if takes {
            self.tell_slots(&seen, self.me);
        } else {
            self.tell("slots", format!("{} to no node", seen.words()));
        }
        self.changed();
        Ok(())
    }

    /// Takes all slots of this node away.
    ///
    /// # Errors
    /// If this node has keys.
    pub fn flush_slots(&mut self, around: &Around<'_>) -> Result<(), String> {
        if !around.db.is_empty() {
            return Err("DB must be empty to perform CLUSTER FLUSHSLOTS.".into());
        }
        self.tell("slots", format!("{} to no node", self.myself().slots.words()));
        self.unbind_all(self.me);
        self.changed();
        Ok(())
    }

    /// Returns the error for SETSLOT on a replica; `None` on a master.
    pub fn refuses_set_slot(&self) -> Option<&'static str> {
        self.myself().is_replica().then_some("Please use SETSLOT only with masters.")
    }

    /// CLUSTER SETSLOT on a master, or on a replica that repeats it.
    ///
    /// # Errors
    /// Returns the reason if the nodes, their roles or the keys of this node do not allow the
    /// change.
    pub fn set_slot(
        &mut self,
        env: &mut Env,
        around: &mut Around<'_>,
        slot: u16,
        to: SetSlot<'_>,
    ) -> Result<(), String> {
        let is_mine = self.owner(slot) == Some(self.me);
        if self.jobs.exports(slot) {
            return Err("Slot export in progress.".into());
        }
        if self.jobs.imports(slot) {
            return Err("Slot import in progress.".into());
        }
        match to {
            // A replica repeats what its master has checked.
            SetSlot::Migrating(_) if !is_mine && self.myself().is_master() => {
                return Err(format!("I'm not the owner of hash slot {slot}"));
            }
            SetSlot::Importing(_) if is_mine => {
                return Err(format!("I'm already the owner of hash slot {slot}"));
            }
            SetSlot::Migrating(id) => {
                let target = self.partner(id)?;
                self.migrating.insert(slot, target);
                self.tell("migrating", format!("{slot} to {}", self.known(target).address));
            }
            SetSlot::Importing(id) => {
                let source = self.partner(id)?;
                self.importing.insert(slot, source);
                self.tell("importing", format!("{slot} from {}", self.known(source).address));
            }
            SetSlot::Stable => {
                self.migrating.remove(&slot);
                self.importing.remove(&slot);
                self.tell("stable", slot.to_string());
            }
            SetSlot::Node(id) => {
                let owner = self.named(id)?;
                self.check_master(owner)?;
                self.give(env, around, slot, owner)?;
            }
        }
        self.changed();
        Ok(())
    }

    /// Finds the other node of a migration, which must be a master.
    fn partner(&self, id: &[u8]) -> Result<Key, String> {
        let unknown = || format!("I don't know about node {}", String::from_utf8_lossy(id));
        let key = NodeId::parse(id).and_then(|id| self.find(id)).ok_or_else(unknown)?;
        self.check_master(key)?;
        Ok(key)
    }

    fn check_master(&self, key: Key) -> Result<(), String> {
        if self.known(key).is_replica() { Err("Target node is not a master".into()) } else { Ok(()) }
    }

    fn give(&mut self, env: &mut Env, around: &mut Around<'_>, slot: u16, to: Key) -> Result<(), String> {
        let was_mine = self.owner(slot) == Some(self.me);
        let keys = around.db.by_slot(key_slot).count(slot);
        if was_mine && to != self.me && keys > 0 {
            return Err(format!(
                "Can't assign hashslot {slot} to a different node while I still hold keys for this hash slot."
            ));
        }
        if keys == 0 {
            self.migrating.remove(&slot);
        }
        self.unbind(slot);
        self.bind(slot, to);
        self.tell("slots", format!("{slot} to {}", self.known(to).address));
        let is_bare = self.myself().slots.is_empty();
        if was_mine && to != self.me && is_bare && around.config.cluster.allow_replica_migration {
            self.log("Configuration change detected. Reconfiguring myself as a replica");
            self.follow(to);
        }
        let is_moved = self.my_master() == Some(to) && self.importing.remove(&slot).is_some();
        if is_moved && to == self.me {
            // Other nodes must believe this claim, so it gets a newer epoch than the source's.
            self.bump_epoch();
            self.broadcast_pong(env, around, false);
        }
        Ok(())
    }

    /// CLUSTER MEET. Adds a node in handshake; the periodic work dials it.
    ///
    /// # Errors
    /// If the address is not an IP address with valid ports.
    pub fn meet(
        &mut self,
        env: &mut Env,
        around: &Around<'_>,
        host: &[u8],
        port: i64,
        bus_port: i64,
    ) -> Result<(), String> {
        let text = String::from_utf8_lossy(host).into_owned();
        let in_range = |port: i64| u16::try_from(port).ok().filter(|port| *port > 0);
        let ip = text.parse::<IpAddr>().ok();
        let (Some(ip), Some(port_), Some(bus_port)) = (ip, in_range(port), in_range(bus_port)) else {
            return Err(format!("Invalid node address specified: {text}:{port}"));
        };
        let address = Address { ip: ip.to_string(), port: port_, bus_port };
        let is_met = |node: &super::node::Known| {
            node.is(Flags::HANDSHAKE) && node.address.ip == address.ip && node.address.bus_port == bus_port
        };
        if !self.nodes.values().any(is_met) {
            self.add_stranger(env, Flags::MEET, address, around.now);
        }
        Ok(())
    }

    /// CLUSTER FORGET.
    ///
    /// # Errors
    /// If the node is unknown, is this node, or is its master.
    pub fn forget(&mut self, around: &Around<'_>, id: &[u8]) -> Result<(), String> {
        let key = self.named(id)?;
        if key == self.me {
            return Err("I tried hard but I can't forget myself...".into());
        }
        if self.myself().is_replica() && self.myself().master == Some(key) {
            return Err("Can't forget my master!".into());
        }
        self.blacklist(self.known(key).id, around.now, FORGOTTEN_SECS);
        self.remove(key);
        self.changed();
        Ok(())
    }

    /// CLUSTER REPLICATE.
    ///
    /// # Errors
    /// If this node cannot become a replica of the given node.
    pub fn replicate_node(&mut self, around: &Around<'_>, id: &[u8]) -> Result<(), String> {
        let key = self.named(id)?;
        if key == self.me {
            return Err("Can't replicate myself".into());
        }
        if self.known(key).is_replica() {
            return Err("I can only replicate a master, not a replica.".into());
        }
        if self.myself().is_master() && !(self.myself().slots.is_empty() && around.db.is_empty()) {
            return Err("To set a master the node must be empty and without assigned slots.".into());
        }
        self.follow(key);
        Ok(())
    }

    /// CLUSTER RESET.
    ///
    /// # Errors
    /// If this node is a master with keys.
    pub fn reset(&mut self, env: &mut Env, around: &Around<'_>, hard: bool) -> Result<(), String> {
        if self.myself().is_master() && !around.db.is_empty() {
            return Err("CLUSTER RESET can't be called with master nodes containing keys".into());
        }
        if self.myself().is_replica() {
            self.make_master(self.me);
            self.out.wants.extend([Want::Lead, Want::DropAll]);
        }
        self.migrating.clear();
        self.importing.clear();
        self.reset_manual_failover();
        for slot in 0..SLOTS {
            self.unbind(slot);
        }
        for key in self.keys().into_iter().filter(|key| *key != self.me).collect::<Vec<_>>() {
            self.remove(key);
        }
        if hard {
            (self.current_epoch, self.last_vote_epoch) = (0, 0);
            self.myself_mut().config_epoch = 0;
            let old = self.my_id();
            let id = env.random_id();
            self.rename(self.me, NodeId::parse(id.as_bytes()).expect("ids are 40 hex digits"));
            self.log(format!("Node hard reset, now I'm {id}, and was {old}"));
        }
        // A node of Valkey 9 leaves its shard also at a soft reset.
        let leaves = hard || self.generation == Generation::Valkey91;
        if leaves && self.generation.has(Feature::ShardIds) {
            self.myself_mut().shard = Some(random_id(env));
        }
        self.changed();
        Ok(())
    }

    /// CLUSTER SET-CONFIG-EPOCH.
    ///
    /// # Errors
    /// If the epoch is negative, this node knows another node, or it has a config epoch already.
    pub fn set_config_epoch(&mut self, epoch: i64) -> Result<(), String> {
        let Ok(epoch) = u64::try_from(epoch) else {
            return Err(format!("Invalid config epoch specified: {epoch}"));
        };
        if self.nodes.len() > 1 {
            let why = "The user can assign a config epoch only when the node does not know any other node.";
            return Err(why.into());
        }
        if self.myself().config_epoch != 0 {
            return Err("Node config epoch is already non-zero".into());
        }
        self.myself_mut().config_epoch = epoch;
        self.current_epoch = self.current_epoch.max(epoch);
        self.changed();
        Ok(())
    }

    /// CLUSTER BUMPEPOCH. Returns true if it raised this node's config epoch, and that epoch.
    pub fn bump(&mut self) -> (bool, u64) {
        let bumped = self.bump_epoch();
        (bumped, self.myself().config_epoch)
    }

    /// Has `nodes.conf` written at the end of the step (CLUSTER SAVECONFIG).
    pub fn save(&mut self) {
        self.out.unsaved = true;
    }

    /// CLUSTER COUNT-FAILURE-REPORTS.
    ///
    /// # Errors
    /// If the node is unknown.
    pub fn failure_reports(&mut self, around: &Around<'_>, id: &[u8]) -> Result<usize, String> {
        let key = self.named(id)?;
        Ok(self.count_reports(around, key))
    }

    /// DEBUG DROP-CLUSTER-PACKET-FILTER: ignores messages of the kind with this number; a negative
    /// number ends that.
    pub fn drop_messages(&mut self, number: i64) {
        self.dropped = usize::try_from(number).ok().and_then(|at| super::message::Kind::ALL.get(at).copied());
    }

    /// DEBUG CLUSTERLINK KILL: ends the connections to a node, from it, or both.
    ///
    /// # Errors
    /// If the node or the direction is unknown.
    pub fn kill_links(&mut self, direction: &[u8], id: &[u8]) -> Result<(), String> {
        let key = self.named(id)?;
        let (to, from) = match &direction.to_ascii_lowercase()[..] {
            b"to" => (true, false),
            b"from" => (false, true),
            b"all" => (true, true),
            _ => return Err(format!("Unknown direction {}", String::from_utf8_lossy(direction))),
        };
        if to {
            self.drop_link(key);
        }
        if from {
            self.drop_inbound(key);
        }
        Ok(())
    }
}
