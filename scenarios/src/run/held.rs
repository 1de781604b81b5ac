//! The lock as its keys have it on one node, and what a change of them means: for simulated nodes and for real ones.

use std::collections::BTreeMap;

use bytes::Bytes;
use lockstorm_sim::{keyspace::Value, node::Node, time::Wall};

use crate::history::{Host, How, Lock, LockKind, Mode, Owner, Party, What};

/// The keys that one lock lives in.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    /// The hash or string that says who holds it.
    pub(super) lock: Bytes,
    /// The queue of a fair lock.
    pub(super) queue: Bytes,
    /// The counter of fencing tokens.
    pub(super) token: Bytes,
    /// What the names of its companions, keys and channels alike, contain.
    tag: Bytes,
}

impl Keys {
    /// The keys of the lock with this name, by Redisson's rules.
    pub(super) fn of(name: &str) -> Keys {
        let prefixed = |prefix: &str| {
            let key =
                if name.contains('{') { format!("{prefix}:{name}") } else { format!("{prefix}:{{{name}}}") };
            Bytes::from(key)
        };
        Keys {
            lock: Bytes::from(name.to_owned()),
            queue: prefixed("redisson_lock_queue"),
            token: prefixed("redisson_lock_token"),
            tag: Bytes::from(if name.contains('{') { name.to_owned() } else { format!("{{{name}}}") }),
        }
    }

    /// Whether a word of a command, a key or a channel belongs to the lock.
    pub(super) fn are_meant_by(&self, word: &[u8]) -> bool {
        word == self.lock || word.windows(self.tag.len()).any(|part| part == self.tag)
    }
}

/// What the keys say of who holds the lock.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) content: Content,
    /// When the lock's key expires, by the node's wall clock.
    pub(super) expires_ms: Option<i64>,
    /// The last fencing token.
    pub(super) token: Option<u64>,
}

impl Reading {
    /// What a simulated node has, whether or not its time has come.
    pub(super) fn of(node: &Node, keys: &Keys) -> Reading {
        let Some(db) = node.dbs.first() else { return Reading::default() };
        let entry = db.get(&keys.lock);
        let content = match entry.map(|entry| &entry.value) {
            Some(Value::String(token)) => Content::Text(text(token.bytes())),
            Some(Value::Hash(hash)) => {
                Content::Fields(hash.iter().map(|(name, value)| (text(name), text(value))).collect())
            }
            _ => Content::Nothing,
        };
        let token = match db.get(&keys.token).map(|entry| &entry.value) {
            Some(Value::String(token)) => text(token.bytes()).parse().ok(),
            _ => None,
        };
        Reading { content, expires_ms: entry.and_then(|entry| entry.expires_ms()), token }
    }
}

/// Who waits for a fair lock on a simulated node, the next one first.
pub(super) fn queue_of(node: &Node, keys: &Keys) -> Vec<String> {
    match node.dbs.first().and_then(|db| db.get(&keys.queue)).map(|entry| &entry.value) {
        Some(Value::List(list)) => list.iter().map(|name| text(name)).collect(),
        _ => Vec::new(),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What is in the lock's key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Content {
    /// There is no such key, or it is none of a lock.
    #[default]
    Nothing,
    /// A token, or how many permits are left.
    Text(String),
    /// Who holds it and how many times; of a read-write lock also in which mode.
    Fields(BTreeMap<String, String>),
}

/// Who holds the lock as one node has it, and until when.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) holders: BTreeMap<String, u32>,
    pub(super) mode: Mode,
    pub(super) expires_ms: Option<i64>,
    /// The last fencing token.
    pub(super) token: Option<u64>,
}

impl State {
    /// What the keys say. Those of a semaphore say how many permits are left and not who has the others: that is known from
    /// what was known `before` and from the name of whoever has changed the key.
    pub(super) fn new(kind: LockKind, reading: &Reading, before: &State, by: Option<&str>) -> State {
        let Reading { expires_ms, token, .. } = *reading;
        let mut state = State { expires_ms, token, ..State::default() };
        match (kind, &reading.content) {
            (_, Content::Nothing) => {}
            (LockKind::Semaphore { permits }, Content::Text(left)) => {
                let left = left.parse().unwrap_or(i64::from(permits));
                state.holders = moved(&before.holders, i64::from(permits) - left, by);
            }
            (_, Content::Text(token)) => {
                state.holders.insert(token.clone(), 1);
            }
            (_, Content::Fields(fields)) => {
                for (name, value) in fields {
                    if kind == LockKind::ReadWrite && name == MODE {
                        state.mode = if value == READ { Mode::Shared } else { Mode::Exclusive };
                    } else {
                        state.holders.insert(name.clone(), value.parse().unwrap_or(1));
                    }
                }
            }
        }
        state
    }
}

/// The field of a read-write lock that says in which mode it is held, and what it says when it is shared.
const MODE: &str = "mode";
const READ: &str = "read";

/// Who has how many permits when `taken` of them are out, and the one who changed that is known.
fn moved(before: &BTreeMap<String, u32>, taken: i64, by: Option<&str>) -> BTreeMap<String, u32> {
    let mut holders = before.clone();
    let out: i64 = before.values().map(|count| i64::from(*count)).sum();
    let Some(name) = by else { return holders };
    let count = i64::from(holders.get(name).copied().unwrap_or(0)) + taken - out;
    holders.remove(name);
    if let Some(count) = u32::try_from(count).ok().filter(|count| *count > 0) {
        holders.insert(name.to_owned(), count);
    }
    holders
}

/// What has changed the keys.
pub(super) struct Cause<'a> {
    /// The lock that the keys are of.
    pub(super) lock: Lock,
    /// The keyspace event, or the command.
    pub(super) event: &'a str,
    /// Whose command it was, if it was a client's.
    pub(super) by: Option<Party>,
    /// The node, and its wall clock in milliseconds.
    pub(super) node: Host,
    pub(super) wall_ms: i64,
}

/// Whom the names in the keys stand for.
pub(super) trait Names {
    /// The owner of this name, which `writer` has just written.
    fn owner(&self, name: &str, writer: Option<Party>) -> Owner;
    /// The client of an owner.
    fn client_of(&self, owner: Owner) -> Host;
}

/// What a change means for the lock.
pub(super) fn changes(before: &State, now: &State, cause: &Cause<'_>, names: &dyn Names) -> Vec<What> {
    let Cause { lock, event, by, node, wall_ms } = *cause;
    let lease_ms = now.expires_ms.map(|at| u64::try_from(at - wall_ms).unwrap_or(0));
    let until = now.expires_ms.map(Wall::from_millis);
    let mut changes = Vec::new();
    for (name, count) in &before.holders {
        let left = now.holders.get(name).copied().unwrap_or(0);
        if left >= *count {
            continue;
        }
        let owner = names.owner(name, None);
        changes.push(match by {
            // A command that finds the key expired has not released it, whoever sent it.
            Some(by) if !by_itself(event) && names.client_of(owner) == by.client => {
                let (lease_ms, until) = if left == 0 { (None, None) } else { (lease_ms, until) };
                What::Released { lock, owner, by, left, lease_ms, until }
            }
            _ if left > 0 => continue,
            _ => What::Vanished { lock, owner, how: how(event, by, !now.holders.is_empty()) },
        });
    }
    for (name, count) in &now.holders {
        let had = before.holders.get(name).copied().unwrap_or(0);
        let owner = names.owner(name, by.filter(|_| *count > had));
        if *count > had {
            let (count, token, mode) = (*count, now.token, now.mode);
            changes.push(What::Granted { lock, owner, lease_ms, until, count, token, mode });
        } else if *count == had && before.expires_ms != now.expires_ms {
            let by = by.unwrap_or(Party { client: node, owner: None });
            changes.push(What::Extended { lock, owner, by, lease_ms, until });
        }
    }
    changes
}

/// Whether the node did it, on whatever occasion.
fn by_itself(event: &str) -> bool {
    matches!(event, "expired" | "evicted" | "flushed")
}

fn how(event: &str, by: Option<Party>, replaced: bool) -> How {
    match (event, by) {
        ("expired", _) => How::Expired,
        ("evicted", _) => How::Evicted,
        ("flushed", _) => How::Flushed,
        (_, Some(by)) if replaced => How::Overwritten(by),
        (_, Some(by)) => How::Deleted(by),
        _ => How::Expired,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_are_known_by_who_took_them() {
        let kind = LockKind::Semaphore { permits: 3 };
        let mut state = State::default();
        let text = |left: &str| Content::Text(left.to_owned());
        let rows = [
            (text("2"), Some("c1"), vec![("c1", 1)]),
            (text("0"), Some("c2"), vec![("c1", 1), ("c2", 2)]),
            (text("-1"), Some("c3"), vec![("c1", 1), ("c2", 2), ("c3", 1)]),
            // A change that nobody is known to have made leaves everybody what they have.
            (text("1"), None, vec![("c1", 1), ("c2", 2), ("c3", 1)]),
            (text("0"), Some("c1"), vec![("c2", 2), ("c3", 1)]),
        ];
        for (content, by, expected) in rows {
            state = State::new(kind, &Reading { content, ..Reading::default() }, &state, by);
            let expected = expected.into_iter().map(|(name, count)| (name.to_owned(), count));
            assert_eq!(state.holders, expected.collect());
        }
    }

    #[test]
    fn the_mode_of_a_read_write_lock_is_no_holder() {
        let fields = |mode: &str| {
            let fields =
                [("mode", mode), ("c1:1", "2")].map(|(name, value)| (name.to_owned(), value.to_owned()));
            Reading { content: Content::Fields(BTreeMap::from(fields)), ..Reading::default() }
        };
        let state = |kind, mode| State::new(kind, &fields(mode), &State::default(), None);
        let holders = BTreeMap::from([("c1:1".to_owned(), 2)]);
        let read = state(LockKind::ReadWrite, "read");
        assert_eq!((read.mode, &read.holders), (Mode::Shared, &holders));
        assert_eq!(state(LockKind::ReadWrite, "write").mode, Mode::Exclusive);
        assert_eq!(state(LockKind::Exclusive, "read").holders.len(), 2);
    }
}
