//! SHUTDOWN [NOSAVE | SAVE] [NOW] [FORCE] [ABORT]: ends the server.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "shutdown",
    group: Group::Server,
    since: "1.0.0",
    summary: "Ends the server.",
    arity: -1,
    flags: Flags::ADMIN
        .union(Flags::NOSCRIPT)
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::NO_MULTI)
        .union(Flags::ALLOW_BUSY),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (mut save, mut nosave, mut abort) = (false, false, false);
    for option in &args[1..] {
        match &option.to_ascii_lowercase()[..] {
            b"nosave" => nosave = true,
            b"save" => save = true,
            b"now" | b"force" => {}
            b"abort" => abort = true,
            _ => return Err(Error::SYNTAX),
        }
    }
    if (abort && args.len() > 2) || (save && nosave) {
        return Err(Error::SYNTAX);
    }
    // Nothing is waited for here, so that there is never a shutdown to call off.
    if abort {
        return Err(Error::of("ERR No shutdown in progress."));
    }
    if save || (!nosave && !ctx.node.config.save.is_empty()) {
        let now_secs = ctx.env.wall.as_secs();
        ctx.node.save(now_secs);
    }
    ctx.node.exiting = true;
    Ok(Reply::Silence)
}
