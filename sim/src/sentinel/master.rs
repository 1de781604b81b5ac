//! A master with its replicas and the other Sentinels that watch it.

use std::collections::BTreeMap;

use super::{
    Address, MasterSettings, Times,
    instance::{Flags, Instance, Kind, Role, Who},
};

/// The progress of a failover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    None,
    WaitStart,
    SelectSlave,
    SendSlaveofNoOne,
    WaitPromotion,
    ReconfSlaves,
    UpdateConfig,
}

impl Stage {
    pub(super) fn name(self) -> &'static str {
        match self {
            Stage::None => "none",
            Stage::WaitStart => "wait_start",
            Stage::SelectSlave => "select_slave",
            Stage::SendSlaveofNoOne => "send_slaveof_noone",
            Stage::WaitPromotion => "wait_promotion",
            Stage::ReconfSlaves => "reconf_slaves",
            Stage::UpdateConfig => "update_config",
        }
    }
}

/// The most replicas, and the most other Sentinels, recorded of one master. A peer that sends
/// endless names cannot fill the memory.
pub(super) const OTHERS_MAX: usize = 1_000;

/// A watched master, with its group.
#[derive(Debug)]
pub(super) struct Master {
    pub(super) name: String,
    /// Its `address` is the first one; `own` has the current one.
    pub(super) settings: MasterSettings,
    pub(super) own: Instance,
    pub(super) replicas: BTreeMap<Address, Instance>,
    /// The other Sentinels, by their ids.
    pub(super) sentinels: BTreeMap<String, Instance>,
    pub(super) config_epoch: u64,
    /// The candidate of this Sentinel's last vote, which was in `leader_epoch`; `None` after a
    /// restart until the next vote.
    pub(super) leader: Option<String>,
    pub(super) leader_epoch: u64,
    pub(super) failover_epoch: u64,
    pub(super) stage: Stage,
    pub(super) stage_since: i64,
    /// The time of the last attempt of a failover, by this or another Sentinel, plus a random time
    /// below one second.
    pub(super) failover_start: i64,
    pub(super) promoted: Option<Address>,
    /// Set once the INFO of a master had a state of the failover: it has the command FAILOVER.
    pub(super) hands_over: bool,
}

impl Master {
    pub(super) fn new(name: String, settings: MasterSettings, now: i64) -> Master {
        Master {
            name,
            own: Instance::new(Kind::Master, settings.address.clone(), now),
            settings,
            replicas: BTreeMap::new(),
            sentinels: BTreeMap::new(),
            config_epoch: 0,
            leader: None,
            leader_epoch: 0,
            failover_epoch: 0,
            stage: Stage::None,
            stage_since: 0,
            failover_start: 0,
            promoted: None,
            hands_over: false,
        }
    }

    pub(super) fn instance(&self, who: &Who) -> Option<&Instance> {
        match who {
            Who::Master => Some(&self.own),
            Who::Replica(address) => self.replicas.get(address),
            Who::Sentinel(id) => self.sentinels.get(id),
        }
    }

    pub(super) fn instance_mut(&mut self, who: &Who) -> Option<&mut Instance> {
        match who {
            Who::Master => Some(&mut self.own),
            Who::Replica(address) => self.replicas.get_mut(address),
            Who::Sentinel(id) => self.sentinels.get_mut(id),
        }
    }

    /// All instances of the group, in the order in which a tick handles them.
    pub(super) fn everyone(&self) -> Vec<Who> {
        let replicas = self.replicas.keys().cloned().map(Who::Replica);
        let sentinels = self.sentinels.keys().cloned().map(Who::Sentinel);
        [Who::Master].into_iter().chain(replicas).chain(sentinels).collect()
    }

    /// The name of an instance in events.
    pub(super) fn named(&self, who: &Who) -> String {
        let Master { name, own, .. } = self;
        let master = format!("{name} {} {}", own.address.ip, own.address.port);
        match (who, self.instance(who)) {
            (Who::Master, _) | (_, None) => format!("master {master}"),
            (Who::Replica(at), _) => format!("slave {at} {} {} @ {master}", at.ip, at.port),
            (Who::Sentinel(id), Some(peer)) => {
                format!("sentinel {id} {} {} @ {master}", peer.address.ip, peer.address.port)
            }
        }
    }

    pub(super) fn promoted(&self) -> Option<&Instance> {
        self.replicas.get(self.promoted.as_ref()?)
    }

    /// The master's address for clients: from the promotion on, that of the promoted replica.
    pub(super) fn current_address(&self) -> &Address {
        match &self.promoted {
            Some(promoted)
                if self.own.is(Flags::FAILOVER_IN_PROGRESS) && self.stage >= Stage::ReconfSlaves =>
            {
                promoted
            }
            _ => &self.own.address,
        }
    }

    /// Returns true if the master is up and a recent INFO reports it as a master: only then are
    /// replicas made to follow it.
    pub(super) fn looks_sane(&self, now: i64, times: &Times) -> bool {
        self.own.role_reported == Role::Master
            && !self.own.is(Flags::S_DOWN | Flags::O_DOWN)
            && now - self.own.info_refresh < times.info * 2
    }

    /// Number of Sentinels that are not down, this one included.
    pub(super) fn usable_sentinels(&self) -> usize {
        1 + self.sentinels.values().filter(|peer| !peer.is(Flags::S_DOWN)).count()
    }

    pub(super) fn go_to(&mut self, stage: Stage, now: i64) {
        (self.stage, self.stage_since) = (stage, now);
    }
}
