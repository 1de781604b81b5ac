//! Semaphores: a number of permits, and for permits that expire a set with their deadlines.
//!
//! The capture proves how many permits a semaphore has only if it shows the command that sets the
//! number of a semaphore without one. Scripts then show each grant and release, and PUBLISH the
//! number that is left.

use std::{
    collections::{BTreeMap, VecDeque},
    rc::Rc,
};

use super::{
    acts::Acts,
    command::{Call, Command, Verb},
    findings::{Findings, Kind, Part, Place},
    locks::Lock,
    names::length,
};

/// The channel of a semaphore begins with this.
pub(super) const CHANNEL: &[u8] = b"redisson_sc:";

/// The beginning of the keys by which requests are remembered.
const MEMORY: &[u8] = b"redisson_unlock_latch:";

/// The digest of Redisson's script that sets the number of a semaphore without one.
const SETS: &[u8] = b"241ce4e87e652b4f9b39d33cbcd7df9ee8ed906c";

/// A permit is over this long after its deadline for sure.
const NEAR_MS: i64 = 20;

/// The most permits that are followed one by one, and the most that are remembered as over.
const PERMITS_MAX: usize = 10_000;
const PAST_MAX: usize = 64;

/// A permit that a client has.
#[derive(Debug)]
struct Permit {
    since_us: i64,
    deadline_ms: i64,
    grant: Rc<Call>,
}

/// A permit that its holder lost.
#[derive(Debug)]
struct Lost {
    id: Box<[u8]>,
    permit: Permit,
    /// The command that deleted the semaphore.
    deleted: Option<(Kind, Rc<Call>)>,
    finding: Option<usize>,
}

/// The permits of a semaphore.
#[derive(Debug, Default)]
pub(super) struct Semaphore {
    /// The number of permits, free or granted, with the call that set it.
    total: Option<(i64, Rc<Call>)>,
    /// The number of free ones.
    free: Option<i64>,
    /// The permits that expire, by their ids.
    out: BTreeMap<Box<[u8]>, Permit>,
    /// Set if permits expire.
    has_ids: bool,
    past: VecDeque<Lost>,
    /// The command that deleted the semaphore while permits were granted.
    deleted: Option<(Kind, Rc<Call>)>,
    /// The finding about too many permits.
    beyond: Option<usize>,
}

impl Semaphore {
    /// Returns the number of granted permits, if it is known.
    pub(super) fn taken(&self) -> Option<i64> {
        Some(self.total.as_ref()?.0.saturating_sub(self.free?))
    }

    pub(super) fn is_held(&self) -> bool {
        !self.out.is_empty() || self.taken().is_some_and(|taken| taken > 0)
    }

    /// Forgets the number of permits: commands are missing.
    pub(super) fn doubt(&mut self) {
        *self = Semaphore::default();
    }

    /// Follows a call of a script on the semaphore.
    pub(super) fn follow(
        &mut self,
        lock: &mut Lock,
        place: Place<'_>,
        acts: &Acts<'_>,
        findings: &mut Findings,
    ) {
        let call = acts.call;
        // A script that the server does not know has no commands.
        if call.script.is_empty() {
            return;
        }
        lock.is_proven = true;
        self.has_ids |= acts.names_deadlines;
        let own = acts.on(place.db, place.key);
        if releases_ids(acts) {
            self.comes_back(place, acts, findings);
        }
        let removed = self.sides(lock, place, acts);
        // The message has the number that is left, after a release of permits without ids.
        let message = acts.messages.last();
        let left = message.and_then(|command| std::str::from_utf8(command.word(2)).ok()?.parse::<i64>().ok());
        let (mut grants, mut is_counted) = (false, false);
        for command in &own {
            let Some(by) = by(command) else {
                self.sets(acts, place.db, command);
                continue;
            };
            is_counted = true;
            self.free = self.free.map(|free| free.saturating_add(by));
            if by < 0 && command.name().starts_with("DECR") {
                grants = true;
                // Permits with ids are counted one by one.
                if !self.has_ids {
                    lock.grants(&call.client, call.at_us);
                }
            } else if removed == 0 && self.has_ids {
                let total = self.total.take().filter(|_| by > 0);
                self.total = total.map(|(total, set)| (total.saturating_add(by), set));
            } else if by > 0 && removed == 0 {
                if left.is_some() && self.free != left {
                    // The copy was wrong: the key had expired, for example.
                    (self.free, self.total) = (left, None);
                }
                self.gives_back(lock, place, acts, findings);
            }
        }
        if !grants && !is_counted && is_grant(acts, &own) {
            lock.refuses(None, &call.client, call.at_us);
        }
    }

    /// Follows the commands on the deadlines. Returns the number of permits that it removes.
    fn sides(&mut self, lock: &mut Lock, place: Place<'_>, acts: &Acts<'_>) -> u64 {
        let (call, mut removed) = (acts.call, 0);
        let [one, other] = deadlines(place.key);
        for command in acts.on_any(place.db, &[&one, &other], &[]) {
            let name = command.name();
            match name.as_str() {
                "ZADD" => {
                    for pair in command.words.get(2..).unwrap_or_default().chunks_exact(2) {
                        let Some(deadline_ms) = score(&pair[0]) else { continue };
                        let has_room = self.out.len() < PERMITS_MAX;
                        match self.out.get_mut(&pair[1]) {
                            Some(permit) => {
                                permit.deadline_ms = deadline_ms;
                                lock.figures.renewals += 1;
                            }
                            None if has_room => {
                                let permit =
                                    Permit { since_us: call.at_us, deadline_ms, grant: call.clone() };
                                self.out.insert(pair[1].clone(), permit);
                                self.past.retain(|past| past.id != pair[1]);
                                lock.grants(&call.client, call.at_us);
                            }
                            None => {}
                        }
                    }
                }
                "ZREM" => {
                    for id in command.words.iter().skip(2) {
                        removed += 1;
                        let is_own = acts.has_arg(id);
                        self.ends(lock, call, id, is_own);
                    }
                }
                "ZREMRANGEBYSCORE" => {
                    let Some(until) = score(command.word(3)) else { continue };
                    let over = self.out.iter().filter(|(_, permit)| permit.deadline_ms <= until);
                    let over: Vec<Box<[u8]>> = over.map(|(id, _)| id.clone()).collect();
                    removed += over.len() as u64;
                    over.iter().for_each(|id| self.ends(lock, call, id, false));
                }
                _ => {}
            }
        }
        removed
    }

    /// Ends a permit: by its holder, or by a script that found its deadline passed.
    fn ends(&mut self, lock: &mut Lock, call: &Rc<Call>, id: &[u8], is_own: bool) {
        let Some(permit) = self.out.remove(id) else { return };
        let ended_us = call.at_us.min(permit.deadline_ms.saturating_mul(1_000));
        lock.figures.holds.add(ended_us.saturating_sub(permit.since_us));
        if is_own {
            lock.figures.releases += 1;
            lock.released_us = Some(call.at_us);
            return;
        }
        lock.figures.expiries += 1;
        self.lost(id.into(), permit, None);
    }

    fn lost(&mut self, id: Box<[u8]>, permit: Permit, deleted: Option<(Kind, Rc<Call>)>) {
        if self.past.len() >= PAST_MAX {
            self.past.pop_front();
        }
        self.past.push_back(Lost { id, permit, deleted, finding: None });
    }

    /// Follows a SET of the number.
    fn sets(&mut self, acts: &Acts<'_>, db: u32, command: &Command) {
        let call = acts.call;
        let number = std::str::from_utf8(command.word(2)).ok().and_then(|text| text.parse::<i64>().ok());
        let Some(number) = number.filter(|_| matches!(command.verb, Verb::Set | Verb::SetNx)) else {
            if command.verb.changes() && command.verb != Verb::Expire {
                (self.free, self.total) = (None, None);
            }
            return;
        };
        let is_first = match command.creates() {
            // The reply of the script is remembered.
            true => acts.on_any(db, &[], &[MEMORY]).iter().any(|one| one.word(2) == b"1"),
            false => call.command.word(1).eq_ignore_ascii_case(SETS),
        };
        if command.creates() && !is_first {
            return;
        }
        self.total = match (is_first, self.total.take(), self.free) {
            (true, ..) => Some((number, call.clone())),
            (_, Some((total, _)), Some(free)) if number >= free => {
                Some((total.saturating_add(number.saturating_sub(free)), call.clone()))
            }
            // A client may drain a semaphore, and release the permits later.
            (_, total, Some(_)) if number == 0 && !self.has_ids => total,
            _ => None,
        };
        self.free = Some(number);
        if is_first {
            self.deleted = None;
        }
    }

    /// Follows a number of permits that a script adds without the id of one.
    fn gives_back(&mut self, lock: &mut Lock, place: Place<'_>, acts: &Acts<'_>, findings: &mut Findings) {
        let call = acts.call;
        // Redisson adds new permits by SET. Scripts that remember requests add and release alike.
        let is_release = !acts.names_prefix(MEMORY);
        lock.figures.releases += 1;
        lock.released_us = Some(call.at_us);
        if let Some((kind, by)) = self.deleted.take() {
            let says = format!("{} deleted the semaphore while permits were granted", by.command.name());
            let parts = [(&by, "deleted it"), (call, "released a permit from before")];
            blame(findings, kind, place, call.at_us, says, &parts);
            (self.free, self.total) = (None, None);
            return;
        }
        let (Some((total, set)), Some(free)) = (&self.total, self.free) else { return };
        if free <= *total {
            return;
        }
        if is_release && *total > 0 {
            let says = format!(
                "a release made {free} permits of {total}: it released more than had been acquired, so {free} clients can hold a permit"
            );
            let parts = [(set, "set the number of permits"), (call, "released a permit that was free")];
            match self.beyond {
                Some(finding) => findings.confirm(finding, (call, "released another one")),
                None => self.beyond = blame(findings, Kind::PermitsBeyond, place, call.at_us, says, &parts),
            }
        }
        let set = set.clone();
        self.total = Some((free, set));
    }

    /// Records that the holder of a permit releases it after its end.
    fn comes_back(&mut self, place: Place<'_>, acts: &Acts<'_>, findings: &mut Findings) {
        let call = acts.call;
        let now_ms = call.command.script_args().iter().rev().find_map(|word| clock(word));
        let now_ms = now_ms.unwrap_or_else(|| call.at_ms() - NEAR_MS);
        let late: Vec<Box<[u8]>> = self
            .out
            .iter()
            .filter(|(id, permit)| permit.deadline_ms <= now_ms && acts.has_arg(id))
            .map(|(id, _)| id.clone())
            .collect();
        let is_late = |past: &Lost| past.finding.is_none() && acts.has_arg(&past.id);
        let others = self.out.values().filter(|permit| permit.deadline_ms > call.at_ms() + NEAR_MS).count();
        let others = i64::try_from(others).unwrap_or(i64::MAX);
        for past in self.past.iter_mut().filter(|past| is_late(past)) {
            let grant = past.permit.grant.clone();
            if let Some((kind, by)) = &past.deleted {
                let says = format!("{} deleted the semaphore while permits were granted", by.command.name());
                let parts =
                    [(&grant, "granted a permit"), (by, "deleted it"), (call, "its holder came back")];
                past.finding = blame(findings, *kind, place, call.at_us, says, &parts);
                continue;
            }
            let late = late_by(call, &past.permit);
            let total = self.total.as_ref().map(|(total, _)| *total).filter(|total| others >= *total);
            let newest =
                self.out.values().max_by_key(|permit| permit.since_us).map(|permit| permit.grant.clone());
            past.finding = match (total, newest) {
                (Some(total), Some(newest)) if total > 0 => {
                    let says = format!(
                        "its permit ended, all {total} permits were granted to others, and its holder released it {late} after the end"
                    );
                    let parts = [
                        (&grant, "granted the permit"),
                        (&newest, "granted the last permit to another client"),
                        (call, "the former holder came back"),
                    ];
                    blame(findings, Kind::PermitsBeyond, place, call.at_us, says, &parts)
                }
                _ => over(findings, place, &grant, call, &late),
            };
        }
        for id in late {
            let Some(permit) = self.out.get(&id) else { continue };
            let late = late_by(call, permit);
            over(findings, place, &permit.grant.clone(), call, &late);
        }
    }

    /// Follows a command that a client sent without a script.
    pub(super) fn commanded(
        &mut self,
        lock: &mut Lock,
        place: Place<'_>,
        call: &Rc<Call>,
        findings: &mut Findings,
    ) {
        let kind = match call.command.verb {
            Verb::Del => Kind::Deleted,
            Verb::FlushAll | Verb::FlushDb => Kind::Flushed,
            // The number is gone with the key.
            Verb::Expire => {
                self.total = None;
                return;
            }
            verb if verb.changes() => return self.doubt(),
            _ => return,
        };
        let is_held = self.taken().is_some_and(|taken| taken > 0);
        let out = std::mem::take(&mut self.out);
        lock.figures.broken += out.len() as u64;
        let is_out = |permit: &Permit| permit.deadline_ms > call.at_ms() + NEAR_MS;
        let mut finding = None;
        // A client may well delete a semaphore that is not needed any more, but not all keys.
        if kind == Kind::Flushed && (is_held || out.values().any(is_out)) {
            let set = self.total.as_ref().map(|(_, set)| set.clone());
            let grant = out.values().find(|permit| is_out(permit)).map(|permit| permit.grant.clone());
            let mut parts: Vec<Part<'_>> = Vec::new();
            parts.extend(set.as_ref().map(|set| (set, "set the number of permits")));
            parts.extend(grant.as_ref().map(|grant| (grant, "granted a permit")));
            parts.push((call, "deleted all keys"));
            let says = format!("{} deleted the semaphore while permits were granted", call.command.name());
            finding = blame(findings, kind, place, call.at_us, says, &parts);
        }
        let is_deletion = kind == Kind::Deleted;
        for (id, permit) in out {
            if is_out(&permit) {
                self.lost(id, permit, Some((kind, call.clone())));
                if let Some(past) = self.past.back_mut() {
                    past.finding = finding;
                }
            }
        }
        self.deleted = (is_held && is_deletion).then(|| (kind, call.clone()));
        (self.free, self.total) = (None, None);
    }
}

/// Adds a finding about a lock whose owners have no names.
fn blame(
    findings: &mut Findings,
    kind: Kind,
    place: Place<'_>,
    at_us: i64,
    says: String,
    parts: &[Part<'_>],
) -> Option<usize> {
    let at = findings.add_shared(kind, place, "", at_us, says, parts)?;
    if let Some(finding) = findings.list.get_mut(at) {
        "-".clone_into(&mut finding.owner);
        finding.is_confirmed = true;
    }
    Some(at)
}

/// Returns the time from a permit's deadline to a call in words. Any score may be a deadline.
fn late_by(call: &Call, permit: &Permit) -> String {
    length(call.at_us.saturating_sub(permit.deadline_ms.saturating_mul(1_000)))
}

/// Adds the finding that a permit was released after its end.
fn over(
    findings: &mut Findings,
    place: Place<'_>,
    grant: &Rc<Call>,
    call: &Rc<Call>,
    late: &str,
) -> Option<usize> {
    let says = format!("its permit ended, and its holder released it {late} later");
    let parts = [(grant, "granted the permit"), (call, "the former holder came back")];
    blame(findings, Kind::Late, place, call.at_us, says, &parts)
}

/// Returns the two names of the key with the deadlines of a semaphore's permits: a key without
/// braces gets some.
fn deadlines(semaphore: &[u8]) -> [Vec<u8>; 2] {
    [[semaphore, b":timeout"].concat(), [b"{", semaphore, b"}:timeout"].concat()]
}

/// Returns true for a call that releases permits by their ids: Redisson names the channel second,
/// and other scripts that release remember the request.
fn releases_ids(acts: &Acts<'_>) -> bool {
    let has_channel = acts.call.command.keys().get(1).is_some_and(|key| key.starts_with(CHANNEL));
    acts.names_deadlines && (has_channel || acts.names_prefix(MEMORY))
}

/// Returns true for a call that asks for permits: it reads the number, and sets none.
fn is_grant(acts: &Acts<'_>, own: &[&Command]) -> bool {
    let reads = own.iter().any(|command| command.word(0).eq_ignore_ascii_case(b"get"));
    reads
        && (!acts.names_prefix(CHANNEL) || acts.names_deadlines && !releases_ids(acts))
        && !own.iter().any(|command| command.verb == Verb::Set)
}

/// Returns the number that a command adds.
fn by(command: &Command) -> Option<i64> {
    let number = || std::str::from_utf8(command.word(2)).ok()?.parse::<i64>().ok();
    match command.name().as_str() {
        "INCRBY" => number(),
        "DECRBY" => number().map(i64::wrapping_neg),
        "INCR" => Some(1),
        "DECR" => Some(-1),
        _ => None,
    }
}

/// Returns a score in whole milliseconds; the conversion of a float saturates.
fn score(word: &[u8]) -> Option<i64> {
    std::str::from_utf8(word).ok()?.parse::<f64>().ok().map(|score| score as i64)
}

/// Returns the time of a client's clock, if a word has the digits of one.
fn clock(word: &[u8]) -> Option<i64> {
    let is_time = word.len() == 13 && word.iter().all(u8::is_ascii_digit);
    is_time.then(|| std::str::from_utf8(word).ok()?.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deadlines_belong_to_their_semaphore() {
        let of = |key: &str| deadlines(key.as_bytes()).map(|key| String::from_utf8_lossy(&key).into_owned());
        assert_eq!(of("stock"), ["stock:timeout", "{stock}:timeout"]);
        assert_eq!(of("a{b}")[0], "a{b}:timeout");
    }

    #[test]
    fn a_clock_has_13_digits() {
        let rows = [
            ("1795990358183", Some(1_795_990_358_183)),
            ("922337203685477", None),
            ("1", None),
            ("179599035818x", None),
        ];
        for (word, expected) in rows {
            assert_eq!(clock(word.as_bytes()), expected, "{word}");
        }
    }
}
