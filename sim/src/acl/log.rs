//! Denied commands and failed authentications (ACL LOG).

use std::collections::VecDeque;

use bytes::Bytes;

/// The reason for a denial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The command.
    Command,
    /// A key.
    Key,
    /// A channel.
    Channel,
    /// The password.
    Auth,
}

impl Reason {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Command => "command",
            Reason::Key => "key",
            Reason::Channel => "channel",
            Reason::Auth => "auth",
        }
    }
}

/// Refusals that are alike.
#[derive(Debug, Clone)]
pub struct Entry {
    /// How many.
    pub count: u64,
    /// Why.
    pub reason: Reason,
    /// Where: `toplevel`, `multi` or `lua`.
    pub context: &'static str,
    /// What was asked for: the command, the key, the channel.
    pub object: Bytes,
    /// The user.
    pub username: Bytes,
    /// When the last of them was, in milliseconds of the wall clock.
    pub at_ms: i64,
    /// The connection that asked, as CLIENT LIST shows it.
    pub client: Bytes,
}

/// The latest refusals, the last one first.
#[derive(Debug, Default)]
pub struct Log {
    entries: VecDeque<Entry>,
}

impl Log {
    /// Denials further apart are not merged into one entry.
    const TOGETHER_MS: i64 = 60_000;
    /// How far back the search for one like it goes.
    const COMPARED_MAX: usize = 10;

    /// Notes a refusal, and forgets the oldest ones beyond `len_max`.
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
                    self.entries.push_front(Entry { count: old.count + 1, ..entry });
                }
            }
            None => {
                self.entries.push_front(entry);
                self.entries.truncate(len_max);
            }
        }
    }

    /// The refusals, the last one first.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &Entry> {
        self.entries.iter()
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.entries.clear();
    }
}
