//! The pushes that a client gets because of its own command: around the reply, or inside the reply
//! of EXEC.

use bytes::Bytes;

use crate::{event::ConnId, node::Node, resp::Reply};

/// The pushes that a client gets because of its own command. Settling effects creates them; they
/// are sent with the reply.
#[derive(Debug, Default)]
pub(super) struct OwnPushes {
    /// Messages of a transaction.
    in_transaction: Vec<InTransaction>,
    /// The lines of MONITOR.
    monitor_lines: Vec<Reply>,
    /// Messages of a single command that come after its reply. Those before the reply are sent
    /// immediately.
    after_reply: Vec<Reply>,
    /// Invalidated keys, if the client tracks; `None` for all keys.
    invalidations: Vec<Option<Bytes>>,
}

/// A message to the client whose transaction caused it.
#[derive(Debug)]
struct InTransaction {
    /// The index of the command in the transaction.
    command: usize,
    /// True if it comes after the reply of that command.
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

    /// Adds the invalidation of all keys, if the client itself must get it (`own`).
    pub(super) fn invalidate_all(&mut self, own: bool) {
        if own {
            self.invalidations.push(None);
        }
    }

    /// Puts the messages of a transaction into the reply of EXEC, before or after the reply of the
    /// command that published them, as a server does. Messages that find no place there are sent
    /// before the reply; a client that gets no replies (`silent`) still gets its messages.
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
                // The messages are placed from the last to the first, so `all` still has the
                // command's reply in front of later messages.
                Some(Reply::Several(all)) => all.insert(usize::from(after_reply), push),
                Some(slot) => {
                    let reply = std::mem::replace(slot, Reply::Silence);
                    *slot = Reply::Several(if after_reply { vec![reply, push] } else { vec![push, reply] });
                }
            }
        }
        reply
    }

    /// Sends the pushes that come after the reply.
    pub(super) fn send(self, node: &mut Node, conn: ConnId) {
        self.monitor_lines.iter().chain(&self.after_reply).for_each(|push| node.send(conn, push));
        for key in self.invalidations {
            node.send_invalidation(conn, key.as_ref().map(std::slice::from_ref));
        }
    }
}
