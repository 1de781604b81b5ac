//! SWAPDB index index: exchanges two databases for all clients.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, int32},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "swapdb",
    group: Group::Server,
    since: "4.0.0",
    summary: "Exchanges two databases.",
    arity: 3,
    flags: Flags::WRITE.union(Flags::FAST),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    if ctx.node.cluster.is_some() {
        return Err(Error::of("ERR SWAPDB is not allowed in cluster mode"));
    }
    let index = |text: &Bytes, wrong| int32(text).map_err(|_| Error::of(wrong));
    let first = index(&args[1], "ERR invalid first DB index")?;
    let second = index(&args[2], "ERR invalid second DB index")?;
    let count = ctx.node.dbs.len();
    let in_range =
        |index| usize::try_from(index).ok().filter(|index| *index < count).ok_or(Error::DB_OUT_OF_RANGE);
    let (first, second) = (in_range(first)?, in_range(second)?);
    if first != second {
        ctx.node.dbs.swap(first, second);
        ctx.effects.swapped.push((first, second));
    }
    ctx.effects.dirty += 1;
    Ok(Reply::OK)
}
