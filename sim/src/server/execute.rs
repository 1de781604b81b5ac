//! Running one command of a connection, from its words to its reply and its effects.

use bytes::Bytes;

use super::{Server, gate::Passage};
use crate::{
    commands::{Ctx, Origin, run},
    effect::Effects,
    env::{Env, Observation},
    event::ConnId,
};

impl Server {
    /// Takes one command of a connection through the gate, runs it, and settles what it did.
    pub(super) fn command(&mut self, env: &mut Env, conn: ConnId, args: Vec<Bytes>) {
        let spec = match self.gate(conn, &args) {
            Passage::Run(spec) => spec,
            Passage::Answer(reply) => return self.node.send(conn, &reply),
        };
        let Some(session) = self.node.sessions.get_mut(&conn) else { return };
        session.last_active = env.monotonic;
        session.last_command = spec.name;
        let db = session.db;
        let now_ms = env.wall.as_millis();
        let mut effects = Effects::default();
        let mut ctx = Ctx::new(&mut self.node, env, &mut effects, conn, db, Origin::Client, now_ms);
        let reply = run(&mut ctx, spec, &args);
        if let Some(blocked) = ctx.take_block() {
            ctx.session().blocked = Some(blocked);
        }
        self.node.send(conn, &reply);
        if env.observing {
            env.observations.push(Observation::Command { conn, args, reply });
        }
        self.settle(env, Some(conn), effects);
        if let Some(session) = self.node.sessions.get_mut(&conn) {
            session.last_write_offset = self.node.replication.history.offset;
        }
    }
}
