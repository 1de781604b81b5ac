//! What is written to connections, and how much of it they may leave unread.

use crate::{
    config::BufferLimit,
    event::ConnId,
    node::Node,
    resp::{Reply, Sink},
    session::Role,
    time::Monotonic,
};

impl Node {
    /// Writes a reply or a push to a connection, to be sent at the end of the step. CLIENT REPLY holds back replies, never
    /// pushes.
    pub fn send(&mut self, conn: ConnId, reply: &Reply) {
        let Some(session) = self.sessions.get_mut(conn) else { return };
        if session.closing || (session.is_silent() && !reply.is_push()) {
            return;
        }
        if session.out.is_empty() {
            self.pending.push(conn);
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

    /// Fits the room for replies of one connection to what was sent, as is due by `now`.
    pub fn look_at_room(&mut self, conn: ConnId, now: Monotonic) {
        let (rules, changes) = (self.reply_room, &mut self.stats.reply_rooms);
        if let Some(session) = self.sessions.get_mut(conn) {
            session.room.pass(now, rules, changes);
        }
    }

    /// The same for every connection.
    pub fn look_at_rooms(&mut self, now: Monotonic) {
        let (rules, changes) = (self.reply_room, &mut self.stats.reply_rooms);
        self.sessions.iter_mut().for_each(|session| session.room.pass(now, rules, changes));
    }

    /// Writes bytes to a connection that are no reply, such as the replication stream.
    pub fn send_raw(&mut self, conn: ConnId, bytes: &[u8]) {
        // Who is being hung up on gets no more: a replica that is killed misses what is written in the same step.
        let Some(session) = self.sessions.get_mut(conn).filter(|session| !session.closing) else { return };
        if session.out.is_empty() {
            self.pending.push(conn);
        }
        session.out.extend_from_slice(bytes);
    }

    /// What a connection may leave unread (`client-output-buffer-limit`).
    pub fn output_limit(&self, conn: ConnId) -> BufferLimit {
        let [normal, replica, pubsub] = self.config.output_limits;
        match self.sessions.get(conn) {
            Some(session) if session.role == Role::Replica => {
                // Less than the backlog holds would only make it begin anew.
                let backlog = self.config.repl_backlog_size as u64;
                let hard = if replica.hard == 0 { 0 } else { replica.hard.max(backlog) };
                BufferLimit { hard, ..replica }
            }
            Some(session) if session.is_subscriber() => pubsub,
            _ => normal,
        }
    }

    /// Closes a connection that was to be sent more than it may leave unread: of that it gets nothing more.
    pub fn overrun(&mut self, conn: ConnId) {
        if let Some(session) = self.sessions.get_mut(conn) {
            session.overran = true;
        }
        self.kill(conn);
    }
}
