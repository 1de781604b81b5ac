//! Properties of a scenario's clients besides their steps: a user with rights, a driver that
//! retries; and locks with the same name.

use lockstorm::{
    file::{plan::Plan, scenario::parse},
    judge::{
        checker,
        history::{Call, EventKind, History, Outcome},
    },
    run::{self, Engine},
};
use lockstorm_world::TraceRetention;

fn play(text: &str) -> History {
    let source = parse("clients.toml", text).unwrap_or_else(|error| panic!("{error}"));
    let plan = Plan::draw(&source.variants[0].scenario, 0);
    run::run(&plan, "clients", Engine::Event, TraceRetention::Nothing).history
}

/// Each call with its client and outcome: `c1 acquires: Ok`.
fn calls(history: &History) -> Vec<String> {
    let (mut calls, mut ops) = (Vec::new(), Vec::new());
    for event in &history.events {
        match &event.kind {
            EventKind::Invoke { op, call, .. } => {
                let what = match call {
                    Call::Acquire { .. } => "acquires",
                    Call::Release => "releases",
                    _ => "does something else",
                };
                ops.push(*op);
                calls.push(format!("{} {what}", history.host_name(event.host)));
            }
            EventKind::Return { op, outcome } => {
                let at = ops.iter().position(|of| of == op).expect("a call comes before its return");
                calls[at] += &match outcome {
                    Outcome::Failed { message, .. } => format!(": {message}"),
                    other => format!(": {other:?}"),
                };
            }
            _ => {}
        }
    }
    calls
}

fn verdict(history: &History, checker: &str) -> &'static str {
    let found = checker::check(history).into_iter().find(|found| found.checker == checker);
    found.expect("there is such a checker").verdict.word()
}

/// With the rights to its own key a user acquires the lock and releases it, by the production
/// client and by a model; for another key it gets the reason of the refusal.
#[test]
fn a_user_does_what_its_rules_let_it_do() {
    for subject in ["client", "token-lock"] {
        let text = |rules: &str, password: &str| {
            format!(
                "[node.m]\n[user.app]\n{password}\nrules = [{rules}]\n[network]\nlatency = \"1ms\"\n\
                 [lock]\nname = \"app:stock\"\nlease = \"5s\"\nsubject = \"{subject}\"\n\
                 [client.c1]\nuser = \"app\"\nsteps = [{{ at = \"1s\", try_acquire = {{}} }}, {{ release = {{}} }}]\n\
                 [client.c2]\nsteps = [{{ at = \"5s\", try_acquire = {{}} }}, {{ release = {{}} }}]\n"
            )
        };
        let ours = "\"~app:*\", \"~*{app:*\", \"&*\", \"+@all\"";
        let ok = ["c1 acquires: Ok", "c1 releases: Ok", "c2 acquires: Ok", "c2 releases: Ok"];
        for password in ["", "password = \"se cret\""] {
            assert_eq!(calls(&play(&text(ours, password))), ok, "{subject} {password}");
        }
        let foreign = "\"~bank:*\", \"&*\", \"+@all\"";
        let calls = calls(&play(&text(foreign, "")));
        assert!(
            calls[0].starts_with("c1 acquires: ") && calls[0].to_uppercase().contains("NOPERM"),
            "{subject}: {calls:?}"
        );
        assert_eq!(calls[1..], ["c2 acquires: Ok", "c2 releases: Ok"], "{subject}");
    }
}

/// A node that does not know a user refuses its clients.
#[test]
fn a_user_is_known_to_its_nodes_alone() {
    let text = "[node.m]\n[node.n]\n[user.app]\nrules = [\"~*\", \"&*\", \"+@all\"]\nnodes = [\"n\"]\n\
                [lock]\nsubject = \"token-lock\"\nnodes = [\"m\"]\n\
                [client.c1]\nuser = \"app\"\nsteps = [{ at = \"1s\", try_acquire = {} }]\n";
    let calls = calls(&play(text));
    assert!(
        calls[0].contains("WRONGPASS") || calls[0].contains("Password authentication failed"),
        "{calls:?}"
    );
}

/// Regression: no file could use locks that share a key, such as a plain lock and the read half of
/// another kind. The nodes' grants are judged as one lock, even if a node mistakenly admits a
/// reader beside the holder.
#[test]
fn a_reader_beside_the_holder_of_the_plain_lock_of_the_same_name_is_one_too_many() {
    let text = |node: &str| {
        format!(
            "[node.m]\n{node}\n[network]\nlatency = \"1ms\"\n[lock.plain]\nname = \"A\"\n\
             [lock.rw]\nname = \"A\"\nkind = \"read-write\"\n\
             [client.c1]\nsteps = [{{ at = \"5s\", acquire = {{}}, of = \"plain\" }}, {{ work = {{ for = \"20s\" }} }}, {{ release = {{}} }}]\n\
             [client.c2]\nsteps = [{{ at = \"6s\", acquire = {{ shared = true }}, of = \"rw\" }}, {{ work = {{ for = \"5s\" }} }}, \
             {{ release = {{}} }}]\n[run]\nstorm = \"40s\"\n"
        )
    };
    let granted = |history: &History| {
        let grants = history.events.iter().filter_map(|event| match &event.kind {
            EventKind::Granted { mode, .. } => Some(format!("{mode:?}@{}", event.at.as_millis())),
            _ => None,
        });
        grants.collect::<Vec<_>>()
    };
    let history = play(&text(""));
    assert_eq!(history.header.locks.len(), 1);
    let grants = granted(&history);
    assert_eq!(grants[0], "Exclusive@5001");
    // The reader is not granted the lock before the release. The two kinds publish releases on
    // channels of their own, so the reader asks again at the reported end of the lease.
    let at: i64 = grants[1].strip_prefix("Shared@").expect("a reader").parse().expect("a time");
    assert!((25_000..=36_000).contains(&at), "{grants:?}");
    assert_eq!((verdict(&history, "l1"), verdict(&history, "l2")), ("holds", "holds"));
    // With this edit the script checks only the mode, as a mistaken server would.
    let edit = "script_edit = { find = \"if mode ~= 'read' and\", replace = \"if not mode then \
                redis.call('HSET', lock, 'mode', 'read') mode = 'read' end if mode ~= 'read' and\" }";
    let history = play(&text(edit));
    let grants = granted(&history);
    assert!(grants[0] == "Exclusive@5001" && grants[1].starts_with("Shared@600"), "{grants:?}");
    assert_eq!((verdict(&history, "l1"), verdict(&history, "l2")), ("violated", "violated"));
}

/// The reply to the first of two equal commands is lost: the second one finds the token of the
/// first, and is refused.
#[test]
fn a_driver_that_retries_refuses_its_own_grant() {
    let text = |retries: &str, command: &str| {
        format!(
            "[node.m]\n[network]\nlatency = \"1ms\"\n[lock]\nsubject = \"token-lock\"\nlease = \"10s\"\nresponse_timeout = \"500ms\"\n\
             [client.c1]\n{retries}\nsteps = [{{ at = \"1s\", try_acquire = {{}} }}, {{ at = \"3s\", release = {{}} }}]\n\
             [client.c2]\nsteps = [{{ at = \"5s\", try_acquire = {{}} }}]\n\
             [fault.f]\nlose_reply = {{ client = \"c1\", command = \"{command}\" }}\nat = \"500ms\"\n"
        )
    };
    let acquires = |retries: &str| calls(&play(&text(retries, "SET")));
    assert_eq!(acquires("retries = 3"), ["c1 acquires: Refused", "c2 acquires: Refused"]);
    assert!(acquires("")[0].starts_with("c1 acquires: m: no reply"), "{:?}", acquires(""));
    let releases = |retries: &str| calls(&play(&text(retries, "EVAL")));
    // The first command released the lock, and the second one gets a reply.
    assert_eq!(releases("retries = 3"), ["c1 acquires: Ok", "c1 releases: Ok", "c2 acquires: Ok"]);
    assert!(releases("")[1].starts_with("c1 releases: m: no reply"), "{:?}", releases(""));
}

/// The node has no memory left and refuses each request two milliseconds after it was sent.
/// Regression: models that repeat a request without a reply repeated it, and returned at 2.008 s.
#[test]
fn a_model_does_not_repeat_a_request_that_a_node_has_refused() {
    let counted = "subject = \"counted-lock\"\ntraits = { resend_release = true }";
    let latch = "kind = \"latch\"\ncount = 2\nsubject = \"latch-counted-down-again\"";
    for (lock, steps) in [
        ("subject = \"token-lock\"\ntraits = { resend = \"same\" }", "{ at = \"2s\", try_acquire = {} }"),
        (counted, "{ at = \"500ms\", try_acquire = {} }, { at = \"2s\", release = {} }"),
        (latch, "{ at = \"500ms\", set = {} }, { at = \"2s\", count_down = {} }"),
    ] {
        let text = format!(
            "[node.m]\n[network]\nlatency = \"1ms\"\n[lock]\nlease = \"30s\"\n{lock}\n[client.c1]\nsteps = [{steps}]\n\
             [fault.full]\ncommand = {{ node = \"m\", run = [\"CONFIG\", \"SET\", \"maxmemory\", \"1\"] }}\nat = \"1s\"\n\
             [run]\nstorm = \"5s\"\n"
        );
        let history = play(&text);
        let refused = history.events.iter().filter_map(|event| match &event.kind {
            EventKind::Return { outcome: Outcome::Failed { message, .. }, .. } => {
                Some((event.at.as_millis(), message.contains("OOM")))
            }
            _ => None,
        });
        assert_eq!(refused.collect::<Vec<_>>(), [(2_002, true)], "{lock}");
    }
}

/// A node loses power before the next sync of its append-only file. A client that has waited for
/// its disk did not believe in the lost grant; one that has not did. A node without such a file is
/// refused before anything is taken.
#[test]
fn a_client_that_waits_for_the_disk_believes_in_nothing_that_is_lost() {
    let text = |disk: &str, synced: &str| {
        format!(
            "[node.m]\nserver = \"redis-8.2\"\ndurability = \"{disk}\"\n[network]\nlatency = \"1ms\"\n\
             [lock]\nlease = \"30s\"\nsynced = \"{synced}\"\n\
             [client.c1]\nsteps = [{{ at = \"10.5s\", try_acquire = {{}} }}, {{ work = {{ until = \"20s\", until_lost = true }} }}]\n\
             [client.c2]\nsteps = [{{ at = \"13s\", poll = {{ every = \"100ms\", until = \"25s\" }} }}]\n\
             [fault.other]\ncommand = {{ node = \"m\", run = [\"SET\", \"other\", \"1\"] }}\nat = \"10.2s\"\n\
             [fault.power]\ncrash = \"m\"\nat = \"10.9s\"\nfor = \"200ms\"\n[run]\nstorm = \"30s\"\n"
        )
    };
    for (disk, synced, expected) in [
        ("aof-everysec", "none", "violated"),
        ("aof-everysec", "master", "holds"),
        ("aof-always", "none", "holds"),
        ("aof-always", "master", "holds"),
    ] {
        assert_eq!(verdict(&play(&text(disk, synced)), "l2"), expected, "{disk} {synced}");
    }
    let refused = calls(&play(&text("none", "master")));
    assert!(refused[0].contains("cannot sync changes: its `appendonly` is `no`"), "{refused:?}");
}

/// Fifty clients want a lock again and again, each holds it for 100 ms. Once each has had it, a
/// release makes those ask whose turn is near, and no others; nearly as many get it as could.
#[test]
fn of_many_waiters_a_few_ask_at_a_release() {
    let text = "[node.m]\n[lock]\n[client.c]\ncount = 50\n\
                workload.contend = { hold = \"100ms\", think = \"100ms\" }\n[run]\nstorm = \"30s\"\n";
    let source = parse("clients.toml", text).unwrap_or_else(|error| panic!("{error}"));
    let plan = Plan::draw(&source.variants[0].scenario, 0);
    let (outcome, captures) = run::monitored(&plan, "clients", Engine::Event, TraceRetention::Nothing);
    let grants =
        outcome.history.events.iter().filter(|event| matches!(event.kind, EventKind::Granted { .. }));
    assert!(grants.count() > 280);
    // 100 hand-offs, from the tenth second on.
    let begin = 1_704_067_200.0 + 10.0;
    let requests = captures["m"].lines().filter(|line| line.contains("\"EVALSHA\"")).filter(|line| {
        let at: f64 =
            line.split(' ').next().and_then(|at| at.parse().ok()).expect("a line begins with its time");
        (begin..begin + 10.0).contains(&at)
    });
    let requests = requests.count();
    assert!((200..2_500).contains(&requests), "{requests} requests");
}

/// Two clients want the lock all the time, and 24 or 40 others crash. Their connections stay, so
/// the server counts them among the subscribers of each message. Regression: the two took them for
/// waiters whose turn came first, and waited a quarter of a second at each hand-off.
#[test]
fn dead_waiters_do_not_slow_the_living() {
    for dead in [0, 24, 40] {
        let group = format!(
            "[client.g]\ncount = {dead}\nworkload.contend = {{ hold = \"20ms\", think = \"0ms\" }}\n"
        );
        let crash = "[fault.f]\nat = \"10s\"\nfor = \"30s\"\ncrash = \"g\"\n";
        let (group, crash) = if dead > 0 { (&*group, crash) } else { ("", "") };
        let history = play(&format!(
            "[node.m]\n[lock]\nlease = \"1s\"\n[client.a]\ncount = 2\n\
             workload.contend = {{ hold = \"20ms\", think = \"0ms\" }}\n{group}{crash}[run]\nstorm = \"40s\"\n"
        ));
        let late = history.events.iter().filter(|event| event.at.as_nanos() > 12_000_000_000);
        let grants = late.filter(|event| matches!(event.kind, EventKind::Granted { .. })).count();
        assert!(grants > 700, "{grants} grants in 28 s beside {dead} dead waiters");
    }
}
