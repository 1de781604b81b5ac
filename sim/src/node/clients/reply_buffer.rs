//! The room that a connection has for its replies before blocks are listed: it grows and shrinks with what it is sent.

use std::time::Duration;

use crate::time::Monotonic;

/// How the room of every connection changes (DEBUG REPLYBUFFER).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyBufferRules {
    /// Whether it does at all.
    pub resizes: bool,
    /// After how long the longest reply is forgotten; `None` for never.
    pub remembers: Option<Duration>,
}

impl Default for ReplyBufferRules {
    fn default() -> ReplyBufferRules {
        ReplyBufferRules { resizes: true, remembers: Some(Duration::from_secs(5)) }
    }
}

/// How often the room of a connection was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReplyBufferChanges {
    /// It became larger.
    pub grown: u64,
    /// It became smaller.
    pub shrunk: u64,
}

/// The room of one connection.
///
/// Redis resizes each of them ten times a second. Here that is computed when the size is read, as often as it would have been.
#[derive(Debug, Clone, Copy)]
pub struct ReplyBuffer {
    size: usize,
    /// The most that was in it since the peak was last forgotten.
    peak: usize,
    /// When that was; never, at first.
    forgotten: Option<Monotonic>,
    /// Until when it has been looked at.
    seen: Monotonic,
}

/// How often a server looks.
const TICK: Duration = Duration::from_millis(100);

impl ReplyBuffer {
    /// The least room.
    pub const MIN: usize = 1 << 10;
    /// The most, which every connection begins with (`PROTO_REPLY_CHUNK_BYTES`).
    pub const MAX: usize = 16 << 10;

    /// The room of a connection made at `now`.
    pub fn new(now: Monotonic) -> ReplyBuffer {
        ReplyBuffer { size: ReplyBuffer::MAX, peak: ReplyBuffer::MAX, forgotten: None, seen: now }
    }

    /// How many bytes there is room for.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The most that was in it lately.
    pub fn peak(&self) -> usize {
        self.peak
    }

    /// So many bytes wait to be sent.
    pub fn fill(&mut self, bytes: usize) {
        self.peak = self.peak.max(bytes.min(self.size));
    }

    /// Lets the time pass until `now`, and counts what changes.
    pub fn pass(&mut self, now: Monotonic, rules: ReplyBufferRules, changes: &mut ReplyBufferChanges) {
        while self.seen + TICK <= now {
            // Nothing more will change: the rest of the way need not be walked.
            if self.peak == 0 && (self.size == ReplyBuffer::MIN || !rules.resizes) {
                self.seen = now;
                return;
            }
            self.seen += TICK;
            let before = self.size;
            let resized = rules.resizes && self.resize();
            changes.grown += u64::from(self.size > before);
            changes.shrunk += u64::from(self.size < before);
            let due = match (rules.remembers, self.forgotten) {
                (None, _) => None,
                (Some(_), None) => Some(self.seen),
                (Some(after), Some(at)) => Some(at + after),
            };
            if due.is_some_and(|due| self.seen >= due) {
                self.peak = 0;
                self.forgotten = Some(self.seen);
            } else if !resized {
                // Until the peak is forgotten all stays as it is.
                let until = due.map_or(now, |due| due.min(now));
                let ticks = until.since(self.seen).as_millis() / TICK.as_millis();
                let ticks_ms = ticks.saturating_mul(TICK.as_millis());
                self.seen += Duration::from_millis(u64::try_from(ticks_ms).unwrap_or(u64::MAX));
            }
        }
    }

    /// Fits the room to the peak; returns whether it was changed.
    fn resize(&mut self) -> bool {
        let before = self.size;
        if self.peak < self.size / 2 && self.size / 2 >= ReplyBuffer::MIN {
            self.size = (self.peak + 1).max(ReplyBuffer::MIN);
        } else if self.peak == self.size {
            self.size = (self.size * 2).min(ReplyBuffer::MAX);
        }
        self.size != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The sizes are those that redis-server 7.0 showed in CLIENT LIST at these times.
    #[test]
    fn it_shrinks_soon_grows_with_what_is_sent_and_shrinks_again() {
        let at = Monotonic::from_millis;
        let rules = ReplyBufferRules::default();
        let (mut room, mut changes) = (ReplyBuffer::new(at(0)), ReplyBufferChanges::default());
        for (ms, sent, size) in [
            (50, 5, 16384),
            (250, 5, 1024),
            (5_900, 40_000, 1024),
            (6_050, 40_000, 2048),
            (6_150, 40_000, 4096),
            (6_250, 40_000, 8192),
            (6_350, 40_000, 16384),
            (10_000, 0, 16384),
            (11_000, 0, 1024),
            (100_000_000, 1_509, 1024),
            (100_000_150, 1_509, 2048),
            (100_001_000, 5, 2048),
        ] {
            room.pass(at(ms), rules, &mut changes);
            assert_eq!(room.size(), size, "at {ms} ms");
            room.fill(sent);
        }
    }

    #[test]
    fn it_changes_as_it_is_told_to() {
        let at = Monotonic::from_millis;
        let after = |rules, sent: usize| {
            let mut room = ReplyBuffer::new(at(0));
            room.pass(at(10_000), rules, &mut ReplyBufferChanges::default());
            room.fill(sent);
            room.pass(at(60_000), rules, &mut ReplyBufferChanges::default());
            (room.size(), room.peak())
        };
        let rules = |resizes, remembers| ReplyBufferRules { resizes, remembers };
        assert_eq!(after(rules(false, Some(Duration::from_secs(5))), 5), (16384, 0));
        assert_eq!(after(rules(true, None), 5), (16384, 16384));
        assert_eq!(after(rules(true, Some(Duration::ZERO)), 20_000), (1024, 0));
    }
}
