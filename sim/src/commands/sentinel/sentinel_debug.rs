//! SENTINEL DEBUG: shows or sets times that are otherwise fixed, such as the period of INFO.

use bytes::Bytes;

use super::{sentinel, text};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "sentinel|debug",
    group: Group::Sentinel,
    since: "2.8.4",
    summary: "Shows or sets the times that are fixed otherwise.",
    arity: -2,
    flags: Flags::ADMIN,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let mut words = &args[2..];
    if words.is_empty() {
        let times = sentinel(ctx).times();
        let shown = times.into_iter().map(|(name, ms)| (Reply::bulk(name), Reply::bulk(ms.to_string())));
        return Ok(Reply::Map(shown.collect()));
    }
    while let [name, value, rest @ ..] = words {
        let (name, value) = (text(name), text(value));
        let mut times = sentinel(ctx).times();
        let time = times.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(&name));
        let Some((_, time)) = time else {
            return Err(Error(
                format!("ERR Unknown option or number of arguments for SENTINEL DEBUG '{name}'").into(),
            ));
        };
        let Some(ms) = value.parse().ok().filter(|ms| *ms > 0) else {
            return Err(Error(format!("ERR Invalid argument '{value}' for SENTINEL DEBUG '{name}'").into()));
        };
        **time = ms;
        words = rest;
    }
    if let [name] = words {
        let name = text(name);
        return Err(Error(
            format!("ERR Unknown option or number of arguments for SENTINEL DEBUG '{name}'").into(),
        ));
    }
    Ok(Reply::OK)
}
