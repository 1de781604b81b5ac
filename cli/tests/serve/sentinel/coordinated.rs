//! SENTINEL FAILOVER COORDINATED of Valkey 9.1: our Sentinel with real nodes, a real Sentinel with
//! ours, and each with its own kind.

use std::{
    fs,
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    net::{SocketAddr, TcpListener},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use lockstorm_sim::{
    generation::Generation,
    resp::{Reply, ReplyReader},
};

use super::{Ours, Whose, answer, now, text, until_it_follows, until_it_knows, wait, watching};
use crate::served::{self, PATIENCE, Served, asks, folder, program};

const VALKEY: Generation = Generation::Valkey91;

/// The events of a Sentinel that coordinates the failover of a master with one replica.
const EVENTS: [&str; 15] = [
    "+new-epoch",
    "+try-failover",
    "-sdown",
    "+vote-for-leader",
    "+elected-leader",
    "+failover-state-select-slave",
    "+selected-slave",
    "+failover-state-send-slaveof-noone",
    "+failover-state-wait-promotion",
    "-role-change",
    "+promoted-slave",
    "+failover-state-reconf-slaves",
    "+failover-end",
    "+switch-master",
    "+slave",
];

/// Starts a node of Valkey 9.1; `None` if it is to be a real one and none is installed.
fn node(whose: Whose, folder: &Path, master: Option<SocketAddr>) -> Option<Served> {
    let of = master.map(|master| format!("{} {}", master.ip(), master.port()));
    if whose == Ours {
        let of = of.map(|of| format!("replicaof={of}"));
        let mut arguments = vec!["--as", VALKEY.name(), "--option", "repl-diskless-sync-delay=0"];
        arguments.extend(of.iter().flat_map(|of| ["--option", of.as_str()]));
        return Some(Served::start(folder, &arguments));
    }
    let mut arguments = vec!["--save", "", "--repl-diskless-sync-delay", "0"];
    arguments.extend(of.iter().flat_map(|of| ["--replicaof", of.as_str()]));
    Some(served::start(&program(VALKEY)?, folder, &arguments))
}

/// Starts a Sentinel of Valkey 9.1 with these lines in its file; `None` as above.
fn sentinel(whose: Whose, folder: &Path, lines: &str) -> Option<Served> {
    let free = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = free.local_addr().expect("it is bound");
    drop(free);
    let file = folder.join("sentinel.conf");
    fs::write(&file, format!("port {}\nbind 127.0.0.1\n{lines}", address.port())).expect("written");
    let path = file.to_str().expect("a path in UTF-8");
    if whose == Ours {
        return Some(Served::start(folder, &["--as", VALKEY.name(), "--sentinel", "--config", path]));
    }
    let mut child = Command::new(program(VALKEY)?)
        .args([path, "--sentinel"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let out = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut served = Served { child, out, address };
    let mut line = String::new();
    while !line.contains("+monitor") {
        line.clear();
        assert!(served.out.read_line(&mut line).expect("a log") > 0, "the Sentinel does not start");
    }
    Some(served)
}

/// Sends a command on a connection of its own.
fn ask(served: &Served, command: &str) -> Reply {
    let mut stream = served.connect();
    stream.write_all(format!("{command}\r\n").as_bytes()).expect("open");
    answer(&mut stream, &mut ReplyReader::default()).expect("answered")
}

/// Returns true if a node is a master. It asks again if the failover ends its connection.
fn is_master(served: &Served) -> bool {
    for _ in 0..10 {
        let (mut stream, mut role) = (served.connect(), [0; 64]);
        if stream.write_all(b"ROLE\r\n").is_ok()
            && let Ok(len @ 1..) = stream.read(&mut role)
        {
            return role[..len].windows(6).any(|word| word == b"master");
        }
    }
    panic!("no role");
}

/// Has a Sentinel hand the role of a master over to its replica. At no time are both masters, no
/// acknowledged write is lost, and the old master's clients are disconnected.
fn hands_over(name: &str, whose_sentinel: Whose, whose_nodes: Whose) {
    let folder = folder(&format!("sentinel_coordinated_{name}"));
    let own = ["m", "r"].map(|node| folder.join(node));
    own.iter().for_each(|own| fs::create_dir_all(own).expect("a folder"));
    let Some(master) = node(whose_nodes, &own[0], None) else { return };
    let replica = node(whose_nodes, &own[1], Some(master.address)).expect("as the master");
    until_it_follows(&replica);
    let Some(sentinel) = sentinel(whose_sentinel, &folder, &watching(master.address, 1)) else { return };
    until_it_knows(&sentinel, 1, 0);
    let (mut events, mut said) = (sentinel.connect(), ReplyReader::default());
    asks(&mut events, "PSUBSCRIBE *", "*3\r\n$10\r\npsubscribe\r\n$1\r\n*\r\n:1\r\n");
    events.set_read_timeout(Some(Duration::from_millis(20))).expect("a time-out can be set");
    let mut client = master.connect();
    asks(&mut client, "SET last 1", "+OK\r\n");
    let error = |reply: Reply| match reply {
        Reply::Error(text) => text.to_string(),
        other => format!("{other:?}"),
    };
    let unknown = error(ask(&sentinel, "SENTINEL FAILOVER main AGREED"));
    assert_eq!(unknown, "ERR Unknown failover option specified", "{name}");
    // The replica is no candidate before its first INFO.
    let (mut stream, mut answers) = (sentinel.connect(), ReplyReader::default());
    let began = now();
    loop {
        let command = "SENTINEL FAILOVER main COORDINATED\r\n";
        stream.write_all(command.repeat(2).as_bytes()).expect("open");
        let [one, other] = [(); 2].map(|()| answer(&mut stream, &mut answers).expect("answered"));
        if matches!(&one, Reply::Status(_)) {
            assert_eq!(error(other), "INPROG Failover already in progress", "{name}");
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{name}: {one:?}");
        wait();
    }
    let mut told: Vec<String> = Vec::new();
    while told.last().is_none_or(|event| event != "+slave") {
        assert!(began.elapsed() < PATIENCE, "{name}: it does not end: {told:?}");
        // In this order: a promoted replica stays a master.
        assert!(!(is_master(&replica) && is_master(&master)), "{name}: two masters after {told:?}");
        while let Some(Reply::Array(message)) = answer(&mut events, &mut said) {
            told.push(text(&message[2]));
        }
    }
    // The Sentinel may discover its replica during the commands.
    let from = told.iter().position(|event| event == EVENTS[0]).unwrap_or_default();
    assert_eq!(told[from..], EVENTS, "{name}");
    asks(&mut replica.connect(), "GET last", "$1\r\n1\r\n");
    asks(&mut replica.connect(), "SET last 2", "+OK\r\n");
    asks(&mut master.connect(), "SET last 3", "-READONLY");
    let end = client.read(&mut [0; 16]);
    let is_end =
        matches!(&end, Ok(0)) || end.as_ref().is_err_and(|why| why.kind() == ErrorKind::ConnectionReset);
    assert!(is_end, "{name}: {end:?}");
}

#[test]
fn a_master_hands_its_role_over_to_any_kind() {
    let rows = [
        ("ours", Ours, Ours),
        ("our_sentinel", Ours, Whose::Redis),
        ("our_nodes", Whose::Redis, Ours),
        ("real", Whose::Redis, Whose::Redis),
    ];
    thread::scope(|scope| {
        for (name, sentinel, nodes) in rows {
            scope.spawn(move || hands_over(name, sentinel, nodes));
        }
    });
}
