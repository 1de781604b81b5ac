//! The output of a node to a connection. The server decides how much of it a peer may leave unread.

use std::{collections::VecDeque, task::Waker};

use bytes::{Buf, Bytes};

/// The most bytes that a peer without a limit of its own may leave unread: ordinary clients of
/// Redis have none. It only protects the process.
const QUEUED_MAX: usize = 1 << 30;

/// Number of bytes that the network usually takes even for a peer that reads nothing. Only output
/// beyond this size is reported to the server before it is written.
const UNCOUNTED: usize = 16 << 10;

/// The pieces that wait to be written, and the waker of the task that writes them.
#[derive(Default)]
pub(super) struct Outgoing {
    pieces: VecDeque<Bytes>,
    /// Number of bytes in the pieces.
    queued: usize,
    /// The number of queued bytes that was last reported to the server.
    told: usize,
    /// True once the peer has left more unread than it may, or than the process can hold: nothing
    /// more is written.
    pub(super) overrun: bool,
    /// True once no more output follows: the connection closes when all is written.
    pub(super) closing: bool,
    /// True if the server is notified of that end.
    pub(super) reports_end: bool,
    /// True to close even if the network does not take all output.
    pub(super) killed: bool,
    /// True once the network has lost a reply, and so all that follows.
    pub(super) mute: bool,
    /// True if there is a connection to write to; false while it is being dialed.
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

    /// Returns true if the unsent output must be reported to the server before it is written.
    pub(super) fn is_long(&self) -> bool {
        self.queued > UNCOUNTED
    }

    /// Returns the number of queued bytes, if it is not the one that was last reported.
    pub(super) fn unsent_news(&mut self) -> Option<usize> {
        (std::mem::replace(&mut self.told, self.queued) != self.queued).then_some(self.queued)
    }

    pub(super) fn front(&self) -> Option<Bytes> {
        self.pieces.front().cloned()
    }

    /// Removes `count` written bytes from the front.
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
