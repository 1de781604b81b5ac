//! The history of one run: the only input of a checker.
//!
//! The recorder writes it in true time and with the clocks of all hosts. So it contains facts that
//! no process inside the run could know, such as the owner of each lock at each true instant. It is
//! plain data in which numbers stand for names. It can be stored as JSON lines ([`History::write`],
//! [`History::read`]) and judged elsewhere.

mod clock;
mod event;
mod failed;
mod file;
mod header;
mod id;
mod probe;
mod write_line;
#[cfg(test)]
pub(crate) mod story;

use std::collections::BTreeMap;

use lockstorm_world::time::True;
use serde::{Deserialize, Serialize};

pub use clock::{Clock, ClockId, Deadline, Segment};
pub use event::{
    Accepted, Call, Event, EventKind, GainCause, Life, LossCause, Mode, Outcome, Party, Reason, Role,
    SAME_END, Serving, Wait, Wake,
};
pub use failed::{CallKind, FailedCalls};
pub use file::ReadError;
pub use header::{
    Authority, Bounds, Claim, Drawn, Drift, Ended, Fence, Header, HostInfo, HostKind, HuntedVariants,
    LockInfo, LockKind, Probe, Resource,
};
pub use id::{Host, Lock, Op, Owner};
pub(crate) use write_line::WriteLine;

/// An owner of locks: its name in Redis and its client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerInfo {
    /// The name as it appears in Redis: a token, or `client:thread`.
    pub name: Box<str>,
    /// The client process that acts for the owner.
    pub client: Host,
}

/// A fault or other action on the world: a band across the timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The instant it began.
    #[serde(with = "id::nanos")]
    pub from: True,
    /// The instant it ended; `None` for an instantaneous fault (a crash, a step of a clock) and for
    /// one that never ended.
    #[serde(with = "id::nanos_option", default, skip_serializing_if = "Option::is_none")]
    pub until: Option<True>,
    /// True if it is in force until it ends, like a cut; false if it is instantaneous, like a step
    /// of a clock.
    #[serde(default)]
    pub lasts: bool,
    /// True if it sent a node a command that changes the node's later replies, such as CONFIG SET.
    /// A later refusal by the node may be due to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reconfigures: bool,
    /// The fault's name in the scenario, common to all its occurrences; empty if the scenario does
    /// not name it.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub name: Box<str>,
    /// A description, such as `m crashed` or `the wall clock of m stepped +31 s`.
    pub words: Box<str>,
    /// The hosts that it affects.
    pub targets: Vec<Host>,
}

impl Fault {
    /// Returns true if the fault lasts, began at or before `at` and did not end before `at`.
    pub fn is_in_force(&self, at: True) -> bool {
        self.from <= at && self.lasts && self.until.is_none_or(|until| until >= at)
    }
}

/// The number of times that a client sent a command to a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandCount {
    /// The node that received the commands.
    pub node: Host,
    /// The client that sent the commands.
    pub client: Host,
    /// The command's name in capitals; `EVALSHA` for a script.
    pub name: Box<str>,
    /// The number of commands in the whole run.
    pub count: u64,
}

/// A key of a lock that still exists at the end of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyLeft {
    /// The node on which the key exists, master or replica.
    pub node: Host,
    /// The lock that it belongs to.
    pub lock: Lock,
    /// The key's name in Redis; bytes that are not UTF-8 are replaced.
    pub key: Box<str>,
    /// The owner whose command created the key, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// The remaining TTL in milliseconds by the node's wall clock; `None` without an expiry.
    pub ttl_ms: Option<u64>,
}

/// The history of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// The setting of the run.
    pub header: Header,
    /// All owners that asked for a lock, by number.
    pub owners: Vec<OwnerInfo>,
    /// The clocks of every host, in the order of the header's hosts.
    pub clocks: Vec<Clock>,
    /// The faults, in the order of their beginnings.
    pub faults: Vec<Fault>,
    /// The events, in true-time order.
    pub events: Vec<Event>,
    /// Numbers of commands sent, by node, client and name.
    pub commands: Vec<CommandCount>,
    /// The locks' keys that remain at the end of the run, on the nodes that were up.
    pub keys_left: Vec<KeyLeft>,
    index: BTreeMap<Box<str>, Owner>,
}

impl History {
    /// Returns an empty history, in which the clocks of every host show true time until changed.
    ///
    /// # Panics
    /// If the header contradicts itself (see [`Header::validate`]): that is a bug of its writer.
    pub fn new(header: Header) -> Self {
        if let Err(mistake) = header.validate() {
            panic!("a header that contradicts itself: {mistake}");
        }
        let clocks = vec![Clock::true_time(); header.hosts.len()];
        Self {
            header,
            owners: Vec::new(),
            clocks,
            faults: Vec::new(),
            events: Vec::new(),
            commands: Vec::new(),
            keys_left: Vec::new(),
            index: BTreeMap::new(),
        }
    }

    /// Returns true if the lock's master is decided by a cluster slot, which is so if any node
    /// recorded [`EventKind::Serves`] for the lock.
    pub fn is_in_cluster(&self, lock: Lock) -> bool {
        self.events.iter().any(|event| matches!(event.kind, EventKind::Serves { lock: of, .. } if of == lock))
    }

    /// Returns true if the node was a master for the lock just before event number `before`, by its
    /// latest record of its role. Without such a record it counts as a master, except in a cluster.
    pub fn was_master(&self, lock: Lock, node: Host, before: usize) -> bool {
        let in_cluster = self.is_in_cluster(lock);
        let said = self.events[..before].iter().rev().filter(|event| event.host == node);
        let mut roles = said.filter_map(|event| match event.kind {
            EventKind::Serves { lock: of, how } if of == lock => Some(how.is_master()),
            EventKind::Became { role } if !in_cluster => Some(role == Role::Master),
            _ => None,
        });
        roles.next().unwrap_or(!in_cluster)
    }

    /// Adds one to the count of a command, by its name in capitals, from a client to a node.
    pub(crate) fn count(&mut self, node: Host, client: Host, name: &str) {
        let is_same =
            |one: &&mut CommandCount| one.node == node && one.client == client && *one.name == *name;
        match self.commands.iter_mut().find(is_same) {
            Some(counted) => counted.count += 1,
            None => self.commands.push(CommandCount { node, client, name: name.into(), count: 1 }),
        }
    }

    /// Returns the number of the owner with this name. The first call with a name binds the owner
    /// to `client`.
    pub fn owner(&mut self, name: &str, client: Host) -> Owner {
        if let Some(owner) = self.index.get(name) {
            return *owner;
        }
        let owner = Owner(u32::try_from(self.owners.len()).expect("fewer than 2^32 owners"));
        self.owners.push(OwnerInfo { name: name.into(), client });
        self.index.insert(name.into(), owner);
        owner
    }

    /// Returns the number of the owner with this name, or `None` if the history does not mention
    /// it.
    pub fn find_owner(&self, name: &str) -> Option<Owner> {
        self.index.get(name).copied()
    }

    /// Adds an event of a host.
    ///
    /// # Panics
    /// If a later event is already recorded: events must arrive in true-time order.
    pub fn record(&mut self, at: True, host: Host, kind: EventKind) {
        assert!(self.events.last().is_none_or(|last| last.at <= at), "an event recorded after a later one");
        self.events.push(Event { at, host, kind });
    }

    /// Adds a fault that begins at `at` and returns its number for [`History::fault_ended`]. A
    /// fault that `lasts` is in force until that call.
    pub fn fault_started(
        &mut self,
        at: True,
        name: &str,
        words: impl Into<Box<str>>,
        targets: Vec<Host>,
        lasts: bool,
    ) -> usize {
        let (name, words) = (name.into(), words.into());
        self.faults.push(Fault { from: at, until: None, lasts, reconfigures: false, name, words, targets });
        self.faults.len() - 1
    }

    /// Marks a fault as one that changes a node's later replies ([`Fault::reconfigures`]).
    pub fn fault_reconfigures(&mut self, fault: usize) {
        self.faults[fault].reconfigures = true;
    }

    /// Sets the end of the fault with this index in [`History::faults`].
    pub fn fault_ended(&mut self, fault: usize, at: True) {
        self.faults[fault].until = Some(at);
    }

    /// Returns true if a client's calls may fail because of a fault: it has a target that is the
    /// client or no client at all, or it has no target.
    pub(crate) fn may_concern(&self, fault: &Fault, client: Host) -> bool {
        let is_other =
            |host: &Host| *host != client && self.header.hosts[usize::from(host.0)].kind == HostKind::Client;
        fault.targets.is_empty() || !fault.targets.iter().all(is_other)
    }

    /// Returns the clocks of a host.
    pub fn clock(&self, host: Host) -> &Clock {
        &self.clocks[host.0 as usize]
    }

    /// Returns the name of a host in the scenario, such as `c1`.
    pub fn host_name(&self, host: Host) -> &str {
        &self.header.hosts[host.0 as usize].name
    }

    /// Returns the description of a lock on trial.
    pub fn lock(&self, lock: Lock) -> &LockInfo {
        &self.header.locks[lock.0 as usize]
    }

    /// Returns the client that an owner belongs to.
    pub fn client_of(&self, owner: Owner) -> Host {
        self.owners[owner.0 as usize].client
    }

    /// Returns true if a command was sent for this owner: `by` names the owner, or it names no
    /// owner and its client is the owner's.
    pub fn is_own(&self, owner: Owner, by: Party) -> bool {
        by.owner.map_or_else(|| self.client_of(owner) == by.client, |named| named == owner)
    }

    /// Returns the client that a party is to a rate limiter: the process id that prefixes its
    /// owners' names in Redis, or the host's name without an owner. A restarted process counts as
    /// another client.
    pub fn process(&self, party: Party) -> &str {
        let Some(owner) = party.owner else { return self.host_name(party.client) };
        let name = &self.owners[owner.0 as usize].name;
        name.rsplit_once(':').map_or(name, |(id, _)| id)
    }

    /// Returns the name of a command's sender for use in a sentence.
    pub fn party_name(&self, party: Party) -> String {
        party.owner.map_or_else(|| self.sender_name(party.client), |owner| self.owner_name(owner))
    }

    /// Returns the name of a sender of commands: the client's name, or a placeholder for commands
    /// issued on a node itself, which are an operator's at its console. The fault's text uses the
    /// same word.
    pub fn sender_name(&self, sender: Host) -> String {
        match self.header.hosts[usize::from(sender.0)].kind {
            HostKind::Node => "somebody".to_owned(),
            _ => self.host_name(sender).to_owned(),
        }
    }

    /// Returns an owner's name for use in a sentence: its client's name, followed by the owner's
    /// own name if the client has several owners. A random value (more than 16 hexadecimal digits)
    /// is cut to its first 8.
    pub fn owner_name(&self, owner: Owner) -> String {
        let info = &self.owners[owner.0 as usize];
        let client = self.sender_name(info.client);
        let alone = self.owners.iter().filter(|other| other.client == info.client).count() == 1;
        let random = info.name.len() > 16 && info.name.bytes().all(|byte| byte.is_ascii_hexdigit());
        match (alone, random) {
            (true, _) => client,
            (false, true) => format!("{client} ({}…)", &info.name[..8]),
            (false, false) => format!("{client} ({})", info.name),
        }
    }
}
