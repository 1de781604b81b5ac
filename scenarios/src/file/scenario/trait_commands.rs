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

/// A command that not every server has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RareCommand {
    DelIfEq,
    SetIfEq,
    WaitAof,
    WaitInScript,
    HSetEx,
}

impl RareCommand {
    pub(crate) fn name(self) -> &'static str {
        match self {
            RareCommand::DelIfEq => "DELIFEQ",
            RareCommand::SetIfEq => "SET IFEQ",
            RareCommand::WaitAof => "WAITAOF",
            RareCommand::WaitInScript => "WAIT in a script",
            RareCommand::HSetEx => "HSETEX",
        }
    }

    /// Returns the feature of servers that it is, unless a server has it if it has a command of
    /// this name.
    pub(crate) fn feature(self) -> Option<Feature> {
        match self {
            RareCommand::SetIfEq => Some(Feature::SetIfEq),
            RareCommand::WaitInScript => Some(Feature::WaitInScripts),
            RareCommand::DelIfEq | RareCommand::WaitAof | RareCommand::HSetEx => None,
        }
    }

    /// Returns true if simulated servers of the generation have the command.
    fn is_of(self, generation: Generation) -> bool {
        let is_command = || find(generation, &[Bytes::from_static(self.name().as_bytes())]).is_ok();
        self.feature().map_or_else(is_command, |feature| generation.has(feature))
    }

    fn compares_string(self) -> bool {
        matches!(self, RareCommand::DelIfEq | RareCommand::SetIfEq)
    }

    /// Returns true if this node of the lock must have the command. An older replica takes the
    /// leases of fields that its master sends; its own commands fail once it is promoted.
    fn is_for(self, node: &Node) -> bool {
        self != RareCommand::HSetEx || node.replica_of.is_none()
    }
}

/// Returns the commands of the lock's traits, each with its trait.
fn of_traits(lock: &Lock) -> impl Iterator<Item = (&'static str, RareCommand)> {
    let traits = lock.all_traits();
    let all = [
        ("release", traits.release == Release::DelIfEq, RareCommand::DelIfEq),
        ("renewal", traits.renewal == Renewal::SetIfEq, RareCommand::SetIfEq),
        ("synced", traits.synced, RareCommand::WaitAof),
        ("replicas", traits.replicas == Replicas::InScript, RareCommand::WaitInScript),
        ("lease", traits.lease == LeaseOn::Field, RareCommand::HSetEx),
    ];
    all.into_iter().filter(|(_, is_used, _)| *is_used).map(|(key, _, command)| (key, command))
}

/// Returns the command of the lock's settings, which the client sends.
fn of_settings(lock: &Lock) -> Option<RareCommand> {
    (lock.synced != Synced::None).then_some(RareCommand::WaitAof)
}

/// Checks that the lock's keys and servers suit the commands that its traits name.
///
/// # Errors
/// The trait and a message.
pub(super) fn check(scenario: &Scenario, lock: &Lock) -> Result<(), (&'static str, String)> {
    let traits = lock.all_traits();
    for (key, command) in of_traits(lock) {
        if command.compares_string() && traits.key != Key::Token {
            let name = command.name();
            return Err((key, format!("{name} compares a string, and the key of this lock is none")));
        }
        if let Some(message) = missing(scenario, lock, command) {
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
    let missing = of_settings(lock).and_then(|command| missing(scenario, lock, command));
    missing.map_or(Ok(()), |message| Err(Wrong::at("synced", message)))
}

/// Returns the nodes of the lock that need a command which not every server has.
pub(crate) fn needed<'a>(
    scenario: &'a Scenario,
    lock: &'a Lock,
) -> impl Iterator<Item = (&'a str, RareCommand)> {
    let commands: Vec<RareCommand> =
        of_traits(lock).map(|(_, command)| command).chain(of_settings(lock)).collect();
    let of = move |command| nodes_with(scenario, lock, command).map(move |(name, _)| (name, command));
    commands.into_iter().flat_map(of)
}

/// Returns the nodes of the lock that must have the command.
fn nodes_with<'a>(
    scenario: &'a Scenario,
    lock: &'a Lock,
    command: RareCommand,
) -> impl Iterator<Item = (&'a str, &'a Node)> {
    let is_here = |name: &str| {
        let mut nodes = lock.nodes.iter().flatten();
        lock.nodes.is_none() || nodes.any(|node| node.as_str() == name)
    };
    let all = scenario.node.iter().map(|(name, node)| (name.as_str(), node));
    all.filter(move |(name, node)| is_here(name) && command.is_for(node))
}

/// Returns the message for a node of the lock that does not have the command.
fn missing(scenario: &Scenario, lock: &Lock, command: RareCommand) -> Option<String> {
    let (node, _) =
        nodes_with(scenario, lock, command).find(|(_, node)| !command.is_of(node.generation()))?;
    Some(format!("{} is no command of node {node}: give it server = \"valkey-9.1\"", command.name()))
}

/// Returns a trait that the model cannot combine with the others, and the traits that it needs.
fn without_form(traits: &Traits) -> Option<(&'static str, &'static str)> {
    let is_plain = traits.key == Key::Token && traits.fence != Fencing::WithGrant;
    let is_checked = matches!(traits.grant, Grant::Checked);
    if traits.grant == Grant::AfterWork && !is_plain {
        return Some(("grant", "it needs key = \"token\", and a fence apart from the grant"));
    }
    let waits_with_grant = matches!(traits.replicas, Replicas::InScript | Replicas::InTransaction);
    if waits_with_grant && !(is_plain && is_checked) {
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
    if !has_form || waits_with_grant {
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
