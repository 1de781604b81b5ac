//! The line that describes a connection in CLIENT LIST and in the log of refusals.

use std::fmt::Write as _;

use super::{Memory, Role, Session, is_file};
use crate::{
    generation::Generation,
    resp::{Protocol, quotable, quoted},
    time::Monotonic,
};

impl Session {
    /// Returns the line of CLIENT LIST for a connection, with its line break, in the fields and the
    /// order of a generation of servers. Fields that depend on sockets and allocators are
    /// constants.
    pub fn describe(&self, now: Monotonic, generation: Generation) -> Vec<u8> {
        let (is_valkey, is_old) = (generation.is_valkey(), generation == Generation::Redis62);
        let is_new = generation == Generation::Redis82 || is_valkey;
        let mut line = format!(
            "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={}",
            self.id.0,
            self.peer,
            self.local,
            // File descriptors begin after the standard streams and the server's own.
            self.id.0.saturating_add(7),
            quotable(&self.name),
            now.since(self.since).as_secs(),
            now.since(self.last_active).as_secs(),
            self.flags(),
        );
        // Writing to a String cannot fail.
        if is_valkey {
            let _ = write!(line, " capa={}", if self.redirects { "r" } else { "" });
        }
        let _ = write!(line, " db={} sub={} psub={}", self.db, self.channels.len(), self.patterns.len());
        if !is_old {
            let _ = write!(line, " ssub={}", self.shards.len());
        }
        let _ = write!(line, " multi={}", self.queued_commands(generation));
        if is_new {
            let _ = write!(line, " watch={}", self.watched.len());
        }
        let memory = self.memory_in(now, generation);
        let Memory { query, query_free, argv, queued, output, output_blocks, output_listed, total } = memory;
        let _ = write!(line, " qbuf={query} qbuf-free={query_free} argv-mem={argv}");
        if !is_old {
            let (size, peak) = self.reply_buffer_in(generation);
            let _ = write!(line, " multi-mem={queued} rbs={size} rbp={peak}");
        }
        let command = self.last_command;
        let _ = write!(
            line,
            " obl={output} oll={output_blocks} omem={output_listed} tot-mem={total} events=r cmd={} user={} redir={}",
            if is_old { command.split('|').next().unwrap_or(command) } else { command },
            quotable(&self.user),
            self.redirection(),
        );
        if !is_old {
            let _ = write!(line, " resp={}", if self.protocol == Protocol::Resp3 { 3 } else { 2 });
        }
        if is_new {
            let (name, version) = (quotable(&self.lib_name), quotable(&self.lib_version));
            let _ = write!(line, " lib-name={name} lib-ver={version}");
            if !is_valkey {
                line.push_str(" io-thread=0");
            }
            let (received, sent, commands) = (self.received, self.sent, self.commands);
            let _ = write!(line, " tot-net-in={received} tot-net-out={sent} tot-cmds={commands}");
        }
        line.push('\n');
        quoted(&line).into_owned()
    }

    /// Returns the number of queued commands, or -1 outside a transaction.
    fn queued_commands(&self, generation: Generation) -> i64 {
        let waiting = self.transaction.as_ref().map(|transaction| transaction.queued());
        let none = if generation.is_valkey() && self.has_queued { 0 } else { -1 };
        waiting.or(self.executing).map_or(none, |queued| queued.commands as i64)
    }

    /// Returns the id of the client that receives a connection's invalidations (REDIRECT): 0 for
    /// the connection itself, -1 without tracking.
    pub fn redirection(&self) -> i64 {
        match (&self.tracking, self.redirect) {
            (None, _) => -1,
            (Some(_), None) => 0,
            (Some(_), Some(conn)) => i64::try_from(conn.0).unwrap_or(i64::MAX),
        }
    }

    /// Returns the letters of the connection's state, or `N` for none.
    pub fn flags(&self) -> String {
        let tracking = self.tracking.as_ref();
        let all = [
            (self.monitor, 'O'),
            (self.role == Role::Replica, 'S'),
            (self.role == Role::Master, 'M'),
            (self.role == Role::Source, 'i'),
            (self.is_subscriber(), 'P'),
            (self.transaction.is_some() || self.executing.is_some(), 'x'),
            (self.blocked.is_some(), 'b'),
            (tracking.is_some(), 't'),
            (self.redirect_broken, 'R'),
            (tracking.is_some_and(|tracking| tracking.prefixes.is_some()), 'B'),
            (self.watch_broken, 'd'),
            (self.closing, 'c'),
            (is_file(&self.peer), 'U'),
            (self.readonly, 'r'),
            (self.no_evict, 'e'),
            (self.no_touch, 'T'),
        ];
        let set: String = all.into_iter().filter_map(|(set, letter)| set.then_some(letter)).collect();
        if set.is_empty() { "N".into() } else { set }
    }
}
