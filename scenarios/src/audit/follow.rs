//! Follows one call on one lock: compares the lock before and after it, and finds faults.

use std::rc::Rc;

use super::{
    command::{Call, Command, Verb, host_of},
    findings::{Findings, Former, Kind, Leases, Place},
    locks::{End, Hold, Leased, Lock},
    names::length,
    owners::is_redisson_owner,
    scripts::{self, Purpose},
    shadow::Held,
};

/// A key may end this long before or after the copy's expiry: the server computes the expiry
/// slightly before MONITOR shows the command.
const NEAR_MS: i64 = 20;

/// A lock without expiry that gets one within this time was acquired in two commands.
const TWO_STEPS_US: i64 = 1_000_000;

/// A call on a lock, and its meaning.
#[derive(Debug)]
pub(super) struct Act<'a> {
    pub(super) place: Place<'a>,
    pub(super) call: &'a Rc<Call>,
    /// The commands on the lock's key.
    pub(super) own: &'a [&'a Command],
    pub(super) purpose: Purpose,
    /// The owner for which the call was sent, if it names one.
    pub(super) owner: Option<String>,
    /// The key after the call.
    pub(super) after: Option<Held>,
    /// Set if the grant of a SET NX may have been refused.
    pub(super) may_be_refused: bool,
    /// The share of a lease in percent from which a renewal counts as late.
    pub(super) late_percent: i64,
}

impl Act<'_> {
    fn at_us(&self) -> i64 {
        self.call.at_us
    }

    /// Returns the name under which its sender waits: the owner's, if it keeps it, or the address.
    fn waiter(&self) -> &str {
        match &self.owner {
            Some(owner) if self.is_of_hash() => owner,
            _ => &self.call.client,
        }
    }

    /// Returns true for a script on a key that is a hash of owners.
    pub(super) fn is_of_hash(&self) -> bool {
        self.call.command.verb.calls_script() && self.own.iter().any(|command| command.is_of_hash())
    }

    /// Returns true for a script that reads the key and does not change it.
    fn only_reads(&self) -> bool {
        !self.own.is_empty() && self.own.iter().all(|command| !command.verb.changes())
    }

    /// Returns true for a command that deletes the key without a check.
    fn is_bare(&self) -> bool {
        !self.call.command.verb.calls_script() && self.owner.is_none()
    }
}

/// Ends the hold if its lease is over. Returns true if it was.
pub(super) fn lapse(lock: &mut Lock, now_ms: i64) -> bool {
    let ends = lock.hold.as_ref().and_then(|hold| hold.expires_ms).filter(|at| *at < now_ms);
    // A hold of a master that was replaced may have been renewed before its successor was followed.
    let end =
        if lock.hold.as_ref().is_some_and(|hold| hold.moved.is_some()) { End::Unknown } else { End::Expired };
    ends.is_some_and(|at| lock.ends(at.saturating_mul(1_000), end).is_some())
}

/// Returns the owner that the node must have had before the call, if its script shows one that
/// differs from the copy: `Some(None)` for a free key.
pub(super) fn shown(act: &Act<'_>, lock: &Lock) -> Option<Option<String>> {
    let owner = act.owner.as_deref();
    if lacks_moved(lock, act) {
        return Some(None);
    }
    let holder = lock.hold.as_ref();
    let mut own = act.own.iter().copied();
    let first = own.next()?;
    let gets = first.word(0).eq_ignore_ascii_case(b"get");
    let looks = first.verb == Verb::Read && !gets;
    let second = own.next();
    // A script of Redisson or node-redlock that finds no key sets it at once.
    let takes = |next: &Command| {
        matches!(next.verb, Verb::Hincrby | Verb::Set | Verb::SetNx) || scripts::owns(next, false)
    };
    if looks && second.is_some_and(takes) {
        return holder.is_some().then_some(None);
    }
    let reads = first.verb == Verb::Read && gets;
    if reads && act.purpose == Purpose::Acquire && second.is_some_and(|next| next.verb == Verb::Set) {
        // Spring's script sets a key that it did not find.
        return holder.filter(|hold| Some(&*hold.owner) != owner).is_some().then_some(None);
    }
    // A script that extends may look at the rest of the lease after it compared.
    let change = second.into_iter().chain(own).find(|next| next.verb != Verb::Read);
    let changes = change.is_some_and(|next| matches!(next.verb, Verb::Del | Verb::Expire | Verb::Set))
        || first.verb == Verb::Hexists && second.is_some_and(|next| next.verb.changes());
    let owner = owner.filter(|_| (reads || first.verb == Verb::Hexists) && changes)?;
    let differs = holder.is_none_or(|hold| hold.owner != owner);
    // A hold that is sure, of an owner that never asked: then the script does not compare.
    let compares =
        holder.is_none_or(|hold| !hold.is_sure) || lock.has_refused(owner) || first.verb == Verb::Hexists;
    (differs && compares).then(|| Some(owner.to_owned()))
}

/// Corrects a lock whose node had another holder than the copy before this call.
pub(super) fn correct(lock: &mut Lock, had: Option<&str>, act: &Act<'_>, findings: &mut Findings) {
    let now_ms = act.call.at_ms();
    findings.leases = Leases { lost: lock.hold.as_ref().map(Hold::leased), former: None };
    if let Some(hold) = &lock.hold {
        let is_near = hold.expires_ms.is_some_and(|at| at <= now_ms + NEAR_MS);
        let (is_sure, owner, grant) = (hold.is_sure, hold.owner.clone(), hold.grant.clone());
        let moved = hold.moved.clone();
        if is_near || !is_sure {
            lock.ends(act.at_us(), if is_near { End::Expired } else { End::Unknown });
        } else {
            let says = match &moved {
                Some(master) => format!("{master} granted it, and the master in its place did not have it"),
                None => {
                    "the key had no longer this holder, and the capture shows no command that ended the hold"
                        .to_owned()
                }
            };
            let parts = [(&grant, "granted it"), (act.call, "found it gone")];
            let finding = findings.add(Kind::Unexplained, act.place, &owner, act.at_us(), says, &parts);
            if let Some(finding) = finding.and_then(|at| findings.list.get_mut(at)) {
                finding.has_moved = moved.is_some();
            }
            if let Some(past) = lock.ends(act.at_us(), End::Unknown) {
                past.finding = finding;
            }
        }
    }
    let Some(had) = had else { return };
    // The owner's lease was not over yet, or its request was granted and not refused.
    let former = lock.past.iter().rev().find(|past| past.owner == had).map(|past| past.grant.clone());
    let grant = former.unwrap_or_else(|| act.call.clone());
    let hold = Hold {
        owner: had.to_owned(),
        since_us: act.at_us(),
        set_us: act.at_us(),
        lease_ms: None,
        expires_ms: None,
        levels: 1,
        renewed: 0,
        grant,
        is_sure: true,
        moved: None,
    };
    lock.begins(hold, act.waiter());
}

/// Follows a call on a lock.
pub(super) fn follow(lock: &mut Lock, act: &Act<'_>, findings: &mut Findings) {
    lock.last_us = act.at_us();
    findings.leases = Leases { lost: lock.hold.as_ref().map(Hold::leased), former: None };
    lock.is_proven |= act.call.command.verb.calls_script() && act.purpose != Purpose::Unknown;
    let holder = lock.hold.as_ref().map(|hold| hold.owner.clone());
    if let Some(owner) = &act.owner
        && holder.as_ref() != Some(owner)
        && matches!(act.purpose, Purpose::Renew | Purpose::Release)
    {
        came_back(lock, act, owner, findings);
    }
    match (holder, &act.after) {
        (None, None) => {
            if act.purpose == Purpose::Acquire {
                lock.refuses(act.owner.as_deref(), act.waiter(), act.at_us());
            } else if act.is_bare() && matches!(act.call.command.verb, Verb::Del | Verb::Expire) {
                came_late(lock, act, findings);
            }
        }
        (None, Some(after)) => granted(lock, act, after),
        (Some(holder), None) => ended(lock, act, &holder, findings),
        (Some(holder), Some(after)) if holder == after.owner => kept(lock, act, after, findings),
        (Some(holder), Some(after)) => {
            let grant = lock.hold.as_ref().map(|hold| hold.grant.clone());
            let is_sure = lock.hold.as_ref().is_some_and(|hold| hold.is_sure && hold.moved.is_none());
            let mut parts = Vec::new();
            parts.extend(grant.as_ref().map(|grant| (grant, "granted it")));
            parts.push((act.call, "replaced the holder"));
            let says = format!("{} replaced its holder by another value", act.call.command.name());
            let finding = is_sure
                .then(|| findings.add(Kind::Overwritten, act.place, &holder, act.at_us(), says, &parts))
                .flatten();
            if let Some(past) = lock.ends(act.at_us(), if is_sure { End::Broken } else { End::Unknown }) {
                past.finding = finding;
            }
            granted(lock, act, after);
        }
    }
}

/// Returns true if the holder's script finds that a successor of the master lacks its hold: it only
/// reads, as a script does whose comparison fails.
fn lacks_moved(lock: &Lock, act: &Act<'_>) -> bool {
    let Some(hold) = lock.hold.as_ref().filter(|hold| hold.moved.is_some() && hold.is_sure) else {
        return false;
    };
    matches!(act.purpose, Purpose::Renew | Purpose::Release)
        && act.owner.as_ref() == Some(&hold.owner)
        && act.only_reads()
}

/// Records a grant.
fn granted(lock: &mut Lock, act: &Act<'_>, after: &Held) {
    let lease_ms = after.expires_ms.map(|at| at - act.call.at_ms());
    lock.figures.without_expiry += u64::from(lease_ms.is_none());
    let just_over = lock
        .past
        .back()
        .is_some_and(|past| past.end == End::Expired && act.at_us() - past.ended_us <= NEAR_MS * 1_000);
    let hold = Hold {
        owner: after.owner.clone(),
        since_us: act.at_us(),
        set_us: act.at_us(),
        lease_ms,
        expires_ms: after.expires_ms,
        levels: after.levels,
        renewed: 0,
        grant: act.call.clone(),
        is_sure: act.call.command.verb.calls_script()
            || !act.call.command.creates()
            || !(act.may_be_refused || just_over),
        moved: None,
    };
    lock.begins(hold, act.waiter());
}

/// Follows a call after which the holder is the same.
fn kept(lock: &mut Lock, act: &Act<'_>, after: &Held, findings: &mut Findings) {
    let Some(hold) = &mut lock.hold else { return };
    let is_same = hold.expires_ms == after.expires_ms && hold.levels == after.levels;
    if is_same {
        if act.purpose == Purpose::Acquire {
            let asks_again = act.owner.as_ref() == Some(&hold.owner) && hold.grant.client == act.call.client;
            if asks_again && !hold.is_sure {
                // The first request was refused, and this one may be granted.
                (hold.since_us, hold.set_us, hold.grant) = (act.at_us(), act.at_us(), act.call.clone());
                return;
            }
            lock.refuses(act.owner.as_deref(), act.waiter(), act.at_us());
        }
        return;
    }
    let by_owner = act.owner.as_ref() == Some(&hold.owner);
    let by_same = by_owner || host_of(&act.call.client) == host_of(&hold.grant.client);
    let grant = hold.grant.clone();
    let has_moved = hold.moved.is_some();
    if by_owner {
        // The master has the hold.
        (hold.is_sure, hold.moved) = (true, None);
        shares_name(lock, act, findings);
    } else if !by_same && !has_moved {
        let says = format!("{} changed its lease and is not its holder", act.call.client);
        let parts = [(&grant, "granted it"), (act.call, "changed the lease")];
        findings.add(Kind::ExtendedByOther, act.place, &after.owner, act.at_us(), says, &parts);
    }
    let Some(hold) = &mut lock.hold else { return };
    let takes_level = after.levels > hold.levels;
    hold.levels = after.levels;
    if takes_level {
        lock.figures.grants += 1;
    }
    let (lease_ms, passed_us) = (hold.lease_ms, act.at_us() - hold.set_us);
    if lease_ms.is_none() && after.expires_ms.is_some() && act.at_us() - hold.since_us <= TWO_STEPS_US {
        lock.figures.without_expiry = lock.figures.without_expiry.saturating_sub(1);
    }
    let is_renewal = !takes_level && act.purpose != Purpose::Release;
    let percent = lock.renews(act.at_us(), after.expires_ms, is_renewal);
    if let Some(percent) = percent.filter(|percent| by_owner && *percent >= act.late_percent) {
        let lease = length(lease_ms.unwrap_or(0).saturating_mul(1_000));
        let says = format!("renewed after {} of a lease of {lease}, at {percent} % of it", length(passed_us));
        let parts = [(&grant, "granted it"), (act.call, "renewed it")];
        // A library that always renews late gets one notice for each lock.
        match lock.near_miss.and_then(|notice| findings.list.get_mut(notice)) {
            Some(notice) => notice.times += 1,
            None => {
                lock.near_miss =
                    findings.add(Kind::NearMiss, act.place, &after.owner, act.at_us(), says, &parts);
            }
        }
    }
}

/// Follows a call that ended the hold.
fn ended(lock: &mut Lock, act: &Act<'_>, holder: &str, findings: &mut Findings) {
    let Some(hold) = &lock.hold else { return };
    if hold.moved.is_some() && act.owner.as_deref() != Some(holder) {
        lock.ends(act.at_us(), End::Unknown);
        return;
    }
    let (grant, since_us, is_sure) = (hold.grant.clone(), hold.since_us, hold.is_sure);
    let lasted = length(act.at_us() - since_us);
    let place = act.place;
    if act.owner.as_deref() == Some(holder) {
        // The script has found the owner's name.
        if let Some(hold) = &mut lock.hold {
            hold.is_sure = true;
        }
        shares_name(lock, act, findings);
        no_expiry(lock, place, act.at_us(), findings);
        lock.ends(act.at_us(), End::Released);
        return;
    }
    let flushes = matches!(act.call.command.verb, Verb::FlushAll | Verb::FlushDb);
    let former = lock
        .past
        .iter()
        .rev()
        .find(|past| past.is_sure && past.grant.client == act.call.client && past.owner != holder);
    if flushes {
        let says = format!("{} deleted the lock {lasted} after its grant", act.call.command.name());
        let parts = [(&grant, "granted it"), (act.call, "deleted all keys")];
        let finding = findings.add(Kind::Flushed, place, holder, act.at_us(), says, &parts);
        return break_off(lock, act, finding);
    }
    if act.is_bare() && grant.client == act.call.client {
        lock.figures.unchecked += 1;
        no_expiry(lock, place, act.at_us(), findings);
        lock.ends(act.at_us(), End::Released);
        return;
    }
    if let Some(former) = former {
        let former_grant = former.grant.clone();
        findings.leases.former = Some(Former {
            leased: former.leased(),
            ended_us: former.ended_us,
            has_expired: former.end == End::Expired,
        });
        let says = format!(
            "{} deleted another owner's lock {lasted} after its grant: its own hold had ended {} before",
            act.call.client,
            length(act.at_us() - former.ended_us)
        );
        let parts = [
            (&former_grant, "had acquired it before"),
            (&grant, "granted it to the next owner"),
            (act.call, "deleted the next owner's lock"),
        ];
        let finding = findings.add(Kind::ReleasedByOther, place, holder, act.at_us(), says, &parts);
        lock.figures.unchecked += u64::from(act.is_bare());
        return break_off(lock, act, finding);
    }
    if !is_sure && !act.is_bare() {
        lock.ends(act.at_us(), End::Unknown);
        return;
    }
    let is_release = act.purpose == Purpose::Release && act.owner.is_some();
    let kind = if is_release { Kind::ReleasedByOther } else { Kind::Deleted };
    let says = format!(
        "{} from {} deleted the lock {lasted} after its grant to another client",
        act.call.command.name(),
        act.call.client
    );
    let parts = [(&grant, "granted it"), (act.call, "deleted it")];
    let finding = findings.add(kind, place, holder, act.at_us(), says, &parts);
    break_off(lock, act, finding);
}

fn break_off(lock: &mut Lock, act: &Act<'_>, finding: Option<usize>) {
    if let Some(past) = lock.ends(act.at_us(), End::Broken) {
        past.finding = finding;
    }
}

/// Records that an owner renews or releases a hold that has ended.
fn came_back(lock: &mut Lock, act: &Act<'_>, owner: &str, findings: &mut Findings) {
    let does = if act.purpose == Purpose::Renew { "renewed" } else { "released" };
    let Some(past) = lock.lost(owner) else { return is_not_holder(lock, act, owner, findings) };
    if let Some(finding) = past.finding {
        return findings.confirm(finding, (act.call, "the former holder came back"));
    }
    if past.end != End::Expired || !past.is_sure {
        return;
    }
    let late = length(act.at_us() - past.ended_us);
    let lease =
        past.lease_ms.map_or_else(|| "unknown length".to_owned(), |ms| length(ms.saturating_mul(1_000)));
    let (grant, next, leased) = (past.grant.clone(), past.next.clone(), past.leased());
    let after = match leased.renewed {
        0 => "no renewal".to_owned(),
        1 => "1 renewal".to_owned(),
        count => format!("{count} renewals"),
    };
    let renewed = leased.renewed + u64::from(act.purpose == Purpose::Renew);
    let (kind, says) = match &next {
        Some(_) => (
            Kind::GrantedTwice,
            format!(
                "its lease of {lease} ended after {after}, another owner was granted it, and the former \
                 holder {does} it {late} later"
            ),
        ),
        None => (
            Kind::Late,
            format!("its lease of {lease} ended after {after}, and its holder {does} it {late} later"),
        ),
    };
    let mut parts = vec![(&grant, "granted it")];
    parts.extend(next.as_ref().map(|(_, call)| (call, "granted it to the next owner")));
    parts.push((act.call, "the former holder came back"));
    let lost = findings.leases.lost.replace(Leased { renewed, ..leased });
    let finding = findings.add(kind, act.place, owner, act.at_us(), says, &parts);
    findings.leases.lost = lost;
    if let Some(finding) = finding.and_then(|at| findings.list.get_mut(at)) {
        finding.is_confirmed = true;
    }
    if let Some(past) = lock.lost(owner) {
        past.finding = finding;
    }
}

/// Notes a release by an owner that does not hold the lock. A client that was refused the lock may
/// clean up after itself.
fn is_not_holder(lock: &mut Lock, act: &Act<'_>, owner: &str, findings: &mut Findings) {
    let Some(hold) = lock.hold.as_ref().filter(|hold| hold.is_sure && hold.moved.is_none()) else { return };
    if act.purpose != Purpose::Release || !act.only_reads() || lock.has_refused(owner) {
        return;
    }
    let client_of = |owner: &str| {
        is_redisson_owner(owner.as_bytes())
            .then(|| owner.split_once(':').map(|(client, _)| client.to_owned()))
            .flatten()
    };
    let is_thread = client_of(owner).is_some() && client_of(owner) == client_of(&hold.owner);
    let thread = if is_thread { ", another thread of the same Redisson client" } else { "" };
    let says = format!(
        "{} released it as {}, and {} held it{thread}",
        act.call.client,
        findings.names.value(owner),
        findings.names.value(&hold.owner)
    );
    let (grant, holder) = (hold.grant.clone(), hold.owner.clone());
    let parts = [(&grant, "granted it"), (act.call, "released it as another owner")];
    match lock.not_holder.and_then(|notice| findings.list.get_mut(notice)) {
        Some(notice) => notice.times += 1,
        None => {
            lock.not_holder = findings.add(Kind::NotHolder, act.place, &holder, act.at_us(), says, &parts);
        }
    }
}

/// Records a DEL or PEXPIRE of a key that has expired, from the connection that had acquired it.
fn came_late(lock: &mut Lock, act: &Act<'_>, findings: &mut Findings) {
    let late = |ended_us: i64| act.at_us() - ended_us > NEAR_MS * 1_000;
    let own = lock.past.back().filter(|past| {
        let is_last = lock.released_us.is_none_or(|at_us| at_us < past.ended_us);
        let is_own = past.grant.client == act.call.client;
        is_last && is_own && past.end == End::Expired && late(past.ended_us)
    });
    let Some(owner) = own.filter(|past| past.finding.is_none()).map(|past| past.owner.clone()) else {
        return;
    };
    came_back(lock, act, &owner, findings);
}

/// Records that a hold had no expiry.
pub(super) fn no_expiry(lock: &mut Lock, place: Place<'_>, at_us: i64, findings: &mut Findings) {
    let Some(hold) = lock.hold.as_ref().filter(|hold| hold.expires_ms.is_none() && hold.is_sure) else {
        return;
    };
    if at_us - hold.since_us < TWO_STEPS_US {
        return;
    }
    let says =
        format!("held without an expiry for {}: it stays if its holder dies", length(at_us - hold.since_us));
    let (grant, owner) = (hold.grant.clone(), hold.owner.clone());
    findings.add(Kind::NoExpiry, place, &owner, at_us, says, &[(&grant, "granted it without an expiry")]);
}

/// Records that two hosts act for one owner.
fn shares_name(lock: &mut Lock, act: &Act<'_>, findings: &mut Findings) {
    let Some(hold) = &lock.hold else { return };
    if lock.shared_name || host_of(&hold.grant.client) == host_of(&act.call.client) {
        return;
    }
    let (grant, owner) = (hold.grant.clone(), hold.owner.clone());
    let says =
        format!("{} and {} use the name of one owner", host_of(&grant.client), host_of(&act.call.client));
    let parts = [(&grant, "granted it"), (act.call, "used the same name")];
    findings.add(Kind::SharedName, act.place, &owner, act.at_us(), says, &parts);
    lock.shared_name = true;
}
