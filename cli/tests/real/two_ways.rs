//! Two ways to the same history: the recorder reads the memory of a simulated node, and follows a
//! real one by MONITOR and a shadow copy.

use lockstorm::{
    judge::history::{EventKind, HostKind, LossCause, Owner, Party},
    run::{Engine, Outcome},
};

use crate::{AT_ONCE, FORGOTTEN, HANDOVER, LATE, LINES, PLAYS, UNANSWERED, outcome, outcome_on, redis};

/// A client releases nested holds while it cannot reach the server: the releases arrive later, each
/// once.
const CUT_OFF: &str = r#"
about = "A client is cut off while it gives its levels back."

[node.m]

[lock]
lease = "8s"

[client.c1]
steps = [{ at = "200ms", acquire = {} }, { acquire = {} }, { at = "900ms", release = {} }, { release = {} }]

[client.c2]
steps = [{ at = "400ms", acquire = {} }, { release = {} }]

[fault.cut]
cut = { from = "c1", to = "m" }
at = "700ms"
for = "800ms"

[run]
storm = "4s"

[expect]
l1 = "holds"
reentrancy = "holds"
"#;

/// A lock in a string is released, expires, is extended, and is released by an owner whose lease is
/// over.
const IN_A_STRING: &str = r#"
about = "One SET acquires the lock, and a comparison releases it."

[node.m]

[lock]
kind = "string"
lease = "800ms"

[client.c1]
steps = [
    { at = "200ms", acquire = {} }, { at = "500ms", release = {} },
    { at = "900ms", try_acquire = {} }, { at = "2800ms", release = {} },
]

[client.c2]
steps = [
    { at = "1200ms", acquire = { wait = "3s" } }, { at = "2200ms", extend = { lease = "2s" } },
    { at = "3200ms", release = {} },
]

[run]
storm = "4s"

[expect]
l1 = "holds"
owner-safety = "holds"
"#;

/// A replica that has not received a release is promoted, and the owner asks for the lock again: it
/// has it twice there.
const CAME_BACK: &str = r#"
about = "A replica is promoted with a hold that was released."

[node.m]
config = { repl-diskless-sync-delay = "0" }

[node.r]
replica_of = "m"

[lock]
lease = "20s"

[client.c1]
steps = [
    { at = "1500ms", acquire = {} },
    { at = "2500ms", release = {} },
    { at = "3500ms", acquire = {} },
    { at = "4s", release = {} },
]

[fault.lag]
slow = { from = "m", to = "r", by = "1h" }
at = "2200ms"

[fault.crash]
crash = "m"
at = "2800ms"

[fault.failover]
promote = "r"
at = "3s"

[run]
storm = "5s"

[expect]
l1 = "holds"
reentrancy = "holds"
"#;

/// The changes of locks, in order: the client, the owner, and the count after the change.
pub(crate) fn changes(outcome: &Outcome) -> Vec<String> {
    let history = &outcome.history;
    let name = |owner: Owner| &*history.owners[owner.0 as usize].name;
    let party = |by: Party| by.owner.map_or(history.host_name(by.client), name);
    let events = history.events.iter().filter(|event| {
        let kind = history.header.hosts[usize::from(event.host.0)].kind;
        kind == HostKind::Node && event.kind.lock().is_some()
    });
    let told = events.filter_map(|event| match event.kind {
        EventKind::Granted { owner, count, .. } => Some(format!("{} granted, {count}", name(owner))),
        EventKind::Released { owner, by, left, .. } => {
            Some(format!("{} released by {}, {left}", name(owner), party(by)))
        }
        EventKind::Vanished { owner, how: LossCause::Deleted(by), .. } => {
            Some(format!("{} deleted by {}", name(owner), party(by)))
        }
        EventKind::Vanished { owner, how, .. } => Some(format!("{} {how:?}", name(owner))),
        EventKind::Regained { owner, how, count, .. } => {
            Some(format!("{} back after a {how:?}, {count}", name(owner)))
        }
        _ => None,
    });
    told.collect()
}

/// Holds that are handed over, nested, deleted by another line of work, lost by a node that comes
/// up empty or kept by its disk, ended while their client stands still, granted to a client without
/// a reply, released by a client that is cut off, returned with a replica that did not receive
/// their release, and kept in a string.
#[test]
fn what_is_told_of_a_real_server_is_what_is_told_of_a_simulated_one() {
    if !redis() {
        return;
    }
    for text in [HANDOVER, LINES, FORGOTTEN, AT_ONCE, LATE, UNANSWERED, CUT_OFF, CAME_BACK, IN_A_STRING] {
        let simulated = changes(&outcome_on(Engine::Event, text));
        // On a busy machine less happens than intended.
        let mut told = Vec::new();
        while told.last() != Some(&simulated) {
            assert!(told.len() < PLAYS as usize, "{simulated:#?}\n{told:#?}");
            told.push(changes(&outcome(text)));
        }
    }
}
