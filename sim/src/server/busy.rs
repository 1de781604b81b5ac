//! A script that takes long, and its turns between those of everybody else.

use super::Server;
use crate::{
    commands::{Ctx, Origin, next_turn},
    effect::Effects,
    env::{Env, Observation},
    event::{Action, ConnId},
    session::BlockedOn,
};

impl Server {
    /// Asks for the next turn of a script that goes by a clock.
    pub(super) fn ask_for_turn(&mut self, env: &mut Env) {
        if self.node.busy.is_some() && env.script_clock.is_some() && !self.turn_asked {
            self.turn_asked = true;
            env.outbox.push(Action::GoOn);
        }
    }

    /// A connection is gone; if its script is running, that goes on without it first. Answers whether so.
    pub(super) fn outlived_by_script(&mut self, conn: ConnId) -> bool {
        let busy = self.node.busy.as_mut().filter(|busy| busy.conn == conn);
        busy.is_some_and(|busy| {
            busy.hung_up = true;
            true
        })
    }

    /// Gives the script its next turn, and its client the reply if it has ended.
    pub(super) fn next_turn(&mut self, env: &mut Env) {
        self.turn_asked = false;
        let Some(busy) = self.node.busy.take() else { return };
        let (conn, now_ms, hung_up) = (busy.conn, busy.now_ms, busy.hung_up);
        let args = if env.observing { busy.command.clone() } else { Vec::new() };
        let db = self.node.sessions.get(conn).map_or(0, |session| session.db);
        let mut effects = Effects::default();
        let mut ctx = Ctx::new(&mut self.node, env, &mut effects, conn, db, Origin::Client, now_ms);
        let Some(reply) = next_turn(&mut ctx, busy) else { return };
        self.settle(env, Some(conn), effects);
        let reply = if self.heard.is_empty() { reply } else { self.with_heard(conn, reply) };
        if let Some(session) = self.node.sessions.get_mut(conn) {
            session.blocked.take_if(|blocked| blocked.on == BlockedOn::Script);
            session.last_write_offset = self.node.replication.history.offset;
        }
        self.node.send(conn, &reply);
        self.node.woken.push_back(conn);
        if env.observing {
            env.observations.push(Observation::Command { conn, args, reply });
        }
        if hung_up {
            self.node.kill(conn);
        }
        self.serve_ready(env);
    }
}
