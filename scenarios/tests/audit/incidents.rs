//! Scenarios of the findings in the captures of this folder.

use lockstorm::{
    audit::{Incident, Missing, Settings, capture::Capture, findings::Kind},
    experiment,
    file::scenario::{LockKind, Scenario, parse},
};

use super::{audited, capture};

/// Returns the scenarios of all findings.
fn incidents(settings: Settings, captures: Vec<Capture<'_>>) -> Vec<Incident> {
    let audit = audited(settings, captures);
    let count = audit.summary().findings.len();
    assert!(audit.incident(count).is_none());
    (0..count).map(|index| audit.incident(index).expect("there is such a finding")).collect()
}

fn of(name: &str) -> Vec<Incident> {
    incidents(Settings::default(), vec![capture(name)])
}

fn of_text(text: &str) -> Vec<Incident> {
    incidents(Settings::default(), vec![Capture::new("n1", text.as_bytes())])
}

fn scenario(incident: &Incident) -> Scenario {
    let source = parse("incident.toml", &incident.text);
    let source = source.unwrap_or_else(|error| panic!("{error}\n{}", incident.text));
    source.variants.into_iter().next().expect("a variant").scenario
}

#[test]
fn each_finding_becomes_a_scenario_that_shows_it() {
    let rows: [(&str, &[&str]); 32] = [
        ("redisson-stopped", &["l3"]),
        ("redis-py-stopped", &["l3"]),
        ("redlock-stopped", &["l3"]),
        ("redsync-stopped", &["l3"]),
        ("redis-semaphore-stopped", &["l3"]),
        ("spring-stopped", &["l3"]),
        ("ours-stopped", &["l3"]),
        ("redisson-overrun", &["l3"]),
        ("shedlock-stopped", &["owner-safety"]),
        ("shedlock-overrun", &["owner-safety", "owner-safety"]),
        ("shedlock-safe-overrun", &["l3"]),
        ("redlock-shared", &["owner-safety"]),
        ("redisson-deleted", &["owner-safety"]),
        ("redis-py-deleted", &["owner-safety"]),
        ("redlock-deleted", &["owner-safety"]),
        ("shedlock-deleted", &["owner-safety"]),
        ("redisson-flushed", &["l1"]),
        ("redis-py-flushed", &["l1"]),
        ("shedlock-flushed", &["l1", "owner-safety"]),
        ("redisson-late", &["l3"]),
        ("redis-py-late", &["l3"]),
        ("redis-py-renewed", &["l3"]),
        ("blind-extend-renewed", &["l3"]),
        ("bare-del-bare", &["owner-safety"]),
        ("read-write-stopped", &["l3"]),
        ("read-write-writers", &["l3"]),
        ("read-write-zombie", &["l3"]),
        ("read-write-late", &["l3"]),
        ("read-write-deleted", &["owner-safety"]),
        ("read-write-flushed", &["l1"]),
        ("semaphore-beyond", &["permits"]),
        ("semaphore-flushed", &["permits"]),
    ];
    let mut wrong = Vec::new();
    for (name, expected) in rows {
        let all = of(name);
        let checkers: Vec<&str> =
            all.iter().filter_map(|one| one.checker).map(|checker| checker.name).collect();
        if checkers != expected || all.iter().any(|one| one.missing.is_some()) {
            let texts: String = all.into_iter().map(|one| one.text).collect();
            wrong.push(format!("{name}: {checkers:?}, expected {expected:?}\n{texts}"));
            continue;
        }
        // As a regression test, with the verdict that the file expects.
        all.iter().for_each(|one| experiment(scenario(one)).check());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_lock_without_expiry_stays_if_its_holder_dies() {
    let all = of("no-lease-watchdog");
    assert_eq!((all.len(), all[0].kind, all[0].missing.as_ref()), (1, Kind::NoExpiry, None));
    assert_eq!(all[0].checker.map(|checker| checker.name), Some("progress"));
    let mut cured = scenario(&all[0]);
    experiment(cured.clone()).check();
    // SET NX PX in one command is the cure.
    cured.lock.values_mut().for_each(|lock| lock.traits.grant = None);
    assert!(experiment(cured).try_check().is_err(), "it is still violated");
}

/// Times of the server in microseconds from the holder's grant, at 1 s of the run.
#[test]
fn the_scenario_has_the_shape_and_the_times_of_the_capture() {
    let all = of("redisson-stopped");
    let redisson = scenario(&all[0]);
    let (name, lock) = redisson.lock.first().expect("a lock");
    assert_eq!((&**name, lock.name.as_deref(), lock.subject.name), ("lock", Some("stock"), "client"));
    // The holder came back with a renewal, so it had a watchdog.
    assert_eq!((lock.lease, lock.watchdog.to_string()), (None, "1.5s".to_owned()));
    let next = &redisson.client["next"].steps[0];
    assert_eq!(next.at.map(|at| at.to_string()).as_deref(), Some("2.505394s"));
    assert!(next.poll.is_some(), "{next:?}");
    let stopped = &redisson.fault["stopped"];
    assert_eq!(stopped.length.map(|length| length.to_string()).as_deref(), Some("1.52731s"));

    let bare = scenario(&of("bare-del-bare")[0]);
    let lock = bare.lock.first().map(|(_, lock)| lock).expect("a lock");
    assert_eq!((lock.subject.name, lock.traits.given()), ("token-lock", vec!["release"]));
    assert_eq!(lock.lease.map(|lease| lease.to_string()).as_deref(), Some("1s"));

    let deleted = scenario(&of("redis-py-deleted")[0]);
    let third = &deleted.fault["third-party"];
    assert_eq!(third.at.map(|at| at.to_string()).as_deref(), Some("1.106003s"));
    assert_eq!(third.command.as_ref().expect("a command").run, ["DEL", "stock"]);
}

/// A reader was stopped, and a writer was granted 1.609245 s after it.
#[test]
fn locks_of_several_clients_have_their_kinds_and_numbers() {
    let stopped = scenario(&of("read-write-stopped")[0]);
    let lock = stopped.lock.first().map(|(_, lock)| lock).expect("a lock");
    assert_eq!((lock.kind, lock.name.as_deref()), (LockKind::ReadWrite, Some("stock")));
    assert_eq!(lock.lease.map(|lease| lease.to_string()).as_deref(), Some("1s"));
    let text = &of("read-write-stopped")[0].text;
    assert!(text.contains("{ at = \"1s\", try_acquire = { shared = true } },"), "{text}");
    assert!(text.contains("{ at = \"2.609245s\", poll = { every = \"1ms\" } },"), "{text}");
    let text = &of("read-write-writers")[0].text;
    assert!(!text.contains("shared"), "{text}");

    let beyond = scenario(&of("semaphore-beyond")[0]);
    let lock = beyond.lock.first().map(|(_, lock)| lock).expect("a lock");
    assert_eq!((lock.kind, lock.permits), (LockKind::Semaphore, Some(2)));
    let third = &beyond.fault["third-party"];
    assert_eq!(third.at.map(|at| at.to_string()).as_deref(), Some("1.33395s"));
    assert_eq!(third.command.as_ref().expect("a command").run, ["INCRBY", "stock", "1"]);

    let flushed = scenario(&of("semaphore-flushed")[0]);
    let run = |name: &str| flushed.fault[name].command.as_ref().expect("a command").run.join(" ");
    assert_eq!((run("third-party"), run("again")), ("FLUSHALL".to_owned(), "SET stock 2".to_owned()));
}

/// No checker judges what a client does with a permit whose lease is over.
#[test]
fn an_expired_permit_has_no_checker() {
    for name in ["permits-late", "permits-beyond"] {
        let all = of(name);
        assert_eq!((all.len(), all[0].missing.as_ref()), (1, Some(&Missing::Checker)), "{}", all[0].text);
        assert!(
            all[0].text.starts_with("# Missing assumption: checker: no checker judges"),
            "{}",
            all[0].text
        );
    }
}

/// The grant is at 100 s of the server, and the replica takes the master's place at 101 s.
#[test]
fn a_failover_is_a_fault_at_its_time() {
    let after = super::NEXT.to_owned()
        + &super::release(3_000, 2, "two", &["get", "del"])
        + &super::release(4_000, 1, "one", &["get"]);
    for has_crashed in [true, false] {
        let audit = super::failed_over(has_crashed, super::BEFORE, &after);
        let incident = audit.incident(0).expect("there is a finding");
        assert_eq!((incident.kind, incident.missing.as_ref()), (Kind::FailedOver, None), "{}", incident.text);
        assert_eq!(incident.checker.map(|checker| checker.name), Some("l1"));
        let written = scenario(&incident);
        experiment(written.clone()).check();
        let at = |name: &str| written.fault.get(name)?.at.map(|at| at.to_string());
        assert_eq!(at("promotion").as_deref(), Some("2s"));
        assert_eq!(at("crash").as_deref(), has_crashed.then_some("1.01s"));
        let next = &written.client["next"].steps[0];
        assert_eq!(next.at.map(|at| at.to_string()).as_deref(), Some("2.002s"));
        for part in ["replica_of = \"redis\"", "# n2 took the place of n1", "10.0.0.2:1 had the lock at "] {
            assert!(incident.text.contains(part), "{part:?} is not in\n{}", incident.text);
        }
    }
    // The former holder finds its hold gone, on another connection.
    let back = super::release(4_000, 3, "one", &["get"]);
    let incident = super::failed_over(true, super::BEFORE, &back).incident(0).expect("there is a finding");
    assert_eq!((incident.kind, incident.missing.as_ref()), (Kind::FailedOver, None), "{}", incident.text);
    assert!(incident.text.contains("# * Another client asks right after the promotion. The capture has no"));
}

#[test]
fn the_head_has_the_commands_and_the_assumptions() {
    let text = &of("redis-py-late")[0].text;
    for part in [
        "# its lease of 1.000 s ended",
        " granted it: SET stock #",
        "# Assumed:",
        "# * Another client asks once",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(!text.contains("c0877274ec2811f1bf0302fc00000001"), "a token is shown:\n{text}");
}

const RELEASE: &str = "if redis.call('get',KEYS[1])==ARGV[1] then redis.call('del',KEYS[1]) end";

/// A lock that was granted by SET NX PX, and its late release after this time.
fn late(lease_ms: u32, secs: u32, us: u32) -> String {
    format!(
        "1700000000.000000 [0 10.0.0.1:1] \"PING\"\n\
         1700100000.000000 [0 10.0.0.1:1] \"SET\" \"a b\" \"one\" \"NX\" \"PX\" \"{lease_ms}\"\n\
         {}.{us:06} [0 10.0.0.1:1] \"EVAL\" \"{RELEASE}\" \"1\" \"a b\" \"one\"\n\
         {}.{us:06} [0 lua] \"get\" \"a b\"\n",
        1_700_100_000 + u64::from(secs),
        1_700_100_000 + u64::from(secs),
    )
}

#[test]
fn a_key_that_a_scenario_would_read_otherwise_has_a_plain_name() {
    let all = of_text(&late(1_000, 2, 0));
    assert_eq!((all.len(), all[0].kind, all[0].missing.as_ref()), (1, Kind::Late, None));
    let written = scenario(&all[0]);
    assert_eq!(written.lock.first().and_then(|(_, lock)| lock.name.clone()).as_deref(), Some("lock"));
}

#[test]
fn a_missing_assumption_is_named() {
    let name = |incident: &Incident| incident.missing.as_ref().map(Missing::name);
    // No other client can be granted the lock and write within a millisecond.
    let all = of_text(&late(1_000, 1, 1_000));
    assert_eq!(all.iter().map(name).collect::<Vec<_>>(), [Some("world")]);
    assert!(all[0].text.starts_with("# Missing assumption: world: "), "{}", all[0].text);
    // Nothing is left of such a lease after the allowance for latencies.
    let all = of_text(&late(1, 1, 0));
    assert_eq!(all.iter().map(name).collect::<Vec<_>>(), [Some("limits")]);
    let all = of_text(&late(80_000_000, 90_000, 0));
    assert_eq!(all.iter().map(name).collect::<Vec<_>>(), [Some("length")]);
    let shared = format!(
        "1700000000.000000 [0 10.0.0.1:1] \"PING\"\n\
         1700100000.000000 [0 10.0.0.1:1] \"SET\" \"a\" \"one\" \"NX\" \"PX\" \"9000\"\n\
         1700100001.000000 [0 10.0.0.2:1] \"EVAL\" \"{RELEASE}\" \"1\" \"a\" \"one\"\n\
         1700100001.000000 [0 lua] \"get\" \"a\"\n\
         1700100001.000000 [0 lua] \"del\" \"a\"\n"
    );
    let all = of_text(&shared);
    assert_eq!((all.len(), all[0].kind, name(&all[0])), (1, Kind::SharedName, Some("kind")));
    assert!(all[0].checker.is_none() && parse("incident.toml", &all[0].text).is_err());
}

/// The second client changes the lease, and replaces the holder.
#[test]
fn a_third_party_gives_the_command_of_the_capture() {
    let rows = [
        ("\"PEXPIRE\" \"a\" \"20000\"", "one", Kind::ExtendedByOther, &["PEXPIRE", "a", "20000"][..]),
        (
            "\"SET\" \"a\" \"two\" \"PX\" \"5000\"",
            "two",
            Kind::Overwritten,
            &["SET", "a", "other", "PX", "5000"],
        ),
    ];
    for (command, owner, kind, expected) in rows {
        let all = of_text(&format!(
            "1700000000.000000 [0 10.0.0.1:1] \"PING\"\n\
             1700100000.000000 [0 10.0.0.1:1] \"SET\" \"a\" \"one\" \"NX\" \"PX\" \"9000\"\n\
             1700100001.000000 [0 10.0.0.2:1] {command}\n\
             1700100002.000000 [0 10.0.0.1:1] \"EVAL\" \"{RELEASE}\" \"1\" \"a\" \"{owner}\"\n\
             1700100002.000000 [0 lua] \"get\" \"a\"\n\
             1700100002.000000 [0 lua] \"del\" \"a\"\n"
        ));
        let first = all.first().unwrap_or_else(|| panic!("{command} is no finding"));
        assert_eq!((first.kind, first.missing.as_ref()), (kind, None), "{}", first.text);
        assert_eq!(first.checker.map(|checker| checker.name), Some("owner-safety"));
        let third = &scenario(first).fault["third-party"];
        assert_eq!(third.at.map(|at| at.to_string()).as_deref(), Some("2s"));
        assert_eq!(third.command.as_ref().expect("a command").run, expected);
    }
}
