//! The audit: takes the lines of captures, keeps the locks of each node, and finds faults.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    rc::Rc,
};

use serde::Serialize;

use super::{
    capture::{Capture, From, Line, Problems, Times, Unit},
    command::{Call, Command, Verb},
    findings::{Change, Finding, Findings, Place},
    follow::{self, Act},
    locks::{Figures, Lock},
    names::{self, Names},
    past::Past,
    scripts::{self, Purpose, Scripts},
    shadow::Shadow,
};

/// The number of locks of a node from which idle ones are dropped.
const LOCKS_MAX: usize = 100_000;

/// The most locks of a node, even if all of them are held.
const HELD_MAX: usize = 4 * LOCKS_MAX;

/// A held key that was not used for this long, and that nothing has shown to be a lock, is dropped
/// before others: requests are marked as done by SET NX, too, with a long expiry.
const STALE_US: i64 = 60_000_000;

/// A free lock that was not used for this long is dropped first.
const IDLE_US: i64 = 600_000_000;

/// The most unknown scripts that are listed.
const UNKNOWN_MAX: usize = 100;

/// The settings of an audit.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The patterns of the keys to audit, with `*` and `?`; without any, all locks.
    pub locks: Vec<String>,
    /// Set to show values instead of their hashes.
    pub reveal: bool,
    /// The share of a lease in percent from which a renewal counts as a near miss.
    pub late_percent: i64,
    /// Set to record a history of the locks.
    pub history: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { locks: Vec::new(), reveal: false, late_percent: 80, history: false }
    }
}

/// A script that changed the key of a lock and named no owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnknownScript {
    /// The digest, or the name of a function.
    pub script: String,
    /// The number of calls that changed locks.
    pub calls: u64,
    /// One of these locks.
    pub lock: String,
    /// The commands that changed them.
    pub commands: BTreeSet<String>,
}

/// A node of the audit.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: String,
    /// The locks, by database and key.
    pub(super) locks: BTreeMap<u32, BTreeMap<Box<[u8]>, Lock>>,
    pub(super) shadow: Shadow,
    /// The call whose script may still be running.
    pub(super) open: Option<Call>,
    pub(super) commands: u64,
    pub(super) first_us: Option<i64>,
    /// The time of the first command since the last gap, and before that `None`.
    pub(super) gap_us: Option<i64>,
    /// Set from a gap to the next command: the holds from before it are not doubted yet.
    pub(super) has_gap: bool,
    pub(super) now_us: i64,
    pub(super) times: Times,
    /// Set for a node that is audited by keyspace events and reads.
    pub(super) is_gentle: bool,
    /// The number of locks at which idle ones are dropped.
    sweep_at: usize,
    /// The locks that were dropped, and their figures.
    pub(super) dropped: (u64, Figures),
}

impl Node {
    fn new(name: String) -> Node {
        let (locks, shadow) = (BTreeMap::new(), Shadow::new());
        let dropped = (0, Figures::default());
        let (open, commands, first_us, now_us, times) = (None, 0, None, 0, Times::Exact);
        let (gap_us, has_gap, is_gentle, sweep_at) = (None, false, false, LOCKS_MAX);
        Node {
            name,
            locks,
            shadow,
            open,
            commands,
            first_us,
            gap_us,
            has_gap,
            now_us,
            times,
            is_gentle,
            sweep_at,
            dropped,
        }
    }

    /// Makes all holds unsure: commands are missing that may have ended them.
    pub(super) fn doubt(&mut self) {
        let holds = self.locks.values_mut().flat_map(BTreeMap::values_mut);
        holds.filter_map(|lock| lock.hold.as_mut()).for_each(|hold| hold.is_sure = false);
    }

    pub(super) fn has(&self, db: u32, key: &[u8]) -> bool {
        self.locks.get(&db).is_some_and(|locks| locks.contains_key(key))
    }

    /// Drops locks if there are too many: first free ones that were not used for a while, then all
    /// free ones, then held keys that nothing has shown to be locks, and at last all.
    pub(super) fn sweep(&mut self, findings: &mut Findings) {
        let count = self.count();
        if count < self.sweep_at {
            return;
        }
        // The file of a server has the end of each lease as a command.
        let is_live = self.times == Times::Exact;
        let mut strangers = BTreeMap::new();
        for pass in [Pass::Idle, Pass::Free, Pass::Stale, Pass::Unproven, Pass::All] {
            let count = self.count();
            // Each sweep leaves room for as many locks as it looks at.
            if count < LOCKS_MAX / 2 || pass == Pass::All && count <= HELD_MAX / 2 {
                break;
            }
            let (now_us, shadow, dropped) = (self.now_us, &mut self.shadow, &mut self.dropped);
            for (db, locks) in &mut self.locks {
                locks.retain(|key, lock| {
                    if is_live {
                        follow::lapse(lock, now_us.div_euclid(1_000));
                    }
                    let is_kept = pass.keeps(lock, now_us);
                    if !is_kept {
                        shadow.free(now_us, *db, key);
                        dropped.0 += 1;
                        dropped.1.join(&lock.figures);
                        if lock.uses() != (true, true) {
                            strangers.insert((*db, key.clone()), lock.uses());
                        }
                    }
                    is_kept
                });
            }
        }
        findings.judge(&self.name, |db, key| strangers.get(&(db, Box::from(key))).copied());
        self.sweep_at = LOCKS_MAX.max(self.count().saturating_mul(2)).min(HELD_MAX);
    }

    fn count(&self) -> usize {
        self.locks.values().map(BTreeMap::len).sum()
    }
}

/// A pass over the locks of a node that drops some of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    Idle,
    Free,
    Stale,
    Unproven,
    All,
}

impl Pass {
    fn keeps(self, lock: &Lock, now_us: i64) -> bool {
        let (is_held, unused_us) = (lock.hold.is_some(), now_us - lock.last_us);
        match self {
            Pass::Idle => is_held || unused_us < IDLE_US,
            Pass::Free => is_held,
            Pass::Stale => is_held && (lock.is_lock() || unused_us < STALE_US),
            Pass::Unproven => is_held && lock.is_lock(),
            Pass::All => false,
        }
    }
}

/// An audit of the locks of one or several nodes.
#[derive(Debug)]
pub struct Audit {
    pub(super) settings: Settings,
    pub(super) nodes: Vec<Node>,
    scripts: Scripts,
    pub(super) findings: Findings,
    pub(super) problems: Problems,
    pub(super) unknown: BTreeMap<Box<[u8]>, UnknownScript>,
    pub(super) past: Option<Past>,
    pub(super) changes: Vec<Change>,
}

impl Audit {
    /// Begins an audit that has seen nothing.
    pub fn new(settings: Settings) -> Audit {
        let findings = Findings { names: Names { reveal: settings.reveal }, ..Findings::default() };
        let past = settings.history.then(Past::default);
        let (nodes, scripts, problems, unknown, changes) = Default::default();
        Audit { settings, nodes, scripts, findings, problems, unknown, past, changes }
    }

    /// Adds a node, and returns its number.
    pub fn node(&mut self, name: impl Into<String>) -> usize {
        self.nodes.push(Node::new(name.into()));
        self.nodes.len() - 1
    }

    /// Returns the time of a node's last command, in microseconds since 1970.
    pub fn now_us(&self, node: usize) -> Option<i64> {
        let node = self.nodes.get(node)?;
        node.first_us.map(|_| node.now_us)
    }

    /// Reads captures to their ends, each of a node of its own, in the order of time. Stops early
    /// when `goes_on` returns false.
    ///
    /// # Errors
    /// If a capture cannot be read.
    pub fn read(&mut self, captures: Vec<Capture<'_>>, goes_on: impl Fn() -> bool) -> io::Result<()> {
        let mut open = Vec::new();
        for mut capture in captures {
            let node = self.node(capture.name.clone());
            if capture.advance(&mut self.problems)? {
                open.push((node, capture));
            }
        }
        while goes_on() {
            let next = (0..open.len()).min_by_key(|at| open[*at].1.at_us());
            let Some(next) = next else { break };
            let (node, capture) = &mut open[next];
            if capture.is_after_gap() {
                if let Some(call) = self.nodes[*node].open.take() {
                    self.follow(*node, call);
                }
                self.gap(*node);
            }
            if let Some((number, line)) = capture.line() {
                self.take(*node, number, &line);
            }
            if !capture.advance(&mut self.problems)? {
                open.remove(next);
            }
        }
        Ok(())
    }

    /// Takes a line of text from a node, which is the node's line of this number.
    pub fn take_text(&mut self, node: usize, number: u64, text: &[u8]) {
        if matches!(text, b"" | b"OK" | b"+OK") {
            return;
        }
        match Line::parse(text) {
            Ok(line) => self.take(node, number, &line),
            Err(defect) => {
                let name = self.nodes.get(node).map_or_else(String::new, |node| node.name.clone());
                self.problems.add(&name, (number, Unit::Line), &defect);
            }
        }
    }

    /// Takes a line of a node.
    pub fn take(&mut self, node: usize, number: u64, line: &Line<'_>) {
        let Some(at) = self.nodes.get_mut(node) else { return };
        at.commands += 1;
        at.now_us = line.at_us;
        at.first_us.get_or_insert(line.at_us);
        at.gap_us.get_or_insert(line.at_us);
        if std::mem::take(&mut at.has_gap) {
            at.doubt();
        }
        let verb = Verb::of(line.name());
        if line.from == From::Script {
            if let (Some(open), Some(verb)) = (&mut at.open, verb) {
                open.push(verb, line);
            }
            return;
        }
        if let Some(call) = at.open.take() {
            self.follow(node, call);
        }
        let Some(verb) = verb else { return };
        if verb.calls_script() {
            let open = Some(Call::new(number, line, verb));
            self.nodes[node].open = open;
        } else if verb == Verb::Script {
            self.scripts.learn(&Call::new(number, line, verb));
        } else if matches!(verb, Verb::FlushAll | Verb::FlushDb) {
            self.flush(node, Rc::new(Call::new(number, line, verb)));
        } else if verb.changes() && concerns(&self.nodes[node], verb, line) {
            self.follow(node, Call::new(number, line, verb));
        }
    }

    /// Completes the calls that are open, and the holds that have expired.
    pub fn finish(&mut self) {
        for node in 0..self.nodes.len() {
            if let Some(call) = self.nodes[node].open.take() {
                self.follow(node, call);
            }
            let Node { name, locks, now_us, times, is_gentle, .. } = &mut self.nodes[node];
            // Events and reads have shown each end.
            if *is_gentle {
                continue;
            }
            for (db, locks) in locks.iter_mut().filter(|_| *times != Times::Unknown) {
                for (key, lock) in locks {
                    let since_us = lock.hold.as_ref().map(|hold| hold.since_us);
                    if *times == Times::Exact {
                        follow::lapse(lock, now_us.div_euclid(1_000));
                    } else if since_us.is_none_or(|since| since == 0 || *now_us - since < 2_000_000) {
                        continue;
                    }
                    follow::no_expiry(lock, Place { node: name, db: *db, key }, *now_us, &mut self.findings);
                }
            }
        }
        let Audit { findings, nodes, .. } = self;
        for node in nodes.iter() {
            // A key that SET NX creates may be no lock at all.
            findings.judge(&node.name, |db, key| node.locks.get(&db)?.get(key).map(Lock::uses));
        }
        findings.list.retain(|finding| !finding.is_dismissed);
    }

    /// Follows a call on all locks that it concerns.
    pub(super) fn follow(&mut self, node: usize, call: Call) {
        if call.command.verb.calls_script() {
            self.scripts.learn(&call);
        }
        let call = Rc::new(call);
        let mut keys: Vec<(u32, Box<[u8]>)> = Vec::new();
        for command in call.acts() {
            for key in command.keys() {
                let is_new = !keys.iter().any(|(db, known)| *db == command.db && known == key);
                if is_new && self.is_tracked(node, &call, command.db, key) {
                    keys.push((command.db, key.clone()));
                }
            }
        }
        if keys.is_empty() {
            return;
        }
        let mut acts = Vec::with_capacity(keys.len());
        for (db, key) in &keys {
            let Audit { nodes, scripts, findings, settings, .. } = self;
            let Node { name, locks, shadow, gap_us, .. } = &mut nodes[node];
            let Some(lock) = locks.get_mut(db).and_then(|locks| locks.get_mut(key)) else {
                acts.push((Purpose::Unknown, None, false));
                continue;
            };
            follow::lapse(lock, call.at_ms());
            let purpose = scripts.purpose(&call, key);
            let is_known = |word: &str| {
                let held = lock.hold.as_ref().is_some_and(|hold| hold.owner == word);
                held || lock.past.iter().any(|past| past.owner == word)
            };
            let owner = scripts::owner(&call, key, is_known);
            if let Some(library) = scripts.library(&call) {
                lock.library = Some(library);
            }
            let begun_us = gap_us.unwrap_or(call.at_us);
            let lease_us = lease_ms(&call.command).unwrap_or(60_000).saturating_mul(1_000);
            let act = Act {
                place: Place { node: name, db: *db, key },
                call: &call,
                purpose,
                owner,
                after: None,
                may_be_refused: call.at_us - begun_us < lease_us,
                late_percent: settings.late_percent,
            };
            if let Some(had) = follow::shown(&act, lock) {
                follow::correct(lock, had.as_deref(), &act, findings);
                shadow.free(call.at_us, *db, key);
                if let Some(owner) = had {
                    shadow.put(call.at_us, *db, key, &owner, call.script.iter().any(Command::is_of_hash));
                }
            }
            acts.push((act.purpose, act.owner, act.may_be_refused));
        }
        let shadow = &mut self.nodes[node].shadow;
        let is_known = |db: u32, key: &[u8]| keys.iter().any(|(of, known)| *of == db && **known == *key);
        let concerns = |command: &&Command| {
            command.verb.changes() && command.keys().iter().any(|key| is_known(command.db, key))
        };
        call.acts().iter().filter(concerns).for_each(|command| shadow.give(call.at_us, command));
        for ((db, key), (purpose, owner, may_be_refused)) in keys.iter().zip(acts) {
            let Audit { nodes, findings, settings, past, .. } = self;
            let Node { name, locks, shadow, .. } = &mut nodes[node];
            let Some(lock) = locks.get_mut(db).and_then(|locks| locks.get_mut(key)) else { continue };
            let after = shadow.held(*db, key, call.at_ms());
            let (place, names_no_owner) = (Place { node: name, db: *db, key }, owner.is_none());
            let late_percent = settings.late_percent;
            let act = Act { place, call: &call, purpose, owner, after, may_be_refused, late_percent };
            let before = past.is_some().then(|| lock.hold.clone()).flatten();
            follow::follow(lock, &act, findings);
            if let Some(past) = past {
                past.changed(&act, before.as_ref(), lock);
            }
            let changes = |command: &Command| command.verb.changes() && command.keys().contains(key);
            if names_no_owner && call.script.iter().any(changes) {
                let script = self.scripts.digest(&call.command);
                self.lists(script, key, &call);
            }
        }
        let Audit { nodes, findings, .. } = self;
        nodes[node].sweep(findings);
    }

    /// Returns true if the key is that of a lock, which this call may make it.
    fn is_tracked(&mut self, node: usize, call: &Call, db: u32, key: &[u8]) -> bool {
        if self.nodes[node].has(db, key) {
            return true;
        }
        if !is_wanted(&self.settings, key) || !self.begins_lock(call, key) {
            return false;
        }
        self.nodes[node].locks.entry(db).or_default().insert(key.into(), Lock::new(call.at_us));
        true
    }

    /// Returns true if a call acquires a lock with this key.
    fn begins_lock(&mut self, call: &Call, key: &[u8]) -> bool {
        if !call.command.verb.calls_script() {
            return call.command.creates();
        }
        let is_known = self.scripts.is_acquire(call);
        let mut own = call.script.iter().filter(|command| command.word(1) == key);
        let owns = own.clone().any(|command| {
            command.verb == Verb::Hincrby && (is_known || scripts::is_redisson_owner(command.word(2)))
        });
        let expires = own.clone().any(|command| command.verb == Verb::Expire);
        if owns && expires {
            return true;
        }
        own.any(|command| command.sets_expiry() || command.creates())
            && call.command.keys().iter().any(|named| **named == *key)
            && self.scripts.purpose(call, key) != Purpose::Release
            && !key.starts_with(b"redisson_")
    }

    /// Lists a script that names no owner of a lock.
    fn lists(&mut self, script: Box<[u8]>, key: &[u8], call: &Call) {
        if self.unknown.len() >= UNKNOWN_MAX && !self.unknown.contains_key(&script) {
            return;
        }
        let text = String::from_utf8_lossy(&script).into_owned();
        let (calls, lock, commands) = (0, names::key(key), BTreeSet::new());
        let unknown =
            self.unknown.entry(script).or_insert(UnknownScript { script: text, calls, lock, commands });
        unknown.calls += 1;
        let changes = call.script.iter().filter(|command| command.verb.changes());
        unknown.commands.extend(changes.map(Command::name));
    }

    /// Follows a FLUSHALL or FLUSHDB on all locks of a node.
    fn flush(&mut self, node: usize, call: Rc<Call>) {
        let Audit { nodes, findings, settings, past, .. } = self;
        let Node { name, locks, shadow, .. } = &mut nodes[node];
        let only = (call.command.verb == Verb::FlushDb).then_some(call.command.db);
        for (db, locks) in locks.iter_mut().filter(|(db, _)| only.is_none_or(|only| only == **db)) {
            for (key, lock) in locks {
                follow::lapse(lock, call.at_ms());
                if lock.hold.is_none() {
                    continue;
                }
                let act = Act {
                    place: Place { node: name, db: *db, key },
                    call: &call,
                    purpose: Purpose::Unknown,
                    owner: None,
                    after: None,
                    may_be_refused: false,
                    late_percent: settings.late_percent,
                };
                let before = past.is_some().then(|| lock.hold.clone()).flatten();
                follow::follow(lock, &act, findings);
                if let Some(past) = past {
                    past.changed(&act, before.as_ref(), lock);
                }
            }
        }
        shadow.flush(call.at_us, only);
    }
}

/// Returns true for a finding's key if it is used as a lock, and if scripts or renewals prove that.
pub(super) fn standing(nodes: &[Node], finding: &Finding) -> (bool, bool) {
    let node = nodes.iter().find(|node| node.name == finding.node);
    let lock = node.and_then(|node| node.locks.get(&finding.db)?.get(&finding.key));
    // A key that SET NX creates may be no lock at all. Of a lock that was dropped nothing is known
    // any more.
    lock.map_or((true, true), Lock::uses)
}

/// Returns true if a command is on a lock's key, or creates a key that may be a lock's.
fn concerns(node: &Node, verb: Verb, line: &Line<'_>) -> bool {
    let mut words = line.words().skip(1);
    let Some(first) = words.next() else { return false };
    if node.has(line.db, &first) || verb == Verb::SetNx {
        return true;
    }
    match verb {
        Verb::Set => words.skip(1).any(|word| word.eq_ignore_ascii_case(b"nx")),
        Verb::Del => words.any(|key| node.has(line.db, &key)),
        Verb::Move => words.next().is_some_and(|key| node.has(line.db, &key)),
        _ => false,
    }
}

/// Returns the lease that a SET asks for.
fn lease_ms(command: &Command) -> Option<i64> {
    let after = |option: &str| {
        let at =
            command.words.iter().skip(3).position(|word| word.eq_ignore_ascii_case(option.as_bytes()))?;
        std::str::from_utf8(command.word(at + 4)).ok()?.parse::<i64>().ok()
    };
    after("PX").or_else(|| after("EX").map(|secs| secs.saturating_mul(1_000)))
}

/// Returns true if the settings' patterns include a key.
pub(super) fn is_wanted(settings: &Settings, key: &[u8]) -> bool {
    let text = String::from_utf8_lossy(key);
    settings.locks.is_empty() || settings.locks.iter().any(|one| matches(one, &text))
}

/// Returns true if text fits a pattern with `*` for any characters and `?` for one.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut from, mut star) = (0, 0, None);
    while from < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(char) if *char == '?' || *char == text[from] => (at, from) = (at + 1, from + 1),
            _ => {
                let Some((star_at, begun)) = star else { return false };
                star = Some((star_at, begun + 1));
                (at, from) = (star_at + 1, begun + 1);
            }
        }
    }
    pattern[at..].iter().all(|char| *char == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives an audit a command of a client, in seconds after its beginning.
    fn give(audit: &mut Audit, secs: u32, client: &str, command: &str) {
        let words: Vec<String> = command.split(' ').map(|word| format!("\"{word}\"")).collect();
        let line = format!("17{secs:08}.000000 [0 {client}] {}", words.join(" "));
        audit.take_text(0, 1, line.as_bytes());
    }

    /// Requests are marked as done by SET NX. They are no locks, and there are many.
    #[test]
    fn keys_that_are_no_locks_are_forgotten_with_their_findings() {
        let mut audit = Audit::new(Settings::default());
        audit.node("n1");
        give(&mut audit, 0, "10.0.0.1:1", "PING");
        give(&mut audit, 20, "10.0.0.1:1", "SET a one NX EX 10");
        give(&mut audit, 21, "10.0.0.2:1", "DEL a");
        give(&mut audit, 22, "10.0.0.1:1", "SET b one NX EX 10");
        give(&mut audit, 23, "10.0.0.2:1", "SET b two EX 10");
        assert_eq!(audit.findings.list.len(), 2);
        for request in 0..u32::try_from(LOCKS_MAX).expect("it is small") + 10 {
            give(&mut audit, 100 + request / 1_000, "10.0.0.1:1", &format!("SET r{request} 1 NX EX 86400"));
        }
        assert!(audit.nodes[0].count() < 100, "{} are left", audit.nodes[0].count());
        audit.finish();
        let summary = audit.summary();
        assert!(summary.findings.is_empty() && summary.notices.is_empty(), "{}", summary.text());
    }

    #[test]
    fn patterns_of_keys() {
        let rows = [
            ("lock:*", "lock:a", true),
            ("lock:*", "block:a", false),
            ("*:a?c", "x:y:abc", true),
            ("*", "", true),
            ("a", "ab", false),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
        ];
        for (pattern, text, expected) in rows {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
