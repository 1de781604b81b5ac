//! A shadow copy of a node's locks: simulated servers, one for each database, that replay the
//! commands on the locks' keys. MONITOR shows no replies, so the copy has the effects.

use std::collections::BTreeMap;

use bytes::Bytes;
use lockstorm_sim::{
    config::Config,
    env::Env,
    event::{ConnId, Event},
    generation::Generation,
    server::Server,
};
use lockstorm_world::time::Wall;

use super::command::Command;
use crate::judge::object::{Content, Value};

/// The most databases that are copied, which a server has by default 16 times over.
const DATABASES_MAX: usize = 256;

/// The number of the copy's only connection.
const CONN: ConnId = ConnId(ConnId::FIRST);

/// The holder of a lock's key and its expiry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) owner: String,
    /// The levels of the owner's hold; 1 for a token.
    pub(super) levels: u32,
    pub(super) expires_ms: Option<i64>,
}

/// The copies of a node's databases.
pub(super) struct Shadow {
    databases: BTreeMap<u32, Server>,
    env: Env,
    bytes: Vec<u8>,
}

impl std::fmt::Debug for Shadow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Shadow({} databases)", self.databases.len())
    }
}

impl Shadow {
    /// Creates copies without keys.
    pub(super) fn new() -> Shadow {
        Shadow { databases: BTreeMap::new(), env: Env::new(0), bytes: Vec::new() }
    }

    /// Executes a command at a time.
    pub(super) fn give(&mut self, at_us: i64, command: &Command) {
        self.send(at_us, command.db, &command.words);
    }

    /// Makes the copy's key free.
    pub(super) fn free(&mut self, at_us: i64, db: u32, key: &[u8]) {
        self.send(at_us, db, &[Box::from(&b"DEL"[..]), key.into()]);
    }

    /// Gives a free key of the copy to an owner: a field of a hash, or a token.
    pub(super) fn put(&mut self, at_us: i64, db: u32, key: &[u8], owner: &str, is_hash: bool) {
        let text = |word: &[u8]| Box::<[u8]>::from(word);
        let words = match is_hash {
            true => vec![text(b"HSET"), text(key), text(owner.as_bytes()), text(b"1")],
            false => vec![text(b"SET"), text(key), text(owner.as_bytes())],
        };
        self.send(at_us, db, &words);
    }

    /// Gives a free key of the copy the hold of another node's copy.
    pub(super) fn take(&mut self, at_us: i64, db: u32, key: &[u8], held: &Held, is_hash: bool) {
        let text = |word: &[u8]| Box::<[u8]>::from(word);
        self.put(at_us, db, key, &held.owner, is_hash);
        if is_hash && held.levels > 1 {
            let levels = held.levels.to_string();
            self.send(
                at_us,
                db,
                &[text(b"HSET"), text(key), text(held.owner.as_bytes()), text(levels.as_bytes())],
            );
        }
        if let Some(ends) = held.expires_ms {
            self.send(at_us, db, &[text(b"PEXPIREAT"), text(key), text(ends.to_string().as_bytes())]);
        }
    }

    /// Returns true if the copy's key is a hash.
    pub(super) fn is_hash(&self, db: u32, key: &[u8]) -> bool {
        let value = self.databases.get(&db).map(|server| Value::of(server.node(), key).content);
        matches!(value, Some(Content::Fields(_)))
    }

    /// Deletes all keys of a database, or of all databases.
    pub(super) fn flush(&mut self, at_us: i64, db: Option<u32>) {
        let databases: Vec<u32> =
            self.databases.keys().copied().filter(|one| db.is_none_or(|db| db == *one)).collect();
        for db in databases {
            self.send(at_us, db, &[Box::from(&b"FLUSHALL"[..])]);
        }
    }

    /// Returns the holder that a lock's key has at a time; `None` if the key is free or expired.
    pub(super) fn held(&self, db: u32, key: &[u8], now_ms: i64) -> Option<Held> {
        let value = Value::of(self.databases.get(&db)?.node(), key);
        let expires_ms = value.expires_ms;
        if expires_ms.is_some_and(|at| at < now_ms) {
            return None;
        }
        match value.content {
            Content::Text(owner) => Some(Held { owner, levels: 1, expires_ms }),
            Content::Fields(fields) => {
                // Redisson's read-write locks keep their mode in a field. They have many owners.
                if fields.contains_key("mode") {
                    return None;
                }
                let (owner, levels) = fields.into_iter().next()?;
                Some(Held { owner, levels: levels.parse().unwrap_or(1), expires_ms })
            }
            _ => None,
        }
    }

    fn send(&mut self, at_us: i64, db: u32, words: &[Box<[u8]>]) {
        self.env.wall = Wall::from_micros(at_us);
        if !self.databases.contains_key(&db) {
            if self.databases.len() >= DATABASES_MAX {
                return;
            }
            // Valkey has all commands of locks, DELIFEQ included.
            let config = Config::of(Generation::Valkey91).with(|config| config.persistence.save = Vec::new());
            let mut server = Server::new(config, &mut self.env);
            let (peer, local) = ("c1:1".to_owned(), "n1:6379".to_owned());
            server.step(&mut self.env, Event::Connected { conn: CONN, peer, local });
            self.databases.insert(db, server);
        }
        let Some(server) = self.databases.get_mut(&db) else { return };
        self.bytes.clear();
        self.bytes.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
        for word in words {
            self.bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            self.bytes.extend_from_slice(word);
            self.bytes.extend_from_slice(b"\r\n");
        }
        let bytes = Bytes::copy_from_slice(&self.bytes);
        server.step(&mut self.env, Event::Bytes { conn: CONN, bytes });
        self.env.outbox.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{
        capture::{From, Line},
        command::Verb,
    };

    /// Microseconds of the first command.
    const BEGIN_US: i64 = 1_700_000_000_000_000;

    fn give(shadow: &mut Shadow, after_ms: i64, text: &str) {
        let quoted: Vec<String> = text.split(' ').map(|word| format!("\"{word}\"")).collect();
        let quoted = quoted.join(" ");
        let line = Line { at_us: 0, db: 3, from: From::Script, command: quoted.as_bytes() };
        let verb = Verb::of(line.name()).expect("a verb");
        shadow.give(BEGIN_US + after_ms * 1_000, &Command::of(verb, &line));
    }

    fn owner(shadow: &Shadow, key: &str, after_ms: i64) -> Option<String> {
        shadow.held(3, key.as_bytes(), BEGIN_US / 1_000 + after_ms).map(|held| held.owner)
    }

    #[test]
    fn the_copy_has_the_effects_that_monitor_does_not_show() {
        let mut shadow = Shadow::new();
        give(&mut shadow, 0, "SET a one NX PX 1000");
        give(&mut shadow, 500, "SET a two NX PX 1000");
        assert_eq!(owner(&shadow, "a", 500).as_deref(), Some("one"));
        assert_eq!(owner(&shadow, "a", 1_000).as_deref(), Some("one"));
        assert_eq!(owner(&shadow, "a", 1_001), None);
        give(&mut shadow, 1_001, "SET a three NX PX 1000");
        assert_eq!(owner(&shadow, "a", 1_001).as_deref(), Some("three"));
        give(&mut shadow, 1_100, "HINCRBY h id:1 1");
        give(&mut shadow, 1_100, "HINCRBY h id:1 1");
        give(&mut shadow, 1_100, "PEXPIRE h 300");
        let held = shadow.held(3, b"h", BEGIN_US / 1_000 + 1_200).expect("it is held");
        let ends = Some(BEGIN_US / 1_000 + 1_400);
        assert_eq!(held, Held { owner: "id:1".to_owned(), levels: 2, expires_ms: ends });
        shadow.flush(BEGIN_US + 1_300_000, Some(0));
        assert_eq!(owner(&shadow, "h", 1_300).as_deref(), Some("id:1"));
        shadow.flush(BEGIN_US + 1_300_000, None);
        assert_eq!(owner(&shadow, "h", 1_300), None);
    }
}
