//! FAILOVER: a master hands over to its replica.

use std::time::Duration;

use redis::Connection;

use super::node::{Node, ask, pause, until};

const STATE: &str = "master_failover_state";

/// Makes a master and a replica that has all its data, and checks the commands that they refuse.
fn paired(master: &mut Node, replica: &mut Node) {
    master.ask("SET k 1");
    replica.follow(master);
    master.ask("SET k 2");
    assert_eq!(master.ask("WAIT 1 5000"), "1");
}

fn is_refused(node: &mut Node, line: &str, why: &str) {
    let answer = node.ask(line);
    assert!(answer.contains(why), "{line}: {answer}");
}

pub(crate) fn a_replica_that_has_everything_takes_over(mut first: Node, mut second: Node) {
    is_refused(&mut first, "FAILOVER", "FAILOVER requires connected replicas.");
    paired(&mut first, &mut second);
    let (host, port) = (second.host(), second.port());
    is_refused(&mut first, "FAILOVER ABORT", "No failover in progress.");
    is_refused(&mut first, "FAILOVER TO nobody 1", "FAILOVER target HOST and PORT is not a replica.");
    is_refused(
        &mut first,
        &format!("FAILOVER TO {host} 1"),
        "FAILOVER target HOST and PORT is not a replica.",
    );
    is_refused(&mut first, "FAILOVER TIMEOUT 1 FORCE", "requires both a timeout and target HOST and IP.");
    is_refused(&mut second, "FAILOVER", "FAILOVER is not valid when server is a replica.");
    is_refused(&mut first, "PSYNC x 1 FAILOVER", "PSYNC FAILOVER can't be sent to a master.");
    is_refused(&mut second, "PSYNC x 1 FAILOVER", "PSYNC FAILOVER replid must match my replid.");
    let id = first.info("master_replid");
    assert_eq!(first.ask(&format!("FAILOVER TO {host} {port} TIMEOUT 9000")), "OK");
    first.until_linked();
    assert_eq!(second.info("role"), "master");
    is_refused(&mut first, "SET k 3", "You can't write against a read only replica.");
    assert_eq!(second.ask("SET k 4"), "OK");
    assert_eq!(second.ask("WAIT 1 5000"), "1");
    assert_eq!(first.ask("GET k"), "4");
    // No full resynchronization: both know the history under its new name and its old one.
    assert_eq!((second.info("sync_full"), second.info("sync_partial_ok")), ("0".into(), "1".into()));
    for node in [&mut first, &mut second] {
        assert_eq!((node.info(STATE), node.info("master_replid2")), ("no-failover".into(), id.clone()));
    }
    // The same in the other direction, to any replica.
    assert_eq!(second.ask("FAILOVER"), "OK");
    second.until_linked();
    assert_eq!(first.ask("SET k 5"), "OK");
    assert_eq!(first.ask("WAIT 1 5000"), "1");
    assert_eq!(second.ask("GET k"), "5");
}

pub(crate) fn a_replica_that_is_late_does_not(mut first: Node, mut second: Node) {
    paired(&mut first, &mut second);
    let mut reader = first.connect();
    second.sleep(1.5);
    first.ask("SET k 3");
    assert_eq!(first.ask("FAILOVER TIMEOUT 500"), "OK");
    assert_eq!(first.info(STATE), "waiting-for-sync");
    assert_eq!(first.info("role"), "master");
    is_refused(&mut first, "FAILOVER", "FAILOVER already in progress.");
    is_refused(&mut first, "REPLICAOF 127.0.0.1 1", "REPLICAOF not allowed while failing over.");
    is_refused(&mut first, "PSYNC ? -1", "Can't SYNC while failing over");
    assert_eq!(ask(&mut reader, "GET k"), "3");
    // A write waits for the end of the failover.
    assert_eq!(first.ask("SET k 4"), "OK");
    assert_eq!(first.info(STATE), "no-failover");
    assert_eq!(first.info("role"), "master");
    until("the replica has it", || second.ask("GET k") == "4");
    assert_eq!(second.info("role"), "slave");
}

pub(crate) fn unless_it_is_forced_to(mut first: Node, mut second: Node) {
    paired(&mut first, &mut second);
    let to = format!("{} {}", second.host(), second.port());
    second.sleep(1.5);
    first.ask("SET k 3");
    assert_eq!(first.ask(&format!("FAILOVER TO {to} TIMEOUT 300 FORCE")), "OK");
    until("its time is up", || first.info(STATE) == "failover-in-progress");
    assert_eq!(first.info("role"), "slave");
    is_refused(&mut first, "FAILOVER", "FAILOVER already in progress.");
    first.until_linked();
    assert_eq!(first.info(STATE), "no-failover");
    assert_eq!(second.ask("SET k 4"), "OK");
    assert_eq!(second.ask("WAIT 1 5000"), "1");
    assert_eq!(first.ask("GET k"), "4");
}

pub(crate) fn what_is_under_way_can_be_called_off(mut first: Node, mut second: Node) {
    paired(&mut first, &mut second);
    let to = format!("{} {}", second.host(), second.port());
    second.sleep(1.5);
    first.ask("SET k 3");
    assert_eq!(first.ask(&format!("FAILOVER TO {to}")), "OK");
    assert_eq!(first.info(STATE), "waiting-for-sync");
    assert_eq!(first.ask("FAILOVER ABORT"), "OK");
    assert_eq!((first.info(STATE), first.info("role")), ("no-failover".into(), "master".into()));
    assert_eq!(first.ask("SET k 4"), "OK");
    let id = first.info("master_replid");
    // The same after it has begun to follow the replica: it becomes a master again, under another
    // replication ID.
    assert_eq!(first.ask(&format!("FAILOVER TO {to} TIMEOUT 100 FORCE")), "OK");
    until("its time is up", || first.info(STATE) == "failover-in-progress");
    assert_eq!(first.ask("FAILOVER ABORT"), "OK");
    assert_eq!((first.info(STATE), first.info("role")), ("no-failover".into(), "master".into()));
    assert_eq!(first.info("master_replid2"), id);
    assert_eq!(first.ask("SET k 5"), "OK");
    pause(Duration::from_millis(100));
    until("the replica has it", || second.ask("GET k") == "5");
    assert_eq!(second.info("role"), "slave");
}

fn send(connection: &mut Connection, line: &str) {
    let mut command = redis::Cmd::new();
    command.arg(line.split(' ').collect::<Vec<_>>());
    connection.send_packed_command(&command.get_packed_command()).expect("it is sent");
}

/// The failover loses the connections of clients blocked for more than its acknowledgement, and
/// replies to the client that waits for the same one.
pub(crate) fn who_waits_for_the_same_acknowledgement_is_answered(mut first: Node, mut second: Node) {
    paired(&mut first, &mut second);
    let waiting = [first.connect(), first.connect(), first.connect()];
    let [mut writer, mut reader, mut counter] = waiting;
    send(&mut reader, "BLPOP q 0");
    assert_eq!(ask(&mut counter, "SET k 3"), "OK");
    send(&mut counter, "WAIT 2 0");
    until("both wait", || first.info("blocked_clients") == "2");
    second.sleep(1.0);
    assert_eq!(ask(&mut writer, "SET k 4"), "OK");
    assert_eq!(first.ask("FAILOVER"), "OK");
    assert_eq!(first.info(STATE), "waiting-for-sync");
    assert_eq!(ask(&mut writer, "WAIT 1 5000"), "1");
    for connection in [&mut reader, &mut counter] {
        let answer = connection.recv_response().map_err(|error| error.to_string());
        assert!(format!("{answer:?}").contains("force unblock from blocking operation"), "{answer:?}");
        let end = connection.recv_response().expect_err("the connection ends");
        assert!(end.is_connection_dropped(), "{end:?}");
    }
    assert_eq!(first.info("role"), "slave");
    // It has waited for no key and no other replica, so it stays connected.
    assert_eq!(ask(&mut writer, "GET k"), "4");
}

/// A master without a replica keeps the end of the stream for `repl-backlog-ttl`, and no longer.
pub(crate) fn a_backlog_without_replicas_is_freed(mut first: Node, mut second: Node) {
    paired(&mut first, &mut second);
    let id = first.info("master_replid");
    assert_eq!(first.info("repl_backlog_active"), "1");
    assert_eq!(first.ask("CONFIG SET repl-backlog-ttl 1"), "OK");
    second.ask("REPLICAOF NO ONE");
    until("the backlog is forgotten", || first.info("repl_backlog_active") == "0");
    assert_ne!(first.info("master_replid"), id);
    assert_eq!(first.info("master_replid2"), "0".repeat(40));
    // The returning node needs a full resynchronization; it asks for a partial one, with its
    // history from before.
    second.follow(&first);
    assert_eq!((first.info("sync_full"), first.info("sync_partial_err")), ("2".into(), "2".into()));
}
