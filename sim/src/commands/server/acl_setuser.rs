//! ACL SETUSER name [rule ...]: creates or changes a user; applies all rules or none.

use bytes::Bytes;

use crate::{
    acl::User,
    commands::{Ctx, Error, Flags, Group, Keys, Spec, access, printable},
    event::ConnId,
    glob::matches,
    node::clients::{Role, Session},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "acl|setuser",
    group: Group::Server,
    since: "6.0.0",
    summary: "Creates or changes a user.",
    arity: -3,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let name = &args[2];
    if access::has_spaces(name) {
        return Err(Error::of("ERR Usernames can't contain spaces or null characters"));
    }
    let (table, all_channels) = (access::Table::of(ctx.node), ctx.node.config.security.acl_pubsub_default);
    let rules = access::merge_selectors(&args[3..], table).map_err(|first| {
        let first = printable(&first, usize::MAX);
        Error(format!("ERR Unmatched parenthesis in acl selector starting at '{first}'.").into())
    })?;
    let before = ctx.node.acl.user(name).cloned();
    let mut user = before.clone().unwrap_or_else(|| User::new(name.clone(), all_channels));
    for rule in rules {
        access::apply(&mut user, &rule, table, all_channels).map_err(|wrong| {
            let rule = printable(&rule, usize::MAX);
            Error(format!("ERR Error in ACL SETUSER modifier '{rule}': {wrong}").into())
        })?;
    }
    if let Some(before) = before {
        close_subscribers(ctx, &before, &user);
    }
    ctx.node.acl.put(user);
    Ok(Reply::OK)
}

/// Closes the connections of a user with subscriptions that it is no longer permitted.
fn close_subscribers(ctx: &mut Ctx<'_>, before: &User, after: &User) {
    let Some(left) = after.channels_left(before) else { return };
    let listens_on = |session: &&Session| {
        session.is_subscriber() && session.user == before.name && session.role == Role::Client
    };
    let kept = |session: &Session| {
        session.patterns.iter().all(|pattern| left.contains(&pattern))
            && session
                .channels
                .iter()
                .chain(session.shards.iter())
                .all(|channel| left.iter().any(|pattern| matches(pattern, channel)))
    };
    let sessions = ctx.node.clients.sessions.iter().filter(listens_on).filter(|session| !kept(session));
    for conn in sessions.map(|session| session.id).collect::<Vec<ConnId>>() {
        if conn == ctx.conn {
            ctx.session().quits = true;
        } else {
            ctx.node.clients.kill(conn);
        }
    }
}
