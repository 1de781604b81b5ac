//! Sentinels behind real ports: those of Redis and those of lockstorm watch and fail over nodes of
//! Redis and of lockstorm, in any mixture.

mod by_hand;
mod coordinated;
mod replies;
mod shared;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use lockstorm_sim::resp::{Reply, ReplyReader};
use rustix::process::Signal;

use crate::served::{PATIENCE, Served, asks, folder, nothing_to_compare_with, redis};

/// `down-after-milliseconds`. A tick between the ends of a link's two connections dials only one of
/// them, and the other a second later. The Sentinel counts this time from its last PONG, which may
/// then be two seconds old. With a shorter time it would sometimes see the master down early, as
/// redis-sentinel does; with this one it is late, and the others are not.
const DOWN_AFTER_MS: u64 = 2_500;

/// Tolerated differences from the median of Redis's own times. A Sentinel's ticks are up to 100 ms
/// apart; it detects a promotion by an INFO that it sends once a second; and other tests keep the
/// machine busy.
const TOLERANCE_SDOWN: Duration = Duration::from_millis(500);
const TOLERANCE_SWITCH: Duration = Duration::from_millis(1_600);

#[expect(clippy::disallowed_methods, reason = "it measures real processes")]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "a real process comes round in its own time")]
fn wait() {
    thread::sleep(Duration::from_millis(20));
}

/// The implementation of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    Redis,
    Ours,
}
use Whose::{Ours, Redis};

fn node(whose: Whose, folder: &Path, name: &str, master: Option<SocketAddr>) -> Served {
    let of = master.map(|master| format!("{} {}", master.ip(), master.port()));
    match (whose, of) {
        (Ours, None) => Served::beside(folder, &[]),
        (Ours, Some(of)) => Served::beside(folder, &["--option", &format!("replicaof={of}")]),
        (Redis, of) => {
            // Each has its own folder for its snapshots.
            let own = folder.join(name);
            fs::create_dir_all(&own).expect("a folder");
            let options: Vec<&str> = of.iter().flat_map(|of| ["--replicaof", of.as_str()]).collect();
            redis(&own, &options).expect("redis-server is there")
        }
    }
}

/// The configuration of a Sentinel that watches a master.
fn watching(master: SocketAddr, quorum: usize) -> String {
    format!(
        "sentinel monitor main {} {} {quorum}\nsentinel down-after-milliseconds main {DOWN_AFTER_MS}\n\
         sentinel failover-timeout main 20000\n",
        master.ip(),
        master.port()
    )
}

/// The kinds of Sentinels to test: ours, and Redis's if it is installed.
fn installed() -> impl Iterator<Item = Whose> {
    let is_there = Command::new("redis-sentinel").arg("--version").output().is_ok();
    if !is_there {
        nothing_to_compare_with();
    }
    [Ours, Redis].into_iter().filter(move |whose| *whose == Ours || is_there)
}

/// A Sentinel with these lines in its file, `NAME.conf`.
fn sentinel_of(whose: Whose, folder: &Path, name: &str, lines: &str) -> Served {
    let file = folder.join(format!("{name}.conf"));
    let port = TcpListener::bind(("127.0.0.1", 0)).expect("a free port").local_addr().expect("bound").port();
    fs::write(&file, format!("port {port}\nbind 127.0.0.1\n{lines}")).expect("written");
    sentinel_with(whose, folder, &file)
}

/// A Sentinel with this file. Redis's takes the port in the file; ours takes another one.
fn sentinel_with(whose: Whose, folder: &Path, file: &Path) -> Served {
    let path = file.to_str().expect("a path in UTF-8");
    match whose {
        Ours => Served::beside(folder, &["--sentinel", "--config", path]),
        Redis => {
            let mut child = Command::new("redis-sentinel")
                .arg(path)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("redis-sentinel runs");
            let out = BufReader::new(child.stdout.take().expect("a pipe"));
            let lines = fs::read_to_string(file).expect("a file");
            let port =
                lines.lines().find_map(|line| line.strip_prefix("port ")?.parse().ok()).expect("a port");
            let mut served = Served { child, out, address: SocketAddr::from(([127, 0, 0, 1], port)) };
            let mut line = String::new();
            while !line.contains("+monitor") {
                line.clear();
                assert!(served.out.read_line(&mut line).expect("a log") > 0, "redis-sentinel does not start");
            }
            served
        }
    }
}

/// The next reply of a Sentinel; `None` at a timeout.
fn answer(stream: &mut TcpStream, answers: &mut ReplyReader) -> Option<Reply> {
    let began = now();
    loop {
        if let Some(reply) = answers.next().expect("replies") {
            return Some(reply);
        }
        let mut bytes = [0; 4096];
        match stream.read(&mut bytes) {
            Ok(0) => panic!("the Sentinel has closed the connection"),
            Ok(len) => answers.feed(&bytes[..len]),
            Err(_) => return None,
        }
        assert!(began.elapsed() < PATIENCE, "it never stops");
    }
}

fn text(reply: &Reply) -> String {
    match reply {
        Reply::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => format!("{other:?}"),
    }
}

/// A map by the names of its fields.
fn fields(map: &Reply) -> BTreeMap<String, String> {
    let Reply::Array(words) = map else { panic!("a map: {map:?}") };
    words.chunks(2).map(|two| (text(&two[0]), text(&two[1]))).collect()
}

/// Waits until a replica is synchronized with its master.
fn until_it_follows(replica: &Served) {
    let began = now();
    let (mut stream, mut answers) = (replica.connect(), ReplyReader::default());
    loop {
        stream.write_all(b"INFO replication\r\n").expect("open");
        if answer(&mut stream, &mut answers).is_some_and(|info| text(&info).contains("master_link_status:up"))
        {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "the replica does not follow");
        wait();
    }
}

/// Waits until a Sentinel knows this number of replicas and of other Sentinels.
fn until_it_knows(served: &Served, replicas: usize, others: usize) {
    let (mut stream, mut answers) = (served.connect(), ReplyReader::default());
    let began = now();
    loop {
        stream.write_all(b"SENTINEL MASTER main\r\n").expect("open");
        let fields = fields(&answer(&mut stream, &mut answers).expect("answered"));
        let is_known = |name: &str, count: usize| fields[name] == count.to_string();
        if is_known("num-slaves", replicas)
            && is_known("num-other-sentinels", others)
            && fields["flags"] == "master"
        {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "it does not learn of all: {fields:?}");
        wait();
    }
}

/// An event, the Sentinel that emitted it, and the time since the master was killed.
#[derive(Debug)]
struct Said {
    by: usize,
    event: String,
    message: String,
    at: Duration,
}

/// Makes a group fail over, and returns the events of its Sentinels until all of them have
/// switched. Each Sentinel has its own quorum.
fn failover(name: &str, sentinels: [(Whose, usize); 3], nodes: [Whose; 3]) -> Vec<Said> {
    let folder = folder(&format!("sentinel_{name}"));
    let master = node(nodes[0], &folder, "m", None);
    let replicas = [1, 2].map(|at| node(nodes[at], &folder, &format!("r{at}"), Some(master.address)));
    replicas.iter().for_each(until_it_follows);
    let group: Vec<Served> = sentinels
        .iter()
        .enumerate()
        .map(|(at, (whose, quorum))| {
            sentinel_of(*whose, &folder, &format!("s{at}"), &watching(master.address, *quorum))
        })
        .collect();
    group.iter().for_each(|served| until_it_knows(served, 2, 2));
    let mut lines: Vec<(TcpStream, ReplyReader)> =
        group.iter().map(|served| (served.connect(), ReplyReader::default())).collect();
    for (stream, _) in &mut lines {
        asks(stream, "PSUBSCRIBE *", "*3\r\n$10\r\npsubscribe\r\n$1\r\n*\r\n:1\r\n");
        stream.set_read_timeout(Some(Duration::from_millis(2))).expect("a time-out can be set");
    }
    master.signal(Signal::KILL);
    let killed = now();
    let mut said: Vec<Said> = Vec::new();
    while said.iter().filter(|said| said.event == "+switch-master").count() < 3 {
        assert!(killed.elapsed() < PATIENCE, "{name}: it is not failed over: {said:#?}");
        for (by, (stream, answers)) in lines.iter_mut().enumerate() {
            while let Some(Reply::Array(message)) = answer(stream, answers) {
                let (event, message) = (text(&message[2]), text(&message[3]));
                said.push(Said { by, event, message, at: killed.elapsed() });
            }
        }
    }
    // The promoted node takes writes, and the other replica follows it.
    let switch = said.iter().find(|said| said.event == "+switch-master").expect("it was there");
    let port: u16 = switch.message.rsplit(' ').next().and_then(|port| port.parse().ok()).expect("a port");
    let (promoted, other) = if replicas[0].address.port() == port { (0, 1) } else { (1, 0) };
    asks(&mut replicas[promoted].connect(), "SET k v", "+OK\r\n");
    asks(&mut replicas[other].connect(), "SET k v", "-READONLY");
    said
}

/// The first event of a name: its Sentinel and its time.
fn first(said: &[Said], event: &str) -> (usize, Duration) {
    let found = said.iter().find(|said| said.event == event);
    let found = found.unwrap_or_else(|| panic!("{event} is not among {said:#?}"));
    (found.by, found.at)
}

/// The times of the first `+sdown`, of the promotion, and of the first observer's announcement.
fn times(said: &[Said]) -> [Duration; 3] {
    ["+sdown", "+promoted-slave", "+switch-master"].map(|event| first(said, event).1)
}

/// Only one Sentinel stands for election: the quorum of the others is greater than their number. So
/// it leads, and needs one of the other kind to take the master for down as well, and to vote for
/// it. With three candidates the votes may be split, and none leads for a while.
#[test]
fn a_sentinel_fails_over_with_the_votes_of_the_other_kind() {
    if installed().count() < 2 {
        return;
    }
    const NONE: usize = 4;
    let rows = [
        ("ours_leads", [(Ours, 2), (Redis, NONE), (Redis, NONE)], [Redis, Ours, Redis]),
        ("redis_leads", [(Redis, 2), (Ours, NONE), (Ours, NONE)], [Ours, Redis, Ours]),
    ];
    let runs = thread::scope(|scope| {
        let threads =
            rows.map(|(name, sentinels, nodes)| scope.spawn(move || failover(name, sentinels, nodes)));
        threads.map(|thread| thread.join().expect("its own message says why"))
    });
    for ((name, ..), said) in rows.iter().zip(&runs) {
        let by = |event: &str| -> Vec<usize> {
            said.iter().filter(|said| said.event == event).map(|said| said.by).collect()
        };
        for event in ["+odown", "+try-failover", "+elected-leader", "+promoted-slave", "+failover-end"] {
            assert_eq!(by(event), [0], "{name}: {event} in {said:#?}");
        }
        // Its own vote is not enough.
        let votes = by("+vote-for-leader");
        assert!(votes.contains(&0) && votes.iter().any(|by| *by != 0), "{name}: {votes:?} in {said:#?}");
        let mut switched = by("+switch-master");
        switched.sort_unstable();
        assert_eq!(switched, [0, 1, 2], "{name}: {said:#?}");
        let messages: BTreeSet<&str> = said
            .iter()
            .filter(|said| said.event == "+switch-master")
            .map(|said| said.message.as_str())
            .collect();
        assert_eq!(messages.len(), 1, "{name}: they name one master: {messages:?}");
    }
}

/// Not run by default: simultaneous candidates may split the votes, especially on a slow disk, and
/// then none is elected for a while.
#[test]
#[ignore = "of real processes and their times, of which a few per cent of the runs differ: cargo test -p lockstorm-cli --test serve -- --ignored"]
fn sentinels_of_redis_and_ours_fail_over_nodes_of_redis_and_ours_alike() {
    if Command::new("redis-sentinel").arg("--version").output().is_err() {
        return nothing_to_compare_with();
    }
    const ROWS: [(&str, [Whose; 3], [Whose; 3]); 8] = [
        ("redis_1", [Redis; 3], [Redis; 3]),
        ("redis_2", [Redis; 3], [Redis; 3]),
        ("redis_3", [Redis; 3], [Redis; 3]),
        ("ours", [Ours; 3], [Ours; 3]),
        ("our_sentinels", [Ours; 3], [Redis; 3]),
        ("our_nodes", [Redis; 3], [Ours; 3]),
        ("one_of_ours", [Ours, Redis, Redis], [Redis, Ours, Redis]),
        ("two_of_ours", [Ours, Ours, Redis], [Ours, Redis, Ours]),
    ];
    // Each group mostly waits.
    let runs = thread::scope(|scope| {
        let threads = ROWS.map(|(name, sentinels, nodes)| {
            scope.spawn(move || failover(name, sentinels.map(|whose| (whose, 2)), nodes))
        });
        threads.map(|thread| thread.join().expect("its own message says why"))
    });
    let median = |which: usize| {
        let mut of_redis: Vec<Duration> = runs[..3].iter().map(|said| times(said)[which]).collect();
        of_redis.sort();
        of_redis[1]
    };
    let medians = [0, 1, 2].map(median);
    let expected = [
        "+sdown",
        "+odown",
        "+new-epoch",
        "+try-failover",
        "+vote-for-leader",
        "+elected-leader",
        "+failover-state-select-slave",
        "+selected-slave",
        "+failover-state-send-slaveof-noone",
        "+failover-state-wait-promotion",
        "-role-change",
        "+promoted-slave",
        "+failover-state-reconf-slaves",
        "+slave-reconf-sent",
        "+slave-reconf-inprog",
        "+slave-reconf-done",
        "+failover-end",
        "+switch-master",
    ];
    for ((name, ..), said) in ROWS.iter().zip(&runs) {
        let (leader, _) = first(said, "+promoted-slave");
        let told: Vec<&str> = said
            .iter()
            .filter(|said| said.by == leader && said.event != "-odown" && !said.event.starts_with("+slave "))
            .map(|said| said.event.as_str())
            .filter(|event| *event != "+slave")
            .collect();
        // A lost race for the same epoch precedes the one that is won.
        let from = told.len().saturating_sub(expected.len());
        assert_eq!(told[from..], expected, "{name}: {said:#?}");
        let measured = times(said);
        eprintln!("{name}: {measured:?}; Redis alone: {medians:?}");
        let tolerances = [TOLERANCE_SDOWN, TOLERANCE_SWITCH, TOLERANCE_SWITCH];
        for ((measured, median), tolerance) in measured.iter().zip(medians).zip(tolerances) {
            assert!(
                measured.abs_diff(median) <= tolerance,
                "{name}: {measured:?} is not near {median:?}: {said:#?}"
            );
        }
    }
}

#[test]
fn a_sentinel_keeps_its_state_in_its_file() {
    let folder = folder("sentinel_file");
    let file = folder.join("sentinel.conf");
    fs::write(&file, "# mine\nsentinel monitor main 127.0.0.1 1 2\nloglevel warning\n").expect("written");
    let id_of = |served: &Served| {
        let mut stream = served.connect();
        stream.write_all(b"SENTINEL MYID\r\n").expect("open");
        text(&answer(&mut stream, &mut ReplyReader::default()).expect("answered"))
    };
    let served = Served::start(&folder, &["--sentinel", "--config", "sentinel.conf"]);
    let mut stream = served.connect();
    asks(&mut stream, "SENTINEL SET main quorum 3", "+OK\r\n");
    asks(&mut stream, "GET k", "-ERR unknown command 'GET'");
    let id = id_of(&served);
    served.signal(Signal::KILL);
    drop(served);
    let text = fs::read_to_string(&file).expect("a file");
    for line in
        ["# mine", "loglevel warning", "sentinel monitor main 127.0.0.1 1 3", &format!("sentinel myid {id}")]
    {
        assert!(text.lines().any(|known| known == line), "{line:?} is not in {text}");
    }
    let served = Served::start(&folder, &["--sentinel", "--config", "sentinel.conf"]);
    assert_eq!(id_of(&served), id, "it is the same Sentinel after a restart");
}

/// A Sentinel's file contains its knowledge, and one of the other kind that starts with the file
/// has it immediately.
#[test]
fn each_kind_of_sentinel_goes_on_with_the_file_of_the_other() {
    if installed().count() < 2 {
        return;
    }
    for (one, other) in [(Ours, Redis), (Redis, Ours)] {
        let folder = folder(&format!("sentinel_file_of_{one:?}"));
        let master = node(Redis, &folder, "m", None);
        let replicas = [1, 2].map(|at| node(Redis, &folder, &format!("r{at}"), Some(master.address)));
        replicas.iter().for_each(until_it_follows);
        let lines = watching(master.address, 2);
        let group = ["s1", "s2", "s3"].map(|name| sentinel_of(one, &folder, name, &lines));
        group.iter().for_each(|served| until_it_knows(served, 2, 2));
        // No process remains from which the next Sentinel could discover another.
        for served in group.into_iter().chain(replicas).chain([master]) {
            served.signal(Signal::KILL);
        }
        let file = folder.join("s1.conf");
        let written = fs::read_to_string(&file).expect("a file");
        let count = |word: &str| written.lines().filter(|line| line.starts_with(word)).count();
        assert_eq!(
            (count("sentinel known-replica main "), count("sentinel known-sentinel main ")),
            (2, 2),
            "{written}"
        );
        let served = sentinel_with(other, &folder, &file);
        let (mut stream, mut answers) = (served.connect(), ReplyReader::default());
        for command in ["SENTINEL REPLICAS main", "SENTINEL SENTINELS main"] {
            stream.write_all(format!("{command}\r\n").as_bytes()).expect("open");
            let Some(Reply::Array(known)) = answer(&mut stream, &mut answers) else { panic!("a list") };
            assert_eq!(known.len(), 2, "{other:?} with the file of {one:?}: {command}: {known:?}\n{written}");
        }
        stream.write_all(b"SENTINEL MYID\r\n").expect("open");
        let id = text(&answer(&mut stream, &mut answers).expect("answered"));
        assert!(written.lines().any(|line| line == format!("sentinel myid {id}")), "{id} in {written}");
    }
}

/// Regression: the rewrite moved the directives to the end, so that a comment lost the line that it
/// explains.
#[test]
fn a_rewritten_file_keeps_its_order() {
    const FILE: &str = "# first\nsentinel down-after-milliseconds main 20000\nSENTINEL  parallel-syncs main 2\n# then\n\
                        sentinel failover-timeout main 240000\nsentinel resolve-hostnames no\n\
                        sentinel monitor main 127.0.0.1 1 2\nsentinel monitor other 127.0.0.1 2 2\n\
                        sentinel down-after-milliseconds other 30000\nsentinel known-replica main 127.0.0.1 3\n\
                        sentinel announce-port 7\nsentinel deny-scripts-reconfig no\n# last\n";
    const REWRITTEN: [&str; 16] = [
        "# first",
        "sentinel down-after-milliseconds main 20000",
        "sentinel parallel-syncs main 2",
        "# then",
        "sentinel failover-timeout main 240000",
        "sentinel resolve-hostnames no",
        "sentinel monitor main 127.0.0.1 1 2",
        "sentinel monitor other 127.0.0.1 2 2",
        "sentinel known-replica main 127.0.0.1 3",
        "sentinel announce-port 7",
        "sentinel deny-scripts-reconfig no",
        "# last",
        "# Generated by CONFIG REWRITE",
        "sentinel config-epoch other 0",
        "sentinel current-epoch 0",
        "sentinel myid",
    ];
    let folder = folder("sentinel_order");
    for whose in installed() {
        let served = sentinel_of(whose, &folder, &format!("{whose:?}"), FILE);
        for _ in 0..2 {
            asks(&mut served.connect(), "SENTINEL FLUSHCONFIG", "+OK\r\n");
        }
        let text = fs::read_to_string(folder.join(format!("{whose:?}.conf"))).expect("a file");
        let mut lines: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("sentinel") || line.starts_with('#'))
            .filter(|line| !line.contains("-epoch main"))
            .map(|line| if line.starts_with("sentinel myid") { "sentinel myid" } else { line })
            .collect();
        // New lines come in an order of their own, and masters in the order of a table whose hash
        // is drawn when Redis starts.
        let from = lines.iter().position(|line| line.starts_with("# Generated")).expect("it was written");
        lines[from..].sort_unstable();
        let monitored =
            lines.iter().position(|line| line.starts_with("sentinel monitor")).expect("it watches two");
        lines[monitored..monitored + 2].sort_unstable();
        lines.retain(|line| !line.ends_with("leader-epoch other 0"));
        assert_eq!(lines, REWRITTEN, "{whose:?}: {text}");
    }
}

/// Regression: a connection whose SUBSCRIBE was refused counted as established, and the
/// subscription was not repeated.
#[test]
fn a_refused_subscription_is_tried_again() {
    const DIALED_MIN: u64 = 6;
    let folder = folder("sentinel_refused");
    for whose in installed() {
        let master = Served::beside(&folder, &["--requirepass", "secret"]);
        let watched = watching(master.address, 2);
        let _sentinel = sentinel_of(whose, &folder, &format!("{whose:?}"), &watched);
        let (mut stream, mut answers) = (master.connect(), ReplyReader::default());
        stream.write_all(b"AUTH secret\r\n").expect("open");
        answer(&mut stream, &mut answers);
        let began = now();
        loop {
            stream.write_all(b"INFO stats\r\n").expect("open");
            let info = text(&answer(&mut stream, &mut answers).expect("answered"));
            let accepted = info.lines().find_map(|line| line.strip_prefix("total_connections_received:"));
            // Two connections of the link and one of this test are not a second attempt.
            if accepted.and_then(|count| count.parse().ok()).is_some_and(|count: u64| count >= DIALED_MIN) {
                break;
            }
            assert!(began.elapsed() < PATIENCE, "{whose:?} dials no more: {info}");
            wait();
        }
    }
}

/// A scenario's file for its Sentinels is a valid file of `redis-sentinel`, with any option in
/// `config`.
#[test]
fn a_sentinel_starts_from_the_file_of_a_scenario() {
    let text = r#"
[node.localhost]
[sentinel.s]
down_after = "7s"
[sentinel.s.config]
announce-port = "26379"
auth-pass = "'of nodes'"
auth-user = "default"
deny-scripts-reconfig = "yes"
master-reboot-down-after-period = "5000"
maxclients = "100"
rename-command = "SLAVEOF FOLLOW"
requirepass = "of this one"
sentinel-pass = "'of the others'"
sentinel-user = "default"
timeout = "0"
[client.c]
"#;
    let source = lockstorm::file::scenario::parse("file.toml", text).expect("a scenario");
    let scenario = &source.variants[0].scenario;
    let file = scenario.sentinel["s"].file(scenario, "localhost");
    for whose in installed() {
        let folder = folder("file-of-a-scenario");
        let sentinel = sentinel_of(whose, &folder, "s", &file);
        let (mut stream, mut answers) = (sentinel.connect(), ReplyReader::default());
        stream.write_all(b"AUTH \"of this one\"\r\nSENTINEL MASTER localhost\r\n").expect("open");
        let welcome = answer(&mut stream, &mut answers).expect("a reply");
        let master = answer(&mut stream, &mut answers).map(|reply| format!("{reply:?}")).expect("a reply");
        assert!(matches!(welcome, Reply::Status(_)), "{whose:?}: {welcome:?}");
        assert!(master.contains("down-after-milliseconds") && master.contains("7000"), "{whose:?}: {master}");
    }
}
