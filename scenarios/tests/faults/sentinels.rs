//! Faults by an operator of Sentinels: planned failovers.

use lockstorm::{
    judge::history::{EventKind, Role},
    run::Outcome,
};
use lockstorm_world::{Event, TraceRetention};

use super::play;

/// The time of the fault in milliseconds. No Sentinel sends the master INFO in the next seconds.
const AT: i64 = 15_000;

/// The run of a group whose master a Sentinel replaces.
fn run(coordinated: bool) -> Outcome {
    let text = format!(
        r#"
[node.m]
server = "valkey-9.1"
[node.r]
replica_of = "m"
server = "valkey-9.1"
[sentinel.s]
count = 3
server = "valkey-9.1"
[lock]
lease = "60s"
[network]
latency = "1ms"
[client.c]
nodes = ["m"]
steps = [{{ at = "1s", try_acquire = {{}} }}, {{ release = {{}} }}]
[fault.f]
failover = {{ sentinel = "s1", master = "m", coordinated = {coordinated} }}
at = "{AT}ms"
[run]
storm = "40s"
"#
    );
    play("sentinels", &text, TraceRetention::All)
}

/// The commands that a host reads after the fault, from another host or at its console, as far as
/// they are about roles and pauses. The numbers of milliseconds in them are left out.
fn orders(outcome: &Outcome, host: &str) -> Vec<String> {
    let orders = outcome.records.iter().filter_map(|record| {
        let (at, _) = record.host.as_ref()?;
        let Event::Request { command, .. } = &record.event else { return None };
        let text = String::from_utf8_lossy(command);
        let words: Vec<&str> = text.lines().skip(2).step_by(2).collect();
        let is_order = match words[..] {
            ["FAILOVER" | "SLAVEOF", ..] | ["SENTINEL", "FAILOVER", ..] => true,
            ["CLIENT", what, ..] => what.ends_with("PAUSE"),
            _ => false,
        };
        let is_time = |word: &str| word != "6379" && word.parse::<u32>().is_ok();
        let shown: Vec<&str> = words.iter().copied().filter(|word| !is_time(word)).collect();
        (**at == *host && record.at.as_millis() >= AT && is_order).then(|| shown.join(" "))
    });
    orders.collect()
}

/// The changes of roles after the start, with their times in milliseconds.
fn roles(outcome: &Outcome) -> Vec<(&str, Role, i64)> {
    let history = &outcome.history;
    let became = history.events.iter().filter_map(|event| match &event.kind {
        EventKind::Became { role } => Some((history.host_name(event.host), *role, event.at.as_millis())),
        _ => None,
    });
    became.filter(|(.., at)| *at > 0).collect()
}

#[test]
fn a_planned_failover_leaves_the_master_alone_unless_it_is_coordinated() {
    let plain = run(false);
    assert_eq!(orders(&plain, "s1"), ["SENTINEL FAILOVER m"]);
    assert_eq!(orders(&plain, "r"), ["SLAVEOF NO ONE"]);
    assert!(orders(&plain, "m").iter().all(|order| order == "SLAVEOF r 6379"), "{:?}", orders(&plain, "m"));
    let [("r", Role::Master, promoted), ("m", Role::Replica, followed)] = roles(&plain)[..] else {
        panic!("{:?}", roles(&plain))
    };
    assert!((9_900..12_500).contains(&(followed - promoted)), "two masters: {promoted} {followed}");
    let coordinated = run(true);
    assert_eq!(orders(&coordinated, "s1"), ["SENTINEL FAILOVER m COORDINATED"]);
    assert_eq!(
        orders(&coordinated, "m"),
        ["CLIENT PAUSE WRITE", "FAILOVER TO r 6379 TIMEOUT", "CLIENT UNPAUSE"]
    );
    assert_eq!(orders(&coordinated, "r"), ["CLIENT UNPAUSE"]);
    let [("m", Role::Replica, followed), ("r", Role::Master, promoted)] = roles(&coordinated)[..] else {
        panic!("{:?}", roles(&coordinated))
    };
    assert!((0..50).contains(&(promoted - followed)), "no master: {followed} {promoted}");
}

#[test]
fn a_planned_failover_says_who_hands_over() {
    let words = |coordinated| run(coordinated).history.faults[0].words.to_string();
    assert_eq!(words(false), "s1 replaces m by a replica");
    assert_eq!(words(true), "s1 has m hand over to a replica");
}
