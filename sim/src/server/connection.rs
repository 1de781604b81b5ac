//! Connections coming, sending, and going.

use bytes::Bytes;

use super::Server;
use crate::{
    env::Env,
    event::{Action, ConnId},
    log::Level,
    pubsub::Subscription,
    reply_room::ReplyRoom,
    resp::{Limits, Reply},
    session::{BlockedOn, Session},
};

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
        session.note_length(session.decoder.awaited(), env.monotonic);
        self.process(env, conn);
    }

    /// Runs the commands that a connection has sent, until it must wait for one or has no whole one left.
    pub(super) fn process(&mut self, env: &mut Env, conn: ConnId) {
        if let Some(session) = self.node.sessions.get_mut(conn) {
            session.reading = session.decoder.unread();
        }
        self.node.sessions.weigh(conn);
        self.run_read(env, conn);
        if let Some(session) = self.node.sessions.get_mut(conn) {
            session.reading = 0;
        }
        self.node.sessions.weigh(conn);
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
        if self.outlived_by_script(conn) {
            return;
        }
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

    /// Learns how many bytes for a connection the network has not taken yet. Whoever drives the node may say so at any time
    /// between two steps.
    pub fn note_unsent(&mut self, conn: ConnId, bytes: usize) {
        if let Some(session) = self.node.sessions.get_mut(conn) {
            session.unsent = bytes;
            self.node.sessions.weigh(conn);
        }
    }

    /// Sends what the step has written, and closes who is to be closed.
    pub(super) fn flush(&mut self, env: &mut Env) {
        for conn in std::mem::take(&mut self.node.pending) {
            let Some(session) = self.node.sessions.get_mut(conn) else { continue };
            let closing = session.closing;
            if session.overran {
                env.log(Level::Warning, || {
                    format!(
                        "Closing client {conn}: it leaves more unread than client-output-buffer-limit allows"
                    )
                });
            }
            if !session.out.is_empty() {
                session.room.pass(env.monotonic, self.node.reply_room);
                session.room.fill(session.out.len() + session.unsent);
                // The room for short replies is used again and again.
                let bytes = if session.out.len() <= ReplyRoom::MAX {
                    let bytes = Bytes::copy_from_slice(&session.out);
                    session.out.clear();
                    bytes
                } else {
                    Bytes::from(std::mem::take(&mut session.out))
                };
                self.node.sessions.weigh(conn);
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
