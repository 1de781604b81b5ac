//! Union, intersection and difference of sets, to reply with or to store.

use bytes::Bytes;

use crate::{
    blob::Blob,
    commands::{Ctx, Error},
    effect::Class,
    keyspace::{Dict, Encodings, Set, Value},
    resp::Reply,
};

/// A combination of sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Union,
    Intersection,
    Difference,
}

/// Returns the sets of `keys`, for reading; `None` for a missing key.
fn sets<'a>(ctx: &'a mut Ctx<'_>, keys: &[Bytes]) -> Result<Vec<Option<&'a Set>>, Error> {
    let mut present = Vec::with_capacity(keys.len());
    for key in keys {
        present.push(ctx.read::<Set>(key)?.is_some());
    }
    let db = &ctx.node.dbs[ctx.db];
    let present = keys.iter().zip(present);
    present.map(|(key, present)| Ok(if present { db.typed::<Set>(key)? } else { None })).collect()
}

/// Returns the members common to all sets, up to `limit`; 0 for no limit.
pub(super) fn intersect(ctx: &mut Ctx<'_>, keys: &[Bytes], limit: usize) -> Result<Vec<Blob>, Error> {
    let sets: Option<Vec<&Set>> = sets(ctx, keys)?.into_iter().collect();
    let Some(mut sets) = sets else { return Ok(Vec::new()) };
    // The smallest set has the fewest candidates.
    sets.sort_by_key(|set| set.len());
    let Some((first, others)) = sets.split_first() else { return Ok(Vec::new()) };
    let common = first.iter().filter(|member| others.iter().all(|set| set.contains(member)));
    Ok(common.take(if limit == 0 { usize::MAX } else { limit }).collect())
}

/// Distinct members of a combination.
#[derive(Debug, Default)]
struct Combined {
    members: Vec<Blob>,
    /// Members that were added and removed on the way: another member turns a set of integers into
    /// a table for good.
    passed: Vec<Blob>,
}

fn combine(ctx: &mut Ctx<'_>, operation: Operation, keys: &[Bytes]) -> Result<Combined, Error> {
    let members = match operation {
        Operation::Intersection => intersect(ctx, keys, 0)?,
        Operation::Union => {
            let mut all = Dict::default();
            for member in sets(ctx, keys)?.into_iter().flatten().flat_map(Set::iter) {
                all.insert(member, ());
            }
            all.iter().map(|(member, ())| member.clone()).collect()
        }
        Operation::Difference => {
            let sets = sets(ctx, keys)?;
            let Some((Some(first), others)) = sets.split_first() else { return Ok(Combined::default()) };
            let elsewhere = |member: &Blob| others.iter().flatten().any(|set| set.contains(member));
            let (passed, members): (Vec<Blob>, Vec<Blob>) = first.iter().partition(elsewhere);
            let passed = if is_by_removal(first, others) { passed } else { Vec::new() };
            return Ok(Combined { members, passed });
        }
    };
    Ok(Combined { members, passed: Vec::new() })
}

/// Returns true if a server computes the difference by removing the others' members from the first
/// set, and false if it looks each member of the first set up in the others. It chooses the way
/// that promises less work, and counts a lookup as half.
fn is_by_removal(first: &Set, others: &[Option<&Set>]) -> bool {
    let others = others.iter().flatten();
    let look_ups = first.len() * (1 + others.clone().count()) / 2;
    look_ups > first.len() + others.map(|set| set.len()).sum::<usize>()
}

/// Replies with the combination of `keys`.
pub(super) fn answer(ctx: &mut Ctx<'_>, operation: Operation, keys: &[Bytes]) -> Result<Reply, Error> {
    let Combined { members, .. } = combine(ctx, operation, keys)?;
    let mut set = Set::default();
    // Use a set, so that integers come out in their order, as from a server that builds the result
    // as a set.
    let unlimited = Encodings { set_integers_max: usize::MAX, ..ctx.node.config.keyspace.encodings };
    members.into_iter().for_each(|member| {
        set.insert(member, &unlimited);
    });
    Ok(Reply::Set(set.iter().map(Reply::from).collect()))
}

/// Stores the combination of `keys` at `target`, whatever it held, and replies with the number of
/// members. Without members, removes the target.
pub(super) fn store(
    ctx: &mut Ctx<'_>,
    operation: Operation,
    target: &Bytes,
    keys: &[Bytes],
) -> Result<Reply, Error> {
    let Combined { members, passed } = combine(ctx, operation, keys)?;
    let len = members.len();
    if members.is_empty() {
        if ctx.remove(target).is_some() {
            if !matches!(operation, Operation::Intersection) {
                ctx.replied();
            }
            ctx.changed(target, Class::Generic, "del");
        }
        return Ok(Reply::Integer(0));
    }
    let encodings = ctx.node.config.keyspace.encodings;
    let mut set = Set::default();
    passed.iter().cloned().chain(members).for_each(|member| {
        set.insert(member, &encodings);
    });
    passed.iter().for_each(|member| {
        set.remove(member);
    });
    ctx.put(target, Value::Set(set), None);
    let event = match operation {
        Operation::Union => "sunionstore",
        Operation::Intersection => "sinterstore",
        Operation::Difference => "sdiffstore",
    };
    ctx.replied();
    ctx.changed(target, Class::Set, event);
    Ok(len.into())
}
