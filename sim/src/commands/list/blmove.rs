//! BLMOVE source destination LEFT | RIGHT LEFT | RIGHT timeout: like LMOVE, but waits while the
//! source is empty.

use bytes::Bytes;

use super::{
    ends::{end, word},
    moving::shift_or_wait,
};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, Wait},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "blmove",
    group: Group::List,
    since: "6.2.0",
    summary: "Moves an element from list to list, waiting for one.",
    arity: 6,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::NOSCRIPT).union(Flags::BLOCKING),
    keys: Keys::Range { first: 1, last: 2, step: 1 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let ends = [end(&args[3])?, end(&args[4])?];
    let wait = Wait::parse(ctx, &args[5])?;
    let words = ends.map(|end| Bytes::from_static(word(end).as_bytes()));
    let [from_end, to_end] = words;
    let repeated = vec![Bytes::from_static(b"LMOVE"), args[1].clone(), args[2].clone(), from_end, to_end];
    shift_or_wait(ctx, args, ends, wait, repeated)
}
