//! Several locks in one scenario, and several lines of work in one client: each lock is judged by
//! itself, and each line of work is an owner.

use std::collections::BTreeSet;

use lockstorm::{
    file::{plan::Plan, scenario::parse},
    judge::{
        checker,
        history::{EventKind, History, LossCause, Outcome, Owner},
    },
    run::{self, Engine},
};
use lockstorm_world::TraceRetention;

fn run(text: &str) -> History {
    let source = parse("several.toml", text).unwrap_or_else(|error| panic!("{error}"));
    let plan = Plan::draw(&source.variants[0].scenario, 0);
    run::run(&plan, "several", Engine::Event, TraceRetention::Nothing).history
}

/// Each grant of a node: the lock, the owner, and the time in milliseconds.
fn grants(history: &History) -> Vec<(String, String, i64)> {
    let granted = |event: &lockstorm::judge::history::Event| match event.kind {
        EventKind::Granted { lock, owner, .. } => {
            let name = history.lock(lock).name.to_string();
            let owner = history.owners[owner.0 as usize].name.to_string();
            Some((name, owner, event.at.as_millis()))
        }
        _ => None,
    };
    history.events.iter().filter_map(granted).filter(|(name, ..)| !name.contains("warm-up")).collect()
}

fn violated(history: &History) -> Vec<&'static str> {
    let findings = checker::check(history);
    findings.iter().filter(|one| one.verdict.witness().is_some()).map(|one| one.checker).collect()
}

/// The grants, each as one line of text.
fn said(history: &History) -> Vec<String> {
    grants(history).iter().map(|(lock, owner, at)| format!("{lock} {owner} @{at}")).collect()
}

#[test]
fn a_step_says_which_lock_it_is_about() {
    // c2 gets the cash that c1 has released, and not the stock that c1 still holds.
    let history = run(r#"
[node.m]
[network]
latency = "1ms"
[lock]
lease = "10s"
[lock.stock]
[lock.cash]
name = "till"
[client.c1]
steps = [
    { at = "1s", acquire = {}, of = "stock" }, { acquire = {}, of = "cash" },
    { at = "2s", release = {}, of = "cash" }, { at = "4s", release = {} },
]
[client.c2]
steps = [{ at = "3s", try_acquire = {}, of = "cash" }, { release = {} }, { try_acquire = {}, of = "stock" }]
[run]
storm = "6s"
"#);
    assert_eq!(
        said(&history),
        ["stock c1:1 @1001", "till c1:1 @1003", "till c2:1 @3001"],
        "the stock is given back at 4 s"
    );
    assert_eq!(violated(&history), [""; 0]);
}

/// Regression: the writes of a client without a hold were all attributed to the first lock of the
/// file. That lock's L3 raised a false alarm, and the broken lock passed.
#[test]
fn a_write_after_the_release_is_one_under_the_lock_that_it_was_made_for() {
    let run = |late: &str| {
        let text = r#"
[node.m]
[network]
latency = "1ms"
[resource]
[lock]
lease = "10s"
[lock.stock]
[lock.cash]
[client.c1]
steps = [
    { at = "1s", acquire = {}, of = "stock" }, { release = {} },
    { acquire = {}, of = "cash" }, { write = {} }, { release = {} },
    { at = "3s", LATE },
]
[client.c2]
steps = [
    { at = "2s", acquire = {}, of = "cash" }, { acquire = {}, of = "stock" },
    { write = {}, of = "cash" }, { write = {}, of = "stock" }, { at = "3.5s", write = {}, of = "cash" }, { write = {}, of = "stock" },
    { at = "4s", release = {} }, { release = {} },
]
[run]
storm = "6s"
"#;
        run(&text.replace("LATE", late))
    };
    // Without a named lock, a write is for the lock that was asked for last, alone or as part of
    // other work.
    let lates = [
        ("write = {}", "cash"),
        ("write = {}, of = \"cash\"", "cash"),
        ("write = {}, of = \"stock\"", "stock"),
        ("work = { for = \"50ms\", write_every = \"30ms\" }, of = \"stock\"", "stock"),
    ];
    // Between two writes of the other client.
    let late_write = 3_000..3_400;
    for (late, lock) in lates {
        let history = run(late);
        let writes = history.events.iter().filter_map(|event| match event.kind {
            EventKind::Write { lock, .. } if late_write.contains(&event.at.as_millis()) => {
                Some(&*history.lock(lock).name)
            }
            _ => None,
        });
        assert_eq!(writes.collect::<Vec<_>>(), [lock], "{late}");
        let findings = checker::check(&history);
        let l3 = findings.iter().find(|one| one.checker == "l3").expect("it is judged");
        let witness = l3.verdict.witness().unwrap_or_else(|| panic!("{late}: {:?}", l3.verdict));
        let of = witness.lock.map(|lock| &*history.lock(lock).name);
        assert_eq!(of, Some(lock), "{late}");
    }
}

#[test]
fn locks_of_one_scenario_may_be_of_different_kinds_and_subjects() {
    let text = r#"
[node.m]
[network]
latency = "1ms"
[lock.plain]
lease = "10s"
[lock.sheet]
subject = "read-write-lock"
kind = "read-write"
lease = "10s"
[client.c1]
steps = [{ at = "1s", acquire = {}, of = "plain" }, { acquire = { shared = true }, of = "sheet" }, { at = "3s", write = {} }]
[client.c2]
steps = [{ at = "2s", acquire = { shared = true }, of = "sheet" }]
[run]
storm = "6s"
"#;
    let history = run(text);
    let modes = history.events.iter().filter_map(|event| match event.kind {
        EventKind::Believes { lock, mode, .. } => Some(format!("{} {mode:?}", history.lock(lock).name)),
        _ => None,
    });
    let modes: Vec<String> = modes.collect::<BTreeSet<_>>().into_iter().collect();
    assert_eq!(modes, ["plain Exclusive", "sheet Shared"]);
    assert_eq!(violated(&history), [""; 0]);
    // The same two readers with a lock that knows no modes.
    let broken = text.replace(
        "steps = [{ at = \"2s\", acquire = { shared = true }",
        "steps = [{ at = \"2s\", acquire = {}",
    );
    let broken = broken.replace(
        "lease = \"10s\"\n[client.c1]",
        "lease = \"10s\"\ntraits = { grant = \"write-under-read\" }\n[client.c1]",
    );
    let found = checker::check(&run(&broken));
    let witnesses = found.iter().filter_map(|one| Some((one.checker, one.verdict.witness()?)));
    let witnesses: Vec<(&str, String)> =
        witnesses.map(|(checker, witness)| (checker, format!("{witness:?}"))).collect();
    assert!(witnesses.iter().any(|(checker, _)| *checker == "read-write"), "{witnesses:?}");
    for (checker, witness) in witnesses {
        assert!(!witness.contains("`plain`"), "{checker} minds the lock that is right: {witness}");
    }
}

/// A string lock and a plain lock live in one key, the one as a string and the other as a hash. The
/// plain lock's call fails while the string is there.
#[test]
fn a_string_lock_and_a_lock_in_a_hash_under_one_name_keep_each_other_out() {
    let history = run(r#"
[node.m]
[network]
latency = "1ms"
[lock]
name = "A"
lease = "2s"
[lock.string]
kind = "string"
[lock.hash]
[client.c1]
steps = [
    { at = "1s", acquire = {}, of = "string" }, { at = "2s", release = {} },
    { at = "3.5s", try_acquire = {}, of = "string" },
]
[client.c2]
steps = [{ at = "1.5s", try_acquire = {}, of = "hash" }]
[client.c3]
steps = [
    { at = "3s", acquire = {}, of = "hash" }, { at = "4s", release = {} },
    { at = "5s", acquire = {}, of = "string" }, { at = "6s", release = {} },
]
[run]
storm = "8s"
"#);
    assert_eq!(said(&history), ["A c1:1 @1001", "A c3:1 @3001", "A c3:1 @5001"]);
    let turned_away = history.events.iter().filter_map(|event| match &event.kind {
        EventKind::Return { outcome: Outcome::Failed { definite, message }, .. } => {
            Some((event.at.as_millis(), *definite && message.contains("WRONGTYPE")))
        }
        EventKind::Return { outcome: Outcome::Refused, .. } => Some((event.at.as_millis(), false)),
        _ => None,
    });
    // The node did not know the plain lock's script, which costs a round trip.
    assert_eq!(turned_away.collect::<Vec<_>>(), [(1_504, true), (3_502, false)]);
    assert_eq!(violated(&history), [""; 0]);
}

/// Two lines of work of one client; the second waits for the lock that the first holds.
fn two_lines(subject: &str) -> String {
    format!(
        r#"
[node.m]
[network]
latency = "1ms"
[lock]
subject = "{subject}"
lease = "10s"
[client.c1.line.first]
steps = [{{ at = "1s", acquire = {{}} }}, {{ at = "2s", release = {{}} }}, {{ at = "3s", acquire = {{}} }}]
[client.c1.line.second]
steps = [{{ at = "1.5s", acquire = {{ wait = "10s" }} }}, {{ at = "2.9s", release = {{}} }}]
[run]
storm = "5s"
"#
    )
}

#[test]
fn lines_of_work_of_a_client_exclude_each_other() {
    for subject in ["client", "token-lock", "counted-lock", "queue-lock", "fenced-token-lock"] {
        let history = run(&two_lines(subject));
        let grants = grants(&history);
        let owners: Vec<&str> = grants.iter().map(|(_, owner, _)| owner.as_str()).collect();
        assert_eq!(owners, ["c1:1", "c1:2", "c1:1"], "{subject}: {grants:?}");
        assert!((2_000..2_900).contains(&grants[1].2), "{subject}: {grants:?}");
        assert_eq!(violated(&history), [""; 0], "{subject}");
    }
}

#[test]
fn a_line_of_work_that_lets_another_in_is_caught() {
    // Without a deadline of its own the first line believes in its lock while the second already
    // has it.
    let text = two_lines("no-own-deadline").replace("lease = \"10s\"", "lease = \"300ms\"");
    assert!(violated(&run(&text)).contains(&"l2"), "{:?}", violated(&run(&text)));
}

/// Regression: such a lock passed. A line that deleted the hold of another counted as that other
/// line's release, because both belong to one client.
#[test]
fn a_line_of_work_that_deletes_the_hold_of_another_is_caught() {
    let run = |subject: &str, release: &str| {
        let history = run(&format!(
            r#"
[node.m]
[network]
latency = "1ms"
[lock]
subject = "{subject}"
lease = "1s"
[client.c1.line.first]
steps = [{{ at = "1s", try_acquire = {{}} }}, {{ at = "2.5s", {release} }}]
[client.c1.line.second]
steps = [{{ at = "2.2s", try_acquire = {{ lease = "10s" }} }}, {{ work = {{ until = "4s" }} }}, {{ release = {{}} }}]
[client.c2]
steps = [{{ at = "3s", try_acquire = {{ lease = "500ms" }} }}, {{ work = {{ until = "3.3s" }} }}]
[run]
storm = "5s"
"#
        ));
        let findings = checker::check(&history);
        let of = |name: &str| findings.iter().find(|one| one.checker == name).expect("it is judged");
        ["owner-safety", "l1", "l2"].map(|name| of(name).verdict.sentence().to_owned())
    };
    for subject in ["del-without-token", "shared-token"] {
        let [owner_safety, l1, l2] = run(subject, "release = {}");
        assert_eq!(owner_safety, "c1 (c1:1) deleted what c1 (c1:2) held, at 2.501 s on m.", "{subject}");
        for (layer, found) in [("l1", l1), ("l2", l2)] {
            let pair = found.contains("c1 (c1:2)") && found.contains("c2");
            assert!(pair, "{subject}, {layer}: {found}");
        }
    }
    for subject in ["token-lock", "counted-lock", "client"] {
        let [owner_safety, ..] = run(subject, "release = {}");
        assert!(
            owner_safety.starts_with("Releases and extensions by the owner itself"),
            "{subject}: {owner_safety}"
        );
    }
}

/// Regression: the first grant of a node that came up empty was taken for a hold that its disk had
/// kept. It was never recorded, so a multi lock seemed to lack one of its locks, and the broken
/// promise to the previous holder went unnoticed.
#[test]
fn the_first_grant_after_a_crash_is_a_grant() {
    let history = run(r#"
[node.a]
[node.b]
[network]
latency = "1ms"
[lock]
subject = "token-lock"
lease = "60s"
[lock.stock]
nodes = ["a"]
[lock.cash]
nodes = ["b"]
[client.c1]
steps = [{ at = "500ms", acquire = {}, of = "cash" }, { sleep = "1h" }]
[client.c2]
steps = [{ at = "12s", poll = { every = "100ms" }, of = "cash" }, { work = { for = "1s" } }, { release = {} }]
[fault.crash]
crash = "b"
at = "1s"
for = "10s"
[run]
storm = "20s"
"#);
    assert_eq!(
        said(&history),
        ["cash c1:1 @501", "cash c2:1 @12103"],
        "its first try finds the old connection"
    );
    // The node lost it when it started without its data.
    let lost = history.events.iter().filter_map(|event| match event.kind {
        EventKind::Vanished { how, .. } => Some((how, event.at.as_millis())),
        _ => None,
    });
    assert_eq!(lost.collect::<Vec<_>>(), [(LossCause::Crash, 11_000)]);
    assert_eq!(violated(&history), ["l1", "l2"]);
    // The client is idle when the node crashes, and takes both again afterwards.
    let workload = run(r#"
[node.a]
[node.b]
[network]
latency = "1ms"
[lock]
subject = "token-lock"
lease = "30s"
[lock.stock]
nodes = ["a"]
[lock.cash]
nodes = ["b"]
[client.c]
workload.contend = { together = true, hold = "2s", think = "6s" }
[fault.crash]
crash = "b"
at = "3s"
for = "1s"
[run]
storm = "20s"
"#);
    let together = checker::check(&workload).into_iter().find(|one| one.checker == "together");
    let together = together.expect("it is judged");
    assert!(together.verdict.witness().is_none(), "{:?}", together.verdict);
}

/// Without a number of writes in the file, a client writes once under several locks as under one:
/// in the middle of its hold.
#[test]
fn a_holder_of_several_locks_writes_in_the_middle() {
    let history = run(r#"
[resource]
[node.m]
[network]
latency = "1ms"
[lock]
lease = "30s"
[lock.stock]
[lock.cash]
[client.c]
workload.contend = { together = true, hold = "2s", think = "1s", rounds = 1 }
[run]
storm = "6s"
"#);
    let writes = history.events.iter().filter(|event| matches!(event.kind, EventKind::Write { .. }));
    let last_grant = grants(&history).last().expect("it gets both").2;
    let after: Vec<i64> = writes.map(|event| event.at.as_millis() - last_grant).collect();
    // A reply and a write of 1 ms each.
    assert_eq!(after, [1_002]);
}

#[test]
fn lines_of_work_may_be_many_and_have_a_workload() {
    let history = run(r#"
[node.m]
[lock.stock]
[lock.cash]
[client.c.line.w]
count = 3
workload.contend = { hold = "20ms..50ms", think = "1ms..5ms", of = ["cash"] }
[run]
storm = "3s"
"#);
    let owners: BTreeSet<String> =
        grants(&history).into_iter().map(|(lock, owner, _)| format!("{lock} {owner}")).collect();
    assert_eq!(owners, ["cash c:1", "cash c:2", "cash c:3"].map(str::to_owned).into_iter().collect());
    assert_eq!(violated(&history), [""; 0]);
}

/// Two locks on two masters; c2 holds one when c1 gets the other.
const TWO_MASTERS: &str = r#"
[node.a]
[node.b]
[node.b2]
replica_of = "b"
[network]
latency = "1ms"
[lock]
lease = "60s"
[lock.stock]
nodes = ["a"]
[lock.cash]
nodes = ["b"]
[client.c1]
steps = [{ at = "2s", acquire = {}, of = "cash" }, { at = "3s", acquire = {}, of = "stock" }]
[client.c2]
steps = [{ at = "1s", acquire = {}, of = "stock" }, { sleep = "1h" }]
[client.c3]
steps = [{ at = "4s", acquire = {}, of = "cash" }]
[run]
storm = "20s"
"#;

#[test]
fn a_fault_says_the_part_in_which_lock_is_meant() {
    let rows = [
        // Of all clients c2 has held longest, and c1 has waited longest.
        ("@holder", "c2 crashes"),
        ("@holder of stock", "c2 crashes"),
        ("@holder of cash", "c1 crashes"),
        ("@waiter", "c1 crashes"),
        ("@waiter of stock", "c1 crashes"),
        ("@waiter of cash", "c3 crashes"),
        ("@master of stock", "a crashes"),
        ("@master of cash", "b crashes"),
        ("@replica", "b2 crashes"),
        ("@replica of cash", "b2 crashes"),
    ];
    let crash = |selector| {
        let history =
            run(&format!("{TWO_MASTERS}[fault.z]\ncrash = \"{selector}\"\nat = \"10s\"\nfor = \"1s\"\n"));
        history.faults.iter().map(|fault| fault.words.to_string()).collect::<Vec<_>>()
    };
    for (selector, words) in rows {
        assert_eq!(crash(selector), [words], "{selector}");
    }
    // The stock has no replica, so nothing happens.
    assert_eq!(crash("@replica of stock"), [""; 0]);
}

#[test]
fn a_fault_waits_for_an_event_of_one_lock() {
    for (on, at) in [
        ("event = \"acquired\"", Some(1)),
        ("event = \"acquired\", of = \"stock\"", Some(1)),
        ("event = \"acquired\", of = \"cash\"", Some(2)),
        ("event = \"acquired\", nth = 2", Some(2)),
        ("event = \"asked\", of = \"stock\", client = \"c1\"", Some(3)),
        ("event = \"waiting\", of = \"cash\"", Some(4)),
        // The cash is acquired only once.
        ("event = \"acquired\", of = \"cash\", nth = 2", None),
    ] {
        let history =
            run(&format!("{TWO_MASTERS}[fault.z]\npause = \"a\"\non = {{ {on} }}\nfor = \"1ms\"\n"));
        let begun = history.faults.first().map(|fault| fault.from.as_millis() / 1_000);
        assert_eq!(begun, at, "{on}");
    }
}

/// The keys of a promoted node came from its master, in whatever way.
#[test]
fn a_replica_that_came_back_by_full_resync_was_said_to_have_lost_the_hold() {
    let run = |away: &str| {
        let text = r#"
[node.m]
[node.r]
replica_of = "m"
[network]
latency = "1ms"
[lock]
kind = "fair"
lease = "30s"
[client.c1]
steps = [{ at = "2s", acquire = {} }, { work = { for = "20s" } }]
[client.c2]
steps = [{ at = "2.1s", acquire = {} }]
[fault.away]
crash = "r"
at = "1s"
for = "AWAY"
[fault.crash]
crash = "m"
at = "12s"
[fault.promote]
promote = "r"
at = "18s"
[run]
storm = "20s"
"#;
        run(&text.replace("AWAY", away))
    };
    let of_r = |history: &History| {
        let r = history.header.host("r").expect("a replica");
        let events = history.events.iter().filter(|event| event.host == r).map(|event| &event.kind);
        let name = |owner: &Owner| history.owners[owner.0 as usize].name.to_string();
        let said = events.filter_map(|what| match what {
            EventKind::Vanished { owner, how: LossCause::Failover, .. } => {
                Some(format!("lost {}", name(owner)))
            }
            EventKind::Queue { waiters, .. } => {
                Some(format!("queue {:?}", waiters.iter().map(name).collect::<Vec<_>>()))
            }
            EventKind::Became { role } => Some(format!("{role:?}")),
            _ => None,
        });
        said.collect::<Vec<_>>()
    };
    // The replica is back when c1 holds and c2 waits: it has both, although no command told it.
    let heard = of_r(&run("2s"));
    assert_eq!(heard.iter().filter(|said| said.starts_with("lost")).count(), 0, "{heard:?}");
    let at = |what: &str| heard.iter().rposition(|said| said == what);
    assert!(at("queue [\"c2:1\"]").is_some_and(|queue| Some(queue) < at("Master")), "{heard:?}");
    // The replica is back when its master is gone.
    let late = of_r(&run("14s"));
    assert_eq!(late.iter().filter(|said| *said == "lost c1:1").count(), 1, "{late:?}");
}

/// Regression: a promoted replica counts without the level that it never received; the owner's next
/// level was reported as missing.
#[test]
fn a_watchdog_lock_after_a_promotion_was_said_to_be_counted_wrong() {
    let history = run(r#"
[node.m]
[node.r]
replica_of = "m"
[network]
latency = "1ms"
[lock]
watchdog = "30s"
response_timeout = "300ms"
[client.c1]
steps = [
    { at = "10s", acquire = {} }, { acquire = {} }, { at = "11s", acquire = {} }, { at = "13s", acquire = { retry = true } },
    { at = "16s", release = {} }, { release = {} }, { release = {} },
]
[fault.lag]
slow = { from = "m", to = "r", by = "1h" }
at = "10.5s"
[fault.crash]
crash = "m"
at = "11.1s"
[fault.promote]
promote = "r"
at = "11.5s"
[run]
storm = "20s"
calm = "30s"
"#);
    let counts = history.events.iter().filter_map(|event| match event.kind {
        EventKind::Granted { count, .. } => Some((history.host_name(event.host), count)),
        _ => None,
    });
    assert_eq!(counts.collect::<Vec<_>>(), [("m", 1), ("m", 2), ("m", 3), ("r", 3)]);
    let findings = checker::check(&history);
    let finding = findings.iter().find(|one| one.checker == "reentrancy").expect("it was asked");
    assert_eq!(finding.verdict.word(), "holds", "{}", finding.verdict.sentence());
}
