//! CLIENT UNBLOCK id [TIMEOUT | ERROR]: ends the wait of another client, as after its timeout or
//! with an error.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, find_in, integer},
    event::ConnId,
    node::clients::BlockedOn,
    resp::Reply,
    time::Monotonic,
};

pub(super) const SPEC: Spec = Spec {
    name: "client|unblock",
    group: Group::Connection,
    since: "5.0.0",
    summary: "Ends the wait of a blocked client.",
    arity: -3,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let with_error = match args {
        [_, _, _] => false,
        [_, _, _, how] if how.eq_ignore_ascii_case(b"timeout") => false,
        [_, _, _, how] if how.eq_ignore_ascii_case(b"error") => true,
        [_, _, _, _] => return Err(Error::of("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")),
        _ => return Err(Error::subcommand("client", &args[1])),
    };
    let id = integer(&args[2])?;
    let conn = ConnId(u64::try_from(id).unwrap_or(0));
    let waits = |on: BlockedOn| on == BlockedOn::Keys || on.awaits_offset();
    let Some(session) = ctx.node.clients.sessions.get_mut(conn) else { return Ok(Reply::Integer(0)) };
    match &session.blocked {
        Some(blocked) if waits(blocked.on) => {
            // The client's command has failed in both cases.
            if let Ok(spec) = find_in(&ctx.node.config, &blocked.args) {
                ctx.node.stats.calls_of(spec.name).failed += 1;
            }
            if with_error {
                if ctx.node.clients.stop_waiting(conn).is_none() {
                    ctx.node.clients.sessions.get_mut(conn).and_then(|session| session.blocked.take());
                }
                let error = Error::of("UNBLOCKED client unblocked via CLIENT UNBLOCK");
                ctx.node.stats.note_error(&error.0);
                ctx.node.answer_waited(conn, &error.into());
            } else if ctx.node.clients.stop_waiting(conn).is_some() {
                ctx.node.answer_waited(conn, &Reply::NullArray);
            } else if let Some(blocked) =
                ctx.node.clients.sessions.get_mut(conn).and_then(|session| session.blocked.as_mut())
            {
                // WAIT and WAITAOF count the replicas that have acknowledged when their timeout
                // ends.
                blocked.deadline = Some(Monotonic::ZERO);
            }
            Ok(Reply::Integer(1))
        }
        _ => Ok(Reply::Integer(0)),
    }
}
