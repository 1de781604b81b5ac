//! An instance that is watched: a master, a replica, or another Sentinel.

use std::fmt;

use super::link::{Channel, Link};
use crate::event::ConnId;

bitflags::bitflags! {
    /// What is known of an instance. The names and the order are those of the replies.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub(super) struct Flags: u16 {
        /// Down, in this Sentinel's own view.
        const S_DOWN = 1;
        /// Down, in the view of as many as the quorum.
        const O_DOWN = 1 << 1;
        /// Of a Sentinel: it says that the master is down.
        const MASTER_DOWN = 1 << 2;
        /// A failover of this master is under way.
        const FAILOVER_IN_PROGRESS = 1 << 3;
        /// The replica that is to be the master.
        const PROMOTED = 1 << 4;
        /// SLAVEOF is sent.
        const RECONF_SENT = 1 << 5;
        /// It follows the new master.
        const RECONF_INPROG = 1 << 6;
        /// It is synchronized with the new master.
        const RECONF_DONE = 1 << 7;
        /// The failover was asked for, and needs no votes.
        const FORCE_FAILOVER = 1 << 8;
        /// SCRIPT KILL was sent to an instance that is busy.
        const SCRIPT_KILL_SENT = 1 << 9;
        /// It has restarted, and has not answered PING since.
        const MASTER_REBOOT = 1 << 10;
    }
}

/// Where an instance listens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// IP address, or a host name where those are allowed.
    pub ip: String,
    /// TCP port.
    pub port: u16,
}

impl Address {
    /// This host and port.
    pub fn new(ip: impl Into<String>, port: u16) -> Address {
        Address { ip: ip.into(), port }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ip.contains(':') {
            true => write!(f, "[{}]:{}", self.ip, self.port),
            false => write!(f, "{}:{}", self.ip, self.port),
        }
    }
}

/// What an instance is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Master,
    Replica,
    Sentinel,
}

impl Kind {
    /// The word in events and flags.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Master => "master",
            Kind::Replica => "slave",
            Kind::Sentinel => "sentinel",
        }
    }
}

/// The role that INFO reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Master,
    Slave,
}

impl Role {
    pub(super) fn name(self) -> &'static str {
        match self {
            Role::Master => "master",
            Role::Slave => "slave",
        }
    }
}

/// Which instance of a master's group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Who {
    Master,
    Replica(Address),
    /// By its id.
    Sentinel(String),
}

/// Where a connection leads to.
#[derive(Debug, Clone)]
pub(super) struct Route {
    /// The master whose record was dialed.
    pub(super) master: String,
    pub(super) who: Who,
    pub(super) channel: Channel,
}

/// An instance. Times are milliseconds of the wall clock, 0 for never.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) kind: Kind,
    pub(super) address: Address,
    /// The id that INFO or the hello message tells; empty if unknown.
    pub(super) run_id: String,
    pub(super) flags: Flags,
    /// Of a master or replica: a Sentinel's link is in [`Sentinel::peers`](super::Sentinel), as
    /// several masters may share it.
    pub(super) link: Option<Link>,
    /// When a hello was last accepted by it.
    pub(super) last_hello_sent: i64,
    /// When the last INFO came.
    pub(super) info_refresh: i64,
    /// The last INFO.
    pub(super) info: Option<String>,
    /// When it last began to be down here; it stays when the instance is up again.
    pub(super) s_down_since: i64,
    /// The same, by agreement.
    pub(super) o_down_since: i64,
    pub(super) role_reported: Role,
    pub(super) role_reported_time: i64,
    /// When it was seen to have restarted.
    pub(super) reboot_since: i64,
    pub(super) replica: ReplicaFacts,
    pub(super) peer: PeerFacts,
}

/// What INFO says of a replica.
#[derive(Debug)]
pub(super) struct ReplicaFacts {
    pub(super) priority: i64,
    pub(super) offset: u64,
    pub(super) announced: bool,
    /// The master it follows, as far as it said.
    pub(super) master: Option<Address>,
    pub(super) link_up: bool,
    /// For how long its link is down; −1000 if it was never up.
    pub(super) link_down_time: i64,
    /// Since when it follows that master.
    pub(super) conf_change_time: i64,
    pub(super) reconf_sent_time: i64,
}

/// What another Sentinel says.
#[derive(Debug)]
pub(super) struct PeerFacts {
    pub(super) last_hello: i64,
    pub(super) last_master_down_reply: i64,
    /// For whom it has voted.
    pub(super) leader: Option<String>,
    pub(super) leader_epoch: u64,
}

impl Instance {
    /// A record made at `now`: one that is never reached is down when the time for that is over.
    pub(super) fn new(kind: Kind, address: Address, now: i64) -> Instance {
        let role_reported = if kind == Kind::Replica { Role::Slave } else { Role::Master };
        Instance {
            kind,
            address,
            run_id: String::new(),
            flags: Flags::empty(),
            link: (kind != Kind::Sentinel).then(|| Link::new(now)),
            last_hello_sent: now,
            info_refresh: 0,
            info: None,
            s_down_since: 0,
            o_down_since: 0,
            role_reported,
            role_reported_time: now,
            reboot_since: 0,
            replica: ReplicaFacts {
                priority: 100,
                offset: 0,
                announced: true,
                master: None,
                link_up: false,
                link_down_time: 0,
                conf_change_time: now,
                reconf_sent_time: 0,
            },
            peer: PeerFacts { last_hello: now, last_master_down_reply: now, leader: None, leader_epoch: 0 },
        }
    }

    pub(super) fn is(&self, flags: Flags) -> bool {
        self.flags.intersects(flags)
    }

    /// The connections to a master or replica.
    pub(super) fn conns(&self) -> impl Iterator<Item = ConnId> {
        self.link.iter().flat_map(Link::conns)
    }

    /// Whether all connections to a master or replica stand.
    pub(super) fn is_connected(&self) -> bool {
        self.link.as_ref().is_some_and(|link| !link.disconnected)
    }

    /// Whether it did not begin to be down within this time.
    pub(super) fn had_no_down_for(&self, now: i64, time: i64) -> bool {
        let latest = self.s_down_since.max(self.o_down_since);
        latest == 0 || now - latest > time
    }
}
