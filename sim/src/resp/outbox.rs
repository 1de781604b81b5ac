//! The replies of one step to one connection.

use bytes::Bytes;

use super::Sink;
use crate::blob::Blob;

/// The minimum length of a value that is not copied into the reply buffer but shared with its key
/// and with other replies. A client that requests large values and does not read them then costs no
/// memory beyond the values themselves.
const SHARED_LEN_MIN: usize = 16 << 10;

/// The maximum number of bytes written into one piece. A long reply of short values is split,
/// because a growing buffer would be copied repeatedly and hold up to twice its length.
const PIECE_LEN_MAX: usize = 1 << 20;

/// Bytes that wait for the end of the step, in the order in which they were written.
///
/// ```
/// use bytes::Bytes;
/// use lockstorm_sim::resp::{Outbox, Protocol, Reply};
/// let value = Bytes::from(vec![b'x'; 1 << 20]);
/// let mut out = Outbox::default();
/// Reply::from(&value).encode(Protocol::Resp2, &mut out);
/// let pieces = out.take();
/// assert_eq!(pieces[0], "$1048576\r\n");
/// assert_eq!(pieces[1].as_ptr(), value.as_ptr());
/// assert_eq!(pieces[2], "\r\n");
/// ```
#[derive(Debug, Default)]
pub struct Outbox {
    /// The complete pieces.
    done: Vec<Bytes>,
    /// The number of bytes in `done`.
    done_len: usize,
    /// The bytes after the complete pieces.
    tail: Vec<u8>,
}

impl Outbox {
    /// Returns the number of waiting bytes.
    pub fn len(&self) -> usize {
        self.done_len + self.tail.len()
    }

    /// Returns true if no bytes wait.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops all waiting bytes.
    pub fn clear(&mut self) {
        *self = Outbox::default();
    }

    /// Takes all waiting bytes, in pieces.
    pub fn take(&mut self) -> Vec<Bytes> {
        self.cut();
        self.done_len = 0;
        std::mem::take(&mut self.done)
    }

    /// Takes all bytes if they are one piece of at most `max`, and keeps its buffer for reuse.
    pub fn take_short(&mut self, max: usize) -> Option<Bytes> {
        if !self.done.is_empty() || self.tail.len() > max {
            return None;
        }
        let bytes = Bytes::copy_from_slice(&self.tail);
        self.tail.clear();
        Some(bytes)
    }

    fn cut(&mut self) {
        if !self.tail.is_empty() {
            let piece = std::mem::take(&mut self.tail);
            self.add(piece.into());
        }
    }

    fn add(&mut self, piece: Bytes) {
        self.done_len += piece.len();
        self.done.push(piece);
    }
}

impl Sink for Outbox {
    fn push(&mut self, byte: u8) {
        self.tail.push(byte);
    }

    fn extend_from_slice(&mut self, bytes: &[u8]) {
        if self.tail.len() + bytes.len() > PIECE_LEN_MAX {
            self.cut();
        }
        self.tail.extend_from_slice(bytes);
    }

    fn blob(&mut self, blob: &Blob) {
        if blob.len() < SHARED_LEN_MIN {
            return self.extend_from_slice(blob);
        }
        self.cut();
        self.add(blob.to_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::{Protocol, Reply};

    #[test]
    fn a_value_that_waits_for_many_clients_is_there_once() {
        let value = Bytes::from(vec![b'x'; 10 << 20]);
        let place = value.as_ptr();
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            let reply = Reply::Array(vec![Reply::from(&value), Reply::Set(vec![Reply::from(&value)])]);
            let mut out = Outbox::default();
            reply.encode(protocol, &mut out);
            let pieces = out.take();
            assert_eq!(pieces.iter().filter(|piece| piece.as_ptr() == place).count(), 2);
            let mut whole = Vec::new();
            reply.encode(protocol, &mut whole);
            assert!(pieces.concat() == whole, "they are the same bytes");
        }
    }

    #[test]
    fn a_long_reply_of_short_values_is_cut_into_pieces() {
        let reply = Reply::Array((0..200_000).map(|n| Reply::bulk(format!("member {n}"))).collect());
        let mut out = Outbox::default();
        reply.encode(Protocol::Resp2, &mut out);
        let mut whole = Vec::new();
        reply.encode(Protocol::Resp2, &mut whole);
        assert_eq!(out.len(), whole.len());
        let pieces = out.take();
        assert!(pieces.iter().all(|piece| piece.len() <= PIECE_LEN_MAX));
        assert!(pieces.concat() == whole, "they are the same bytes");
        assert!(out.is_empty() && out.take().is_empty());
    }

    #[test]
    fn short_replies_are_one_piece() {
        let mut out = Outbox::default();
        for _ in 0..3 {
            Reply::OK.encode(Protocol::Resp2, &mut out);
        }
        assert_eq!(out.take_short(3), None);
        assert_eq!(out.take_short(100).as_deref(), Some(&b"+OK\r\n+OK\r\n+OK\r\n"[..]));
        assert!(out.is_empty());
    }
}
