//! CLIENT TRACKINGINFO: how keys are tracked for this connection.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Consent,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "client|trackinginfo",
    group: Group::Connection,
    since: "6.2.0",
    summary: "How keys are tracked for the connection.",
    arity: 2,
    flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    let session = ctx.session();
    let redirect = Reply::Integer(session.redirection());
    let mut flags = Vec::new();
    let mut prefixes = Vec::new();
    if let Some(tracking) = &session.tracking {
        let (is_exception, consent) = (tracking.exception, tracking.consent);
        let all = [
            (true, "on"),
            (tracking.prefixes.is_some(), "bcast"),
            (consent == Consent::OptIn, "optin"),
            (consent == Consent::OptIn && is_exception, "caching-yes"),
            (consent == Consent::OptOut, "optout"),
            (consent == Consent::OptOut && is_exception, "caching-no"),
            (tracking.no_loop, "noloop"),
        ];
        flags.extend(all.into_iter().filter_map(|(is, flag)| is.then_some(flag)));
        prefixes.extend(tracking.prefixes.iter().flatten().map(Reply::from));
    } else {
        flags.push("off");
    }
    if session.redirect_broken {
        flags.push("broken_redirect");
    }
    Ok(Reply::Map(vec![
        (Reply::bulk("flags"), Reply::Set(flags.into_iter().map(Reply::bulk).collect())),
        (Reply::bulk("redirect"), redirect),
        (Reply::bulk("prefixes"), Reply::Array(prefixes)),
    ]))
}
