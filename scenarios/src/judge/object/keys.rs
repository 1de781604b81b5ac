//! The keys of a lock.

use std::cmp::Reverse;

use bytes::Bytes;
use lockstorm_client::wire;
use lockstorm_sim::node::Node;

use super::reading::{LEASE, Value};

/// The purpose of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Contains the holder of the lock.
    Holders,
    /// Lists the waiting owners, the next one first.
    Queue,
    /// Counts fencing tokens, and remains while no owner holds the lock.
    Token,
}

#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) name: Bytes,
    pub(crate) role: Role,
    /// True if each client may have a key of its own beside this one, whose name appends a colon
    /// and the client's id.
    pub(crate) per_client: bool,
}

impl Key {
    /// Returns the client's id if `name` is the name of a client's own key beside this one.
    fn client_of<'a>(&self, name: &'a [u8]) -> Option<&'a [u8]> {
        name.strip_prefix(&*self.name)?.strip_prefix(b":").filter(|_| self.per_client)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Keys {
    /// The keys, in an order that the kind defines.
    pub(crate) list: Vec<Key>,
    /// The name of the lock, which decides its slot.
    pub(crate) lock: Bytes,
    /// The string that the names of all companion keys and channels contain.
    tag: Bytes,
    /// The prefix of the keys that hold the lease of each level, for locks with such keys;
    /// otherwise empty.
    pub(crate) leases: String,
}

impl Keys {
    /// Returns keys for the lock with this name.
    pub(super) fn new(name: &str, keys: impl IntoIterator<Item = (String, Role)>) -> Keys {
        let list =
            keys.into_iter().map(|(name, role)| Key { name: name.into(), role, per_client: false }).collect();
        let tag = wire::prefixed("", name).trim_start_matches(':').to_owned();
        Keys { list, lock: name.to_owned().into(), tag: tag.into(), leases: String::new() }
    }

    /// Adds the lease keys of the levels.
    pub(super) fn with_leases(self, name: &str) -> Keys {
        Keys { leases: wire::suffix_tag(name), ..self }
    }

    /// Lets each key have clients' own keys beside it.
    pub(super) fn with_those_of_clients(mut self) -> Keys {
        self.list.iter_mut().for_each(|key| key.per_client = true);
        self
    }

    /// Returns the purpose of a key, or `None` if it is not a key of this lock.
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

    /// Returns the indexes of the keys that contain the holders.
    pub(crate) fn holders(&self) -> impl Iterator<Item = usize> + '_ {
        let list = self.list.iter().enumerate();
        list.filter(|(_, key)| key.role == Role::Holders).map(|(at, _)| at)
    }

    /// Finds the lock that a word of a command, a key or a channel belongs to: the lock with
    /// exactly this name, or else the lock with the longest tag in the word. The length matters:
    /// the tag of `{shop}` is part of every name that belongs to `{shop}:stock`.
    pub(crate) fn of_word<'a>(locks: impl IntoIterator<Item = &'a Keys>, word: &[u8]) -> Option<usize> {
        let locks = locks.into_iter().enumerate();
        let fits = locks.filter_map(|(at, keys)| keys.fit(word).map(|fit| (fit, Reverse(at))));
        fits.max().map(|(_, Reverse(at))| at)
    }

    /// Returns the fit of a word, if it belongs to the lock: true if it is the lock's name, and the
    /// length of the tag.
    fn fit(&self, word: &[u8]) -> Option<(bool, usize)> {
        let is_name = word == self.lock;
        (is_name || self.tags(word)).then_some((is_name, self.tag.len()))
    }

    /// Returns true if the tag is a part of the word. Every word of every command is asked, so only
    /// the places of the tag's first byte are compared.
    fn tags(&self, word: &[u8]) -> bool {
        let Some((first, _)) = self.tag.split_first() else { return true };
        let Some(last) = word.len().checked_sub(self.tag.len()) else { return false };
        (0..=last).any(|at| word[at] == *first && word[at..].starts_with(&self.tag))
    }

    /// Reads the keys with a `wanted` role on a simulated node, including values that have expired
    /// but still exist. Other keys read as empty.
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

    /// Returns the owners in the queue, the next one first.
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

    /// Regression: a word was assigned to the first lock whose tag it contained, not to the right
    /// one.
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
