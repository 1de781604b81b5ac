//! Rule that decides if a key is past its expiry time.

/// The rule by which a node separates expired keys from live ones, at one moment of its wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpiryRule {
    /// Keys that expire before this time are past it. In milliseconds since the epoch.
    cutoff_ms: i64,
}

impl ExpiryRule {
    /// Redis's rule: a key still exists in the millisecond of its expiry.
    pub fn at(now_ms: i64) -> ExpiryRule {
        ExpiryRule { cutoff_ms: now_ms }
    }

    /// A rule that is wrong on purpose: a key expires one millisecond early.
    pub fn early(now_ms: i64) -> ExpiryRule {
        ExpiryRule { cutoff_ms: now_ms.saturating_add(1) }
    }

    /// Returns true if a key with expiry `when_ms` is past it.
    pub fn is_past(self, when_ms: i64) -> bool {
        when_ms < self.cutoff_ms
    }
}
