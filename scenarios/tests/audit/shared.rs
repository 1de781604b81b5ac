//! Audits of the locks that several clients may hold, of fair queues and of latches.
//!
//! Redisson played the stories on real servers; `Kinds.java` has them, and `record_kinds.py`
//! recorded them. The stories:
//!
//! | capture | events |
//! | --- | --- |
//! | ours-.. | the same with our client, recorded by `record_ours.py` |
//! | ..-clean | three clients use the object for a while; of a latch, one waits until it opens |
//! | read-write-stopped | a reader's lease ends, a writer is granted, the reader releases |
//! | read-write-writers | the same with two writers |
//! | read-write-late | a writer releases after its lease |
//! | read-write-deleted, -flushed | DEL or FLUSHALL under a holder |
//! | read-write-watchdog | two readers hold the lock for longer than a lease, then a writer |
//! | read-write-zombie | a reader's hold ends, another reader keeps the hash and frees it, a writer is granted, the first reader releases |
//! | fair-overtaken | one client waits in the queue, another one takes the key as a plain lock |
//! | fair-deleted | DEL of the queue under a waiter, then another client is granted |
//! | semaphore-beyond | a client releases a permit twice |
//! | semaphore-flushed | FLUSHALL while permits are granted |
//! | permits-late | a permit expires, and is released |
//! | permits-beyond | the only permit expires, another client gets it, the first one releases |
//! | latch-stuck | one of two counts is missing, and a client waits for 70 s |

use lockstorm::audit::{Audit, Missing, Settings, Summary, aof::Aof, capture::Capture, patterns::Patterns};

use super::{audited, capture, kinds, of_text, summary};

#[test]
fn each_fault_of_a_shared_lock_is_found_and_nothing_else() {
    let rows: [(&str, &[&str], &[&str]); 24] = [
        ("ours-read-write", &[], &[]),
        ("ours-fair", &[], &[]),
        ("ours-semaphore", &[], &[]),
        ("ours-permits", &[], &[]),
        ("ours-latch", &[], &[]),
        ("read-write-clean", &[], &[]),
        ("read-write-watchdog", &[], &[]),
        ("fair-clean", &[], &[]),
        ("semaphore-clean", &[], &[]),
        ("permits-clean", &[], &[]),
        ("latch-clean", &[], &[]),
        ("read-write-stopped", &["granted-twice"], &[]),
        ("read-write-writers", &["granted-twice"], &[]),
        ("read-write-zombie", &["granted-twice"], &[]),
        ("read-write-late", &["late"], &[]),
        ("read-write-deleted", &["deleted"], &[]),
        ("read-write-flushed", &["flushed"], &[]),
        ("fair-overtaken", &["overtaken"], &[]),
        ("fair-deleted", &["overtaken"], &[]),
        ("semaphore-beyond", &["permits-beyond"], &[]),
        ("semaphore-flushed", &["flushed"], &[]),
        ("permits-late", &["late"], &[]),
        ("permits-beyond", &["permits-beyond"], &[]),
        ("latch-stuck", &[], &["never-opens"]),
    ];
    let mut wrong = Vec::new();
    for (name, findings, notices) in rows {
        let summary = summary(name);
        assert_eq!(summary.problems.count, 0, "{name}: {:?}", summary.problems);
        if kinds(&summary) != findings || noticed(&summary) != notices {
            wrong.push(format!("{name}: expected {findings:?} {notices:?}\n{}", summary.text()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn noticed(summary: &Summary) -> Vec<String> {
    let kind = |kind| serde_json::to_value(kind).expect("it is JSON").as_str().unwrap_or("").to_owned();
    summary.notices.iter().map(|notice| kind(notice.kind)).collect()
}

#[test]
fn a_shared_lock_has_its_kind_and_figures() {
    let rows = [
        ("read-write-clean", "read-write lock"),
        ("fair-clean", "lock"),
        ("semaphore-clean", "semaphore"),
        ("permits-clean", "semaphore"),
        ("latch-clean", "latch"),
    ];
    for (name, kind) in rows {
        let summary = summary(name);
        let row = summary.locks.iter().find(|row| row.lock == "stock").expect("a lock");
        assert_eq!((row.kind, row.library), (kind, Some("Redisson")), "{name}");
        assert!(row.grants > 0 && row.releases > 0 && row.holder.is_none(), "{name}: {row:?}");
        assert!(summary.locks.iter().all(|row| row.lock == "stock" || row.lock == "orders"), "{name}");
        assert!(summary.unknown_scripts.is_empty(), "{name}: {:?}", summary.unknown_scripts);
    }
    for (name, kind) in [
        ("ours-read-write", "read-write lock"),
        ("ours-fair", "lock"),
        ("ours-semaphore", "semaphore"),
        ("ours-permits", "semaphore"),
        ("ours-latch", "latch"),
    ] {
        let summary = summary(name);
        let rows: Vec<(&str, &str)> = summary.locks.iter().map(|row| (&*row.lock, row.kind)).collect();
        assert_eq!(rows, [("lock", kind)], "{name}: {}", summary.text());
        let row = &summary.locks[0];
        assert!(row.grants > 0 && row.releases > 0, "{name}: {row:?}");
    }
    let summary = summary("read-write-watchdog");
    let row = &summary.locks[0];
    assert_eq!((row.grants, row.releases, row.expiries), (3, 3, 0), "{}", summary.text());
    assert!(row.renewals >= 10, "{row:?}");
}

#[test]
fn a_finding_of_a_shared_lock_names_its_commands() {
    let rows: [(&str, &[&str]); 4] = [
        (
            "read-write-zombie",
            &["granted it to another owner, which excludes it", "the former holder came back"],
        ),
        (
            "fair-deleted",
            &["put it into the queue", "deleted the queue: DEL", "the overtaken one asked again"],
        ),
        ("semaphore-beyond", &["made 3 permits of 2", "set the number of permits", "owner -"]),
        ("permits-beyond", &["all 1 permits were granted to others", "granted the last permit"]),
    ];
    for (name, parts) in rows {
        let text = summary(name).text();
        for part in parts {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }
    let text = summary("latch-stuck").text();
    for part in ["1 notice", "latch that never opens", "1 client waits", "its count is 1"] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

/// A scenario has no step that takes a fair lock's key as a plain lock.
#[test]
fn an_overtaken_waiter_has_no_scenario() {
    let audit = audited(Settings::default(), vec![capture("fair-overtaken")]);
    let incident = audit.incident(0).expect("a finding");
    assert!(incident.checker.is_none());
    assert_eq!(incident.missing, Some(Missing::Kind));
}

const OWNERS: [&str; 2] =
    ["c8c7c6c1-cdd6-4784-aa85-6361cc9ef870:1", "83a1886e-ce87-4bb8-8307-7f6e5d4cc596:7"];

fn line(ms: u32, from: &str, words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    format!("17000000{:02}.{:03}000 [0 {from}] {}\n", ms / 1_000, ms % 1_000, words.join(" "))
}

/// The scripts of a read-write lock in short.
fn read(ms: u32, owner: &str, is_first: bool) -> String {
    let hold = format!("{{a}}:{owner}:rwlock_timeout");
    let call = ["EVALSHA", "0f", "2", "a", &hold, "1000", owner, &format!("{owner}:write")];
    let takes: &[&[&str]] = match is_first {
        true => &[&["hset", "a", "mode", "read"], &["hset", "a", owner, "1"]],
        false => &[&["hincrby", "a", owner, "1"]],
    };
    let takes: String = takes.iter().map(|words| line(ms, "lua", words)).collect();
    line(ms, "10.0.0.1:1", &call)
        + &line(ms, "lua", &["hget", "a", "mode"])
        + &takes
        + &line(ms, "lua", &["set", &format!("{hold}:1"), "1", "px", "1000"])
        + &line(ms, "lua", &["pexpire", "a", "1000"])
}

fn unread(ms: u32, owner: &str, commands: &[&[&str]]) -> String {
    let latch = format!("redisson_unlock_latch:{{a}}:{ms}");
    let call = ["EVALSHA", "1f", "3", "a", "redisson_rwlock:{a}", &latch, "0", owner, "PUBLISH", "16000"];
    let commands: String = commands.iter().map(|words| line(ms, "lua", words)).collect();
    line(ms, "10.0.0.1:1", &call) + &line(ms, "lua", &["hget", "a", "mode"]) + &commands
}

#[test]
fn several_readers_are_no_finding_and_what_is_not_shown_is_not_guessed() {
    let [one, other] = OWNERS;
    let gone = |owner| unread(900, owner, &[&["hexists", "a", owner]]);
    let rows: [(String, &[&str]); 5] = [
        // Two readers, of which one releases within its lease.
        (
            read(0, one, true)
                + &read(100, other, false)
                + &unread(500, one, &[&["hincrby", "a", one, "-1"], &["hdel", "a", one]]),
            &[],
        ),
        // Late, and no owner excludes the other.
        (read(0, one, true) + &unread(1_500, one, &[]), &["late"]),
        (
            read(0, one, true) + &read(1_200, other, true) + &unread(1_500, one, &[&["hexists", "a", one]]),
            &["late"],
        ),
        // Its hold began before the capture.
        (unread(500, one, &[&["hincrby", "a", one, "-1"], &["hdel", "a", one]]) + &gone(other), &[]),
        // A release that the server does not know is sent again.
        (
            read(0, one, true)
                + &line(
                    1_500,
                    "10.0.0.1:1",
                    &["EVALSHA", "1f", "3", "a", "redisson_rwlock:{a}", "l", "0", one],
                ),
            &[],
        ),
    ];
    for (text, expected) in rows {
        let summary = of_text(&text);
        assert_eq!(kinds(&summary), expected, "{text}\n{}", summary.text());
    }
}

/// A script of a forced release names no owner.
#[test]
fn a_forced_release_under_a_reader_is_a_finding() {
    let [one, _] = OWNERS;
    let call = ["EVALSHA", "2f", "2", "a", "redisson_rwlock:{a}", "0", "PUBLISH"];
    let forced = line(300, "10.0.0.2:1", &call)
        + &line(300, "lua", &["hget", "a", "mode"])
        + &line(300, "lua", &["del", "a"]);
    let summary = of_text(&(read(0, one, true) + &forced));
    assert_eq!(kinds(&summary), ["deleted"], "{}", summary.text());
}

fn add(ms: u32, count: &str, words: &[&[&str]]) -> String {
    let call = ["EVALSHA", "3f", "2", "a", "redisson_sc:{a}", count, "PUBLISH"];
    let words: String = words.iter().map(|words| line(ms, "lua", words)).collect();
    line(ms, "10.0.0.1:1", &call) + &words
}

/// Without the command that set the number nothing proves how many permits there should be.
#[test]
fn a_number_of_permits_that_the_capture_does_not_show_is_not_guessed() {
    let release = |ms, left| add(ms, "1", &[&["incrby", "a", "1"], &["PUBLISH", "redisson_sc:{a}", left]]);
    let text = release(0, "3") + &release(10, "4") + &release(20, "5");
    assert_eq!(kinds(&of_text(&text)), Vec::<String>::new());
}

/// Redisson drains by SET, and may release what it drained.
#[test]
fn a_drained_permit_may_be_released() {
    let channel = "redisson_sc:{a}";
    let set = ["EVALSHA", "241ce4e87e652b4f9b39d33cbcd7df9ee8ed906c", "2", "a", channel, "2", "PUBLISH"];
    let ask = ["EVALSHA", "4f", "1", "a", "1"];
    let lua = |ms, words: &[&str]| line(ms, "lua", words);
    let release = |ms, left| add(ms, "1", &[&["incrby", "a", "1"], &["PUBLISH", channel, left]]);
    let text = line(0, "10.0.0.1:1", &set)
        + &(lua(0, &["get", "a"]) + &lua(0, &["set", "a", "2"]) + &lua(0, &["PUBLISH", channel, "2"]))
        + &(line(10, "10.0.0.1:1", &ask) + &lua(10, &["get", "a"]) + &lua(10, &["decrby", "a", "1"]))
        + &(line(20, "10.0.0.1:1", &["EVALSHA", "5f", "1", "a"])
            + &lua(20, &["get", "a"])
            + &lua(20, &["set", "a", "0"]))
        + &(release(30, "1") + &release(40, "2"));
    assert_eq!(kinds(&of_text(&text)), Vec::<String>::new());
    assert_eq!(kinds(&of_text(&(text.clone() + &release(50, "3")))), ["permits-beyond"]);
    // The key had expired.
    assert_eq!(kinds(&of_text(&(text + &release(50, "1")))), Vec::<String>::new());
}

/// A fair lock's acquisition of an owner, with the commands that it runs on the lock and the queue.
fn fair(ms: u32, owner: &str, commands: &[&[&str]]) -> String {
    let (queue, deadlines) = ("redisson_lock_queue:{a}", "redisson_lock_timeout:{a}");
    let call = ["EVALSHA", "6f", "3", "a", queue, deadlines, "30000", owner, "300000", "1700000000000"];
    let commands: String = commands.iter().map(|words| line(ms, "lua", words)).collect();
    line(ms, "10.0.0.1:1", &call)
        + &line(ms, "lua", &["lindex", queue, "0"])
        + &line(ms, "lua", &["exists", "a"])
        + &commands
}

/// An owner that the capture does not show in the queue may have been in it before.
#[test]
fn a_queue_from_before_the_capture_is_not_guessed() {
    let [one, other] = OWNERS;
    let (queue, deadlines) = ("redisson_lock_queue:{a}", "redisson_lock_timeout:{a}");
    let waits = |ms, owner| {
        fair(
            ms,
            owner,
            &[
                &["hexists", "a", owner],
                &["zadd", deadlines, "1700000330000", owner],
                &["rpush", queue, owner],
            ],
        )
    };
    let takes = |ms, owner| {
        let leaves: [&[&str]; 2] = [&["lpop", queue], &["zrem", deadlines, owner]];
        fair(ms, owner, &[leaves[0], leaves[1], &["hset", "a", owner, "1"], &["pexpire", "a", "1000"]])
    };
    let asks = |ms, owner| fair(ms, owner, &[&["hexists", "a", owner]]);
    let in_turn = waits(0, one) + &takes(10, other) + &asks(20, one) + &takes(2_000, one);
    assert_eq!(kinds(&of_text(&in_turn)), Vec::<String>::new());
    // Both were in the queue, in this order.
    let passed = waits(0, one) + &waits(5, other) + &takes(10, other);
    assert_eq!(kinds(&of_text(&(passed.clone() + &asks(20, one)))), ["overtaken"]);
    let none = "[[lock]]\nkeys = \"*\"\nkind = \"none\"\n";
    assert_eq!(kinds(&named(none, &(passed.clone() + &asks(20, one)))), Vec::<String>::new());
    // It asks no more.
    assert_eq!(kinds(&of_text(&passed)), Vec::<String>::new());
}

fn named(patterns: &str, text: &str) -> Summary {
    let patterns = Patterns::parse(patterns).expect("a file");
    let mut audit = Audit::new(Settings { patterns, ..Settings::default() });
    audit.read(vec![Capture::new("n1", text.as_bytes())], || true).expect("it is in memory");
    audit.finish();
    audit.summary()
}

#[test]
fn patterns_name_locks_that_no_shape_shows() {
    let text = line(0, "10.0.0.1:1", &["SET", "job:a", "one", "PX", "5000"])
        + &line(1_000, "10.0.0.2:1", &["SET", "job:a", "two", "PX", "5000"])
        + &line(2_000, "10.0.0.3:1", &["HINCRBY", "own:a", "host-1", "1"])
        + &line(2_500, "10.0.0.3:1", &["EXPIRE", "own:a", "30"])
        + &line(4_000, "10.0.0.4:1", &["FLUSHALL"]);
    assert!(!of_text(&text).has_locks());
    let patterns =
        "[[lock]]\nkeys = \"job:*\"\nkind = \"token\"\n[[lock]]\nkeys = \"own:?\"\nkind = \"hash\"\n";
    let summary = named(patterns, &text);
    assert_eq!(kinds(&summary), ["overwritten", "flushed", "flushed"], "{}", summary.text());
    // A pattern also takes keys out.
    let none = "[[lock]]\nkeys = \"*\"\nkind = \"none\"\n";
    let file = super::folder().join("semaphore-beyond.monitor");
    let text = std::fs::read_to_string(file).expect("it exists");
    assert!(!named(none, &text).has_locks());
}

#[test]
fn a_pattern_names_a_token_of_an_append_only_file() {
    let patterns = Patterns::parse("[[lock]]\nkeys = \"a\"\nkind = \"token\"\n").expect("a file");
    let mut audit = Audit::new(Settings { patterns, ..Settings::default() });
    let file = &b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nb\r\n*3\r\n$3\r\nSET\r\n$1\r\nz\r\n$1\r\nb\r\n"[..];
    audit.read_aof(Aof::new("n1").file("a", file), || true).expect("it is in memory");
    audit.finish();
    let summary = audit.summary();
    assert_eq!(summary.locks.iter().map(|row| &*row.lock).collect::<Vec<_>>(), ["a"]);
}

/// A script that reads nothing compares nothing.
#[test]
fn unknown_scripts_are_listed_with_their_keys() {
    let script = |ms, key: &str| {
        line(ms, "10.0.0.1:1", &["SET", key, "one", "NX", "PX", "30000"])
            + &line(ms + 100, "10.0.0.2:1", &["EVALSHA", "AB", "1", key])
            + &line(ms + 100, "lua", &["del", key])
    };
    let summary = of_text(&(script(0, "a") + &script(2_000, "b")));
    let listed: Vec<(&str, u64, Vec<&str>)> = summary
        .unknown_scripts
        .iter()
        .map(|one| (&*one.script, one.calls, one.keys.iter().map(String::as_str).collect()))
        .collect();
    assert_eq!(listed, [("ab", 2, vec!["a", "b"])]);
}
