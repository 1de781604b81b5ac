//! AUTH [username] password: authenticates the connection.

use bytes::Bytes;

use crate::{
    acl::{self, Reason},
    commands::{
        Ctx, Error, Flags, Group, Keys, Origin, Spec,
        access::{Refusal, note},
    },
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "auth",
    group: Group::Connection,
    since: "1.0.0",
    summary: "Authenticates the connection.",
    arity: -2,
    flags: Flags::NOSCRIPT
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::FAST)
        .union(Flags::NO_AUTH)
        .union(Flags::ALLOW_BUSY),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let default = acl::DEFAULT;
    let (user, password) = match args {
        [_, password] => {
            if ctx.node.acl.user(&default).is_some_and(|user| user.nopass) {
                return Err(Error::of(
                    "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
                     configuration is correct?",
                ));
            }
            (&default, password)
        }
        [_, user, password] => (user, password),
        _ => return Err(Error::SYNTAX),
    };
    authenticate(ctx, &args[0], user, password)?;
    Ok(Reply::OK)
}

/// Lets the connection act as `user`. A refusal is logged with the command.
pub(super) fn authenticate(
    ctx: &mut Ctx<'_>,
    command: &Bytes,
    user: &Bytes,
    password: &[u8],
) -> Result<(), Error> {
    if !ctx.node.acl.authenticates(user, password) {
        let context = if ctx.origin == Origin::Exec { "multi" } else { "toplevel" };
        let (object, username) = (command.clone(), user.clone());
        note(ctx.node, ctx.env, ctx.conn, Refusal { reason: Reason::Auth, context, object, username });
        return Err(Error::WRONG_PASS);
    }
    let session = ctx.session();
    session.authenticated = true;
    session.user = user.clone();
    Ok(())
}
