//! Output to connections, and the limits on their unread output.

use std::time::Duration;

use crate::{
    config::BufferLimit,
    event::ConnId,
    generation::Feature,
    node::{Node, clients::Role},
    resp::Reply,
    time::Monotonic,
};

impl Node {
    /// Writes a reply or a push to a connection; it is sent at the end of the step. CLIENT REPLY
    /// suppresses replies, and pushes only on Redis 6.2.
    pub fn send(&mut self, conn: ConnId, reply: &Reply) {
        let Some(session) = self.clients.sessions.get_mut(conn) else { return };
        let generation = self.config.generation;
        let is_sent = || reply.is_push() && generation.has(Feature::PushesWithoutReplies);
        if session.closing || (session.is_silent() && !is_sent()) {
            return;
        }
        if session.out.is_empty() {
            self.clients.pending.push(conn);
        }
        reply.encode(session.protocol, &mut session.out);
        let (blocks, bytes) = session.listed();
        if blocks > 0 {
            let limit = self.output_limit(conn).hard;
            if limit > 0 && bytes as u64 >= limit {
                self.overrun(conn);
            }
        }
    }

    /// Carries out the resizes of one connection's reply buffer that are due by `now`.
    pub fn resize_reply_buffer(&mut self, conn: ConnId, now: Monotonic) {
        let (rules, changes) = (self.debug.reply_buffer, &mut self.stats.reply_buffers);
        if let Some(session) = self.clients.sessions.get_mut(conn) {
            session.reply_buffer.pass(now, rules, changes);
        }
    }

    /// Carries out the resizes of all reply buffers that are due by `now`.
    pub fn resize_reply_buffers(&mut self, now: Monotonic) {
        let (rules, changes) = (self.debug.reply_buffer, &mut self.stats.reply_buffers);
        self.clients.sessions.iter_mut().for_each(|session| session.reply_buffer.pass(now, rules, changes));
    }

    /// Returns the limit on a connection's unread output (`client-output-buffer-limit`).
    pub fn output_limit(&self, conn: ConnId) -> BufferLimit {
        let [normal, replica, pubsub] = self.config.clients.output_limits;
        match self.clients.sessions.get(conn) {
            Some(session) if session.role == Role::Replica => {
                // A limit below the size of the backlog would only make the replica resynchronize.
                let backlog = self.config.replication.backlog_size as u64;
                let hard = if replica.hard == 0 { 0 } else { replica.hard.max(backlog) };
                BufferLimit { hard, ..replica }
            }
            Some(session) if session.is_subscriber() => pubsub,
            _ => normal,
        }
    }

    /// Records the number of bytes for a connection that the network has not taken, and applies the
    /// connection's limit.
    pub fn note_unsent(&mut self, conn: ConnId, bytes: usize, now: Monotonic) {
        if let Some(session) = self.clients.sessions.get_mut(conn) {
            session.unsent = bytes;
            self.clients.sessions.account(conn);
            self.hold_to_limit(conn, now);
        }
    }

    /// Closes the connections that have exceeded their soft limit for too long.
    pub fn limit_slow_readers(&mut self, now: Monotonic) {
        if !self.clients.slow_readers.is_empty() {
            let slow: Vec<ConnId> = self.clients.slow_readers.iter().copied().collect();
            slow.into_iter().for_each(|conn| self.hold_to_limit(conn, now));
        }
    }

    /// Returns the first time at which a connection will have exceeded its soft limit for too long.
    pub fn slow_readers_due(&self) -> Option<Monotonic> {
        let ends = self.clients.slow_readers.iter().filter_map(|conn| {
            let since = self.clients.sessions.get(*conn)?.slow_since?;
            let limit = self.output_limit(*conn);
            Some(since + Duration::from_secs(limit.seconds) + Duration::from_millis(1))
        });
        ends.min()
    }

    /// Closes a connection with too much unread output: immediately above the hard limit, above the
    /// soft limit once that has lasted.
    fn hold_to_limit(&mut self, conn: ConnId, now: Monotonic) {
        let limit = self.output_limit(conn);
        let Some(session) = self.clients.sessions.get_mut(conn).filter(|session| !session.killed) else {
            self.clients.slow_readers.remove(&conn);
            return;
        };
        let (_, bytes) = session.listed();
        let above = |max: u64| max > 0 && bytes as u64 >= max;
        let mut overruns = above(limit.hard);
        if above(limit.soft) {
            let since = *session.slow_since.get_or_insert(now);
            overruns |= now.since(since) > Duration::from_secs(limit.seconds);
            self.clients.slow_readers.insert(conn);
        } else {
            session.slow_since = None;
            self.clients.slow_readers.remove(&conn);
        }
        if overruns {
            self.overrun(conn);
        }
    }

    /// Closes a connection because its unread output exceeds a limit; the output is dropped.
    pub fn overrun(&mut self, conn: ConnId) {
        if let Some(session) = self.clients.sessions.get_mut(conn) {
            session.overran = true;
        }
        self.clients.kill(conn);
    }
}
