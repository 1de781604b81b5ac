//! Connections: accepts them, reads their commands, sends replies, and closes them.

use bytes::Bytes;

use super::Server;
use crate::{
    effect::Subscription,
    env::Env,
    event::{Action, ConnId},
    log::Level,
    node::clients::{BlockedOn, ReplyBuffer, Role, Session, is_local},
    resp::{Limits, Reply},
};

/// The error for a client beyond `maxclients`.
const FULL: &str = "-ERR max number of clients reached\r\n";

/// The same in a cluster.
const FULL_IN_CLUSTER: &str = "-ERR max number of clients + cluster connections reached\r\n";

/// The error for a client of another host that `protected-mode` refuses. It is Redis's text,
/// because clients look for it.
const PROTECTED: &str = "-DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the default \
    user. In this mode connections are only accepted from the loopback interface. If you want to connect from \
    external computers to Redis you may adopt one of the following solutions: 1) Just disable protected mode \
    sending the command 'CONFIG SET protected-mode no' from the loopback interface by connecting to Redis from the \
    same host the server is running, however MAKE SURE Redis is not publicly accessible from internet if you do \
    so. Use CONFIG REWRITE to make this change permanent. 2) Alternatively you can just disable the protected mode \
    by editing the Redis configuration file, and setting the protected mode option to 'no', and then restarting \
    the server. 3) If you started the server manually just for testing, restart it with the '--protected-mode no' \
    option. 4) Setup a an authentication password for the default user. NOTE: You only need to do one of the above \
    things in order for the server to start accepting connections from the outside.\r\n";

/// This many bytes fit into the network's buffers even if the peer reads nothing, so they need no
/// accounting.
const ROOM: usize = 16 << 10;

impl Server {
    pub(super) fn connected(&mut self, env: &mut Env, conn: ConnId, peer: String, local: String) {
        let node = &self.node;
        let links = node.cluster.as_ref().map_or(0, |cluster| cluster.connections());
        let refused = if node.clients.sessions.len() + links >= node.config.clients.maxclients {
            let text = if node.cluster.is_some() { FULL_IN_CLUSTER } else { FULL };
            Some((Level::Verbose, "there are as many clients as maxclients allows", text))
        } else if env.strangers
            && node.config.network.protected_mode
            && node.acl.default_needs_no_password()
            && !is_local(&peer)
        {
            Some((Level::Warning, "protected-mode is on, and the default user needs no password", PROTECTED))
        } else {
            None
        };
        if let Some((level, why, text)) = refused {
            self.node.stats.rejected += 1;
            env.log(level, || format!("Refused {peer}: {why}"));
            env.outbox.push(Action::Send { conn, bytes: Bytes::from_static(text.as_bytes()) });
            env.outbox.push(Action::Close { conn });
            return;
        }
        self.node.stats.connections += 1;
        env.log(Level::Debug, || format!("Accepted {peer}"));
        let mut session = Session::new(conn, peer, local, env.monotonic);
        session.authenticated = self.node.acl.admits_strangers();
        self.node.clients.sessions.insert(session);
        self.node.clients.note_active(conn, env.monotonic);
    }

    pub(super) fn received(&mut self, env: &mut Env, conn: ConnId, bytes: &[u8]) {
        self.node.stats.reads += 1;
        if self.is_master_link(conn) {
            self.node.stats.repl_in += bytes.len() as u64;
            return self.read_from_master(env, bytes);
        }
        let Some(session) = self.node.clients.sessions.get_mut(conn) else { return };
        if session.closing {
            return;
        }
        self.node.stats.net_in += bytes.len() as u64;
        session.received += bytes.len() as u64;
        session.last_active = env.monotonic;
        session.decoder.feed(bytes);
        if session.decoder.buffered() > self.node.config.clients.query_buffer_limit {
            let (peer, held) = (session.peer.clone(), session.decoder.buffered());
            let text = || {
                format!("Closing {peer}: {held} bytes of a command are more than client-query-buffer-limit")
            };
            env.log(Level::Warning, text);
            return self.node.clients.kill(conn);
        }
        session.note_length(session.decoder.awaited(), env.monotonic);
        self.process(env, conn);
    }

    /// Runs the commands that a connection has sent, until one of them blocks or the next is
    /// incomplete.
    pub(super) fn process(&mut self, env: &mut Env, conn: ConnId) {
        if let Some(session) = self.node.clients.sessions.get_mut(conn) {
            session.reading = session.decoder.unread();
        }
        self.node.clients.sessions.account(conn);
        self.run_read(env, conn);
        if let Some(session) = self.node.clients.sessions.get_mut(conn) {
            session.reading = 0;
        }
        self.node.clients.sessions.account(conn);
    }

    fn run_read(&mut self, env: &mut Env, conn: ConnId) {
        loop {
            let (paused, is_to_be_seen) = (self.node.is_paused(), self.is_to_be_seen(env));
            let sources_wait = self.keeps_sources_waiting();
            let Some(session) = self.node.clients.sessions.get_mut(conn) else { return };
            // Like the stream of a master, that of a source waits for the end of a script.
            if session.role == Role::Source && sources_wait {
                return;
            }
            if session.closing || self.node.stalled_until.is_some() {
                if !session.closing {
                    self.node.clients.woken.push_back(conn);
                }
                return;
            }
            // After a pause the command that CLIENT PAUSE held back runs before later input.
            if !paused && let Some(held) = session.blocked.take_if(|blocked| blocked.on == BlockedOn::Pause) {
                self.command(env, conn, held.args);
                continue;
            }
            if session.blocked.is_some() {
                return;
            }
            if is_to_be_seen && session.decoder.unread() > 0 {
                self.node.clients.woken.push_front(conn);
                return;
            }
            let mut limits =
                Limits { bulk_len_max: self.node.config.clients.proto_max_bulk_len, ..Limits::default() };
            if !session.authenticated && !self.node.acl.admits_strangers() {
                limits = limits.unauthenticated();
            }
            match session.decoder.next(&limits) {
                Ok(None) => {
                    if session.decoder.take_blank()
                        && let Some(replica) = self.node.replication.replicas.get_mut(&conn)
                    {
                        replica.acked_at = env.wall.as_secs();
                    }
                    return;
                }
                Ok(Some(args)) => self.command(env, conn, args),
                Err(error) => {
                    let text = error.to_string();
                    let peer = session.peer.clone();
                    env.log(Level::Verbose, || format!("Closing {peer}: {text}"));
                    self.node.stats.note_error(&text);
                    self.node.send(conn, &Reply::Error(text.into()));
                    self.node.clients.close_after_reply(conn);
                }
            }
        }
    }

    pub(super) fn disconnected(&mut self, env: &mut Env, conn: ConnId) {
        if self.outlived_by_script(conn) {
            return;
        }
        self.peer_gone(env, conn);
        self.end_import_over(env, conn);
        self.node.clients.unwatch_all(conn);
        self.node.clients.stop_waiting(conn);
        for kind in [Subscription::Channel, Subscription::Pattern, Subscription::Shard] {
            self.node.clients.unsubscribe_all(conn, kind);
        }
        self.node.clients.stop_tracking(conn);
        self.node.clients.monitors.remove(&conn);
        self.node.clients.slow_readers.remove(&conn);
        if let Some(session) = self.node.clients.sessions.remove(conn) {
            self.node.clients.idle_queue.remove(&(session.quiet_since, conn));
        }
    }

    /// Sends the replies of the step, and closes the connections marked for closing.
    pub(super) fn flush(&mut self, env: &mut Env) {
        for conn in std::mem::take(&mut self.node.clients.pending) {
            let Some(session) = self.node.clients.sessions.get_mut(conn) else { continue };
            let (leaving, killed, is_replica) =
                (session.is_leaving(), session.killed, session.role == Role::Replica);
            // A client counts, and can be killed, until the driver reports that the network has
            // taken all of its output.
            let unread = session.unsent > 0 || session.out.len() > ROOM;
            session.lingers |= leaving && !killed && unread && session.role == Role::Client;
            let (lingers, discard) = (session.lingers, session.overran);
            if session.overran {
                env.log(Level::Warning, || {
                    format!(
                        "Closing client {conn}: it leaves more unread than client-output-buffer-limit allows"
                    )
                });
            }
            if !session.out.is_empty() {
                // A client to which the node writes is not idle. That includes blocked clients that
                // get their reply, and subscribers.
                if session.role != Role::Master {
                    session.last_active = env.monotonic;
                }
                session.reply_buffer.pass(
                    env.monotonic,
                    self.node.debug.reply_buffer,
                    &mut self.node.stats.reply_buffers,
                );
                session.reply_buffer.fill(session.out.len() + session.unsent);
                let stats = &mut self.node.stats;
                stats.writes += 1;
                let out = if is_replica { &mut stats.repl_out } else { &mut stats.net_out };
                *out += session.out.len() as u64;
                session.sent += session.out.len() as u64;
                // The buffer for short replies is reused.
                match session.out.take_short(ReplyBuffer::MAX) {
                    Some(bytes) => env.outbox.push(Action::Send { conn, bytes }),
                    None => {
                        let pieces = session.out.take().into_iter();
                        env.outbox.extend(pieces.map(|bytes| Action::Send { conn, bytes }));
                    }
                }
                self.node.clients.sessions.account(conn);
            }
            if leaving {
                if !lingers {
                    self.disconnected(env, conn);
                }
                env.outbox.push(match (killed, lingers) {
                    (true, _) => Action::Kill { conn, discard },
                    (false, true) => Action::Drain { conn },
                    (false, false) => Action::Close { conn },
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{config::Config, event::Event};

    /// Returns the node's first actions for a client that connects from `peer`.
    fn greeting(config: Config, strangers: bool, peer: &str) -> Vec<Action> {
        let mut env = Env::new(1);
        env.strangers = strangers;
        let mut server = Server::new(config, &mut env);
        env.outbox.clear();
        let connected = Event::Connected { conn: ConnId(1), peer: peer.into(), local: "n:6379".into() };
        server.step(&mut env, connected);
        env.outbox.retain(|action| !matches!(action, Action::Alarm { .. }));
        env.outbox
    }

    #[test]
    fn protected_mode_keeps_strangers_out_until_there_is_a_password() {
        let open = || Config::default().with(|config| config.network.protected_mode = false);
        let secret = || Config::default().with(|config| config.security.requirepass = "secret".into());
        for (config, strangers, peer, served) in [
            (Config::default(), true, "192.0.2.1:50000", false),
            (Config::default(), true, "[2001:db8::1]:50000", false),
            (Config::default(), true, "127.0.0.1:50000", true),
            (Config::default(), true, "[::1]:50000", true),
            (Config::default(), true, "redis.sock:0", true),
            (open(), true, "192.0.2.1:50000", true),
            (secret(), true, "192.0.2.1:50000", true),
            // The hosts of a world have addresses of their own, and are not strangers.
            (Config::default(), false, "192.168.0.1:50000", true),
        ] {
            let sent = greeting(config, strangers, peer);
            assert_eq!(sent.is_empty(), served, "{peer}: {sent:?}");
            if let Some(Action::Send { bytes, .. }) = sent.first() {
                assert!(bytes.starts_with(b"-DENIED Redis is running in protected mode "), "{peer}");
                assert_eq!(sent[1..], [Action::Close { conn: ConnId(1) }], "{peer}");
            }
        }
    }
}
