//! The line that describes a connection in CLIENT LIST and in the log of refusals.

use super::{Memory, Role, Session, is_file};
use crate::{
    resp::{Protocol, quotable, quoted},
    time::Monotonic,
};

impl Session {
    /// Returns the line of CLIENT LIST for a connection, with its line break. Fields that depend on
    /// sockets and allocators are constants.
    pub fn describe(&self, now: Monotonic) -> Vec<u8> {
        let waiting = self.transaction.as_ref().map(|transaction| transaction.queued());
        let queued = waiting.or(self.executing).map_or(-1, |queued| queued.commands as i64);
        let Memory { query, query_free, argv, queued: multi, output, output_blocks, output_listed, total } =
            self.memory(now);
        let line = format!(
            "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db={} sub={} psub={} ssub={} multi={queued} qbuf={query} \
             qbuf-free={query_free} argv-mem={argv} multi-mem={multi} rbs={} rbp={} obl={output} oll={output_blocks} \
             omem={output_listed} tot-mem={total} events=r cmd={} user={} redir={} resp={}\n",
            self.id.0,
            self.peer,
            self.local,
            // File descriptors begin after the standard streams and the server's own.
            self.id.0.saturating_add(7),
            quotable(&self.name),
            now.since(self.since).as_secs(),
            now.since(self.last_active).as_secs(),
            self.flags(),
            self.db,
            self.channels.len(),
            self.patterns.len(),
            self.shards.len(),
            self.reply_buffer.size(),
            self.reply_buffer.peak(),
            self.last_command,
            quotable(&self.user),
            self.redirection(),
            if self.protocol == Protocol::Resp3 { 3 } else { 2 },
        );
        quoted(&line).into_owned()
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

    fn flags(&self) -> String {
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
        ];
        let set: String = all.into_iter().filter_map(|(set, letter)| set.then_some(letter)).collect();
        if set.is_empty() { "N".into() } else { set }
    }
}
