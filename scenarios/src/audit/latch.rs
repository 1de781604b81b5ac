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

/// A connection that has sent nothing for this long is taken for closed: MONITOR shows no end of a
/// connection. Redisson sends PING on its subscriptions every 30 seconds, unless it is told not to.
const SILENT_US: i64 = 600_000_000;

/// A connection that pings is taken for closed after this number of its longest pauses,
const PAUSES: i64 = 4;

/// and at the earliest after this time.
const SILENT_MIN_US: i64 = 60_000_000;

/// A latch, and those that wait for it.
#[derive(Debug, Default)]
pub(super) struct Latch {
    count: Option<i64>,
    /// The last call that set, counted down or deleted it.
    last: Option<Rc<Call>>,
    /// The subscriptions by the address of the connection.
    waiters: BTreeMap<Box<str>, Waiter>,
}

/// A connection that has subscribed to the end of a latch.
#[derive(Debug)]
struct Waiter {
    /// The subscription.
    call: Rc<Call>,
    /// The time of the connection's last command.
    last_us: i64,
    pinged_us: Option<i64>,
    /// The longest time between two PINGs.
    pause_us: i64,
}

impl Waiter {
    /// Returns false for a connection that is taken for closed.
    fn waits(&self, now_us: i64) -> bool {
        let most_us = match self.pause_us {
            0 => SILENT_US,
            pause_us => pause_us.saturating_mul(PAUSES).max(SILENT_MIN_US),
        };
        now_us.saturating_sub(self.last_us) <= most_us
    }
}

impl Latch {
    pub(super) fn is_held(&self, now_us: i64) -> bool {
        self.waiters(now_us) > 0 || self.count.is_some_and(|count| count > 0)
    }

    pub(super) fn count(&self) -> Option<i64> {
        self.count
    }

    /// Returns the number of clients that wait for its end.
    pub(super) fn waiters(&self, now_us: i64) -> usize {
        self.waiters.values().filter(|waiter| waiter.waits(now_us)).count()
    }

    pub(super) fn doubt(&mut self) {
        *self = Latch::default();
    }

    /// Follows a subscription. Returns false if there is no room for it.
    pub(super) fn subscribes(&mut self, call: &Rc<Call>) -> bool {
        if self.waiters.len() >= WAITERS_MAX {
            self.waiters.retain(|_, waiter| waiter.waits(call.at_us));
        }
        let has_room = self.waiters.len() < WAITERS_MAX || self.waiters.contains_key(&call.client);
        if has_room {
            let (call, last_us, client) = (call.clone(), call.at_us, call.client.clone());
            let new = Waiter { call, last_us, pinged_us: None, pause_us: 0 };
            self.waiters.entry(client).or_insert(new).last_us = last_us;
        }
        has_room
    }

    /// Follows the end of a subscription.
    pub(super) fn leaves(&mut self, client: &str) {
        self.waiters.remove(client);
    }

    /// Notes that a connection still sends commands. Returns false if it does not wait.
    pub(super) fn hears(&mut self, client: &str, at_us: i64, is_ping: bool) -> bool {
        let Some(waiter) = self.waiters.get_mut(client) else { return false };
        waiter.last_us = at_us;
        if is_ping {
            let pause_us = waiter.pinged_us.map_or(0, |pinged_us| at_us.saturating_sub(pinged_us));
            waiter.pause_us = waiter.pause_us.max(pause_us);
            waiter.pinged_us = Some(at_us);
        }
        true
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
        let waits =
            |waiter: &&Waiter| waiter.waits(now_us) && now_us - waiter.call.at_us.max(since_us) >= LONG_US;
        let mut all = self.waiters.values().filter(waits).map(|waiter| &waiter.call);
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

#[cfg(test)]
mod tests {
    use crate::audit::{Audit, Settings, findings::Finding};

    /// Gives commands with their seconds and the ports of their connections.
    fn audited(commands: &[(u32, u32, &str)]) -> Audit {
        let mut audit = Audit::new(Settings::default());
        audit.node("n1");
        for (secs, port, command) in commands {
            let words: Vec<String> = command.split(' ').map(|word| format!("\"{word}\"")).collect();
            let from = if *port == 0 { "lua".to_owned() } else { format!("10.0.0.1:{port}") };
            let line = format!("17000{secs:05}.000000 [0 {from}] {}", words.join(" "));
            audit.take_text(0, 1, line.as_bytes());
        }
        audit
    }

    const SUBSCRIBES: &str = "SUBSCRIBE redisson_countdownlatch__channel__{door}";
    const UNSUBSCRIBES: &str = "UNSUBSCRIBE redisson_countdownlatch__channel__{door}";
    const BEGIN: [(u32, u32, &str); 3] = [
        (0, 9, "EVALSHA 0f 2 door redisson_countdownlatch__channel__{door} 0 2"),
        (0, 0, "exists door"),
        (0, 0, "set door 2"),
    ];

    fn waiters(commands: &[(u32, u32, &str)], now_secs: i64) -> usize {
        let audit = audited(&[&BEGIN[..], commands].concat());
        let now_us = (1_700_000_000 + now_secs) * 1_000_000;
        audit.top(1, &[Some(now_us)])[0].row.waiters
    }

    #[test]
    fn a_connection_that_is_silent_for_too_long_waits_no_more() {
        let silent = [(1, 1, SUBSCRIBES)];
        assert_eq!((waiters(&silent, 600), waiters(&silent, 602)), (1, 0));
        // Pings every 30 seconds; then four of them are missing.
        let pings =
            [(1, 1, SUBSCRIBES), (2, 1, SUBSCRIBES), (10, 1, "PING"), (40, 1, "ping"), (70, 1, "PING")];
        assert_eq!((waiters(&pings, 190), waiters(&pings, 191)), (1, 0));
        // One ping shows no interval, and quick ones are no reason to give up quickly.
        assert_eq!(waiters(&pings[..3], 600), 1);
        let quick = [(1, 1, SUBSCRIBES), (2, 1, "PING"), (3, 1, "PING")];
        assert_eq!((waiters(&quick, 63), waiters(&quick, 64)), (1, 0));
        // Another connection's commands say nothing.
        assert_eq!(waiters(&[(1, 1, SUBSCRIBES), (300, 2, "PING")], 602), 0);
    }

    /// Redis 6.2 does not show QUIT, and no server shows CLIENT KILL.
    #[test]
    fn a_connection_that_leaves_waits_no_more() {
        for end in [UNSUBSCRIBES, "UNSUBSCRIBE", "QUIT", "reset"] {
            let commands = [(1, 1, SUBSCRIBES), (1, 2, SUBSCRIBES), (2, 1, end)];
            assert_eq!(waiters(&commands, 3), 1, "{end}");
        }
    }

    #[test]
    fn a_latch_never_opens_only_for_those_that_still_wait() {
        let finding = |last: u32| -> Vec<Finding> {
            let mut audit = audited(
                &[&BEGIN[..], &[(1, 1, SUBSCRIBES), (500, 2, SUBSCRIBES), (last, 9, "PING")]].concat(),
            );
            audit.finish();
            audit.summary().notices
        };
        assert!(finding(590)[0].says.starts_with("2 clients wait, the first for "));
        assert!(finding(700)[0].says.starts_with("1 client waits, the first for 3 min 20 s"));
        assert!(finding(1_200).is_empty());
    }
}
