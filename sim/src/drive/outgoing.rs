//! What a node has to write to a connection, and how much of it a peer may leave unread.

use std::{collections::VecDeque, task::Waker, time::Duration};

use bytes::{Buf, Bytes};

use crate::{config::BufferLimit, time::Monotonic};

/// What a peer may leave unread at most, in bytes, where it has no limit of its own: ordinary clients of Redis have none.
/// It only guards the process.
const QUEUED_MAX: usize = 1 << 30;

/// What every connection has anyway and no limit counts, as in Redis (`PROTO_REPLY_CHUNK_BYTES`).
const UNCOUNTED: usize = 16 << 10;

/// The pieces that wait to be written, and who writes them.
#[derive(Default)]
pub(super) struct Outgoing {
    pieces: VecDeque<Bytes>,
    /// How many bytes that is.
    queued: usize,
    /// Since when more than the soft limit has waited, and until when that is borne.
    soft: Option<(Monotonic, Duration)>,
    /// The peer has left more unread than it may.
    pub(super) overrun: bool,
    /// No more follows: close when all is written.
    pub(super) closing: bool,
    /// Close even so when the peer leaves it no room to write all.
    pub(super) killed: bool,
    /// The network has taken a reply, and so all that follows.
    pub(super) mute: bool,
    /// There is a connection to write to; while a dialed one is awaited there is none.
    pub(super) carried: bool,
    pub(super) waker: Option<Waker>,
}

impl Outgoing {
    /// Adds a piece, unless nobody will be sent it any more.
    pub(super) fn push(&mut self, piece: Bytes) {
        if self.mute || self.overrun {
            return;
        }
        self.queued += piece.len();
        self.pieces.push_back(piece);
        self.overrun = self.queued > QUEUED_MAX;
    }

    /// Whether so much waits that limits are worth asking for.
    pub(super) fn is_long(&self) -> bool {
        self.queued > UNCOUNTED
    }

    /// How many bytes wait.
    pub(super) fn queued(&self) -> usize {
        self.queued
    }

    /// Holds what waits against the limits of its kind of client.
    pub(super) fn limit(&mut self, limit: BufferLimit, now: Monotonic) {
        let counted = self.queued.saturating_sub(UNCOUNTED) as u64;
        let above = |bytes: u64| bytes > 0 && counted >= bytes;
        if above(limit.soft) {
            let patience = Duration::from_secs(limit.seconds);
            let (since, _) = *self.soft.get_or_insert((now, patience));
            self.soft = Some((since, patience));
            self.overrun |= now.since(since) > patience;
        } else {
            self.soft = None;
        }
        self.overrun |= above(limit.hard);
    }

    /// When the patience with a slow reader ends.
    pub(super) fn patience_ends(&self) -> Option<Monotonic> {
        self.soft.map(|(since, patience)| since + patience + Duration::from_millis(1))
    }

    /// What is to be written next.
    pub(super) fn front(&self) -> Option<Bytes> {
        self.pieces.front().cloned()
    }

    /// So many bytes of the front have been written.
    pub(super) fn written(&mut self, count: usize) {
        self.queued -= count;
        if let Some(front) = self.pieces.front_mut() {
            front.advance(count);
            if front.is_empty() {
                self.pieces.pop_front();
            }
        }
        if self.pieces.is_empty() {
            self.soft = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: BufferLimit = BufferLimit { hard: 100, soft: 50, seconds: 2 };

    fn with(counted: usize) -> Outgoing {
        let mut outgoing = Outgoing::default();
        outgoing.push(vec![0; UNCOUNTED + counted].into());
        outgoing
    }

    #[test]
    fn the_hard_limit_counts_at_once_and_the_soft_one_after_its_time() {
        let at = Monotonic::from_secs;
        let mut outgoing = with(100);
        outgoing.limit(LIMIT, at(0));
        assert!(outgoing.overrun);

        let mut outgoing = with(50);
        outgoing.limit(LIMIT, at(10));
        outgoing.limit(LIMIT, at(12));
        assert!(!outgoing.overrun, "two seconds are borne");
        outgoing.limit(LIMIT, at(13));
        assert!(outgoing.overrun);

        let mut outgoing = with(50);
        outgoing.limit(LIMIT, at(10));
        outgoing.written(1);
        outgoing.limit(LIMIT, at(12));
        outgoing.push(Bytes::from_static(b"x"));
        outgoing.limit(LIMIT, at(13));
        assert!(!outgoing.overrun, "the time begins anew");

        let mut outgoing = with(1 << 20);
        outgoing.limit(BufferLimit { hard: 0, soft: 0, seconds: 0 }, at(0));
        assert!(!outgoing.overrun, "0 is for no limit");
    }

    #[test]
    fn nobody_is_kept_more_than_the_process_can_bear() {
        let mut outgoing = Outgoing::default();
        let piece = Bytes::from(vec![0; 1 << 20]);
        for _ in 0..=1 << 10 {
            outgoing.push(piece.clone());
        }
        assert!(outgoing.overrun);
    }
}
