//! ACL DRYRUN name command [arg ...]: checks if a user may run a command, without running it.

use bytes::Bytes;

use crate::{
    commands::{
        Ctx, Error, Flags, Group, Keys, Spec,
        access::{self, Denied},
        find_for, printable,
    },
    generation::Feature,
    resp::{Reply, quoted},
};

pub(super) const SPEC: Spec = Spec {
    name: "acl|dryrun",
    group: Group::Server,
    since: "7.0.0",
    summary: "Whether a user may run a command.",
    arity: -4,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let text = |bytes: &Bytes| printable(bytes, usize::MAX);
    let Some(user) = ctx.node.acl.user(&args[2]) else {
        return Err(Error(format!("ERR User '{}' not found", text(&args[2])).into()));
    };
    let words = &args[3..];
    let Ok(spec) = find_for(ctx.node, words) else {
        return Err(Error(format!("ERR Command '{}' not found", text(&args[3])).into()));
    };
    if !spec.accepts(ctx.node.config.generation, words.len()) {
        return Err(Error::arity(spec.name));
    }
    let who = match ctx.node.config.generation.has(Feature::NamedDenials) {
        true => format!("User {}", text(&user.name)),
        false => "This user".to_owned(),
    };
    Ok(match access::check(user, ctx.node.config.generation, spec, words) {
        Ok(()) => Reply::OK,
        Err(denied) => Reply::bulk(quoted(&match denied {
            Denied::Command => format!("{who} has no permissions to run the '{}' command", spec.name),
            Denied::Key(at) => {
                format!("{who} has no permissions to access the '{}' key", text(&words[at]))
            }
            Denied::Channel(at) => {
                format!("{who} has no permissions to access the '{}' channel", text(&words[at]))
            }
        })),
    })
}
