//! Running one command of a connection, from its words to its reply and its effects.

use bytes::Bytes;

use super::{Server, gate::Passage};
use crate::{
    commands::{Ctx, Flags, Origin, run},
    effect::Effects,
    env::{Env, Observation},
    event::ConnId,
    session::Replies,
};

impl Server {
    /// Takes one command of a connection through the gate, runs it, and settles what it did.
    pub(super) fn command(&mut self, env: &mut Env, conn: ConnId, args: Vec<Bytes>) {
        let Some(session) = self.node.sessions.get_mut(conn) else { return };
        session.last_active = env.monotonic;
        session.argv = (args.iter().map(Bytes::len).sum(), args.len());
        let spec = match self.gate(env, conn, &args) {
            Passage::Run(spec) => spec,
            Passage::Answer(reply) => {
                self.node.send(conn, &reply);
                return self.after_command(conn);
            }
            Passage::Hold => return self.hold(conn, &args),
            Passage::Close => return self.node.kill(conn),
        };
        let Some(session) = self.node.sessions.get_mut(conn) else { return };
        let db = session.db;
        let now_ms = env.wall.as_millis();
        // Keys that are found expired by the way have nothing to do with each other.
        let apart = spec.flags.contains(Flags::TOUCHES_ARBITRARY_KEYS);
        let mut effects = Effects { apart, ..Effects::default() };
        let mut ctx = Ctx::new(&mut self.node, env, &mut effects, conn, db, Origin::Client, now_ms);
        let reply = run(&mut ctx, spec, &args);
        if let Some(blocked) = ctx.take_block() {
            ctx.node.wait(conn, blocked);
        }
        // What a command does to others happens while it runs, so a client that hears itself has the message before the
        // reply.
        self.settle(env, Some(conn), effects);
        let reply = if self.heard.is_empty() { reply } else { self.with_heard(conn, reply) };
        if let Some(session) = self.node.sessions.get_mut(conn) {
            session.last_write_offset = self.node.replication.history.offset;
        }
        self.node.send(conn, &reply);
        self.tell_owed(conn);
        if env.observing {
            env.observations.push(Observation::Command { conn, args, reply });
        } else if let Some(session) = self.node.sessions.get_mut(conn) {
            session.decoder.recycle(args);
        }
        self.after_command(conn);
        self.serve_ready(env);
    }

    /// CLIENT REPLY SKIP reaches over exactly one command.
    fn after_command(&mut self, conn: ConnId) {
        if self.node.sessions.get(conn).is_some_and(|session| session.quits) {
            self.node.close_after_reply(conn);
        }
        let Some(session) = self.node.sessions.get_mut(conn) else { return };
        session.argv = (0, 0);
        session.replies = match session.replies {
            Replies::SkipNext => Replies::Skip,
            Replies::Skip => Replies::On,
            other => other,
        };
        // CLIENT CACHING is about the next command, or about a whole transaction.
        if session.transaction.is_none() && !session.last_command.starts_with("client|") {
            session.tracking.iter_mut().for_each(|tracking| tracking.exception = false);
        }
    }
}
