//! The commands that took long (SLOWLOG), the newest first.

use std::collections::VecDeque;

use bytes::Bytes;

/// Arguments of a command that are kept at most; the last of them then says how many there were
/// more.
const ARGUMENTS_MAX: usize = 32;

/// Bytes of an argument that are kept at most, before it says how many there were more.
const ARGUMENT_LEN_MAX: usize = 128;

/// One command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slow {
    /// Counts from 0.
    pub id: u64,
    /// The wall-clock second it ended in.
    pub at: i64,
    /// How long it took, in microseconds.
    pub took_us: i64,
    /// Name and arguments, as far as they are kept.
    pub args: Vec<Bytes>,
    /// Whose it was.
    pub peer: String,
    /// The name of that connection.
    pub name: Bytes,
}

/// The log.
#[derive(Debug, Clone, Default)]
pub struct SlowLog {
    next: u64,
    entries: VecDeque<Slow>,
}

impl SlowLog {
    /// Notes a command, and forgets the oldest above `len_max`.
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

    /// How many are kept.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Forgets all of them; numbers go on.
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
