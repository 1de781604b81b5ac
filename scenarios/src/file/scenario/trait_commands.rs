//! Commands that not every server has, and that traits of a lock use.

use bytes::Bytes;
use lockstorm_sim::{
    commands::find,
    generation::{Feature, Generation},
};

use super::{
    Lock, Node, Scenario,
    traits::{Key, Pace, Release, Renewal},
};

/// Checks that the lock's keys and servers suit the commands that its traits name.
///
/// # Errors
/// The trait and a message.
pub(super) fn check(scenario: &Scenario, lock: &Lock) -> Result<(), (&'static str, String)> {
    let traits = lock.all_traits();
    let is_here = |name: &str| {
        let mut nodes = lock.nodes.iter().flatten();
        lock.nodes.is_none() || nodes.any(|node| node.as_str() == name)
    };
    for (key, is_used, command, compares_string) in [
        ("release", traits.release == Release::DelIfEq, "DELIFEQ", true),
        ("renewal", traits.renewal == Renewal::SetIfEq, "SET IFEQ", true),
        ("synced", traits.synced, "WAITAOF", false),
    ] {
        if is_used && compares_string && traits.key != Key::Token {
            return Err((key, format!("{command} compares a string, and the key of this lock is none")));
        }
        let lacks = |(name, node): &(&String, &Node)| is_here(name) && !has(node.generation(), command);
        if let Some((node, _)) = scenario.node.iter().find(|node| is_used && lacks(node)) {
            let message = format!("{command} is no command of node {node}: give it server = \"valkey-9.1\"");
            return Err((key, message));
        }
    }
    let waits = matches!(traits.pace, Pace::Message | Pace::MessageWithoutRecheck);
    if traits.release == Release::DelIfEq && waits {
        let message = "DELIFEQ publishes no message, for which waiters of this lock wait";
        return Err(("release", message.to_owned()));
    }
    Ok(())
}

/// Returns true if servers of the generation have the command.
fn has(generation: Generation, command: &'static str) -> bool {
    match command {
        "SET IFEQ" => generation.has(Feature::SetIfEq),
        _ => find(generation, &[Bytes::from_static(command.as_bytes())]).is_ok(),
    }
}
