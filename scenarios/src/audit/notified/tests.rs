//! A server of the test's own, with the replies and events of real ones.

use std::collections::BTreeMap;

use super::*;
use crate::audit::{Settings, Summary, patterns::Patterns};

#[test]
fn the_setting_has_the_classes_or_says_what_it_lacks() {
    for enough in ["AKE", "g$hxeK", "KA", "Kg$hxe", "g$lshzxeKEtmdn"] {
        assert_eq!(lacking(enough.as_bytes()), None, "{enough}");
    }
    for less in ["", "A", "AE", "Kg$hx", "Ex"] {
        assert!(lacking(less.as_bytes()).is_some_and(|why| why.contains("Kg$hxe")), "{less}");
    }
}

#[test]
fn channels_counters_and_patterns() {
    assert_eq!(id_of(b"__keyspace@3__:a__:b"), Some((3, (*b"a__:b").into())));
    assert_eq!((id_of(b"__keyspace@x__:a"), id_of(b"__keyevent@0__:del")), (None, None));
    let info = b"# Commandstats\r\ncmdstat_flushall:calls=2,usec=81\r\ncmdstat_set:calls=9,usec=1\r\n\
        cmdstat_flushdb:calls=1,usec=1\r\ncmdstat_swapdb:calls=x,usec=1\r\n";
    assert_eq!((flushes(info), flushes(b"")), (3, 0));
    assert_eq!(databases(b"# Keyspace\r\ndb0:keys=1,expires=0\r\ndb12:keys=5\r\n"), [0, 12]);
    assert_eq!(glob(r"a[b]*\?"), r"a\[b\]*\\?");
}

/// A server whose keys and events a test writes.
struct Server {
    audit: Audit,
    gentle: Gentle,
    keys: BTreeMap<String, (String, i64)>,
    flushes: u64,
    now_us: i64,
    /// Commands that the server refuses from now on, with its errors.
    refused: Vec<(&'static str, &'static str)>,
    stopped: Option<Stop>,
}

const BEGIN_US: i64 = 1_700_000_000_000_000;

impl Server {
    fn new(locks: &[&str]) -> Server {
        Server::with(locks, Patterns::default())
    }

    fn with(locks: &[&str], patterns: Patterns) -> Server {
        let locks = locks.iter().map(|lock| (*lock).to_owned()).collect();
        let mut audit = Audit::new(Settings { locks, patterns, reveal: true, ..Settings::default() });
        let node = audit.node("n1");
        let (gentle, bytes) = Gentle::begin(&mut audit, node);
        let keys = BTreeMap::new();
        let (refused, stopped) = (Vec::new(), None);
        let mut server = Server { audit, gentle, keys, flushes: 0, now_us: BEGIN_US, refused, stopped };
        server.feed(b"%1\r\n$5\r\nproto\r\n:3\r\n");
        server.answer(&bytes);
        assert!(server.gentle.is_ready());
        assert_eq!(server.gentle.lacks(), None);
        server
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.gentle.take(&mut self.audit, bytes, self.now_us).expect("it is allowed");
    }

    /// Answers requests as a server does.
    fn answer(&mut self, bytes: &[u8]) {
        let text = String::from_utf8(bytes.to_vec()).expect("text");
        let mut lines = text.split("\r\n");
        while let Some(count) = lines.next().and_then(|line| line.strip_prefix('*')) {
            let count: usize = count.parse().expect("a count");
            let words: Vec<&str> = (0..count).map(|_| lines.nth(1).expect("a word")).collect();
            let key = words.get(1).and_then(|key| self.keys.get(*key)).cloned();
            if let Some((_, why)) = self.refused.iter().find(|(name, _)| *name == words[0]) {
                let reply = format!("-{why}\r\n");
                self.stopped = self.gentle.take(&mut self.audit, reply.as_bytes(), self.now_us).err();
                if self.stopped.is_some() {
                    return;
                }
                continue;
            }
            let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
            let reply = match (words[0], key) {
                ("CONFIG", _) => format!("%1\r\n{}{}", bulk("notify-keyspace-events"), bulk("AKE")),
                ("PSUBSCRIBE", _) => format!(">3\r\n{}{}:1\r\n", bulk("psubscribe"), bulk(words[1])),
                ("INFO", _) if words[1] == "keyspace" => bulk("# Keyspace\r\ndb0:keys=1"),
                ("INFO", _) => bulk(&format!("cmdstat_flushall:calls={},usec=1", self.flushes)),
                ("SCAN", _) => {
                    let keys: Vec<String> = self.keys.keys().map(|key| bulk(key)).collect();
                    format!("*2\r\n$1\r\n0\r\n*{}\r\n{}", keys.len(), keys.concat())
                }
                ("TYPE", Some((value, _))) if value.contains(':') => "+hash\r\n".to_owned(),
                ("TYPE", Some(_)) => "+string\r\n".to_owned(),
                ("TYPE", None) => "+none\r\n".to_owned(),
                ("PTTL", key) => format!(":{}\r\n", key.map_or(-2, |(_, ms)| ms)),
                ("GETRANGE", key) => bulk(&key.map_or_else(String::new, |(value, _)| value)),
                ("HRANDFIELD", Some((value, _))) => format!("*1\r\n*2\r\n{}{}", bulk(&value), bulk("1")),
                ("HRANDFIELD", None) => "*0\r\n".to_owned(),
                _ => "+OK\r\n".to_owned(),
            };
            self.feed(reply.as_bytes());
        }
    }

    /// Sends events on a key, a millisecond apart.
    fn events(&mut self, key: &str, events: &str) {
        for event in events.split(' ') {
            self.now_us += 1_000;
            let channel = format!("__keyspace@0__:{key}");
            let message = format!(
                ">4\r\n$8\r\npmessage\r\n$1\r\n*\r\n${}\r\n{channel}\r\n${}\r\n{event}\r\n",
                channel.len(),
                event.len()
            );
            self.feed(message.as_bytes());
        }
    }

    fn set(&mut self, key: &str, value: &str, ms: i64) {
        self.keys.insert(key.to_owned(), (value.to_owned(), ms));
    }

    /// Polls, a while after the last event.
    fn poll(&mut self, after_ms: i64) {
        self.now_us += after_ms * 1_000;
        let bytes = self.gentle.poll(&mut self.audit);
        self.answer(&bytes);
    }

    fn summary(&mut self) -> Summary {
        self.poll(0);
        self.audit.finish();
        self.audit.summary()
    }

    /// Returns the findings and notices: kind, lock and owner.
    fn found(&mut self) -> Vec<String> {
        let summary = self.summary();
        let all = summary.findings.iter().chain(&summary.notices);
        all.map(|one| format!("{} {} {}", one.kind.title(), one.lock, one.owner)).collect()
    }
}

#[test]
fn a_hold_is_known_by_its_events_and_reads() {
    let mut server = Server::new(&["lock:*"]);
    server.events("lock:a", "set expire");
    server.set("lock:a", "one", 29_900);
    server.poll(100);
    server.events("lock:a", "expire");
    server.set("lock:a", "one", 29_990);
    server.poll(10);
    let row = server.summary().locks.remove(0);
    assert_eq!((row.lock.as_str(), row.holder.as_deref(), row.renewed), ("lock:a", Some("one"), 1));
    assert_eq!(row.left_ms, Some(29_990));
    server.events("lock:a", "del");
    server.keys.clear();
    // A hold that no read sees.
    server.events("lock:a", "set expire del");
    server.poll(10);
    assert_eq!(server.found(), [""; 0]);
    let row = server.summary().locks.remove(0);
    assert_eq!((row.holder, row.grants, row.releases, row.renewals), (None, 2, 2, 1));
    assert_eq!(row.holds.expect("two").count, 2);
}

#[test]
fn another_owner_without_an_end_is_overwritten() {
    let mut server = Server::new(&["lock:*"]);
    server.events("lock:a", "set expire");
    server.set("lock:a", "one", 29_900);
    server.poll(100);
    server.events("lock:a", "set expire");
    server.set("lock:a", "two", 29_900);
    server.poll(100);
    assert_eq!(server.found(), ["overwritten lock:a one"]);
    assert_eq!(server.summary().locks[0].holder.as_deref(), Some("two"));
}

#[test]
fn an_end_in_between_is_no_finding_and_expiry_is_a_notice() {
    let mut server = Server::new(&["lock:*"]);
    for (owner, end) in [("one", "del"), ("two", "expired"), ("three", "expired"), ("four", "evicted")] {
        server.events("lock:a", "set expire");
        server.set("lock:a", owner, 1_000);
        server.poll(100);
        server.events("lock:a", end);
        server.keys.clear();
    }
    assert_eq!(server.found(), ["lease ended lock:a two", "ended without a command lock:a four"]);
    assert_eq!(server.summary().notices[0].times, 2);
}

#[test]
fn a_flush_has_no_event_and_its_counter_shows_it() {
    let mut server = Server::new(&["lock:*"]);
    server.events("lock:a", "set expire");
    server.events("lock:b", "set expire");
    server.set("lock:a", "one", 29_900);
    server.set("lock:b", "two", 29_900);
    server.poll(100);
    server.keys.clear();
    server.flushes += 1;
    server.events("lock:a", "set expire");
    server.set("lock:a", "three", 29_900);
    server.poll(100);
    server.poll(500);
    assert_eq!(server.found(), ["flushed lock:a one", "flushed lock:b two"]);
    assert_eq!(server.summary().locks[0].holder.as_deref(), Some("three"));
}

#[test]
fn a_lock_without_an_expiry_is_found_by_a_search() {
    let mut server = Server::new(&["lock:*"]);
    server.set("lock:old", "one", -1);
    for _ in 0..6 {
        server.poll(500);
    }
    assert_eq!(server.found(), ["no expiry lock:old one"]);
    let row = server.summary().locks.remove(0);
    assert_eq!((row.since, row.left_ms), (None, None));
}

#[test]
fn a_read_that_an_event_splits_is_repeated() {
    let mut server = Server::new(&["lock:*"]);
    server.poll(0);
    server.events("lock:a", "set expire");
    let bytes = server.gentle.poll(&mut server.audit);
    assert!(String::from_utf8_lossy(&bytes).contains("GETRANGE"));
    server.feed(b"$0\r\n\r\n:30000\r\n");
    server.events("lock:a", "del set expire");
    server.feed(b"$3\r\ntwo\r\n$0\r\n\r\n");
    assert_eq!(server.audit.summary().locks[0].holder, None);
    server.set("lock:a", "two", 30_000);
    server.poll(1);
    let row = server.summary().locks.remove(0);
    assert_eq!((row.holder.as_deref(), row.grants), (Some("two"), 2));
}

/// Replies and events of a Redis 8.2, whose read ends the lease.
#[test]
fn a_read_that_ends_the_lease_is_no_finding() {
    for (value, gone) in [("one", "$0\r\n\r\n"), ("285475da-9152-4c83-822a-67ee2f116a79:52", "*0\r\n")] {
        for ms in [1, -2] {
            let mut server = Server::new(&["lock:*"]);
            server.poll(0);
            server.events("lock:a", if value == "one" { "set expire" } else { "hincrby expire" });
            server.set("lock:a", value, 1_000);
            server.poll(100);
            let bytes = server.gentle.poll(&mut server.audit);
            assert!(String::from_utf8_lossy(&bytes).contains("PTTL"));
            server.feed(format!("$0\r\n\r\n:{ms}\r\n").as_bytes());
            if ms == -2 {
                server.events("lock:a", "expired");
            }
            server.feed(gone.as_bytes());
            if ms == 1 {
                server.events("lock:a", "expired");
            }
            server.feed(b"$0\r\n\r\n");
            server.keys.clear();
            assert_eq!(server.found(), [format!("lease ended lock:a {value}")]);
            assert_eq!(server.summary().locks[0].expiries, 1);
        }
    }
}

#[test]
fn without_patterns_only_hashes_of_redisson_are_locks() {
    let owner = "285475da-9152-4c83-822a-67ee2f116a79:52";
    let mut server = Server::new(&[]);
    server.events("cache", "set expire");
    server.events("counters", "hincrby");
    server.events("stock", "hincrby expire");
    server.set("cache", "value", 30_000);
    server.set("counters", "a:b", -1);
    server.set("stock", owner, 30_000);
    server.poll(10);
    server.poll(10);
    let summary = server.summary();
    assert_eq!(summary.locks.len(), 1);
    let row = &summary.locks[0];
    assert_eq!(
        (row.lock.as_str(), row.holder.as_deref(), row.library),
        ("stock", Some(owner), Some("Redisson"))
    );
    assert!(summary.text().contains("keyspace events"), "{}", summary.text());
}

/// A semaphore has a number without an expiry, and its holders change it.
#[test]
fn a_counter_is_no_lock() {
    let semaphore = "[[lock]]\nkeys = \"lock:s\"\nkind = \"semaphore\"\n";
    let semaphore = Patterns::parse(semaphore).expect("a file");
    let rows = [(Patterns::default(), true), (semaphore, false)];
    for (patterns, is_used) in rows {
        let mut server = Server::with(&["lock:*"], patterns);
        server.set("lock:s", "2", -1);
        server.events("lock:s", "set");
        server.poll(100);
        if is_used {
            server.set("lock:s", "1", -1);
            server.events("lock:s", "decrby");
        }
        for _ in 0..6 {
            server.poll(500);
        }
        assert_eq!(server.found(), [""; 0]);
        assert!(server.summary().locks.iter().all(|row| row.holder.is_none()));
    }
}

#[test]
fn a_token_that_a_pattern_names_is_a_lock() {
    let patterns = Patterns::parse("[[lock]]\nkeys = \"job:*\"\nkind = \"token\"\n").expect("a file");
    let mut server = Server::with(&[], patterns);
    server.events("job:a", "set expire");
    server.events("cache", "set expire");
    server.set("job:a", "one", 30_000);
    server.poll(10);
    let summary = server.summary();
    assert_eq!(summary.locks.len(), 1);
    assert_eq!((summary.locks[0].holder.as_deref(), summary.locks[0].library), (Some("one"), None));
}

#[test]
fn a_refused_subscription_is_an_error() {
    let mut audit = Audit::new(Settings::default());
    let node = audit.node("n1");
    let (mut gentle, _) = Gentle::begin(&mut audit, node);
    let replies =
        b"%1\r\n$5\r\nproto\r\n:3\r\n-NOPERM no\r\n-NOPERM no\r\n-NOPERM this user has no right\r\n";
    let refused = gentle.take(&mut audit, replies, BEGIN_US).expect_err("it is refused");
    assert_eq!(refused, Stop::Refused("the server refuses: NOPERM this user has no right".to_owned()));
    let unseen = audit.summary().unseen;
    let lacks: Vec<&str> = unseen.iter().map(|one| &*one.lacks).collect();
    assert_eq!(lacks, ["+config|get", "+psubscribe"]);
    assert_eq!(hello(&[]), b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n");
    let login = hello(&["secret".to_owned()]);
    assert!(login.ends_with(b"$4\r\nAUTH\r\n$7\r\ndefault\r\n$6\r\nsecret\r\n"));
}

/// The errors are those of Redis 6.2, 7.0 and 8.2. Valkey 9.1 has those of Redis 8.2.
#[test]
fn a_missing_right_is_named_once_and_stops_only_reads_that_need_it() {
    let rows: [(&str, &str, &str, bool); 9] = [
        (
            "TYPE",
            "NOPERM this user has no permissions to run the 'type' command or its subcommand",
            "+type",
            true,
        ),
        ("PTTL", "NOPERM this user has no permissions to run the 'pttl' command", "+pttl", true),
        ("GETRANGE", "NOPERM User n has no permissions to run the 'getrange' command", "+getrange", true),
        (
            "HRANDFIELD",
            "ERR unknown command `HRANDFIELD`, with args beginning with: `lock:b`, `2`, `WITHVALUES`, ",
            "+hrandfield",
            true,
        ),
        ("SCAN", "NOPERM User n has no permissions to run the 'scan' command", "+scan", false),
        ("INFO", "NOPERM User n has no permissions to run the 'info' command", "+info", false),
        ("TYPE", "NOPERM No permissions to access a key", "the keys of some locks", false),
        (
            "TYPE",
            "NOPERM this user has no permissions to access one of the keys used as arguments",
            "the keys of some locks",
            false,
        ),
        ("TYPE", "BUSY Redis is busy running a script.", "", false),
    ];
    for (command, why, lacks, stops) in rows {
        let mut server = Server::new(&["lock:*"]);
        server.refused.push((command, why));
        server.set("lock:a", "one", 30_000);
        server.set("lock:b", "c8c7c6c1-cdd6-4784-aa85-6361cc9ef870:48", 30_000);
        server.set("lock:c", "two", 30_000);
        for _ in 0..3 {
            if server.stopped.is_none() {
                // Its type is not in the event.
                server.events("lock:c", "restore");
                server.events("lock:a", "set expire");
                server.events("lock:b", "hincrby expire");
                server.poll(500);
            }
        }
        let stop = Stop::Refused(format!("the server refuses: {why}"));
        assert_eq!(server.stopped, stops.then_some(stop), "{command} {why}");
        let summary = server.audit.summary();
        let named: Vec<(&str, &str)> =
            summary.unseen.iter().map(|one| (&*one.lacks, &*one.refusal)).collect();
        let expected: Vec<(&str, &str)> = if lacks.is_empty() { Vec::new() } else { vec![(lacks, why)] };
        assert_eq!(named, expected, "{command} {why}");
        let text = summary.text().replace('\n', " ");
        assert_eq!(text.matches(&format!("the audit lacks {lacks} (")).count(), named.len(), "{text}");
    }
}
