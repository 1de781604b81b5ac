//! Scenarios against real servers, if available; `LOCKSTORM_REQUIRE_REDIS=1` requires them.

mod audit;
mod gentle;
mod groups;
mod server;
mod two_ways;
mod unseen;
mod ways_in;
mod wire;

use lockstorm::{
    file::{
        plan::Plan,
        scenario::{Source, parse},
    },
    judge::{
        history::{Ended, EventKind},
        verdict::{Match, Verdict},
    },
    run::runner::{Case, Judged, Runner, judge},
    run::{Engine, Outcome, real},
};
use lockstorm_world::TraceRetention;

use server::{SERVERS, redis};
use two_ways::changes;

const HANDOVER: &str = r#"
about = "One client takes the lock twice and hands it to another, which waits for it."

[node.m]

[lock]
lease = "5s"

[client.c1]
steps = [{ at = "200ms", acquire = {} }, { acquire = {} }, { work = { for = "300ms" } }, { release = {} }, { release = {} }]

[client.c2]
steps = [{ at = "300ms", acquire = {} }, { work = { for = "200ms" } }, { release = {} }]

[run]
storm = "1s"
calm = "500ms"

[expect]
l1 = "holds"
l2 = "holds"
owner-safety = "holds"
reentrancy = "holds"
"#;

const FORGOTTEN: &str = r#"
about = "A node is killed and comes up empty while a client believes in its lock."

[node.m]

[lock]
lease = "5s"

[client.c1]
steps = [{ at = "200ms", acquire = {} }, { work = { for = "1500ms" } }]

[client.c2]
steps = [{ at = "1s", acquire = { retry = true } }]

[fault.crash]
crash = "m"
at = "500ms"
for = "100ms"

[run]
storm = "2s"
calm = "500ms"

[expect]
l1 = "violated"
l2 = "violated"
"#;

const LATE: &str = r#"
about = "A client stands still for longer than its lease, and writes when another one has the lock."

[node.m]

[resource]

[lock]
lease = "500ms"

[client.c1]
steps = [{ at = "200ms", try_acquire = {} }, { sleep = "100ms" }, { write = {} }]

[client.c2]
steps = [{ at = "400ms", poll = { every = "50ms", until = "3s" } }, { write = {} }]

[fault.pause]
pause = "c1"
on = { client = "c1", event = "acquired", delay = "10ms" }
for = "2s"

[run]
storm = "3s"

[expect]
l1 = "holds"
l3 = "violated"
"#;

/// The watcher still sees after a client kills its connections, and after a script that keeps the
/// server busy.
const WATCHED: &str = r#"
about = "The console ends all connections, keeps the server busy, and then deletes the lock of one who holds it."

[node.m]
config = { busy-reply-threshold = "50" }

[lock]
name = "ein \"Schloß\""
lease = "5s"

[client.c1]
steps = [{ at = "200ms", acquire = {} }, { work = { for = "1600ms" } }]

[fault.kill]
command = { node = "m", run = ["CLIENT", "KILL", "TYPE", "normal"] }
at = "400ms"

[fault.busy]
command = { node = "m", run = ["EVAL", """
local function now() local t = redis.call('TIME') return t[1] * 1e6 + t[2] end
local ends = now() + 300000
while now() < ends do end""", "0"] }
at = "600ms"

[fault.delete]
command = { node = "m", run = ["DEL", "ein \"Schloß\""] }
at = "1200ms"

[run]
storm = "2s"

[expect]
owner-safety = "violated"
"#;

/// A node's actions in the instant before its crash, which no process on it could report.
const AT_ONCE: &str = r#"
about = "A node with everything on its disk is killed as soon as a client has the lock twice."

[node.m]
durability = "aof-always"

[lock]
lease = "5s"

[client.c1]
steps = [{ at = "200ms", acquire = {} }, { acquire = {} }, { work = { for = "1s" } }]

[fault.crash]
crash = "m"
on = { client = "c1", event = "acquired", nth = 2 }
for = "100ms"

[run]
storm = "1s"

[expect]
reentrancy = "holds"
"#;

/// Two locks are recorded separately, although one script of the watcher reads the keys of both.
const TWO: &str = r#"
about = "Two clients take two locks one after the other, which share no key."

[node.m]

[lock]
lease = "5s"
[lock.stock]
[lock.other]

[client.c]
count = 2
workload.contend = { hold = "20ms..50ms", think = "20ms..50ms", wait = "1s" }

[run]
storm = "2s"
calm = "500ms"

[expect]
l1 = "holds"
l2 = "holds"
owner-safety = "holds"
"#;

/// Changes of keys that the server makes by itself, and by a command that names no key.
const CHANGED_BY_NOBODY: &str = r#"
about = "The key of a lock is gone, and no client has touched it."

[node.m]

[lock]
lease = "5s"

[client.c1]
steps = [{ at = "200ms", acquire = {} }, { work = { for = "1s" } }]

[run]
storm = "1500ms"
calm = "500ms"

[expect]
l1 = "holds"
"#;

/// The owner's clock is half a minute ahead, and so is the deadline that it writes into the key.
const AHEAD: &str = r#"
about = "A key expires, and the deadlines in it are not over."

[node.m]

[lock]
kind = "faster-multi"
subject = "values-by-client-clock"
lease = "1s"

[client.c1]
clock = { offset = "+30s" }
steps = [{ at = "200ms", try_acquire = {} }, { work = { for = "1500ms" } }]

[run]
storm = "2s"

[expect]
l1 = "holds"
"#;

/// A server's replies no longer reach its client when the client asks for the lock.
const UNANSWERED: &str = r#"
about = "A request is obeyed whose reply does not come."

[node.m]

[lock]
subject = "token-lock"
response_timeout = "200ms"
lease = "5s"

[client.c1]
steps = [{ at = "700ms", try_acquire = {} }]

[fault.deaf]
cut = { from = "m", to = "c1", one_way = true }
at = "500ms"

[run]
storm = "2s"

[expect]
l1 = "holds"
"#;

/// A line of work that deletes the hold of another line of its client.
const LINES: &str = r#"
about = "One thread of a client deletes the key of its neighbour."

[node.m]

[lock]
subject = "del-without-token"
lease = "400ms"

[client.c1.line.late]
steps = [{ at = "200ms", try_acquire = {} }, { at = "1200ms", release = {} }]

[client.c1.line.next]
steps = [{ at = "800ms", try_acquire = { lease = "3s" } }, { work = { for = "700ms" } }]

[run]
storm = "2s"

[expect]
owner-safety = { violated = { times = 1 } }
"#;

fn source(text: &str) -> Source {
    parse("real.toml", text).expect("it is a scenario")
}

/// The number of plays of a scenario on a machine that may be too busy for its times.
const PLAYS: u32 = 3;

/// Plays a scenario until it ends as expected: its times are real, and a busy machine may miss
/// them. Then less happens than intended, but nothing wrong: an unexpected violation counts at the
/// first play.
#[track_caller]
fn comes_out_as_expected(text: &str) {
    let mut told = String::new();
    for _ in 0..PLAYS {
        let judged = run(text);
        if judged.verdict() == Match::AsExpected {
            return;
        }
        told = format!("{:#?}", judged.findings);
        for finding in judged.findings.iter().filter(|one| matches!(one.verdict, Verdict::Violated { .. })) {
            let expected = judged.matches.iter().find(|(checker, _)| checker == finding.checker);
            let wrong = expected.is_some_and(|(_, one)| matches!(one, Match::Otherwise(_)));
            assert!(!wrong, "{}: {told}", finding.checker);
        }
    }
    panic!("{PLAYS} times: {told}");
}

fn run(text: &str) -> Judged {
    with_trial(Engine::Real, text, |trial, case| {
        judge(trial.variant(case), case, &trial.outcome(case, TraceRetention::Nothing))
    })
}

fn outcome(text: &str) -> Outcome {
    outcome_on(Engine::Real, text)
}

fn outcome_on(engine: Engine, text: &str) -> Outcome {
    with_trial(engine, text, |trial, case| trial.outcome(case, TraceRetention::Nothing))
}

fn with_trial<T>(engine: Engine, text: &str, run: impl FnOnce(&Runner<'_>, Case) -> T) -> T {
    let sources = [source(text)];
    let trial = Runner::new(&sources).seeds(Some(0..1)).engine(engine);
    let trial = match &*SERVERS {
        Ok(servers) if engine == Engine::Real => trial.servers(servers),
        _ => trial,
    };
    let case = Case { source: 0, variant: 0, seed: 0 };
    run(&trial, case)
}

#[test]
fn a_lock_is_handed_over_on_a_real_server() {
    if !redis() {
        return;
    }
    comes_out_as_expected(HANDOVER);
}

/// A reader of a report learns which server it was.
#[test]
fn a_history_names_the_real_server_of_each_node() {
    if !redis() {
        return;
    }
    let told = outcome(HANDOVER);
    let server = SERVERS.as_ref().expect("a server").default().to_string();
    assert_eq!(told.history.header.servers(), server);
    assert_eq!(outcome_on(Engine::Event, HANDOVER).history.header.servers(), "");
}

#[test]
fn a_line_of_work_that_deletes_the_hold_of_another_is_caught_on_a_real_server() {
    if !redis() {
        return;
    }
    comes_out_as_expected(LINES);
}

/// A reader that enters sets the TTL of the hash that all readers share, and extends no other
/// reader's hold. Regression: the leases of the others were known to the millisecond only after
/// their keys had been read; if two readers entered before that, the second one seemed to have
/// changed the first one's lease.
#[test]
fn a_reader_that_comes_in_on_a_real_server_extends_nobody_s_hold() {
    if !redis() {
        return;
    }
    comes_out_as_expected(include_str!("../../../scenarios/tests/defects/readers_and_writers.toml"));
}

/// A server short of memory evicts keys, and no command shows it.
#[test]
fn a_key_that_a_real_server_evicts_is_told_to_be_evicted() {
    if !redis() {
        return;
    }
    let text = CHANGED_BY_NOBODY.replace(
        "[run]",
        r#"
[fault.policy]
command = { node = "m", run = ["CONFIG", "SET", "maxmemory-policy", "allkeys-random"] }
at = "400ms"
[fault.full]
command = { node = "m", run = ["CONFIG", "SET", "maxmemory", "1"] }
at = "600ms"
[run]"#,
    );
    let told = outcome(&text);
    assert_eq!(changes(&told), ["c1:1 granted, 1", "c1:1 Evicted"], "{:?}", told.history.header.ended);
}

/// Regression: a change without an observed command counted as an eviction, and the key's content
/// after it as a grant that no client had asked for.
#[test]
fn a_change_that_nobody_was_seen_to_make_was_told_as_an_eviction_and_a_grant() {
    if !redis() {
        return;
    }
    let text = CHANGED_BY_NOBODY.replace(
        "[run]",
        r#"
[fault.away]
command = { node = "m", run = ["SWAPDB", "0", "1"] }
at = "500ms"
[fault.back]
command = { node = "m", run = ["SWAPDB", "0", "1"] }
at = "700ms"
[run]"#,
    );
    let told = outcome(&text);
    assert_eq!(changes(&told), ["c1:1 granted, 1"]);
    let why = "`lock` was changed on m, and no command that did it was seen";
    assert_eq!(told.history.header.ended, Ended::Early(why.into()));
    let judged = run(&text);
    assert!(matches!(judged.verdict(), Match::Undecided(_)), "{:?}", judged.matches);
}

/// Regression: the expiry of the key had no explanation, because no deadline of its values was
/// over.
#[test]
fn a_key_that_expires_ahead_of_the_deadlines_in_it_has_expired() {
    if !redis() {
        return;
    }
    let told = outcome(AHEAD);
    let changes = changes(&told);
    assert!(changes[0].ends_with(" granted, 1"), "{changes:?}");
    assert!(changes[1].ends_with(" Expired"), "{changes:?}");
    assert_eq!((changes.len(), &told.history.header.ended), (2, &Ended::Complete));
}

/// Clients connect when they start. Regression: the servers were not up then, and a client that was
/// cut off later had no connection for its request.
#[test]
fn a_client_is_connected_to_a_real_server_before_anything_happens() {
    if !redis() {
        return;
    }
    let changes = changes(&outcome(UNANSWERED));
    assert!(changes[0].ends_with(" granted, 1"), "{changes:?}");
}

#[test]
fn what_a_client_sends_to_a_real_server_is_counted() {
    if !redis() {
        return;
    }
    let history = outcome(HANDOVER).history;
    let scripts = |client: &str| -> u64 {
        let of_client = history.commands.iter().filter(|one| history.host_name(one.client) == client);
        of_client.filter(|one| &*one.name == "EVAL" || &*one.name == "EVALSHA").map(|one| one.count).sum()
    };
    // The first client acquires and releases twice; the second is refused before it gets the lock.
    assert!(scripts("c1") >= 4 && scripts("c2") >= 3, "{:?}", history.commands);
}

#[test]
fn two_locks_on_a_real_server_are_told_apart() {
    if !redis() {
        return;
    }
    comes_out_as_expected(TWO);
    let history = outcome(TWO).history;
    for lock in history.header.locks() {
        let count = |is: fn(&EventKind) -> bool| {
            let events = history.events.iter().filter(|event| event.kind.lock() == Some(lock));
            events.filter(|event| is(&event.kind)).count()
        };
        let granted = count(|what| matches!(what, EventKind::Granted { count: 1, .. }));
        let released = count(|what| matches!(what, EventKind::Released { left: 0, .. }));
        assert!(granted >= 5 && granted.abs_diff(released) <= 1, "{lock}: {granted} and {released}");
    }
}

/// The resource is not on a real server, and still receives writes.
#[test]
fn a_late_write_is_seen_where_the_servers_are_real() {
    if !redis() {
        return;
    }
    comes_out_as_expected(LATE);
}

#[test]
fn a_watcher_whose_connections_are_killed_sees_what_is_done_at_the_console() {
    if !redis() {
        return;
    }
    comes_out_as_expected(WATCHED);
}

#[test]
fn what_a_real_server_did_last_before_its_crash_is_told() {
    if !redis() {
        return;
    }
    // The server is rarely killed between its reply and its output to MONITOR, and then its action
    // cannot be known.
    let told = (0..PLAYS).any(|_| run(AT_ONCE).verdict() == Match::AsExpected);
    assert!(told, "{PLAYS} times");
}

#[test]
fn other_programs_are_told_of_runs_on_real_servers() {
    if !redis() {
        return;
    }
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("handover.toml");
    std::fs::write(&file, HANDOVER).expect("a file for the test");
    for play in 1..=PLAYS {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_lockstorm"));
        let output = command.args(["run", "--real", "--json"]).arg(&file).output().expect("the binary runs");
        let [said, told] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        let line: serde_json::Value =
            serde_json::from_str(&said).unwrap_or_else(|_| panic!("one line: {told}{said}"));
        let verdict = &line["verdict"]["match"];
        assert_eq!(output.status.success(), verdict == "as-expected", "{told}{said}");
        if verdict == "as-expected" {
            return;
        }
        assert!(verdict == "undecided" && play < PLAYS, "play {play}: {line}");
    }
}

/// Claim S7 steps the clock of a node, which no real server can: none of its variants runs, and
/// none counts in the rate.
#[test]
fn a_claim_that_cannot_be_run_on_real_servers_is_refused_with_the_reason() {
    if !redis() {
        return;
    }
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_lockstorm"));
    let output = command.args(["claims", "--real", "S7"]).output().expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("on Redis ") || lines[0].starts_with("on Valkey "), "{said}");
    assert!(lines[1].starts_with("S7   refused, 0 of 0 runs as simulated: "), "{said}");
    assert!(lines[2].contains("refused: r needs a clock that differs from the machine's"), "{said}");
    let last = lines.last().expect("lines");
    assert!(last.starts_with("0 of 0 runs as simulated (0.0 %), "), "{said}");
    assert!(last.contains("; 0 mismatches, 0 undecided; "), "{said}");
    assert!(output.status.success(), "{said}");
}

#[test]
fn a_real_server_that_is_killed_and_comes_up_empty_grants_the_lock_again() {
    if !redis() {
        return;
    }
    comes_out_as_expected(FORGOTTEN);
}

#[test]
fn what_cannot_be_done_to_real_servers_is_named() {
    let rows = [
        ("", vec![]),
        ("[fault.stall]\npause = \"m\"\nat = \"1s\"\n", vec![]),
        (
            "[fault.jump]\nclock_step = { host = \"m\", by = \"1s\" }\nat = \"1s\"\n",
            vec!["fault \"jump\" needs a clock of m"],
        ),
        ("[fault.jump]\nclock_step = { host = \"c1\", by = \"1s\" }\nat = \"1s\"\n", vec![]),
        (
            "[fault.jump]\nclock_step = { host = \"@master\", by = \"1s\" }\nat = \"1s\"\n",
            vec!["fault \"jump\" needs a clock of "],
        ),
        ("[fault.jump]\nclock_step = { host = \"@holder\", by = \"1s\" }\nat = \"1s\"\n", vec![]),
        ("[fault.split]\ncut = { from = \"m\", to = \"c1\" }\nat = \"1s\"\n", vec![]),
        ("[link.slow]\nfrom = \"m\"\nto = \"c1\"\nlatency = \"5ms\"\n", vec![]),
        ("[network]\nlatency = \"5ms\"\n", vec![]),
    ];
    for (more, expected) in rows {
        let source = source(&HANDOVER.replace("[run]", &format!("{more}\n[run]")));
        let found = real::impossible(&Plan::draw(&source.variants[0].scenario, 0));
        let named = found.len() == expected.len()
            && found.iter().zip(&expected).all(|(found, expected)| found.starts_with(expected));
        assert!(named, "{more}: {found:?}");
    }
}
