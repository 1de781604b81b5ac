//! The end of a command: right after it ran, or after its client has waited for keys, for a script,
//! or for another node.

use bytes::Bytes;

use super::{Server, own_pushes::OwnPushes};
use crate::{
    effect::Effects,
    env::{Env, Observation},
    event::ConnId,
    node::clients::Session,
    resp::Reply,
};

/// A finished command, script or transaction.
pub(super) struct Finished {
    /// The words of the command.
    pub(super) args: Vec<Bytes>,
    /// Its effects; `None` if nothing ran because the client's wait has timed out.
    pub(super) effects: Option<Effects>,
    /// Its reply.
    pub(super) reply: Reply,
    /// True if the command had blocked its client and the wait is over: the input that the client
    /// sent during the wait must then be processed.
    pub(super) waited: bool,
}

impl Server {
    /// Settles the effects of a command, and sends its client the reply and its own pushes in the
    /// order in which a server writes them. If the client is blocked from here on, its reply comes
    /// later, and its command is not over.
    pub(super) fn finish(&mut self, env: &mut Env, conn: ConnId, finished: Finished) {
        let Finished { args, effects, reply, waited } = finished;
        // Other clients learn of a command while it runs. So a client that subscribes to events of
        // its own gets their messages before the reply.
        self.carry_out_for_sentinel(env);
        let ran = effects.is_some();
        // An observer gets the command before its changes: the words may show for whom the changes
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
