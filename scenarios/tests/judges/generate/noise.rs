//! Impossible histories: any event at any time, by any party. A checker's verdict on one is
//! useless, but its definition still determines it.

use lockstorm::judge::history::{
    Accepted, Call, Clock, ClockId, CommandCount, Deadline, EventKind, GainCause, History, Host, KeyLeft,
    Life, Lock, LockKind, LossCause, Mode, Op, Outcome, Owner, Party, Reason, Role, Segment, Serving, Wait,
    Wake,
};
use lockstorm_world::time::{True, Wall};
use proptest::strategy::Strategy;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{Bytes, Cast, LEASES, STEPS, bytes, cast, ms, one_of};

pub(crate) fn strategy() -> impl Strategy<Value = Bytes> {
    bytes(30)
}

pub(crate) fn history((of, steps): Bytes) -> History {
    let Cast { mut history, nodes, clients, shop, owners, in_cluster } = cast(&of);
    let mut now = ms(0);
    let mut greatest = None;
    // An owner asks for one thing at a time, and each call has a number of its own.
    let mut ops = 0;
    let mut open: BTreeMap<Owner, Op> = BTreeMap::new();
    let mut asks: BTreeMap<Op, Lock> = BTreeMap::new();
    // Owners whose client has crashed cause no further events: a restarted process on that host is
    // another owner.
    let mut dead: BTreeSet<Host> = BTreeSet::new();
    for step @ [pause, kind, who, where_to, how, much] in &steps {
        now += one_of(STEPS, *pause);
        let owner = one_of(&owners, *who);
        let client = history.client_of(owner);
        let node = one_of(&nodes, *where_to);
        let lock = Lock(u16::from(*where_to / 16) % history.header.locks.len() as u16);
        let lease_ms = one_of(LEASES, *much);
        let wall = history.clock(node).reading(ClockId::Wall, now);
        let until = lease_ms.map(|lease| Wall::from_nanos(wall) + Duration::from_millis(lease));
        let count = one_of(&[1, 1, 2, 3], *how);
        let reads = ((how / 2).wrapping_add(*much)).is_multiple_of(3)
            && history.lock(lock).kind == LockKind::ReadWrite;
        let mode = if reads { Mode::Shared } else { Mode::Exclusive };
        let other = one_of(&clients, *how / 4);
        let by = one_of(
            &[
                Party { client, owner: None },
                Party { client, owner: None },
                Party { client: other, owner: Some(owner) },
                Party { client: other, owner: None },
                Party { client: other, owner: Some(one_of(&owners, *much)) },
            ],
            *how / 8,
        );
        let token = one_of(&[None, Some(1), Some(2), Some(3), Some(4)], *much / 8);
        let any_host = one_of(&[&nodes[..], &clients[..]].concat(), *where_to);
        let clock = one_of(&[ClockId::Boottime, ClockId::Wall, ClockId::Monotonic], *how / 4);
        let (host, what) = match kind % 28 {
            0..4 => (node, EventKind::Granted { lock, owner, lease_ms, until, count, token, mode }),
            4..6 => {
                let left = one_of(&[0, 0, 1, 2], *how);
                (node, EventKind::Released { lock, owner, by, left, lease_ms: None, until: None, mode })
            }
            6 => (node, EventKind::Extended { lock, owner, by, lease_ms, until, mode }),
            7 => {
                let how = one_of(
                    &[
                        LossCause::Expired,
                        LossCause::Crash,
                        LossCause::Deleted(by),
                        LossCause::Failover,
                        LossCause::Overwritten(by),
                    ],
                    *how,
                );
                (node, EventKind::Vanished { lock, owner, how, mode })
            }
            8..11 => {
                let reading = history.clock(client).reading(clock, now);
                let until =
                    lease_ms.map(|lease| Deadline { clock, nanos: reading + lease as i64 * 1_000_000 });
                (client, EventKind::Believes { lock, owner, until, token, count, mode })
            }
            11 if *much >= 192 => (client, EventKind::Abandoned { lock, owner }),
            11 => {
                let why = one_of(&[Reason::Released, Reason::Lost, Reason::Expired], *how);
                (client, EventKind::Disbelieves { lock, owner, why, mode })
            }
            12..14 if open.contains_key(&owner) || dead.contains(&client) => continue,
            12..14 => {
                let op = Op(ops);
                ops += 1;
                open.insert(owner, op);
                let wait = one_of(&[Wait::No, Wait::Ms(500), Wait::Unbounded], *much);
                let acquire = Call::Acquire { wait, lease_ms, mode };
                let of_lock =
                    [acquire, acquire, Call::Release, Call::Release, Call::Extend { lease_ms: 500 }];
                let call = match history.lock(lock).kind {
                    LockKind::Latch { .. } => {
                        one_of(&[Call::CountDown, Call::Await { wait }, Call::Delete], *much / 4)
                    }
                    LockKind::Rate { .. } => Call::Take { permits: count, wait },
                    _ => one_of(&of_lock, *much / 4),
                };
                if call == acquire {
                    asks.insert(op, lock);
                }
                (client, EventKind::Invoke { op, lock, owner, call })
            }
            14..16 => {
                let failed = |definite| Outcome::Failed { definite, message: "no reply".into() };
                let outcome = match much % 4 {
                    0 | 3 => Outcome::Ok,
                    1 => Outcome::Refused,
                    _ => failed(*much > 128),
                };
                let Some(op) = open.remove(&owner) else { continue };
                (client, EventKind::Return { op, outcome })
            }
            16..18 => match how % 2 {
                0 => (client, EventKind::Waiting { lock, owner }),
                _ => (
                    client,
                    EventKind::Woken { lock, owner, by: one_of(&[Wake::Message, Wake::Timer], *much) },
                ),
            },
            18 => {
                let length = usize::from(*how % 4);
                let mut waiters = Vec::new();
                for number in 0..length {
                    let waiter = one_of(&owners, much.wrapping_add(number as u8 * 3));
                    if !waiters.contains(&waiter) {
                        waiters.push(waiter);
                    }
                }
                (node, EventKind::Queue { lock, waiters: waiters.into() })
            }
            19 => {
                let life = one_of(
                    &[Life::Crashed, Life::Started, Life::Paused, Life::Resumed, Life::Suspended],
                    *how,
                );
                if matches!(life, Life::Crashed | Life::Started) {
                    open.retain(|owner, _| history.client_of(*owner) != any_host);
                    dead.insert(any_host);
                }
                (any_host, EventKind::Life { life })
            }
            20 if in_cluster && *much > 64 => {
                let how = [
                    Serving::Whole,
                    Serving::Elsewhere,
                    Serving::Closed,
                    Serving::Migrating,
                    Serving::Importing,
                ];
                (node, EventKind::Serves { lock, how: one_of(&how, *much) })
            }
            20 => (node, EventKind::Became { role: one_of(&[Role::Master, Role::Replica], *how) }),
            21 if how.is_multiple_of(2) => {
                changes_clock(&mut history, usize::from(any_host.0), now, *much);
                continue;
            }
            21 if *how == 1 => {
                history.header.calm = Some(now);
                continue;
            }
            22 | 23 if matches!(history.lock(lock).kind, LockKind::Latch { .. }) => {
                (node, EventKind::Counted { lock, left: one_of(&[0, 1, 2, 0, 3], *how) })
            }
            22 | 23 if matches!(history.lock(lock).kind, LockKind::Rate { .. }) => {
                (node, EventKind::Passed { lock, by, permits: count })
            }
            21 => (node, EventKind::Published { lock, receivers: 1 }),
            26 | 27 => {
                let how = one_of(&[GainCause::Restart, GainCause::Failover], *how);
                (node, EventKind::Regained { lock, owner, lease_ms, until, count, how, mode })
            }
            _ => {
                let ago = one_of(&[0, 10, 600, 1_500], *how);
                let sent = True::from_nanos((now.as_nanos() - ago * 1_000_000).max(0));
                let accepted = Accepted { greater: token > greatest, at_least: token >= greatest };
                greatest = greatest.max(token);
                (shop, EventKind::Write { lock, owner, token, sent, accepted })
            }
        };
        let waits_for_nothing = matches!(what, EventKind::Waiting { .. })
            && open.get(&owner).is_none_or(|op| asks.get(op) != Some(&lock));
        if waits_for_nothing || (dead.contains(&host) && !matches!(what, EventKind::Life { .. })) {
            continue;
        }
        history.record(now, host, what);
        left_behind(&mut history, step);
    }
    history.header.end = now + one_of(STEPS, of[11]);
    history
}

/// A host's clocks jump or change their rate.
fn changes_clock(history: &mut History, host: usize, now: True, much: u8) {
    let mut segments = history.clocks[host].segments().to_vec();
    let clock = &history.clocks[host];
    let clock_ids = ClockId::ALL;
    let mut readings = clock_ids.map(|clock_id| clock.reading(clock_id, now));
    let step = one_of(&[900_000_000, -400_000_000, 0, 5_000_000_000], much);
    readings[0] = readings[0].saturating_add(step);
    let rate = one_of(&[1_000_000_000, 1_000_000_000, 2_000_000_000, 500_000_000], much / 4);
    let monotonic = if much > 200 { 0 } else { rate };
    segments.retain(|segment| segment.from < now);
    segments.push(Segment { from: now, readings, rates: [rate, monotonic, rate] });
    history.clocks[host] = Clock::try_from(segments).expect("in order");
}

/// Sometimes leaves a key on a node, or counts a command.
fn left_behind(history: &mut History, [_, _, who, where_to, how, much]: &[u8; 6]) {
    let node = history.events.last().map_or(Host(0), |event| event.host);
    match how % 16 {
        7 => {
            let key = one_of(
                &[
                    "stock",
                    "stock:token",
                    "stock:latch:7",
                    "redisson_lock_queue:{stock}",
                    "till",
                    "other",
                    "stock:latch:8",
                    "till:latch:9",
                    "stock:latch:10",
                ],
                *much,
            );
            // Few owners, so that one has several keys.
            let owners = history.owners.len() as u32;
            let owner =
                one_of(&[None, Some(Owner(0)), Some(Owner(u32::from(*much) / 16 % owners))], *much / 4);
            history.keys_left.push(KeyLeft {
                node,
                lock: one_of(&Vec::from_iter(history.header.locks()), *where_to),
                key: key.into(),
                owner,
                ttl_ms: one_of(&[None, Some(70)], *who),
            });
        }
        8 => {
            let client = Host(u16::from(*where_to) % history.header.hosts.len() as u16);
            history.commands.push(CommandCount { node, client, name: "SET".into(), count: u64::from(*much) });
        }
        _ => {}
    }
}
