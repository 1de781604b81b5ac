//! The replication id and offset of a node.

/// The id that stands for no stream.
pub const NO_ID: &str = "0000000000000000000000000000000000000000";

/// A position in a replication stream: two nodes with the same id and offset have seen the same
/// bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// The replication id of the stream: 40 hex digits.
    pub id: String,
    /// Number of bytes of the stream seen.
    pub offset: u64,
    /// The replication id of the stream before this node became a master, or [`NO_ID`].
    pub id2: String,
    /// The first offset at which `id2` is no longer valid.
    pub second_offset: Option<u64>,
}

impl History {
    /// Creates the position at the start of a stream.
    pub fn new(id: String) -> History {
        History { id, offset: 0, id2: NO_ID.into(), second_offset: None }
    }

    /// Continues under a new id, and remembers the current id up to here.
    pub fn fork(&mut self, id: String) {
        self.id2 = std::mem::replace(&mut self.id, id);
        self.second_offset = Some(self.offset + 1);
    }

    /// Adopts a position in another node's stream.
    pub fn adopt(&mut self, id: String, offset: u64) {
        *self = History { offset, ..History::new(id) };
    }

    /// Begins a stream under a new replication id at the same offset, so that no replica can
    /// resynchronize partially.
    pub fn restart(&mut self, id: String) {
        self.adopt(id, self.offset);
    }

    /// Returns true if a replica that has seen the stream `id` up to the byte before `next` has
    /// seen nothing that this history lacks.
    pub fn contains(&self, id: &str, next: u64) -> bool {
        let under_old_name =
            || id.eq_ignore_ascii_case(&self.id2) && self.second_offset.is_some_and(|second| next <= second);
        id.eq_ignore_ascii_case(&self.id) || under_old_name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_keeps_the_old_name_up_to_where_it_happened_and_not_a_byte_further() {
        let mut history = History::new("a".repeat(40));
        history.offset = 100;
        history.fork("b".repeat(40));
        // A request for byte 101 means that the first 100 bytes were seen, which both ids share.
        for (id, next, known) in [("a", 101, true), ("a", 102, false), ("b", 102, true), ("c", 50, false)] {
            assert_eq!(history.contains(&id.repeat(40), next), known, "{id} {next}");
        }
    }
}
