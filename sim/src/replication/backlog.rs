//! The last bytes of the stream, kept for replicas that reconnect.

use std::collections::VecDeque;

/// The replication backlog: the end of the stream.
#[derive(Debug)]
pub struct Backlog {
    bytes: VecDeque<u8>,
    size: usize,
    /// Offset of the first byte kept; the stream's first byte is 1.
    first: u64,
    /// The first byte that a replica still waits for: every byte from there on is kept, whatever
    /// the size.
    wanted: Option<u64>,
}

impl Backlog {
    /// Creates an empty backlog of at most `size` bytes, for a stream at `offset`.
    pub fn new(size: usize, offset: u64) -> Backlog {
        Backlog { bytes: VecDeque::new(), size, first: offset + 1, wanted: None }
    }

    /// Appends the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        self.trim();
    }

    /// Keeps at most `size` bytes from now on.
    pub fn resize(&mut self, size: usize) {
        self.size = size;
        self.trim();
    }

    /// Keeps every byte after this offset, until the next call.
    pub fn keep(&mut self, offset: Option<u64>) {
        self.wanted = offset.map(|offset| offset + 1);
        self.trim();
    }

    fn trim(&mut self) {
        let free = self.wanted.map_or(u64::MAX, |wanted| wanted.saturating_sub(self.first));
        let over =
            self.bytes.len().saturating_sub(self.size).min(usize::try_from(free).unwrap_or(usize::MAX));
        self.bytes.drain(..over);
        self.first += over as u64;
    }

    /// Returns the stream from its byte number `next` on: no bytes if that byte is the next one to
    /// come, and `None` if it is dropped or later than the next one.
    pub fn since(&self, next: u64) -> Option<Vec<u8>> {
        let skip = usize::try_from(next.checked_sub(self.first)?).ok()?;
        (skip <= self.bytes.len()).then(|| self.bytes.iter().skip(skip).copied().collect())
    }

    /// Offset of the first byte kept.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Number of bytes kept.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns true if no byte is kept.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The most bytes kept (`repl-backlog-size`).
    pub fn size(&self) -> usize {
        self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_gets_exactly_what_it_missed_or_nothing() {
        let mut backlog = Backlog::new(4, 10);
        backlog.push(b"abcdef");
        // Bytes 11 to 16 were pushed; the window of four begins at 13.
        let rows = [(12, None), (13, Some("cdef")), (16, Some("f")), (17, Some("")), (18, None), (0, None)];
        for (next, expected) in rows {
            assert_eq!(backlog.since(next), expected.map(|text| text.as_bytes().to_vec()), "from {next}");
        }
    }

    #[test]
    fn what_a_replica_waits_for_is_held_beyond_the_size_and_no_longer() {
        let mut backlog = Backlog::new(4, 0);
        backlog.push(b"ab");
        backlog.keep(Some(1));
        backlog.push(b"cdefgh");
        assert_eq!((backlog.first(), backlog.since(2)), (2, Some(b"bcdefgh".to_vec())));
        backlog.keep(None);
        assert_eq!((backlog.first(), backlog.len()), (5, 4));
    }
}
