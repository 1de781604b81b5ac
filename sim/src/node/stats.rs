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
    /// Commands executed; a command that blocks counts once.
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
    /// Lookups that found no key.
    pub misses: u64,
    /// Changes since the last save.
    pub dirty: u64,
    /// Snapshots to disk that were begun.
    pub saves: u64,
    /// Duration in seconds of the last background save, if there was one.
    pub save_secs: Option<i64>,
    /// Duration in seconds of the last rewrite of the append-only file, if there was one.
    pub rewrite_secs: Option<i64>,
    /// Keys in the last snapshot loaded from disk: those loaded, and those that had expired.
    pub loaded: (usize, usize),
    /// Rewrites of the append-only file.
    pub rewrites: u64,
    /// The number of most recent rewrites that failed in a row.
    pub rewrites_failed: u64,
    /// Error replies of all kinds.
    pub errors: u64,
    /// Error replies by their first word, such as `WRONGTYPE`.
    pub errors_by_code: BTreeMap<String, u64>,
    /// Errors in the replication stream: a command of the master that failed here, or an error that
    /// a replica sent.
    pub unexpected_errors: u64,
    /// The results of the calls of each command, by name.
    pub calls: CallTable,
    /// Bytes received from clients.
    pub net_in: u64,
    /// Bytes sent to clients.
    pub net_out: u64,
    /// Bytes received from the master.
    pub repl_in: u64,
    /// Bytes sent to replicas.
    pub repl_out: u64,
    /// Reads from connections, the link to the master included.
    pub reads: u64,
    /// Writes of output to clients and replicas.
    pub writes: u64,
    /// The rates per second that INFO prints as `instantaneous_*`.
    pub rates: Rates,
    /// The number of reply buffers that grew or shrank.
    pub reply_buffers: ReplyBufferChanges,
}

/// The counts of the calls of one command by result.
#[derive(Debug, Clone, Default)]
pub struct Calls {
    /// Calls executed, those that failed included.
    pub executed: u64,
    /// Calls refused before they ran.
    pub rejected: u64,
    /// Calls executed and answered with an error.
    pub failed: u64,
    /// Total duration in microseconds.
    pub took_us: u64,
    /// The durations of the calls, once `latency-tracking` has been on.
    pub latencies: Option<Box<latency::Histogram>>,
}

/// The counts of each command. The names come from the tables of commands, so that a command
/// counted before is mostly found by the address of its name.
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

    /// Returns the counts of a command; `None` if it was never called.
    pub fn get(&self, name: &str) -> Option<&Calls> {
        self.by_name.get(name.as_bytes()).map(|&at| &self.all[at].1)
    }

    /// Returns every command that was called, with its counts.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Calls)> {
        self.all.iter().map(|(name, calls)| (*name, calls))
    }
}

impl Stats {
    /// The maximum number of distinct error codes: scripts may invent any number of them.
    const CODES_MAX: usize = 128;

    /// Returns the counts of a command, to add a call.
    pub fn calls_of(&mut self, name: &'static str) -> &mut Calls {
        self.calls.of(name)
    }

    /// Returns the counts of the commands that were called, ordered by name.
    pub fn by_command(&self) -> impl Iterator<Item = (&'static str, &Calls)> {
        let mut all: Vec<_> = self.calls.iter().collect();
        all.sort_unstable_by_key(|(name, _)| *name);
        all.into_iter()
    }

    /// Adds the changes of the counters until now to the rates.
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

    /// Counts the errors in the reply of a script. Returns the number of failures of the command
    /// that ran it: one for all new errors together, and one for each error that was counted
    /// before.
    pub fn note_script_errors(&mut self, errors: &ScriptErrors) -> u64 {
        errors.codes.iter().for_each(|code| self.note_code(code));
        errors.counted + u64::from(!errors.codes.is_empty())
    }
}
