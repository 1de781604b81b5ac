//! Actions of a real server that cannot be observed.

use lockstorm::judge::history::Ended;

use crate::{HANDOVER, outcome, redis};

/// The node sleeps from 300 ms on: its actions in the last two seconds are unknown.
#[test]
fn a_run_that_ends_while_a_real_server_cannot_be_seen_has_ended_early() {
    if !redis() {
        return;
    }
    let text = HANDOVER
        .replace("[node.m]", "[node.m]\nconfig = { enable-debug-command = \"yes\" }")
        .replace("storm = \"1s\"", "storm = \"2s\"")
        .replace(
            "[run]",
            "[fault.busy]\ncommand = { node = \"m\", run = [\"DEBUG\", \"SLEEP\", \"3\"] }\nat = \"300ms\"\n\n[run]",
        );
    let ended = outcome(&text).history.header.ended.clone();
    let Ended::Early(why) = &ended else { panic!("{ended:?}") };
    assert!(why.contains("for too long it could not be seen what a node did"), "{why}");
}
