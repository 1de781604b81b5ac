//! The effects of each fault on the wire, the clocks and the lives of hosts: alone, and overlapping
//! with others.
//!
//! A client acquires and releases a lock once per second, over links of 1 ms: undisturbed, each
//! acquisition takes 2 ms. A row lists the differences from the undisturbed run, and everything
//! else must be equal to it.

mod addresses;
mod clocks;
mod cluster;
mod disks;
mod hosts;
mod links;
mod messages;
mod sentinels;

use std::collections::BTreeMap;

use lockstorm::{
    file::{fault, plan::Plan, scenario::parse},
    judge::{
        history::{self, Call, ClockId, EventKind, History},
        verdict::Match,
    },
    run::runner::{Case, judge},
    run::{self, Engine, Outcome},
};
use lockstorm_world::{Event, TraceRetention, time::True};

const SETTING: &str = r#"
[node.m]
[node.r]
replica_of = "m"

[lock]
lease = "30s"
response_timeout = "3s"

[network]
latency = "1ms"

[client.c]
steps = [
    { at = "1s", try_acquire = {} }, { release = {} }, { at = "2s", try_acquire = {} }, { release = {} },
    { at = "3s", try_acquire = {} }, { release = {} }, { at = "4s", try_acquire = {} }, { release = {} },
    { at = "5s", try_acquire = {} }, { release = {} }, { at = "6s", try_acquire = {} }, { release = {} },
]

[run]
storm = "8s"
calm = "2s"
"#;

/// The observations of a run, by aspect.
type Seen = BTreeMap<String, String>;

/// The run of a file with seed 0.
fn play(name: &str, text: &str, keep: TraceRetention) -> Outcome {
    let source = parse(&format!("{name}.toml"), text).unwrap_or_else(|error| panic!("{error}"));
    let plan = Plan::draw(&source.variants[0].scenario, 0);
    run::run(&plan, name, Engine::Event, keep)
}

fn run(faults: &str) -> Outcome {
    play("faults", &format!("{SETTING}{faults}"), TraceRetention::All)
}

fn ms(at: True) -> i64 {
    at.as_millis()
}

/// The start and the duration of each acquisition, in milliseconds.
fn acquisitions(history: &History, until: i64) -> String {
    let mut open = BTreeMap::new();
    let mut all = Vec::new();
    for event in history.events.iter().filter(|event| ms(event.at) <= until) {
        match &event.kind {
            EventKind::Invoke { op, call: Call::Acquire { .. }, .. } => {
                open.insert(*op, all.len());
                all.push((event.at, "?".to_owned()));
            }
            EventKind::Return { op, outcome } => {
                let Some(at) = open.remove(op) else { continue };
                let took = ms(event.at) - ms(all[at].0);
                let ok = matches!(outcome, lockstorm::judge::history::Outcome::Ok);
                all[at].1 = if ok { took.to_string() } else { format!("{took}!") };
            }
            _ => {}
        }
    }
    let all: Vec<String> = all.into_iter().map(|(at, took)| format!("{}+{took}", ms(at))).collect();
    all.join(" ")
}

/// The observations of a run; those of the client only up to `until`.
fn seen(outcome: &Outcome, until: i64) -> Seen {
    let mut seen = Seen::new();
    let mut see = |aspect: &str, what: String| {
        let entry: &mut String = seen.entry(aspect.to_owned()).or_default();
        if !entry.is_empty() && !what.is_empty() {
            entry.push(' ');
        }
        entry.push_str(&what);
    };
    let history = &outcome.history;
    see("acquired", acquisitions(history, until));
    for event in &history.events {
        let (host, at) = (history.host_name(event.host), ms(event.at));
        match &event.kind {
            EventKind::Life { life } => see("lives", format!("{host}:{life:?}@{at}")),
            EventKind::Granted { .. } if at <= until => see("granted", format!("{host}@{at}")),
            EventKind::Became { role } => see("roles", format!("{host}:{role:?}@{at}")),
            _ => {}
        }
    }
    for record in &outcome.records {
        let Some((host, _)) = &record.host else { continue };
        match &record.event {
            Event::Packet { to, flags: "SYN", .. } if **host == *"c" && ms(record.at) <= until => {
                see("dialled", format!("{to}@{}", ms(record.at)))
            }
            Event::Packet { to, flags: "FIN" | "RST", .. } if **to == *"c" && ms(record.at) <= until => {
                see("hung up", format!("{host}@{}", ms(record.at)))
            }
            Event::Request { client, command, .. } if *client == *host => {
                let text = String::from_utf8_lossy(command);
                let words: Vec<&str> = text.lines().skip(2).step_by(2).collect();
                see("console", format!("{host}:{}@{}", words.join("_"), ms(record.at)));
            }
            _ => {}
        }
    }
    for (at, clock) in history.clocks.iter().enumerate() {
        let host = &history.header.hosts[at].name;
        for s in [5, 10] {
            let (then, zero) = (True::from_secs(s), True::ZERO);
            for clock_id in ClockId::ALL {
                let off = clock.reading(clock_id, then) - clock.reading(clock_id, zero) - then.as_nanos();
                // The difference hides a step at the very beginning; no row has one there.
                if off != 0 {
                    see("clocks", format!("{host}:{clock_id:?}{:+}@{s}s", off / 1_000_000));
                }
            }
        }
    }
    for fault in &history.faults {
        let until = fault.until.map_or(String::new(), |until| ms(until).to_string());
        see("told", format!("[{} {}..{until}]", fault.words, ms(fault.from)));
    }
    seen
}

/// The differences from the undisturbed run, one line for each aspect.
fn differences(undisturbed: &Seen, seen: &Seen) -> Vec<String> {
    let mut aspects: Vec<&String> = undisturbed.keys().chain(seen.keys()).collect();
    aspects.sort();
    aspects.dedup();
    let of = |seen: &Seen, aspect: &str| seen.get(aspect).cloned().unwrap_or_default();
    let differs = |aspect: &&String| of(undisturbed, aspect) != of(seen, aspect);
    aspects.into_iter().filter(differs).map(|aspect| format!("{aspect}: {}", of(seen, aspect))).collect()
}

/// All rows.
fn rows() -> impl Iterator<Item = &'static Row> {
    [links::ROWS, hosts::ROWS, clocks::ROWS, messages::ROWS].into_iter().flatten()
}

/// Compares the run up to its end.
const WHOLE: i64 = i64::MAX;

/// One fault or several, and the differences that they make.
struct Row {
    name: &'static str,
    /// The end of the comparison of the client's actions, in milliseconds: its later recovery is
    /// not compared.
    until: i64,
    faults: &'static str,
    differs: &'static [&'static str],
}

#[test]
fn every_fault_does_what_it_says_and_nothing_else() {
    let undisturbed = run("");
    let mut wrong = Vec::new();
    for Row { name, until, faults, differs } in rows() {
        let found = differences(&seen(&undisturbed, *until), &seen(&run(faults), *until));
        if found != *differs {
            wrong.push(format!("{name}\n  expected {differs:#?}\n  found {found:#?}"));
        }
    }
    assert!(wrong.is_empty(), "undisturbed: {:#?}\n{}", seen(&undisturbed, WHOLE), wrong.join("\n"));
}

#[test]
fn there_is_a_row_for_every_fault() {
    for (name, _) in fault::LIST {
        let given = format!("{name} = ");
        let is_in_a_row = rows().any(|row| row.faults.lines().any(|line| line.starts_with(&given)));
        assert!(
            is_in_a_row || [disks::SHOWN, cluster::SHOWN, addresses::SHOWN].concat().contains(name),
            "no row has {name}"
        );
    }
}

/// The checkers' measures of a run, and its acquisitions.
fn measured(text: &str) -> (Vec<String>, String) {
    let outcome = play("overlap", text, TraceRetention::Nothing);
    let findings = lockstorm::judge::checker::check(&outcome.history).into_iter();
    let measured = findings.map(|finding| format!("{}: {:?}", finding.checker, finding.measures)).collect();
    (measured, acquisitions(&outcome.history, WHOLE))
}

/// Two faults of one kind on one host or link, one within the other, and the longer one alone:
/// after the end of the shorter one there is no difference.
#[test]
fn a_short_fault_within_a_long_one_changes_nothing_after_it() {
    // The lock is released at 6 s, while the waiter stands still or is down until 20 s.
    const WAITER: &str = r#"
[node.m]
[lock]
lease = "60s"
[client.c2]
steps = [{ acquire = {} }, { work = { for = "6s" } }, { release = {} }]
[client.c1]
steps = [{ at = "500ms", acquire = {} }, { release = {} }]
[run]
storm = "30s"
calm = "60s"
"#;
    // The only try comes at 5 s, when only the longer fault is in force.
    const SLOWED: &str = r#"
[node.m]
[lock]
lease = "5s"
[client.c1]
steps = [{ at = "5s", try_acquire = {} }, { release = {} }]
[client.c2]
steps = [{ at = "20s", try_acquire = {} }]
[run]
storm = "30s"
"#;
    let slow = |by: &str| format!("slow = {{ from = \"c1\", to = \"m\", by = \"{by}\" }}");
    let lossy = "loss = { from = \"c1\", to = \"m\", share = \"100%\" }".to_owned();
    let rows = [
        (WAITER, "pause = \"c1\"".to_owned(), "pause = \"c1\"".to_owned()),
        (WAITER, "suspend = \"c1\"".to_owned(), "suspend = \"c1\"".to_owned()),
        (WAITER, "crash = \"c1\"".to_owned(), "crash = \"c1\"".to_owned()),
        (SLOWED, slow("500ms"), slow("100ms")),
        (SLOWED, lossy.clone(), lossy),
    ];
    for (scenario, long, short) in rows {
        let alone = format!("{scenario}[fault.a]\n{long}\nat = \"1s\"\nfor = \"19s\"\n");
        let overlapped = format!("{alone}[fault.b]\n{short}\nat = \"2s\"\nfor = \"1s\"\n");
        assert_eq!(measured(&overlapped), measured(&alone), "{short}");
    }
    let (_, acquired) =
        measured(&format!("{SLOWED}[fault.a]\n{}\nat = \"1s\"\nfor = \"8s\"\n", slow("500ms")));
    assert!(
        acquired.starts_with("5000+50"),
        "half a second for the link and a millisecond or two: {acquired}"
    );
}

/// A waiter with two overlapping crashes does not want the lock while it is down, and stalls
/// nothing.
#[test]
fn the_dead_are_blamed_for_nothing() {
    const TEXT: &str = r#"
[node.m]
[lock]
lease = "60s"
[client.c2]
steps = [{ acquire = {} }, { work = { for = "30s" } }, { release = {} }]
[client.c1]
steps = [{ at = "1s", acquire = {} }, { release = {} }]
[fault.a]
crash = "c1"
at = "2s"
for = "3s"
[fault.b]
crash = "c1"
at = "4s"
for = "4s"
[run]
storm = "20s"
calm = "100s"
[expect]
l1 = "holds"
progress = "holds"
wake-ups = "holds"
"#;
    let source = parse("overlap_crash.toml", TEXT).unwrap_or_else(|error| panic!("{error}"));
    let variant = &source.variants[0];
    let plan = Plan::draw(&variant.scenario, 0);
    let outcome = run::run(&plan, "overlap_crash", Engine::Event, TraceRetention::Nothing);
    let judged = judge(variant, Case { source: 0, variant: 0, seed: 0 }, &outcome);
    assert_eq!(judged.verdict(), Match::AsExpected, "{:#?}", judged.matches);
    let history = &outcome.history;
    let of_c1 = history.events.iter().filter(|event| history.host_name(event.host) == "c1");
    let lives = of_c1.filter_map(|event| match event.kind {
        EventKind::Life { life } => Some(format!("{life:?}@{}", ms(event.at))),
        _ => None,
    });
    // It starts with the end of the second crash, and asks again.
    assert_eq!(lives.collect::<Vec<_>>().join(" "), "Started@0 Crashed@2000 Started@8000");
}

/// Each call has ten seconds by default, with all its repeats. Regression: on a server that hangs,
/// a try took 55 s, and a release 49 s.
#[test]
fn a_node_that_hangs_kept_callers_for_a_minute() {
    const TEXT: &str = r#"
[node.m]
[lock]
lease = "10m"
[client.c1]
steps = [{ at = "1s", acquire = {} }, { at = "3s", release = {} }]
[client.c2]
nodes = ["m"]
steps = [{ at = "3s", try_acquire = {} }]
[client.c3]
steps = [{ at = "3s", acquire = {} }]
[fault.f]
pause = "m"
at = "2s"
for = "100s"
[run]
storm = "100s"
"#;
    let history = play("hangs", TEXT, TraceRetention::Nothing).history;
    let (mut begun, mut ended) = (BTreeMap::new(), Vec::new());
    for event in &history.events {
        match &event.kind {
            EventKind::Invoke { op, call, .. } if ms(event.at) >= 3_000 => {
                begun.insert(*op, (*call, event.at));
            }
            EventKind::Return { op, outcome: history::Outcome::Failed { .. } } => {
                let (call, at) = begun.remove(op).expect("a call after 3 s");
                let releases = matches!(call, Call::Release);
                ended.push((history.host_name(event.host), releases, ms(event.at) - ms(at)));
            }
            _ => {}
        }
    }
    ended.sort_unstable();
    // Both are repeated for as long as a call may last.
    assert_eq!(ended, [("c1", true, 10_000), ("c2", false, 10_000), ("c3", false, 10_000)]);
}

/// A crashed client holds nothing any more: the second crash hits the client that holds the lock
/// then.
#[test]
fn the_holder_is_among_the_living() {
    const TEXT: &str = r#"
[node.m]
[lock]
lease = "2s"
[client.c1]
steps = [{ at = "1s", acquire = {} }, { sleep = "1h" }]
[client.c2]
steps = [{ at = "1.5s", acquire = { lease = "60s" } }, { sleep = "1h" }]
[fault.holder]
crash = "@holder"
at = "2s"
every = "5s"
[run]
storm = "10s"
"#;
    let outcome = play("holder", TEXT, TraceRetention::Nothing);
    let words: Vec<&str> = outcome.history.faults.iter().map(|fault| &*fault.words).collect();
    assert_eq!(words, ["c1 crashes", "c2 crashes"]);
}

/// A single fault may begin after the storm, which lasts eight seconds here. The end of the storm
/// ends a fault with `for`, and no other fault.
#[test]
fn the_end_of_the_storm_ends_faults_with_a_length() {
    let cut =
        |name: &str, rest: &str| format!("[fault.{name}]\ncut = {{ from = \"c\", to = \"r\" }}\n{rest}\n");
    let faults = [
        cut("early", "at = \"7s\""),
        cut("cut_short", "at = \"7s\"\nfor = \"5s\""),
        cut("late", "at = \"9s\""),
        cut("late_with_a_length", "at = \"9s\"\nfor = \"500ms\""),
        cut("repeated", "at = \"7.5s\"\nevery = \"1s\"\nfor = \"100ms\""),
    ];
    let outcome = run(&faults.concat());
    let seen = outcome.history.faults.iter().map(|fault| (&*fault.name, ms(fault.from), fault.until.map(ms)));
    let mut seen: Vec<_> = seen.collect();
    seen.sort_unstable();
    let expected = [
        ("cut_short", 7_000, Some(8_000)),
        ("early", 7_000, None),
        ("late", 9_000, None),
        ("late_with_a_length", 9_000, Some(9_000)),
        ("repeated", 7_500, Some(7_600)),
    ];
    assert_eq!(seen, expected);
}

/// The master of a lock, if a failover has left two: the one promoted last, of those that are still
/// masters.
#[test]
fn the_master_is_the_one_that_was_promoted_last() {
    let promoted = "[fault.p]\npromote = \"r\"\nat = \"1s\"\n";
    let third = "[node.r2]\nreplica_of = \"m\"\n[fault.q]\npromote = \"r2\"\nat = \"1.2s\"\n\
                 [fault.back]\nfollow = { node = \"r2\", master = \"m\" }\nat = \"1.5s\"\n";
    for (promoted, expected) in [("", "m"), (promoted, "r"), (&format!("{promoted}{third}"), "r")] {
        let crash = "[fault.z]\ncrash = \"@master\"\nat = \"2s\"\nfor = \"1s\"\n";
        let outcome = run(&format!("{promoted}{crash}"));
        let words: Vec<&str> = outcome.history.faults.iter().map(|fault| &*fault.words).collect();
        assert_eq!(words.last(), Some(&&*format!("{expected} crashes")), "{words:?}");
    }
}
