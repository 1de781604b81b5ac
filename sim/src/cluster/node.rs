//! The entry of a node in the table of nodes that each node keeps, with one for itself.

use std::{collections::BTreeMap, fmt, num::NonZeroU32};

use super::{id::NodeId, slot_set::SlotSet};
use crate::event::ConnId;

/// The key of a node in the table of one node. A key is never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(pub(super) NonZeroU32);

bitflags::bitflags! {
    /// The role and state of a node, as the bus carries them.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Flags: u16 {
        /// A master.
        const MASTER = 1;
        /// A replica.
        const REPLICA = 1 << 1;
        /// Down in the view of this node.
        const PFAIL = 1 << 2;
        /// Down by the agreement of a majority.
        const FAIL = 1 << 3;
        /// The node itself.
        const MYSELF = 1 << 4;
        /// It has not sent its name yet.
        const HANDSHAKE = 1 << 5;
        /// Its address is unknown.
        const NO_ADDRESS = 1 << 6;
        /// It must be sent a MEET first.
        const MEET = 1 << 7;
        /// A master that replicas may migrate to.
        const MIGRATE_TO = 1 << 8;
        /// A replica that never starts an election for a failed master.
        const NO_FAILOVER = 1 << 9;
        /// Valkey: it reads extensions.
        const EXTENSIONS = 1 << 10;
        /// Valkey: it takes light messages of channels.
        const LIGHT = 1 << 11;
        /// Valkey: it takes light messages of modules.
        const LIGHT_MODULE = 1 << 12;
        /// The messages that a node takes, as its own headers say.
        const ABILITIES = Self::EXTENSIONS.bits() | Self::LIGHT.bits() | Self::LIGHT_MODULE.bits();
    }
}

impl Flags {
    /// The names in CLUSTER NODES, in its order.
    const NAMES: [(Flags, &'static str); 8] = [
        (Flags::MYSELF, "myself"),
        (Flags::MASTER, "master"),
        (Flags::REPLICA, "slave"),
        (Flags::PFAIL, "fail?"),
        (Flags::FAIL, "fail"),
        (Flags::HANDSHAKE, "handshake"),
        (Flags::NO_ADDRESS, "noaddr"),
        (Flags::NO_FAILOVER, "nofailover"),
    ];

    /// The names as CLUSTER NODES shows them, separated by commas.
    pub(super) fn names(self) -> String {
        let names = Flags::NAMES.iter().filter(|(flag, _)| self.contains(*flag)).map(|(_, name)| *name);
        let names = names.collect::<Vec<_>>().join(",");
        if names.is_empty() { "noflags".into() } else { names }
    }

    /// Parses names separated by commas; `None` if one is unknown.
    pub(super) fn named(text: &str) -> Option<Flags> {
        if text == "noflags" {
            return Some(Flags::empty());
        }
        text.split(',').try_fold(Flags::empty(), |flags, name| {
            let known = Flags::NAMES.iter().find(|(_, known)| *known == name);
            known.map(|(flag, _)| flags | *flag)
        })
    }
}

/// The address of a node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Address {
    /// The IP address; empty while it is unknown.
    pub ip: String,
    /// The port for clients.
    pub port: u16,
    /// The port of the cluster bus, where only nodes connect.
    pub bus_port: u16,
}

impl fmt::Display for Address {
    /// Writes the address for clients, `ip:port`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.ip, self.port)
    }
}

/// The connection that this node dialed to another node.
#[derive(Debug)]
pub(super) struct Link {
    /// The connection, perhaps not established yet.
    pub(super) conn: ConnId,
    /// The time of the dial, in milliseconds of the wall clock.
    pub(super) created: i64,
    /// True once it is established.
    pub(super) connected: bool,
    /// Received bytes that are not a whole message yet.
    pub(super) buffer: Vec<u8>,
    /// The address of this end, once the connection is established.
    pub(super) local: String,
    /// Sent bytes that the network has not taken yet.
    pub(super) unsent: usize,
}

/// A known node. Times are milliseconds of the wall clock, 0 for never.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) id: NodeId,
    pub(super) flags: Flags,
    pub(super) address: Address,
    pub(super) hostname: String,
    pub(super) human_name: String,
    /// The IPv4 address for clients, with Valkey; empty for the address itself.
    pub(super) client_ip: String,
    /// The id of its shard, once it is known.
    pub(super) shard: Option<NodeId>,
    /// True if it has marked a message as one with extensions: it reads them.
    pub(super) is_extended: bool,
    /// True if it takes light messages of channels.
    pub(super) is_light: bool,
    /// The epoch of a master's claim to its slots; 0 for a replica.
    pub(super) config_epoch: u64,
    pub(super) slots: SlotSet,
    pub(super) master: Option<Key>,
    pub(super) created: i64,
    /// The time of the unanswered ping; 0 if none is unanswered.
    pub(super) ping_sent: i64,
    pub(super) pong_received: i64,
    pub(super) data_received: i64,
    pub(super) failed_at: i64,
    /// The time of this node's last vote for a replica of that node.
    pub(super) voted_at: i64,
    pub(super) offset: u64,
    /// The time since which it is a master without working replicas.
    pub(super) orphaned_at: i64,
    pub(super) link: Option<Link>,
    pub(super) inbound: Option<ConnId>,
    /// The masters that report it down, each with the time of its last report.
    pub(super) reports: BTreeMap<Key, i64>,
}

impl Known {
    pub(super) fn new(id: NodeId, flags: Flags, now: i64) -> Known {
        Known {
            id,
            flags,
            address: Address::default(),
            hostname: String::new(),
            human_name: String::new(),
            client_ip: String::new(),
            shard: None,
            is_extended: false,
            is_light: false,
            config_epoch: 0,
            slots: SlotSet::default(),
            master: None,
            created: now,
            ping_sent: 0,
            pong_received: 0,
            data_received: 0,
            failed_at: 0,
            voted_at: 0,
            offset: 0,
            orphaned_at: 0,
            link: None,
            inbound: None,
            reports: BTreeMap::new(),
        }
    }

    /// Returns true if one of these flags is set.
    pub(super) fn is(&self, flags: Flags) -> bool {
        self.flags.intersects(flags)
    }

    pub(super) fn is_master(&self) -> bool {
        self.is(Flags::MASTER)
    }

    pub(super) fn is_replica(&self) -> bool {
        self.is(Flags::REPLICA)
    }

    pub(super) fn has_failed(&self) -> bool {
        self.is(Flags::FAIL)
    }

    /// Returns true for a master with slots: it counts for the size of the cluster.
    pub(super) fn votes(&self) -> bool {
        self.is_master() && !self.slots.is_empty()
    }
}
