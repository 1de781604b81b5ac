//! Faults by an operator of a cluster: manual failovers, and moved slots.

use lockstorm::judge::history::{EventKind, History, Role, Serving};
use lockstorm_world::TraceRetention;

use super::play;

/// The faults shown in this file: they need a cluster.
pub(super) const SHOWN: &[&str] = &["failover", "reshard"];

/// The lock is in slot 8718, which `n2` has at first.
fn history(faults: &str) -> History {
    history_on("redis-7.0", faults)
}

/// The same on servers of another generation.
fn history_on(server: &str, faults: &str) -> History {
    let text = format!(
        r#"
[node.n]
cluster = true
server = "{server}"
count = 3
[node.r]
replica_of = "n2"
server = "{server}"
[lock]
lease = "60s"
[network]
latency = "1ms"
[client.c]
steps = [{{ at = "15s", try_acquire = {{}} }}, {{ at = "19s", release = {{}} }}, {{ at = "26s", try_acquire = {{}} }}, {{ release = {{}} }}]
[run]
storm = "30s"
{faults}"#
    );
    play("cluster", &text, TraceRetention::Nothing).history
}

/// The answers for the slot of the lock, changes of role, and grants of the lock, each with its
/// host and its time in milliseconds.
fn told(history: &History) -> Vec<String> {
    let told = history.events.iter().filter_map(|event| {
        let what = match &event.kind {
            EventKind::Serves { how, .. } => format!("{how:?}"),
            EventKind::Became { role: Role::Master } => "Master".to_owned(),
            EventKind::Became { role: Role::Replica } => "Replica".to_owned(),
            EventKind::Granted { .. } => "Granted".to_owned(),
            EventKind::Released { .. } => "Released".to_owned(),
            EventKind::Vanished { .. } => "Vanished".to_owned(),
            _ => return None,
        };
        Some(format!("{} {what}@{}", history.host_name(event.host), event.at.as_millis()))
    });
    // Leaves out the reports at the start of the masters.
    told.filter(|told| !told.ends_with("@0")).collect()
}

/// The same without the times.
fn order(history: &History) -> Vec<String> {
    told(history).iter().map(|told| told.split('@').next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn an_undisturbed_cluster_answers_two_seconds_after_its_start() {
    let history = history("");
    let expected =
        ["n2 Whole@2100", "n2 Granted@15001", "n2 Released@19001", "n2 Granted@26001", "n2 Released@26003"];
    assert_eq!(told(&history), expected);
}

#[test]
fn a_failover_exchanges_the_roles() {
    for how in ["agreed", "force", "takeover"] {
        let fault =
            format!("[fault.f]\nfailover = {{ replica = \"@replica\", how = \"{how}\" }}\nat = \"17s\"\n");
        let order = order(&history(&fault));
        let of_roles = |word: &str| order.iter().filter(|told| told.contains(word)).count();
        assert_eq!((of_roles("Master"), of_roles("Replica")), (1, 1), "{how}: {order:?}");
        let granted: Vec<&String> =
            order.iter().filter(|told| told.contains("ted") || told.contains("sed")).collect();
        assert_eq!(granted, ["n2 Granted", "r Released", "r Granted", "r Released"], "{how}");
        assert!(order.contains(&"n2 Elsewhere".to_owned()), "{how}: {order:?}");
    }
}

/// The hold moves with the slot: it is neither granted again nor lost.
#[test]
fn a_slot_is_moved_with_its_lock() {
    let rows = [
        (
            "reshard = { to = \"n1\" }",
            ["Migrating@17000", "Importing@17000", "Whole@17000", "Elsewhere@17000"],
        ),
        (
            "reshard = { slots = \"8700-8720\", to = \"n1\", step = \"500ms\" }",
            ["Migrating@17000", "Importing@17000", "Whole@18000", "Elsewhere@18000"],
        ),
        (
            "reshard = { of = \"lock\", to = \"n1\", step = \"4s\" }",
            ["Migrating@17000", "Importing@17000", "Whole@25000", "Elsewhere@25000"],
        ),
    ];
    for (fault, marks) in rows {
        let told = told(&history(&format!("[fault.f]\n{fault}\nat = \"17s\"\n")));
        for mark in marks {
            let at = mark.split('@').nth(1).and_then(|at| at.parse::<i64>().ok()).expect("a time");
            let (word, host) = match mark.split('@').next() {
                Some(word @ ("Migrating" | "Elsewhere")) => (word, "n2"),
                word => (word.expect("a word"), "n1"),
            };
            let is = |told: &&String| {
                let when = told.split('@').nth(1).and_then(|at| at.parse::<i64>().ok()).unwrap_or_default();
                told.starts_with(&format!("{host} {word}@")) && (at..at + 20).contains(&when)
            };
            assert!(told.iter().any(|told| is(&told)), "{fault}: {mark} is not in {told:?}");
        }
        let locks = told.iter().filter(|told| !told.contains("e@") && !told.contains("ing@"));
        let locks: Vec<&str> = locks.filter_map(|told| told.split('@').next()).collect();
        assert_eq!(locks, ["n2 Granted", "n1 Released", "n1 Granted", "n1 Released"], "{fault}");
        assert!(told.iter().all(|told| !told.contains(&format!("{:?}", Serving::Closed))), "{told:?}");
    }
}

/// The hold moves with the slot, within a few ticks and messages, and no node answers for a part of
/// the slot.
#[test]
fn a_slot_is_moved_by_the_masters_themselves() {
    for slots in ["", "slots = \"8700-8720\", ", "of = \"lock\", "] {
        let fault = format!("[fault.f]\nreshard = {{ {slots}to = \"n1\", atomic = true }}\nat = \"17s\"\n");
        let history = history_on("valkey-9.1", &fault);
        let told = told(&history);
        let at = |what: &str| {
            let found = told.iter().find_map(|told| told.strip_prefix(&format!("{what}@")));
            found.and_then(|at| at.parse::<i64>().ok()).unwrap_or_else(|| panic!("no {what} in {told:?}"))
        };
        let (taken, lost) = (at("n1 Whole"), at("n2 Elsewhere"));
        assert!((17_000..17_250).contains(&taken) && (taken..taken + 5).contains(&lost), "{slots}: {told:?}");
        assert!(
            !told.iter().any(|told| told.contains("Migrating") || told.contains("Importing")),
            "{told:?}"
        );
        let locks = told.iter().filter(|told| !told.contains("e@"));
        let locks: Vec<&str> = locks.filter_map(|told| told.split('@').next()).collect();
        assert_eq!(locks, ["n2 Granted", "n1 Released", "n1 Granted", "n1 Released"], "{slots}");
        let exports = history.events.iter().filter_map(|event| match &event.kind {
            EventKind::Cluster { event, about } if &**event == "exported" => Some(about.to_string()),
            _ => None,
        });
        let exports: Vec<String> = exports.collect();
        assert!(exports.len() == 1 && exports[0].ends_with(": success"), "{slots}: {exports:?}");
    }
}

/// The master of the lock is the master of its slot, and the same holds for the replica.
#[test]
fn the_master_of_a_lock_is_the_master_of_its_slot() {
    let rows = [
        ("", "n2 crashes"),
        ("[fault.f]\nreshard = { to = \"n3\" }\nat = \"17s\"\n", "n3 crashes"),
        ("[fault.f]\nfailover = { replica = \"@replica\" }\nat = \"17s\"\n", "r crashes"),
    ];
    for (before, crash) in rows {
        let history = history(&format!("{before}[fault.z]\ncrash = \"@master\"\nat = \"20s\"\n"));
        assert_eq!(history.faults.last().map(|fault| &*fault.words), Some(crash), "{before}");
    }
}

/// A fault waits for the promotion by an election, and not for a master that only starts again.
#[test]
fn a_fault_begins_after_an_election_and_not_after_a_restart() {
    let restart = "[fault.a]\ncrash = \"n2\"\nat = \"5s\"\nfor = \"100ms\"\n";
    let crash = "[fault.a]\ncrash = \"n2\"\nat = \"5s\"\n";
    let mark = "[fault.b]\ncommand = { node = \"n1\", run = [\"PING\"] }\non = { event = \"promoted\", delay = \"1s\" }\n";
    let marks = |faults: &str| {
        let history = history(&format!("{faults}{mark}"));
        let is_master = |kind: &EventKind| matches!(kind, EventKind::Became { role: Role::Master });
        let promoted = history.events.iter().find(|event| is_master(&event.kind) && event.at.as_millis() > 0);
        let marked = history.faults.iter().find(|fault| &*fault.name == "b");
        (promoted.map(|event| event.at.as_millis()), marked.map(|fault| fault.from.as_millis()))
    };
    let (promoted, marked) = marks(crash);
    assert_eq!(marked, promoted.map(|at| at + 1_000));
    assert!(promoted.is_some());
    assert_eq!(marks(restart).1, None);
}
