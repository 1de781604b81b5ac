//! Commands that not every server has, and that traits and settings of a lock use.

use bytes::Bytes;
use lockstorm_sim::{
    commands::find,
    generation::{Feature, Generation},
};

use super::{
    Lock, Node, Scenario, Synced,
    limits::Wrong,
    traits::{Key, Pace, Release, Renewal},
};

/// Checks that the lock's keys and servers suit the commands that its traits name.
///
/// # Errors
/// The trait and a message.
pub(super) fn check(scenario: &Scenario, lock: &Lock) -> Result<(), (&'static str, String)> {
    let traits = lock.all_traits();
    for (key, is_used, command, compares_string) in [
        ("release", traits.release == Release::DelIfEq, "DELIFEQ", true),
        ("renewal", traits.renewal == Renewal::SetIfEq, "SET IFEQ", true),
        ("synced", traits.synced, "WAITAOF", false),
    ] {
        if is_used && compares_string && traits.key != Key::Token {
            return Err((key, format!("{command} compares a string, and the key of this lock is none")));
        }
        if let Some(message) = missing(scenario, lock, command).filter(|_| is_used) {
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

/// Checks that the lock's servers have the commands of its settings.
pub(super) fn check_settings(scenario: &Scenario, lock: &Lock) -> Result<(), Wrong> {
    match missing(scenario, lock, "WAITAOF") {
        Some(message) if lock.synced != Synced::None => Err(Wrong::at("synced", message)),
        _ => Ok(()),
    }
}

/// Returns the message for a node of the lock that does not have the command.
fn missing(scenario: &Scenario, lock: &Lock, command: &'static str) -> Option<String> {
    let is_here = |name: &str| {
        let mut nodes = lock.nodes.iter().flatten();
        lock.nodes.is_none() || nodes.any(|node| node.as_str() == name)
    };
    let lacks = |(name, node): &(&String, &Node)| is_here(name) && !has(node.generation(), command);
    let (node, _) = scenario.node.iter().find(lacks)?;
    Some(format!("{command} is no command of node {node}: give it server = \"valkey-9.1\""))
}

/// Returns true if servers of the generation have the command.
fn has(generation: Generation, command: &'static str) -> bool {
    match command {
        "SET IFEQ" => generation.has(Feature::SetIfEq),
        _ => find(generation, &[Bytes::from_static(command.as_bytes())]).is_ok(),
    }
}
