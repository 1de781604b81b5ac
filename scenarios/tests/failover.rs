//! How long after a failover of a cluster its clients get locks again, and what they ask of the nodes meanwhile.

use std::collections::BTreeMap;

use lockstorm::{
    history::{EventKind, History, Serving},
    plan::Plan,
    run::{self, Engine, Outcome},
    scenario::parse,
};
use lockstorm_sim::world::{Event, TraceRetention};

/// Three masters, of which `n2` has the lock and a replica; four clients. A packet takes a millisecond.
const CLUSTER: &str = r#"
[run]
storm = "60s"
calm = "1s"
[node.n]
cluster = true
count = 3
config = { cluster-node-timeout = "2000", cluster-require-full-coverage = "no" }
[node.r]
replica_of = "n2"
config = { cluster-node-timeout = "2000" }
[network]
latency = "1ms"
[lock]
lease = "10s"
[client.c]
count = 4
"#;

/// After the promotion, in milliseconds: the look at the views of the nodes that has just missed it ends 100 ms after its first answer,
/// the next one begins 500 ms later at most, and takes as long again; each has a connection to make and two questions, and a connection
/// takes two packets and two requests there and back. A request then takes a connection and two scripts. Each of the four clients
/// gets the lock after the one before has given it back, and one that was refused asks again after 50 ms.
const MOST_MS: i64 = (100 + 8) + 500 + (100 + 8) + 10 + 4 * (50 + 10);

fn run(text: &str, seed: u64, keep: TraceRetention) -> Outcome {
    let source = parse("failover.toml", text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let plan = Plan::draw(&source.variants[0].scenario, seed);
    run::run(&plan, "failover", Engine::Event, keep)
}

/// From the moment `r` has the slot to the first grant of the last client that gets one, in milliseconds.
fn delay(history: &History) -> i64 {
    let of_r = || history.events.iter().filter(|event| history.host_name(event.host) == "r");
    let serves = |kind: &EventKind| matches!(kind, EventKind::Serves { how: Serving::Whole, .. });
    let promoted = of_r().find(|event| serves(&event.kind)).expect("it is promoted").at;
    let mut first = BTreeMap::new();
    for event in of_r() {
        if let EventKind::Granted { owner, .. } = event.kind {
            first.entry(owner).or_insert(event.at);
        }
    }
    assert_eq!(first.len(), 4, "each client gets it");
    let last = first.into_values().max().expect("of four");
    i64::try_from(last.since(promoted).as_millis()).expect("short")
}

/// A client missed the failover until its look of every five seconds, and slept for the rest of its pause: the last of four got the lock
/// after 5.2 s to 6.5 s.
#[test]
fn a_client_missed_a_failover_until_its_next_look() {
    let polls = r#"steps = [{ at = "20.6s", poll = { every = "50ms", until = "55s" } }, { release = {} }]"#;
    let waits =
        r#"steps = [{ at = "21s", acquire = { retry = true } }, { sleep = "10ms" }, { release = {} }]"#;
    let mut told = Vec::new();
    for fault in [
        r#"crash = "n2""#,
        r#"pause = "n2""#,
        r#"cut = { from = "n2", to = ["n1", "n3", "r", "c1", "c2", "c3", "c4"] }"#,
    ] {
        for (how, steps) in [("polls", polls), ("waits", waits)] {
            let text = format!("{CLUSTER}{steps}\n[fault.f]\n{fault}\nat = \"20.5s\"\nfor = \"40s\"\n");
            for seed in 0..6 {
                let delay = delay(&run(&text, seed, TraceRetention::Nothing).history);
                told.push((delay, format!("{delay} ms with {fault}, a client that {how}, seed {seed}")));
            }
        }
    }
    let all = told.iter().map(|(_, line)| line.as_str()).collect::<Vec<_>>().join("\n");
    assert!(told.iter().all(|(delay, _)| *delay <= MOST_MS), "more than {MOST_MS} ms:\n{all}");
    println!("{all}");
}

/// How often each client of [`CLUSTER`] has begun a connection, and asked a node for the slots, from 25 s to 55 s.
fn asked(text: &str) -> (usize, usize) {
    let outcome = run(text, 0, TraceRetention::All);
    let (mut dials, mut looks) = (0, 0);
    for record in &outcome.records {
        if !(25_000..55_000).contains(&record.at.as_millis()) {
            continue;
        }
        match &record.event {
            Event::Packet { flags, .. } if *flags == "SYN" => {
                dials += usize::from(record.host.as_ref().is_some_and(|(host, _)| &**host == "c1"));
            }
            Event::Request { client, command, .. } if &**client == "c1" => {
                let command = String::from_utf8_lossy(command).to_ascii_uppercase();
                looks += usize::from(command.contains("CLUSTER") && command.contains("SLOTS"));
            }
            _ => {}
        }
    }
    (dials, looks)
}

/// A dead cluster is dialled in looks, the pause between which doubles twice while none answers, to 400 ms at least, at each of its four
/// nodes, and by the caller, whose pauses are half a second at least. A node whose slots are lost is dialled by its callers alone, and
/// of the others three are asked in a look, of which there is one in 100 ms at most.
#[test]
fn a_cluster_that_serves_no_slot_is_asked_within_bounds() {
    let steps = r#"steps = [{ at = "20s", poll = { every = "50ms", until = "59s" } }, { release = {} }]"#;
    for (what, fault, most_dials, most_looks) in [
        ("all are dead", r#"crash = ["n1", "n2", "n3", "r"]"#, 30_000 / 400 * 4 + 30_000 / 500, 0),
        ("no replica is left", r#"crash = ["n2", "r"]"#, 30_000 / 500 + 30_000 / 100 * 2, 30_000 / 100 * 3),
    ] {
        let text = format!("{CLUSTER}{steps}\n[fault.f]\n{fault}\nat = \"20.5s\"\nfor = \"39s\"\n");
        let (dials, looks) = asked(&text);
        assert!(dials <= most_dials && looks <= most_looks, "{what}: {dials} dials and {looks} looks");
        assert!(dials + looks > 10, "{what}: it goes on asking: {dials} dials and {looks} looks");
    }
}
