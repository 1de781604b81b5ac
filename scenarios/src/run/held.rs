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

/// One owner's holds on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hold {
    /// Whom the node granted them to. A name may be bound to another owner later, and a release of this hold is still one of its.
    pub(super) owner: Owner,
    pub(super) count: u32,
}

/// Who holds the lock as one node has it, and until when.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct State {
    /// By the names that stand in Redis.
    pub(super) holders: BTreeMap<String, Hold>,
    pub(super) mode: Mode,
    pub(super) expires_ms: Option<i64>,
    /// The last fencing token.
    pub(super) token: Option<u64>,
}

/// What has changed the keys.
pub(super) struct Cause<'a> {
    /// The keyspace event, or the command.
    pub(super) event: &'a str,
    /// Whose command it was, if it was a client's.
    pub(super) by: Option<Party>,
    /// The node, and its wall clock in milliseconds.
    pub(super) node: Host,
    pub(super) wall_ms: i64,
}

/// The owners that the names in the keys stand for.
pub(super) trait Names {
    /// The owner of this name, which `writer` has just written into a lock's keys.
    fn owner(&self, lock: Lock, name: &str, writer: Option<Party>) -> Owner;
    /// The client of an owner.
    fn client_of(&self, owner: Owner) -> Host;
    /// The name of the owner that a client is at present.
    fn name_of(&self, client: Host) -> Option<Box<str>>;
}

impl State {
    /// Takes over what the keys say where no client of this node changed them: what came from a master, or from the node's disk.
    pub(super) fn adopt(&mut self, (lock, kind): (Lock, LockKind), reading: &Reading, names: &dyn Names) {
        let before = std::mem::take(self);
        let (counts, mode) = counts(kind, reading, &before, None);
        let owner = |name: &str| before.owner_of(name).unwrap_or_else(|| names.owner(lock, name, None));
        let holders = counts.into_iter().map(|(name, count)| {
            let owner = owner(&name);
            (name, Hold { owner, count })
        });
        let Reading { expires_ms, token, .. } = *reading;
        *self = State { holders: holders.collect(), mode, expires_ms, token };
    }

    /// Takes over what the keys say after a change, and says what it means for the lock.
    pub(super) fn change(
        &mut self,
        (lock, kind): (Lock, LockKind),
        reading: &Reading,
        cause: &Cause<'_>,
        names: &dyn Names,
    ) -> Vec<What> {
        let Cause { event, by, node, wall_ms } = *cause;
        let Reading { expires_ms, token, .. } = *reading;
        let mut before = std::mem::take(self);
        let mut changes = Vec::new();
        let by_itself = matches!(event, "expired" | "evicted" | "flushed");
        // Observed is what a whole command has left. Where the node dropped the key and the same command was granted it again,
        // even to the same name, the old holds are gone and what is there now are new ones.
        if by_itself && !before.is_left_by(kind, reading) {
            let how = how(event, by, false);
            changes.extend(before.owners().map(|owner| What::Vanished { lock, owner, how }));
            before = State::default();
        }
        let name = by.and_then(|by| names.name_of(by.client));
        let (counts, mode) = counts(kind, reading, &before, name.as_deref());
        let lease_ms = expires_ms.map(|at| u64::try_from(at - wall_ms).unwrap_or(0));
        let until = expires_ms.map(Wall::from_millis);
        for (name, Hold { owner, count }) in &before.holders {
            let (owner, left) = (*owner, counts.get(name).copied().unwrap_or(0));
            if left >= *count {
                continue;
            }
            changes.push(match by {
                // A command that finds the key expired has not released it, whichever client sent it.
                Some(by) if !by_itself && names.client_of(owner) == by.client => {
                    let (lease_ms, until) = if left == 0 { (None, None) } else { (lease_ms, until) };
                    What::Released { lock, owner, by, left, lease_ms, until }
                }
                _ if left > 0 => continue,
                _ => What::Vanished { lock, owner, how: how(event, by, !counts.is_empty()) },
            });
        }
        for (name, count) in counts {
            let had = before.holders.get(&name).copied();
            let owner = had.map_or_else(|| names.owner(lock, &name, by), |hold| hold.owner);
            let had = had.map_or(0, |hold| hold.count);
            if count > had {
                changes.push(What::Granted { lock, owner, lease_ms, until, count, token, mode });
            } else if count == had && before.expires_ms != expires_ms {
                let by = by.unwrap_or(Party { client: node, owner: None });
                changes.push(What::Extended { lock, owner, by, lease_ms, until });
            }
            self.holders.insert(name, Hold { owner, count });
        }
        (self.mode, self.expires_ms, self.token) = (mode, expires_ms, token);
        changes
    }

    /// The owners of the holds.
    pub(super) fn owners(&self) -> impl Iterator<Item = Owner> + '_ {
        self.holders.values().map(|hold| hold.owner)
    }

    fn owner_of(&self, name: &str) -> Option<Owner> {
        self.holders.get(name).map(|hold| hold.owner)
    }

    /// Whether the keys say what is known already. Asks for no owner: which client has written a new name is not known here.
    fn is_left_by(&self, kind: LockKind, reading: &Reading) -> bool {
        let (counts, _) = counts(kind, reading, self, None);
        let known = self.holders.iter().map(|(name, hold)| (name, hold.count));
        known.eq(counts.iter().map(|(name, count)| (name, *count))) && self.expires_ms == reading.expires_ms
    }
}

/// Who holds the lock how many times, and in which mode. The keys of a semaphore say how many permits are left and not who has
/// the others: that is known from what was known `before` and from the name of the owner that has changed the key.
fn counts(
    kind: LockKind,
    reading: &Reading,
    before: &State,
    by: Option<&str>,
) -> (BTreeMap<String, u32>, Mode) {
    let (mut holders, mut mode) = (BTreeMap::new(), Mode::Exclusive);
    match (kind, &reading.content) {
        (_, Content::Nothing) => {}
        (LockKind::Semaphore { permits }, Content::Text(left)) => {
            let left = left.parse().unwrap_or(i64::from(permits));
            holders = moved(before, i64::from(permits) - left, by);
        }
        (_, Content::Text(token)) => {
            holders.insert(token.clone(), 1);
        }
        (_, Content::Fields(fields)) => {
            for (name, value) in fields {
                if kind == LockKind::ReadWrite && name == MODE {
                    mode = if value == READ { Mode::Shared } else { Mode::Exclusive };
                } else {
                    holders.insert(name.clone(), value.parse().unwrap_or(1));
                }
            }
        }
    }
    (holders, mode)
}

/// The field of a read-write lock that says in which mode it is held, and what it says when it is shared.
const MODE: &str = "mode";
const READ: &str = "read";

/// Who has how many permits when `taken` of them are out, and the one who changed that is known.
fn moved(before: &State, taken: i64, by: Option<&str>) -> BTreeMap<String, u32> {
    let holders = before.holders.iter();
    let mut holders: BTreeMap<_, _> = holders.map(|(name, hold)| (name.clone(), hold.count)).collect();
    let out: i64 = holders.values().map(|count| i64::from(*count)).sum();
    let Some(name) = by else { return holders };
    let count = i64::from(holders.get(name).copied().unwrap_or(0)) + taken - out;
    holders.remove(name);
    if let Some(count) = u32::try_from(count).ok().filter(|count| *count > 0) {
        holders.insert(name.to_owned(), count);
    }
    holders
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
    use std::cell::RefCell;

    use super::*;

    const LOCK: Lock = Lock(0);
    const NODE: Host = Host(9);

    /// Names of owners, numbered as they come; each client's owner is called after it.
    #[derive(Default)]
    struct Known(RefCell<Vec<(String, Host)>>);

    impl Names for Known {
        fn owner(&self, _: Lock, name: &str, writer: Option<Party>) -> Owner {
            let client = writer.map_or(NODE, |by| by.client);
            let mut known = self.0.borrow_mut();
            let at = known.iter().rposition(|(is, of)| is == name && (writer.is_none() || *of == client));
            let at = at.unwrap_or_else(|| {
                known.push((name.to_owned(), client));
                known.len() - 1
            });
            Owner(u32::try_from(at).expect("few names"))
        }

        fn client_of(&self, owner: Owner) -> Host {
            self.0.borrow()[owner.0 as usize].1
        }

        fn name_of(&self, client: Host) -> Option<Box<str>> {
            Some(format!("c{client}").into())
        }
    }

    fn fields(fields: &[(&str, &str)], expires_ms: i64) -> Reading {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Reading { content: Content::Fields(fields.collect()), expires_ms: Some(expires_ms), token: None }
    }

    fn text(text: &str, expires_ms: Option<i64>) -> Reading {
        Reading { content: Content::Text(text.to_owned()), expires_ms, token: None }
    }

    fn cause(event: &str, client: Option<u16>, wall_ms: i64) -> Cause<'_> {
        let by = client.map(|client| Party { client: Host(client), owner: None });
        Cause { event, by, node: NODE, wall_ms }
    }

    fn granted(owner: u32, lease_ms: u64, until_ms: i64, count: u32) -> What {
        let (lock, owner, mode) = (LOCK, Owner(owner), Mode::Exclusive);
        let (lease_ms, until) = (Some(lease_ms), Some(Wall::from_millis(until_ms)));
        What::Granted { lock, owner, lease_ms, until, count, token: None, mode }
    }

    fn vanished(owner: u32, how: How) -> What {
        What::Vanished { lock: LOCK, owner: Owner(owner), how }
    }

    #[test]
    fn permits_are_known_by_who_took_them() {
        let kind = LockKind::Semaphore { permits: 3 };
        let (mut state, names) = (State::default(), Known::default());
        let rows = [
            ("2", Some(1), vec![("c1", 1)]),
            ("0", Some(2), vec![("c1", 1), ("c2", 2)]),
            ("-1", Some(3), vec![("c1", 1), ("c2", 2), ("c3", 1)]),
            // A change that no client is known to have made leaves everybody what they have.
            ("1", None, vec![("c1", 1), ("c2", 2), ("c3", 1)]),
            ("0", Some(1), vec![("c2", 2), ("c3", 1)]),
        ];
        for (left, by, expected) in rows {
            state.change((LOCK, kind), &text(left, None), &cause("decrby", by, 0), &names);
            let holders: Vec<(&str, u32)> =
                state.holders.iter().map(|(name, hold)| (&**name, hold.count)).collect();
            assert_eq!(holders, expected, "{left} left");
        }
    }

    #[test]
    fn the_mode_of_a_read_write_lock_is_no_holder() {
        let state = |kind, mode| {
            let mut state = State::default();
            state.adopt((LOCK, kind), &fields(&[("mode", mode), ("c1", "2")], 1_000), &Known::default());
            let names: Vec<String> = state.holders.into_keys().collect();
            (state.mode, names)
        };
        assert_eq!(state(LockKind::ReadWrite, "read"), (Mode::Shared, vec!["c1".to_owned()]));
        assert_eq!(state(LockKind::ReadWrite, "write"), (Mode::Exclusive, vec!["c1".to_owned()]));
        assert_eq!(state(LockKind::Exclusive, "read").1.len(), 2);
    }

    /// A script that finds the lock expired and is granted it leaves the same name in the key: that was told as an extension, and
    /// a hold too many of the same depth as none at all.
    #[test]
    fn an_expiry_that_a_grant_of_the_same_command_hid() {
        let (mut state, names) = (State::default(), Known::default());
        let kind = LockKind::Exclusive;
        let mut change = |reading: &Reading, event, client, wall_ms| {
            state.change((LOCK, kind), reading, &cause(event, client, wall_ms), &names)
        };
        let twice = fields(&[("c1", "2")], 5_000);
        assert_eq!(change(&twice, "hincrby", Some(1), 0), [granted(0, 5_000, 5_000, 2)]);
        let again = fields(&[("c1", "1")], 11_000);
        let renewed = [vanished(0, How::Expired), granted(0, 5_000, 11_000, 1)];
        assert_eq!(change(&again, "expired", Some(1), 6_000), renewed);
        // The events of the rest of the script find what is known already.
        assert_eq!(change(&again, "hincrby", Some(1), 6_000), []);
        assert_eq!(change(&again, "expire", Some(1), 6_000), []);
        // Of the same depth, with or without another lease.
        let flushed = [vanished(0, How::Flushed), granted(0, 4_000, 11_001, 1)];
        assert_eq!(change(&fields(&[("c1", "1")], 11_001), "flushed", Some(1), 7_001), flushed);
        assert_eq!(change(&Reading::default(), "expired", None, 12_000), [vanished(0, How::Expired)]);
        assert_eq!(change(&Reading::default(), "expired", None, 12_000), []);
    }

    /// Two clients write one token: the hold is of the client that was granted it, and the release of the other takes it away.
    #[test]
    fn a_hold_under_a_name_that_two_clients_share_is_of_the_one_that_was_granted_it() {
        let (mut state, names) = (State::default(), Known::default());
        let mut change = |reading: &Reading, event, client, wall_ms| {
            state.change((LOCK, LockKind::Exclusive), reading, &cause(event, Some(client), wall_ms), &names)
        };
        assert_eq!(change(&text("token", Some(1_000)), "set", 1, 0), [granted(0, 1_000, 1_000, 1)]);
        let granted_again = [vanished(0, How::Expired), granted(1, 1_000, 2_500, 1)];
        assert_eq!(change(&text("token", Some(2_500)), "expired", 2, 1_500), granted_again);
        assert_eq!(change(&text("token", Some(2_500)), "set", 2, 1_500), []);
        let by = Party { client: Host(1), owner: None };
        assert_eq!(change(&Reading::default(), "del", 1, 2_000), [vanished(1, How::Deleted(by))]);
    }
}
