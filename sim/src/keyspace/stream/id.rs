//! The id of a stream entry: a time and a sequence number.

use std::fmt;

/// Milliseconds, and the sequence number among the entries of that millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct StreamId {
    /// Milliseconds of the wall clock, if the server made the id.
    pub ms: u64,
    /// Sequence number.
    pub seq: u64,
}

impl StreamId {
    /// `0-0`, the id of no entry.
    pub const ZERO: StreamId = StreamId { ms: 0, seq: 0 };
    /// The highest possible id.
    pub const MAX: StreamId = StreamId { ms: u64::MAX, seq: u64::MAX };

    /// Returns the id right after this one. `None` after [`StreamId::MAX`].
    pub fn next(self) -> Option<StreamId> {
        match self.seq.checked_add(1) {
            Some(seq) => Some(StreamId { seq, ..self }),
            None => Some(StreamId { ms: self.ms.checked_add(1)?, seq: 0 }),
        }
    }

    /// Returns the id right before this one. `None` before [`StreamId::ZERO`].
    pub fn previous(self) -> Option<StreamId> {
        match self.seq.checked_sub(1) {
            Some(seq) => Some(StreamId { seq, ..self }),
            None => Some(StreamId { ms: self.ms.checked_sub(1)?, seq: u64::MAX }),
        }
    }

    /// Returns sixteen bytes that sort like the ids.
    pub fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.ms) << 64 | u128::from(self.seq)).to_be_bytes()
    }

    /// Returns the id that [`StreamId::to_bytes`] encoded.
    pub fn from_bytes(bytes: [u8; 16]) -> StreamId {
        let both = u128::from_be_bytes(bytes);
        StreamId { ms: (both >> 64) as u64, seq: both as u64 }
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.ms, self.seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_carry_over_and_end_at_both_ends() {
        let id = |ms, seq| StreamId { ms, seq };
        for (one, other) in
            [(StreamId::ZERO, Some(id(0, 1))), (id(1, u64::MAX), Some(id(2, 0))), (StreamId::MAX, None)]
        {
            assert_eq!(one.next(), other, "{one}");
            if let Some(other) = other {
                assert_eq!(other.previous(), Some(one), "{other}");
            }
        }
        assert_eq!(StreamId::ZERO.previous(), None);
    }

    #[test]
    fn bytes_sort_as_ids_do() {
        let ids =
            [StreamId::ZERO, StreamId { ms: 0, seq: u64::MAX }, StreamId { ms: 1, seq: 0 }, StreamId::MAX];
        assert!(ids.is_sorted_by_key(|id| id.to_bytes()));
        assert!(ids.iter().all(|id| StreamId::from_bytes(id.to_bytes()) == *id));
    }
}
