//! Ending what does not end by itself, for SCRIPT KILL and FUNCTION KILL.

use super::super::transactions::go_on;
use crate::{
    commands::{Ctx, Error, timing},
    resp::Reply,
};

/// What is to be killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A script of EVAL.
    Script,
    /// A function of a library.
    Function,
}

const UNKILLABLE: Error = Error::of(
    "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script \
     termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.",
);

/// Ends the script or the function that runs.
pub(super) fn kill(ctx: &mut Ctx<'_>, kind: Kind) -> Result<Reply, Error> {
    match &ctx.node.busy {
        None => return Err(Error::of("NOTBUSY No scripts in execution right now.")),
        Some(busy) if busy.function.is_some() != (kind == Kind::Function) => {
            return Err(Error::busy(busy));
        }
        Some(busy) if busy.wrote => return Err(UNKILLABLE),
        Some(_) => {}
    }
    let busy = ctx.node.busy.take().expect("just seen");
    timing::note_killed(ctx, &busy);
    // What went before the script in its transaction, and keys that it found expired.
    ctx.effects.append(busy.held);
    let killed = Reply::Error(busy.killed.into());
    let reply = match busy.transaction {
        None => killed,
        Some((mut replies, rest)) => {
            replies.push(killed);
            go_on(ctx, busy.conn, replies, rest)
        }
    };
    // Its next script may be endless as well.
    if ctx.node.busy.is_none() {
        if let Some(session) = ctx.node.sessions.get_mut(busy.conn) {
            session.blocked = None;
        }
        ctx.node.send(busy.conn, &reply);
        ctx.node.woken.push_back(busy.conn);
    }
    Ok(Reply::OK)
}
