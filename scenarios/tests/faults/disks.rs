//! Data on a disk survives a crash, but not the loss of the disk.

use std::collections::BTreeMap;

use lockstorm::judge::history::{Call, EventKind, History, Life, LossCause, Outcome, Role};
use lockstorm_world::TraceRetention;

use super::play;

/// The faults shown in this file: on a node without a disk they are crashes.
pub(super) const SHOWN: &[&str] = &["lose_disk", "disk_fails", "disk_full"];

/// Runs a group with three Sentinels, `s1` to `s3`.
fn history(faults: &str) -> History {
    history_of("s", 3, faults)
}

/// Runs the same group with `count` Sentinels of another name.
fn history_of(sentinels: &str, count: u32, faults: &str) -> History {
    let text = format!(
        r#"
[node.m]
durability = "aof-always"
[node.r]
replica_of = "m"
[sentinel.{sentinels}]
count = {count}
down_after = "2s"
[lock]
lease = "60s"
[client.c]
nodes = ["m"]
steps = [{{ at = "15s", try_acquire = {{}} }}, {{ at = "40s", release = {{}} }}]
[run]
storm = "40s"
{faults}"#
    );
    play("disks", &text, TraceRetention::Nothing).history
}

/// The events of a Sentinel from this second on.
fn said(history: &History, host: &str, from_secs: i64) -> Vec<String> {
    let of_host = history
        .events
        .iter()
        .filter(|event| history.host_name(event.host) == host && event.at.as_millis() >= from_secs * 1_000);
    of_host
        .filter_map(|event| match &event.kind {
            EventKind::Sentinel { event, .. } => Some(event.to_string()),
            _ => None,
        })
        .collect()
}

#[test]
fn a_node_keeps_its_data_over_a_crash_and_not_over_the_loss_of_its_disk() {
    for (fault, lost) in [("crash", false), ("lose_disk", true)] {
        let history = history(&format!("[fault.f]\n{fault} = \"m\"\nat = \"20s\"\nfor = \"500ms\"\n"));
        let gone = |kind: &EventKind| matches!(kind, EventKind::Vanished { how: LossCause::Crash, .. });
        assert_eq!(history.events.iter().any(|event| gone(&event.kind)), lost, "{fault}");
    }
}

#[test]
fn a_sentinel_keeps_its_id_over_a_crash_and_not_over_the_loss_of_its_disk() {
    for (fault, lost) in [("crash", false), ("lose_disk", true)] {
        let history = history(&format!("[fault.f]\n{fault} = \"s1\"\nat = \"20s\"\nfor = \"500ms\"\n"));
        let met = |host: &str| said(&history, host, 20).iter().any(|event| event == "+sentinel");
        assert_eq!((met("s1"), met("s2")), (lost, lost), "{fault}");
    }
}

/// Sentinels make each node save its new role with CONFIG REWRITE. Regression: a promoted node came
/// back as the replica that it was at first, and a deposed master as a master.
#[test]
fn nodes_came_back_in_their_first_roles_whatever_sentinels_had_made_of_them() {
    let failover = "[fault.m]\ncrash = \"m\"\nat = \"20s\"\nfor = \"6s\"\n";
    for (again, lost, has_no_master) in
        [("m", "crash", false), ("r", "crash", false), ("r", "lose_disk", true)]
    {
        // The second fault is too short for Sentinels to take the node for down.
        let second = format!("[fault.again]\n{lost} = \"{again}\"\nat = \"39s\"\nfor = \"500ms\"\n");
        let history = history(&format!("{failover}{second}"));
        let mut roles = BTreeMap::from([("m", Role::Master), ("r", Role::Replica)]);
        for event in history.events.iter().filter(|event| event.at.as_millis() < 40_000) {
            if let EventKind::Became { role } = event.kind {
                roles.insert(history.host_name(event.host), role);
            }
        }
        let expected =
            [("m", Role::Replica), ("r", if has_no_master { Role::Replica } else { Role::Master })];
        assert_eq!(roles, BTreeMap::from(expected), "{lost} of {again}");
    }
}

/// `@leader` is no Sentinel before a failover, and then the elected one.
#[test]
fn the_leader_is_the_sentinel_that_was_elected_last() {
    let faults = r#"
[fault.too-early]
crash = "@leader"
at = "19s"
[fault.master]
crash = "m"
at = "20s"
[fault.f]
pause = "@leader"
at = "30s"
for = "1s"
"#;
    let history = history(faults);
    let elected = history.events.iter().find(
        |event| matches!(&event.kind, EventKind::Sentinel { event, .. } if **event == *"+elected-leader"),
    );
    let leader = history.host_name(elected.expect("the master is replaced").host);
    let told: Vec<&str> = history.faults.iter().map(|fault| &*fault.words).collect();
    assert_eq!(told, ["m crashes".to_owned(), format!("{leader} stands still")]);
}

/// Without any two of five Sentinels the others are a majority and elect a leader; without three
/// they are not.
#[test]
fn a_minority_of_sentinels_leaves_enough_to_fail_over() {
    for (lost, crashes, is_replaced) in
        [("\"@sentinel-minority\"", 2, true), ("[\"s1\", \"s3\", \"s4\"]", 3, false)]
    {
        let faults = format!(
            "[fault.of-sentinels]\ncrash = {lost}\nat = \"18s\"\n[fault.master]\ncrash = \"m\"\nat = \"20s\"\n"
        );
        let history = history_of("s", 5, &faults);
        let down = |kind: &EventKind| matches!(kind, EventKind::Life { life: Life::Crashed });
        let of_sentinels =
            history.events.iter().filter(|event| history.host_name(event.host).starts_with('s'));
        let crashed = of_sentinels.filter(|event| down(&event.kind)).count();
        let promoted = |kind: &EventKind| matches!(kind, EventKind::Became { role: Role::Master });
        let replaced =
            history.events.iter().any(|event| event.at.as_millis() > 20_000 && promoted(&event.kind));
        assert_eq!((crashed, replaced), (crashes, is_replaced), "without {lost}");
    }
}

/// A Sentinel is not a master and takes no writes, but it is not a replica either.
#[test]
fn a_replica_is_a_node_whatever_the_sentinels_are_called() {
    for sentinels in ["a", "s"] {
        let history =
            history_of(sentinels, 3, "[fault.f]\npause = \"@replica\"\nat = \"20s\"\nfor = \"1s\"\n");
        let told: Vec<&str> = history.faults.iter().map(|fault| &*fault.words).collect();
        assert_eq!(told, ["r stands still"], "Sentinels {sentinels}1 to {sentinels}3");
    }
}

/// The outcome of one try per second from the third to the ninth, while the disk refuses writes
/// from 4.5 s to 7.5 s; a try writes, and so does its release.
fn tries(node: &str, fault: &str) -> Vec<String> {
    let steps: Vec<String> = (3..10)
        .map(|at| {
            format!("{{ at = \"{at}s\", try_acquire = {{ lease = \"300ms\" }} }}, {{ release = {{}} }}")
        })
        .collect();
    // Each try has its own client: a script ends with its first failed try.
    let clients: Vec<String> =
        steps.iter().enumerate().map(|(at, steps)| format!("[client.c{at}]\nsteps = [{steps}]\n")).collect();
    let text = format!(
        "[node.m]\n{node}\n[lock]\nsubject = \"token-lock\"\n[network]\nlatency = \"1ms\"\n{}[fault.f]\n{fault} = \"m\"\n\
         at = \"4.5s\"\nfor = \"3s\"\n[run]\nstorm = \"20s\"\n",
        clients.concat()
    );
    let history = play("disks", &text, TraceRetention::Nothing).history;
    let mut tries = Vec::new();
    for event in &history.events {
        match &event.kind {
            EventKind::Invoke { op, call: Call::Acquire { .. }, .. } => tries.push((*op, "?".to_owned())),
            EventKind::Return { op, outcome } => {
                let Some((_, said)) = tries.iter_mut().find(|(of, _)| of == op) else { continue };
                *said = match outcome {
                    Outcome::Failed { message, .. } => message.to_string(),
                    other => format!("{other:?}"),
                };
            }
            _ => {}
        }
    }
    tries.into_iter().map(|(_, said)| said).collect()
}

/// A node with an AOF replies to the write that meets the fault, and refuses later writes until the
/// disk takes the rest. A node that syncs each write cannot keep its promise, and ends. A node with
/// snapshots notices the first failed one, and tries the next one six seconds later. A node that
/// keeps nothing notices nothing.
#[test]
fn a_disk_that_takes_nothing_is_told_by_a_node_that_writes_to_it() {
    for (fault, words) in [("disk_full", "No space left on device"), ("disk_fails", "Input/output error")] {
        let short = |tries: Vec<String>| -> String {
            let short = |said: &String| match said.as_str() {
                "Ok" => "ok",
                said if said.contains(&format!("Errors writing to the AOF file: {words}")) => "aof",
                said if said.contains("Redis is configured to save RDB snapshots") => "rdb",
                _ => "gone",
            };
            tries.iter().map(short).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(short(tries("", fault)), "ok ok ok ok ok ok ok", "{fault}");
        let everysec = short(tries("durability = \"aof-everysec\"", fault));
        assert_eq!(everysec, "ok ok ok aof aof ok ok", "{fault}");
        let always = short(tries("durability = \"aof-always\"", fault));
        assert_eq!(always, "ok ok gone gone gone gone gone", "{fault}");
        // The save that begins at 5 s fails.
        let saves = short(tries("config = { save = \"1 1\" }", fault));
        assert!(saves.starts_with("ok ok") && saves.contains("rdb"), "{fault}: {saves}");
    }
}
