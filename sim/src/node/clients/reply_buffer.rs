//! The reply buffer of a connection, which grows and shrinks with its replies. Replies that do not
//! fit are put into a list of blocks.

use std::time::Duration;

use crate::time::Monotonic;

/// The rules for resizing reply buffers (DEBUG REPLYBUFFER).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyBufferRules {
    /// False if reply buffers keep their size.
    pub resizes: bool,
    /// The interval at which the peak is reset; `None` for never.
    pub remembers: Option<Duration>,
}

impl Default for ReplyBufferRules {
    fn default() -> ReplyBufferRules {
        ReplyBufferRules { resizes: true, remembers: Some(Duration::from_secs(5)) }
    }
}

/// The number of resizes of reply buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReplyBufferChanges {
    /// Resizes to a larger size.
    pub grown: u64,
    /// Resizes to a smaller size.
    pub shrunk: u64,
}

/// The reply buffer of one connection.
///
/// Redis may resize each reply buffer ten times a second. Here the resizes are computed when the
/// size is read.
#[derive(Debug, Clone, Copy)]
pub struct ReplyBuffer {
    size: usize,
    /// The most bytes it has held since the last reset of the peak.
    peak: usize,
    /// The time of the last reset of the peak.
    forgotten: Option<Monotonic>,
    /// The time up to which resizes have been computed.
    seen: Monotonic,
}

/// The interval at which Redis checks the size.
const TICK: Duration = Duration::from_millis(100);

impl ReplyBuffer {
    /// The smallest size.
    pub const MIN: usize = 1 << 10;
    /// The largest size, with which every connection begins (`PROTO_REPLY_CHUNK_BYTES`).
    pub const MAX: usize = 16 << 10;

    /// Returns the reply buffer of a connection made at `now`.
    pub fn new(now: Monotonic) -> ReplyBuffer {
        ReplyBuffer { size: ReplyBuffer::MAX, peak: ReplyBuffer::MAX, forgotten: None, seen: now }
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the most bytes it has held since the last reset of the peak.
    pub fn peak(&self) -> usize {
        self.peak
    }

    /// Records the number of bytes that wait to be sent.
    pub fn fill(&mut self, bytes: usize) {
        self.peak = self.peak.max(bytes.min(self.size));
    }

    /// Computes the resizes until `now`, and counts them in `changes`.
    pub fn pass(&mut self, now: Monotonic, rules: ReplyBufferRules, changes: &mut ReplyBufferChanges) {
        while self.seen + TICK <= now {
            // No further resize is possible.
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
                // Until the peak is reset, no resize is possible.
                let until = due.map_or(now, |due| due.min(now));
                let ticks = until.since(self.seen).as_millis() / TICK.as_millis();
                let ticks_ms = ticks.saturating_mul(TICK.as_millis());
                self.seen += Duration::from_millis(u64::try_from(ticks_ms).unwrap_or(u64::MAX));
            }
        }
    }

    /// Resizes the buffer to fit the peak; returns true if its size changed.
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

    // redis-server 7.0 showed these sizes in CLIENT LIST at these times.
    #[test]
    fn it_shrinks_soon_grows_with_what_is_sent_and_shrinks_again() {
        let at = Monotonic::from_millis;
        let rules = ReplyBufferRules::default();
        let (mut buffer, mut changes) = (ReplyBuffer::new(at(0)), ReplyBufferChanges::default());
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
            buffer.pass(at(ms), rules, &mut changes);
            assert_eq!(buffer.size(), size, "at {ms} ms");
            buffer.fill(sent);
        }
    }

    #[test]
    fn debug_replybuffer_sets_how_it_is_resized() {
        let at = Monotonic::from_millis;
        let after = |rules, sent: usize| {
            let mut buffer = ReplyBuffer::new(at(0));
            buffer.pass(at(10_000), rules, &mut ReplyBufferChanges::default());
            buffer.fill(sent);
            buffer.pass(at(60_000), rules, &mut ReplyBufferChanges::default());
            (buffer.size(), buffer.peak())
        };
        let rules = |resizes, remembers| ReplyBufferRules { resizes, remembers };
        assert_eq!(after(rules(false, Some(Duration::from_secs(5))), 5), (16384, 0));
        assert_eq!(after(rules(true, None), 5), (16384, 16384));
        assert_eq!(after(rules(true, Some(Duration::ZERO)), 20_000), (1024, 0));
    }
}
