//! LATENCY HISTOGRAM [command ...]: counts calls by duration, in buckets with doubling bounds, for
//! all commands or for those named.

use bytes::Bytes;

use super::catalogue::by_full_name;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    node::latency::Histogram,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "latency|histogram",
    group: Group::Server,
    since: "7.0.0",
    summary: "How long commands took.",
    arity: -2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let called = |name: &str, out: &mut Vec<(Reply, Reply)>| {
        let calls = ctx.node.stats.calls.get(name);
        if let Some(latencies) = calls.and_then(|calls| calls.latencies.as_ref()) {
            out.push((Reply::bulk(name), show(latencies)));
        }
    };
    let mut out = Vec::new();
    if args.len() == 2 {
        ctx.node.stats.by_command().for_each(|(name, _)| called(name, &mut out));
    }
    for name in &args[2..] {
        let Some(spec) = by_full_name(ctx.node, name) else { continue };
        called(spec.name, &mut out);
        spec.subcommands.iter().for_each(|sub| called(sub.name, &mut out));
    }
    Ok(Reply::Map(out))
}

fn show(latencies: &Histogram) -> Reply {
    let bounds = latencies.cumulative().into_iter().map(|(ns, calls)| {
        let us = i64::try_from(ns / 1000).unwrap_or(i64::MAX);
        (Reply::Integer(us), Reply::Integer(calls as i64))
    });
    Reply::Map(vec![
        (Reply::bulk("calls"), Reply::Integer(latencies.total() as i64)),
        (Reply::bulk("histogram_usec"), Reply::Map(bounds.collect())),
    ])
}
