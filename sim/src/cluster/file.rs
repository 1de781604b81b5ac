//! `nodes.conf`: the file in which a node keeps its view of the cluster, in the format of Redis.

use super::{
    Around, Cluster,
    id::NodeId,
    node::{Address, Flags, Key},
    outbox::Want,
    slot::{SLOTS, key_slot},
};
use crate::env::Env;

/// A `nodes.conf` that a node cannot start from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Unrecoverable error: corrupted cluster config file: line {line}")]
pub struct Corrupted {
    /// The number of the line, from 1.
    pub line: usize,
}

impl Cluster {
    /// Creates a node from the text of its file. From an empty text it creates a node with a new
    /// name that knows only itself.
    ///
    /// # Errors
    /// Returns the first line that cannot be parsed, or the last one if no line describes this
    /// node.
    pub fn start(text: &str, around: &mut Around<'_>, env: &mut Env) -> Result<Cluster, Corrupted> {
        let mut cluster = Cluster::new(env);
        cluster.imitate(around.config.generation, env);
        if text.is_empty() {
            cluster.out.unsaved = true;
        } else {
            cluster.read(text, around.now)?;
        }
        cluster.note_own_options(around);
        cluster.out.unsaved |= cluster.adopt_epochs();
        Ok(cluster)
    }

    /// The text of `nodes.conf`.
    pub fn file(&self) -> String {
        let mut text = String::new();
        for (key, node) in &self.nodes {
            if !node.is(Flags::HANDSHAKE) {
                text.push_str(&self.line(*key, true));
                text.push('\n');
            }
        }
        let (current, voted) = (self.current_epoch, self.last_vote_epoch);
        text.push_str(&format!("vars currentEpoch {current} lastVoteEpoch {voted}\n"));
        text
    }

    fn adopt_epochs(&mut self) -> bool {
        let max = self.nodes.values().map(|node| node.config_epoch).max().unwrap_or(0);
        let behind = max > self.current_epoch;
        self.current_epoch = self.current_epoch.max(max);
        behind
    }

    fn read(&mut self, text: &str, now: i64) -> Result<(), Corrupted> {
        let mut has_myself = false;
        // Read the names first: a line may refer to any other, and slots to their owners.
        let lines: Vec<(usize, &str)> = text.lines().enumerate().map(|(at, line)| (at + 1, line)).collect();
        let mut read = Vec::new();
        for (number, line) in &lines {
            let corrupted = Corrupted { line: *number };
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            match words[..] {
                [] => continue,
                ["vars", ref vars @ ..] => {
                    self.read_vars(vars).ok_or(corrupted)?;
                    continue;
                }
                _ => {}
            }
            let key = self.read_node(&words, now, &mut has_myself).ok_or_else(|| corrupted.clone())?;
            read.push((corrupted, words, key));
        }
        for (corrupted, words, key) in read {
            self.read_relations(&words, key, now).ok_or(corrupted)?;
        }
        if has_myself { Ok(()) } else { Err(Corrupted { line: lines.len() }) }
    }

    fn read_vars(&mut self, vars: &[&str]) -> Option<()> {
        for pair in vars.chunks(2) {
            let &[name, value] = pair else { return None };
            match name {
                "currentEpoch" => self.current_epoch = value.parse().ok()?,
                "lastVoteEpoch" => self.last_vote_epoch = value.parse().ok()?,
                _ => {}
            }
        }
        Some(())
    }

    fn read_node(&mut self, words: &[&str], now: i64, has_myself: &mut bool) -> Option<Key> {
        let &[id, address, flags, _, ping, pong, epoch, _, ..] = words else { return None };
        let (id, flags) = (NodeId::parse(id.as_bytes())?, Flags::named(flags)?);
        let (address, names) = address.split_once(',').unwrap_or((address, ""));
        let mut names = names.split(',');
        let hostname = names.next().unwrap_or_default();
        let address = parse_address(address)?;
        let (ping, pong): (i64, i64) = (ping.parse().ok()?, pong.parse().ok()?);
        let epoch: u64 = epoch.parse().ok()?;
        let key = if flags.contains(Flags::MYSELF) {
            if std::mem::replace(has_myself, true) {
                return None;
            }
            self.rename(self.me, id);
            self.me
        } else if self.find(id).is_some() {
            return None;
        } else {
            self.add(id, Flags::empty(), Address::default(), now)
        };
        let node = self.known_mut(key);
        node.flags = flags;
        (node.address, node.hostname) = (address, hostname.to_owned());
        for name in names {
            match name.split_once('=') {
                Some(("shard-id", id)) => node.shard = Some(NodeId::parse(id.as_bytes())?),
                Some(("nodename", name)) => node.human_name = name.to_owned(),
                Some(("client-ipv4", ip)) => node.client_ip = ip.to_owned(),
                _ => {}
            }
        }
        // The time that has passed since is unknown, so it counts from now.
        node.ping_sent = if ping == 0 { 0 } else { now };
        node.pong_received = if pong == 0 { 0 } else { now };
        node.failed_at = if node.has_failed() { now } else { 0 };
        node.config_epoch = if node.is_replica() { 0 } else { epoch };
        Some(key)
    }

    fn read_relations(&mut self, words: &[&str], key: Key, now: i64) -> Option<()> {
        if words[3] != "-" {
            let id = NodeId::parse(words[3].as_bytes())?;
            let master =
                self.find(id).unwrap_or_else(|| self.add(id, Flags::NO_ADDRESS, Address::default(), now));
            self.set_master(key, Some(master));
        }
        for slots in &words[8..] {
            if let Some(open) = slots.strip_prefix('[') {
                let (slot, direction, other) = parse_open(open.strip_suffix(']')?)?;
                let other = self
                    .find(other)
                    .unwrap_or_else(|| self.add(other, Flags::NO_ADDRESS, Address::default(), now));
                let marks = if direction == '>' { &mut self.migrating } else { &mut self.importing };
                marks.insert(slot, other);
                continue;
            }
            let (first, last) = slots.split_once('-').unwrap_or((slots, slots));
            let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
            if first > last || last >= SLOTS {
                return None;
            }
            (first..=last).for_each(|slot| self.bind(slot, key));
        }
        Some(())
    }

    /// Compares the loaded keys with the owners of their slots. Takes a slot that no node owns;
    /// marks a slot of another node as imported from there. Changes nothing on a replica, whose
    /// slots are its master's.
    pub fn verify(&mut self, around: &mut Around<'_>) {
        if self.myself().is_replica() {
            return;
        }
        // The append-only file may end in the middle of an import.
        self.end_inherited(around);
        for slot in around.db.by_slot(key_slot).used().collect::<Vec<_>>() {
            if self.out.wants.contains(&Want::DropKeys(slot)) {
                continue;
            }
            match self.owner(slot) {
                Some(owner) if owner == self.me || self.importing.contains_key(&slot) => {}
                Some(owner) => {
                    self.log(format!(
                        "I have keys for slot {slot}, but the slot is assigned to another node."
                    ));
                    self.importing.insert(slot, owner);
                    self.out.unsaved = true;
                }
                None => {
                    self.log(format!(
                        "I have keys for unassigned slot {slot}. Taking responsibility for it."
                    ));
                    self.bind(slot, self.me);
                    self.changed();
                }
            }
        }
    }
}

/// Parses `10.0.0.1:7000@17000`. Without `@`, the bus port is 10,000 above the port.
fn parse_address(text: &str) -> Option<Address> {
    let (ip, ports) = text.rsplit_once(':')?;
    let (port, bus) = ports.split_once('@').map_or((ports, None), |(port, bus)| (port, Some(bus)));
    let port: u16 = port.parse().ok()?;
    let bus_port = match bus {
        Some(bus) => bus.parse().ok()?,
        None => port.checked_add(10_000).filter(|_| port != 0).unwrap_or(0),
    };
    Some(Address { ip: ip.to_owned(), port, bus_port })
}

/// Parses `93->-<id>` or `93-<-<id>`.
fn parse_open(text: &str) -> Option<(u16, char, NodeId)> {
    let (slot, rest) = text.split_once('-')?;
    let direction = rest.chars().next().filter(|direction| matches!(direction, '>' | '<'))?;
    let id = NodeId::parse(rest[1..].strip_prefix('-')?.as_bytes())?;
    Some((slot.parse().ok().filter(|slot| *slot < SLOTS)?, direction, id))
}
