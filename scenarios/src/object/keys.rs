//! The keys that a lock lives in.

use bytes::Bytes;
use lockstorm_client::wire;
use lockstorm_sim::node::Node;

use super::reading::Value;

/// What a key of a lock is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Contains the holder of the lock.
    Holders,
    /// The owners that wait in a queue, the next one first.
    Queue,
    /// Counts fencing tokens, and stays when nothing holds the lock.
    Token,
}

/// A key of a lock.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) name: Bytes,
    pub(crate) role: Role,
}

/// The keys of one lock.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    /// In an order that is the kind's own.
    pub(crate) list: Vec<Key>,
    lock: Bytes,
    /// What the names of all companions, keys and channels alike, contain.
    tag: Bytes,
}

impl Keys {
    /// Those of the lock with this name.
    pub(super) fn new(name: &str, keys: impl IntoIterator<Item = (String, Role)>) -> Keys {
        let list = keys.into_iter().map(|(name, role)| Key { name: name.into(), role }).collect();
        let tag = wire::prefixed("", name).trim_start_matches(':').to_owned();
        Keys { list, lock: name.to_owned().into(), tag: tag.into() }
    }

    /// What a key is for, if it is one of these.
    pub(crate) fn role_of(&self, key: &[u8]) -> Option<Role> {
        self.list.iter().find(|known| known.name == key).map(|known| known.role)
    }

    /// Whether a word of a command, a key or a channel belongs to the lock.
    pub(crate) fn belongs(&self, word: &[u8]) -> bool {
        word == self.lock || word.windows(self.tag.len()).any(|part| part == self.tag)
    }

    /// What a simulated node has in each of those keys that are for something `wanted`, whether or not its time has come.
    pub(crate) fn read(&self, node: &Node, wanted: impl Fn(Role) -> bool) -> Vec<Value> {
        let keys = self.list.iter();
        keys.map(|key| if wanted(key.role) { Value::of(node, &key.name) } else { Value::default() }).collect()
    }

    /// The owners in the queue, the next one first, when the keys read so.
    pub(crate) fn queue<'a>(&self, values: &'a [Value]) -> &'a [String] {
        let at = self.list.iter().position(|key| key.role == Role::Queue);
        at.and_then(|at| values.get(at)).and_then(Value::list).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_a_lock_contains_its_name_as_a_tag() {
        let rows = [
            ("stock", "stock", true),
            ("stock", "redisson_lock__channel:{stock}", true),
            ("stock", "redisson_lock__channel:{stocks}", false),
            ("stock", "stocks", false),
            ("{shop}:stock", "redisson_lock_queue:{shop}:stock", true),
            ("{shop}:stock", "redisson_lock_queue:{shop}:other", false),
        ];
        for (name, word, belongs) in rows {
            let keys = Keys::new(name, []);
            assert_eq!(keys.belongs(word.as_bytes()), belongs, "{word} of {name}");
        }
    }
}
