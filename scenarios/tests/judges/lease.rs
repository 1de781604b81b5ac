//! The definition of `lease`. A hold begins with a grant that a node counts as the owner's first,
//! or that is the first known one. Later actions of a node (granting a further level, extending,
//! giving back, losing) concern the hold that this node granted last, or else the owner's newest,
//! which the node has by replication. A hold is gone when a node has given all of it back or lost
//! it; when the node, or one in the place of a node that is down or a replica, grants the owner a
//! first hold again; or when the run ends. It has expired if the node lost it by expiry, or if the
//! node's clock, since the key got its last expiry, had shown that to be past: then it was gone at
//! that instant.
//!
//! A node comes back with the hold that it has, or else the newest hold of a node that is down or a
//! replica, or else a new hold begins. The hold has the lease of that node from then on. If the
//! owner learns of it and believes, it is promised until the end of that lease. Levels that the
//! node counts beyond those of the hold lie below the known ones, which become deeper by their
//! number.
//!
//! Each grant, and each extension by its owner, promises a hold a lease. A grant's promise is owed
//! until the lease's end, or until the level that it granted is given back or granted again; an
//! extension's promise until its end. Giving back one level takes no time from the key of a hold:
//! the key may last until the latest end of any of these leases.
//!
//! `cut` is the longest time for which anything was still owed to a hold when it expired.
//! `outlived` is the longest time that a hold existed after it might last. `phantom` is the longest
//! time that one existed after the end of the last belief in it, or since its begin if there was
//! none. The layer is violated iff `cut` or `outlived` exceeds Redis's rounding, two milliseconds,
//! or if a phantom lasts longer than the last lease of the hold and a second, or than a second
//! without a lease. Only locks that one group grants are judged.

use std::{collections::BTreeSet, time::Duration};

use lockstorm::judge::history::{
    Deadline, Event, EventKind, History, Host, Life, Lock, LossCause, Mode, Owner, Role,
};
use lockstorm_world::time::{True, Wall};

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
    /// The key's expiry, and the instant at which it got it.
    expiry: (Option<Wall>, True),
    /// The depth, the end of the debt and the end of the lease, for each grant and renewal.
    promised: Vec<(u32, True, True)>,
    /// If the hold came back with a node: the end of the lease with which it came back, until the
    /// owner has learned of it.
    lasts: True,
    untold: Option<True>,
    gone: Option<(True, bool)>,
}

impl Hold {
    /// A hold that begins, without promises.
    fn begins(node: Host, from: True) -> Hold {
        let (lease_ms, count, promised, untold, gone) = (None, 0, Vec::new(), None, None);
        Hold { from, node, lease_ms, count, expiry: (None, from), promised, lasts: from, untold, gone }
    }

    /// Ends promises of this depth and deeper now.
    fn ends(&mut self, depth: u32, now: True) {
        let deep = self.promised.iter_mut().filter(|(of, ..)| *of >= depth);
        deep.for_each(|(_, owed, _)| *owed = now.min(*owed));
    }

    fn goes(&mut self, history: &History, node: Host, now: True, expired: bool) {
        let (expiry, since) = self.expiry;
        // Redis deletes a key once its clock is past the millisecond of the expiry.
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
