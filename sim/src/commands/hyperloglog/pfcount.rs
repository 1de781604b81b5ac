//! PFCOUNT key [key ...]: the estimate of a HyperLogLog, or of the union of several.

use bytes::Bytes;

use super::{registers, sketch};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::Str,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "pfcount",
    group: Group::HyperLogLog,
    since: "2.8.9",
    summary: "Estimates how many different elements were added.",
    arity: -2,
    // The command caches the estimate inside the string, and propagates that change.
    flags: Flags::READONLY.union(Flags::MAY_REPLICATE),
    keys: Keys::ALL,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    if let [_, key] = args {
        return Ok(Reply::Integer(one(ctx, key)? as i64));
    }
    let mut registers = Box::new([0; registers::REGISTERS]);
    for key in &args[1..] {
        if let Some(string) = ctx.read::<Str>(key)? {
            sketch::check(string.bytes())?;
            sketch::merge_into(&mut registers, string.bytes())?;
        }
    }
    Ok(Reply::Integer(sketch::count_registers(&registers) as i64))
}

/// Returns the estimate of one HyperLogLog, which stays cached inside it until an element is added.
fn one(ctx: &mut Ctx<'_>, key: &Bytes) -> Result<u64, Error> {
    let Some(string) = ctx.read::<Str>(key)? else { return Ok(0) };
    sketch::check(string.bytes())?;
    let Some(string) = ctx.modify_no_touch::<Str>(key)? else { return Ok(0) };
    let (estimate, is_new) = string.edit(|bytes| match sketch::cached(bytes) {
        Some(estimate) => Ok::<_, Error>((estimate, false)),
        None => {
            let estimate = sketch::count(bytes)?;
            sketch::cache(bytes, estimate);
            Ok((estimate, true))
        }
    })?;
    if is_new {
        ctx.effects.dirty += 1;
        ctx.signal(key);
    }
    Ok(estimate)
}
