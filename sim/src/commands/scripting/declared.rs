//! Flags that a script declares, as the flags of the command that runs it.

use bytes::Bytes;

use crate::{
    commands::{Flags, Spec},
    generation::Generation,
    node::Node,
    script,
};

/// Returns the flags of a command. Flags from a script's first line, or from a function's
/// registration, replace them.
pub fn declared(node: &Node, spec: &Spec, args: &[Bytes]) -> Flags {
    let declared = match (spec.name, args.get(1)) {
        _ if node.config.generation == Generation::Redis62 => None,
        ("eval" | "eval_ro", Some(body)) => script::declared(body),
        ("evalsha" | "evalsha_ro", Some(sha)) => node.scripts.script(sha).map(|script| script.flags),
        ("fcall" | "fcall_ro", Some(name)) => node.libraries.function(name).map(|function| function.flags),
        _ => None,
    };
    let Some(declared) = declared.filter(|declared| !declared.contains(script::Flags::COMPAT)) else {
        return spec.flags_in(node.config.generation);
    };
    let mut flags = spec.flags - (Flags::STALE | Flags::DENYOOM | Flags::WRITE | Flags::MAY_REPLICATE);
    let writes = !declared.contains(script::Flags::NO_WRITES);
    flags.set(Flags::WRITE, writes);
    flags.set(Flags::DENYOOM, writes && !declared.contains(script::Flags::ALLOW_OOM));
    flags.set(Flags::STALE, declared.contains(script::Flags::ALLOW_STALE));
    flags
}
