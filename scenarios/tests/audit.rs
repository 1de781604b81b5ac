//! Audits of captures that real servers and real libraries left, with faults that were made on
//! purpose, and of loads without faults.
//!
//! Each capture in `audit/` is named by the library and the story. `audit/record.py` recorded them.
//! The stories:
//!
//! | story | events |
//! | --- | --- |
//! | clean | three processes acquire and release three locks |
//! | stopped | the holder is stopped beyond its lease, another one is granted, the first releases |
//! | late | the holder is stopped beyond its lease and releases |
//! | renewed | the holder extends its lease, is stopped, and extends it too late |
//! | watchdog | the holder keeps the lock for longer than its lease |
//! | deleted | `redis-cli` deletes the key, another one is granted, the first releases |
//! | flushed | the same with FLUSHALL |
//! | (an append-only file) | the story of `audit/record_aof.py` |
//! | bare | the holder is late, another one is granted, the first deletes the key |
//! | overrun | the work takes longer than the lease, another one is granted, the first releases |
//! | shared | an application keeps its data under the lock's key |
//! | thread | an application releases the lock on another thread |

#[path = "audit/incidents.rs"]
mod incidents;
#[path = "audit/shared.rs"]
mod shared;
#[path = "audit/top.rs"]
mod top;

use std::{fs, io::BufReader, path::PathBuf};

use lockstorm::{
    audit::{Audit, Settings, Summary, Times, aof::Aof, capture::Capture, findings::Kind},
    judge::{checker, history::History, verdict::Verdict},
};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/audit")
}

fn audited(settings: Settings, captures: Vec<Capture<'_>>) -> Audit {
    let mut audit = Audit::new(settings);
    audit.read(captures, || true).expect("it can be read");
    audit.finish();
    audit
}

fn capture(name: &str) -> Capture<'static> {
    let file = fs::File::open(folder().join(format!("{name}.monitor"))).expect("it exists");
    Capture::new(name, BufReader::new(file))
}

fn summary(name: &str) -> Summary {
    audited(Settings::default(), vec![capture(name)]).summary()
}

fn of_text(text: &str) -> Summary {
    audited(Settings::default(), vec![Capture::new("n1", text.as_bytes())]).summary()
}

/// Returns the kinds of findings as JSON names them.
fn kinds(summary: &Summary) -> Vec<String> {
    let kind = |kind: Kind| serde_json::to_value(kind).expect("it is JSON").as_str().unwrap_or("").to_owned();
    summary.findings.iter().map(|finding| kind(finding.kind)).collect()
}

#[test]
fn each_fault_is_found_and_nothing_else() {
    let rows: [(&str, &[&str]); 30] = [
        ("redisson-stopped", &["granted-twice"]),
        ("redis-py-stopped", &["granted-twice"]),
        ("redlock-stopped", &["granted-twice"]),
        ("redsync-stopped", &["granted-twice"]),
        ("redis-semaphore-stopped", &["granted-twice"]),
        ("spring-stopped", &["granted-twice"]),
        ("ours-stopped", &["granted-twice"]),
        // It releases by DEL.
        ("shedlock-stopped", &["released-by-other"]),
        ("redisson-deleted", &["deleted"]),
        ("redis-py-deleted", &["deleted"]),
        ("redlock-deleted", &["deleted"]),
        // A DEL is how this library releases, so the one by hand is a notice.
        ("shedlock-deleted", &["released-by-other"]),
        ("redisson-flushed", &["flushed"]),
        ("redis-py-flushed", &["flushed"]),
        ("shedlock-flushed", &["flushed", "released-by-other"]),
        ("redisson-late", &["late"]),
        ("redis-py-late", &["late"]),
        ("redis-py-renewed", &["late"]),
        ("blind-extend-renewed", &["late"]),
        // The library looks at its own clock, and sends nothing.
        ("redlock-renewed", &[]),
        ("bare-del-bare", &["released-by-other"]),
        ("no-lease-watchdog", &["no-expiry"]),
        ("redisson-overrun", &["granted-twice"]),
        // Each release deletes the lock of the next owner.
        ("shedlock-overrun", &["released-by-other", "released-by-other"]),
        // With the option `safeUpdate` it compares the token.
        ("shedlock-safe-overrun", &["granted-twice"]),
        ("redlock-shared", &["overwritten"]),
        ("redisson-thread", &[]),
        ("redisson-watchdog", &[]),
        ("ours-watchdog", &[]),
        ("redis-semaphore-watchdog", &[]),
    ];
    let mut wrong = Vec::new();
    for (name, expected) in rows {
        let summary = summary(name);
        assert_eq!(summary.problems.count, 0, "{name}: {:?}", summary.problems);
        if kinds(&summary) != expected {
            wrong.push(format!("{name}: expected {expected:?}\n{}", summary.text()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_load_without_faults_has_no_finding() {
    let mut wrong = Vec::new();
    for library in
        ["redisson", "ours", "redis-py", "redlock", "redsync", "redis-semaphore", "spring", "shedlock"]
    {
        let summary = summary(&format!("{library}-clean"));
        let grants: u64 = summary.locks.iter().map(|row| row.grants).sum();
        let releases: u64 = summary.locks.iter().map(|row| row.releases).sum();
        let is_right =
            summary.findings.is_empty() && summary.locks.len() == 3 && grants == releases && grants > 20;
        if !is_right {
            wrong.push(format!("{library}: {grants} grants, {releases} releases\n{}", summary.text()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_finding_names_the_commands_that_prove_it() {
    let text = summary("redis-py-stopped").text();
    for part in ["granted twice: stock", "granted it: SET stock #", "EVALSHA c3f8721c 1 stock #", "redis-py"]
    {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let revealed =
        audited(Settings { reveal: true, ..Settings::default() }, vec![capture("redis-py-stopped")]);
    assert!(!revealed.summary().text().contains('#'));
}

#[test]
fn watchdogs_renew_at_a_third_of_the_lease() {
    let row = summary("redisson-watchdog").locks.into_iter().next().expect("a lock");
    assert_eq!((row.library, row.grants, row.expiries), (Some("Redisson"), 1, 0));
    assert!(row.renewals >= 4, "{row:?}");
    assert_eq!(row.lateness[3..].iter().sum::<u64>(), row.renewals, "{row:?}");
}

/// The library renews after 80 % of the lease, each time.
#[test]
fn late_renewals_are_one_notice() {
    let summary = summary("redis-semaphore-watchdog");
    assert_eq!((summary.notices.len(), summary.notices[0].kind), (1, Kind::NearMiss));
    assert!(summary.notices[0].times >= 2, "{:?}", summary.notices);
}

/// MONITOR does not show the exception. It shows a release that finds another owner.
#[test]
fn a_release_on_another_thread_is_a_notice() {
    let summary = summary("redisson-thread");
    let notices: Vec<(Kind, u64)> = summary.notices.iter().map(|one| (one.kind, one.times)).collect();
    assert_eq!(notices, [(Kind::NotHolder, 1)]);
    // Its sentences are wrapped.
    let text = summary.text().split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "1 notice, which proves no fault",
        "release refused: 127.0.0.1:54418 released it as #5044a5ad, and #2a0231c9 held it, another thread",
        "threads: release on the same thread",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

/// A client that was refused the lock may release it to clean up after itself.
#[test]
fn a_refused_client_that_cleans_up_is_no_notice() {
    for name in ["redlock-shared", "redlock-clean", "redsync-clean", "redisson-clean", "redis-py-clean"] {
        let summary = summary(name);
        assert!(summary.notices.iter().all(|one| one.kind != Kind::NotHolder), "{name}\n{}", summary.text());
    }
}

#[test]
fn a_finding_counts_the_renewals_of_the_lost_lease() {
    let rows = [
        ("redisson-overrun", "its lease of 1.000 s ended after no renewal, another owner was granted it"),
        ("redis-py-renewed", "its lease of 1.000 s ended after 3 renewals, and its holder renewed it"),
    ];
    for (name, part) in rows {
        let text = summary(name).text();
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

const BAD: &str = "OK
1700000000.000000 [0 10.0.0.1:1] \"PING\"
1700000010.000000 [0 10.0.0.1:1] \"SET\" \"a\" \"one\" \"NX\" \"PX\" \"1000\"
1700000010.100000 [0 10.0.0.2:1] \"SET\" \"a\" \"two\" \"NX\" \"PX\" \"10
\u{0}\u{1}\u{2}
1700000010.200000 [0 10.0.0.1:1] \"EVAL\" \"if redis.call('get',KEYS[1])==ARGV[1] then redis.call('del',KEYS[1]) end\" \"1\" \"a\" \"one\"
1700000010.200000 [0 lua] \"get\" \"a\"
1700000010.200000 [0 lua] \"del\" \"a\"
1600000000.000000 [0 10.0.0.9:1] \"PING\"
garbage
1700000011.000000 [0 10.0.0.1:1] \"SET\" \"a\" \"thr";

#[test]
fn bad_lines_are_named_and_the_rest_is_read() {
    let summary = of_text(BAD);
    let problems: Vec<(u64, &str)> =
        summary.problems.first.iter().map(|one| (one.line, &one.what[..14])).collect();
    let expected = [
        (4, "ends inside a "),
        (5, "has bytes that"),
        (9, "is 100000010.2"),
        (10, "does not begin"),
        (11, "ends inside a "),
    ];
    assert_eq!(problems, expected);
    let row = &summary.locks[0];
    assert_eq!((&*row.lock, row.grants, row.releases), ("a", 1, 1));
    assert_eq!(kinds(&summary), Vec::<String>::new());
}

/// A capture may begin while a lock is held. Its first SET NX is then refused, and nothing says so.
#[test]
fn what_began_before_the_capture_is_not_guessed() {
    let release = "if redis.call('get',KEYS[1])==ARGV[1] then redis.call('del',KEYS[1]) end";
    let text = format!(
        "1700000000.000000 [0 10.0.0.2:1] \"SET\" \"a\" \"two\" \"NX\" \"PX\" \"1000\"\n\
         1700000001.500000 [0 10.0.0.2:1] \"EVAL\" \"{release}\" \"1\" \"a\" \"two\"\n\
         1700000001.500000 [0 lua] \"get\" \"a\"\n\
         1700000001.600000 [0 10.0.0.1:1] \"EVAL\" \"{release}\" \"1\" \"a\" \"one\"\n\
         1700000001.600000 [0 lua] \"get\" \"a\"\n\
         1700000001.600000 [0 lua] \"del\" \"a\"\n"
    );
    assert_eq!(kinds(&of_text(&text)), Vec::<String>::new());
}

#[test]
fn a_key_that_no_client_releases_is_no_lock() {
    let text = "1700000000.000000 [0 10.0.0.1:1] \"PING\"\n\
         1700000100.000000 [0 10.0.0.1:1] \"SET\" \"seen:7\" \"1\" \"NX\" \"EX\" \"60\"\n\
         1700000101.000000 [0 10.0.0.2:1] \"SET\" \"seen:7\" \"1\" \"NX\" \"EX\" \"60\"\n\
         1700000102.000000 [0 10.0.0.3:1] \"DEL\" \"seen:7\"\n\
         1700000103.000000 [0 10.0.0.1:1] \"SETNX\" \"counter\" \"0\"\n\
         1700000203.000000 [0 10.0.0.1:1] \"FLUSHALL\"\n";
    let summary = of_text(text);
    assert_eq!(kinds(&summary), Vec::<String>::new());
    assert!(!summary.has_locks());
}

#[test]
fn nodes_are_read_by_time_and_kept_apart() {
    let line = |ms: u32, host: u8, command: &str| {
        format!("17000000{:02}.{:03}000 [0 10.0.0.{host}:1] {command}\n", ms / 1000, ms % 1000)
    };
    let own = |host| {
        line(0, host, "\"PING\"")
            + &line(5_000, host, "\"SET\" \"a\" \"t\" \"NX\" \"PX\" \"9000\"")
            + &line(6_000, host, "\"DEL\" \"a\"")
    };
    let (one, other) = (own(1), own(2));
    let captures = vec![Capture::new("n1", one.as_bytes()), Capture::new("n2", other.as_bytes())];
    let summary = audited(Settings::default(), captures).summary();
    let rows: Vec<(&str, u64, u64)> =
        summary.locks.iter().map(|row| (&*row.node, row.grants, row.unchecked_releases)).collect();
    assert_eq!(rows, [("n1", 1, 1), ("n2", 1, 1)]);
    assert!(summary.text().contains("n1 a"));
}

#[test]
fn patterns_choose_locks() {
    let settings = Settings { locks: vec!["st?ck".to_owned(), "x*".to_owned()], ..Settings::default() };
    let summary = audited(settings, vec![capture("redis-py-clean")]).summary();
    assert_eq!(summary.locks.iter().map(|row| &*row.lock).collect::<Vec<_>>(), ["stock"]);
}

#[test]
fn the_history_can_be_written_read_and_judged() {
    let settings = Settings { history: true, ..Settings::default() };
    let history = audited(settings, vec![capture("redisson-stopped")]).history().expect("it was recorded");
    let mut bytes = Vec::new();
    history.write(&mut bytes).expect("it is in memory");
    let read = History::read(&bytes[..]).expect("it is a history");
    assert_eq!(read, history);
    let findings = checker::check(&read);
    let of = |name: &str| findings.iter().find(|finding| finding.checker == name).map(|one| &one.verdict);
    assert!(matches!(of("l1"), Some(Verdict::Holds { .. })), "{:?}", of("l1"));
}

fn of_aof(aof: Aof<'_>, locks: &[&str]) -> Summary {
    let locks = locks.iter().map(|&pattern| pattern.to_owned()).collect();
    let mut audit = Audit::new(Settings { locks, ..Settings::default() });
    audit.read_aof(aof, || true).expect("it can be read");
    audit.finish();
    audit.summary()
}

/// Returns the append-only file of a folder, without its manifest.
fn aof(name: &str) -> Aof<'static> {
    let open = |path: PathBuf| fs::File::open(path).expect("it exists");
    if name.ends_with(".aof") {
        return Aof::new(name).file(name, open(folder().join(name)));
    }
    let parts = ["appendonly.aof.2.base.rdb", "appendonly.aof.2.incr.aof"];
    parts.into_iter().fold(Aof::new(name), |aof, part| aof.file(part, open(folder().join(name).join(part))))
}

const NAMED: [&str; 3] = ["lock:*", "hash:*", "read:*"];

#[test]
fn an_append_only_file_shows_what_took_locks_away() {
    // The findings, then the releases, expiries and broken holds of one lock.
    let rows: [(&str, Times, &[&str], _); 3] = [
        (
            "redis-8.2-aof",
            Times::Seconds,
            &["no-expiry", "overwritten", "deleted", "flushed"],
            Some((3, 1, 1)),
        ),
        // The file of this Valkey has its first time after three quarters of its commands: nothing
        // is known of the length of the holds before.
        ("valkey-9.1-aof", Times::Seconds, &["overwritten", "deleted", "flushed"], Some((1, 0, 4))),
        // Without times a lease may have ended before the DEL.
        ("redis-6.2.aof", Times::Unknown, &["overwritten"], None),
    ];
    for (name, times, expected, ends) in rows {
        let summary = of_aof(aof(name), &NAMED);
        let text = summary.text();
        assert_eq!(summary.problems.count, 0, "{name}: {text}");
        assert_eq!(summary.nodes[0].times, times, "{name}");
        assert_eq!(kinds(&summary), expected, "{name}: {text}");
        let row = |lock: &str| summary.locks.iter().find(|row| row.lock == lock);
        let of_tokens = row("lock:stock").expect("a lock");
        assert_eq!((of_tokens.grants, of_tokens.renewals), (5, 2), "{name}: {text}");
        let of_hash = row("hash:stock").expect("a lock");
        // Without times an expiry that is set again may be that of the grant.
        let renewals = u64::from(name == "redis-8.2-aof");
        let found = (of_hash.library, of_hash.grants, of_hash.renewals);
        assert_eq!(found, (Some("Redisson"), 4, renewals), "{name}: {text}");
        assert_eq!(row("hash:base").expect("a lock").releases, 1, "{name}: {text}");
        assert!(row("read:base").is_none() && row("read:new").is_none() && row("cache").is_none());
        let ended = (of_tokens.releases, of_tokens.expiries, of_tokens.broken);
        assert!(ends.is_none_or(|ends| ended == ends), "{name}: {ended:?}\n{text}");
        if times == Times::Seconds {
            assert!(text.contains("exact to the second"), "{text}");
        } else {
            assert!(text.contains("time unknown byte") && text.contains("times are unknown"), "{text}");
        }
    }
}

#[test]
fn only_patterns_tell_a_token_from_a_cache() {
    let summary = of_aof(aof("redis-8.2-aof"), &[]);
    assert_eq!(kinds(&summary), ["deleted", "flushed"]);
    let locks: Vec<&str> = summary.locks.iter().map(|row| &*row.lock).collect();
    assert_eq!(locks, ["hash:stock", "hash:base"]);
    let none = of_aof(Aof::new("n1").file("a", &b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nb\r\n"[..]), &[]);
    assert!(!none.has_locks() && none.text().contains("--lock PATTERN"), "{}", none.text());
}

#[test]
fn a_damaged_file_is_named_and_its_holds_prove_nothing() {
    let set = |owner: &str| format!("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$3\r\n{owner}\r\n");
    let (one, two) = (set("one") + "!!!!", set("two"));
    let summary = of_aof(Aof::new("n1").file("a", one.as_bytes()).file("b", two.as_bytes()), &["a"]);
    assert_eq!(kinds(&summary), Vec::<String>::new());
    let problem = summary.problems.first[0].to_string();
    assert_eq!(problem, "n1/a: the file has bytes that are no command, from byte 29 on");
    let whole = of_aof(Aof::new("n1").file("a", (set("one") + &two).as_bytes()), &["a"]);
    assert_eq!(kinds(&whole), ["overwritten"]);
}

/// The commands of a master, and then of the replica that took its place. The audit loses the
/// connection to a master that crashes.
fn failover(before: &str, after: &str) -> Summary {
    let [crashed, replaced] = [true, false].map(|has_crashed| failover_of(has_crashed, before, after));
    assert_eq!(crashed.text(), replaced.text());
    crashed
}

fn failover_of(has_crashed: bool, before: &str, after: &str) -> Summary {
    failed_over(has_crashed, before, after).summary()
}

fn failed_over(has_crashed: bool, before: &str, after: &str) -> Audit {
    let mut audit = Audit::new(Settings::default());
    let (old, new) = (audit.node("n1"), audit.node("n2"));
    let give = |audit: &mut Audit, node: usize, text: &str| {
        for (line, number) in text.lines().zip(1..) {
            audit.take_text(node, number, line.as_bytes());
        }
    };
    give(&mut audit, old, before);
    if has_crashed {
        audit.gap(old);
    }
    audit.replaced(old, new, 1_700_000_101_000_000);
    give(&mut audit, new, after);
    audit.finish();
    audit
}

const RELEASE: &str = "if redis.call('get',KEYS[1])==ARGV[1] then redis.call('del',KEYS[1]) end";

/// Returns a call of the release script, with the commands that it runs.
fn release(ms: u32, host: u8, owner: &str, commands: &[&str]) -> String {
    let at = format!("17000001{:02}.{:03}000", ms / 1_000, ms % 1_000);
    let call = format!("{at} [0 10.0.0.{host}:1] \"EVAL\" \"{RELEASE}\" \"1\" \"a\" \"{owner}\"\n");
    commands.iter().fold(call, |text, command| text + &format!("{at} [0 lua] \"{command}\" \"a\"\n"))
}

const BEFORE: &str = "1700000000.000000 [0 10.0.0.1:1] \"PING\"
1700000100.000000 [0 10.0.0.1:1] \"SET\" \"a\" \"one\" \"NX\" \"PX\" \"30000\"
";

const NEXT: &str = "1700000102.000000 [0 10.0.0.2:1] \"SET\" \"a\" \"two\" \"NX\" \"PX\" \"30000\"\n";

#[test]
fn a_hold_that_a_promoted_replica_lacks_is_lost_in_a_failover() {
    // The next owner finds its token, and the former one comes back.
    let granted = NEXT.to_owned() + &release(3_000, 2, "two", &["get", "del"]);
    let both = granted.clone() + &release(4_000, 1, "one", &["get"]);
    let summary = failover(BEFORE, &both);
    assert_eq!(kinds(&summary), ["failed-over"], "{}", summary.text());
    let text = summary.text();
    for part in ["lost in a failover: a", "n1 granted it", "n2 took the place of n1", "claims S4"] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    // The former holder finds its token gone.
    let summary = failover(BEFORE, &release(4_000, 1, "one", &["get"]));
    assert_eq!(kinds(&summary), ["failed-over"], "{}", summary.text());
    let roles: Vec<&str> = summary.findings[0].evidence.iter().map(|one| &*one.role).collect();
    assert_eq!(roles, ["granted it", "the former holder came back"]);
    // The first owner may have released before the audit followed the new master.
    let summary = failover(BEFORE, &granted);
    assert_eq!((kinds(&summary).len(), summary.notices.len()), (0, 1), "{}", summary.text());
}

/// After a gap the hold may be over, although the node is the same.
#[test]
fn a_hold_from_before_a_gap_proves_nothing() {
    let late = release(40_000, 1, "one", &["get"]);
    let kinds_of = |has_gap: bool| {
        let mut audit = Audit::new(Settings::default());
        let node = audit.node("n1");
        let give = |audit: &mut Audit, text: &str| {
            text.lines().zip(1..).for_each(|(line, number)| audit.take_text(node, number, line.as_bytes()));
        };
        give(&mut audit, BEFORE);
        if has_gap {
            audit.gap(node);
        }
        give(&mut audit, &late);
        audit.finish();
        kinds(&audit.summary())
    };
    assert_eq!(kinds_of(false), ["late"]);
    assert_eq!(kinds_of(true), Vec::<String>::new());
}

#[test]
fn a_failover_that_keeps_a_hold_is_no_finding() {
    let kept = NEXT.to_owned() + &release(3_000, 1, "one", &["get", "del"]);
    let rows = [
        kept.clone(),
        kept + &release(4_000, 2, "two", &["get"]),
        // Renewed while the new master was not followed yet.
        release(40_000, 1, "one", &["get", "del"]),
        String::new(),
    ];
    for after in rows {
        let summary = failover(BEFORE, &after);
        assert_eq!((kinds(&summary).len(), summary.notices.len()), (0, 0), "{after}\n{}", summary.text());
    }
}
