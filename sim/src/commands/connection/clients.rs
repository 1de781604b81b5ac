//! What the CLIENT subcommands share: names, kinds, and the line that describes a connection.

use bytes::Bytes;

use crate::{
    commands::{Error, printable},
    node::clients::{Memory, Role, Session, is_file},
    resp::{Protocol, quotable, quoted},
    time::Monotonic,
};

/// The kinds of connections that TYPE filters tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Normal,
    Master,
    Replica,
    Pubsub,
}

impl Kind {
    /// The kind that a filter names.
    pub(super) fn parse(name: &[u8]) -> Result<Kind, Error> {
        Ok(match &name.to_ascii_lowercase()[..] {
            b"normal" => Kind::Normal,
            b"master" => Kind::Master,
            b"replica" | b"slave" => Kind::Replica,
            b"pubsub" => Kind::Pubsub,
            _ => {
                let name = printable(name, usize::MAX);
                return Err(Error(format!("ERR Unknown client type '{name}'").into()));
            }
        })
    }

    /// The kind of a connection. One that monitors counts as a client.
    pub(super) fn of(session: &Session) -> Kind {
        match session.role {
            Role::Master => Kind::Master,
            Role::Replica => Kind::Replica,
            Role::Client if session.is_subscriber() => Kind::Pubsub,
            Role::Client => Kind::Normal,
        }
    }
}

/// Whether a connection may have this name: printable, without spaces, or empty for none.
pub(super) fn check_name(name: &Bytes) -> Result<(), Error> {
    if name.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        Ok(())
    } else {
        Err(Error::of("ERR Client names cannot contain spaces, newlines or special characters."))
    }
}

/// The line of CLIENT LIST for a connection, with its line break. What depends on sockets and allocators is a constant.
pub(in crate::commands) fn describe(session: &Session, now: Monotonic) -> Vec<u8> {
    let waiting = session.transaction.as_ref().map(|transaction| transaction.queued());
    let queued = waiting.or(session.executing).map_or(-1, |queued| queued.commands as i64);
    let Memory { query, query_free, argv, queued: multi, output, output_blocks, output_listed, total } =
        session.memory(now);
    let line = format!(
        "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db={} sub={} psub={} ssub={} multi={queued} qbuf={query} \
         qbuf-free={query_free} argv-mem={argv} multi-mem={multi} rbs={} rbp={} obl={output} oll={output_blocks} \
         omem={output_listed} tot-mem={total} events=r cmd={} user={} redir={} resp={}\n",
        session.id.0,
        session.peer,
        session.local,
        // File descriptors are handed out after the standard streams and the server's own.
        session.id.0.saturating_add(7),
        quotable(&session.name),
        now.since(session.since).as_secs(),
        now.since(session.last_active).as_secs(),
        flags(session),
        session.db,
        session.channels.len(),
        session.patterns.len(),
        session.shards.len(),
        session.reply_buffer.size(),
        session.reply_buffer.peak(),
        session.last_command,
        quotable(&session.user),
        redirection(session),
        if session.protocol == Protocol::Resp3 { 3 } else { 2 },
    );
    quoted(&line).into_owned()
}

/// The client that receives a connection's invalidations (REDIRECT): 0 for the connection itself, -1 without tracking.
pub(super) fn redirection(session: &Session) -> i64 {
    match (&session.tracking, session.redirect) {
        (None, _) => -1,
        (Some(_), None) => 0,
        (Some(_), Some(conn)) => i64::try_from(conn.0).unwrap_or(i64::MAX),
    }
}

fn flags(session: &Session) -> String {
    let tracking = session.tracking.as_ref();
    let all = [
        (session.monitor, 'O'),
        (session.role == Role::Replica, 'S'),
        (session.role == Role::Master, 'M'),
        (session.is_subscriber(), 'P'),
        (session.transaction.is_some() || session.executing.is_some(), 'x'),
        (session.blocked.is_some(), 'b'),
        (tracking.is_some(), 't'),
        (session.redirect_broken, 'R'),
        (tracking.is_some_and(|tracking| tracking.prefixes.is_some()), 'B'),
        (session.watch_broken, 'd'),
        (session.closing, 'c'),
        (is_file(&session.peer), 'U'),
        (session.readonly, 'r'),
        (session.no_evict, 'e'),
    ];
    let set: String = all.into_iter().filter_map(|(set, letter)| set.then_some(letter)).collect();
    if set.is_empty() { "N".into() } else { set }
}
