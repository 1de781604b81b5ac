//! Ending what does not end by itself, for SCRIPT KILL and FUNCTION KILL.

use super::next_turn;
use crate::{
    commands::{Ctx, Error, Origin},
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
    ctx.node.scripts.kill(&busy.script);
    let hung_up = busy.hung_up;
    let (client, db) = (busy.conn, ctx.node.sessions.get(busy.conn).map_or(0, |session| session.db));
    let mut of_client = Ctx::new(ctx.node, ctx.env, ctx.effects, client, db, Origin::Client, busy.now_ms);
    // The next script of its transaction may take as long.
    if let Some(reply) = next_turn(&mut of_client, busy) {
        if let Some(session) = ctx.node.sessions.get_mut(client) {
            session.blocked = None;
        }
        ctx.node.send(client, &reply);
        ctx.node.woken.push_back(client);
        if hung_up {
            ctx.node.kill(client);
        }
    }
    Ok(Reply::OK)
}
