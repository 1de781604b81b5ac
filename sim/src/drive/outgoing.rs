//! What a node has to write to a connection. How much of it a peer may leave unread is for the
//! server to say.

use std::{collections::VecDeque, task::Waker};

use bytes::{Buf, Bytes};

/// What a peer may leave unread at most, in bytes, where it has no limit of its own: ordinary
/// clients of Redis have none. It only guards the process.
const QUEUED_MAX: usize = 1 << 30;

/// What the network takes even from a peer that reads nothing, as a rule: so little is no news for
/// the server.
const UNCOUNTED: usize = 16 << 10;

/// The pieces that wait to be written, and the task that writes them.
#[derive(Default)]
pub(super) struct Outgoing {
    pieces: VecDeque<Bytes>,
    /// How many bytes that is.
    queued: usize,
    /// The number of waiting bytes that the server was last notified of.
    told: usize,
    /// The peer has left more unread than it may, or than the process can bear: nothing more is
    /// written.
    pub(super) overrun: bool,
    /// No more follows: close when all is written.
    pub(super) closing: bool,
    /// The server is to learn when that is done.
    pub(super) reports_end: bool,
    /// Close even so when the peer leaves it no room to write all.
    pub(super) killed: bool,
    /// The network has taken a reply, and so all that follows.
    pub(super) mute: bool,
    /// There is a connection to write to; while a dialed one is awaited there is none.
    pub(super) carried: bool,
    pub(super) waker: Option<Waker>,
}

impl Outgoing {
    /// Adds a piece, unless the connection sends nothing any more.
    pub(super) fn push(&mut self, piece: Bytes) {
        if self.mute || self.overrun {
            return;
        }
        self.queued += piece.len();
        self.pieces.push_back(piece);
        self.overrun = self.queued > QUEUED_MAX;
    }

    /// Whether the unsent output must be reported to the server before the network is tried.
    pub(super) fn is_long(&self) -> bool {
        self.queued > UNCOUNTED
    }

    /// The number of waiting bytes, if the server was last notified of another one.
    pub(super) fn unsent_news(&mut self) -> Option<usize> {
        (std::mem::replace(&mut self.told, self.queued) != self.queued).then_some(self.queued)
    }

    /// The next piece to write.
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_told_how_much_waits_only_where_that_has_changed() {
        let mut outgoing = Outgoing::default();
        assert_eq!(outgoing.unsent_news(), None);
        outgoing.push(vec![0; UNCOUNTED].into());
        assert!(!outgoing.is_long());
        outgoing.push(Bytes::from_static(b"x"));
        assert!(outgoing.is_long());
        assert_eq!(outgoing.unsent_news(), Some(UNCOUNTED + 1));
        assert_eq!(outgoing.unsent_news(), None);
        outgoing.written(UNCOUNTED);
        outgoing.written(1);
        assert_eq!(outgoing.unsent_news(), Some(0));
    }

    #[test]
    fn the_output_of_a_peer_is_limited_by_what_the_process_can_bear() {
        let mut outgoing = Outgoing::default();
        let piece = Bytes::from(vec![0; 1 << 20]);
        for _ in 0..=1 << 10 {
            outgoing.push(piece.clone());
        }
        assert!(outgoing.overrun);
    }
}
