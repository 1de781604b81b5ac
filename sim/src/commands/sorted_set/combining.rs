//! Union, intersection and difference of sorted sets and sets, to reply with, to store or to count.

use bytes::Bytes;

use super::{answering::members, storing::store};
use crate::{
    blob::Blob,
    commands::{Ctx, Error, Lookup, double, integer, ranged},
    generation::Generation,
    keyspace::{Dict, SortedSet, Value},
    resp::Reply,
};

/// A combination of the inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Union,
    Intersection,
    Difference,
}

/// The way to combine the scores of a member.
#[derive(Debug, Clone, Copy)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    fn apply(self, score: f64, other: f64) -> f64 {
        match self {
            // The sum of opposite infinities is 0.
            Aggregate::Sum => number(score + other),
            Aggregate::Min => score.min(other),
            Aggregate::Max => score.max(other),
        }
    }
}

/// Returns a score, or 0 for NaN.
fn number(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// An input: a sorted set, or a set in which every member has score 1.
#[derive(Clone, Copy)]
struct Input<'a> {
    value: Option<&'a Value>,
    weight: f64,
}

impl Input<'_> {
    fn len(&self) -> usize {
        match self.value {
            Some(Value::SortedSet(set)) => set.len(),
            Some(Value::Set(set)) => set.len(),
            _ => 0,
        }
    }

    fn score(&self, member: &[u8]) -> Option<f64> {
        let score = match self.value? {
            Value::SortedSet(set) => set.score(member)?,
            Value::Set(set) => set.contains(member).then_some(1.0)?,
            _ => return None,
        };
        // A NaN here makes the sum 0 as well.
        Some(self.weight * score)
    }

    /// Calls `visit` for all members with their scores, until it returns false.
    fn visit(&self, mut visit: impl FnMut(Blob, f64) -> bool) {
        match self.value {
            Some(Value::SortedSet(set)) => {
                let mut members = set.iter();
                members.all(|(score, member)| visit(member.clone(), number(self.weight * score)));
            }
            Some(Value::Set(set)) => {
                let score = number(self.weight);
                set.iter().all(|member| visit(member, score));
            }
            _ => {}
        }
    }
}

/// The keys, and the options of the combination.
struct Request<'a> {
    operation: Operation,
    keys: &'a [Bytes],
    weights: Vec<f64>,
    aggregate: Aggregate,
    with_scores: bool,
    limit: usize,
}

/// The use of the result, which decides the options of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Answer,
    Store,
    Count,
}

impl<'a> Request<'a> {
    /// Parses `numkeys key [key ...]` and the options. Checks the keys' types before the options.
    fn parse(
        ctx: &mut Ctx<'_>,
        name: &str,
        args: &'a [Bytes],
        operation: Operation,
        purpose: Purpose,
    ) -> Result<Request<'a>, Error> {
        let count = integer(&args[0])?;
        if count < 1 {
            let text = match ctx.node.config.generation {
                Generation::Redis62 => format!("ERR at least 1 input key is needed for {name}"),
                _ => format!("ERR at least 1 input key is needed for '{name}' command"),
            };
            return Err(Error(text.into()));
        }
        let words = usize::try_from(count).ok().and_then(|count| args[1..].split_at_checked(count));
        let (keys, mut words) = words.ok_or(Error::SYNTAX)?;
        for key in keys {
            if !matches!(
                ctx.lookup_read(key).map(|entry| &entry.value),
                None | Some(Value::SortedSet(_) | Value::Set(_))
            ) {
                return Err(Error::WRONG_TYPE);
            }
        }
        let mut request = Request {
            operation,
            keys,
            weights: vec![1.0; keys.len()],
            aggregate: Aggregate::Sum,
            with_scores: false,
            limit: 0,
        };
        let weighs = operation != Operation::Difference && purpose != Purpose::Count;
        while let [word, rest @ ..] = words {
            words = rest;
            match (word.to_ascii_lowercase().as_slice(), rest) {
                (b"weights", rest) if weighs && rest.len() >= keys.len() => {
                    let (weights, rest) = rest.split_at(keys.len());
                    let weight =
                        |text: &Bytes| double(text).map_err(|_| Error::of("ERR weight value is not a float"));
                    request.weights = weights.iter().map(weight).collect::<Result<_, _>>()?;
                    words = rest;
                }
                (b"aggregate", [how, rest @ ..]) if weighs => {
                    request.aggregate = match how.to_ascii_lowercase().as_slice() {
                        b"sum" => Aggregate::Sum,
                        b"min" => Aggregate::Min,
                        b"max" => Aggregate::Max,
                        _ => return Err(Error::SYNTAX),
                    };
                    words = rest;
                }
                (b"withscores", _) if purpose == Purpose::Answer => request.with_scores = true,
                (b"limit", [limit, rest @ ..]) if purpose == Purpose::Count => {
                    let limit = ranged(limit, 0, i64::MAX, Error::NEGATIVE_LIMIT)?;
                    request.limit = usize::try_from(limit).unwrap_or(usize::MAX);
                    words = rest;
                }
                _ => return Err(Error::SYNTAX),
            }
        }
        Ok(request)
    }

    fn inputs<'c>(&self, ctx: &'c mut Ctx<'_>) -> Vec<Input<'c>> {
        // Parsing the request has looked up the keys.
        let present: Vec<bool> =
            self.keys.iter().map(|key| ctx.lookup(key, Lookup::PASSIVE).is_some()).collect();
        let db = &ctx.node.dbs[ctx.db];
        let inputs = self.keys.iter().zip(&self.weights).zip(present);
        let mut inputs: Vec<Input<'_>> = inputs
            .map(|((key, &weight), present)| {
                let value = if present { db.get(key).map(|entry| &entry.value) } else { None };
                Input { value, weight }
            })
            .collect();
        if self.operation != Operation::Difference {
            // The smallest input has the fewest candidates. The order also decides the rounding of
            // sums.
            inputs.sort_by_key(Input::len);
        }
        inputs
    }

    /// Returns the distinct members of the result with their scores.
    fn combine(&self, ctx: &mut Ctx<'_>) -> Vec<(Blob, f64)> {
        let inputs = self.inputs(ctx);
        let (first, others) = inputs.split_first().expect("there is at least one key");
        let limit = if self.limit == 0 { usize::MAX } else { self.limit };
        let mut result = Vec::new();
        match self.operation {
            Operation::Union => {
                let mut scores = Dict::<f64>::default();
                for input in &inputs {
                    input.visit(|member, score| {
                        match scores.get_mut(&member) {
                            Some(old) => *old = self.aggregate.apply(*old, score),
                            None => {
                                scores.insert(member, score);
                            }
                        }
                        true
                    });
                }
                result.extend(scores.iter().map(|(member, &score)| (member.clone(), score)));
            }
            Operation::Intersection => first.visit(|member, score| {
                let common = others
                    .iter()
                    .try_fold(score, |score, input| Some(self.aggregate.apply(score, input.score(&member)?)));
                result.extend(common.map(|score| (member, score)));
                result.len() < limit
            }),
            Operation::Difference => first.visit(|member, score| {
                if !others.iter().any(|input| input.score(&member).is_some()) {
                    result.push((member, score));
                }
                true
            }),
        }
        result
    }

    fn combine_sorted(&self, ctx: &mut Ctx<'_>) -> SortedSet {
        SortedSet::large(self.combine(ctx))
    }
}

/// Runs ZUNION, ZINTER and ZDIFF: replies with the members of the result.
pub(super) fn answer(
    ctx: &mut Ctx<'_>,
    name: &str,
    args: &[Bytes],
    operation: Operation,
) -> Result<Reply, Error> {
    let request = Request::parse(ctx, name, &args[1..], operation, Purpose::Answer)?;
    let set = request.combine_sorted(ctx);
    Ok(members(set.iter(), request.with_scores))
}

/// Runs ZUNIONSTORE, ZINTERSTORE and ZDIFFSTORE: stores the result. `name` is also the event's
/// name.
pub(super) fn combine_and_store(
    ctx: &mut Ctx<'_>,
    name: &'static str,
    args: &[Bytes],
    operation: Operation,
) -> Result<Reply, Error> {
    let request = Request::parse(ctx, name, &args[2..], operation, Purpose::Store)?;
    let mut set = request.combine_sorted(ctx);
    set.compact(&ctx.node.config.keyspace.encodings);
    Ok(store(ctx, &args[1], set, name))
}

/// Runs ZINTERCARD: counts the members of the intersection.
pub(super) fn count_common(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let request = Request::parse(ctx, "zintercard", &args[1..], Operation::Intersection, Purpose::Count)?;
    Ok(request.combine(ctx).len().into())
}
