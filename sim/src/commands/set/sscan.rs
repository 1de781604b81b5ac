//! SSCAN key cursor [MATCH pattern] [COUNT count]: iterates over the members of a set in steps.

use bytes::Bytes;

use crate::{
    commands::{
        Ctx, Error, Flags, Group, Keys, Spec,
        scan::{self, ScanOptions},
    },
    keyspace::Set,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "sscan",
    group: Group::Set,
    since: "2.8.0",
    summary: "Iterates over the members of a set step by step.",
    arity: -3,
    flags: Flags::READONLY,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let cursor = scan::cursor(&args[2], ctx.node.config.generation)?;
    let Some(set) = ctx.read::<Set>(&args[1])? else { return Ok(scan::reply(0, Vec::new())) };
    let options = ScanOptions::parse(&args[3..])?;
    let (next, members) =
        options.sweep(cursor, |cursor, found| set.scan(cursor, |member| found.push(member)));
    let wanted = members.into_iter().filter(|member| options.wants(member));
    Ok(scan::reply(next, wanted.map(Reply::from).collect()))
}
