//! The end of a command, wherever it ends: right after it ran, or after its client has waited for
//! keys, for a script, or for another node.

use bytes::Bytes;

use super::{Server, own_pushes::OwnPushes};
use crate::{
    effect::Effects,
    env::{Env, Observation},
    event::ConnId,
    node::clients::Session,
    resp::Reply,
};

/// A command that has run, or the script or transaction that it was.
pub(super) struct Finished {
    /// The words of the command.
    pub(super) args: Vec<Bytes>,
    /// What it did; nothing ran for a client whose time to wait is up.
    pub(super) effects: Option<Effects>,
    /// Its reply.
    pub(super) reply: Reply,
    /// Its client has waited for this and has been unblocked, so that what it sent meanwhile is to
    /// be read.
    pub(super) waited: bool,
}

impl Server {
    /// Lets what a command did take effect, and gives its client the reply and its own pushes, in
    /// the order in which a server writes them. A client that waits from here on has its reply
    /// later: its command is not over.
    pub(super) fn finish(&mut self, env: &mut Env, conn: ConnId, finished: Finished) {
        let Finished { args, effects, reply, waited } = finished;
        // Other clients learn of a command while it runs, so a client that subscribes to its own
        // events has the message before the reply.
        self.carry_out_for_sentinel(env);
        let ran = effects.is_some();
        // An observer is told of the command before its changes: the words may say for whom they
        // were made.
        let args = if env.observing {
            env.observations.push(Observation::Command { conn, args });
            None
        } else {
            Some(args)
        };
        let mut own = effects.map_or_else(OwnPushes::default, |effects| self.settle_for(env, conn, effects));
        let silent = self.node.clients.sessions.get(conn).is_some_and(Session::is_silent);
        let reply = own.place(&mut self.node, conn, reply, silent);
        if ran && let Some(session) = self.node.clients.sessions.get_mut(conn) {
            session.last_write_offset = self.node.replication.history.offset;
        }
        self.answer(env, conn, &reply);
        own.send(&mut self.node, conn);
        if let Some(args) = args
            && let Some(session) = self.node.clients.sessions.get_mut(conn)
        {
            session.decoder.recycle(args);
        }
        if self.node.clients.sessions.get(conn).is_some_and(|session| session.blocked.is_none()) {
            self.node.clients.command_over(conn);
        }
        if waited {
            self.node.clients.woken.push_back(conn);
        }
    }
}
