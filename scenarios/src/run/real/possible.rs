//! The parts of a plan that real servers cannot play.

use lockstorm_sim::cluster::key_slot;
use lockstorm_world::Condition;

use super::places::is_group;
use crate::{
    file::{
        fault::FaultAction,
        plan::{Plan, PlannedHost, PlannedNode, PlannedPeer, Target},
        scenario::{
            Lock,
            trait_commands::{self, RareCommand},
        },
        selector::Selector,
        server::Server,
    },
    judge::history::HostKind,
};

/// Returns the parts of a plan that are impossible with real servers in real time, one line each.
/// Empty if all are possible.
pub fn impossible(plan: &Plan) -> Vec<String> {
    let mut problems = Vec::new();
    let clients = plan.hosts.iter().find(|host| host.software.kind() == HostKind::Client);
    let client = clients.map_or_else(String::new, |host| host.name.clone());
    for occurrence in &plan.faults {
        let somebody = |targets: &Vec<Target>| {
            let name = |target: &Target| match target {
                Target::Host(name) => name.clone(),
                Target::Role(Selector::Holder(_) | Selector::Waiter(_)) => client.clone(),
                Target::Role(_) => "somebody".to_owned(),
            };
            targets.iter().map(name).collect::<Vec<_>>()
        };
        let targets: Vec<Vec<String>> = occurrence.targets.iter().map(somebody).collect();
        let is_process = |host: Option<&str>| host.is_some_and(|host| is_process(plan, host));
        let impossible = occurrence.fault.actions(&targets).into_iter().find_map(|action| match action {
            FaultAction::World(verb) if is_process(verb.bends_clock_of()) => {
                verb.bends_clock_of().map(own_clock)
            }
            FaultAction::For(condition) if is_process(condition.bends_clock_of()) => {
                condition.bends_clock_of().map(own_clock)
            }
            FaultAction::Disk { node, .. } => Some(format!("a disk of {node} that takes nothing")),
            FaultAction::Console { node, command } => unknown_command(plan, &node, &command),
            FaultAction::LoseDisk { host } => Some(format!("the loss of the disk of {host}")),
            // The monotonic clock of a stopped process continues.
            FaultAction::For(Condition::Suspended { host }) if is_peer(plan, &host) => {
                Some(format!("a suspension of {host}"))
            }
            _ => None,
        });
        if let Some(what) = impossible {
            let name = occurrence.of();
            problems.push(format!("fault {name:?} needs {what}"));
        }
    }
    for host in &plan.hosts {
        let bends_clock = host.offset != Default::default() || host.rate != Default::default();
        if bends_clock && host.software.is_process() {
            problems.push(format!("{} needs a clock that differs from the machine's", host.name));
        }
        problems.extend(host.software.unreal().into_iter().map(|does| format!("{} {does}", host.name)));
        problems.extend(of_group(plan, host).map(|does| format!("{} {does}", host.name)));
    }
    if plan.scenario.is_cluster() {
        let mut slots: Vec<u16> = plan.judged().map(|lock| key_slot(lock.key.as_bytes())).collect();
        slots.dedup();
        if slots.len() > 1 {
            let why = "the locks are in several slots of the cluster, and a node's keys are read in one step";
            problems.push(why.to_owned());
        }
    }
    problems.extend(plan.scenario.lock.iter().flat_map(|(name, lock)| missing_commands(plan, name, lock)));
    problems.extend(plan.locks.iter().filter(|lock| lock.written.is_counted_apart()).map(|lock| {
        format!(
            "what lock {:?} grants to each client by itself is in keys named at run time, which are not followed",
            lock.name
        )
    }));
    problems.sort();
    problems.dedup();
    problems
}

/// Names the clock that a fault changes.
fn own_clock(host: &str) -> String {
    format!("a clock of {host} that differs from the machine's")
}

/// Returns the reason why a host cannot take part in a group of processes, if it cannot.
fn of_group(plan: &Plan, host: &PlannedHost) -> Option<String> {
    let kind = host.software.kind();
    if !is_group(plan) {
        return None;
    }
    if matches!(kind, HostKind::Node | HostKind::Sentinel) {
        // Elsewhere the system has only one loopback address.
        let why = "is in a group, and needs a loopback address of its own, as only Linux has them";
        return (!cfg!(target_os = "linux")).then(|| why.to_owned());
    }
    let software: &dyn std::any::Any = &*host.software;
    let client = &software.downcast_ref::<PlannedPeer>()?.client;
    let why =
        "is a program of its own, and the addresses that Sentinels and clusters tell it are not on its links";
    (plan.scenario.is_cluster() || client.sentinels.is_some()).then(|| why.to_owned())
}

/// Returns the commands that a lock sends and that the servers of its nodes do not have.
fn missing_commands(plan: &Plan, name: &str, lock: &Lock) -> Vec<String> {
    let needed = trait_commands::needed(&plan.scenario, lock);
    let of_nodes = needed
        .flat_map(|(node, command)| plan.scenario.members(node).into_iter().map(move |node| (node, command)));
    let missing = of_nodes.filter_map(|(node, command)| {
        let server = server_of(plan, &node).filter(|server| !has(server, command))?;
        Some(format!("lock {name:?} needs {}, which {server} does not have", command.name()))
    });
    missing.collect()
}

/// Returns true if a real server has a command that not every server has.
fn has(server: &Server, command: RareCommand) -> bool {
    command.feature().map_or_else(|| server.has_command(command.name()), |feature| server.has(feature))
}

/// Returns the real server of a node, if one was found for it.
fn server_of<'a>(plan: &'a Plan, node: &str) -> Option<&'a Server> {
    let planned = plan.hosts.iter().find(|planned| planned.name == node)?;
    let software: &dyn std::any::Any = &*planned.software;
    software.downcast_ref::<PlannedNode>()?.server.as_ref()?.as_ref().ok()
}

/// Returns the reason why a node's server cannot execute a command, if it cannot.
fn unknown_command(plan: &Plan, node: &str, command: &[String]) -> Option<String> {
    let server = server_of(plan, node)?;
    let name = command.first()?;
    (!server.has_command(name)).then(|| format!("{name}, which {server} does not have"))
}

/// Returns true if a host runs a separate process, or may do so: a role that only nodes have.
fn is_process(plan: &Plan, host: &str) -> bool {
    let planned = plan.hosts.iter().find(|planned| planned.name == host);
    planned.is_none_or(|planned| planned.software.is_process())
}

/// Returns true if a host is a client that runs as a separate process.
fn is_peer(plan: &Plan, host: &str) -> bool {
    let planned = plan.hosts.iter().find(|planned| planned.name == host);
    planned.is_some_and(|host| host.software.kind() == HostKind::Client && host.software.is_process())
}
