//! SHUTDOWN [NOSAVE | SAVE] [NOW] [FORCE] [ABORT]: ends the server.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    generation::Feature,
    log::Level,
    node::{Shutdown, clients::BlockedOn},
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
    let is_old = !ctx.node.config.generation.has(Feature::ShutdownOptions);
    let [mut save, mut nosave, mut now, mut force, mut abort] = [false; 5];
    for option in &args[1..] {
        match &option.to_ascii_lowercase()[..] {
            b"nosave" => nosave = true,
            b"save" => save = true,
            b"now" if !is_old => now = true,
            b"force" if !is_old => force = true,
            b"abort" if !is_old => abort = true,
            _ => return Err(Error::SYNTAX),
        }
    }
    if (abort && args.len() > 2) || (save && nosave) {
        return Err(Error::SYNTAX);
    }
    if abort {
        return call_off(ctx);
    }
    if !now && !ctx.may_block() {
        return Err(Error::of("ERR SHUTDOWN without NOW or ABORT isn't allowed for DENY BLOCKING client"));
    }
    // The rest of the running script would be lost, along with its effects so far.
    if let Some(busy) = ctx.node.busy.as_ref().filter(|_| !nosave) {
        return Err(Error::busy(busy));
    }
    ctx.env.log(Level::Warning, || "A client asked for the end: shutting down".into());
    let save = (save || nosave).then_some(save);
    ctx.node.shutdown.get_or_insert(Shutdown { save, now, force, ..Shutdown::default() });
    // The only reply is the end of the server, by server/shutdown.rs.
    ctx.block(args, Vec::new(), None, BlockedOn::Shutdown);
    Ok(Reply::Silence)
}

/// Cancels the shutdown, and unblocks the client that requested it.
fn call_off(ctx: &mut Ctx<'_>) -> Result<Reply, Error> {
    ctx.node.shutdown.take().ok_or(Error::of("ERR No shutdown in progress."))?;
    ctx.env.log(Level::Notice, || "Shutdown manually aborted".into());
    ctx.node.refuse_shutdown();
    Ok(Reply::OK)
}
