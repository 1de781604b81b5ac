//! ACL GETUSER name: the permissions of a user; null for an unknown one.

use bytes::Bytes;

use crate::{
    acl::Selector,
    commands::{Ctx, Error, Flags, Group, Keys, Spec, access},
    generation::Generation,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "acl|getuser",
    group: Group::Server,
    since: "6.0.0",
    summary: "Describes a user.",
    arity: 3,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let Some(user) = ctx.node.acl.user(&args[2]) else { return Ok(Reply::Null) };
    let table = access::Table::of(ctx.node);
    let mut flags: Vec<Reply> = access::flags(user, table).into_iter().map(Reply::bulk).collect();
    let is_old = ctx.node.config.generation == Generation::Redis62;
    if is_old {
        // Behind `on` or `off`.
        let Selector { all_keys, all_channels, all_commands, .. } = &user.root;
        let all = [(all_keys, "allkeys"), (all_channels, "allchannels"), (all_commands, "allcommands")];
        flags.splice(1..1, all.into_iter().filter(|(is, _)| **is).map(|(_, flag)| Reply::bulk(flag)));
    }
    let mut about = vec![
        (Reply::bulk("flags"), Reply::Set(flags)),
        (Reply::bulk("passwords"), Reply::Array(user.passwords.iter().map(Reply::bulk).collect())),
    ];
    if is_old {
        about.extend(permissions_of_old(&user.root, table));
        return Ok(Reply::Map(about));
    }
    let has_databases = ctx.node.config.generation == Generation::Valkey91;
    let permissions = |selector: &Selector| {
        let mut permissions = permissions(selector, table);
        if has_databases {
            permissions.push((Reply::bulk("databases"), Reply::bulk("alldbs")));
        }
        permissions
    };
    about.extend(permissions(&user.root));
    let selectors = user.selectors.iter().map(|selector| Reply::Map(permissions(selector))).collect();
    about.push((Reply::bulk("selectors"), Reply::Array(selectors)));
    Ok(Reply::Map(about))
}

/// Returns the permissions as Redis 6.2 lists them.
fn permissions_of_old(root: &Selector, table: access::Table) -> Vec<(Reply, Reply)> {
    let listed =
        |all: bool, patterns: Vec<Reply>| Reply::Array(if all { vec![Reply::bulk("*")] } else { patterns });
    let keys = root.keys.iter().map(|key| key.pattern.clone().into()).collect();
    let channels = root.channels.iter().map(|channel| channel.clone().into()).collect();
    vec![
        (Reply::bulk("commands"), Reply::bulk(access::rules_of_commands(root, table))),
        (Reply::bulk("keys"), listed(root.all_keys, keys)),
        (Reply::bulk("channels"), listed(root.all_channels, channels)),
    ]
}

fn permissions(selector: &Selector, table: access::Table) -> Vec<(Reply, Reply)> {
    vec![
        (Reply::bulk("commands"), Reply::bulk(access::rules_of_commands(selector, table))),
        (Reply::bulk("keys"), Reply::bulk(access::rules_of_keys(selector))),
        (Reply::bulk("channels"), Reply::bulk(access::rules_of_channels(selector))),
    ]
}
