//! What happened in one run: the only thing a checker may look at.
//!
//! A history is recorded with true time and the clocks of all hosts, so it contains what no process
//! inside the run could know: which owner held which lock at which true instant. It is plain data
//! with numbers for names, may be stored as JSON lines ([`History::write`], [`History::read`]) and
//! judged again elsewhere.

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

use lockstorm_sim::time::True;
use serde::{Deserialize, Serialize};

pub use clock::{Clock, ClockId, Deadline, Segment};
pub use event::{
    Accepted, Call, Event, EventKind, GainCause, Life, LossCause, Mode, Outcome, Party, Reason, Role,
    SAME_END, Serving, Wait, Wake,
};
pub use failed::{CallKind, FailedCalls};
pub use file::ReadError;
pub use header::{
    Authority, Bounds, Claim, Drawn, Drift, Ended, Fence, Header, HostInfo, HostKind, LockInfo, LockKind,
    Probe, Resource,
};
pub use id::{Host, Lock, Op, Owner};
pub(crate) use write_line::WriteLine;

/// Who an owner is: the name the lock knows it by, and the client it lives on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerInfo {
    /// As it stands in Redis: a token, or `client:thread`.
    pub name: Box<str>,
    /// The client whose owner it is.
    pub client: Host,
}

/// Something that was done to the world: a band across the timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// When it began.
    #[serde(with = "id::nanos")]
    pub from: True,
    /// When it was over; `None` for what happens at once (a crash, a step of a clock) and for what
    /// never ended.
    #[serde(with = "id::nanos_option", default, skip_serializing_if = "Option::is_none")]
    pub until: Option<True>,
    /// Whether it is in force until it is over, as a cut is and a step of a clock is not.
    #[serde(default)]
    pub lasts: bool,
    /// Whether it gave a node a command after which it answers otherwise, as CONFIG SET does: what
    /// the node turns away later it may turn away for that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reconfigures: bool,
    /// What the scenario calls it, of all its occurrences; nothing where no scenario has named it.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub name: Box<str>,
    /// In plain words, such as `m crashed` or `the wall clock of m stepped +31 s`.
    pub words: Box<str>,
    /// The hosts it was done to.
    pub targets: Vec<Host>,
}

impl Fault {
    /// Whether it had begun by then, and was not over.
    pub fn is_in_force(&self, at: True) -> bool {
        self.from <= at && self.lasts && self.until.is_none_or(|until| until >= at)
    }
}

/// How many times a client sent a command to a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandCount {
    /// The node.
    pub node: Host,
    /// The client.
    pub client: Host,
    /// The command's name in capitals; a script is `EVALSHA`.
    pub name: Box<str>,
    /// How many.
    pub count: u64,
}

/// A key that was still there when the run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyLeft {
    /// The node that has it.
    pub node: Host,
    /// The lock that it belongs to.
    pub lock: Lock,
    /// The key.
    pub key: Box<str>,
    /// Whose command made it, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// What was left of its life in milliseconds by the node's wall clock; `None` without an
    /// expiry.
    pub ttl_ms: Option<u64>,
}

/// What happened in one run.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// What was on trial and what the words mean.
    pub header: Header,
    /// All owners that asked for a lock, by number.
    pub owners: Vec<OwnerInfo>,
    /// The clocks of every host, in the order of the header's hosts.
    pub clocks: Vec<Clock>,
    /// What was done to the world, in the order it began.
    pub faults: Vec<Fault>,
    /// What happened, in the order it happened.
    pub events: Vec<Event>,
    /// How many commands were sent, by node, client and name.
    pub commands: Vec<CommandCount>,
    /// What was left when the run ended, on the nodes that were up.
    pub keys_left: Vec<KeyLeft>,
    index: BTreeMap<Box<str>, Owner>,
}

impl History {
    /// An empty history; every host's clocks agree with true time until told otherwise.
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

    /// Whether nodes share the slots, so that the master of a lock is the one whose slot the lock's
    /// is.
    pub fn is_in_cluster(&self, lock: Lock) -> bool {
        self.events.iter().any(|event| matches!(event.kind, EventKind::Serves { lock: of, .. } if of == lock))
    }

    /// Whether a node was a master of a lock, by what it had last said of its role before the event
    /// of this number. One that has said nothing is a master, where there is no cluster.
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

    /// Counts one more command of this name, in capitals, that a client sent to a node.
    pub(crate) fn count(&mut self, node: Host, client: Host, name: &str) {
        let is_same =
            |one: &&mut CommandCount| one.node == node && one.client == client && *one.name == *name;
        match self.commands.iter_mut().find(is_same) {
            Some(counted) => counted.count += 1,
            None => self.commands.push(CommandCount { node, client, name: name.into(), count: 1 }),
        }
    }

    /// The number of the owner with this name; the first mention decides which client it belongs
    /// to.
    pub fn owner(&mut self, name: &str, client: Host) -> Owner {
        if let Some(owner) = self.index.get(name) {
            return *owner;
        }
        let owner = Owner(u32::try_from(self.owners.len()).expect("fewer than 2^32 owners"));
        self.owners.push(OwnerInfo { name: name.into(), client });
        self.index.insert(name.into(), owner);
        owner
    }

    /// The number of the owner with this name, if the history mentions it.
    pub fn find_owner(&self, name: &str) -> Option<Owner> {
        self.index.get(name).copied()
    }

    /// Adds what happened on a host.
    ///
    /// # Panics
    /// If something later was recorded before it: events come in the order of true time.
    pub fn record(&mut self, at: True, host: Host, kind: EventKind) {
        assert!(self.events.last().is_none_or(|last| last.at <= at), "an event recorded after a later one");
        self.events.push(Event { at, host, kind });
    }

    /// Adds a fault that begins, and returns its number for [`History::fault_ended`]; one that
    /// `lasts` is in force until then.
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

    /// Says that a fault gave a node a command after which it answers otherwise.
    pub fn fault_reconfigures(&mut self, fault: usize) {
        self.faults[fault].reconfigures = true;
    }

    /// Says when a fault was over.
    pub fn fault_ended(&mut self, fault: usize, at: True) {
        self.faults[fault].until = Some(at);
    }

    /// The clocks of a host.
    pub fn clock(&self, host: Host) -> &Clock {
        &self.clocks[host.0 as usize]
    }

    /// The name of a host.
    pub fn host_name(&self, host: Host) -> &str {
        &self.header.hosts[host.0 as usize].name
    }

    /// A lock on trial.
    pub fn lock(&self, lock: Lock) -> &LockInfo {
        &self.header.locks[lock.0 as usize]
    }

    /// The client an owner lives on.
    pub fn client_of(&self, owner: Owner) -> Host {
        self.owners[owner.0 as usize].client
    }

    /// Whether a command was sent for this owner: it names the owner, or, where it names none,
    /// comes from the owner's client.
    pub fn is_own(&self, owner: Owner, by: Party) -> bool {
        by.owner.map_or_else(|| self.client_of(owner) == by.client, |named| named == owner)
    }

    /// The client that a party of a rate limiter is: a process by its id in Redis, which its
    /// owners' names begin with. A process that was started again is another client.
    pub fn process(&self, party: Party) -> &str {
        let Some(owner) = party.owner else { return self.host_name(party.client) };
        let name = &self.owners[owner.0 as usize].name;
        name.rsplit_once(':').map_or(name, |(id, _)| id)
    }

    /// Names the sender of a command as sentences do.
    pub fn party_name(&self, party: Party) -> String {
        party.owner.map_or_else(|| self.sender_name(party.client), |owner| self.owner_name(owner))
    }

    /// Names a sender of commands: a client by its name. Those that come from a node itself are an
    /// operator's at its console, for whom there is one word, here as in the fault.
    pub fn sender_name(&self, sender: Host) -> String {
        match self.header.hosts[usize::from(sender.0)].kind {
            HostKind::Node => "somebody".to_owned(),
            _ => self.host_name(sender).to_owned(),
        }
    }

    /// What to call an owner in a sentence: its client's name, with its own name where the client
    /// has several. Of a random value the beginning will do.
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
