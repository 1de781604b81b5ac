//! Groups of real processes: nodes that Sentinels watch, and nodes of a cluster. The claims G3 and
//! G4, in shorter times.

use lockstorm::{
    file::{plan::Plan, server::Generation},
    judge::history::{Event, EventKind, Role, Serving},
    run::{Outcome, real},
};

use crate::{
    comes_out_as_expected, outcome,
    server::{SERVERS, redis},
    source,
};

/// A Sentinel replaces a master that is well, which takes writes until a Sentinel makes it a
/// replica. Sentinels ask a master for its replicas every 10 s, so they know them at 14 s.
const PLANNED: &str = r#"
about = "A Sentinel promotes a replica, and the old master still grants the lock."

[node.m]
config.repl-diskless-sync-delay = "0"

[node.r]
count = 2
replica_of = "m"

[sentinel.s]
count = 3

[lock]
lease = "60s"

[network]
latency = "1ms"

[fault.failover]
failover = { sentinel = "s1", master = "m" }
at = "14s"

[client.c1]
nodes = ["m"]
steps = [{ at = "17s", try_acquire = {} }, { work = { until = "23s", until_lost = true } }]

[client.c2]
nodes = ["r1", "r2"]
steps = [{ at = "19s", try_acquire = {} }, { work = { until = "23s", until_lost = true } }]

[run]
storm = "30s"

[expect]
l1 = "violated"
l2 = "violated"
"#;

/// The slot of a lock moves key by key while a client holds the lock. The key "lock" is in slot
/// 8718, which n2 has.
const MOVED: &str = r#"
about = "A lock survives the migration of its slot."

[node.n]
cluster = true
count = 2

[lock]
lease = "30s"
response_timeout = "500ms"

[network]
latency = "1ms"

[fault.move]
reshard = { to = "n1", step = "1s" }
at = "7s"

[client.c1]
steps = [{ at = "5s", try_acquire = {} }, { at = "8500ms", release = {} }]

[client.c2]
steps = [{ at = "6s", acquire = {} }, { work = { for = "1s" } }, { release = {} }]

[client.later]
steps = [{ at = "13s", acquire = { wait = "5s" } }, { release = {} }]

[run]
storm = "13s"
calm = "5s"

[expect]
l1 = "holds"
l2 = "holds"
owner-safety = "holds"
progress = "holds"
"#;

const TWO_SLOTS: &str = r#"
about = "Two locks, each in a slot of its own."

[node.n]
cluster = true
count = 2

[lock]
lease = "5s"
[lock.stock]
[lock.other]

[client.c]
workload.contend = { hold = "20ms", think = "20ms", wait = "1s" }

[run]
storm = "1s"
"#;

/// Returns true if the server under test is of the generation that hands over roles and slots.
fn hands_over() -> bool {
    redis() && SERVERS.as_ref().is_ok_and(|servers| servers.default().is_of(Generation::Valkey91))
}

/// Returns the events that `pick` takes, each with its host.
fn events<'o, T>(outcome: &'o Outcome, pick: impl Fn(&'o EventKind) -> Option<T>) -> Vec<(&'o str, T)> {
    let history = &outcome.history;
    let of = |event: &'o Event| Some((history.host_name(event.host), pick(&event.kind)?));
    history.events.iter().filter_map(of).collect()
}

/// Returns the changes of roles, each as its host and the new role.
fn roles(outcome: &Outcome) -> Vec<(&str, Role)> {
    events(outcome, |event| match event {
        EventKind::Became { role } => Some(*role),
        _ => None,
    })
}

/// Claim G3, without COORDINATED: two masters grant the lock.
#[test]
fn two_real_masters_grant_a_lock_in_a_planned_failover() {
    if !redis() {
        return;
    }
    comes_out_as_expected(PLANNED);
}

/// Claim G3, with COORDINATED: the old master has handed over.
#[test]
fn a_real_master_that_hands_over_grants_nothing_more() {
    if !hands_over() {
        return;
    }
    let text = PLANNED
        .replace("master = \"m\" }", "master = \"m\", coordinated = true }")
        .replace("[sentinel.s]\n", "[sentinel.s]\nserver = \"valkey-9.1\"\n")
        .replace("violated", "holds")
        + "windows = { holds = { two_masters = 0 } }\n";
    comes_out_as_expected(&text);
}

/// A history has the events of Sentinels, which name hosts, and the roles of the nodes.
#[test]
fn the_history_of_a_real_failover_has_its_events_and_roles() {
    if !redis() {
        return;
    }
    let told = outcome(PLANNED);
    let history = &told.history;
    let switches = events(&told, |event| match event {
        EventKind::Sentinel { event, message } if **event == *"+switch-master" => Some(&**message),
        _ => None,
    });
    let promoted: Vec<&str> =
        roles(&told).into_iter().filter(|(_, role)| *role == Role::Master).map(|(name, _)| name).collect();
    assert_eq!(promoted.len(), 1, "{promoted:?}, {:?}", history.header.ended);
    let expected = format!("m m 6379 {} 6379", promoted[0]);
    assert!(switches.iter().all(|(_, switch)| *switch == expected), "{switches:?}");
    assert_eq!(switches.len(), 3, "{switches:?}");
    // Both replicas say at the start that they are replicas, and the old master says it at the end.
    for host in ["r1", "r2", "m"] {
        let is_replica = roles(&told).contains(&(host, Role::Replica));
        assert!(is_replica, "{host}: {:?}", roles(&told));
    }
}

/// Claim G4, key by key.
#[test]
fn a_lock_survives_the_migration_of_its_slot_between_real_nodes() {
    if !redis() {
        return;
    }
    comes_out_as_expected(MOVED);
}

/// Claim G4: the old master copies the slot and hands it over.
#[test]
fn a_lock_survives_the_atomic_migration_of_its_slot_between_real_nodes() {
    if !hands_over() {
        return;
    }
    let text = MOVED
        .replace("step = \"1s\" }", "atomic = true }")
        .replace("count = 2\n", "count = 2\nserver = \"valkey-9.1\"\n");
    comes_out_as_expected(&text);
}

/// A history has the master of the slot over time, as the nodes themselves see it.
#[test]
fn the_history_of_a_real_migration_has_the_masters_of_the_slot() {
    if !redis() {
        return;
    }
    let told = outcome(MOVED);
    let history = &told.history;
    let served = events(&told, |event| match event {
        EventKind::Serves { how, .. } => Some(*how),
        _ => None,
    });
    let of = |host: &str| -> Vec<Serving> {
        served.iter().filter(|(name, _)| *name == host).map(|(_, how)| *how).collect()
    };
    let ended = &history.header.ended;
    let source = of("n2");
    assert!(
        source.ends_with(&[Serving::Whole, Serving::Migrating, Serving::Elsewhere]),
        "{served:?} {ended:?}"
    );
    let target = of("n1");
    assert!(target.ends_with(&[Serving::Importing, Serving::Whole]), "{served:?} {ended:?}");
}

/// Groups run on real servers, except where a named part is impossible.
#[test]
fn what_cannot_be_done_to_real_groups_is_named() {
    let rows = [
        (PLANNED.to_owned(), vec![]),
        (MOVED.to_owned(), vec![]),
        (
            PLANNED.replace(
                "[fault.failover]",
                "[fault.jump]\nclock_step = { host = \"s2\", by = \"1s\" }\nat = \"1s\"\n[fault.failover]",
            ),
            vec!["fault \"jump\" needs a clock of s2"],
        ),
        (TWO_SLOTS.to_owned(), vec!["the locks are in several slots of the cluster"]),
    ];
    for (text, expected) in rows {
        let source = source(&text);
        let found = real::impossible(&Plan::draw(&source.variants[0].scenario, 0));
        let named = found.len() == expected.len()
            && found.iter().zip(&expected).all(|(found, expected)| found.starts_with(expected));
        assert!(named, "{text}: {found:?}");
    }
}
