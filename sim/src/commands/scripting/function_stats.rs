//! FUNCTION STATS: the running function, and the number of libraries and functions.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "function|stats",
    group: Group::Scripting,
    since: "7.0.0",
    summary: "The running function, and how many there are.",
    arity: 2,
    flags: Flags::NOSCRIPT.union(Flags::ALLOW_BUSY),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    let running = match &ctx.node.busy {
        None => Reply::Null,
        Some(busy) => {
            let function = busy.function.as_ref().ok_or(Error::BUSY)?;
            let ran = ctx.env.monotonic.since(busy.since);
            let command = busy.command.iter().map(Reply::from);
            Reply::Map(vec![
                (Reply::bulk("name"), Reply::bulk(function)),
                (Reply::bulk("command"), Reply::Array(command.collect())),
                (Reply::bulk("duration_ms"), (ran.as_millis() as i64).into()),
            ])
        }
    };
    let libraries = &ctx.node.libraries;
    let lua = Reply::Map(vec![
        (Reply::bulk("libraries_count"), libraries.len().into()),
        (Reply::bulk("functions_count"), libraries.function_count().into()),
    ]);
    Ok(Reply::Map(vec![
        (Reply::bulk("running_script"), running),
        (Reply::bulk("engines"), Reply::Map(vec![(Reply::bulk("LUA"), lua)])),
    ]))
}
