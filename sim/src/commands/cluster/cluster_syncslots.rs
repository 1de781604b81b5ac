//! CLUSTER SYNCSLOTS message [argument ...]: a message between the two nodes of a slot migration.

use bytes::Bytes;

use super::{act, with};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Origin, Spec},
    node::clients::Role,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|syncslots",
    group: Group::Cluster,
    since: "valkey 9.0.0",
    summary: "A message between the two nodes of a slot migration.",
    arity: -3,
    flags: Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let conn = ctx.conn;
    if ctx.origin == Origin::Replication {
        with(ctx, |cluster, _, around| cluster.repeat_message(around, args))?;
        ctx.propagate_as(Vec::new());
        return Ok(Reply::Silence);
    }
    with(ctx, |_, _, _| ())?;
    match &args[2].to_ascii_uppercase()[..] {
        // Only a connection of its own can become the link of a migration.
        b"ESTABLISH" if ctx.origin != Origin::Client => Err(Error::SYNTAX),
        b"ESTABLISH" => {
            let begun = act(ctx, |cluster, _, around| cluster.begin_import(around, conn, args))?;
            ctx.session().role = Role::Source;
            Ok(begun)
        }
        // A source says which optional parts it knows. There are none here.
        b"CAPA" => Ok(Reply::Silence),
        b"FINISH" if is_finish(&args[3..]) => Err(Error::of("ERR No such slot migration job")),
        message @ (b"ACK" | b"SNAPSHOT-EOF" | b"PAUSED" | b"REQUEST-PAUSE" | b"REQUEST-FAILOVER"
        | b"FAILOVER-GRANTED") => {
            let message = String::from_utf8_lossy(message);
            let text =
                format!("ERR CLUSTER SYNCSLOTS {message} should only be used by slot migration clients");
            Err(Error(text.into()))
        }
        _ => Err(Error::SYNTAX),
    }
}

/// Returns true for the words of FINISH: a state and the name of a job, and perhaps a reason.
fn is_finish(words: &[Bytes]) -> bool {
    let (pairs, rest) = words.as_chunks::<2>();
    let has = |name: &[u8]| pairs.iter().any(|[word, _]| word.eq_ignore_ascii_case(name));
    let known = |word: &Bytes| {
        [&b"state"[..], b"name", b"message"].iter().any(|name| word.eq_ignore_ascii_case(name))
    };
    rest.is_empty() && pairs.iter().all(|[word, _]| known(word)) && has(b"state") && has(b"name")
}
