//! The keys that a lock lives in.

use std::cmp::Reverse;

use bytes::Bytes;
use lockstorm_client::wire;
use lockstorm_sim::node::Node;

use super::reading::{LEASE, Value};

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
    /// Whether each client may have a key of its own beside it, whose name goes on with a colon and
    /// the client's id.
    pub(crate) per_client: bool,
}

impl Key {
    /// The id of the client whose key beside this one has such a name.
    fn client_of<'a>(&self, name: &'a [u8]) -> Option<&'a [u8]> {
        name.strip_prefix(&*self.name)?.strip_prefix(b":").filter(|_| self.per_client)
    }
}

/// The keys of one lock.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    /// In an order that is the kind's own.
    pub(crate) list: Vec<Key>,
    /// The name of the lock, which decides its slot.
    pub(crate) lock: Bytes,
    /// What the names of all companions, keys and channels alike, contain.
    tag: Bytes,
    /// Of a lock with a key for the lease of each level of a hold: what the names of these begin
    /// with, and empty of others.
    pub(crate) leases: String,
}

impl Keys {
    /// Those of the lock with this name.
    pub(super) fn new(name: &str, keys: impl IntoIterator<Item = (String, Role)>) -> Keys {
        let list =
            keys.into_iter().map(|(name, role)| Key { name: name.into(), role, per_client: false }).collect();
        let tag = wire::prefixed("", name).trim_start_matches(':').to_owned();
        Keys { list, lock: name.to_owned().into(), tag: tag.into(), leases: String::new() }
    }

    /// The same, of a lock each level of which has a key for its lease.
    pub(super) fn with_leases(self, name: &str) -> Keys {
        Keys { leases: wire::suffix_tag(name), ..self }
    }

    /// The same, each of which may have a key of a client beside it.
    pub(super) fn with_those_of_clients(mut self) -> Keys {
        self.list.iter_mut().for_each(|key| key.per_client = true);
        self
    }

    /// What a key is for, if it is one of these.
    pub(crate) fn role_of(&self, key: &[u8]) -> Option<Role> {
        let is_meant = |known: &&Key| known.name == key || known.client_of(key).is_some();
        let listed = self.list.iter().find(is_meant).map(|known| known.role);
        listed.or_else(|| self.is_lease(key).then_some(Role::Holders))
    }

    fn is_lease(&self, key: &[u8]) -> bool {
        let of_lock = key.strip_prefix(self.leases.as_bytes()).filter(|_| !self.leases.is_empty());
        of_lock.is_some_and(|rest| {
            rest.first() == Some(&b':') && rest.windows(LEASE.len()).any(|part| part == LEASE.as_bytes())
        })
    }

    /// The places of the keys that contain the holders.
    pub(crate) fn holders(&self) -> impl Iterator<Item = usize> + '_ {
        let list = self.list.iter().enumerate();
        list.filter(|(_, key)| key.role == Role::Holders).map(|(at, _)| at)
    }

    /// The lock that a word of a command, a key or a channel belongs to: the one with this name, or
    /// else the one whose tag in it is the longest. The tag of `{shop}` is part of everything that
    /// belongs to `{shop}:stock`.
    pub(crate) fn of_word<'a>(locks: impl IntoIterator<Item = &'a Keys>, word: &[u8]) -> Option<usize> {
        let locks = locks.into_iter().enumerate();
        let fits = locks.filter_map(|(at, keys)| keys.fit(word).map(|fit| (fit, Reverse(at))));
        fits.max().map(|(_, Reverse(at))| at)
    }

    /// How well a word fits the lock, if at all: whether it is the name, and how long the tag is.
    fn fit(&self, word: &[u8]) -> Option<(bool, usize)> {
        let is_name = word == self.lock;
        let has_tag = word.windows(self.tag.len()).any(|part| part == self.tag);
        (is_name || has_tag).then_some((is_name, self.tag.len()))
    }

    /// What a simulated node has in each of those keys that are for something `wanted`, whether or
    /// not its time has come.
    pub(crate) fn read(&self, node: &Node, wanted: impl Fn(Role) -> bool) -> Vec<Value> {
        let read = |key: &Key| match key.role {
            role if !wanted(role) => Value::default(),
            Role::Holders if !self.leases.is_empty() => {
                Value::of(node, &key.name).with_leases(node, &self.leases)
            }
            _ if key.per_client => {
                Value::of(node, &key.name).with_those_of_clients(node, |name| key.client_of(name))
            }
            _ => Value::of(node, &key.name),
        };
        self.list.iter().map(read).collect()
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
            assert_eq!(Keys::of_word([&keys], word.as_bytes()).is_some(), belongs, "{word} of {name}");
        }
    }

    /// Regression: the first lock whose tag was part of a word was taken for the lock that is
    /// meant.
    #[test]
    fn a_word_belongs_to_the_lock_with_the_longest_tag() {
        let rows = [
            (["{shop}", "{shop}:stock"], "redisson_lock_queue:{shop}:stock", Some(1)),
            (["{shop}", "{shop}:stock"], "{shop}:stock", Some(1)),
            (["{shop}:stock", "{shop}"], "redisson_lock__channel:{shop}", Some(1)),
            (["stock", "{stock}"], "{stock}", Some(1)),
            (["stock", "{stock}"], "stock", Some(0)),
            (["a", "latch"], "redisson_unlock_latch:{latch}:7", Some(1)),
            (["a", "latch"], "redisson_unlock_latch:{b}:7", None),
        ];
        for (names, word, meant) in rows {
            let keys = names.map(|name| Keys::new(name, []));
            assert_eq!(Keys::of_word(&keys, word.as_bytes()), meant, "{word} of {names:?}");
        }
    }
}
