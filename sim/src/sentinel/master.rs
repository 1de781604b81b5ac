//! A master with its replicas and the other Sentinels that watch it.

use std::collections::BTreeMap;

use super::{
    Address, MasterSettings, Times,
    instance::{Flags, Instance, Kind, Role, Who},
};

/// How far a failover has come.
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

/// Replicas, and other Sentinels, that are recorded of one master: a peer that sends names without
/// end fills no memory.
pub(super) const OTHERS_MAX: usize = 1_000;

/// A master that is watched.
#[derive(Debug)]
pub(super) struct Master {
    pub(super) name: String,
    /// `address` is where it was at first; where it is now is in `own`.
    pub(super) settings: MasterSettings,
    pub(super) own: Instance,
    pub(super) replicas: BTreeMap<Address, Instance>,
    /// By their ids.
    pub(super) sentinels: BTreeMap<String, Instance>,
    pub(super) config_epoch: u64,
    /// The own last vote: for whom, unless this process has restarted since, and in which epoch.
    pub(super) leader: Option<String>,
    pub(super) leader_epoch: u64,
    pub(super) failover_epoch: u64,
    pub(super) stage: Stage,
    pub(super) stage_since: i64,
    /// When the last attempt of a failover began, here or elsewhere, give or take a random second.
    pub(super) failover_start: i64,
    pub(super) promoted: Option<Address>,
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

    /// Everyone of the group, in the order of a tick.
    pub(super) fn everyone(&self) -> Vec<Who> {
        let replicas = self.replicas.keys().cloned().map(Who::Replica);
        let sentinels = self.sentinels.keys().cloned().map(Who::Sentinel);
        [Who::Master].into_iter().chain(replicas).chain(sentinels).collect()
    }

    /// The instance as events name it.
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

    /// Where clients are told that the master is: the promoted replica from its promotion on.
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

    /// Whether the master can be relied on to say who its replicas are.
    pub(super) fn looks_sane(&self, now: i64, times: &Times) -> bool {
        self.own.role_reported == Role::Master
            && !self.own.is(Flags::S_DOWN | Flags::O_DOWN)
            && now - self.own.info_refresh < times.info * 2
    }

    /// The number of Sentinels, this one among them, that are not down.
    pub(super) fn usable_sentinels(&self) -> usize {
        1 + self.sentinels.values().filter(|peer| !peer.is(Flags::S_DOWN)).count()
    }

    pub(super) fn go_to(&mut self, stage: Stage, now: i64) {
        (self.stage, self.stage_since) = (stage, now);
    }
}
