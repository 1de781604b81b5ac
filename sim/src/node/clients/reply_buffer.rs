//! The reply buffer of a connection, which grows and shrinks with its replies. Replies that do not
//! fit go into a list of blocks.

use std::time::Duration;

use crate::time::Monotonic;

/// How reply buffers are resized (DEBUG REPLYBUFFER).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyBufferRules {
    /// Whether they are resized at all.
    pub resizes: bool,
    /// After how long the peak is reset; `None` for never.
    pub remembers: Option<Duration>,
}

impl Default for ReplyBufferRules {
    fn default() -> ReplyBufferRules {
        ReplyBufferRules { resizes: true, remembers: Some(Duration::from_secs(5)) }
    }
}

/// How often reply buffers were resized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReplyBufferChanges {
    /// To a larger one.
    pub grown: u64,
    /// To a smaller one.
    pub shrunk: u64,
}

/// The reply buffer of one connection.
///
/// Redis may resize each of them ten times a second. Here these resizes are computed when the size
/// is read.
#[derive(Debug, Clone, Copy)]
pub struct ReplyBuffer {
    size: usize,
    /// The most bytes that it had since the peak was last reset.
    peak: usize,
    /// When the peak was last reset.
    forgotten: Option<Monotonic>,
    /// Until when resizes are computed.
    seen: Monotonic,
}

/// How often Redis checks the size.
const TICK: Duration = Duration::from_millis(100);

impl ReplyBuffer {
    /// The smallest size.
    pub const MIN: usize = 1 << 10;
    /// The largest size, which every connection begins with (`PROTO_REPLY_CHUNK_BYTES`).
    pub const MAX: usize = 16 << 10;

    /// The reply buffer of a connection made at `now`.
    pub fn new(now: Monotonic) -> ReplyBuffer {
        ReplyBuffer { size: ReplyBuffer::MAX, peak: ReplyBuffer::MAX, forgotten: None, seen: now }
    }

    /// Its size in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The most bytes that it had lately.
    pub fn peak(&self) -> usize {
        self.peak
    }

    /// Notes how many bytes wait to be sent.
    pub fn fill(&mut self, bytes: usize) {
        self.peak = self.peak.max(bytes.min(self.size));
    }

    /// Computes the resizes until `now`, and counts them.
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

    /// Resizes it to fit the peak; returns whether its size changed.
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
