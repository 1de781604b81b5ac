//! Connections coming, sending, and going.

use bytes::Bytes;

use super::Server;
use crate::{
    config::BufferLimit,
    env::Env,
    event::{Action, ConnId},
    log::Level,
    pubsub::Subscription,
    resp::{Limits, Reply},
    session::{BlockedOn, Role, Session},
};

/// What a connection keeps for its replies, as much as every client of Redis has (`PROTO_REPLY_CHUNK_BYTES`).
const OUT_KEPT: usize = 16 << 10;

impl Server {
    pub(super) fn connected(&mut self, env: &mut Env, conn: ConnId, peer: String, local: String) {
        if self.node.sessions.len() >= self.node.config.maxclients {
            self.node.stats.rejected += 1;
            env.log(Level::Verbose, || {
                format!("Refused {peer}: there are as many clients as maxclients allows")
            });
            env.outbox.push(Action::Send {
                conn,
                bytes: Bytes::from_static(b"-ERR max number of clients reached\r\n"),
            });
            env.outbox.push(Action::Close { conn });
            return;
        }
        self.node.stats.connections += 1;
        env.log(Level::Debug, || format!("Accepted {peer}"));
        let mut session = Session::new(conn, peer, local, env.monotonic);
        session.authenticated = self.node.acl.admits_strangers();
        self.node.sessions.insert(session);
        self.look_at_silence(conn, env.monotonic);
    }

    pub(super) fn received(&mut self, env: &mut Env, conn: ConnId, bytes: &[u8]) {
        if self.is_master_link(conn) {
            return self.hear_master(env, bytes);
        }
        let Some(session) = self.node.sessions.get_mut(conn) else { return };
        if session.closing {
            return;
        }
        self.node.stats.net_in += bytes.len() as u64;
        session.decoder.feed(bytes);
        if session.decoder.buffered() > self.node.config.client_query_buffer_limit {
            let (peer, held) = (session.peer.clone(), session.decoder.buffered());
            let text = || {
                format!("Closing {peer}: {held} bytes of a command are more than client-query-buffer-limit")
            };
            env.log(Level::Warning, text);
            return self.node.kill(conn);
        }
        self.process(env, conn);
    }

    /// Runs the commands that a connection has sent, until it must wait for one or has no whole one left.
    pub(super) fn process(&mut self, env: &mut Env, conn: ConnId) {
        if let Some(session) = self.node.sessions.get_mut(conn) {
            session.reading = session.decoder.unread();
        }
        self.run_read(env, conn);
        if let Some(session) = self.node.sessions.get_mut(conn) {
            session.reading = 0;
        }
    }

    fn run_read(&mut self, env: &mut Env, conn: ConnId) {
        loop {
            let paused = self.node.is_paused();
            let Some(session) = self.node.sessions.get_mut(conn) else { return };
            if session.closing || self.node.stalled_until.is_some() {
                if !session.closing {
                    self.node.woken.push_back(conn);
                }
                return;
            }
            // What CLIENT PAUSE has held back comes first when it is over.
            if !paused && let Some(held) = session.blocked.take_if(|blocked| blocked.on == BlockedOn::Pause) {
                self.command(env, conn, held.args);
                continue;
            }
            if session.blocked.is_some() {
                return;
            }
            let mut limits =
                Limits { bulk_len_max: self.node.config.proto_max_bulk_len, ..Limits::default() };
            if !session.authenticated && !self.node.acl.admits_strangers() {
                limits = limits.unauthenticated();
            }
            match session.decoder.next(&limits) {
                Ok(None) => return,
                Ok(Some(args)) => self.command(env, conn, args),
                Err(error) => {
                    let text = error.to_string();
                    let peer = session.peer.clone();
                    env.log(Level::Verbose, || format!("Closing {peer}: {text}"));
                    self.node.stats.note_error(&text);
                    self.node.send(conn, &Reply::Error(text.into()));
                    self.node.close_after_reply(conn);
                }
            }
        }
    }

    pub(super) fn disconnected(&mut self, env: &mut Env, conn: ConnId) {
        self.peer_gone(env, conn);
        self.node.unwatch_all(conn);
        self.node.stop_waiting(conn);
        for kind in [Subscription::Channel, Subscription::Pattern, Subscription::Shard] {
            self.node.unsubscribe_all(conn, kind);
        }
        self.node.stop_tracking(conn);
        self.node.monitors.remove(&conn);
        if let Some(session) = self.node.sessions.remove(conn) {
            self.node.quiet.remove(&(session.quiet_since, conn));
        }
    }

    /// What a connection may leave unread (`client-output-buffer-limit`).
    pub fn output_limit(&self, conn: ConnId) -> BufferLimit {
        let [normal, replica, pubsub] = self.node.config.output_limits;
        match self.node.sessions.get(conn) {
            Some(session) if session.role == Role::Replica => {
                // Less than the backlog holds would only make it begin anew.
                let backlog = self.node.config.repl_backlog_size as u64;
                let hard = if replica.hard == 0 { 0 } else { replica.hard.max(backlog) };
                BufferLimit { hard, ..replica }
            }
            Some(session) if session.is_subscriber() => pubsub,
            _ => normal,
        }
    }

    /// Sends what the step has written, and closes who is to be closed.
    pub(super) fn flush(&mut self, env: &mut Env) {
        for conn in std::mem::take(&mut self.node.pending) {
            let Some(session) = self.node.sessions.get_mut(conn) else { continue };
            let closing = session.closing;
            if !session.out.is_empty() {
                // The room for short replies is used again and again.
                let bytes = if session.out.len() <= OUT_KEPT {
                    let bytes = Bytes::copy_from_slice(&session.out);
                    session.out.clear();
                    bytes
                } else {
                    Bytes::from(std::mem::take(&mut session.out))
                };
                self.node.stats.net_out += bytes.len() as u64;
                env.outbox.push(Action::Send { conn, bytes });
            }
            if closing {
                self.disconnected(env, conn);
                env.outbox.push(Action::Close { conn });
            }
        }
    }
}
