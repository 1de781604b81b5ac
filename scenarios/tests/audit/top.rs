//! The present state of the locks during an audit, and the page about all of it.

use lockstorm::audit::{Audit, Chosen, Seen, Settings, Totals, capture::Capture, findings::Kind, table};

use super::{RELEASE, audited, capture, folder};

const RENEW: &str = "if redis.call('get',KEYS[1])==ARGV[1] then redis.call('pexpire',KEYS[1],ARGV[2]) end";

/// Returns an audit of one node that has taken these lines.
fn taken(lines: &str) -> Audit {
    let mut audit = Audit::new(Settings::default());
    let node = audit.node("n1");
    give(&mut audit, node, lines);
    audit
}

fn give(audit: &mut Audit, node: usize, lines: &str) {
    for (line, number) in lines.lines().zip(1..) {
        audit.take_text(node, number, line.as_bytes());
    }
}

/// `b` is held without an expiry. `a` is held, was renewed once at 40 % of its lease, and has a
/// waiter.
fn two_locks() -> Audit {
    taken(&format!(
        "1700000000.000000 [0 10.0.0.1:1] \"PING\"\n\
         1700000100.000000 [0 10.0.0.1:1] \"SET\" \"a\" \"one\" \"NX\" \"PX\" \"10000\"\n\
         1700000100.100000 [0 10.0.0.3:1] \"SETNX\" \"b\" \"x\"\n\
         1700000100.200000 [0 10.0.0.3:1] \"DEL\" \"b\"\n\
         1700000100.300000 [0 10.0.0.3:1] \"SETNX\" \"b\" \"x\"\n\
         1700000101.000000 [0 10.0.0.2:1] \"SET\" \"a\" \"two\" \"NX\" \"PX\" \"10000\"\n\
         1700000104.000000 [0 10.0.0.1:1] \"EVAL\" \"{RENEW}\" \"1\" \"a\" \"one\" \"10000\"\n\
         1700000104.000000 [0 lua] \"get\" \"a\"\n\
         1700000104.000000 [0 lua] \"pexpire\" \"a\" \"10000\"\n\
         1700000105.000000 [0 10.0.0.1:1] \"PING\"\n"
    ))
}

/// A time of the server: this many seconds after the audit's round one.
fn at(secs: i64) -> [Option<i64>; 1] {
    [Some((1_700_000_000 + secs) * 1_000_000)]
}

#[test]
fn the_table_has_what_needs_attention_first() {
    let audit = two_locks();
    let lines = table(&audit.top(10, &at(108)), 200);
    let expected = [
        "lock  holder     held     left     renewed  waiters  /min  wait p50  p99   hold p50  p99     attention",
        "b     #2d711642  7.700 s  -        0        0        15.2  0 ms      0 ms  100 ms    100 ms  no expiry",
        "a     #7692c3ad  8.000 s  6.000 s  1        1        7.5   0 ms      0 ms  -         -",
    ];
    assert_eq!(lines, expected);
    let why = |secs: i64| {
        let rows = audit.top(10, &at(secs)).into_iter();
        rows.map(|one| (one.row.lock, one.attention)).collect::<Vec<_>>()
    };
    let (a, b) = ("a".to_owned(), "b".to_owned());
    let no_expiry = (b, Some("no expiry".to_owned()));
    assert_eq!(why(112), [no_expiry.clone(), (a.clone(), None)]);
    assert_eq!(why(113), [no_expiry.clone(), (a.clone(), Some("renewal is late".to_owned()))]);
    // The lease is over, and its end needs no attention.
    assert_eq!(why(115), [no_expiry, (a, None)]);
    assert_eq!(audit.top(10, &at(115))[1].row.holder, None);
    // Without a present time, that of the last command counts.
    assert_eq!(audit.top(10, &[])[1].row.left_ms, Some(9_000));
    assert_eq!(audit.top(1, &[]).len(), 1);
}

#[test]
fn a_table_is_as_wide_as_its_terminal() {
    let long = "k".repeat(100);
    let text = format!(
        "1700000000.000000 [0 10.0.0.1:1] \"PING\"\n\
         1700000100.000000 [0 10.0.0.1:1] \"SET\" \"{long}\" \"one\" \"NX\" \"PX\" \"10000\"\n\
         1700000100.500000 [0 10.0.0.1:1] \"DEL\" \"{long}\"\n"
    );
    let rows = taken(&text).top(10, &[]);
    let widest = |width: usize| table(&rows, width).iter().map(|line| line.chars().count()).max();
    assert!(table(&rows, 300)[1].starts_with(&format!("{}…  -", "k".repeat(47))), "{:?}", table(&rows, 300));
    assert!(table(&rows, 100)[1].contains("500 ms"), "{:?}", table(&rows, 100));
    for width in [100, 60, 20, 1, 0] {
        assert!(widest(width) <= Some(width), "{width}: {:?}", table(&rows, width));
    }
    assert_eq!(table(&[], 80).len(), 1);
}

#[test]
fn totals_count_all_locks() {
    let mut audit = two_locks();
    let mut lateness = [0; 11];
    lateness[4] = 1;
    let expected = Totals {
        commands: 10,
        locks: 2,
        held: 2,
        waiters: 1,
        grants: 3,
        refusals: 1,
        renewals: 1,
        releases: 1,
        lateness,
        passed_percent: 40,
        ..Totals::default()
    };
    assert_eq!(audit.totals(&at(108)), expected);
    // A lease that is over by the audit's clock is no expiry yet: the renewal may be on its way.
    let over = audit.totals(&at(115));
    assert_eq!((over.held, over.expiries), (1, 0));
    give(&mut audit, 0, "1700000115.000000 [0 10.0.0.1:1] \"PING\"\n");
    let over = audit.totals(&[]);
    assert_eq!((over.held, over.expiries, over.count()), (1, 1, 0));
}

#[test]
fn events_are_returned_once_and_only_when_they_are_certain() {
    let text = std::fs::read_to_string(folder().join("redis-py-stopped.monitor")).expect("it exists");
    let mut audit = taken(&text);
    let mut seen = Seen::default();
    audit.changed(0, 1_700_000_000_000_000, "is followed");
    let lines = audit.events(&mut seen);
    assert_eq!(lines[0], "2023-11-14 22:13:20.000000 n1 is followed");
    assert!(lines[1].contains(" granted twice: stock, owner #"), "{lines:?}");
    assert_eq!((lines.len(), audit.events(&mut seen).len()), (2, 0));
    assert_eq!(audit.totals(&[]).findings.get(&Kind::GrantedTwice), Some(&1));
    assert_eq!(audit.top(1, &[])[0].attention.as_deref(), Some("1 finding"));

    // A DEL of a key that no client has used as a lock is no finding.
    let mut audit = taken(
        "1700000000.000000 [0 10.0.0.1:1] \"PING\"\n\
         1700000100.000000 [0 10.0.0.1:1] \"SET\" \"c\" \"one\" \"NX\" \"PX\" \"60000\"\n\
         1700000101.000000 [0 10.0.0.3:1] \"DEL\" \"c\"\n\
         1700000102.000000 [0 10.0.0.1:1] \"PING\"\n",
    );
    let mut seen = Seen::default();
    assert_eq!((audit.events(&mut seen).len(), audit.totals(&[]).count()), (0, 0));
    // Its owner comes back.
    let release = format!(
        "1700000103.000000 [0 10.0.0.1:1] \"EVAL\" \"{RELEASE}\" \"1\" \"c\" \"one\"\n\
         1700000103.000000 [0 lua] \"get\" \"c\"\n\
         1700000104.000000 [0 10.0.0.1:1] \"PING\"\n"
    );
    give(&mut audit, 0, &release);
    let lines = audit.events(&mut seen);
    let expected = "2023-11-14 22:15:01.000000 deleted by hand: c, owner #7692c3ad: \
                    DEL from 10.0.0.3:1 deleted the lock 1.000 s after its grant to another client";
    assert_eq!(lines, [expected]);
    assert_eq!((audit.events(&mut seen).len(), audit.totals(&[]).count()), (0, 1));
}

#[test]
fn chosen_locks_keep_their_places() {
    let use_of = |key: &str, secs: u32| {
        format!(
            "17000001{secs:02}.000000 [0 10.0.0.1:1] \"SET\" \"{key}\" \"one\" \"NX\" \"PX\" \"10000\"\n\
             17000001{secs:02}.500000 [0 10.0.0.1:1] \"DEL\" \"{key}\"\n"
        )
    };
    let mut audit = taken("1700000000.000000 [0 10.0.0.1:1] \"PING\"\n");
    let keys = ["a", "b", "b", "c", "c", "c"];
    keys.iter().zip(0..).for_each(|(key, secs)| give(&mut audit, 0, &use_of(key, secs)));
    let mut chosen = Chosen::new(2);
    let mut names = |audit: &Audit| {
        let rows = audit.rows_of(&mut chosen, &[]);
        rows.into_iter().map(|row| (row.lock, row.grants)).collect::<Vec<_>>()
    };
    assert_eq!(names(&audit), [("b".to_owned(), 2), ("c".to_owned(), 3)]);
    (10..20).for_each(|secs| give(&mut audit, 0, &use_of("a", secs)));
    assert_eq!(names(&audit), [("b".to_owned(), 2), ("c".to_owned(), 3)]);
}

#[test]
fn kinds_have_the_names_of_json() {
    for kind in Kind::ALL {
        assert_eq!(serde_json::to_value(kind).expect("it is JSON"), kind.name());
    }
}

#[test]
fn the_page_shows_findings_with_their_nodes_and_runs_nothing() {
    let captures = ["redisson-stopped", "redis-semaphore-watchdog"].map(capture).into();
    let page = audited(Settings::default(), captures).summary().html();
    for part in [
        "<title>Audit of locks: 1 finding</title>",
        "<h3>granted twice: stock</h3>",
        " on redisson-stopped, 2 times</p>",
        "the former holder came back",
        "<code>lockstorm claims S2</code>",
        "Notices, which prove no fault",
        ">redis-semaphore-watchdog mutex:stock<",
        "<td>80 to 90 %</td><td class=\"number\">2</td>",
    ] {
        assert!(page.contains(part), "{part:?} is not in\n{page}");
    }
    let text = "1700000000.000000 [0 10.0.0.1:1] \"PING\"\n\
         1700000100.000000 [0 10.0.0.1:1] \"SET\" \"<script>a\" \"one\" \"NX\" \"PX\" \"10000\"\n\
         1700000100.500000 [0 10.0.0.1:1] \"DEL\" \"<script>a\"\n";
    let page = audited(Settings::default(), vec![Capture::new("n1", text.as_bytes())]).summary().html();
    assert!(page.contains("&lt;script&gt;a") && !page.contains("<script"), "{page}");
    assert!(page.contains("no findings") && page.contains("1 node and 1 lock"), "{page}");
}

/// A semaphore of two permits, one of which is granted.
#[test]
fn locks_of_several_holders_are_in_the_table_and_in_all_sums() {
    let audit = taken(
        "1700000000.000000 [0 10.0.0.1:1] \"EVALSHA\" \"241ce4e87e652b4f9b39d33cbcd7df9ee8ed906c\" \"2\" \
         \"s\" \"redisson_sc:{s}\" \"2\" \"PUBLISH\"\n\
         1700000000.000000 [0 lua] \"get\" \"s\"\n\
         1700000000.000000 [0 lua] \"set\" \"s\" \"2\"\n\
         1700000001.000000 [0 10.0.0.1:1] \"EVALSHA\" \"4f\" \"1\" \"s\" \"1\"\n\
         1700000001.000000 [0 lua] \"get\" \"s\"\n\
         1700000001.000000 [0 lua] \"decrby\" \"s\" \"1\"\n\
         1700000002.000000 [0 10.0.0.1:1] \"PING\"\n",
    );
    let rows = audit.top(10, &[]);
    let row = &rows[0].row;
    assert_eq!((rows.len(), row.kind, row.holder.as_deref()), (1, "semaphore", Some("1 permit")));
    let totals = audit.totals(&[]);
    assert_eq!((totals.locks, totals.held, totals.grants), (1, 1, 1));
    assert_eq!(audit.rows_of(&mut Chosen::new(1), &[])[0].kind, "semaphore");
    assert_eq!(audit.changes_of(0), 1);
}
