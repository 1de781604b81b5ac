//! An instance that a Sentinel watches: a master, a replica, or another Sentinel.

use std::fmt;

use super::link::{Channel, Link};
use crate::event::ConnId;

bitflags::bitflags! {
    /// The state of an instance. Names and order are those of the replies.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub(super) struct Flags: u16 {
        /// Down in this Sentinel's own view.
        const S_DOWN = 1;
        /// Down in the view of at least as many Sentinels as the quorum.
        const O_DOWN = 1 << 1;
        /// Of another Sentinel: it reports the master down.
        const MASTER_DOWN = 1 << 2;
        /// A failover of this master is in progress.
        const FAILOVER_IN_PROGRESS = 1 << 3;
        /// The replica chosen as the next master.
        const PROMOTED = 1 << 4;
        /// SLAVEOF was sent to it.
        const RECONF_SENT = 1 << 5;
        /// It follows the new master.
        const RECONF_INPROG = 1 << 6;
        /// It is synchronized with the new master.
        const RECONF_DONE = 1 << 7;
        /// SENTINEL FAILOVER requested the failover, which needs no votes.
        const FORCE_FAILOVER = 1 << 8;
        /// SENTINEL FAILOVER COORDINATED requested the failover: the master hands its role over.
        const COORDINATED_FAILOVER = 1 << 9;
        /// SCRIPT KILL was sent to it because it was busy.
        const SCRIPT_KILL_SENT = 1 << 10;
        /// It has restarted, and has not answered PING with PONG since.
        const MASTER_REBOOT = 1 << 11;
    }
}

/// The address on which an instance listens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// An IP address, or a host name if these are allowed.
    pub ip: String,
    /// The TCP port.
    pub port: u16,
}

impl Address {
    /// Creates an address from a host and a port.
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

/// An instance of a master's group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Who {
    Master,
    Replica(Address),
    /// By its id.
    Sentinel(String),
}

/// The instance that a connection belongs to.
#[derive(Debug, Clone)]
pub(super) struct Route {
    /// The master in whose record the instance was dialed.
    pub(super) master: String,
    pub(super) who: Who,
    pub(super) channel: Channel,
}

/// An instance. Times are milliseconds of the wall clock, 0 for never.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) kind: Kind,
    pub(super) address: Address,
    /// The id from INFO or the hello message; empty if unknown.
    pub(super) run_id: String,
    pub(super) flags: Flags,
    /// The link to a master or replica. The link to a Sentinel is in
    /// [`Sentinel::peers`](super::Sentinel), because several masters may share it.
    pub(super) link: Option<Link>,
    /// The time at which it last accepted a hello.
    pub(super) last_hello_sent: i64,
    /// The time of the last INFO reply.
    pub(super) info_refresh: i64,
    /// The last INFO reply.
    pub(super) info: Option<String>,
    /// The time at which it last became SDOWN. Kept when the instance is up again.
    pub(super) s_down_since: i64,
    /// The time at which it last became ODOWN. Kept when the instance is up again.
    pub(super) o_down_since: i64,
    pub(super) role_reported: Role,
    pub(super) role_reported_time: i64,
    /// The time at which a restart was noticed.
    pub(super) reboot_since: i64,
    pub(super) replica: ReplicaFacts,
    pub(super) peer: PeerFacts,
}

/// The fields of a replica's INFO.
#[derive(Debug)]
pub(super) struct ReplicaFacts {
    pub(super) priority: i64,
    pub(super) offset: u64,
    pub(super) announced: bool,
    /// The master that it follows; `None` if it has not reported one.
    pub(super) master: Option<Address>,
    pub(super) link_up: bool,
    /// Milliseconds for which its link to the master is down; −1000 if the link was never up.
    pub(super) link_down_time: i64,
    /// The time since which it follows that master.
    pub(super) conf_change_time: i64,
    pub(super) reconf_sent_time: i64,
}

/// The reports of another Sentinel.
#[derive(Debug)]
pub(super) struct PeerFacts {
    pub(super) last_hello: i64,
    pub(super) last_master_down_reply: i64,
    /// The candidate that it voted for.
    pub(super) leader: Option<String>,
    pub(super) leader_epoch: u64,
}

impl Instance {
    /// Creates a record at `now`. An instance that is never reached becomes SDOWN after the usual
    /// time.
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

    /// The connections to a master or replica; none for a Sentinel.
    pub(super) fn conns(&self) -> impl Iterator<Item = ConnId> {
        self.link.iter().flat_map(Link::conns)
    }

    /// Returns true if no connection to a master or replica is missing; false for a Sentinel.
    pub(super) fn is_connected(&self) -> bool {
        self.link.as_ref().is_some_and(|link| !link.disconnected)
    }

    /// Returns true if it did not become SDOWN or ODOWN within the last `time` milliseconds.
    pub(super) fn had_no_down_for(&self, now: i64, time: i64) -> bool {
        let latest = self.s_down_since.max(self.o_down_since);
        latest == 0 || now - latest > time
    }
}
