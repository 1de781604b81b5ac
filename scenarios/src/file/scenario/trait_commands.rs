//! Commands that not every server has, and that traits of a lock use.

use bytes::Bytes;
use lockstorm_sim::{
    commands::find,
    generation::{Feature, Generation},
};

use super::{
    Lock, Scenario,
    traits::{Key, Pace, Release, Renewal},
};

/// Checks that the lock's keys and servers suit the commands that its traits name.
///
/// # Errors
/// The trait and a message.
pub(super) fn check(scenario: &Scenario, lock: &Lock) -> Result<(), (&'static str, String)> {
    let traits = lock.all_traits();
    let on_del = traits.release == Release::DelIfEq;
    let on_set = traits.renewal == Renewal::SetIfEq;
    let is_here = |name: &str| {
        let mut nodes = lock.nodes.iter().flatten();
        lock.nodes.is_none() || nodes.any(|node| node.as_str() == name)
    };
    let has_delifeq = |of: Generation| find(of, &[Bytes::from_static(b"delifeq")]).is_ok();
    for (key, is_used, what, has) in [
        ("release", on_del, "DELIFEQ", &has_delifeq as &dyn Fn(Generation) -> bool),
        ("renewal", on_set, "SET IFEQ", &|of: Generation| of.has(Feature::SetIfEq)),
    ] {
        if is_used && traits.key != Key::Token {
            return Err((key, format!("{what} compares a string, and the key of this lock is none")));
        }
        if let Some((node, _)) =
            scenario.node.iter().find(|(name, node)| is_used && is_here(name) && !has(node.generation()))
        {
            let message = format!("{what} is no command of node {node}: give it server = \"valkey-9.1\"");
            return Err((key, message));
        }
    }
    let waits = matches!(traits.pace, Pace::Message | Pace::MessageWithoutRecheck);
    if on_del && waits {
        return Err((
            "release",
            "DELIFEQ publishes no message, for which waiters of this lock wait".to_owned(),
        ));
    }
    Ok(())
}
