//! The queues of fair locks: a list of waiters, and a set with their deadlines.
//!
//! Scripts name each waiter that they add or remove. A waiter is overtaken if a later one is
//! granted the lock before it. It proves that it still waited by asking again.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use super::{
    acts::Acts,
    command::{Call, Command, Verb},
    findings::{Findings, Kind, Place},
    names::length,
};

/// The beginnings of the keys of a queue.
const DEADLINES: &[u8] = b"redisson_lock_timeout:";
const WAITERS: &[u8] = b"redisson_lock_queue:";

/// The most queues of a node, and the most waiters of a queue, that are followed.
const QUEUES_MAX: usize = 10_000;
const WAITERS_MAX: usize = 1_000;

/// Clients compute deadlines by their own clocks, which may differ from each other by this much.
const NEAR_MS: i64 = 1_000;

/// A waiter in a queue.
#[derive(Debug)]
struct Waiter {
    owner: String,
    deadline_ms: i64,
    /// The call that put it into the queue.
    call: Rc<Call>,
    /// The command that deleted the queue under it.
    deleted: Option<Rc<Call>>,
    /// The grant to a waiter that is not before it.
    overtaken: Option<(String, Rc<Call>)>,
}

/// The queues of a node, by database and the fair lock's key.
#[derive(Debug, Default)]
pub(super) struct Queues {
    queues: BTreeMap<(u32, Box<[u8]>), Vec<Waiter>>,
}

impl Queues {
    pub(super) fn clear(&mut self) {
        self.queues.clear();
    }

    /// Follows a call on queues: waiters come, ask again, leave, or are granted the lock.
    /// `is_wanted` says which keys are audited.
    pub(super) fn follow(
        &mut self,
        node: &str,
        acts: &Acts<'_>,
        is_wanted: impl Fn(&[u8]) -> bool,
        findings: &mut Findings,
    ) {
        let call = acts.call;
        if !call.command.verb.calls_script() {
            return self.deleted(call);
        }
        let keys = call.command.keys();
        // A script that the server does not know has no commands.
        if call.script.is_empty() || !keys.iter().any(|key| is_queue(key)) {
            return;
        }
        let key = keys.iter().find(|key| !key.starts_with(b"redisson_"));
        let Some(key) = key.filter(|key| is_wanted(key)) else { return };
        let id = (call.command.db, key.clone());
        if !self.queues.contains_key(&id) {
            if self.queues.len() >= QUEUES_MAX || !call.script.iter().any(is_joined) {
                return;
            }
            self.queues.insert(id.clone(), Vec::new());
        }
        let Some(queue) = self.queues.get_mut(&id) else { return };
        let place = Place { node, db: id.0, key };
        let releases = acts.names_prefix(b"redisson_unlock_latch:");
        let own = acts.on(id.0, key);
        let gone = acts.on_any(id.0, &[], &[DEADLINES, WAITERS]);
        let gone = gone.into_iter().filter(|command| is_removal(command));
        let gone: BTreeSet<&[u8]> =
            gone.flat_map(|command| command.words.iter().skip(2)).map(|word| &**word).collect();
        let given = own.iter().copied().filter(|command| gives(command));
        let given: BTreeSet<&[u8]> = given.map(|command| command.word(2)).collect();
        let leaves = |waiter: &Waiter| gone.contains(waiter.owner.as_bytes());
        let takes = |waiter: &Waiter| given.contains(waiter.owner.as_bytes());
        for waiter in queue.iter_mut() {
            let is_own = acts.has_arg(waiter.owner.as_bytes());
            // It still waits, or its turn has come.
            if is_own && !releases && (!leaves(waiter) || takes(waiter)) {
                overtaken(waiter, place, call, findings);
            }
        }
        // A nested grant looks for its own hold first.
        let is_nested = call.script.iter().any(|one| one.word(0).eq_ignore_ascii_case(b"hexists"));
        let taker = own.iter().find(|one| gives(one));
        if let Some(taker) = taker.filter(|_| !is_nested) {
            let owner = String::from_utf8_lossy(taker.word(2)).into_owned();
            // An unknown owner may have been in the queue since before the capture, unless the
            // queue was deleted.
            let place = queue.iter().position(|waiter| waiter.owner == owner);
            let is_later =
                |at: usize, waiter: &Waiter| place.map_or(waiter.deleted.is_some(), |place| at < place);
            let before = queue.iter_mut().enumerate().filter(|(at, waiter)| is_later(*at, waiter));
            passes(before.map(|(_, waiter)| waiter), &owner, call);
        }
        queue.retain(|waiter| !leaves(waiter) && !takes(waiter));
        for command in call.script.iter().filter(|command| is_joined(command)) {
            for pair in command.words.get(2..).unwrap_or_default().chunks_exact(2) {
                let deadline = std::str::from_utf8(&pair[0]).ok().and_then(|text| text.parse::<f64>().ok());
                // The conversion of a float saturates.
                let Some(deadline_ms) = deadline.map(|ms| ms as i64) else { continue };
                let owner = String::from_utf8_lossy(&pair[1]).into_owned();
                // It is at the end of the queue that follows a deleted one.
                queue.retain(|waiter| waiter.owner != owner || waiter.deleted.is_none());
                let has_room = queue.len() < WAITERS_MAX;
                match queue.iter_mut().find(|waiter| waiter.owner == owner) {
                    Some(waiter) => waiter.deadline_ms = deadline_ms,
                    None if has_room => {
                        let (call, deleted, overtaken) = (call.clone(), None, None);
                        queue.push(Waiter { owner, deadline_ms, call, deleted, overtaken });
                    }
                    None => {}
                }
            }
        }
        for command in &call.script {
            if command.word(0).eq_ignore_ascii_case(b"zincrby") && command.word(1).starts_with(DEADLINES) {
                let by = std::str::from_utf8(command.word(2)).ok().and_then(|text| text.parse::<f64>().ok());
                let by = by.map_or(0, |ms| ms as i64);
                let own = queue.iter_mut().filter(|waiter| waiter.owner.as_bytes() == command.word(3));
                own.for_each(|waiter| waiter.deadline_ms = waiter.deadline_ms.saturating_add(by));
            }
        }
        if queue.is_empty() {
            self.queues.remove(&id);
        }
    }

    /// Follows a grant of a lock by a call that does not look at its queue.
    pub(super) fn granted(&mut self, (db, key): (u32, &[u8]), owner: &str, acts: &Acts<'_>) {
        if self.queues.is_empty() || acts.names_prefix(WAITERS) {
            return;
        }
        if let Some(queue) = self.queues.get_mut(&(db, key.into())) {
            passes(queue.iter_mut(), owner, acts.call);
        }
    }

    /// Notes that a client deleted the keys of a queue.
    fn deleted(&mut self, call: &Rc<Call>) {
        if call.command.verb != Verb::Del {
            return;
        }
        for key in call.command.keys() {
            let Some(rest) = key.strip_prefix(WAITERS).or_else(|| key.strip_prefix(DEADLINES)) else {
                continue;
            };
            let inner = rest.strip_prefix(b"{").and_then(|rest| rest.strip_suffix(b"}"));
            for key in [Some(rest), inner].into_iter().flatten() {
                let Some(queue) = self.queues.get_mut(&(call.command.db, key.into())) else { continue };
                queue.iter_mut().for_each(|waiter| waiter.deleted = Some(call.clone()));
            }
        }
    }
}

/// Returns true for a key of a queue.
pub(super) fn is_queue(key: &[u8]) -> bool {
    key.starts_with(WAITERS) || key.starts_with(DEADLINES)
}

/// Returns true for a command that gives an owner a level of a hash.
fn gives(command: &Command) -> bool {
    command.word(0).eq_ignore_ascii_case(b"hset")
        || command.verb == Verb::Hincrby && !command.word(3).starts_with(b"-")
}

/// Notes the grant to an owner that comes after these waiters.
fn passes<'a>(mut waiters: impl Iterator<Item = &'a mut Waiter>, owner: &str, call: &Rc<Call>) {
    let until = call.at_ms().saturating_add(NEAR_MS);
    let waits = |waiter: &&mut Waiter| waiter.owner != owner && waiter.deadline_ms > until;
    if let Some(first) = waiters.find(waits) {
        first.overtaken.get_or_insert_with(|| (owner.to_owned(), call.clone()));
    }
}

/// Returns true for a command that takes waiters out of a queue.
fn is_removal(command: &Command) -> bool {
    let name = command.word(0);
    name.eq_ignore_ascii_case(b"zrem") || name.eq_ignore_ascii_case(b"lrem")
}

/// Returns true for a command that gives waiters their deadlines.
fn is_joined(command: &Command) -> bool {
    command.word(0).eq_ignore_ascii_case(b"zadd") && command.word(1).starts_with(DEADLINES)
}

/// Records that a waiter was overtaken, once it asks again.
fn overtaken(waiter: &mut Waiter, place: Place<'_>, call: &Rc<Call>, findings: &mut Findings) {
    let Some((next, grant)) = waiter.overtaken.take() else { return };
    let waited = length(grant.at_us - waiter.call.at_us);
    let says = format!(
        "it had waited for {waited} and its place had not timed out, when {} was granted the lock",
        findings.names.value(&next)
    );
    let mut parts = vec![(&waiter.call, "put it into the queue")];
    parts.extend(waiter.deleted.iter().map(|call| (call, "deleted the queue")));
    parts.push((&grant, "granted it to another owner"));
    parts.push((call, "the overtaken one asked again"));
    findings.add_shared(Kind::Overtaken, place, &waiter.owner, grant.at_us, says, &parts);
}
