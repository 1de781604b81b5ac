//! AUTH [username] password: authenticates the connection.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
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
    let (user, password) = match args {
        [_, password] => {
            if ctx.node.config.requirepass.is_empty() {
                return Err(Error::of(
                    "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
                     configuration is correct?",
                ));
            }
            (&b"default"[..], password)
        }
        [_, user, password] => (&user[..], password),
        _ => return Err(Error::SYNTAX),
    };
    authenticate(ctx, user, password)?;
    Ok(Reply::OK)
}

/// Lets the connection act as `user`. There is only `default`, whose password is `requirepass`, or any if that is empty.
pub(super) fn authenticate(ctx: &mut Ctx<'_>, user: &[u8], password: &[u8]) -> Result<(), Error> {
    let wanted = ctx.node.config.requirepass.as_bytes();
    if user != b"default" || !(wanted.is_empty() || wanted == password) {
        return Err(Error::WRONG_PASS);
    }
    let session = ctx.session();
    session.authenticated = true;
    session.user = "default".into();
    Ok(())
}
