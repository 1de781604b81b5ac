//! The commands of a Sentinel: its own ones, those that differ from other nodes, and the shared
//! ones.

mod info;
mod publish;
mod role;
#[expect(clippy::module_inception, reason = "the command SENTINEL has the name of its group")]
mod sentinel;
mod sentinel_ckquorum;
mod sentinel_config;
mod sentinel_debug;
mod sentinel_failover;
mod sentinel_flushconfig;
mod sentinel_get_master_addr_by_name;
mod sentinel_help;
mod sentinel_info_cache;
mod sentinel_is_master_down_by_addr;
mod sentinel_master;
mod sentinel_masters;
mod sentinel_monitor;
mod sentinel_myid;
mod sentinel_pending_scripts;
mod sentinel_remove;
mod sentinel_replicas;
mod sentinel_reset;
mod sentinel_sentinels;
mod sentinel_set;
mod sentinel_simulate_failure;
mod sentinel_slaves;

use bytes::Bytes;

use super::{Ctx, Error, Spec, dispatch};
use crate::{
    env::Env,
    generation::Generation,
    node::Node,
    resp::quotable,
    sentinel::{NAME_UNKNOWN, Sentinel},
};

/// Commands that only a Sentinel has, or that differ there, sorted by name.
pub const ALL: &[&Spec] = &[&info::SPEC, &publish::SPEC, &role::SPEC, &sentinel::SPEC];

/// Commands that a Sentinel shares with other nodes.
const SHARED: [&str; 11] = [
    "acl",
    "auth",
    "client",
    "command",
    "hello",
    "ping",
    "psubscribe",
    "punsubscribe",
    "shutdown",
    "subscribe",
    "unsubscribe",
];

/// Returns the names of the commands that a Sentinel shares with other nodes.
pub(super) fn shared() -> impl Iterator<Item = &'static str> {
    SHARED.into_iter()
}

/// Returns all commands of a Sentinel.
pub(super) fn known() -> impl Iterator<Item = &'static Spec> {
    let shared = SHARED.iter().filter_map(|name| {
        dispatch::find(Generation::default(), &[Bytes::from_static(name.as_bytes())]).ok()
    });
    ALL.iter().copied().chain(shared)
}

/// Error for a master that is not monitored.
const UNKNOWN: Error = Error::of(NAME_UNKNOWN);

/// Finds the command that `args` names on this node, which may be a Sentinel.
///
/// # Errors
/// The error reply for an unknown command.
pub fn find_for(node: &Node, args: &[Bytes]) -> Result<&'static Spec, Error> {
    match &node.sentinel {
        Some(_) => find(node.config.generation, args),
        None => dispatch::find_in(&node.config, args),
    }
}

fn find(generation: Generation, args: &[Bytes]) -> Result<&'static Spec, Error> {
    let name = args.first().map_or(&b""[..], |name| name);
    if let Some(spec) = ALL.iter().find(|spec| name.eq_ignore_ascii_case(spec.name.as_bytes())) {
        return dispatch::subcommand(generation, spec, args);
    }
    match SHARED.iter().any(|shared| name.eq_ignore_ascii_case(shared.as_bytes())) {
        true => dispatch::find(generation, args),
        false => Err(dispatch::unknown(generation, args)),
    }
}

/// Returns the Sentinel that runs the command.
fn sentinel<'a>(ctx: &'a mut Ctx<'_>) -> &'a mut Sentinel {
    ctx.node.sentinel.as_mut().expect("only a Sentinel knows these commands")
}

/// Runs `act` on the Sentinel, with the environment.
fn with<T>(ctx: &mut Ctx<'_>, act: impl FnOnce(&mut Sentinel, &mut Env) -> T) -> T {
    act(ctx.node.sentinel.as_mut().expect("only a Sentinel knows these commands"), ctx.env)
}

fn now(ctx: &Ctx<'_>) -> i64 {
    ctx.env.wall.as_millis()
}

/// Converts an argument to text.
fn text(arg: &[u8]) -> String {
    std::str::from_utf8(arg).map_or_else(|_| quotable(arg), str::to_owned)
}
