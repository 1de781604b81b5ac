//! What is in a key of a lock, on a simulated node and on a real one.

use std::collections::BTreeMap;

use bytes::Bytes;
use lockstorm_sim::{keyspace, node::Node};

/// What a key holds, and until when.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) content: Content,
    /// When the key expires, by the node's wall clock.
    pub(crate) expires_ms: Option<i64>,
}

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
    /// A sorted set: the score of each member.
    Ranked(BTreeMap<Vec<u8>, i64>),
}

impl Value {
    /// What a simulated node has in this key, whether or not its time has come.
    pub(crate) fn of(node: &Node, key: &[u8]) -> Value {
        let Some(entry) = node.dbs.first().and_then(|db| db.get(key)) else { return Value::default() };
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
        Value { content, expires_ms: entry.expires_ms() }
    }

    /// What a server said that it has: the key's type as TYPE has it, the words in it, and PEXPIRETIME.
    pub(crate) fn answered(kind: &str, words: Vec<String>, expires_ms: i64) -> Value {
        let content = match kind {
            "string" => words.into_iter().next().map_or(Content::Nothing, Content::Text),
            "hash" => {
                let pairs = words.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone()));
                Content::Fields(pairs.collect())
            }
            "list" => Content::List(words),
            _ => return Value::default(),
        };
        Value { content, expires_ms: (expires_ms >= 0).then_some(expires_ms) }
    }

    /// The commands that give a key this value, which has none.
    pub(crate) fn commands(&self, key: &Bytes) -> Vec<Vec<Bytes>> {
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
        commands
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

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
