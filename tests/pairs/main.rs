//! Runs the same steps over loopback on pairs of nodes, simulated and real in every combination.

mod failover;
mod listening;
mod migrate;
mod node;
mod propagation;

use libtest_mimic::{Failed, Trial};
use lockstorm_lab::support::{
    arguments,
    redis::{Availability, availability},
};

use node::{Kind, Node};

/// Runs the steps of a test on two nodes.
type Test = fn(Node, Node);

const TESTS: &[(&str, Test)] = &[
    ("a_replica_that_has_everything_takes_over", failover::a_replica_that_has_everything_takes_over),
    ("a_replica_that_is_late_does_not", failover::a_replica_that_is_late_does_not),
    ("unless_it_is_forced_to", failover::unless_it_is_forced_to),
    ("what_is_under_way_can_be_called_off", failover::what_is_under_way_can_be_called_off),
    (
        "who_waits_for_the_same_acknowledgement_is_answered",
        failover::who_waits_for_the_same_acknowledgement_is_answered,
    ),
    ("a_backlog_without_replicas_is_freed", failover::a_backlog_without_replicas_is_freed),
    ("a_node_listens_where_it_is_told_to", listening::a_node_listens_where_it_is_told_to),
    ("keys_move_with_all_that_is_in_them", migrate::keys_move_with_all_that_is_in_them),
    ("a_target_without_a_server_is_an_error", migrate::a_target_without_a_server_is_an_error),
    ("scripts_choose_where_they_are_propagated", propagation::scripts_choose_where_they_are_propagated),
    ("a_transaction_waits_for_the_target", migrate::a_transaction_waits_for_the_target),
];

fn main() {
    let mut kinds = vec![(Kind::Simulated, Kind::Simulated)];
    let mut trials = Vec::new();
    match availability() {
        Availability::Present => kinds.extend([
            (Kind::Real, Kind::Real),
            (Kind::Simulated, Kind::Real),
            (Kind::Real, Kind::Simulated),
        ]),
        Availability::Absent(why) => eprintln!("{why}"),
        Availability::Missing(why) => {
            trials.push(Trial::test("redis_server_is_there", move || Err(Failed::from(why))));
        }
    }
    for (name, test) in TESTS {
        for &(one, other) in &kinds {
            trials.push(Trial::test(format!("{name}::{}_{}", one.name(), other.name()), move || {
                test(Node::start(one), Node::start(other));
                Ok(())
            }));
        }
    }
    libtest_mimic::run(&arguments(), trials).exit();
}
