//! Read-write locks: a hash with the field `mode`, and a field for each reader or for the writer.
//!
//! The commands of a script show its effects, so these locks need no shadow copy. A reader's hold
//! ends with a key of its own beside the hash, which lasts as long as its longest reader.

use std::{
    collections::{BTreeMap, VecDeque},
    rc::Rc,
};

use super::{
    acts::Acts,
    command::{Call, Command, Verb},
    findings::{Findings, Kind, Place},
    locks::{End, Leased, Lock},
    names::length,
    owners::{WRITE, is_member},
    scripts::Purpose,
};

/// A key may end this long before or after the computed expiry: the server computes the expiry
/// slightly before MONITOR shows the command.
const NEAR_MS: i64 = 20;

/// The number of lost holds that are remembered.
const PAST_MAX: usize = 32;

/// The most holders that are followed. More make the holders unknown.
const HOLDERS_MAX: usize = 10_000;

/// The middle of a key that ends with a reader's hold: the owner is before it, the level after it.
const READ_HOLD: &str = ":rwlock_timeout:";

/// A reader or the writer.
#[derive(Debug)]
struct Holder {
    levels: u32,
    since_us: i64,
    /// The time at which the lease was last set.
    set_us: i64,
    lease_ms: Option<i64>,
    /// The expiry of each level of a reader.
    reads: BTreeMap<u32, i64>,
    grant: Rc<Call>,
    /// False if commands are missing that may have ended it.
    is_sure: bool,
}

/// A hold that its owner lost.
#[derive(Debug)]
struct Lost {
    owner: String,
    ended_us: i64,
    end: End,
    /// The time at which the lease was last set.
    set_us: i64,
    lease_ms: Option<i64>,
    grant: Rc<Call>,
    is_sure: bool,
    /// The first grant after it that it would have excluded.
    next: Option<Rc<Call>>,
    finding: Option<usize>,
}

/// The holders of a read-write lock.
#[derive(Debug, Default)]
pub(super) struct ReadWrite {
    holders: BTreeMap<String, Holder>,
    expires_ms: Option<i64>,
    past: VecDeque<Lost>,
}

impl ReadWrite {
    pub(super) fn is_held(&self) -> bool {
        !self.holders.is_empty()
    }

    /// Returns the names of the holders and the time at which the hash expires.
    pub(super) fn holders(&self) -> (impl Iterator<Item = &str>, Option<i64>) {
        (self.holders.keys().map(String::as_str), self.expires_ms)
    }

    /// Makes all holds unsure: commands are missing that may have ended them.
    pub(super) fn doubt(&mut self) {
        self.holders.values_mut().for_each(|holder| holder.is_sure = false);
    }

    /// Follows a call of a script on the lock.
    pub(super) fn follow(
        &mut self,
        lock: &mut Lock,
        place: Place<'_>,
        acts: &Acts<'_>,
        findings: &mut Findings,
    ) {
        let call = acts.call;
        self.lapse(lock, call.at_ms());
        let own = acts.on(place.db, place.key);
        // A script that the server does not know has no commands.
        if own.is_empty() {
            return;
        }
        lock.is_proven = true;
        let purpose = purpose(acts, &own);
        let owner = owner(acts, &own);
        if purpose == Purpose::Acquire {
            if own.iter().any(|command| is_mode(command) && command.verb == Verb::Change) {
                // The script found no key.
                self.vanish(lock, place, call, None, findings);
            }
            if !own.iter().any(|command| takes(command).is_some())
                && let Some(owner) = &owner
            {
                lock.refuses(None, base(owner), call.at_us);
            }
        } else if let Some(owner) = owner.as_ref().filter(|_| purpose != Purpose::Unknown)
            && !self.holders.contains_key(owner)
            && !own.iter().any(|command| command.verb == Verb::Hincrby)
        {
            let finds = |command: &&Command| command.verb == Verb::Expire || command.name() == "PTTL";
            match own.iter().any(finds) {
                true => self.adopt(call, owner),
                false => self.came_back(place, call, purpose, owner, findings),
            }
        }
        // The keys with the ends of readers' holds have the hash's name in braces, or its own.
        let prefixes = [[b"{", place.key, b"}:"].concat(), [place.key, b":"].concat()];
        for command in acts.on_any(place.db, &[place.key], &[&prefixes[0], &prefixes[1]]) {
            if command.word(1) == place.key && command.verb != Verb::Del {
                self.applies(lock, place, call, command, purpose, findings);
            } else if command.verb == Verb::Del && own.iter().any(|one| std::ptr::eq(*one, command)) {
                self.deleted(lock, place, call, owner.is_none(), findings);
            } else {
                self.read_hold(call, command);
            }
        }
    }

    /// Follows a command of a script on the hash.
    fn applies(
        &mut self,
        lock: &mut Lock,
        place: Place<'_>,
        call: &Rc<Call>,
        command: &Command,
        purpose: Purpose,
        findings: &mut Findings,
    ) {
        let text = |at: usize| String::from_utf8_lossy(command.word(at)).into_owned();
        let number = |at: usize| text(at).parse::<i64>().ok();
        if takes(command).is_some() {
            self.granted(lock, place, call, &text(2), findings);
        } else if command.verb == Verb::Hincrby {
            self.past.retain(|past| past.owner != text(2));
            let Some(holder) = self.holders.get_mut(&text(2)) else { return };
            holder.is_sure = true;
            holder.levels = holder.levels.saturating_sub(1);
            if holder.levels == 0 {
                self.released(lock, call.at_us, &text(2));
            }
        } else if command.name() == "HDEL" {
            for field in command.words.iter().skip(2) {
                self.released(lock, call.at_us, &String::from_utf8_lossy(field));
            }
        } else if command.verb == Verb::Hexists && !is_mode(command) && purpose == Purpose::Renew {
            if let Some(holder) = self.holders.get_mut(&text(2)) {
                if holder.since_us < call.at_us {
                    let lease_us = holder.lease_ms.map(|ms| ms.saturating_mul(1_000)).filter(|us| *us > 0);
                    if let Some(lease_us) = lease_us {
                        let passed_us = (call.at_us - holder.set_us).max(0);
                        lock.figures.passes(passed_us.saturating_mul(100) / lease_us);
                    }
                    lock.figures.renewals += 1;
                }
                holder.set_us = call.at_us;
            }
        } else if command.verb == Verb::Expire {
            self.expires_ms = match command.name().as_str() {
                "PEXPIRE" => number(2).map(|ms| call.at_ms().saturating_add(ms)),
                "EXPIRE" => number(2).map(|secs| call.at_ms().saturating_add(secs.saturating_mul(1_000))),
                "PEXPIREAT" => number(2),
                "EXPIREAT" => number(2).map(|secs| secs.saturating_mul(1_000)),
                _ => None,
            };
            let lease_ms = self.expires_ms.map(|at| at.saturating_sub(call.at_ms()));
            for (_, holder) in self.holders.iter_mut().filter(|(owner, _)| owner.ends_with(WRITE)) {
                (holder.lease_ms, holder.set_us) = (lease_ms, call.at_us);
            }
        }
    }

    /// Follows a command of a script on a key with the end of a reader's hold.
    fn read_hold(&mut self, call: &Call, command: &Command) {
        let Some(key) = command.words.get(1).and_then(|key| std::str::from_utf8(key).ok()) else { return };
        let Some((before, level)) = key.rsplit_once(READ_HOLD) else { return };
        let Ok(level) = level.parse::<u32>() else { return };
        // The hash's name is before the owner's, which has a colon of its own.
        let begin = before.rmatch_indices(':').nth(1).map_or(0, |(at, _)| at + 1);
        let Some(owner) = before.get(begin..) else { return };
        let Some(holder) = self.holders.get_mut(owner) else { return };
        let number = |at: usize| std::str::from_utf8(command.word(at)).ok()?.parse::<i64>().ok();
        let lease_ms = match command.verb {
            Verb::Del => {
                holder.reads.remove(&level);
                return;
            }
            Verb::Expire => number(2),
            Verb::Set if command.has_option("PX") => number(4),
            _ => return,
        };
        let Some(lease_ms) = lease_ms else { return };
        (holder.lease_ms, holder.set_us) = (Some(lease_ms), call.at_us);
        if holder.reads.len() < HOLDERS_MAX {
            holder.reads.insert(level, call.at_ms().saturating_add(lease_ms));
        }
    }

    /// Returns the time at which a hold ends.
    fn ends_ms(&self, owner: &str, holder: &Holder) -> Option<i64> {
        let own = holder.reads.values().max().copied();
        own.filter(|_| !owner.ends_with(WRITE)).or(self.expires_ms)
    }

    /// Ends all holds if the hash has expired.
    pub(super) fn lapse(&mut self, lock: &mut Lock, now_ms: i64) {
        let Some(over) = self.expires_ms.filter(|at| *at < now_ms) else { return };
        for (owner, holder) in std::mem::take(&mut self.holders) {
            let own = self.ends_ms(&owner, &holder).map_or(over, |at| at.min(over));
            self.lose(lock, owner, holder, (own.saturating_mul(1_000), End::Expired), None);
        }
        self.expires_ms = None;
    }

    /// Remembers a hold that its owner lost.
    fn lose(
        &mut self,
        lock: &mut Lock,
        owner: String,
        holder: Holder,
        (ended_us, end): (i64, End),
        finding: Option<usize>,
    ) {
        match end {
            End::Released => lock.figures.releases += 1,
            End::Expired => lock.figures.expiries += 1,
            End::Broken | End::Unknown => lock.figures.broken += 1,
        }
        lock.figures.holds.add(ended_us.saturating_sub(holder.since_us));
        if self.past.len() >= PAST_MAX {
            self.past.pop_front();
        }
        let Holder { set_us, lease_ms, grant, is_sure, .. } = holder;
        self.past.push_back(Lost {
            owner,
            ended_us,
            end,
            set_us,
            lease_ms,
            grant,
            is_sure,
            next: None,
            finding,
        });
    }

    fn released(&mut self, lock: &mut Lock, at_us: i64, owner: &str) {
        let Some(holder) = self.holders.remove(owner) else { return };
        lock.figures.releases += 1;
        lock.figures.holds.add(at_us - holder.since_us);
        lock.released_us = Some(at_us);
    }

    /// Follows one level of a grant.
    fn granted(
        &mut self,
        lock: &mut Lock,
        place: Place<'_>,
        call: &Rc<Call>,
        owner: &str,
        findings: &mut Findings,
    ) {
        // The script has found no other holder that excludes this one.
        self.vanish(lock, place, call, Some(owner), findings);
        if let Some(holder) = self.holders.get_mut(owner) {
            holder.levels = holder.levels.saturating_add(1);
            lock.figures.grants += 1;
            return;
        }
        if self.holders.len() >= HOLDERS_MAX {
            self.holders.clear();
            self.past.clear();
        }
        lock.grants(base(owner), call.at_us);
        // A name that is granted again is no longer late.
        self.past.retain(|past| past.owner != owner);
        for past in self.past.iter_mut().filter(|past| past.next.is_none() && excludes(&past.owner, owner)) {
            past.next = Some(call.clone());
        }
        let holder = Holder {
            levels: 1,
            since_us: call.at_us,
            set_us: call.at_us,
            lease_ms: None,
            reads: BTreeMap::new(),
            grant: call.clone(),
            is_sure: true,
        };
        self.holders.insert(owner.to_owned(), holder);
    }

    /// Takes a hold that a renewal has found, and that began before the capture or seemed over.
    fn adopt(&mut self, call: &Rc<Call>, owner: &str) {
        if self.holders.len() >= HOLDERS_MAX {
            return;
        }
        let past = self.past.iter().rposition(|past| past.owner == owner).and_then(|at| self.past.remove(at));
        let grant = past.map_or_else(|| call.clone(), |past| past.grant);
        let (since_us, set_us, lease_ms, reads) = (call.at_us, call.at_us, None, BTreeMap::new());
        let holder = Holder { levels: 1, since_us, set_us, lease_ms, reads, grant, is_sure: true };
        self.holders.insert(owner.to_owned(), holder);
    }

    /// Ends the holds that a script has not found: all, or those that exclude an owner.
    fn vanish(
        &mut self,
        lock: &mut Lock,
        place: Place<'_>,
        call: &Rc<Call>,
        next: Option<&str>,
        findings: &mut Findings,
    ) {
        let is_gone = |owner: &str| next.is_none_or(|next| excludes(owner, next));
        let gone: Vec<String> = self.holders.keys().filter(|owner| is_gone(owner)).cloned().collect();
        for owner in gone {
            let Some(holder) = self.holders.remove(&owner) else { continue };
            let is_near = self.ends_ms(&owner, &holder).is_some_and(|at| at <= call.at_ms() + NEAR_MS);
            if is_near || !holder.is_sure {
                let end = if is_near { End::Expired } else { End::Unknown };
                self.lose(lock, owner, holder, (call.at_us, end), None);
                continue;
            }
            let says =
                "the key had no longer this holder, and the capture shows no command that ended the hold";
            let grant = holder.grant.clone();
            let parts = [(&grant, "granted it"), (call, "found it gone")];
            let finding =
                findings.add_shared(Kind::Unexplained, place, &owner, call.at_us, says.to_owned(), &parts);
            self.lose(lock, owner, holder, (call.at_us, End::Unknown), finding);
        }
    }

    /// Follows the deletion of the hash by a script: of a release, or of one that names no owner.
    fn deleted(
        &mut self,
        lock: &mut Lock,
        place: Place<'_>,
        call: &Rc<Call>,
        is_forced: bool,
        findings: &mut Findings,
    ) {
        if is_forced {
            return self.broken(lock, place, call, Kind::Deleted, findings);
        }
        // A release deletes the hash if no other read hold has time left.
        for (owner, holder) in std::mem::take(&mut self.holders) {
            let ended_ms = self.ends_ms(&owner, &holder).filter(|at| *at <= call.at_ms() + NEAR_MS);
            let ended_us = ended_ms.map_or(call.at_us, |at| at.saturating_mul(1_000).min(call.at_us));
            let end = if ended_ms.is_some() { End::Expired } else { End::Unknown };
            self.lose(lock, owner, holder, (ended_us, end), None);
        }
        self.expires_ms = None;
    }

    /// Follows a command that a client sent without a script.
    pub(super) fn commanded(
        &mut self,
        lock: &mut Lock,
        place: Place<'_>,
        call: &Rc<Call>,
        findings: &mut Findings,
    ) {
        self.lapse(lock, call.at_ms());
        match call.command.verb {
            Verb::Del => self.broken(lock, place, call, Kind::Deleted, findings),
            Verb::FlushAll | Verb::FlushDb => self.broken(lock, place, call, Kind::Flushed, findings),
            Verb::Expire => {
                self.doubt();
                self.expires_ms = None;
            }
            verb if verb.changes() => self.doubt(),
            _ => {}
        }
    }

    /// Ends all holds by a command that is no owner's release. They make one finding.
    fn broken(
        &mut self,
        lock: &mut Lock,
        place: Place<'_>,
        call: &Rc<Call>,
        kind: Kind,
        findings: &mut Findings,
    ) {
        let holders = std::mem::take(&mut self.holders);
        self.expires_ms = None;
        let count = holders.values().filter(|holder| holder.is_sure).count();
        let first = holders.iter().find(|(_, holder)| holder.is_sure);
        let finding = first.and_then(|(owner, holder)| {
            let lasted = length(call.at_us - holder.since_us);
            let others = if count > 1 { format!(", of {count} holders") } else { String::new() };
            let says = format!("{} deleted the lock {lasted} after its grant{others}", call.command.name());
            let role = if kind == Kind::Flushed { "deleted all keys" } else { "deleted it" };
            let parts = [(&holder.grant, "granted it"), (call, role)];
            let at = findings.add_shared(kind, place, owner, call.at_us, says, &parts)?;
            let (set_us, lease_ms) = (holder.set_us, holder.lease_ms);
            if let Some(finding) = findings.list.get_mut(at) {
                finding.leases.lost = Some(Leased { set_us, lease_ms, renewed: 0 });
            }
            Some(at)
        });
        for (owner, holder) in holders {
            let (end, finding) = if holder.is_sure { (End::Broken, finding) } else { (End::Unknown, None) };
            self.lose(lock, owner, holder, (call.at_us, end), finding);
        }
    }

    /// Records that an owner renews or releases a hold that has ended.
    fn came_back(
        &mut self,
        place: Place<'_>,
        call: &Rc<Call>,
        purpose: Purpose,
        owner: &str,
        findings: &mut Findings,
    ) {
        let Some(past) = self.past.iter_mut().rev().find(|past| past.owner == owner) else { return };
        if let Some(finding) = past.finding {
            return findings.confirm(finding, (call, "the former holder came back"));
        }
        if past.end != End::Expired || !past.is_sure {
            return;
        }
        let does = if purpose == Purpose::Renew { "renewed" } else { "released" };
        let late = length(call.at_us.saturating_sub(past.ended_us));
        let lease =
            past.lease_ms.map_or_else(|| "unknown length".to_owned(), |ms| length(ms.saturating_mul(1_000)));
        let mut parts = vec![(&past.grant, "granted it")];
        parts.extend(past.next.iter().map(|next| (next, "granted it to another owner, which excludes it")));
        parts.push((call, "the former holder came back"));
        let (kind, says) = match &past.next {
            Some(_) => (
                Kind::GrantedTwice,
                format!(
                    "its lease of {lease} ended, an owner that it excludes was granted it, and the former \
                     holder {does} it {late} after the end"
                ),
            ),
            None => {
                (Kind::Late, format!("its lease of {lease} ended, and its holder {does} it {late} later"))
            }
        };
        let finding = findings.add_shared(kind, place, owner, call.at_us, says, &parts);
        if let Some(finding) = finding.and_then(|at| findings.list.get_mut(at)) {
            finding.is_confirmed = true;
            let (set_us, lease_ms) = (past.set_us, past.lease_ms);
            finding.leases.lost = Some(Leased { set_us, lease_ms, renewed: 0 });
        }
        past.finding = finding;
    }
}

/// Returns the owner of a field, whose write hold has a field of its own.
fn base(owner: &str) -> &str {
    owner.strip_suffix(WRITE).unwrap_or(owner)
}

/// Returns true if two holds may not exist together.
fn excludes(one: &str, other: &str) -> bool {
    base(one) != base(other) && (one.ends_with(WRITE) || other.ends_with(WRITE))
}

/// Returns true for a command on the mode of a hash.
pub(super) fn is_mode(command: &Command) -> bool {
    let is_field = matches!(command.verb, Verb::Hexists | Verb::Change) && command.word(2) == b"mode";
    is_field && command.word(0).first().is_some_and(|first| first.eq_ignore_ascii_case(&b'h'))
}

/// Returns the field to which a command of a script gives a level.
fn takes(command: &Command) -> Option<&[u8]> {
    let sets = command.word(0).eq_ignore_ascii_case(b"hset") && command.word(2) != b"mode";
    let counts = command.verb == Verb::Hincrby && !command.word(3).starts_with(b"-");
    (sets || counts).then(|| command.word(2))
}

/// Returns true if a script's commands on a key make it a read-write lock's: they use its mode, and
/// the levels of an owner.
pub(super) fn begins(own: &[&Command], is_named: bool) -> bool {
    let is_field = |command: &&Command| {
        (takes(command).is_some() || command.verb == Verb::Hincrby)
            && (is_named || is_member(command.word(2)))
    };
    own.iter().any(|command| is_mode(command)) && own.iter().any(is_field)
}

/// Returns the purpose of a call: releases name the channel, acquisitions look at the mode, and
/// renewals at the owner's field, with the lease as the first argument.
fn purpose(acts: &Acts<'_>, own: &[&Command]) -> Purpose {
    let first = acts.call.command.script_args().first();
    if acts.has_prefix(b"redisson_rwlock:") {
        Purpose::Release
    } else if own.iter().any(|command| is_mode(command)) {
        Purpose::Acquire
    } else if first.is_some_and(|word| !word.is_empty() && word.iter().all(u8::is_ascii_digit)) {
        Purpose::Renew
    } else {
        Purpose::Unknown
    }
}

/// Returns the owner for which a call was sent.
fn owner(acts: &Acts<'_>, own: &[&Command]) -> Option<String> {
    let field = |command: &&&Command| {
        matches!(command.verb, Verb::Hexists | Verb::Hincrby) && !is_mode(command) || takes(command).is_some()
    };
    let named = own.iter().find(field).map(|command| command.word(2));
    named.or_else(|| acts.member()).map(|word| String::from_utf8_lossy(word).into_owned())
}
