//! Leases, as they are defined. A hold begins with a grant that a node counts as the owner's first,
//! or as the first that is known. What a node does later, to grant one more, extend, give back or
//! lose, is about the hold that this node granted last, or else about the owner's newest, which the
//! node has by replication. A hold is gone when a node has given all of it back or lost it; when
//! the node, or one in the place of a node that is down or a replica, grants the owner its first
//! hold anew; when the run ends. It has expired if the node lost it so, or if that node's clock,
//! since the key got the expiry that it had last, had shown it to be past: then it was gone at that
//! instant.
//!
//! With a node comes back the hold that it has, or else the newest that a node has which is down or
//! a replica, or else a new hold begins. It has the lease of that node from then on. If the owner
//! is told of it with a belief, what came back is promised until the end of that lease. Levels that
//! the node counts more than had been counted of the hold are below those that it has, which are so
//! much deeper.
//!
//! Each grant and each extension by its owner promises a hold a lease. What a grant promises is
//! owed until the lease's end, or until the level that it granted is given back or granted anew;
//! what an extension promises, until the end. Nothing takes time from the key of a hold when one
//! level is given back: the key may last until the latest end of any of these leases.
//!
//! `cut` is for how much longer anything was owed to a hold when it expired, `outlived` how long
//! one was there after it might last, `phantom` how long one was there after the end of the last
//! belief in it, or since it began if there was none; each at most. The layer is violated iff one
//! of the first two exceeds what Redis rounds, two milliseconds, or if a phantom lasts longer than
//! the lease that the hold had last and a second, or than a second if it had none. Judged are locks
//! that one group grants.

use std::{collections::BTreeSet, time::Duration};

use lockstorm::judge::history::{
    Deadline, Event, EventKind, History, Host, Life, Lock, LossCause, Mode, Owner, Role,
};
use lockstorm_sim::time::{True, Wall};

use crate::{
    Answer,
    past::{believed, given_up, own, pairs, shown},
};

#[derive(Debug, Clone)]
struct Hold {
    from: True,
    node: Host,
    lease_ms: Option<u64>,
    count: u32,
    /// The key's expiry, and since when it has it.
    expiry: (Option<Wall>, True),
    /// How deep, until when it is owed, and until when it was to last: each grant and each renewal.
    promised: Vec<(u32, True, True)>,
    /// Until when it may last by the lease with which it came back, and until its owner has been
    /// told of that.
    lasts: True,
    untold: Option<True>,
    gone: Option<(True, bool)>,
}

impl Hold {
    /// One that begins, with nothing promised.
    fn begins(node: Host, from: True) -> Hold {
        let (lease_ms, count, promised, untold, gone) = (None, 0, Vec::new(), None, None);
        Hold { from, node, lease_ms, count, expiry: (None, from), promised, lasts: from, untold, gone }
    }

    /// Promises of this depth and deeper end now.
    fn ends(&mut self, depth: u32, now: True) {
        let deep = self.promised.iter_mut().filter(|(of, ..)| *of >= depth);
        deep.for_each(|(_, owed, _)| *owed = now.min(*owed));
    }

    fn goes(&mut self, history: &History, node: Host, now: True, expired: bool) {
        let (expiry, since) = self.expiry;
        // Redis drops a key when its clock has left the millisecond of the expiry behind.
        let past = expiry.map(|expiry| Wall::from_millis(expiry.as_millis()) + Duration::from_millis(1));
        let over = past.map_or(True::MAX, |past| shown(history, node, Deadline::from(past), since));
        self.gone = Some(if over <= now { (over, true) } else { (now, expired) });
    }
}

/// The nodes that are down or replicas after an event.
fn retired(history: &History, after: usize) -> BTreeSet<Host> {
    let mut retired = BTreeSet::new();
    for event in &history.events[..=after] {
        match event.kind {
            EventKind::Life { life: Life::Crashed } | EventKind::Became { role: Role::Replica } => {
                retired.insert(event.host);
            }
            EventKind::Life { life: Life::Started } | EventKind::Became { role: Role::Master } => {
                retired.remove(&event.host);
            }
            _ => {}
        }
    }
    retired
}

/// All holds that an owner had of a lock in a mode.
fn holds(history: &History, lock: Lock, owner: Owner, mode: Mode) -> Vec<Hold> {
    let authority = &history.lock(lock).authority;
    let about = |event: &Event| {
        authority.group_of(event.host).is_some() && event.kind.hold() == Some((lock, owner, mode))
    };
    let mut holds: Vec<Hold> = Vec::new();
    for (number, event) in history.events.iter().enumerate() {
        let (now, node) = (event.at, event.host);
        if matches!(event.kind, EventKind::Believes { .. }) && event.kind.hold() == Some((lock, owner, mode))
        {
            let told = holds.iter_mut().filter(|hold| hold.gone.is_none() && authority.groups.len() == 1);
            for hold in told {
                let until = hold.untold.take().filter(|until| *until > now);
                hold.promised.extend(until.map(|until| (1, until, until)));
            }
        }
        if !about(event) {
            continue;
        }
        let end =
            |lease_ms: &Option<u64>| lease_ms.map_or(True::MAX, |lease| now + Duration::from_millis(lease));
        if let EventKind::Granted { count: 0 | 1, .. } = &event.kind {
            let retired = retired(history, number);
            let there =
                |hold: &&mut Hold| hold.gone.is_none() && (hold.node == node || retired.contains(&hold.node));
            holds.iter_mut().filter(there).for_each(|hold| hold.goes(history, node, now, false));
        }
        let here = holds.iter().position(|hold| hold.gone.is_none() && hold.node == node);
        let meant = here.or_else(|| holds.iter().rposition(|hold| hold.gone.is_none()));
        match &event.kind {
            EventKind::Granted { lease_ms, until, count, .. } => {
                let promise = ((*count).max(1), end(lease_ms), end(lease_ms));
                match meant.filter(|_| *count > 1).map(|meant| &mut holds[meant]) {
                    Some(hold) => {
                        hold.ends(*count, now);
                        hold.promised.push(promise);
                        (hold.node, hold.lease_ms, hold.expiry) = (node, *lease_ms, (*until, now));
                        (hold.count, hold.untold) = (*count, None);
                    }
                    None => holds.push(Hold {
                        lease_ms: *lease_ms,
                        count: *count,
                        expiry: (*until, now),
                        promised: vec![promise],
                        ..Hold::begins(node, now)
                    }),
                }
            }
            EventKind::Regained { lease_ms, until, count, .. } => {
                let retired = retired(history, number);
                let newest =
                    holds.iter().rposition(|hold| hold.gone.is_none() && retired.contains(&hold.node));
                if here.or(newest).is_none() {
                    holds.push(Hold::begins(node, now));
                }
                let last = holds.len() - 1;
                let hold = &mut holds[here.or(newest).unwrap_or(last)];
                let more = count.saturating_sub(hold.count);
                hold.promised.iter_mut().for_each(|(depth, ..)| *depth += more);
                (hold.node, hold.lease_ms, hold.expiry) = (node, *lease_ms, (*until, now));
                (hold.count, hold.untold) = (*count, Some(end(lease_ms)));
                hold.lasts = hold.lasts.max(end(lease_ms));
            }
            EventKind::Extended { lease_ms, until, by, .. } => {
                let Some(hold) = meant.map(|meant| &mut holds[meant]) else { continue };
                (hold.lease_ms, hold.expiry) = (*lease_ms, (*until, now));
                if own(history, owner, *by) {
                    hold.promised.push((1, end(lease_ms), end(lease_ms)));
                    hold.untold = None;
                }
            }
            EventKind::Released { left: 0, .. } => {
                meant.into_iter().for_each(|meant| holds[meant].goes(history, node, now, false));
            }
            EventKind::Released { left, until, .. } => {
                let Some(hold) = meant.map(|meant| &mut holds[meant]) else { continue };
                hold.ends(left + 1, now);
                hold.count = *left;
                if until.is_some() {
                    hold.expiry = (*until, now);
                }
            }
            EventKind::Vanished { how, .. } => {
                let expired = *how == LossCause::Expired;
                meant.into_iter().for_each(|meant| holds[meant].goes(history, node, now, expired));
            }
            _ => {}
        }
    }
    for hold in holds.iter_mut().filter(|hold| hold.gone.is_none()) {
        hold.goes(history, hold.node, history.header.end, false);
    }
    holds
}

pub(crate) fn judge(history: &History) -> Answer {
    let rounding = Duration::from_millis(2);
    let (mut cut, mut outlived, mut phantom) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    let (mut seen, mut wrong) = (false, false);
    let modes = [Mode::Exclusive, Mode::Shared];
    let pairs = pairs(history).into_iter();
    for ((lock, owner), mode) in pairs.flat_map(|pair| modes.map(|mode| (pair, mode))) {
        if history.lock(lock).authority.quorum != 1 {
            continue;
        }
        for hold in holds(history, lock, owner, mode) {
            let (gone, expired) = hold.gone.expect("the run is over for every hold");
            let owed = hold.promised.iter().map(|(_, owed, _)| *owed).max().unwrap_or(hold.from);
            let lasts = hold.promised.iter().map(|(.., lasts)| *lasts).fold(hold.lasts, True::max);
            let beliefs = believed(history, lock, owner);
            let beliefs = beliefs
                .iter()
                .filter(|belief| belief.mode == mode && belief.from < gone)
                .map(|belief| belief.until);
            let wanted = beliefs.max().unwrap_or(hold.from).max(hold.from);
            let short = if expired { owed.since(gone) } else { Duration::ZERO };
            let (long, unwanted) = (gone.since(lasts), gone.since(wanted));
            let bound = Duration::from_millis(hold.lease_ms.unwrap_or(0)) + Duration::from_secs(1);
            seen = true;
            wrong |= short > rounding || long > rounding || unwanted > bound;
            (cut, outlived, phantom) = (cut.max(short), outlived.max(long), phantom.max(unwanted));
        }
    }
    let word = match wrong {
        true => "violated",
        false if given_up(history) || !seen => "undecided",
        false => "holds",
    };
    Answer::of(word).time("cut", cut).time("outlived", outlived).time("phantom", phantom)
}
