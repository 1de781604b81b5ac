//! CLUSTER SETSLOT slot IMPORTING node | MIGRATING node | NODE node | STABLE: moves a slot.

use bytes::Bytes;

use super::{act, slot_of, with};
use crate::{
    cluster::SetSlot,
    commands::{Ctx, Error, Flags, Group, Keys, Origin, Spec, integer},
    effect::{PropagateTo, Propagated},
    generation::Feature,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|setslot",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Gives a slot to a node, or begins to move it.",
    arity: -4,
    flags: Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let is_replicated = ctx.node.config.generation.has(Feature::ReplicatedSetSlot);
    let is_of_master = is_replicated && ctx.origin == Origin::Replication;
    let refused = with(ctx, |cluster, _, _| cluster.refuses_set_slot())?.filter(|_| !is_of_master);
    if let Some(why) = refused {
        return Err(Error(format!("ERR {why}").into()));
    }
    let slot = slot_of(&args[2])?;
    let (to, options) = match (&args[3].to_ascii_lowercase()[..], &args[4..]) {
        (b"migrating", [node, options @ ..]) => (SetSlot::Migrating(node), options),
        (b"importing", [node, options @ ..]) => (SetSlot::Importing(node), options),
        (b"node", [node, options @ ..]) => (SetSlot::Node(node), options),
        (b"stable", options) => (SetSlot::Stable, options),
        _ => return Err(INVALID),
    };
    match is_replicated {
        true => check_timeout(options)?,
        false if !options.is_empty() => return Err(INVALID),
        false => {}
    }
    let done = act(ctx, |cluster, env, around| cluster.set_slot(env, around, slot, to))?;
    if is_replicated && !is_of_master {
        let (args, to) = (args.to_vec(), PropagateTo::Replicas);
        ctx.effects.propagated.push(Propagated { db: 0, args, to });
    }
    Ok(done)
}

const INVALID: Error =
    Error::of("ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP");

/// Checks each `TIMEOUT ms`, wherever it is. Other words are ignored.
fn check_timeout(options: &[Bytes]) -> Result<(), Error> {
    let timeouts = options.iter().enumerate().filter(|(_, word)| word.eq_ignore_ascii_case(b"timeout"));
    for (at, _) in timeouts {
        let value = options.get(at + 1).ok_or(Error::of("ERR Missing timeout value"))?;
        let ms = integer(value).map_err(|_| Error::of("ERR timeout is not an integer or out of range"))?;
        if ms < 0 {
            return Err(Error::of("ERR timeout is negative"));
        }
    }
    Ok(())
}
