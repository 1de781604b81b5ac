//! Count-down latches: a count, and clients that subscribe to its end.

use std::{collections::BTreeMap, rc::Rc};

use super::{
    acts::Acts,
    command::{Call, Verb},
    findings::{Findings, Kind, Part, Place},
    locks::Lock,
    names::length,
};

/// The channel of a latch begins with this, and has the key in braces.
pub(super) const CHANNEL: &[u8] = b"redisson_countdownlatch__channel__{";

/// A client that waits for this long may never be let go.
const LONG_US: i64 = 60_000_000;

/// The most waiters that are followed.
const WAITERS_MAX: usize = 1_000;

/// A latch, and those that wait for it.
#[derive(Debug, Default)]
pub(super) struct Latch {
    count: Option<i64>,
    /// The last call that set, counted down or deleted it.
    last: Option<Rc<Call>>,
    /// The subscriptions by the address of the connection.
    waiters: BTreeMap<Box<str>, Rc<Call>>,
}

impl Latch {
    pub(super) fn is_held(&self) -> bool {
        !self.waiters.is_empty() || self.count.is_some_and(|count| count > 0)
    }

    pub(super) fn count(&self) -> Option<i64> {
        self.count
    }

    /// Returns the number of clients that wait for its end.
    pub(super) fn waiters(&self) -> usize {
        self.waiters.len()
    }

    pub(super) fn doubt(&mut self) {
        *self = Latch::default();
    }

    /// Follows a subscription, or its end.
    pub(super) fn subscribes(&mut self, call: &Rc<Call>) {
        if call.command.name().contains("UNSUBSCRIBE") {
            self.waiters.remove(&call.client);
        } else if self.waiters.len() < WAITERS_MAX {
            self.waiters.entry(call.client.clone()).or_insert_with(|| call.clone());
        }
    }

    /// Follows a call of a script on the latch.
    pub(super) fn follow(&mut self, lock: &mut Lock, place: Place<'_>, acts: &Acts<'_>) {
        for command in acts.on(place.db, place.key) {
            lock.is_proven = true;
            match (command.verb, command.name().as_str()) {
                (Verb::Set | Verb::SetNx, _) => {
                    // A SET NX may have been refused.
                    if !command.creates() || self.count.is_none_or(|count| count <= 0) {
                        let number = std::str::from_utf8(command.word(2)).ok();
                        self.count = number.and_then(|text| text.parse().ok());
                    }
                    lock.figures.grants += 1;
                }
                (_, "DECR") => {
                    self.count = self.count.map(|count| count.saturating_sub(1));
                    lock.figures.releases += 1;
                }
                (Verb::Del, _) => {
                    // The message 0 opens the latch, 1 of a deletion does not.
                    let opens = acts.messages.iter().any(|one| one.word(2) == b"0");
                    self.count = Some(0);
                    if opens {
                        self.waiters.clear();
                    }
                }
                _ => continue,
            }
            self.last = Some(acts.call.clone());
        }
    }

    /// Follows a command that a client sent without a script.
    pub(super) fn commanded(&mut self, call: &Rc<Call>) {
        match call.command.verb {
            Verb::Del | Verb::FlushAll | Verb::FlushDb => {
                // No message reaches the waiters.
                (self.count, self.last) = (Some(0), Some(call.clone()));
            }
            verb if verb.changes() => self.count = None,
            _ => {}
        }
    }

    /// Notes at the end of the capture that clients wait for a latch which does not open.
    pub(super) fn finish(&self, place: Place<'_>, now_us: i64, findings: &mut Findings) {
        let since_us = self.last.as_ref().map_or(i64::MIN, |call| call.at_us);
        let waits = |call: &&Rc<Call>| now_us - call.at_us.max(since_us) >= LONG_US;
        let mut all = self.waiters.values().filter(waits);
        let Some(first) = all.next() else { return };
        let count = 1 + all.count();
        let clients = if count == 1 { "1 client waits".to_owned() } else { format!("{count} clients wait") };
        let left = match self.count {
            Some(0) => "the latch was deleted and not counted down".to_owned(),
            Some(left) => format!("its count is {left}"),
            None => "its count is unknown".to_owned(),
        };
        let waited = length(now_us - first.at_us);
        let says = format!("{clients}, the first for {waited}, and nothing counts it down: {left}");
        let mut parts: Vec<Part<'_>> = vec![(first, "began to wait")];
        parts.extend(self.last.iter().map(|call| (call, "changed it last")));
        findings.add_shared(Kind::NeverOpens, place, "", now_us, says, &parts);
    }
}
