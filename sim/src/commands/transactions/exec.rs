//! EXEC: runs the queued commands as one unit, unless a watched key changed.

use bytes::Bytes;

use super::watch::watch_broken;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Late, Origin, Spec, access, find_in, run as run_command},
    event::ConnId,
    node::clients::{Blocked, BlockedOn},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "exec",
    group: Group::Transactions,
    since: "1.2.0",
    summary: "Runs the commands queued since MULTI.",
    arity: 1,
    flags: Flags::NOSCRIPT
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::SKIP_SLOWLOG)
        .union(Flags::NESTS)
        .union(Flags::NOT_QUEUED)
        .union(Flags::ENDS_TRANSACTION)
        .union(Flags::RUNS_QUEUE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    let conn = ctx.conn;
    let Some(transaction) = ctx.session().transaction.take() else {
        return Err(Error::of("ERR EXEC without MULTI"));
    };
    let broken = watch_broken(ctx);
    ctx.node.clients.unwatch_all(conn);
    if transaction.broken {
        return Err(Error::of("EXECABORT Transaction discarded because of previous errors."));
    }
    if broken {
        return Ok(Reply::NullArray);
    }
    ctx.session().executing = Some(transaction.queued());
    let replies = Vec::with_capacity(transaction.queue.len());
    Ok(resume_transaction(ctx, conn, replies, transaction.queue))
}

/// Runs the rest of a transaction of `conn`, and returns all its replies.
///
/// Returns no reply if one of the commands is an endless script, or waits for another node
/// (MIGRATE): the rest then waits as well.
pub(crate) fn resume_transaction(
    ctx: &mut Ctx<'_>,
    conn: ConnId,
    mut replies: Vec<Reply>,
    queue: Vec<Vec<Bytes>>,
) -> Reply {
    // The command that the transaction waited for has ended.
    while ctx.effects.command_ends.len() < replies.len() {
        ctx.effects.end_command();
    }
    let mut queue = queue.into_iter();
    while let Some(args) = queue.next() {
        let Some(db) = ctx.node.clients.sessions.get(conn).map(|session| session.db) else {
            return Reply::Silence;
        };
        ctx.env.refresh(ctx.node.stalled_until);
        let protocol = ctx.node.clients.sessions.get(conn).map(|session| session.protocol);
        let mut nested = Ctx::new(ctx.node, ctx.env, ctx.effects, conn, db, Origin::Exec, ctx.now_ms);
        let found = find_in(&nested.node.config, &args);
        let late = Late::of(&nested.node.config, &found, &args);
        let reply = match late.as_ref().map_or(found, |late| Ok(late.spec)) {
            // The permission may have changed since the command was queued.
            Ok(spec) => {
                let denied = access::refuse(nested.node, nested.env, conn, spec, &args, "multi").err();
                let denied = denied.map(|denied| denied.error_in_exec());
                match denied.or(late.map(|late| late.error)) {
                    None => run_command(&mut nested, spec, &args),
                    Some(error) => {
                        nested.node.stats.note_error(&error.0);
                        error.into()
                    }
                }
            }
            Err(error) => error.into(),
        };
        if let Some(busy) = &mut ctx.node.busy {
            busy.transaction = Some((replies, queue.collect()));
            return Reply::Silence;
        }
        if let Some(migration) = &mut ctx.node.migration {
            migration.transaction = Some((replies, queue.collect()));
            migration.held = std::mem::take(ctx.effects);
            let ticket = ctx.node.clients.tickets;
            ctx.node.clients.tickets += 1;
            if let Some(session) = ctx.node.clients.sessions.get_mut(conn) {
                let (keys, deadline, on) = (Vec::new(), None, BlockedOn::Migration);
                session.blocked = Some(Blocked { args, keys, deadline, ticket, on });
            }
            return Reply::Silence;
        }
        if let Some(before) = protocol
            && ctx.node.clients.sessions.get(conn).is_some_and(|session| session.protocol != before)
        {
            // The earlier replies keep the protocol that was in use when they were made.
            replies.iter_mut().for_each(|reply| *reply = reply.written(before));
        }
        replies.push(reply);
        ctx.effects.end_command();
    }
    if let Some(session) = ctx.node.clients.sessions.get_mut(conn) {
        session.executing = None;
    }
    Reply::Array(replies)
}
