//! COMMAND LIST [FILTERBY MODULE | ACLCAT | PATTERN ...]: the names of commands and subcommands.

use bytes::Bytes;

use super::catalogue::all;
use crate::{
    commands::{Categories, Ctx, Error, Flags, Group, Keys, Spec},
    glob::matches_in_any_case,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "command|list",
    group: Group::Server,
    since: "7.0.0",
    summary: "The names of the commands.",
    arity: -2,
    flags: Flags::LOADING.union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let wanted: Box<dyn Fn(&&'static Spec) -> bool + '_> = match args {
        [_, _] => Box::new(|_| true),
        [_, _, filter, by, value] if filter.eq_ignore_ascii_case(b"filterby") => {
            match &by.to_ascii_lowercase()[..] {
                // No modules exist, so no command belongs to one.
                b"module" => Box::new(|_| false),
                b"aclcat" => {
                    let wanted = Categories::named(value).unwrap_or(Categories::empty());
                    Box::new(move |spec| Categories::of(spec).intersects(wanted))
                }
                b"pattern" => Box::new(|spec| matches_in_any_case(value, spec.name.as_bytes())),
                _ => return Err(Error::SYNTAX),
            }
        }
        _ => return Err(Error::SYNTAX),
    };
    let generation = ctx.node.config.generation;
    let names = all(ctx.node).flat_map(|spec| [spec].into_iter().chain(spec.subcommands_in(generation)));
    Ok(Reply::Array(names.filter(|spec| wanted(spec)).map(|spec| Reply::bulk(spec.name)).collect()))
}
