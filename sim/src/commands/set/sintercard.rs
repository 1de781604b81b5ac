//! SINTERCARD numkeys key [key ...] [LIMIT limit]: counts the members common to all sets.

use bytes::Bytes;

use super::combining::intersect;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, ranged},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "sintercard",
    group: Group::Set,
    since: "7.0.0",
    summary: "Counts the members common to all sets.",
    arity: -3,
    flags: Flags::READONLY.union(Flags::MOVABLEKEYS),
    keys: Keys::Counted { count: 1 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let keys = ranged(&args[1], 1, i64::MAX, Error::NUMKEYS)?;
    let words = usize::try_from(keys).ok().and_then(|keys| args[2..].split_at_checked(keys));
    let too_many = Error::of("ERR Number of keys can't be greater than number of args");
    let (keys, options) = words.ok_or(too_many)?;
    let (pairs, rest) = options.as_chunks::<2>();
    let mut limit = 0;
    for [option, value] in pairs {
        if !option.eq_ignore_ascii_case(b"limit") {
            return Err(Error::SYNTAX);
        }
        limit = ranged(value, 0, i64::MAX, Error::NEGATIVE_LIMIT)?;
    }
    if !rest.is_empty() {
        return Err(Error::SYNTAX);
    }
    Ok(intersect(ctx, keys, usize::try_from(limit).unwrap_or(usize::MAX))?.len().into())
}
