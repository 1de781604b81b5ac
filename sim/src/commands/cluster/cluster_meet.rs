//! CLUSTER MEET ip port [bus port]: connects to another node, and to the nodes that it knows.

use bytes::Bytes;

use super::{act, with};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|meet",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Introduces another node.",
    arity: -4,
    flags: Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    with(ctx, |_, _, _| ())?;
    if args.len() > 5 {
        return Err(Error::subcommand("CLUSTER", &args[1]));
    }
    let what_of = if ctx.node.config.generation.is_before_7_2() { "TCP " } else { "" };
    let number = |word: &Bytes, what: &str| {
        let text = String::from_utf8_lossy(word).into_owned();
        integer(word).map_err(|_| Error(format!("ERR Invalid {what_of}{what} port specified: {text}").into()))
    };
    let port = number(&args[3], "base")?;
    let bus_port = args.get(4).map_or(Ok(port.saturating_add(10_000)), |word| number(word, "bus"))?;
    act(ctx, |cluster, env, around| cluster.meet(env, around, &args[2], port, bus_port))
}
