//! ACL LOG [count | RESET]: denied commands and failed authentications, latest first.

use bytes::Bytes;

use crate::{
    acl::Entry,
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "acl|log",
    group: Group::Server,
    since: "6.0.0",
    summary: "Lists denied commands and failed authentications.",
    arity: -2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

/// Default count.
const COUNT: usize = 10;

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let count = match args {
        [_, _] => COUNT,
        [_, _, word] if word.eq_ignore_ascii_case(b"reset") => {
            ctx.node.acl.log.clear();
            return Ok(Reply::OK);
        }
        [_, _, count] => usize::try_from(integer(count)?).unwrap_or(0),
        _ => return Err(Error::subcommand("acl", &args[1])),
    };
    let now_ms = ctx.env.wall.as_millis();
    let is_old = ctx.node.config.generation.is_before_7_2();
    let shown = ctx.node.acl.log.entries().take(count).map(|entry| show(entry, now_ms, is_old));
    Ok(Reply::Array(shown.collect()))
}

fn show(entry: &Entry, now_ms: i64, is_old: bool) -> Reply {
    let age = now_ms.saturating_sub(entry.at_ms) as f64 / 1000.0;
    let mut fields = vec![
        (Reply::bulk("count"), Reply::Integer(i64::try_from(entry.count).unwrap_or(i64::MAX))),
        (Reply::bulk("reason"), Reply::bulk(entry.reason.name())),
        (Reply::bulk("context"), Reply::bulk(entry.context)),
        (Reply::bulk("object"), Reply::from(&entry.object)),
        (Reply::bulk("username"), Reply::from(&entry.username)),
        (Reply::bulk("age-seconds"), Reply::Double(age)),
        (Reply::bulk("client-info"), Reply::from(&entry.client)),
    ];
    if !is_old {
        let id = i64::try_from(entry.id).unwrap_or(i64::MAX);
        fields.extend([
            (Reply::bulk("entry-id"), Reply::Integer(id)),
            (Reply::bulk("timestamp-created"), Reply::Integer(entry.since_ms)),
            (Reply::bulk("timestamp-last-updated"), Reply::Integer(entry.at_ms)),
        ]);
    }
    Reply::Map(fields)
}
