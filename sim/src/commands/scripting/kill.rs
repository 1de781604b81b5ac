//! Kills an endless script or function, for SCRIPT KILL and FUNCTION KILL.

use crate::{
    commands::{Ctx, Error},
    resp::Reply,
};

/// Kind of code to kill.
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

/// Kills the running script or function.
pub(super) fn kill(ctx: &mut Ctx<'_>, kind: Kind) -> Result<Reply, Error> {
    match &mut ctx.node.busy {
        None => Err(Error::of("NOTBUSY No scripts in execution right now.")),
        Some(busy) if busy.function.is_some() != (kind == Kind::Function) => Err(Error::busy(busy)),
        Some(busy) if busy.wrote => Err(UNKILLABLE),
        Some(busy) => {
            // It ends in its next turn, which follows immediately.
            busy.killed = true;
            ctx.node.scripts.kill(&busy.script);
            Ok(Reply::OK)
        }
    }
}
