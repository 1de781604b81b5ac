//! Faults that mean nothing to some hosts.

use super::{Scenario, error::Mistake};
use crate::file::selector::{Hosts, Selector};

/// Checks that a fault that is about nodes names no other host. The names are already known to
/// exist.
pub(super) fn are_nodes(scenario: &Scenario, fault: &str, hosts: &Hosts) -> Result<(), Mistake> {
    let is_node = |host: &str| {
        let mut groups = scenario.node.keys();
        groups.any(|name| name == host || scenario.members(name).iter().any(|member| member == host))
    };
    for name in hosts.names() {
        let is_other = match name.as_str().parse() {
            Ok(Selector::Named(host)) => !is_node(&host),
            Ok(selector) => !selector.may_be_node(),
            Err(_) => false,
        };
        if is_other {
            let message = format!("{fault} is about nodes, and `{}` is none", name.as_str());
            return Err(Mistake::at(name.span(), message));
        }
    }
    Ok(())
}
