//! What CLUSTER's subcommands change.

use std::net::IpAddr;

use super::{
    Around, Cluster,
    id::NodeId,
    node::{Address, Flags, Key},
    outbox::Want,
    slot::{SLOTS, key_slot},
};
use crate::env::Env;

/// What CLUSTER SETSLOT does to a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetSlot<'a> {
    /// Its keys go to this node.
    Migrating(&'a [u8]),
    /// Its keys come from this node.
    Importing(&'a [u8]),
    /// Neither.
    Stable,
    /// It belongs to this node.
    Node(&'a [u8]),
}

impl Cluster {
    /// Gives this node slots that no node has, or takes slots from whichever nodes have them. All
    /// or nothing.
    ///
    /// # Errors
    /// If one of them is taken, or free, or named twice.
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

    /// Takes all slots of this node.
    ///
    /// # Errors
    /// If it has keys.
    pub fn flush_slots(&mut self, around: &Around<'_>) -> Result<(), String> {
        if !around.db.is_empty() {
            return Err("DB must be empty to perform CLUSTER FLUSHSLOTS.".into());
        }
        self.tell("slots", format!("{} to no node", self.myself().slots.words()));
        self.unbind_all(self.me);
        self.changed();
        Ok(())
    }

    /// Why SETSLOT is not for this node, if it is not.
    pub fn refuses_set_slot(&self) -> Option<&'static str> {
        self.myself().is_replica().then_some("Please use SETSLOT only with masters.")
    }

    /// CLUSTER SETSLOT, of a master.
    ///
    /// # Errors
    /// If it cannot be done.
    pub fn set_slot(
        &mut self,
        env: &mut Env,
        around: &mut Around<'_>,
        slot: u16,
        to: SetSlot<'_>,
    ) -> Result<(), String> {
        let is_mine = self.owner(slot) == Some(self.me);
        match to {
            SetSlot::Migrating(_) if !is_mine => {
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

    /// The other node of a migration.
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
        if to == self.me && self.importing.remove(&slot).is_some() {
            // Others are to believe it: it is newer than what the source claims.
            self.bump_epoch();
            self.broadcast_pong(env, around, false);
        }
        Ok(())
    }

    /// CLUSTER MEET. The handshake goes on by itself.
    ///
    /// # Errors
    /// If the address is none.
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
    /// If it is not known, or cannot be forgotten.
    pub fn forget(&mut self, around: &Around<'_>, id: &[u8]) -> Result<(), String> {
        let key = self.named(id)?;
        if key == self.me {
            return Err("I tried hard but I can't forget myself...".into());
        }
        if self.myself().is_replica() && self.myself().master == Some(key) {
            return Err("Can't forget my master!".into());
        }
        self.blacklist(self.known(key).id, around.now);
        self.remove(key);
        self.changed();
        Ok(())
    }

    /// CLUSTER REPLICATE.
    ///
    /// # Errors
    /// If this node cannot be a replica of that one.
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
    /// If a master has keys.
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
        self.changed();
        Ok(())
    }

    /// CLUSTER SET-CONFIG-EPOCH.
    ///
    /// # Errors
    /// If the node is not fresh.
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

    /// CLUSTER BUMPEPOCH: whether it did, and the version of this node by now.
    pub fn bump(&mut self) -> (bool, u64) {
        let bumped = self.bump_epoch();
        (bumped, self.myself().config_epoch)
    }

    /// CLUSTER SAVECONFIG.
    pub fn save(&mut self) {
        self.out.unsaved = true;
    }

    /// CLUSTER COUNT-FAILURE-REPORTS.
    ///
    /// # Errors
    /// If there is no such node.
    pub fn failure_reports(&mut self, around: &Around<'_>, id: &[u8]) -> Result<usize, String> {
        let key = self.named(id)?;
        Ok(self.count_reports(around, key))
    }

    /// DEBUG DROP-CLUSTER-PACKET-FILTER: passes over messages of the kind of this number; of none
    /// for a negative one.
    pub fn drop_messages(&mut self, number: i64) {
        self.dropped = usize::try_from(number).ok().and_then(|at| super::message::Kind::ALL.get(at).copied());
    }

    /// DEBUG CLUSTERLINK KILL: ends the connections to a node, from it, or both.
    ///
    /// # Errors
    /// If there is no such node or direction.
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
