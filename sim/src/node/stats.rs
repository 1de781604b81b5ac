//! The counters of a node.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::{
    keyspace::Dict,
    node::{clients::ReplyBufferChanges, latency, rates::Rates},
    script::{ScriptErrors, error_code},
    time::Monotonic,
};

/// Counters that INFO prints.
#[derive(Debug, Clone, Default)]
pub struct Stats {
    /// Connections accepted since the start.
    pub connections: u64,
    /// Connections refused because of `maxclients`.
    pub rejected: u64,
    /// Commands executed.
    pub commands: u64,
    /// Keys removed because they expired.
    pub expired: u64,
    /// Processes that a server would have forked, to save or to rewrite.
    pub forks: u64,
    /// Values that a server would have freed in the background.
    pub lazily_freed: u64,
    /// Keys removed for memory.
    pub evicted: u64,
    /// Clients disconnected for memory.
    pub evicted_clients: u64,
    /// Lookups that found a key.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
    /// Changes since the last save.
    pub dirty: u64,
    /// Snapshots that were begun, to be saved to disk.
    pub saves: u64,
    /// Seconds that the last one in the background took, if there was one.
    pub save_secs: Option<i64>,
    /// Seconds that the last rewrite of the append-only file took, if there was one.
    pub rewrite_secs: Option<i64>,
    /// Keys that the last snapshot read from disk held, and those of it that had expired.
    pub loaded: (usize, usize),
    /// Rewrites of the append-only file.
    pub rewrites: u64,
    /// How many of the last of them failed, one after the other.
    pub rewrites_failed: u64,
    /// Error replies.
    pub errors: u64,
    /// Error replies by their first word, such as `WRONGTYPE`.
    pub errors_by_code: BTreeMap<String, u64>,
    /// Errors that a replica made its master answer, or a master its replica.
    pub unexpected_errors: u64,
    /// What became of each command, by name.
    pub calls: CallTable,
    /// Bytes received from clients.
    pub net_in: u64,
    /// Bytes sent to clients.
    pub net_out: u64,
    /// Bytes received from the master.
    pub repl_in: u64,
    /// Bytes sent to replicas.
    pub repl_out: u64,
    /// Reads from connections.
    pub reads: u64,
    /// Writes to connections.
    pub writes: u64,
    /// How much went on lately.
    pub rates: Rates,
    /// How often the room for replies of a connection was changed.
    pub reply_buffers: ReplyBufferChanges,
}

/// What became of the calls of one command.
#[derive(Debug, Clone, Default)]
pub struct Calls {
    /// Executed.
    pub executed: u64,
    /// Refused before they ran.
    pub rejected: u64,
    /// Executed, and answered with an error.
    pub failed: u64,
    /// Microseconds that they took together.
    pub took_us: u64,
    /// How long each took, since `latency-tracking` was first on.
    pub latencies: Option<Box<latency::Histogram>>,
}

/// What became of the calls of each command. The names are those of the tables of commands, so one
/// that was counted before is mostly found by where it is in memory.
#[derive(Debug, Clone, Default)]
pub struct CallTable {
    by_name: Dict<usize>,
    all: Vec<(&'static str, Calls)>,
    recent: [Option<usize>; 16],
}

impl CallTable {
    fn of(&mut self, name: &'static str) -> &mut Calls {
        let hint = name.as_ptr().addr() / 8 % self.recent.len();
        let known = self.recent[hint].filter(|&at| std::ptr::eq(self.all[at].0, name));
        let at = known.unwrap_or_else(|| {
            let all = &mut self.all;
            *self.by_name.get_or_insert_with(&Bytes::from_static(name.as_bytes()), || {
                all.push((name, Calls::default()));
                all.len() - 1
            })
        });
        self.recent[hint] = Some(at);
        &mut self.all[at].1
    }

    /// What became of a command, if it was called.
    pub fn get(&self, name: &str) -> Option<&Calls> {
        self.by_name.get(name.as_bytes()).map(|&at| &self.all[at].1)
    }

    /// Every command that was called, with what became of it.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Calls)> {
        self.all.iter().map(|(name, calls)| (*name, calls))
    }
}

impl Stats {
    /// The maximum number of distinct error codes: scripts may invent any number of them.
    const CODES_MAX: usize = 128;

    /// What became of a command so far, to count one more call.
    pub fn calls_of(&mut self, name: &'static str) -> &mut Calls {
        self.calls.of(name)
    }

    /// What became of the commands that were called, in order of their names.
    pub fn by_command(&self) -> impl Iterator<Item = (&'static str, &Calls)> {
        let mut all: Vec<_> = self.calls.iter().collect();
        all.sort_unstable_by_key(|(name, _)| *name);
        all.into_iter()
    }

    /// Notes how much went on until now.
    pub fn note_rates(&mut self, now: Monotonic) {
        let counters = [self.commands, self.net_in, self.net_out, self.repl_in, self.repl_out];
        self.rates.note(now, counters);
    }

    /// Counts an error reply, by its code.
    pub fn note_error(&mut self, text: &str) {
        self.note_code(error_code(text));
    }

    /// Counts an error reply of this code.
    fn note_code(&mut self, code: &str) {
        self.errors += 1;
        if let Some(count) = self.errors_by_code.get_mut(code) {
            *count += 1;
        } else if self.errors_by_code.len() < Stats::CODES_MAX {
            self.errors_by_code.insert(code.to_owned(), 1);
        }
    }

    /// Counts the errors in the reply of a script, and answers how often the command that ran it
    /// has failed by them: once for all that are new, and once for each that has been counted
    /// before.
    pub fn note_script_errors(&mut self, errors: &ScriptErrors) -> u64 {
        errors.codes.iter().for_each(|code| self.note_code(code));
        errors.counted + u64::from(!errors.codes.is_empty())
    }
}
