//! ZADD key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]: adds members with
//! scores, or changes their scores.

use bytes::Bytes;

use super::adding::{Options, add};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, double},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "zadd",
    group: Group::SortedSet,
    since: "1.2.0",
    summary: "Adds members to a sorted set, or changes their scores.",
    arity: -4,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let mut options = Options::default();
    let mut words = &args[2..];
    while let [word, rest @ ..] = words {
        match word.to_ascii_lowercase().as_slice() {
            b"nx" => options.new_only = true,
            b"xx" => options.present_only = true,
            b"gt" => options.higher_only = true,
            b"lt" => options.lower_only = true,
            b"ch" => options.count_changed = true,
            b"incr" => options.increments = true,
            _ => break,
        }
        words = rest;
    }
    let (pairs, rest) = words.as_chunks::<2>();
    if pairs.is_empty() || !rest.is_empty() {
        return Err(Error::SYNTAX);
    }
    let Options { new_only, present_only, higher_only, lower_only, .. } = options;
    if new_only && present_only {
        return Err(Error::of("ERR XX and NX options at the same time are not compatible"));
    }
    if (new_only && (higher_only || lower_only)) || (higher_only && lower_only) {
        return Err(Error::of("ERR GT, LT, and/or NX options at the same time are not compatible"));
    }
    if options.increments && pairs.len() > 1 {
        return Err(Error::of("ERR INCR option supports a single increment-element pair"));
    }
    let pairs: Result<Vec<_>, Error> =
        pairs.iter().map(|[score, member]| Ok((double(score)?, member.clone()))).collect();
    add(ctx, &args[1], &pairs?, options)
}
