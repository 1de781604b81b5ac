//! LATENCY HISTOGRAM [command ...]: how many calls took how long, by doubling bounds, of all commands or of those named.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, find},
    latency::Histogram,
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
        let Ok(spec) = find(std::slice::from_ref(name)).or_else(|_| find_sub(name)) else { continue };
        called(spec.name, &mut out);
        spec.subcommands.iter().for_each(|sub| called(sub.name, &mut out));
    }
    Ok(Reply::Map(out))
}

/// The subcommand that is named with a bar, as `config|get`.
fn find_sub(name: &Bytes) -> Result<&'static Spec, Error> {
    let words: Vec<Bytes> = name.splitn(2, |byte| *byte == b'|').map(Bytes::copy_from_slice).collect();
    find(&words).and_then(|spec| if spec.name.contains('|') { Ok(spec) } else { Err(Error::SYNTAX) })
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
