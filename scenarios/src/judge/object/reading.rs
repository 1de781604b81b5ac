//! What is in a key of a lock, on a simulated node and on a real one.

use std::collections::BTreeMap;

use bytes::Bytes;
use lockstorm_sim::{
    keyspace::{self, Db},
    node::{Node, Purpose},
};

/// What a key holds, and until when.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) content: Content,
    /// When the key expires, by the node's wall clock.
    pub(crate) expires_ms: Option<i64>,
    /// Of a hash whose fields have a key for the lease of each of their levels: when each of those
    /// keys expires that is there.
    pub(crate) leases: Leases,
    /// Of a sorted set beside which each client may have one of its own: what is in those, by the
    /// ids of the clients.
    pub(crate) of_clients: BTreeMap<String, Members>,
}

/// The score of each member of a sorted set.
pub(crate) type Members = BTreeMap<Vec<u8>, i64>;

/// When the lease of a level of a field ends, by the node's wall clock.
pub(crate) type Leases = BTreeMap<(String, u32), Option<i64>>;

/// No lock is nested so deep, and a count that any client may have written must not keep the
/// recorder busy.
pub(super) const LEVELS_MAX: u32 = 1_000;

/// What a key holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Content {
    /// There is no such key, or it is of no type that a lock uses.
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

/// The keyspace of a node. One that starts and still reads its data has it already: no command can
/// change it meanwhile, and nothing of it is lost.
pub(crate) fn keyspace_of(node: &Node) -> Option<&Db> {
    let loading = node.loading.as_ref().filter(|loading| loading.purpose == Purpose::Start);
    loading.map_or(&node.dbs, |loading| &loading.dbs).first()
}

impl Value {
    /// What a simulated node has in this key, whether or not its time has come.
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
        Value { content, expires_ms: entry.expires_ms(), ..Value::default() }
    }

    /// The same with what is in the sorted sets of single clients, of which `client_of` says by
    /// their names whose they are.
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

    /// The same with the leases of the levels, whose keys begin with this tag.
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

    /// What a server said that it has: the key's type as TYPE has it, the words in it, PEXPIRETIME,
    /// and field, level and PEXPIRETIME of each lease.
    pub(crate) fn answered(
        kind: &str,
        words: Vec<Vec<u8>>,
        expires_ms: i64,
        leases: Vec<(String, u32, i64)>,
    ) -> Value {
        let time = |expires_ms: i64| (expires_ms >= 0).then_some(expires_ms);
        let content = match kind {
            "string" => words.first().map_or(Content::Nothing, |word| Content::Text(text(word))),
            "hash" => {
                let pairs = words.chunks_exact(2).map(|pair| (text(&pair[0]), text(&pair[1])));
                Content::Fields(pairs.collect())
            }
            "list" => Content::List(words.iter().map(|word| text(word)).collect()),
            // Each member is followed by its score, which is whole.
            "zset" => {
                let pairs = words
                    .chunks_exact(2)
                    .map(|pair| (pair[0].clone(), text(&pair[1]).parse::<f64>().unwrap_or(0.0) as i64));
                Content::Ranked(pairs.collect())
            }
            _ => return Value::default(),
        };
        let leases = leases.into_iter().map(|(field, level, ends)| ((field, level), time(ends)));
        Value { content, expires_ms: time(expires_ms), leases: leases.collect(), ..Value::default() }
    }

    /// Whether another reading of the key differs in times alone.
    pub(crate) fn is_like(&self, other: &Value) -> bool {
        self.content == other.content && self.leases.keys().eq(other.leases.keys())
    }

    /// Has what was to expire when it does in `kept` expire when it does in `read`, which is like
    /// it; whether there was anything.
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

    /// The commands that give a key this value, which has none, and their keys to its leases.
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
        if let Some(at) = self.expires_ms {
            commands.push(command("PEXPIREAT", vec![at.to_string()]));
        }
        for ((field, level), ends) in &self.leases {
            let key = lease_key(tag, field, *level);
            let mut words = vec!["SET".to_owned(), key, "1".to_owned()];
            words.extend(ends.iter().flat_map(|at| ["PXAT".to_owned(), at.to_string()]));
            commands.push(words.into_iter().map(Bytes::from).collect());
        }
        commands
    }

    /// The keys of its leases.
    pub(crate) fn lease_keys(&self, tag: &str) -> impl Iterator<Item = Bytes> {
        self.leases.keys().map(move |(field, level)| lease_key(tag, field, *level).into())
    }

    /// The number in a string.
    pub(super) fn number<T: std::str::FromStr>(&self) -> Option<T> {
        match &self.content {
            Content::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// The items of a list.
    pub(super) fn list(&self) -> Option<&[String]> {
        match &self.content {
            Content::List(items) => Some(items),
            _ => None,
        }
    }
}

/// The key of the lease of a level, by Redisson's name.
fn lease_key(tag: &str, field: &str, level: u32) -> String {
    format!("{tag}:{field}{LEASE}{level}")
}

/// What stands in such a name between the owner and the level.
pub(super) const LEASE: &str = ":rwlock_timeout:";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
