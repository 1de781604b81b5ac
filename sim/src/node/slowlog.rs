//! The commands that took long (SLOWLOG) or were large (COMMANDLOG), the newest first.

use std::collections::VecDeque;

use bytes::Bytes;

/// The maximum number of arguments kept of a command. The last of them then gives the number of
/// arguments left out.
const ARGUMENTS_MAX: usize = 32;

/// The maximum number of bytes kept of an argument, before the text that gives the number of bytes
/// left out.
const ARGUMENT_LEN_MAX: usize = 128;

/// A command that took at least `slowlog-log-slower-than`, or whose request or reply was large.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slow {
    /// The entry's number, counted from 0.
    pub id: u64,
    /// The wall-clock second in which the command ended.
    pub at: i64,
    /// Its duration in microseconds, or the bytes of its request or reply.
    pub measure: i64,
    /// Its name and arguments, shortened.
    pub args: Vec<Bytes>,
    /// The address of the client.
    pub peer: String,
    /// The name of the client (CLIENT SETNAME).
    pub name: Bytes,
}

/// The latest slow commands (SLOWLOG), at most `slowlog-max-len`, or the latest large ones.
#[derive(Debug, Clone, Default)]
pub struct SlowLog {
    next: u64,
    entries: VecDeque<Slow>,
}

impl SlowLog {
    /// Adds a command, and removes the oldest beyond `len_max`.
    pub fn push(&mut self, slow: Slow, len_max: usize) {
        let args = trimmed(&slow.args);
        self.entries.push_front(Slow { id: self.next, args, ..slow });
        self.next += 1;
        self.entries.truncate(len_max);
    }

    /// The commands, the newest first.
    pub fn iter(&self) -> impl Iterator<Item = &Slow> {
        self.entries.iter()
    }

    /// Returns the number of commands kept.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if no command is kept.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Removes all commands; the numbering continues.
    pub fn clear(&mut self) {
        self.entries.clear();
    }
}

fn trimmed(args: &[Bytes]) -> Vec<Bytes> {
    let kept = if args.len() > ARGUMENTS_MAX { ARGUMENTS_MAX - 1 } else { args.len() };
    let mut out: Vec<Bytes> = args[..kept].iter().map(trimmed_argument).collect();
    if kept < args.len() {
        out.push(format!("... ({} more arguments)", args.len() - kept).into());
    }
    out
}

fn trimmed_argument(arg: &Bytes) -> Bytes {
    match arg.len().checked_sub(ARGUMENT_LEN_MAX) {
        // A copy, so that the log does not keep the whole argument.
        Some(more) if more > 0 => {
            [&arg[..ARGUMENT_LEN_MAX], format!("... ({more} more bytes)").as_bytes()].concat().into()
        }
        _ => arg.clone(),
    }
}
