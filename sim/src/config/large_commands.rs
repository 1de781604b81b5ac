//! The limits of COMMANDLOG for large commands.

/// The commands that COMMANDLOG keeps for their large requests, or for their large replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LargeCommands {
    /// `commandlog-*-larger-than`: the bytes from which a command is kept; negative for never.
    pub least: i64,
    /// `commandlog-large-*-max-len`: the maximum number of commands kept.
    pub max_len: usize,
}

impl Default for LargeCommands {
    fn default() -> LargeCommands {
        LargeCommands { least: 1 << 20, max_len: 128 }
    }
}
