//! What a client is pushed of its own command, and where that comes: around the reply, or inside
//! that of EXEC.

use bytes::Bytes;

use crate::{event::ConnId, node::Node, resp::Reply};

/// The pushes to a client of what its own command did. They are made while effects are settled and
/// sent with the reply.
#[derive(Debug, Default)]
pub(super) struct OwnPushes {
    /// Messages of a transaction.
    in_transaction: Vec<InTransaction>,
    /// MONITOR's lines.
    monitor_lines: Vec<Reply>,
    /// Messages of a single command that come after its reply. Those before it are sent at once.
    after_reply: Vec<Reply>,
    /// Invalidated keys, of a client that tracks; `None` for all of them.
    invalidations: Vec<Option<Bytes>>,
}

/// A message to the client whose transaction it belongs to.
#[derive(Debug)]
struct InTransaction {
    /// The index of the command in the transaction.
    command: usize,
    /// It comes after the reply of that command.
    after_reply: bool,
    push: Reply,
}

impl OwnPushes {
    pub(super) fn new(monitor_lines: Vec<Reply>) -> OwnPushes {
        OwnPushes { monitor_lines, ..OwnPushes::default() }
    }

    /// Adds a message: of a command of a transaction, or one that comes after the reply.
    pub(super) fn publish(&mut self, command: Option<usize>, after_reply: bool, push: Reply) {
        match command {
            Some(command) => self.in_transaction.push(InTransaction { command, after_reply, push }),
            None => self.after_reply.push(push),
        }
    }

    /// Adds the invalidation of a key.
    pub(super) fn invalidate(&mut self, key: Bytes) {
        self.invalidations.push(Some(key));
    }

    /// Adds the invalidation of all keys, if there is one for the client itself.
    pub(super) fn invalidate_all(&mut self, own: bool) {
        if own {
            self.invalidations.push(None);
        }
    }

    /// Puts the messages of a transaction where a server writes them: into the reply of EXEC,
    /// before the reply of the command that published them, or after it. Those that find no place
    /// there are sent first; a client that gets no replies (`silent`) still gets its messages.
    pub(super) fn place(&mut self, node: &mut Node, conn: ConnId, mut reply: Reply, silent: bool) -> Reply {
        while let Some(InTransaction { command, after_reply, push }) = self.in_transaction.pop() {
            let slot = match &mut reply {
                Reply::Array(replies) if !silent => replies.get_mut(command),
                _ => None,
            };
            match slot {
                None => {
                    self.in_transaction.drain(..).for_each(|earlier| node.send(conn, &earlier.push));
                    node.send(conn, &push);
                }
                // The messages are taken from the last to the first, so that the reply is still in
                // front of those after it.
                Some(Reply::Several(all)) => all.insert(usize::from(after_reply), push),
                Some(slot) => {
                    let reply = std::mem::replace(slot, Reply::Silence);
                    *slot = Reply::Several(if after_reply { vec![reply, push] } else { vec![push, reply] });
                }
            }
        }
        reply
    }

    /// Sends what comes after the reply.
    pub(super) fn send(self, node: &mut Node, conn: ConnId) {
        self.monitor_lines.iter().chain(&self.after_reply).for_each(|push| node.send(conn, push));
        for key in self.invalidations {
            node.send_invalidation(conn, key.as_ref().map(std::slice::from_ref));
        }
    }
}
