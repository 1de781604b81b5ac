//! The definition of `reentrancy`. An owner's calls add up to one hold for each acquire that
//! succeeded, less one for each release that did. A refused release shows that nothing is held. A
//! release that certainly failed may have found nothing, so that the hold counts as one that may be
//! lost. The node's count is its last report: what it granted, has left, or has lost. If it has
//! lost the hold, or another node has become master and may not have it, the sum becomes the node's
//! count at the next acquire that succeeds, but at least one and at most the sum before. A call
//! that failed without showing if it was executed leaves room for one hold more or less until the
//! owner's next acquire that succeeds; the node's count then shows how many of the releases in
//! doubt were executed. Each hold by which the sum fell after a loss leaves such room, too, until a
//! release that finds no other, a refused release, or the owner's learning that it holds nothing;
//! none if it had learned that since its acquire before. Once a crash has ended a call, nothing is
//! known of the owner: a client that starts again is another one.
//!
//! A node may come back with more levels than it counted last. That many may be too many while it
//! counts them; after an acquire that succeeds, as many as the node's count exceeds the sum. If it
//! comes back with fewer, a hold is lost.
//!
//! The two are compared whenever an acquire or a release has succeeded and all other calls of that
//! kind of the owner are over. `off` is the largest excess or deficit of the count; it is no
//! deficit if a hold was lost since the owner's last acquire before. `deepest` is the highest count
//! that any node granted. The count of a real node is read a moment later: there the two are not
//! compared if the owner asks again within fifty milliseconds, and otherwise by all reports of the
//! node about the owner until then.
//!
//! Locks of a quorum and permits are not judged. The question arose if a count was two or more; if
//! a call succeeded for which another one had left room; if an acquire succeeded while a node
//! counted levels with which it had come back; or if one succeeded after an acquire was refused
//! although the node had granted the lock since the last success.

use std::{collections::BTreeMap, time::Duration};

use lockstorm::judge::history::{Call, Event, EventKind, History, Lock, Mode, Outcome, Owner, Role};

use crate::{
    Answer,
    past::{Asked, calls, given_up, pairs},
};

/// The sum of an owner's calls.
#[derive(Debug, Default)]
struct Account {
    holds: u32,
    more: u32,
    less: u32,
    lost: bool,
    /// Lost holds that the owner may believe it has, and true if it knows that it has none.
    thought: u32,
    knows: bool,
    /// Levels with which a node came back.
    back: u32,
    /// The node's count in each mode.
    counts: BTreeMap<Mode, u32>,
    /// True after any event of the owner, and true if it was granted the lock since its last
    /// success.
    known: bool,
    granted: bool,
    /// True if an acquire was refused although the lock had been granted.
    refused: bool,
}

impl Account {
    fn counted(&self) -> u32 {
        self.counts.values().sum()
    }
}

/// The largest deviation of the count, the highest count, and true if a success followed a call
/// that left room.
fn account(history: &History, lock: Lock, owner: Owner, calls: &[Asked<'_>]) -> (u32, u32, bool) {
    let authority = &history.lock(lock).authority;
    let mut account = Account::default();
    let (mut off, mut deepest, mut again) = (0, 0, false);
    for (number, event) in history.events.iter().enumerate() {
        let of_node = authority.group_of(event.host).is_some();
        match &event.kind {
            EventKind::Became { role: Role::Master } if of_node => account.lost |= account.known,
            EventKind::Invoke {
                lock: of, owner: whose, call: Call::Acquire { .. } | Call::Release, ..
            } => {
                account.known |= (*of, *whose) == (lock, owner);
            }
            EventKind::Disbelieves { lock: of, owner: whose, .. } if (*of, *whose) == (lock, owner) => {
                (account.thought, account.knows) = (0, true);
            }
            _ if event.kind.lock() == Some(lock) && event.kind.owner() == Some(owner) && of_node => {
                account.known |= matches!(
                    event.kind,
                    EventKind::Granted { .. }
                        | EventKind::Released { .. }
                        | EventKind::Vanished { .. }
                        | EventKind::Regained { .. }
                );
                match &event.kind {
                    EventKind::Granted { count, mode, .. } => {
                        account.counts.insert(*mode, *count);
                        account.granted = true;
                        deepest = deepest.max(*count);
                    }
                    EventKind::Released { left, mode, .. } => {
                        account.counts.insert(*mode, *left);
                    }
                    EventKind::Vanished { mode, .. } => {
                        account.counts.insert(*mode, 0);
                        account.lost = true;
                    }
                    EventKind::Regained { count, mode, .. } => {
                        let before = account.counts.insert(*mode, *count).unwrap_or(0);
                        account.back += count.saturating_sub(before);
                        account.lost |= *count < before;
                    }
                    _ => {}
                }
                account.back = account.back.min(account.counted());
            }
            EventKind::Return { .. } | EventKind::Life { .. } => {
                let ended = calls.iter().filter(|call| call.ended == Some(number));
                for call in ended {
                    let settles = !asks_on(history, owner, number);
                    let (counts, lost) = (account.counts.clone(), account.lost);
                    let was_lost = settles && hears_late(history, (lock, owner), number, &mut account.counts);
                    let (counted, lost) = (account.counted(), lost || was_lost);
                    again |= books(&mut account, call);
                    account.counts = counts;
                    let ended_by_crash = |call: &Asked<'_>| {
                        call.outcome.is_none() && call.ended.is_some_and(|ended| ended <= number)
                    };
                    let under_way = calls.iter().any(|call| call.under_way(number) || ended_by_crash(call));
                    if call.outcome != Some(&Outcome::Ok) || under_way || !settles {
                        continue;
                    }
                    let high =
                        counted.saturating_sub(account.holds + account.more + account.thought + account.back);
                    let low = account.holds.saturating_sub(account.less).saturating_sub(counted);
                    off = off.max(high).max(if lost { 0 } else { low });
                }
            }
            _ => {}
        }
    }
    (off, deepest, again)
}

/// Books a call that is over; returns true if it succeeded where another had left room.
fn books(account: &mut Account, call: &Asked<'_>) -> bool {
    let unsure = matches!(call.outcome, Some(Outcome::Failed { definite: false, .. }));
    match (call.acquires(), call.outcome) {
        (true, Some(Outcome::Ok)) => {
            account.holds += 1;
            let knows = std::mem::take(&mut account.knows);
            if std::mem::take(&mut account.lost) {
                let left = account.counted().clamp(1, account.holds);
                if !knows {
                    account.thought += account.holds - left;
                }
                account.holds = left;
            }
            let least = account.holds.saturating_sub(std::mem::take(&mut account.less));
            account.holds = account.counted().clamp(least, account.holds);
            let beside = account.back > 0;
            account.back = account.back.min(account.counted().saturating_sub(account.holds));
            account.granted = false;
            let refused = std::mem::take(&mut account.refused);
            std::mem::take(&mut account.more) > 0 || refused || beside
        }
        (false, Some(Outcome::Ok)) => {
            let spare = if account.holds > 0 { &mut account.holds } else { &mut account.thought };
            *spare = spare.saturating_sub(1);
            account.less > 0
        }
        (false, Some(Outcome::Refused)) => {
            (account.holds, account.less, account.thought) = (0, 0, 0);
            false
        }
        (true, Some(Outcome::Refused)) => {
            account.refused |= account.granted;
            false
        }
        (true, _) if unsure => {
            account.more += 1;
            false
        }
        (false, _) if unsure => {
            account.less += 1;
            false
        }
        (false, Some(Outcome::Failed { definite: true, .. })) => {
            account.lost = true;
            false
        }
        _ => false,
    }
}

/// Books a real node's report about the owner within the time in which the count is read; returns
/// true if it reports a lost hold.
fn hears_late(
    history: &History,
    (lock, owner): (Lock, Owner),
    number: usize,
    counts: &mut BTreeMap<Mode, u32>,
) -> bool {
    let now = history.events[number].at;
    let mut lost = false;
    for event in history.events[number..].iter().filter(|_| history.header.is_real()) {
        let of_node = history.lock(lock).authority.group_of(event.host).is_some();
        let is_of_owner = event.kind.lock() == Some(lock) && event.kind.owner() == Some(owner);
        if !of_node || !is_of_owner || event.at.since(now) > Duration::from_millis(50) {
            continue;
        }
        match &event.kind {
            EventKind::Granted { count, mode, .. } => _ = counts.insert(*mode, *count),
            EventKind::Released { left, mode, .. } => _ = counts.insert(*mode, *left),
            EventKind::Vanished { mode, .. } => {
                counts.insert(*mode, 0);
                lost = true;
            }
            _ => {}
        }
    }
    lost
}

/// Returns true if the count of a real node may already include the owner's next request.
fn asks_on(history: &History, owner: Owner, number: usize) -> bool {
    let now = history.events[number].at;
    let asks = |event: &Event| {
        matches!(event.kind, EventKind::Invoke { owner: whose, .. } if whose == owner)
            && event.at.since(now) <= Duration::from_millis(50)
    };
    history.header.is_real() && history.events[number..].iter().any(asks)
}

pub(crate) fn judge(history: &History) -> Answer {
    let judged = |lock: Lock| {
        let info = history.lock(lock);
        info.authority.quorum == 1 && info.kind.is_exclusive()
    };
    let calls = calls(history);
    let (mut off, mut deepest, mut again) = (0, 0, false);
    for (lock, owner) in pairs(history) {
        let of_owner =
            |call: &&Asked<'_>| call.is(lock, owner) && (call.acquires() || call.call == Call::Release);
        let calls: Vec<Asked<'_>> = calls.iter().filter(of_owner).copied().collect();
        let found = account(history, lock, owner, &calls);
        if judged(lock) {
            off = off.max(found.0);
        }
        (deepest, again) = (deepest.max(found.1), again || found.2);
    }
    let word = match off {
        1.. => "violated",
        0 if given_up(history) || !history.header.locks().any(judged) => "undecided",
        0 if deepest < 2 && !again => "undecided",
        0 => "holds",
    };
    Answer::of(word).count("off", off as usize).count("deepest", deepest as usize)
}
