//! When a key is past its time.

/// The rule by which a node tells keys that have expired from those that have not, at one moment of
/// its wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpiryRule {
    /// Keys that expire before this, in milliseconds since the epoch, are past their time.
    cutoff_ms: i64,
}

impl ExpiryRule {
    /// The rule of Redis: at the very millisecond of its expiry a key is still there.
    pub fn at(now_ms: i64) -> ExpiryRule {
        ExpiryRule { cutoff_ms: now_ms }
    }

    /// A rule that is wrong on purpose: a key is gone one millisecond early.
    pub fn early(now_ms: i64) -> ExpiryRule {
        ExpiryRule { cutoff_ms: now_ms.saturating_add(1) }
    }

    /// Whether a key that expires at `when_ms` is past its time.
    pub fn is_past(self, when_ms: i64) -> bool {
        when_ms < self.cutoff_ms
    }
}
