//! CLIENT CACHING YES or NO: an exception to OPTIN or OPTOUT, for the next command.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Consent,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "client|caching",
    group: Group::Connection,
    since: "6.0.0",
    summary: "Chooses whether the next command is tracked.",
    arity: 3,
    flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let Some(tracking) = &mut ctx.session().tracking else {
        return Err(Error::of(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled",
        ));
    };
    let (word, consent) = match &args[2].to_ascii_lowercase()[..] {
        b"yes" => ("YES", Consent::OptIn),
        b"no" => ("NO", Consent::OptOut),
        _ => return Err(Error::SYNTAX),
    };
    if tracking.consent != consent {
        let mode = if consent == Consent::OptIn { "OPTIN" } else { "OPTOUT" };
        return Err(Error(
            format!("ERR CLIENT CACHING {word} is only valid when tracking is enabled in {mode} mode.")
                .into(),
        ));
    }
    tracking.exception = true;
    Ok(Reply::OK)
}
