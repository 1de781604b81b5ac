//! SORT key [BY pattern] [LIMIT offset count] [GET pattern ...] [ASC | DESC] [ALPHA] [STORE
//! destination]: sorts the elements.

use bytes::Bytes;

use super::sorting::SortOptions;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, access},
    effect::Class,
    keyspace::{End, List, Value},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "sort",
    group: Group::Generic,
    since: "1.0.0",
    summary: "Sorts the elements of a list, set or sorted set, and may store them.",
    arity: -2,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::MOVABLEKEYS),
    keys: Keys::Found(keys),
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let may_follow = access::may_follow(ctx, &SPEC, args);
    let options = SortOptions::parse(ctx, args, true, may_follow)?;
    let sorted = options.sorted(ctx, &args[1])?;
    let Some(destination) = options.store else {
        return Ok(Reply::Array(sorted.into_iter().map(Reply::from).collect()));
    };
    let len = sorted.len();
    if sorted.is_empty() {
        if ctx.remove(&destination).is_some() {
            ctx.changed(&destination, Class::Generic, "del");
        }
        return Ok(Reply::Integer(0));
    }
    let mut list = List::default();
    sorted.into_iter().for_each(|element| list.push(End::Right, element.unwrap_or_default()));
    ctx.put(&destination, Value::List(list), None);
    ctx.changed_by(len, &destination, Class::List, "sortstore");
    Ok(len.into())
}

/// Returns the indices of the key and of the destination.
fn keys(args: &[Bytes]) -> Vec<usize> {
    let mut keys = vec![1];
    let mut at = 2;
    // The last STORE wins.
    let mut store = None;
    while at < args.len() {
        at += match args[at].to_ascii_lowercase().as_slice() {
            b"limit" => 3,
            b"by" | b"get" => 2,
            b"store" => {
                store = Some(at + 1).filter(|at| *at < args.len());
                2
            }
            _ => 1,
        };
    }
    keys.extend(store);
    keys
}
