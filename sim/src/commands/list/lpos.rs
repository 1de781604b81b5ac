//! LPOS key element [RANK rank] [COUNT count] [MAXLEN len]: finds the indices of equal elements.

use bytes::Bytes;

use crate::{
    blob::Blob,
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer, ranged},
    generation::Generation,
    keyspace::List,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "lpos",
    group: Group::List,
    since: "6.0.6",
    summary: "The indices of equal elements of a list.",
    arity: -3,
    flags: Flags::READONLY,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

struct Options {
    /// Number of the first match to return; negative from the tail.
    rank: i64,
    /// Number of matches to return; 0 for all. Without COUNT the reply is a single index.
    count: Option<i64>,
    /// Number of elements to compare; 0 for all.
    len_max: i64,
}

/// The errors for a rank of 0, which Redis 6.2 explains less.
const NO_RANK: Error = Error::of(
    "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from \
     the end of the list",
);
const NO_RANK_62: Error =
    Error::of("ERR RANK can't be zero: use 1 to start from the first match, 2 from the second, ...");

impl Options {
    fn parse(words: &[Bytes], generation: Generation) -> Result<Options, Error> {
        let mut options = Options { rank: 1, count: None, len_max: 0 };
        let (pairs, rest) = words.as_chunks::<2>();
        for [option, value] in pairs {
            match option.to_ascii_lowercase().as_slice() {
                b"rank" => {
                    options.rank = integer(value)?;
                    if options.rank == i64::MIN && !generation.is_before_7_2() {
                        return Err(Error::NOT_NEGATABLE);
                    }
                    if options.rank == 0 {
                        return Err(match generation {
                            Generation::Redis62 => NO_RANK_62,
                            _ => NO_RANK,
                        });
                    }
                }
                b"count" => {
                    let negative = Error::of("ERR COUNT can't be negative");
                    options.count = Some(ranged(value, 0, i64::MAX, negative)?);
                }
                b"maxlen" => {
                    let negative = Error::of("ERR MAXLEN can't be negative");
                    options.len_max = ranged(value, 0, i64::MAX, negative)?;
                }
                _ => return Err(Error::SYNTAX),
            }
        }
        if rest.is_empty() { Ok(options) } else { Err(Error::SYNTAX) }
    }
}

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let options = Options::parse(&args[3..], ctx.node.config.generation)?;
    let all_if_zero = |n: i64| if n == 0 { usize::MAX } else { usize::try_from(n).unwrap_or(usize::MAX) };
    let len_max = all_if_zero(options.len_max);
    let (skipped, counted) = match options.rank.checked_abs() {
        Some(rank) => (usize::try_from(rank - 1).unwrap_or(usize::MAX), options.count),
        // A server cannot negate the smallest integer: the rank stays negative, every match is
        // beyond it, and none reaches a count.
        None => (0, options.count.map(|_| 0)),
    };
    let wanted = counted.map_or(1, all_if_zero);
    let mut found: Vec<Reply> = Vec::new();
    if let Some(list) = ctx.read::<List>(&args[1])? {
        let is_match = |(_, element): &(usize, &Blob)| **element == args[2];
        let elements = list.iter().enumerate();
        if options.rank > 0 {
            let matches = elements.take(len_max).filter(is_match).skip(skipped).take(wanted);
            found.extend(matches.map(|(index, _)| index.into()));
        } else {
            let matches = elements.rev().take(len_max).filter(is_match).skip(skipped).take(wanted);
            found.extend(matches.map(|(index, _)| index.into()));
        }
    }
    Ok(match options.count {
        Some(_) => Reply::Array(found),
        None => found.pop().unwrap_or(Reply::Null),
    })
}
