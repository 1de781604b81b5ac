//! The definition of `waiting`. An owner wants a lock from its first acquire until one succeeds,
//! through refusals and failures after which it asks again, and at most until its last call is
//! over; a crash ends the want. `waited` is the longest want, `waited_p99` the shortest time that
//! 99 of 100 wants do not exceed, and `unserved` the number of owners that wanted a lock and never
//! got it.
//!
//! A want is overtaken when, during one of its calls, another owner gets the lock that began to
//! want it later. That owner must not have believed, when it began to want the lock, that it had
//! the lock (or, if it got the lock at that very instant, before that instant). A call stops
//! counting once a fault hits its client or a host that is not a client. A call that begins while
//! such a fault is in force does not count at all. `overtaken` is the largest number for one want.
//! The layer is violated iff a want was overtaken more often than the bound allows for each owner
//! that asked for the lock, and only one owner may hold the lock in any mode. It is undecided if no
//! owner asked for a lock.
//!
//! `jain` is the least of all locks: the square of the sum, divided by the sum of the squares and
//! by the number, over how often each owner got the lock that wanted it more than once or in vain.

use std::{collections::BTreeSet, time::Duration};

use lockstorm::judge::{
    history::{Fault, History, Host, HostKind, Lock, LockKind, Outcome, Owner},
    verdict::Quantity,
};
use lockstorm_world::time::True;

use crate::{
    Answer,
    past::{believed, calls, given_up, pairs},
};

struct Want {
    owner: Owner,
    from: True,
    until: True,
    granted: bool,
    calls: Vec<(True, True)>,
}

fn wants(history: &History, lock: Lock, owner: Owner) -> Vec<Want> {
    let mut wants = Vec::new();
    let mut so_far: Vec<(True, True)> = Vec::new();
    for call in calls(history).iter().filter(|call| call.is(lock, owner) && call.acquires()) {
        so_far.push(call.times(history));
        let granted = call.outcome == Some(&Outcome::Ok);
        if granted || call.outcome.is_none() {
            let calls = std::mem::take(&mut so_far);
            wants.push(Want { owner, from: calls[0].0, until: calls[calls.len() - 1].1, granted, calls });
        }
    }
    if let (Some(first), Some(last)) = (so_far.first(), so_far.last()) {
        wants.push(Want { owner, from: first.0, until: last.1, granted: false, calls: so_far.clone() });
    }
    wants
}

/// The end of the time in which events in a call count; `None` for a call that begins while a fault
/// is in force.
fn counts(history: &History, client: Host, (from, over): (True, True)) -> Option<True> {
    let is_client = |host: &Host| history.header.hosts[usize::from(host.0)].kind == HostKind::Client;
    let concerns = |fault: &&Fault| {
        let of_others = fault.targets.iter().filter(|host| is_client(host) && **host != client);
        fault.targets.is_empty() || of_others.count() < fault.targets.len()
    };
    let faults: Vec<&Fault> = history.faults.iter().filter(concerns).collect();
    let in_force =
        |fault: &&Fault| fault.lasts && fault.from <= from && fault.until.is_none_or(|until| from < until);
    let later = faults.iter().map(|fault| fault.from).filter(|begins| *begins >= from);
    (!faults.iter().any(in_force)).then(|| later.chain([over]).min().expect("one at least"))
}

fn overtaken(history: &History, lock: Lock, want: &Want, all: &[Want]) -> usize {
    let client = history.client_of(want.owner);
    let counted = |call: &(True, True)| {
        let Some(until) = counts(history, client, *call) else { return 0 };
        let overtakes = |other: &&Want| {
            let has = |want: &Want| {
                let before = |held: True| held < want.from || held == want.from && want.from < want.until;
                let held = believed(history, lock, want.owner);
                held.iter().any(|held| before(held.from) && want.from < held.until)
            };
            let is_later = other.owner != want.owner && other.from > want.from;
            let got = other.granted && other.until > call.0 && other.until < until;
            is_later && got && !has(other)
        };
        all.iter().filter(overtakes).count()
    };
    want.calls.iter().map(counted).sum()
}

pub(crate) fn judge(history: &History) -> Answer {
    let (mut times, mut unserved, mut most, mut jain): (Vec<Duration>, _, _, f64) = (Vec::new(), 0, 0, 1.0);
    let mut starved = false;
    for lock in history.header.locks() {
        let owners = pairs(history).into_iter().filter(|(of, _)| *of == lock);
        let wants: Vec<Want> = owners.flat_map(|(_, owner)| wants(history, lock, owner)).collect();
        let asked: BTreeSet<Owner> = wants.iter().map(|want| want.owner).collect();
        let got = |owner: Owner| wants.iter().filter(|want| want.owner == owner && want.granted).count();
        let wanted = |owner: Owner| wants.iter().filter(|want| want.owner == owner).count();
        times.extend(wants.iter().map(|want| want.until.since(want.from)));
        unserved += asked.iter().filter(|owner| got(**owner) == 0).count();
        let bound = history.header.bounds.overtaken as usize * asked.len();
        for want in &wants {
            let overtaken = overtaken(history, lock, want, &wants);
            most = most.max(overtaken);
            let has_one_owner = matches!(history.lock(lock).kind, LockKind::Exclusive | LockKind::Fair);
            starved |= has_one_owner && overtaken > bound;
        }
        let shares = asked.iter().filter(|owner| wanted(**owner) > 1 || got(**owner) == 0);
        let shares: Vec<usize> = shares.map(|owner| got(*owner)).collect();
        let sum: usize = shares.iter().sum();
        let squares: usize = shares.iter().map(|share| share * share).sum();
        if sum > 0 {
            jain = jain.min((sum * sum) as f64 / (shares.len() * squares) as f64);
        }
    }
    let word = match () {
        () if starved => "violated",
        () if given_up(history) || times.is_empty() => "undecided",
        () => "holds",
    };
    let of_all = |time: &Duration| times.iter().filter(|other| *other <= time).count() * 100;
    let p99 = times.iter().filter(|time| of_all(time) >= times.len() * 99).min();
    Answer::of(word)
        .time("waited", times.iter().max().copied().unwrap_or_default())
        .time("waited_p99", p99.copied().unwrap_or_default())
        .count("unserved", unserved)
        .count("overtaken", most)
        .measured("jain", Quantity::Number(jain))
}
