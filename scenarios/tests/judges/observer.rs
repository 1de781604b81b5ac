//! An observer of the wire. It sees the commands that a node read and the node's clock, but nothing
//! of the node's state.
//!
//! It runs every command on a server of its own and then determines the owner of the lock. A change
//! without a command (an expired key) it detects at the next command, or when it reads the node's
//! clock.

use std::collections::BTreeMap;

use bytes::Bytes;
use lockstorm::judge::history::{Header, Host, LockInfo, LockKind};
use lockstorm_client::wire;
use lockstorm_sim::{
    config::{Config, Fsync},
    env::Env,
    event::{ConnId, Event},
    generation::Generation,
    keyspace::{ExpiryRule, Value},
    server::Server,
};
use lockstorm_world::time::{True, Wall};

/// A change of one owner's hold, its time, and the client that sent the command.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Change {
    pub(crate) at: True,
    pub(crate) lock: usize,
    pub(crate) client: Host,
    /// The owner's present number of holds, and true if it has grown.
    pub(crate) count: u32,
    pub(crate) granted: bool,
}

/// A command on its way to a node.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    pub(crate) at: True,
    pub(crate) wall: Wall,
    pub(crate) client: Host,
    pub(crate) connection: u64,
    pub(crate) command: Bytes,
}

impl Heard {
    /// The words of the command, the first in capitals.
    pub(crate) fn words(&self) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.command);
        let mut words: Vec<String> = text.split("\r\n").skip(2).step_by(2).map(str::to_owned).collect();
        if let Some(verb) = words.first_mut() {
            verb.make_ascii_uppercase();
        }
        words
    }
}

/// Commands that only change their own connection, or that block.
const OF_CONNECTIONS: &[&str] = &[
    "AUTH",
    "CLIENT",
    "HELLO",
    "MONITOR",
    "PING",
    "PSUBSCRIBE",
    "PSYNC",
    "QUIT",
    "REPLCONF",
    "REPLICAOF",
    "RESET",
    "SELECT",
    "SSUBSCRIBE",
    "SUBSCRIBE",
    "UNSUBSCRIBE",
    "WAIT",
];

/// A server that executes the commands of a node.
pub(crate) struct Observer {
    generation: Generation,
    server: Server,
    env: Env,
    connections: u64,
    /// The client that was granted each hold, under any name, and its connection.
    whose: BTreeMap<String, (Host, u64)>,
}

impl Observer {
    /// Creates the observer of a node that keeps acknowledged writes over a restart (`keeps`), or
    /// forgets everything.
    pub(crate) fn new(generation: Generation, keeps: bool) -> Observer {
        let mut env = Env::new(0);
        let server = Server::new(config(generation, keeps), &mut env);
        Observer { generation, server, env, connections: 0, whose: BTreeMap::new() }
    }

    /// Follows a restart of the node: it loses scripts, and keys unless its disk keeps them.
    pub(crate) fn restarts(&mut self, keeps: bool) {
        let fresh = Server::new(config(self.generation, keeps), &mut self.env);
        let before = std::mem::replace(&mut self.server, fresh);
        if keeps {
            self.server = Server::restart(config(self.generation, keeps), before.crash(), &mut self.env);
        }
    }

    /// Executes a command and returns the changes of locks; with `several` owners of a client, a
    /// hold may belong to another of them.
    pub(crate) fn hears(&mut self, heard: &Heard, header: &Header, several: bool) -> Vec<Change> {
        let Heard { at, wall, client, connection, .. } = *heard;
        let words = heard.words();
        if words.first().is_none_or(|verb| OF_CONNECTIONS.contains(&&**verb)) {
            return Vec::new();
        }
        self.env.wall = wall;
        let before = self.holders(header);
        self.executes(heard.command.clone());
        let mut changes = Vec::new();
        for (lock, (before, now)) in before.iter().zip(self.holders(header)).enumerate() {
            for (owner, count) in before {
                let left = now.get(owner).copied().unwrap_or(0);
                let own = self.whose.get(owner).is_some_and(|(of, by)| {
                    *of == client && (!several || *by == connection || words.contains(owner))
                });
                if left < *count && own {
                    changes.push(Change { at, lock, client, count: left, granted: false });
                }
            }
            for (owner, count) in now {
                let had = before.get(&owner).copied().unwrap_or(0);
                if had < count {
                    if had == 0 {
                        self.whose.insert(owner.clone(), (client, connection));
                    }
                    let (client, _) = self.whose[&owner];
                    changes.push(Change { at, lock, client, count, granted: true });
                }
            }
        }
        changes
    }

    /// Deletes the keys that have expired by the node's clock, which may step back afterwards: SCAN
    /// deletes every expired key that it finds.
    pub(crate) fn looks(&mut self, wall: Wall) {
        self.env.wall = wall;
        self.executes(Bytes::from_static(b"SCAN 0 COUNT 1000\r\n"));
    }

    /// Executes a command on a connection of its own, so that only its effect on keys remains for
    /// the next.
    fn executes(&mut self, command: Bytes) {
        self.connections += 1;
        let conn = ConnId(self.connections);
        let (peer, local) = ("c1:1".to_owned(), "n1:6379".to_owned());
        for event in [
            Event::Connected { conn, peer, local },
            Event::Bytes { conn, bytes: command },
            Event::Closed { conn },
        ] {
            self.server.step(&mut self.env, event);
        }
        self.env.outbox.clear();
    }

    fn holders(&self, header: &Header) -> Vec<BTreeMap<String, u32>> {
        header.locks.iter().map(|lock| self.holders_of(lock)).collect()
    }

    fn holders_of(&self, lock: &LockInfo) -> BTreeMap<String, u32> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match self.value(&lock.name) {
            Some(Value::String(token)) => BTreeMap::from([(text(token.bytes()), 1)]),
            Some(Value::Hash(hash)) => {
                let fields: BTreeMap<String, String> =
                    hash.iter().map(|(name, count)| (text(name), text(count))).collect();
                if fields.keys().any(|name| name.ends_with(":expire_time")) {
                    return self.holders_of_values(&fields);
                }
                let fields = fields.into_iter();
                let levels = fields.filter(|(name, _)| name != "mode").map(|(name, count)| {
                    let count = count.parse().unwrap_or(1);
                    let over = match lock.kind {
                        LockKind::ReadWrite if !name.ends_with(":write") => self.over(lock, &name, count),
                        _ => 0,
                    };
                    (name, count - over)
                });
                levels.filter(|(_, levels)| *levels > 0).collect()
            }
            _ => BTreeMap::new(),
        }
    }

    /// The holders of any value of a group: each value has an owner, and the owner a deadline in
    /// its field.
    fn holders_of_values(&self, fields: &BTreeMap<String, String>) -> BTreeMap<String, u32> {
        let mut holders = BTreeMap::new();
        for (value, owner) in fields.iter().filter(|(name, _)| !name.contains(':')) {
            let number = |what: &str| fields.get(&format!("{value}:{owner}:{what}"))?.parse::<i64>().ok();
            if number("expire_time").is_some_and(|deadline| deadline > self.env.wall.as_millis()) {
                let levels = number("lock_count").and_then(|levels| u32::try_from(levels).ok()).unwrap_or(1);
                let count: &mut u32 = holders.entry(owner.clone()).or_default();
                *count = levels.max(*count);
            }
        }
        holders
    }

    /// The number of a reader's levels that have ended, from the lowest: each level has its own
    /// lease, and its field stays in the hash.
    fn over(&self, lock: &LockInfo, reader: &str, levels: u32) -> u32 {
        let leases = wire::read_holds(&lock.name, reader);
        let lease = |level| format!("{leases}:{level}");
        (1..=levels).find(|level| self.value(&lease(*level)).is_some()).map_or(levels, |lowest| lowest - 1)
    }

    /// The value of a key that has not expired.
    fn value(&self, key: &str) -> Option<&Value> {
        let entry = self.server.node().dbs.first()?.get(key.as_bytes())?;
        (!entry.is_expired(ExpiryRule::at(self.env.wall.as_millis()))).then_some(&entry.value)
    }
}

fn config(generation: Generation, keeps: bool) -> Config {
    Config::of(generation).with(|config| {
        config.persistence.save = Vec::new();
        config.aof.appendonly = keeps;
        config.aof.appendfsync = Fsync::Always;
    })
}
