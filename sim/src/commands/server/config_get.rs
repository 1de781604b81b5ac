//! CONFIG GET pattern [pattern ...]: the options whose names match, each once.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, wrong_arity},
    config::options::{self, Opt},
    generation::Generation,
    glob::matches_in_any_case,
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
    let config = &ctx.node.config;
    let generation = config.generation;
    let is_old = generation == Generation::Redis62;
    if is_old && args.len() > 3 {
        return Err(wrong_arity(generation, &SPEC, args));
    }
    let mut wanted: BTreeMap<String, (String, &Opt)> = BTreeMap::new();
    for pattern in &args[2..] {
        if pattern.iter().any(|byte| b"*?[".contains(byte)) {
            // 6.2 hides nothing.
            let shown = options::names_in(generation).filter(|(_, option)| is_old || !option.hidden);
            for (name, option) in shown.filter(|(name, _)| matches_in_any_case(pattern, name.as_bytes())) {
                wanted.entry(name.into()).or_insert((name.into(), option));
            }
        } else {
            // Return a name that is not a pattern as the client wrote it.
            let name = String::from_utf8_lossy(pattern).into_owned();
            if let Some(option) = options::find_in(generation, &name) {
                wanted.entry(name.to_lowercase()).or_insert((name, option));
            }
        }
    }
    let pairs =
        wanted.into_values().map(|(name, option)| (Reply::bulk(name), Reply::bulk(option.get(config))));
    Ok(Reply::Map(pairs.collect()))
}
