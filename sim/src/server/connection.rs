//! Connections coming, sending, and going.

use bytes::Bytes;

use super::Server;
use crate::{
    env::Env,
    event::{Action, ConnId},
    pubsub::Subscription,
    resp::{Limits, Reply},
    session::Session,
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
        session.decoder.feed(bytes);
        self.process(env, conn);
    }

    /// Runs the commands that a connection has sent, until it must wait for one or has no whole one left.
    pub(super) fn process(&mut self, env: &mut Env, conn: ConnId) {
        while let Some(session) = self.node.sessions.get_mut(&conn) {
            if session.closing || session.blocked.is_some() {
                return;
            }
            let mut limits =
                Limits { bulk_len_max: self.node.config.proto_max_bulk_len, ..Limits::default() };
            if !session.authenticated {
                limits = limits.unauthenticated();
            }
            match session.decoder.next(&limits) {
                Ok(None) => return,
                Ok(Some(args)) => self.command(env, conn, args),
                Err(error) => {
                    self.node.send(conn, &Reply::Error(error.to_string().into()));
                    self.node.close(conn);
                }
            }
        }
    }

    pub(super) fn disconnected(&mut self, env: &mut Env, conn: ConnId) {
        self.peer_gone(env, conn);
        let Some(session) = self.node.sessions.remove(&conn) else { return };
        let names = [
            (Subscription::Channel, &session.channels),
            (Subscription::Pattern, &session.patterns),
            (Subscription::Shard, &session.shards),
        ];
        for (kind, names) in names {
            for name in names {
                self.node.pubsub.unsubscribe(kind, name, conn);
            }
        }
    }

    /// Sends what the step has written, and closes who is to be closed.
    pub(super) fn flush(&mut self, env: &mut Env) {
        for conn in std::mem::take(&mut self.node.pending) {
            let Some(session) = self.node.sessions.get_mut(&conn) else { continue };
            let closing = session.closing;
            if !session.out.is_empty() {
                let bytes = Bytes::from(std::mem::take(&mut session.out));
                env.outbox.push(Action::Send { conn, bytes });
            }
            if closing {
                self.disconnected(env, conn);
                env.outbox.push(Action::Close { conn });
            }
        }
    }
}
