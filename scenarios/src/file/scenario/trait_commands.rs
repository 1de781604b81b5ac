//! Commands that not every server has, and that traits and settings of a lock use.

use bytes::Bytes;
use lockstorm_sim::{
    commands::find,
    generation::{Feature, Generation},
};

use super::{
    Lock, Node, Scenario, Synced,
    limits::Wrong,
    traits::{Fencing, Grant, Key, LeaseOn, Pace, Release, Renewal, Replicas, Traits},
};

/// Checks that the lock's keys and servers suit the commands that its traits name.
///
/// # Errors
/// The trait and a message.
pub(super) fn check(scenario: &Scenario, lock: &Lock) -> Result<(), (&'static str, String)> {
    let traits = lock.all_traits();
    let waits_in_script = traits.replicas == Replicas::InScript;
    for (key, is_used, command, compares_string) in [
        ("release", traits.release == Release::DelIfEq, "DELIFEQ", true),
        ("renewal", traits.renewal == Renewal::SetIfEq, "SET IFEQ", true),
        ("synced", traits.synced, "WAITAOF", false),
        ("replicas", waits_in_script, "WAIT in a script", false),
        ("lease", traits.lease == LeaseOn::Field, "HSETEX", false),
    ] {
        if is_used && compares_string && traits.key != Key::Token {
            return Err((key, format!("{command} compares a string, and the key of this lock is none")));
        }
        // An older replica takes what its master sends. Its own commands fail once it is promoted.
        let grants = |node: &Node| key != "lease" || node.replica_of.is_none();
        if let Some(message) = missing(scenario, lock, command, grants).filter(|_| is_used) {
            return Err((key, message));
        }
    }
    let waits = matches!(traits.pace, Pace::Message | Pace::MessageWithoutRecheck);
    if traits.release == Release::DelIfEq && waits {
        let message = "DELIFEQ publishes no message, for which waiters of this lock wait";
        return Err(("release", message.to_owned()));
    }
    if let Some((key, only)) = without_form(&traits) {
        return Err((key, format!("this lock has no such form: {only}")));
    }
    Ok(())
}

/// Checks that the lock's servers have the commands of its settings.
pub(super) fn check_settings(scenario: &Scenario, lock: &Lock) -> Result<(), Wrong> {
    match missing(scenario, lock, "WAITAOF", |_| true) {
        Some(message) if lock.synced != Synced::None => Err(Wrong::at("synced", message)),
        _ => Ok(()),
    }
}

/// Returns the message for one of these nodes of the lock that does not have the command.
fn missing(
    scenario: &Scenario,
    lock: &Lock,
    command: &'static str,
    is_asked: impl Fn(&Node) -> bool,
) -> Option<String> {
    let is_here = |name: &str| {
        let mut nodes = lock.nodes.iter().flatten();
        lock.nodes.is_none() || nodes.any(|node| node.as_str() == name)
    };
    let lacks =
        |(name, node): &(&String, &Node)| is_here(name) && is_asked(node) && !has(node.generation(), command);
    let (node, _) = scenario.node.iter().find(lacks)?;
    Some(format!("{command} is no command of node {node}: give it server = \"valkey-9.1\""))
}

/// Returns a trait that the model cannot combine with the others, and the traits that it needs.
fn without_form(traits: &Traits) -> Option<(&'static str, &'static str)> {
    let is_plain = traits.key == Key::Token && traits.fence != Fencing::WithGrant;
    let is_checked = matches!(traits.grant, Grant::Checked);
    if traits.grant == Grant::AfterWork && !is_plain {
        return Some(("grant", "it needs key = \"token\", and a fence apart from the grant"));
    }
    if traits.replicas == Replicas::InScript && !(is_plain && is_checked) {
        return Some((
            "replicas",
            "it needs key = \"token\", grant = \"checked\", and a fence apart from the grant",
        ));
    }
    if traits.lease == LeaseOn::Key {
        return None;
    }
    let has_form =
        is_checked && (is_plain || traits.key == Key::Count) || is_plain && traits.grant == Grant::TwoSteps;
    if !has_form || traits.replicas == Replicas::InScript {
        return Some((
            "lease",
            "it needs key = \"token\" or \"count\", a simple grant, and a fence apart from it",
        ));
    }
    let renews = matches!(
        traits.renewal,
        Renewal::Never | Renewal::Quorum | Renewal::EachNode | Renewal::AnyAnswer | Renewal::UntilFailure
    );
    if !renews {
        return Some(("lease", "its owner renews by a script: renewal = \"quorum\""));
    }
    let waits = matches!(traits.pace, Pace::Message | Pace::MessageWithoutRecheck);
    let compares = matches!(traits.release, Release::Compare | Release::Delete);
    (waits || !compares).then_some(("lease", "its owner releases by a script that publishes nothing"))
}

/// Returns true if servers of the generation have the command.
fn has(generation: Generation, command: &'static str) -> bool {
    match command {
        "SET IFEQ" => generation.has(Feature::SetIfEq),
        "WAIT in a script" => generation.has(Feature::WaitInScripts),
        _ => find(generation, &[Bytes::from_static(command.as_bytes())]).is_ok(),
    }
}
