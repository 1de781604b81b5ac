//! Addresses that belong to no host of their own.

use lockstorm::judge::history::{CommandCount, EventKind, History, Outcome};
use lockstorm_world::TraceRetention;

use super::play;

/// The faults shown in this file: clients of the other rows only know hosts.
pub(super) const SHOWN: &[&str] = &["move_address"];

/// A client that dials after the address has moved reaches the other node. An earlier connection
/// stays where it is, unless it is reset.
#[test]
fn an_address_leads_those_who_dial_to_the_node_that_it_points_to() {
    let text = |reset: &str| {
        format!(
            "[node.m]\n[node.n]\nreplica_of = \"m\"\n[address.vip]\npoints_to = \"m\"\n[network]\nlatency = \"1ms\"\n\
             [fault.p]\npromote = \"n\"\nat = \"2s\"\n[lock]\nsubject = \"token-lock\"\nlease = \"1s\"\nnodes = [\"m\"]\n\
             [client.c1]\nnodes = [\"vip\"]\nretries = 1\nsteps = [{{ at = \"1s\", try_acquire = {{}} }}, {{ release = {{}} }}, \
             {{ at = \"5s\", try_acquire = {{}} }}, {{ release = {{}} }}]\n\
             [fault.f]\nmove_address = {{ address = \"vip\", to = \"n\"{reset} }}\nat = \"3s\"\n"
        )
    };
    let asked = |history: &History, node: &str| {
        let of_node = |count: &&CommandCount| history.host_name(count.node) == node;
        history
            .commands
            .iter()
            .filter(of_node)
            .filter(|count| &*count.name == "SET")
            .map(|count| count.count)
            .sum::<u64>()
    };
    let stays = play("addresses", &text(""), TraceRetention::Nothing).history;
    assert_eq!((asked(&stays, "m"), asked(&stays, "n")), (2, 0));
    let moves = play("addresses", &text(", reset = true"), TraceRetention::Nothing).history;
    assert_eq!((asked(&moves, "m"), asked(&moves, "n")), (1, 1));
}

/// A node that comes back at another address: the old address leads nowhere, and the new one to the
/// node. A client that knows both finds it again.
#[test]
fn a_node_comes_back_at_another_address() {
    let text = |nodes: &str| {
        format!(
            "[node.m]\ndurability = \"aof-always\"\n[address.old]\npoints_to = \"m\"\n[address.new]\n\
             [network]\nlatency = \"1ms\"\n[lock]\nlease = \"1s\"\n\
             [client.c]\nnodes = [{nodes}]\nsteps = [{{ at = \"1s\", try_acquire = {{}} }}, {{ release = {{}} }}, \
             {{ at = \"5s\", try_acquire = {{}} }}, {{ release = {{}} }}]\n\
             [fault.gone]\ncrash = \"m\"\nat = \"2s\"\nfor = \"1s\"\n\
             [fault.old]\nmove_address = {{ address = \"old\", reset = true }}\nat = \"2s\"\n\
             [fault.new]\nmove_address = {{ address = \"new\", to = \"m\" }}\nat = \"3s\"\n\
             [run]\nstorm = \"40s\"\n"
        )
    };
    let returned = |nodes: &str| {
        let history = play("addresses", &text(nodes), TraceRetention::Nothing).history;
        let outcomes = history.events.iter().filter_map(|event| match &event.kind {
            EventKind::Return { outcome, .. } => Some(*outcome == Outcome::Ok),
            _ => None,
        });
        outcomes.collect::<Vec<_>>()
    };
    assert_eq!(returned("\"old\", \"new\""), [true; 4]);
    assert_eq!(returned("\"old\""), [true, true, false], "the address leads nowhere");
}
