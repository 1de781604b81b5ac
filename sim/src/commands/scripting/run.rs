//! Running a script for a client, from the words of EVAL to its reply: the steps that the four commands share.

use std::{any::Any, rc::Rc, time::Duration};

use bytes::Bytes;

use super::loan::Loan;
use crate::{
    commands::{Ctx, Error, integer, permit},
    node::Busy,
    resp::{Protocol, Reply},
    script::{Flags, Host, Outcome, Run, Script},
    session::{Blocked, BlockedOn},
};

const NO_SCRIPT: Error = Error::of("NOSCRIPT No matching script. Please use EVAL.");

/// What a script may do to the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Anything.
    Full,
    /// Read it (the `_RO` commands).
    ReadOnly,
}

/// EVAL: the script itself is the first argument.
pub(super) fn by_body(ctx: &mut Ctx<'_>, args: &[Bytes], access: Access) -> Result<Reply, Error> {
    let keys = key_count(args)?;
    let script = ctx.node.scripts.load(&args[1]).map_err(|error| Error(error.0.into()))?;
    run(ctx, &script, args, keys, access)
}

/// EVALSHA: the first argument is the name of a script.
pub(super) fn by_sha(ctx: &mut Ctx<'_>, args: &[Bytes], access: Access) -> Result<Reply, Error> {
    if args[1].len() != 40 {
        return Err(NO_SCRIPT);
    }
    let keys = key_count(args)?;
    let script = ctx.node.scripts.script(&args[1]).ok_or(NO_SCRIPT)?;
    run(ctx, &script, args, keys, access)
}

fn key_count(args: &[Bytes]) -> Result<usize, Error> {
    let keys = integer(&args[2])?;
    if keys > (args.len() - 3) as i64 {
        return Err(Error::of("ERR Number of keys can't be greater than number of args"));
    }
    usize::try_from(keys).map_err(|_| Error::of("ERR Number of keys can't be negative"))
}

/// What a script's first line promises, held against the state of the node. A script without one is judged command by
/// command.
fn admit(ctx: &Ctx<'_>, flags: Flags, access: Access) -> Result<(), Error> {
    if flags.contains(Flags::COMPAT) {
        return Ok(());
    }
    let node = &*ctx.node;
    if node.is_stale() && !node.config.replica_serve_stale_data && !flags.contains(Flags::ALLOW_STALE) {
        return Err(Error::MASTER_DOWN);
    }
    if !flags.contains(Flags::NO_WRITES) {
        if access == Access::ReadOnly {
            return Err(Error::of("ERR Can not execute a script with write flag using *_ro command."));
        }
        if permit::read_only_replica(node).is_err() {
            return Err(Error::of("READONLY Can not run script with write flag on readonly replica."));
        }
        permit::disk(node)?;
        permit::replicas(node)?;
        if node.out_of_memory && !flags.contains(Flags::ALLOW_OOM) {
            return Err(Error::of(
                "OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'",
            ));
        }
    }
    Ok(())
}

fn run(
    ctx: &mut Ctx<'_>,
    script: &Rc<Script>,
    args: &[Bytes],
    keys: usize,
    access: Access,
) -> Result<Reply, Error> {
    admit(ctx, script.flags, access)?;
    let engine = ctx.node.scripts.clone();
    let idle = engine.idle_host().map(|host| -> Box<dyn Any> { host });
    let mut loan =
        idle.and_then(|host| host.downcast::<Loan>().ok()).unwrap_or_else(|| Box::new(Loan::new()));
    loan.read_only = access == Access::ReadOnly || script.flags.contains(Flags::NO_WRITES);
    loan.out_of_memory = ctx.node.out_of_memory && !script.flags.contains(Flags::ALLOW_OOM);
    let budget = ctx.node.config.script_budget;
    // A script has a database and a protocol of its own.
    let session = ctx.session();
    let (db, protocol) = (session.db, std::mem::replace(&mut session.protocol, Protocol::Resp2));

    loan.lend(ctx);
    let (keys, argv) = args[3..].split_at(keys);
    let (host, outcome) = engine.run(loan, &Run { script, keys, args: argv, budget });
    let host: Box<dyn Any> = host;
    let mut loan = host.downcast::<Loan>().expect("the engine hands back what it was lent");
    loan.exchange(ctx);

    let wrote = loan.wrote;
    engine.keep_host(loan as Box<dyn Host>);
    let session = ctx.session();
    (session.db, session.protocol) = (db, protocol);
    Ok(match outcome {
        Outcome::Reply(reply) => reply,
        Outcome::Endless { killed } => endless(ctx, killed, wrote),
    })
}

/// A script that used up its budget is taken to run for ever: its client waits, and the node does nothing until
/// `busy-reply-threshold` has passed; from then on it answers BUSY.
fn endless(ctx: &mut Ctx<'_>, killed: String, wrote: bool) -> Reply {
    let held = std::mem::take(ctx.effects);
    ctx.node.busy = Some(Busy { conn: ctx.conn, wrote, killed, held, transaction: None });
    let threshold = Duration::from_millis(ctx.node.config.busy_reply_threshold);
    ctx.node.stalled_until = Some(ctx.env.monotonic + threshold);
    let ticket = ctx.node.tickets;
    ctx.node.tickets += 1;
    let (args, keys, deadline) = (Vec::new(), Vec::new(), None);
    ctx.session().blocked = Some(Blocked { args, keys, deadline, ticket, on: BlockedOn::Script });
    Reply::Silence
}
