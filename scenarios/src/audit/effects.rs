//! Follows the commands of an append-only file, which are effects: every one of them changed its
//! key, and nothing tells who sent it.
//!
//! A server writes `SET key token NX PX 30000` as `SET key token PXAT ..`, the commands of a script
//! without the script, and DEL for a key whose lease ended. Refused requests are not in the file.
//! So a key of one token looks like that of a cache: only patterns tell them apart. Redisson's
//! hashes are known by their fields.

use std::{io, rc::Rc};

use super::{
    aof::{self, Aof, Item, Kept},
    capture::{Times, Unit},
    command::{Call, Command, Verb},
    engine::{Audit, is_wanted},
    findings::{Findings, Kind, Part, Place},
    follow,
    locks::{End, Hold, Lock},
    names::length,
    node::Node,
    owners::is_redisson_owner,
    patterns::Kind as Kinds,
};

/// A command happened within this time of its second.
const SECOND_US: i64 = 1_000_000;

impl Audit {
    /// Reads the append-only file of a node. Stops early when `goes_on` returns false.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn read_aof(&mut self, aof: Aof<'_>, goes_on: impl Fn() -> bool) -> io::Result<()> {
        let node = self.node(aof.name);
        self.nodes[node].times = Times::Unknown;
        // A transaction that another file continues was not executed.
        for (name, mut from) in aof.files {
            let mut db = 0;
            aof::read(&mut *from, |item| {
                match item {
                    Item::Base(dbs) => self.base(node, &dbs),
                    Item::Command { at, secs, words } => {
                        self.effect(node, &name, (at, secs), &mut db, &words)
                    }
                    Item::Bad { at, what } => {
                        let node = &mut self.nodes[node];
                        self.problems.add(&format!("{}/{name}", node.name), (at, Unit::Byte), &what);
                        // The commands that are missing may have ended any hold.
                        node.doubt();
                    }
                }
                goes_on()
            })?;
            if !goes_on() {
                break;
            }
        }
        Ok(())
    }

    /// Takes the locks that a snapshot has. They were granted at an unknown time before.
    fn base(&mut self, node: usize, dbs: &[lockstorm_sim::keyspace::Db]) {
        for (db, kept) in
            dbs.iter().zip(0_u32..).flat_map(|(db, number)| aof::kept(db).map(move |kept| (number, kept)))
        {
            let Kept { key, owner, levels, expires_ms, is_hash, has_mode } = kept;
            if has_mode {
                self.nodes[node].locks.entry(db).or_default().entry(key).or_default().has_mode = true;
                continue;
            }
            if is_hash && !is_redisson_owner(owner.as_bytes()) || !self.tracks(&key, is_hash) {
                continue;
            }
            let words = [&b"(in the base)"[..], &key, owner.as_bytes()];
            let words = words.into_iter().map(Box::from).collect();
            let command = Command { verb: Verb::Change, db, words };
            let grant = Rc::new(Call {
                line: 0,
                unit: Unit::Byte,
                at_us: 0,
                client: "base".into(),
                command,
                script: Vec::new(),
            });
            let node = &mut self.nodes[node];
            let lock = node.locks.entry(db).or_default().entry(key).or_insert_with(|| Lock::new(0));
            lock.is_proven = true;
            lock.library = is_hash.then_some("Redisson");
            lock.begins(hold(owner, levels, expires_ms, grant), "");
            node.sweep(&mut self.findings);
        }
    }

    /// Returns true if a key is audited: hashes of Redisson, and keys of tokens that a pattern
    /// names.
    fn tracks(&self, key: &[u8], is_hash: bool) -> bool {
        let kind = self.settings.patterns.kind(key);
        let is_named = kind == Some(Kinds::Token);
        // The number of a semaphore is no token.
        kind.is_none_or(Kinds::has_owner)
            && (is_hash || is_named || !self.settings.locks.is_empty())
            && is_wanted(&self.settings, key)
    }

    /// Follows one command of a file.
    fn effect(
        &mut self,
        number: usize,
        file: &str,
        (at, secs): (u64, Option<i64>),
        db: &mut u32,
        words: &[bytes::Bytes],
    ) {
        let node = &mut self.nodes[number];
        node.commands += 1;
        if let Some(secs) = secs {
            node.times = Times::Seconds;
            node.now_us = secs.saturating_mul(SECOND_US);
            node.first_us.get_or_insert(node.now_us);
        }
        let Some(name) = words.first() else { return };
        if name.eq_ignore_ascii_case(b"select") {
            let number = words.get(1).and_then(|number| std::str::from_utf8(number).ok()?.parse().ok());
            *db = number.unwrap_or(*db);
        }
        let Some(verb) = Verb::of(name) else { return };
        let flushes = matches!(verb, Verb::FlushAll | Verb::FlushDb);
        if !flushes && (!verb.changes() || words.len() < 2) {
            return;
        }
        let words: Vec<Box<[u8]>> = words.iter().map(|word| Box::from(&word[..])).collect();
        let command = Command { verb, db: *db, words };
        let is_known = |node: &Node| command.keys().iter().any(|key| node.has(command.db, key));
        let begins = match verb {
            Verb::Set | Verb::SetNx => self.tracks(command.word(1), false),
            Verb::Hincrby => is_redisson_owner(command.word(2)) && self.tracks(command.word(1), true),
            Verb::Change => has_mode(&command) && self.tracks(command.word(1), true),
            _ => false,
        };
        if !flushes && !begins && !is_known(&self.nodes[number]) {
            return;
        }
        let at_us = secs.map_or(0, |secs| secs.saturating_mul(SECOND_US));
        let call = Rc::new(Call {
            line: at,
            unit: Unit::Byte,
            at_us,
            client: file.into(),
            command,
            script: Vec::new(),
        });
        let is_known = secs.is_some();
        if flushes {
            let only = (verb == Verb::FlushDb).then_some(*db);
            return self.flushed(number, &call, is_known, only);
        }
        for key in call.command.keys() {
            let node = &mut self.nodes[number];
            let locks = node.locks.entry(*db).or_default();
            if begins {
                locks.entry(key.clone()).or_insert_with(|| Lock::new(at_us));
            }
            let Some(lock) = locks.get_mut(key) else { continue };
            lock.last_us = at_us;
            if lock.has_mode || has_mode(&call.command) {
                *lock = Lock::new(at_us);
                lock.has_mode = verb != Verb::Del;
                continue;
            }
            lock.is_proven = true;
            let place = Place { node: &node.name, db: *db, key };
            let effect = Effect { call: &call, place, is_known };
            effect.on(lock, &mut self.findings);
        }
        self.nodes[number].sweep(&mut self.findings);
    }

    fn flushed(&mut self, number: usize, call: &Rc<Call>, is_known: bool, only: Option<u32>) {
        let Audit { nodes, findings, .. } = self;
        let Node { name, locks, .. } = &mut nodes[number];
        for (db, locks) in locks.iter_mut().filter(|(db, _)| only.is_none_or(|only| only == **db)) {
            for (key, lock) in locks {
                let effect = Effect { call, place: Place { node: name, db: *db, key }, is_known };
                effect.flushes(lock, findings);
            }
        }
    }
}

fn hold(owner: String, levels: u32, expires_ms: Option<i64>, grant: Rc<Call>) -> Hold {
    let at_us = grant.at_us;
    let lease_ms = expires_ms.filter(|_| at_us > 0).map(|at| at.saturating_sub(at_us / 1_000));
    let (since_us, set_us, renewed, is_sure) = (at_us, at_us, 0, true);
    Hold { owner, since_us, set_us, lease_ms, expires_ms, levels, renewed, grant, is_sure, moved: None }
}

/// A command of a file on one lock.
struct Effect<'a> {
    call: &'a Rc<Call>,
    place: Place<'a>,
    /// True if its second is known.
    is_known: bool,
}

impl Effect<'_> {
    fn at_us(&self) -> i64 {
        self.call.at_us
    }

    fn on(&self, lock: &mut Lock, findings: &mut Findings) {
        let command = &self.call.command;
        let text = |at: usize| String::from_utf8_lossy(command.word(at)).into_owned();
        let number = |at: usize| text(at).parse::<i64>().ok();
        match command.verb {
            Verb::Set | Verb::SetNx => {
                let expires_ms = match command.has_option("KEEPTTL") {
                    true => lock.hold.as_ref().and_then(|hold| hold.expires_ms),
                    false => expiry(command),
                };
                self.owned(lock, text(2), 1, expires_ms, findings);
            }
            Verb::Hincrby => {
                let Some(by) = number(3) else { return };
                lock.takes_expiry = true;
                lock.library = lock.library.or(Some("Redisson"));
                let held = lock.hold.as_ref().filter(|hold| hold.owner == text(2));
                let (levels, expires_ms) = held.map_or((0, None), |hold| (hold.levels, hold.expires_ms));
                let left = i64::from(levels).saturating_add(by).clamp(0, i64::from(u32::MAX));
                let left = u32::try_from(left).unwrap_or(0);
                if by > 0 {
                    self.owned(lock, text(2), left, expires_ms, findings);
                } else if let Some(hold) = lock.hold.as_mut().filter(|hold| hold.owner == text(2)) {
                    // The DEL that follows is the release.
                    hold.levels = left;
                }
            }
            Verb::Expire => {
                let name = command.name();
                let expires_ms = match name.as_str() {
                    "PEXPIREAT" => number(2),
                    "EXPIREAT" => number(2).map(|secs| secs.saturating_mul(1_000)),
                    "PERSIST" => None,
                    // No server writes a relative time into its file.
                    _ => return,
                };
                self.renewed(lock, expires_ms);
            }
            Verb::Del => self.deleted(lock, findings),
            _ => {
                lock.ends(self.at_us(), End::Unknown);
            }
        }
    }

    /// Follows a command after which the key has this owner.
    fn owned(
        &self,
        lock: &mut Lock,
        owner: String,
        levels: u32,
        expires_ms: Option<i64>,
        findings: &mut Findings,
    ) {
        if let Some(hold) = lock.hold.as_mut().filter(|hold| hold.owner == owner) {
            if levels > hold.levels {
                lock.figures.grants += 1;
                hold.levels = levels;
            } else {
                self.renewed(lock, expires_ms);
            }
            return;
        }
        // The server deletes a key whose lease is over before it sets it again. So this one was
        // held.
        if let Some(hold) = &lock.hold {
            let (grant, before, is_sure) = (hold.grant.clone(), hold.owner.clone(), hold.is_sure);
            let says = format!("{} replaced its holder by another value", self.call.command.name());
            let parts = [(&grant, "granted it"), (self.call, "replaced the holder")];
            let finding = is_sure
                .then(|| findings.add(Kind::Overwritten, self.place, &before, self.at_us(), says, &parts));
            if let Some(past) = lock.ends(self.at_us(), End::Broken) {
                past.finding = finding.flatten();
            }
        }
        lock.figures.without_expiry += u64::from(expires_ms.is_none());
        lock.begins(hold(owner, levels, expires_ms, self.call.clone()), "");
    }

    /// Follows a new expiry of the key.
    fn renewed(&self, lock: &mut Lock, expires_ms: Option<i64>) {
        let takes_expiry = std::mem::take(&mut lock.takes_expiry);
        let Some(hold) = &mut lock.hold else { return };
        let is_first = hold.expires_ms.is_none();
        let is_same = hold.expires_ms == expires_ms;
        (hold.expires_ms, hold.set_us) = (expires_ms, self.at_us());
        hold.lease_ms =
            expires_ms.filter(|_| self.is_known).map(|at| at.saturating_sub(self.at_us() / 1_000));
        if is_first && hold.grant.at_us == self.at_us() && expires_ms.is_some() {
            lock.figures.without_expiry = lock.figures.without_expiry.saturating_sub(1);
        } else if !is_first && !is_same && !takes_expiry {
            hold.renewed += 1;
            lock.figures.renewals += 1;
        }
    }

    /// Returns true if the lease is not over for sure.
    fn is_held(&self, hold: &Hold) -> bool {
        let ends = |at_ms: i64| self.is_known && self.at_us() + SECOND_US <= at_ms.saturating_mul(1_000);
        hold.is_sure && hold.expires_ms.is_none_or(ends)
    }

    fn deleted(&self, lock: &mut Lock, findings: &mut Findings) {
        let Some(hold) = &lock.hold else { return };
        lock.takes_expiry = false;
        // A server deletes an expired key within the second of its deadline, as a rule.
        let deadline_us = hold.expires_ms.map(|at| at.saturating_mul(1_000));
        let over_us = deadline_us.filter(|at| self.is_known && self.at_us() + SECOND_US > *at);
        if hold.levels == 0 {
            self.no_expiry(lock, findings);
            lock.ends(self.at_us(), End::Released);
        } else if let Some(at_us) = over_us {
            lock.ends(at_us, End::Expired);
        } else if !self.is_held(hold) {
            lock.ends(self.at_us(), End::Unknown);
        } else if lock.library.is_none() {
            // Every library releases a token by DEL, and the file does not show who sent it.
            self.no_expiry(lock, findings);
            lock.ends(self.at_us(), End::Released);
        } else {
            let lasted = match self.is_known && hold.grant.at_us > 0 {
                true => format!(" {} after its grant", length(self.at_us() - hold.since_us)),
                false => String::new(),
            };
            let says = format!(
                "{} deleted the lock{lasted}, and its owner did not release it",
                self.call.command.name()
            );
            self.breaks(lock, Kind::Deleted, says, "deleted it", findings);
        }
    }

    fn flushes(&self, lock: &mut Lock, findings: &mut Findings) {
        let Some(hold) = &lock.hold else { return };
        if !self.is_held(hold) {
            lock.ends(self.at_us(), End::Unknown);
            return;
        }
        let says = format!("{} deleted the lock while it was held", self.call.command.name());
        self.breaks(lock, Kind::Flushed, says, "deleted all keys", findings);
    }

    fn breaks(&self, lock: &mut Lock, kind: Kind, says: String, role: &str, findings: &mut Findings) {
        let Some(hold) = &lock.hold else { return };
        let (grant, owner) = (hold.grant.clone(), hold.owner.clone());
        let parts: [Part<'_>; 2] = [(&grant, "granted it"), (self.call, role)];
        let finding = findings.add(kind, self.place, &owner, self.at_us(), says, &parts);
        if let Some(past) = lock.ends(self.at_us(), End::Broken) {
            past.finding = finding;
        }
    }

    /// Records that the hold had no expiry for longer than the times are inexact.
    fn no_expiry(&self, lock: &mut Lock, findings: &mut Findings) {
        let Some(hold) = &lock.hold else { return };
        if self.is_known && hold.grant.at_us > 0 && self.at_us() - hold.since_us >= 2 * SECOND_US {
            follow::no_expiry(lock, self.place, self.at_us(), findings);
        }
    }
}

/// Returns true if a command gives a hash the mode of a read-write lock.
fn has_mode(command: &Command) -> bool {
    let sets = ["HSET", "HSETNX", "HMSET"].contains(&command.name().as_str());
    sets && command.words.iter().skip(2).step_by(2).any(|field| **field == *b"mode")
}

/// Returns the expiry that a SET of a file sets.
fn expiry(command: &Command) -> Option<i64> {
    let after = |option: &str| {
        let options = command.words.get(3..).unwrap_or_default();
        let at = options.iter().position(|word| word.eq_ignore_ascii_case(option.as_bytes()))?;
        std::str::from_utf8(options.get(at + 1)?).ok()?.parse::<i64>().ok()
    };
    after("PXAT").or_else(|| after("EXAT").map(|secs| secs.saturating_mul(1_000)))
}
