//! The audit: takes the lines of captures, keeps the locks of each node, and finds faults.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    rc::Rc,
};

use serde::Serialize;

use super::{
    acts::Acts,
    capture::{Capture, From, Line, Problems, Times, Unit},
    command::{Call, Command, Verb},
    findings::{Change, Failover, Finding, Findings, Place, Unseen},
    follow::{self, Act},
    locks::Lock,
    names::{self, Names},
    node::Node,
    past::Past,
    patterns::{self, Patterns},
    queue::is_queue,
    read_write,
    scripts::{self, Purpose, Script, Scripts},
};

/// The most unknown scripts that are listed.
const UNKNOWN_MAX: usize = 100;

/// The most keys of an unknown script that are listed.
const KEYS_MAX: usize = 10;

/// The settings of an audit.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The patterns of the keys to audit, with `*` and `?`; without any, all locks.
    pub locks: Vec<String>,
    /// The kinds of locks that the user names by their keys.
    pub patterns: Patterns,
    /// Set to show values instead of their hashes.
    pub reveal: bool,
    /// The share of a lease in percent from which a renewal counts as a near miss.
    pub late_percent: i64,
    /// Set to record a history of the locks.
    pub history: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            locks: Vec::new(),
            patterns: Patterns::default(),
            reveal: false,
            late_percent: 80,
            history: false,
        }
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
    /// The keys of these locks, at most ten.
    pub keys: BTreeSet<String>,
    /// The commands that changed them.
    pub commands: BTreeSet<String>,
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
    pub(super) unseen: Vec<Unseen>,
    pub(super) failovers: Vec<Failover>,
}

impl Audit {
    /// Begins an audit that has seen nothing.
    pub fn new(settings: Settings) -> Audit {
        let findings = Findings { names: Names { reveal: settings.reveal }, ..Findings::default() };
        let past = settings.history.then(Past::default);
        let (nodes, scripts, problems, unknown) = Default::default();
        let (changes, unseen, failovers) = Default::default();
        Audit { settings, nodes, scripts, findings, problems, unknown, past, changes, unseen, failovers }
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
        if let From::Client(client) = line.from {
            self.nodes[node].objects.hears(client, line.at_us, line.name());
        }
        let Some(verb) = verb else { return };
        if verb.calls_script() {
            let open = Some(Call::new(number, line, verb));
            self.nodes[node].open = open;
        } else if verb == Verb::Script {
            self.scripts.learn(&Call::new(number, line, verb));
        } else if matches!(verb, Verb::FlushAll | Verb::FlushDb) {
            self.flush(node, Rc::new(Call::new(number, line, verb)));
        } else if verb == Verb::Subscribe {
            let settings = &self.settings;
            let call = Rc::new(Call::new(number, line, verb));
            self.nodes[node].objects.subscribes(&call, |key| is_wanted(settings, key));
        } else if verb.changes() && concerns(&self.nodes[node], &self.settings.patterns, verb, line) {
            self.follow(node, Call::new(number, line, verb));
        }
    }

    /// Completes the calls that are open, and the holds that have expired.
    pub fn finish(&mut self) {
        for node in 0..self.nodes.len() {
            if let Some(call) = self.nodes[node].open.take() {
                self.follow(node, call);
            }
            let Node { name, locks, objects, now_us, times, is_gentle, .. } = &mut self.nodes[node];
            // Events and reads have shown each end.
            if *is_gentle {
                continue;
            }
            objects.finish(name, *now_us, &mut self.findings);
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
        let acts = Acts::of(&call);
        let script = self.scripts.script(&acts);
        let Audit { nodes, findings, settings, .. } = self;
        let Node { name, objects, .. } = &mut nodes[node];
        objects.follow(name, &acts, &settings.patterns, |key| is_wanted(settings, key), findings);
        let mut keys: Vec<(u32, &[u8], Vec<&Command>)> = Vec::new();
        for (db, key) in acts.keys() {
            let own = acts.on(db, key);
            if self.is_tracked(node, (&acts, &script), db, key, &own) {
                keys.push((db, key, own));
            }
        }
        if keys.is_empty() {
            return;
        }
        let lease_us = lease_ms(&call.command).unwrap_or(60_000).saturating_mul(1_000);
        let mut before = Vec::with_capacity(keys.len());
        for (db, key, own) in &keys {
            let Audit { nodes, scripts, findings, settings, .. } = self;
            let Node { name, locks, shadow, gap_us, .. } = &mut nodes[node];
            let Some(lock) = locks.get_mut(db).and_then(|locks| locks.get_mut(*key)) else {
                before.push((Purpose::Unknown, None, false));
                continue;
            };
            follow::lapse(lock, call.at_ms());
            let purpose = scripts.purpose(&script, own);
            let held = lock.hold.iter().map(|hold| &*hold.owner);
            let owner = scripts::owner(&acts, own, held.chain(lock.past.iter().map(|past| &*past.owner)));
            lock.library = script.library.or(lock.library);
            let begun_us = gap_us.unwrap_or(call.at_us);
            let act = Act {
                place: Place { node: name, db: *db, key },
                call: &call,
                own,
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
                    shadow.put(call.at_us, *db, key, &owner, act.is_of_hash());
                }
            }
            before.push((act.purpose, act.owner, act.may_be_refused));
        }
        let shadow = &mut self.nodes[node].shadow;
        let known: BTreeSet<(u32, &[u8])> = keys.iter().map(|(db, key, _)| (*db, *key)).collect();
        let concerns = |command: &&Command| {
            command.verb.changes() && command.keys().iter().any(|key| known.contains(&(command.db, &**key)))
        };
        call.acts().iter().filter(concerns).for_each(|command| shadow.give(call.at_us, command));
        for ((db, key, own), (purpose, owner, may_be_refused)) in keys.iter().zip(before) {
            let Audit { nodes, findings, settings, past, .. } = self;
            let Node { name, locks, shadow, objects, .. } = &mut nodes[node];
            let Some(lock) = locks.get_mut(db).and_then(|locks| locks.get_mut(*key)) else { continue };
            let after = shadow.held(*db, key, call.at_ms());
            let (place, names_no_owner) = (Place { node: name, db: *db, key }, owner.is_none());
            let late_percent = settings.late_percent;
            let act = Act { place, call: &call, own, purpose, owner, after, may_be_refused, late_percent };
            let before = past.is_some().then(|| lock.hold.clone()).flatten();
            follow::follow(lock, &act, findings);
            if let Some(hold) =
                lock.hold.as_ref().filter(|hold| Rc::ptr_eq(&hold.grant, &call) && hold.is_sure)
            {
                objects.queues.granted((*db, key), &hold.owner, &acts);
            }
            if let Some(past) = past {
                past.changed(&act, before.as_ref(), lock);
            }
            let is_script = call.command.verb.calls_script();
            if names_no_owner && is_script && own.iter().any(|command| command.verb.changes()) {
                self.lists(&script.digest, key, own);
            }
        }
        let Audit { nodes, findings, .. } = self;
        nodes[node].sweep(findings);
    }

    /// Returns true if the key is that of a lock. This call may make it one by `own`, its commands
    /// on the key.
    fn is_tracked(
        &mut self,
        node: usize,
        (acts, script): (&Acts<'_>, &Script),
        db: u32,
        key: &[u8],
        own: &[&Command],
    ) -> bool {
        let (at, call) = (&mut self.nodes[node], acts.call);
        if at.objects.has(db, key) {
            // An earlier call may have seemed to be on a plain lock.
            if at.locks.get_mut(&db).and_then(|locks| locks.remove(key)).is_some() {
                at.shadow.free(call.at_us, db, key);
            }
            return false;
        }
        if at.has(db, key) {
            return true;
        }
        if !is_wanted(&self.settings, key) || !self.begins_lock(acts, script, key, own) {
            return false;
        }
        let is_named = self.settings.patterns.kind(key).is_some();
        let mut lock = Lock::new(call.at_us);
        lock.is_named = is_named;
        self.nodes[node].locks.entry(db).or_default().insert(key.into(), lock);
        true
    }

    /// Returns true if a call acquires a lock with this key by its commands on the key.
    fn begins_lock(&self, acts: &Acts<'_>, script: &Script, key: &[u8], own: &[&Command]) -> bool {
        let has = |verbs: &[Verb]| own.iter().any(|command| verbs.contains(&command.verb));
        match self.settings.patterns.kind(key) {
            Some(patterns::Kind::Token) => return has(&[Verb::Set, Verb::SetNx]),
            Some(patterns::Kind::Hash) => return has(&[Verb::Hincrby]),
            Some(_) => return false,
            None => {}
        }
        if !acts.call.command.verb.calls_script() {
            return acts.call.command.creates();
        }
        if own.iter().any(|command| read_write::is_mode(command)) {
            return false;
        }
        let owns = own.iter().any(|command| scripts::owns(command, script.is_acquire));
        if owns && has(&[Verb::Expire]) {
            return true;
        }
        own.iter().any(|command| command.sets_expiry() || command.creates())
            && acts.names(key)
            && self.scripts.purpose(script, own) != Purpose::Release
            && !key.starts_with(b"redisson_")
    }

    /// Lists a script that names no owner of a lock, with its commands on the lock's key.
    fn lists(&mut self, script: &[u8], key: &[u8], own: &[&Command]) {
        if self.unknown.len() >= UNKNOWN_MAX && !self.unknown.contains_key(script) {
            return;
        }
        let text = String::from_utf8_lossy(script).into_owned();
        let (calls, lock, keys, commands) = (0, names::key(key), BTreeSet::new(), BTreeSet::new());
        let new = UnknownScript { script: text, calls, lock, keys, commands };
        let unknown = self.unknown.entry(script.into()).or_insert(new);
        unknown.calls += 1;
        if unknown.keys.len() < KEYS_MAX {
            unknown.keys.insert(names::key(key));
        }
        let changes = own.iter().filter(|command| command.verb.changes());
        unknown.commands.extend(changes.map(|command| command.name()));
    }

    /// Follows a FLUSHALL or FLUSHDB on all locks of a node.
    fn flush(&mut self, node: usize, call: Rc<Call>) {
        let Audit { nodes, findings, settings, past, .. } = self;
        let Node { name, locks, shadow, objects, .. } = &mut nodes[node];
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
                    own: &[],
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
        objects.flush(name, only, &call, findings);
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
fn concerns(node: &Node, named: &Patterns, verb: Verb, line: &Line<'_>) -> bool {
    let mut words = line.words().skip(1);
    let Some(first) = words.next() else { return false };
    if node.has(line.db, &first) || verb == Verb::SetNx {
        return true;
    }
    match verb {
        Verb::Set => {
            words.skip(1).any(|word| word.eq_ignore_ascii_case(b"nx"))
                || named.kind(&first) == Some(patterns::Kind::Token)
        }
        Verb::Hincrby => named.kind(&first) == Some(patterns::Kind::Hash),
        Verb::Del => is_queue(&first) || words.any(|key| node.has(line.db, &key) || is_queue(&key)),
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
    if settings.patterns.kind(key) == Some(patterns::Kind::None) {
        return false;
    }
    let text = String::from_utf8_lossy(key);
    settings.locks.is_empty() || settings.locks.iter().any(|one| patterns::matches(one, &text))
}

#[cfg(test)]
mod tests {
    use super::{
        super::{findings::Kind, locks::LOCKS_MAX, summary::LockRow},
        *,
    };

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

    /// A multi-lock may take its locks by one script. Each key looks up its own commands: with a
    /// search through all of them for each key, this test lasts for minutes.
    #[test]
    fn the_work_for_a_call_grows_with_its_length() {
        let mut audit = Audit::new(Settings::default());
        audit.node("n1");
        let keys: Vec<String> = (0..100_000).map(|key| format!("k{key}")).collect();
        let all = keys.join(" ");
        give(&mut audit, 0, "10.0.0.1:1", &format!("EVALSHA 0f 100000 {all} token"));
        let taken = &keys[..10_000];
        for key in taken {
            give(&mut audit, 0, "lua", &format!("SET {key} token NX PX 30000"));
        }
        give(&mut audit, 5, "10.0.0.1:1", &format!("EVALSHA 1e 100000 {all} token"));
        for key in &taken[..5_000] {
            give(&mut audit, 5, "lua", &format!("GET {key}"));
            give(&mut audit, 5, "lua", &format!("PEXPIRE {key} 30000"));
        }
        give(&mut audit, 9, "10.0.0.2:1", &format!("DEL {all}"));
        audit.finish();
        let summary = audit.summary();
        let sum = |count: fn(&LockRow) -> u64| summary.locks.iter().map(count).sum::<u64>();
        assert_eq!((summary.locks.len(), sum(|row| row.grants)), (10_000, 10_000));
        assert_eq!((sum(|row| row.renewals), sum(|row| row.broken)), (5_000, 10_000));
        assert_eq!(summary.findings.len(), 10_000);
        assert!(summary.findings.iter().all(|finding| finding.kind == Kind::Deleted));
        let shown: Vec<&str> = keys[..12].iter().map(String::as_str).collect();
        assert_eq!(summary.findings[0].evidence[1].command, format!("DEL {} ..", shown.join(" ")));
    }
}
