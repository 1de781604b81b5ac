//! CONFIG GET pattern [pattern ...]: the options whose names match, each once.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    glob::matches,
    options,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "config|get",
    group: Group::Server,
    since: "2.0.0",
    summary: "The values of options.",
    arity: -3,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let patterns: Vec<Vec<u8>> = args[2..].iter().map(|pattern| pattern.to_ascii_lowercase()).collect();
    let config = &ctx.node.config;
    let wanted =
        options::names().filter(|(name, _)| patterns.iter().any(|pattern| matches(pattern, name.as_bytes())));
    let pairs = wanted.map(|(name, option)| (Reply::bulk(name), Reply::bulk(option.get(config))));
    Ok(Reply::Map(pairs.collect()))
}
