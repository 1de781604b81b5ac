//! SENTINEL SIMULATE-FAILURE: ends the process at a chosen point of the next failover.

use bytes::Bytes;

use super::sentinel;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "sentinel|simulate-failure",
    group: Group::Sentinel,
    since: "2.8.4",
    summary: "Ends the process at a point of the next failover.",
    arity: -3,
    flags: Flags::ADMIN,
    keys: Keys::None,
    subcommands: &[],
    run,
};

/// Cancels the earlier request, even if a word is unknown; the words before it still apply.
fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (mut after_election, mut after_promotion) = (false, false);
    sentinel(ctx).crash_at(after_election, after_promotion);
    for word in &args[2..] {
        match &word.to_ascii_lowercase()[..] {
            b"crash-after-election" => after_election = true,
            b"crash-after-promotion" => after_promotion = true,
            b"help" => {
                let known = ["crash-after-election", "crash-after-promotion"];
                return Ok(Reply::Array(known.map(Reply::bulk).into()));
            }
            _ => return Err(Error::of("ERR Unknown failure simulation specified")),
        }
        sentinel(ctx).crash_at(after_election, after_promotion);
    }
    Ok(Reply::OK)
}
