//! Clients that log in as a user of their own, and addresses that move, in front of real servers.

use lockstorm::judge::history::{EventKind, Outcome};

use super::{comes_out_as_expected, outcome, server::redis};

/// The users of a file are those of the real server, with their rights.
#[test]
fn a_user_of_a_real_server_is_refused_a_lock_without_the_rights() {
    if !redis() {
        return;
    }
    let outcome = outcome(include_str!("../../../book/examples/rights.toml"));
    let returned = outcome.history.events.iter().filter_map(|event| match &event.kind {
        EventKind::Return { outcome, .. } => Some(outcome.clone()),
        _ => None,
    });
    let (failed, others): (Vec<Outcome>, Vec<Outcome>) =
        returned.partition(|outcome| matches!(outcome, Outcome::Failed { .. }));
    let is_right =
        |outcome: &Outcome| matches!(outcome, Outcome::Failed { message, .. } if message.contains("NOPERM"));
    assert!(failed.len() == 1 && is_right(&failed[0]), "{failed:?}");
    // The worker has the lock of its own application, and the bank has the other one.
    assert_eq!(others, vec![Outcome::Ok; 4]);
}

/// A client that dials an address after it has moved reaches the other server, which has not
/// received the hold. It moves some time after the promotion.
#[test]
fn an_address_leads_to_another_real_server_once_it_has_moved() {
    if !redis() {
        return;
    }
    comes_out_as_expected(
        r#"
[node.m]
[node.r]
replica_of = "m"
[address.vip]
points_to = "m"
[lock]
lease = "20s"
[client.c1]
nodes = ["vip"]
steps = [{ at = "200ms", acquire = {} }, { work = { for = "2s" } }]
[client.c2]
nodes = ["vip"]
steps = [{ at = "1s", acquire = { wait = "1s" } }, { work = { for = "500ms" } }]
[fault.split]
cut = { from = "m", to = "r" }
at = "100ms"
[fault.failover]
promote = "r"
at = "500ms"
[fault.vip]
move_address = { address = "vip", to = "r", reset = true }
on = { event = "promoted", delay = "200ms" }
[run]
storm = "3s"
[expect]
l1 = "violated"
l2 = "violated"
"#,
    );
}
