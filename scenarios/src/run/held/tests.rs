//! Tests for the grants, losses and returns of holds, derived from a node's keys before and after a
//! change.

use std::cell::RefCell;

use super::*;
use crate::judge::{
    history::{self, story::Story},
    object::{Content, LockKind},
};

const LOCK: Lock = Lock(0);
const NODE: Host = Host(9);

/// Numbers the owners in order of appearance. Each client's owner has the client's name.
#[derive(Default)]
struct Known(RefCell<Vec<(String, Host)>>);

impl Names for Known {
    fn owner(&self, _: Lock, name: &str, writer: Option<Host>) -> Owner {
        let client = writer.unwrap_or(NODE);
        let mut known = self.0.borrow_mut();
        let at = known.iter().rposition(|(is, of)| is == name && (writer.is_none() || *of == client));
        let at = at.unwrap_or_else(|| {
            known.push((name.to_owned(), client));
            known.len() - 1
        });
        Owner(u32::try_from(at).expect("few names"))
    }

    fn party(&self, _: Lock, sender: &Sender, _: (&str, Owner)) -> Party {
        Party { client: sender.client, owner: None }
    }

    fn is_own(&self, owner: Owner, by: Party) -> bool {
        self.0.borrow()[owner.0 as usize].1 == by.client
    }

    fn name_of(&self, client: Host) -> Option<Box<str>> {
        Some(format!("c{client}").into())
    }
}

/// Returns the content of the lock's key.
fn fields(fields: &[(&str, &str)], expires_ms: i64) -> Vec<Value> {
    let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let content = Content::Fields(fields.collect());
    vec![Value { content, expires_ms: Some(expires_ms), ..Value::default() }]
}

fn text(text: &str, expires_ms: i64) -> Vec<Value> {
    let content = Content::Text(text.to_owned());
    vec![Value { content, expires_ms: Some(expires_ms), ..Value::default() }]
}

/// Returns the events for a client's command that left these values.
fn change(
    (lock, names): (&mut Watched, &Known),
    values: &[Value],
    event: &str,
    client: u16,
    wall_ms: i64,
) -> Vec<EventKind> {
    let by = Some(&Sender { client: Host(client), owners: Vec::new() });
    lock.change(values, &Cause { event, by, node: NODE, wall_ms }, names)
}

fn lock() -> Watched {
    Watched::new(LOCK, LockKind::Plain.object(1), "lock")
}

fn granted(owner: u32, lease_ms: u64, until_ms: i64, count: u32) -> EventKind {
    let (lock, owner, mode) = (LOCK, Owner(owner), Mode::Exclusive);
    let (lease_ms, until) = (Some(lease_ms), Some(Wall::from_millis(until_ms)));
    EventKind::Granted { lock, owner, lease_ms, until, count, token: None, mode }
}

fn vanished(owner: u32, how: LossCause) -> EventKind {
    EventKind::Vanished { lock: LOCK, owner: Owner(owner), how, mode: Mode::Exclusive }
}

/// A script that finds the lock expired and is granted it leaves the same name in the key. That
/// used to be recorded as an extension, and at the same depth not at all.
#[test]
fn an_expiry_that_a_grant_of_the_same_command_hid() {
    let (mut lock, names) = (lock(), Known::default());
    let mut change =
        |values: &[Value], event, client, wall| change((&mut lock, &names), values, event, client, wall);
    let twice = fields(&[("c1", "2")], 5_000);
    assert_eq!(change(&twice, "hincrby", 1, 0), [granted(0, 5_000, 5_000, 2)]);
    let again = fields(&[("c1", "1")], 11_000);
    let renewed = [vanished(0, LossCause::Expired), granted(0, 5_000, 11_000, 1)];
    assert_eq!(change(&again, "expired", 1, 6_000), renewed);
    // The rest of the script's events find no further change.
    assert_eq!(change(&again, "hincrby", 1, 6_000), []);
    assert_eq!(change(&again, "expire", 1, 6_000), []);
    // The same depth, with and without another lease.
    let flushed = [vanished(0, LossCause::Flushed), granted(0, 4_000, 11_001, 1)];
    assert_eq!(change(&fields(&[("c1", "1")], 11_001), "flushed", 1, 7_001), flushed);
    assert_eq!(change(&[], "expired", 1, 12_000), [vanished(0, LossCause::Expired)]);
    assert_eq!(change(&[], "expired", 1, 12_000), []);
}

/// A command that finds the field of another owner expired removes it, and sets its own.
#[test]
fn a_field_that_expired_ends_the_hold() {
    let (mut lock, names) = (lock(), Known::default());
    let mut change =
        |values: &[Value], event, client, wall| change((&mut lock, &names), values, event, client, wall);
    let first = fields(&[("holder", "t1")], 5_000);
    assert_eq!(change(&first, "hset", 1, 0), [granted(0, 5_000, 5_000, 1)]);
    let second = fields(&[("holder", "t2")], 11_000);
    let taken = [vanished(0, LossCause::Expired), granted(1, 5_000, 11_000, 1)];
    assert_eq!(change(&second, "hexpired", 2, 6_000), taken);
    assert_eq!(change(&second, "hset", 2, 6_000), []);
}

/// Two clients write the same token. The hold belongs to the client that was granted it, and the
/// other client's release deletes it.
#[test]
fn a_hold_under_a_name_that_two_clients_share_is_of_the_one_that_was_granted_it() {
    let (mut lock, names) = (lock(), Known::default());
    let mut change =
        |values: &[Value], event, client, wall| change((&mut lock, &names), values, event, client, wall);
    assert_eq!(change(&text("token", 1_000), "set", 1, 0), [granted(0, 1_000, 1_000, 1)]);
    let granted_again = [vanished(0, LossCause::Expired), granted(1, 1_000, 2_500, 1)];
    assert_eq!(change(&text("token", 2_500), "expired", 2, 1_500), granted_again);
    assert_eq!(change(&text("token", 2_500), "set", 2, 1_500), []);
    let by = Party { client: Host(1), owner: None };
    assert_eq!(change(&[], "del", 1, 2_000), [vanished(1, LossCause::Deleted(by))]);
}

/// The script of one reader's release deletes the hash with the remains of another reader's hold,
/// whose lease has ended. That used to be recorded as the work of the first reader.
#[test]
fn a_hold_whose_lease_is_over_is_not_taken_away_by_who_clears_it_away() {
    let mut lock = Watched::new(LOCK, LockKind::ReadWrite.object(1), "lock");
    let names = Known::default();
    let mut leaves = |leases: &[(&str, i64)], client, wall_ms| {
        let fields = leases.iter().map(|(name, _)| ((*name).to_owned(), "1".to_owned()));
        let expires_ms = leases.iter().map(|(_, at)| *at).max();
        let content = if leases.is_empty() { Content::Nothing } else { Content::Fields(fields.collect()) };
        let leases = leases.iter().map(|(name, at)| (((*name).to_owned(), 1), Some(*at)));
        let value = Value { content, expires_ms, leases: leases.collect(), ..Value::default() };
        change((&mut lock, &names), &[value], "hincrby", client, wall_ms)
    };
    leaves(&[("c1", 500)], 1, 0);
    leaves(&[("c1", 500), ("c2", 900)], 2, 0);
    let changes = leaves(&[], 2, 600);
    let by = Party { client: Host(2), owner: None };
    let mode = Mode::Shared;
    let released =
        EventKind::Released { lock: LOCK, owner: Owner(1), by, left: 0, lease_ms: None, until: None, mode };
    let lapsed = EventKind::Vanished { lock: LOCK, owner: Owner(0), how: LossCause::Expired, mode };
    assert_eq!(changes, [lapsed, released]);
}

/// The number of each level that has a lease key, with the end of the lease in milliseconds.
type Leases<'a> = &'a [(u32, i64)];

/// Returns the key of a lock that expires at 900 and has these readers: the name, the number of
/// levels in the field, and each level that has a lease key with the end of the lease.
fn readers(readers: &[(&str, u32, Leases<'_>)]) -> Vec<Value> {
    let fields = readers.iter().map(|(name, levels, _)| ((*name).to_owned(), levels.to_string()));
    let leases = readers.iter().flat_map(|(name, _, leases)| {
        leases.iter().map(move |(level, at)| (((*name).to_owned(), *level), Some(*at)))
    });
    let content = Content::Fields(fields.collect());
    vec![Value { content, expires_ms: Some(900), leases: leases.collect(), ..Value::default() }]
}

/// A reader has two levels, and the lease of the first one has ended. Its key may remain, as after
/// a restart with an AOF. The level used to count as long as the key remained, so that its end was
/// recorded as a release.
#[test]
fn a_level_whose_lease_is_over_is_not_held_while_its_key_remains() {
    let (names, mode) = (Known::default(), Mode::Shared);
    let granted = |owner, count| {
        let (lease_ms, until) = (Some(300), Some(Wall::from_millis(900)));
        EventKind::Granted { lock: LOCK, owner: Owner(owner), lease_ms, until, count, token: None, mode }
    };
    let by = Party { client: Host(1), owner: None };
    let released =
        EventKind::Released { lock: LOCK, owner: Owner(0), by, left: 0, lease_ms: None, until: None, mode };
    let another = readers(&[("c1", 2, &[(1, 500), (2, 900)]), ("c2", 1, &[(1, 900)])]);
    let swept = readers(&[("c1", 2, &[(2, 900)])]);
    let once_more = readers(&[("c1", 3, &[(1, 500), (2, 900), (3, 900)])]);
    let given_back = readers(&[("c1", 1, &[(1, 500)])]);
    let rows = [
        ("another reader comes in", another, "hincrby", 2, vec![granted(1, 1)], Some(1)),
        ("a command of the reader finds the key", swept, "expired", 1, Vec::new(), Some(1)),
        ("the reader takes a level", once_more, "hincrby", 1, vec![granted(0, 2)], Some(2)),
        ("the reader gives its last level back", given_back, "hincrby", 1, vec![released], None),
    ];
    for (name, values, event, client, expected, levels) in rows {
        let mut lock = Watched::new(LOCK, LockKind::ReadWrite.object(1), "lock");
        let mut change =
            |values: &[Value], event, client, wall| change((&mut lock, &names), values, event, client, wall);
        change(&readers(&[("c1", 1, &[(1, 500)])]), "hincrby", 1, 0);
        change(&readers(&[("c1", 2, &[(1, 500), (2, 900)])]), "hincrby", 1, 100);
        assert_eq!(change(&values, event, client, 600), expected, "{name}");
        let left = lock.state.holders.get(&("c1".to_owned(), mode)).map(|hold| hold.count);
        assert_eq!(left, levels, "{name}");
    }
}

/// No event records the end of a single level. A reader with fewer levels than its group reported
/// is the same hold if only time took them; it used to be recorded as one that came back.
#[test]
fn a_reader_whose_level_ended_has_not_come_back_with_a_node() {
    let story = || {
        let story = Story::failover(history::LockKind::ReadWrite).at(0).asks_to_read("c1");
        story.granted_in("m", "c1", 500, Mode::Shared).granted_in("m", "c1", 900, Mode::Shared)
    };
    let held = story().ends(2_000);
    let released = story().at(300).released("m", "c1").released("m", "c1").ends(2_000);
    for (name, history, expected) in [("held", &held, None), ("released", &released, Some(1_u32))] {
        let mut node = Watched::new(LOCK, LockKind::ReadWrite.object(1), "lock");
        let (twice, now) = (readers(&[("c1:1", 2, &[(1, 500), (2, 900)])]), Wall::from_millis(600));
        assert_eq!(node.restarted(&twice, now, &Known::default()), [], "{name}");
        let owner = history.find_owner("c1:1").expect("it asked");
        node.state.holders.values_mut().for_each(|hold| hold.owner = owner);
        let at = history.header.host("m").expect("a master");
        let told = node.came_back(history, at, now, GainCause::Restart);
        let levels = |what: &EventKind| match what {
            EventKind::Regained { count, .. } => *count,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(told.iter().map(levels).collect::<Vec<_>>(), Vec::from_iter(expected), "{name}");
    }
}

/// Returns a node with one owner's hold: `count` levels until `expires_ms` by the node's clock.
fn has(history: &History, count: u32, expires_ms: Option<i64>) -> Watched {
    let owner = history.find_owner("c1:1").expect("it asked");
    let mut node = lock();
    let hold = OwnerHolds { owner, count, expires_ms };
    node.state.holders.insert(("c1:1".to_owned(), Mode::Exclusive), hold);
    node
}

#[test]
fn a_replica_that_is_promoted_has_lost_the_holds_that_it_never_had() {
    let story = || Story::failover(history::LockKind::Exclusive).at(0).locks("c1", "m", 1_000);
    let held = story().ends(2_000);
    let released = story().at(300).unlocks("c1", "m").ends(2_000);
    let copy_lost = story().became("r", history::Role::Replica).at(300).vanished("r", "c1", LossCause::Crash);
    let copy_lost = copy_lost.ends(2_000);
    let (replica, c1) =
        (held.header.host("r").expect("a replica"), held.find_owner("c1:1").expect("it asked"));
    let (without, with) = (lock(), has(&held, 1, Some(1_000)));
    let (how, mode) = (LossCause::Failover, Mode::Exclusive);
    let lost = vec![EventKind::Vanished { lock: LOCK, owner: c1, how, mode }];
    let rows = [
        ("never had it", &held, &without, 500, lost.clone()),
        ("lost its copy as a replica", &copy_lost, &without, 500, lost),
        ("has it", &held, &with, 500, Vec::new()),
        ("its lease is over", &held, &without, 1_000, Vec::new()),
        ("it was released", &released, &without, 500, Vec::new()),
    ];
    for (name, history, node, now_ms, expected) in rows {
        let told = node.promoted(history, replica, Wall::from_millis(now_ms), GainCause::Failover);
        assert_eq!(told, expected, "{name}");
    }
}

/// A hold comes back if its state differs from the last one that its group reported. Formerly no
/// event recorded that, and for the checkers it had no owner.
#[test]
fn a_hold_that_its_group_has_not_comes_back_with_a_node() {
    let story = || Story::failover(history::LockKind::Exclusive).at(0).locks("c1", "m", 1_000);
    let held = story().ends(2_000);
    let released = story().at(300).unlocks("c1", "m").ends(2_000);
    let lost = story().at(300).vanished("m", "c1", LossCause::Crash).ends(2_000);
    let copy_lost = story().became("r", history::Role::Replica).at(300).vanished("r", "c1", LossCause::Crash);
    let copy_lost = copy_lost.ends(2_000);
    let back = story().at(300).unlocks("c1", "m").regained("m", "c1", 700, 1, GainCause::Restart);
    let back = back.ends(2_000);
    let shortened = story().at(100).extended("m", "c1", 300).ends(2_000);
    let another = Story::failover(history::LockKind::Exclusive).at(0).locks("c2", "m", 1_000);
    let never_spoken_of = another.asks("c1").ends(2_000);
    let of_kind = |kind| {
        let history = Story::of_kind(kind).at(0).granted("m", "c1", 1_000).at(300).released("m", "c1");
        history.ends(2_000)
    };
    let permits = of_kind(history::LockKind::Semaphore { permits: 2 });
    let semaphore =
        |history: &History| Watched { object: LockKind::Semaphore.object(2), ..has(history, 1, Some(1_000)) };
    let once = |history: &History| has(history, 1, Some(1_000));
    let rows = [
        ("as its group has it", &held, once(&held), 500, None),
        ("with an earlier end", &held, has(&held, 1, Some(900)), 500, None),
        ("with the same end, as it was read", &held, has(&held, 1, Some(1_010)), 500, None),
        ("released", &released, once(&released), 500, Some((1, 500))),
        ("released, and its lease is over", &released, once(&released), 1_000, None),
        ("lost", &lost, once(&lost), 500, Some((1, 500))),
        ("a replica has lost its copy", &copy_lost, once(&copy_lost), 500, None),
        ("with more levels", &held, has(&held, 2, Some(1_000)), 500, Some((2, 500))),
        ("with a later end", &shortened, once(&shortened), 350, Some((1, 650))),
        ("it has come back before", &back, once(&back), 500, None),
        ("its group has never had it", &never_spoken_of, once(&never_spoken_of), 500, None),
        ("whose permits they are no key says", &permits, semaphore(&permits), 500, None),
    ];
    for (name, history, node, now_ms, expected) in rows {
        let at = history.header.host("m").expect("a master");
        let told = node.came_back(history, at, Wall::from_millis(now_ms), GainCause::Restart);
        let of = |what: &EventKind| match what {
            EventKind::Regained { count, lease_ms, how: GainCause::Restart, .. } => {
                (*count, lease_ms.expect("a lease"))
            }
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(told.iter().map(of).collect::<Vec<_>>(), Vec::from_iter(expected), "{name}");
    }
}
