//! Whether a command may run now: authentication, arity, protocol state, role, memory, transactions.

use bytes::Bytes;

use super::Server;
use crate::{
    commands::{Error, Spec, find},
    event::ConnId,
    resp::{Protocol, Reply},
};

/// What the gate decided.
pub(super) enum Passage {
    /// It may run.
    Run(&'static Spec),
    /// It was queued or refused: this is its reply.
    Answer(Reply),
}

impl Server {
    /// Decides whether a client's command runs, waits in a transaction, or is refused.
    pub(super) fn gate(&mut self, conn: ConnId, args: &[Bytes]) -> Passage {
        let admitted = self.admit(conn, args);
        let session = self.node.sessions.get_mut(&conn).expect("the gate is for live connections");
        match admitted {
            Ok(spec) => {
                let queues = !matches!(spec.name, "exec" | "discard" | "multi" | "watch" | "reset" | "quit");
                match &mut session.transaction {
                    Some(transaction) if queues => {
                        transaction.queue.push(args.to_vec());
                        Passage::Answer(Reply::QUEUED)
                    }
                    _ => Passage::Run(spec),
                }
            }
            Err(error) => {
                if let Some(transaction) = &mut session.transaction {
                    transaction.broken = true;
                }
                Passage::Answer(error.into())
            }
        }
    }

    fn admit(&mut self, conn: ConnId, args: &[Bytes]) -> Result<&'static Spec, Error> {
        let spec = find(args)?;
        if !spec.accepts(args.len()) {
            return Err(Error::arity(spec.name));
        }
        let session = self.node.sessions.get_mut(&conn).expect("the gate is for live connections");
        if session.protocol == Protocol::Resp2 && session.is_subscriber() {
            let allowed = matches!(
                spec.name,
                "subscribe"
                    | "unsubscribe"
                    | "psubscribe"
                    | "punsubscribe"
                    | "ssubscribe"
                    | "sunsubscribe"
                    | "ping"
                    | "quit"
                    | "reset"
            );
            if !allowed {
                return Err(Error::in_subscription(spec.name));
            }
        }
        Ok(spec)
    }
}
