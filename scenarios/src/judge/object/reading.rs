//! The contents of a lock's keys, on a simulated node and on a real one.

use std::collections::BTreeMap;

use bytes::Bytes;
use lockstorm_sim::{
    keyspace::{self, Db},
    node::{Node, Purpose},
};

/// The contents of a key, and its expiry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) content: Content,
    /// The expiry of the key by the node's wall clock, or of the only field of a hash.
    pub(crate) expires_ms: Option<i64>,
    /// True if the field expires, and not the key.
    pub(crate) is_of_field: bool,
    /// For a hash with lease keys: the expiry of each lease key that exists.
    pub(crate) leases: Leases,
    /// For a sorted set with clients' own sets beside it: the members of these, by client id.
    pub(crate) of_clients: BTreeMap<String, Members>,
}

/// The members of a sorted set, with their scores.
pub(crate) type Members = BTreeMap<Vec<u8>, i64>;

/// The end of the lease of each field and level, by the node's wall clock.
pub(crate) type Leases = BTreeMap<(String, u32), Option<i64>>;

/// The most levels for which the recorder looks for leases. No lock is nested this deep, and any
/// client may have written a huge count, which must not keep the recorder busy.
pub(super) const LEVELS_MAX: u32 = 1_000;

/// The contents of a key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Content {
    /// The key does not exist, or has a type that no lock uses.
    #[default]
    Nothing,
    /// A string.
    Text(String),
    /// A hash.
    Fields(BTreeMap<String, String>),
    /// A list.
    List(Vec<String>),
    /// A sorted set.
    Ranked(Members),
}

/// Returns the keyspace of a node. A node that starts and is still loading returns the data being
/// loaded: no command can change it before loading ends, and none of it is lost.
pub(crate) fn keyspace_of(node: &Node) -> Option<&Db> {
    let loading = node.loading.as_ref().filter(|loading| loading.purpose == Purpose::Start);
    loading.map_or(&node.dbs, |loading| &loading.dbs).first()
}

impl Value {
    /// Reads a key of a simulated node, including a value that has expired but still exists.
    pub(crate) fn of(node: &Node, key: &[u8]) -> Value {
        let Some(entry) = keyspace_of(node).and_then(|db| db.get(key)) else { return Value::default() };
        let content = match &entry.value {
            keyspace::Value::String(string) => Content::Text(text(string.bytes())),
            keyspace::Value::Hash(hash) => {
                Content::Fields(hash.iter().map(|(name, value)| (text(name), text(value))).collect())
            }
            keyspace::Value::List(list) => Content::List(list.iter().map(|item| text(item)).collect()),
            keyspace::Value::SortedSet(set) => {
                Content::Ranked(set.iter().map(|(score, member)| (member.to_vec(), score as i64)).collect())
            }
            _ => Content::Nothing,
        };
        let of_field = match &entry.value {
            keyspace::Value::Hash(hash) if entry.expires_ms().is_none() && hash.len() == 1 => {
                hash.first_time_ms()
            }
            _ => None,
        };
        let expires_ms = entry.expires_ms().or(of_field);
        Value { content, expires_ms, is_of_field: of_field.is_some(), ..Value::default() }
    }

    /// Adds the members of the clients' own sorted sets. `client_of` returns the id of the client
    /// from the name of such a set.
    pub(super) fn with_those_of_clients(
        mut self,
        node: &Node,
        client_of: impl Fn(&[u8]) -> Option<&[u8]>,
    ) -> Value {
        let names = keyspace_of(node).into_iter().flat_map(|db| db.entries().iter()).map(|(name, _)| name);
        for name in names {
            if let Some(client) = client_of(name)
                && let Content::Ranked(members) = Value::of(node, name).content
            {
                self.of_clients.insert(text(client), members);
            }
        }
        self
    }

    /// Adds the leases of the levels, whose keys begin with this tag.
    pub(super) fn with_leases(mut self, node: &Node, tag: &str) -> Value {
        let (Content::Fields(fields), Some(db)) = (&self.content, keyspace_of(node)) else { return self };
        for (field, count) in fields {
            for level in 1..=count.parse().unwrap_or(0).min(LEVELS_MAX) {
                if let Some(entry) = db.get(lease_key(tag, field, level).as_bytes()) {
                    self.leases.insert((field.clone(), level), entry.expires_ms());
                }
            }
        }
        self
    }

    /// Removes the leases that have ended at `now_ms`, even if the node has not deleted their keys
    /// yet. Of a field whose leases are all over, those that ended last remain: the owner's hold
    /// ends as a whole, when its last key goes.
    pub(crate) fn lapse(&mut self, now_ms: i64) {
        let mut longest: BTreeMap<String, Option<i64>> = BTreeMap::new();
        for ((field, _), ends) in &self.leases {
            let last = longest.entry(field.clone()).or_insert(*ends);
            *last = (*last).zip(*ends).map(|(one, other)| one.max(other));
        }
        self.leases.retain(|(field, _), ends| {
            let is_over = ends.is_some_and(|at| at < now_ms);
            !is_over || longest.get(field) == Some(&*ends)
        });
    }

    /// Returns the number of levels in a field of a hash; 0 for other contents.
    pub(crate) fn levels_of(&self, field: &str) -> u32 {
        match &self.content {
            Content::Fields(fields) => fields.get(field).and_then(|levels| levels.parse().ok()).unwrap_or(0),
            _ => 0,
        }
    }

    /// Builds a value from a server's replies: the key's type as TYPE returns it, its elements,
    /// PEXPIRETIME, and field, level and PEXPIRETIME of each lease. `field_expires_ms` is the
    /// HPEXPIRETIME of the only field of a hash that does not expire itself, otherwise negative.
    pub(crate) fn answered(
        kind: &str,
        words: Vec<Vec<u8>>,
        expires_ms: i64,
        leases: Vec<(String, u32, i64)>,
        field_expires_ms: i64,
    ) -> Value {
        let time = |expires_ms: i64| (expires_ms >= 0).then_some(expires_ms);
        let content = match kind {
            "string" => words.first().map_or(Content::Nothing, |word| Content::Text(text(word))),
            // All its fields have expired, and the server has not removed them yet.
            "hash" if words.is_empty() => Content::Nothing,
            "hash" => {
                let pairs = words.chunks_exact(2).map(|pair| (text(&pair[0]), text(&pair[1])));
                Content::Fields(pairs.collect())
            }
            "list" => Content::List(words.iter().map(|word| text(word)).collect()),
            // Each member is followed by its score, an integer.
            "zset" => {
                let pairs = words
                    .chunks_exact(2)
                    .map(|pair| (pair[0].clone(), text(&pair[1]).parse::<f64>().unwrap_or(0.0) as i64));
                Content::Ranked(pairs.collect())
            }
            _ => return Value::default(),
        };
        let leases = leases.into_iter().map(|(field, level, ends)| ((field, level), time(ends)));
        let of_field = time(field_expires_ms);
        let expires_ms = time(expires_ms).or(of_field);
        let (leases, is_of_field) = (leases.collect(), of_field.is_some());
        Value { content, expires_ms, is_of_field, leases, ..Value::default() }
    }

    /// Returns true if another reading of the key differs at most in expiries.
    pub(crate) fn is_like(&self, other: &Value) -> bool {
        self.content == other.content && self.leases.keys().eq(other.leases.keys())
    }

    /// Replaces each expiry that equals the one in `kept` by the one in `read`, a reading that is
    /// like `kept`. Returns true if any expiry was equal.
    pub(crate) fn correct(&mut self, kept: &Value, read: &Value) -> bool {
        let mut any = self.expires_ms == kept.expires_ms;
        if any {
            self.expires_ms = read.expires_ms;
        }
        for (level, ends) in &mut self.leases {
            if let (Some(kept), Some(read)) = (kept.leases.get(level), read.leases.get(level))
                && ends == kept
            {
                any = true;
                *ends = *read;
            }
        }
        any
    }

    /// Returns the commands that give an absent key this value, and create its lease keys.
    pub(crate) fn commands(&self, key: &Bytes, tag: &str) -> Vec<Vec<Bytes>> {
        let command = |name: &'static str, words: Vec<String>| {
            [Bytes::from(name), key.clone()].into_iter().chain(words.into_iter().map(Bytes::from)).collect()
        };
        let mut commands: Vec<Vec<Bytes>> = Vec::new();
        match &self.content {
            Content::Nothing => {}
            Content::Text(text) => commands.push(command("SET", vec![text.clone()])),
            Content::Fields(fields) => {
                let words = fields.iter().flat_map(|(name, value)| [name.clone(), value.clone()]);
                commands.push(command("HSET", words.collect()));
            }
            Content::List(items) => commands.push(command("RPUSH", items.clone())),
            Content::Ranked(members) => {
                let words = members
                    .iter()
                    .flat_map(|(member, score)| [score.to_string().into(), member.clone().into()]);
                commands.push([Bytes::from("ZADD"), key.clone()].into_iter().chain(words).collect());
            }
        }
        match (self.expires_ms, &self.content) {
            (Some(at), Content::Fields(fields)) if self.is_of_field => {
                let field = fields.keys().next().cloned().unwrap_or_default();
                let words = vec![at.to_string(), "FIELDS".to_owned(), "1".to_owned(), field];
                commands.push(command("HPEXPIREAT", words));
            }
            (Some(at), _) => commands.push(command("PEXPIREAT", vec![at.to_string()])),
            (None, _) => {}
        }
        for ((field, level), ends) in &self.leases {
            let key = lease_key(tag, field, *level);
            let mut words = vec!["SET".to_owned(), key, "1".to_owned()];
            words.extend(ends.iter().flat_map(|at| ["PXAT".to_owned(), at.to_string()]));
            commands.push(words.into_iter().map(Bytes::from).collect());
        }
        commands
    }

    /// Returns the names of the lease keys.
    pub(crate) fn lease_keys(&self, tag: &str) -> impl Iterator<Item = Bytes> {
        self.leases.keys().map(move |(field, level)| lease_key(tag, field, *level).into())
    }

    /// Parses the number in a string; `None` for other contents.
    pub(super) fn number<T: std::str::FromStr>(&self) -> Option<T> {
        match &self.content {
            Content::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// Returns the items of a list; `None` for other contents.
    pub(super) fn list(&self) -> Option<&[String]> {
        match &self.content {
            Content::List(items) => Some(items),
            _ => None,
        }
    }
}

/// Returns the name of the key for the lease of a level, as Redisson forms it.
fn lease_key(tag: &str, field: &str, level: u32) -> String {
    format!("{tag}:{field}{LEASE}{level}")
}

/// The part of such a name between the owner and the level.
pub(super) const LEASE: &str = ":rwlock_timeout:";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
