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
    let flags = access::flags(user, table).into_iter().map(Reply::bulk).collect();
    let mut about = vec![
        (Reply::bulk("flags"), Reply::Set(flags)),
        (Reply::bulk("passwords"), Reply::Array(user.passwords.iter().map(Reply::bulk).collect())),
    ];
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

fn permissions(selector: &Selector, table: access::Table) -> Vec<(Reply, Reply)> {
    vec![
        (Reply::bulk("commands"), Reply::bulk(access::rules_of_commands(selector, table))),
        (Reply::bulk("keys"), Reply::bulk(access::rules_of_keys(selector))),
        (Reply::bulk("channels"), Reply::bulk(access::rules_of_channels(selector))),
    ]
}
