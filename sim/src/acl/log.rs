//! Denied commands and failed authentications (ACL LOG).

use std::collections::VecDeque;

use bytes::Bytes;

/// The reason for a denial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The user may not call the command.
    Command,
    /// The user may not access a key.
    Key,
    /// The user may not access a channel.
    Channel,
    /// The authentication failed.
    Auth,
}

impl Reason {
    /// Returns the reason as ACL LOG prints it, such as `command`.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Command => "command",
            Reason::Key => "key",
            Reason::Channel => "channel",
            Reason::Auth => "auth",
        }
    }
}

/// A group of denials that are alike.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Number of denials.
    pub count: u64,
    /// The failed permission, or `auth` for a failed authentication.
    pub reason: Reason,
    /// The context: `toplevel`, `multi` or `lua`.
    pub context: &'static str,
    /// The denied command, key or channel.
    pub object: Bytes,
    /// The name of the user.
    pub username: Bytes,
    /// The number of entries before it.
    pub id: u64,
    /// The time of the first denial, in milliseconds of the wall clock.
    pub since_ms: i64,
    /// The time of the last denial, in milliseconds of the wall clock.
    pub at_ms: i64,
    /// The connection of the last denial, as CLIENT LIST shows it.
    pub client: Bytes,
}

/// The latest denials, the last one first.
#[derive(Debug, Default)]
pub struct Log {
    entries: VecDeque<Entry>,
    /// The number of entries that were ever made.
    made: u64,
}

impl Log {
    /// Milliseconds after which a denial begins a new entry.
    const TOGETHER_MS: i64 = 60_000;
    /// Number of latest entries that are compared with a new denial.
    const COMPARED_MAX: usize = 10;

    /// Records a denial, and drops the oldest entries beyond `len_max`.
    pub fn note(&mut self, entry: Entry, len_max: usize) {
        let alike = |old: &Entry| {
            old.reason == entry.reason
                && old.context == entry.context
                && entry.at_ms.saturating_sub(old.at_ms) <= Log::TOGETHER_MS
                && old.object == entry.object
                && old.username == entry.username
        };
        match self.entries.iter().take(Log::COMPARED_MAX).position(alike) {
            Some(at) => {
                if let Some(old) = self.entries.remove(at) {
                    let Entry { count, id, since_ms, .. } = old;
                    self.entries.push_front(Entry { count: count + 1, id, since_ms, ..entry });
                }
            }
            None => {
                self.entries.push_front(Entry { id: self.made, since_ms: entry.at_ms, ..entry });
                self.made += 1;
                self.entries.truncate(len_max);
            }
        }
    }

    /// The entries, the last one first.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &Entry> {
        self.entries.iter()
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.entries.clear();
    }
}
