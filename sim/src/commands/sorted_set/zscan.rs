//! ZSCAN key cursor [MATCH pattern] [COUNT count]: iterates over the members of a sorted set and
//! their scores in steps.

use bytes::Bytes;

use crate::{
    commands::{
        Ctx, Error, Flags, Group, Keys, Spec,
        scan::{self, ScanOptions},
    },
    generation::Feature,
    keyspace::SortedSet,
    resp::{Reply, format_double, short_double},
};

pub(super) const SPEC: Spec = Spec {
    name: "zscan",
    group: Group::SortedSet,
    since: "2.8.0",
    summary: "Iterates over the members of a sorted set step by step.",
    arity: -3,
    flags: Flags::READONLY,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let cursor = scan::cursor(&args[2], ctx.node.config.generation)?;
    let Some(set) = ctx.read::<SortedSet>(&args[1])? else { return Ok(scan::reply(0, Vec::new())) };
    let options = ScanOptions::parse(&args[3..])?;
    let (next, members) = options
        .sweep(cursor, |cursor, found| set.scan(cursor, |member, score| found.push((member.clone(), score))));
    // The compact encoding stores whole scores as integers, and loses that they were doubles.
    let compact = set.is_compact();
    let is_whole = |score: f64| score.fract() == 0.0 && score.abs() < (1u64 << 62) as f64;
    let has_short = ctx.node.config.generation.has(Feature::ShortDoubles);
    let text = |score| match compact && is_whole(score) {
        true => (score as i64).to_string(),
        false if compact && has_short => short_double(score),
        false => format_double(score),
    };
    // Scores are text in both protocols.
    let wanted = members.into_iter().filter(|(member, _)| options.wants(member));
    let replies = wanted.flat_map(|(member, score)| [Reply::from(member), Reply::bulk(text(score))]);
    Ok(scan::reply(next, replies.collect()))
}
