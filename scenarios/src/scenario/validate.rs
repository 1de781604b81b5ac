//! What a scenario must be beyond its form: every name stands for something, every entry does exactly one thing.

use lockstorm_sim::{config::Config, options};

use super::{Scenario, StepEntry, error::Mistake};
use crate::{
    checker,
    fault::{self, Fault},
    name::Name,
    selector::{Hosts, Selector},
};

/// The most hosts of one scenario: beyond it a run is no experiment but an accident.
const HOSTS_MAX: u32 = 1000;

pub(super) fn validate(scenario: &Scenario) -> Result<(), Mistake> {
    if scenario.node.is_empty() {
        return Err(Mistake::at(0..0, "the scenario has no Redis node: add one, such as [node.m]"));
    }
    if scenario.client.is_empty() {
        return Err(Mistake::at(0..0, "the scenario has no client: add one, such as [client.c1]"));
    }
    let counts = scenario
        .node
        .values()
        .map(|node| node.count)
        .chain(scenario.client.values().map(|client| client.count));
    if counts.map(|count| u64::from(count.unwrap_or(1))).sum::<u64>() > u64::from(HOSTS_MAX) {
        return Err(Mistake::at(0..0, format!("the scenario has more than {HOSTS_MAX} hosts")));
    }
    let names = Names(scenario);
    names.check_no_host_is_named_twice()?;
    for (name, node) in &scenario.node {
        for (option, value) in &node.config {
            let Some(known) = options::find(option) else {
                let all = options::names().map(|(name, _)| name);
                return Err(Mistake::unknown(0..0, "option", option, all));
            };
            if let Err(why) = known.check(&Config::default(), value) {
                return Err(Mistake::at(0..0, format!("node {name}: {option} = {value:?}: {why}")));
            }
        }
        if let Some(master) = &node.replica_of {
            names.node(master)?;
            if master.as_str() == name {
                return Err(Mistake::at(master.span(), format!("{name} cannot be a replica of itself")));
            }
        }
    }
    for client in scenario.client.values() {
        client.nodes.iter().flatten().try_for_each(|node| names.node(node))?;
        client.steps.iter().enumerate().try_for_each(|(at, step)| one_action(step, at))?;
        if client.workload.as_ref().is_some_and(|workload| workload.contend.is_none()) {
            return Err(Mistake::at(0..0, "a workload needs a kind, such as workload.contend = { .. }"));
        }
    }
    scenario.lock.nodes.iter().flatten().try_for_each(|node| names.node(node))?;
    for link in scenario.link.values() {
        names.hosts(&link.from)?;
        names.hosts(&link.to)?;
    }
    for (name, entry) in &scenario.fault {
        check_fault(&names, name, entry)?;
    }
    for name in scenario.expect.keys() {
        if !checker::LIST.iter().any(|checker| checker.name == name) {
            let known = checker::LIST.iter().map(|checker| checker.name);
            return Err(Mistake::unknown(0..0, "checker", name, known));
        }
    }
    Ok(())
}

fn one_action(step: &StepEntry, at: usize) -> Result<(), Mistake> {
    let actions = step.actions();
    match actions.len() {
        1 => Ok(()),
        // A bare `at` is a pause until then.
        0 if step.at.is_some() => Ok(()),
        0 => Err(Mistake::at(
            0..0,
            format!("step {} does nothing: give it an action, such as acquire = {{}}", at + 1),
        )),
        _ => Err(Mistake::at(
            0..0,
            format!("step {} does several things ({}): one step each", at + 1, actions.join(", ")),
        )),
    }
}

fn check_fault(names: &Names<'_>, name: &str, entry: &Fault) -> Result<(), Mistake> {
    if entry.off {
        return Ok(());
    }
    let kinds = entry.kinds();
    let [kind] = kinds[..] else {
        let known: Vec<&str> = fault::LIST.iter().map(|(name, _)| *name).collect();
        let message = format!(
            "fault `{name}` must do exactly one thing, such as crash = \"m\"; it does {}",
            kinds.len()
        );
        return Err(Mistake {
            span: 0..0,
            message,
            help: Some(format!("the faults are: {}", known.join(", "))),
        });
    };
    for hosts in kind.hosts() {
        names.hosts(hosts)?;
    }
    if let Some(client) = entry.on.as_ref().and_then(|trigger| trigger.client.as_ref()) {
        names.hosts(client)?;
    }
    match (entry.at, &entry.on) {
        (None, None) => {
            Err(Mistake::at(0..0, format!("fault `{name}` needs a time: `at = \"3s\"` or `on = {{ .. }}`")))
        }
        (Some(_), Some(_)) => {
            Err(Mistake::at(0..0, format!("fault `{name}` has both `at` and `on`: give one")))
        }
        _ => Ok(()),
    }
}

struct Names<'a>(&'a Scenario);

impl Names<'_> {
    fn nodes(&self) -> impl Iterator<Item = String> {
        self.0.node.iter().flat_map(|(name, node)| super::group(name, node.count))
    }

    fn clients(&self) -> impl Iterator<Item = String> {
        self.0.client.iter().flat_map(|(name, client)| super::group(name, client.count))
    }

    fn check_no_host_is_named_twice(&self) -> Result<(), Mistake> {
        let mut seen = std::collections::BTreeSet::new();
        let own = super::RESERVED.iter().map(|name| (*name).to_owned());
        for host in own.chain(self.nodes()).chain(self.clients()) {
            if !seen.insert(host.clone()) {
                return Err(Mistake::at(0..0, format!("two hosts are called `{host}`")));
            }
        }
        Ok(())
    }

    fn node(&self, name: &Name) -> Result<(), Mistake> {
        if self.0.node.contains_key(name.as_str()) || self.nodes().any(|node| node == name.as_str()) {
            return Ok(());
        }
        let known: Vec<String> = self.nodes().collect();
        Err(Mistake::unknown(name.span(), "node", name.as_str(), known.iter().map(String::as_str)))
    }

    fn hosts(&self, hosts: &Hosts) -> Result<(), Mistake> {
        for name in hosts.names() {
            let selector =
                name.as_str().parse::<Selector>().map_err(|message| Mistake::at(name.span(), message))?;
            let Selector::Named(host) = selector else { continue };
            let groups = self.0.node.keys().chain(self.0.client.keys()).cloned();
            let own = super::RESERVED.iter().map(|name| (*name).to_owned());
            let known: Vec<String> = groups.chain(self.nodes()).chain(self.clients()).chain(own).collect();
            if !known.contains(&host) {
                return Err(Mistake::unknown(name.span(), "host", &host, known.iter().map(String::as_str)));
            }
        }
        Ok(())
    }
}
