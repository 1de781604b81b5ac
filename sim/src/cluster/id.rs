//! The names of nodes.

use std::fmt;

/// Characters of a name.
pub(super) const ID_LEN: usize = 40;

/// The name of a node: 40 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId([u8; ID_LEN]);

impl NodeId {
    /// Parses a name; `None` unless the text is 40 lower-case hex digits.
    pub fn parse(text: &[u8]) -> Option<NodeId> {
        let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        text.iter().all(is_digit).then(|| text.try_into().ok().map(NodeId)).flatten()
    }

    /// The 40 digits as bytes.
    pub fn bytes(&self) -> &[u8; ID_LEN] {
        &self.0
    }

    /// Returns the id with the digits in reverse.
    pub(super) fn reversed(mut self) -> NodeId {
        self.0.reverse();
        self
    }

    /// The 40 digits as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("hex digits are text")
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
