//! SENTINEL FAILOVER to its end: replies, events, and the state after a restart of the promoted
//! node.

use std::{fs, io::Write, time::Duration};

use lockstorm_sim::resp::{Reply, ReplyReader};
use rustix::process::Signal;

use super::{
    Whose, answer, installed, now, sentinel_of, text, until_it_follows, until_it_knows, wait, watching,
};
use crate::served::{PATIENCE, Served, asks, folder};

/// The events of a failover by a single Sentinel, for a master with one replica.
const EVENTS: [&str; 14] = [
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
    "+failover-end",
    "+switch-master",
    "+slave",
];

/// Makes a Sentinel replace a healthy master, and restarts the promoted node. The Sentinel has sent
/// it CONFIG REWRITE, so its file no longer names a master.
fn promotes(whose: Whose) {
    let folder = folder(&format!("sentinel_by_hand_{whose:?}"));
    let master = Served::beside(&folder, &["--option", "repl-diskless-sync-delay=0"]);
    let file = folder.join("r.conf");
    let lines = format!("# mine\nreplicaof {} {}\nhz 20\n", master.address.ip(), master.address.port());
    fs::write(&file, &lines).expect("written");
    let start = || Served::beside(&folder, &["--config", "r.conf"]);
    let replica = start();
    until_it_follows(&replica);
    let sentinel = sentinel_of(whose, &folder, "s", &watching(master.address, 1));
    until_it_knows(&sentinel, 1, 0);
    let (mut events, mut said) = (sentinel.connect(), ReplyReader::default());
    asks(&mut events, "PSUBSCRIBE *", "*3\r\n$10\r\npsubscribe\r\n$1\r\n*\r\n:1\r\n");
    events.set_read_timeout(Some(Duration::from_millis(20))).expect("a time-out can be set");
    // The replica is no candidate before its first INFO.
    let (mut stream, mut answers) = (sentinel.connect(), ReplyReader::default());
    let began = now();
    loop {
        stream.write_all(b"SENTINEL FAILOVER main\r\nSENTINEL FAILOVER main\r\n").expect("open");
        let [one, other] = [(); 2].map(|()| answer(&mut stream, &mut answers).expect("answered"));
        if let (Reply::Status(ok), Reply::Error(refused)) = (&one, &other) {
            assert_eq!((&**ok, &**refused), ("OK", "INPROG Failover already in progress"), "{whose:?}");
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{whose:?}: {one:?}");
        wait();
    }
    let mut told: Vec<String> = Vec::new();
    while told.last().is_none_or(|event| event != "+slave") {
        assert!(began.elapsed() < PATIENCE, "{whose:?}: it does not end: {told:?}");
        if let Some(Reply::Array(message)) = answer(&mut events, &mut said) {
            told.push(text(&message[2]));
        }
    }
    // The Sentinel may discover its replica during the commands.
    let from = told.iter().position(|event| event == EVENTS[0]).unwrap_or_default();
    assert_eq!(told[from..], EVENTS, "{whose:?}");
    asks(&mut replica.connect(), "SET k v", "+OK\r\n");
    replica.signal(Signal::KILL);
    drop(replica);
    let written = fs::read_to_string(&file).expect("a file");
    assert!(written.starts_with("# mine\nhz 20\n"), "{whose:?}: {written}");
    asks(&mut start().connect(), "ROLE", "*3\r\n$6\r\nmaster\r\n");
}

#[test]
fn a_promoted_node_is_a_master_when_it_starts_again() {
    installed().for_each(promotes);
}
