//! CLIENT KILL addr, or CLIENT KILL with filters (`filters.rs`): closes connections.

use bytes::Bytes;

use super::filters::Filters;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "client|kill",
    group: Group::Connection,
    since: "2.4.0",
    summary: "Closes connections.",
    arity: -3,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    // The old form names one address, and replies with OK.
    let old_form = args.len() == 3;
    let filters = match args {
        [_, _, peer] => Filters::of_peer(peer),
        _ => Filters::parse(ctx.node, &args[2..], true)?,
    };
    let caller = ctx.conn;
    let selected = filters.chosen(ctx);
    if old_form && selected.is_empty() {
        return Err(Error::of("ERR No such client"));
    }
    for &conn in &selected {
        // The caller still gets its reply.
        if conn == caller {
            ctx.session().quits = true;
        } else {
            ctx.node.clients.kill(conn);
            // The link counts as down from now on, even if the node does nothing more for a while.
            let now_secs = ctx.env.wall.as_secs();
            ctx.node.replication.master.iter_mut().for_each(|link| link.killed(conn, now_secs));
        }
    }
    Ok(if old_form { Reply::OK } else { selected.len().into() })
}
