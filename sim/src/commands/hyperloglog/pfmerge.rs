//! PFMERGE destination [source ...]: makes the destination the union of HyperLogLogs, itself among
//! them.

use bytes::Bytes;

use super::{registers, sketch};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Class,
    keyspace::Str,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "pfmerge",
    group: Group::HyperLogLog,
    since: "2.8.9",
    summary: "Stores the union of HyperLogLogs.",
    arity: -2,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    keys: Keys::ALL,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (key, sparse_max) = (&args[1], ctx.node.config.keyspace.encodings.hyperloglog_sparse_max);
    let mut registers = Box::new([0; registers::REGISTERS]);
    let (mut is_dense, mut is_new) = (false, true);
    for (at, source) in args[1..].iter().enumerate() {
        if let Some(string) = ctx.read::<Str>(source)? {
            sketch::check(string.bytes())?;
            is_dense |= !sketch::is_sparse(string.bytes());
            is_new &= at > 0;
            sketch::merge_into(&mut registers, string.bytes())?;
        }
    }
    ctx.modify_or_create::<Str>(key)?.edit(|bytes| {
        if is_new {
            sketch::begin(bytes);
        }
        if is_dense {
            sketch::make_dense(bytes)?;
        }
        for (index, value) in registers.iter().enumerate().filter(|(_, value)| **value > 0) {
            sketch::raise(bytes, index, *value, sparse_max)?;
        }
        sketch::invalidate(bytes);
        Ok::<(), Error>(())
    })?;
    ctx.changed(key, Class::String, "pfadd");
    Ok(Reply::OK)
}
