//! One link to another Sentinel serves all masters that both watch.

use std::{collections::BTreeMap, io::Write, net::TcpListener, thread, time::Duration};

use lockstorm_sim::resp::{Reply, ReplyReader};

use super::{Ours, Whose, answer, fields, installed, node, now, sentinel_of, text, wait, watching};
use crate::served::{PATIENCE, Served, asks, folder};

/// A Sentinel's record of another Sentinel.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Record {
    port: String,
    /// `link-refcount`.
    users: String,
    last_ok_ping: Duration,
}

/// The records of the other Sentinels by ID, for the master `main` and for the master `other`.
type Records = [BTreeMap<String, Record>; 2];

/// A Sentinel's records right after a command, before it can receive any hello.
fn records_after(served: &Served, command: &str) -> Records {
    let (mut stream, mut answers) = (served.connect(), ReplyReader::default());
    let commands = format!("{command}\r\nSENTINEL SENTINELS main\r\nSENTINEL SENTINELS other\r\n");
    stream.write_all(commands.as_bytes()).expect("open");
    let done = answer(&mut stream, &mut answers).expect("answered");
    assert!(!done.is_error(), "{command}: {done:?}");
    ["main", "other"].map(|_| match answer(&mut stream, &mut answers).expect("answered") {
        Reply::Array(shown) => shown.iter().map(record).collect(),
        _ => BTreeMap::new(),
    })
}

fn record(shown: &Reply) -> (String, Record) {
    let fields = fields(shown);
    let last_ok_ping = Duration::from_millis(fields["last-ok-ping-reply"].parse().expect("milliseconds"));
    let record =
        Record { port: fields["port"].clone(), users: fields["link-refcount"].clone(), last_ok_ping };
    (fields["name"].clone(), record)
}

/// The number of masters that share each link, for both masters.
fn users(records: &Records) -> [Vec<&str>; 2] {
    records.each_ref().map(|records| records.values().map(|record| record.users.as_str()).collect())
}

/// The connections of one Sentinel to another, by their IDs there.
fn connections(of: &Served, to: &Served) -> Vec<String> {
    let ask = |served: &Served, command: &str| {
        let mut stream = served.connect();
        stream.write_all(format!("{command}\r\n").as_bytes()).expect("open");
        text(&answer(&mut stream, &mut ReplyReader::default()).expect("answered"))
    };
    let name = format!(" name=sentinel-{}-", &ask(of, "SENTINEL MYID")[..8]);
    let list = ask(to, "CLIENT LIST");
    let lines = list.lines().filter(|line| line.contains(&name));
    lines.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "it does not come to it that {what}");
        wait();
    }
}

fn shares_its_links(whose: Whose) {
    const BOTH: [[&str; 2]; 2] = [["2"; 2]; 2];
    let folder = folder(&format!("sentinel_shared_{whose:?}"));
    let masters = ["m", "n"].map(|name| node(Ours, &folder, name, None));
    let lines = watching(masters[0].address, 2) + &watching(masters[1].address, 2).replace("main", "other");
    let start = |whose, name: &str| sentinel_of(whose, &folder, name, &lines);
    let others = [start(Ours, "s1"), start(installed().last().expect("ours"), "s2")];
    let served = start(whose, "s0");
    let connected = || others.each_ref().map(|other| connections(&served, other));
    let shared = || {
        until("both masters share both links", || {
            users(&records_after(&served, "PING")) == BOTH && connected().iter().all(|ids| !ids.is_empty())
        });
    };
    shared();
    let first = connected();
    assert!(first.iter().all(|ids| ids.len() == 1), "{whose:?}: {first:?}");
    let [main, other] = records_after(&served, "PING");
    for (id, record) in &main {
        let apart = record.last_ok_ping.abs_diff(other[id].last_ok_ping);
        assert!(apart < Duration::from_millis(50), "{whose:?}: a PING for each master: {apart:?}");
    }

    // The other master keeps the link.
    let told = records_after(&served, "SENTINEL REMOVE other");
    assert_eq!(users(&told), [vec!["1"; 2], vec![]], "{whose:?}");
    let address = masters[1].address;
    records_after(&served, &format!("SENTINEL MONITOR other {} {} 2", address.ip(), address.port()));
    shared();
    let told = records_after(&served, "SENTINEL RESET main");
    assert_eq!(users(&told), [vec![], vec!["1"; 2]], "{whose:?}");
    shared();
    assert_eq!(connected(), first, "{whose:?}");

    // The link ends with its last master.
    let told = records_after(&served, "SENTINEL RESET *");
    assert_eq!(users(&told), [vec![], vec![]] as [Vec<&str>; 2], "{whose:?}");
    shared();
    let second = connected();
    assert!(second.iter().zip(&first).all(|(second, first)| second.len() == 1 && second != first));

    // A Sentinel that moves does so for both masters, and the link to its old address is closed.
    let mut stream = served.connect();
    asks(
        &mut stream,
        "SUBSCRIBE +sentinel-address-update",
        "*3\r\n$9\r\nsubscribe\r\n$24\r\n+sentinel-address-update\r\n:1\r\n",
    );
    let closed =
        TcpListener::bind(("127.0.0.1", 0)).expect("a free port").local_addr().expect("bound").port();
    records_after(&others[0], &format!("SENTINEL CONFIG SET announce-port {closed}"));
    until("it is known elsewhere", || {
        let told = records_after(&served, "PING");
        let moved = |records: &BTreeMap<String, Record>| {
            records.values().filter(|record| record.port == closed.to_string()).count()
        };
        assert_eq!(users(&told), BOTH, "{whose:?}");
        told.each_ref().map(moved) == [1, 1]
    });
    let Some(Reply::Array(event)) = answer(&mut stream, &mut ReplyReader::default()) else {
        panic!("an event")
    };
    let update = text(&event[2]);
    assert!(update.ends_with(" 1 additional matching instances"), "{whose:?}: {update}");
    until("the link is closed", || connected() == [vec![], second[1].clone()]);
}

/// Regression: each master had links of its own to the other Sentinels, with PINGs of its own.
#[test]
fn masters_share_the_link_to_another_sentinel() {
    thread::scope(|scope| {
        for whose in installed() {
            scope.spawn(move || shares_its_links(whose));
        }
    });
}
