//! Connections coming, sending, and going.

use bytes::Bytes;

use super::Server;
use crate::{
    env::Env,
    event::{Action, ConnId},
    pubsub::Subscription,
    resp::{Limits, Reply},
    session::{BlockedOn, Session},
};

impl Server {
    pub(super) fn connected(&mut self, env: &mut Env, conn: ConnId, peer: String, local: String) {
        if self.node.sessions.len() >= self.node.config.maxclients {
            self.node.stats.rejected += 1;
            env.outbox.push(Action::Send {
                conn,
                bytes: Bytes::from_static(b"-ERR max number of clients reached\r\n"),
            });
            env.outbox.push(Action::Close { conn });
            return;
        }
        self.node.stats.connections += 1;
        let mut session = Session::new(conn, peer, local, env.monotonic);
        session.authenticated = self.node.config.requirepass.is_empty();
        self.node.sessions.insert(conn, session);
    }

    pub(super) fn received(&mut self, env: &mut Env, conn: ConnId, bytes: &[u8]) {
        if self.is_master_link(conn) {
            return self.hear_master(env, bytes);
        }
        let Some(session) = self.node.sessions.get_mut(&conn) else { return };
        if session.closing {
            return;
        }
        self.node.stats.net_in += bytes.len() as u64;
        session.decoder.feed(bytes);
        if session.decoder.buffered() > self.node.config.client_query_buffer_limit {
            return self.node.kill(conn);
        }
        self.process(env, conn);
    }

    /// Runs the commands that a connection has sent, until it must wait for one or has no whole one left.
    pub(super) fn process(&mut self, env: &mut Env, conn: ConnId) {
        while let Some(session) = self.node.sessions.get_mut(&conn) {
            if session.closing || self.node.stalled_until.is_some() {
                if !session.closing {
                    self.node.woken.push_back(conn);
                }
                return;
            }
            // What CLIENT PAUSE has held back comes first when it is over.
            if self.node.paused.is_none()
                && let Some(held) = session.blocked.take_if(|blocked| blocked.on == BlockedOn::Pause)
            {
                self.command(env, conn, held.args);
                continue;
            }
            if session.blocked.is_some() {
                return;
            }
            let mut limits =
                Limits { bulk_len_max: self.node.config.proto_max_bulk_len, ..Limits::default() };
            if !session.authenticated && !self.node.config.requirepass.is_empty() {
                limits = limits.unauthenticated();
            }
            match session.decoder.next(&limits) {
                Ok(None) => return,
                Ok(Some(args)) => self.command(env, conn, args),
                Err(error) => {
                    let text = error.to_string();
                    self.node.stats.note_error(&text);
                    self.node.send(conn, &Reply::Error(text.into()));
                    self.node.close(conn);
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
        self.node.monitors.remove(&conn);
        self.node.sessions.remove(&conn);
    }

    /// Sends what the step has written, and closes who is to be closed.
    pub(super) fn flush(&mut self, env: &mut Env) {
        for conn in std::mem::take(&mut self.node.pending) {
            let Some(session) = self.node.sessions.get_mut(&conn) else { continue };
            let closing = session.closing;
            if !session.out.is_empty() {
                let bytes = Bytes::from(std::mem::take(&mut session.out));
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
