//! Data and options with which a node in cluster mode refuses to start, and its treatment of data
//! from before cluster mode.

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Child, Command},
};

use super::{
    redis_is_there,
    rig::{
        Line,
        Whose::{self, Ours, Redis},
        free_port, log, spawn, text, until,
    },
};
use crate::served::{INSTALLED, asks, folder, nothing_to_compare_with, redis};

/// A node in cluster mode.
struct Started {
    child: Child,
    port: u16,
}

impl Started {
    /// The reply to a command line on a connection of its own.
    fn ask(&self, command: &str) -> String {
        let mut line = Line::to(self.port).expect("it listens");
        line.send(&command.split(' ').map(str::to_owned).collect::<Vec<_>>());
        text(&line.receive())
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a node on a folder, with these lines in its file; the error is its log.
fn start(whose: Whose, folder: &Path, lines: &str) -> Result<Started, String> {
    let port = free_port();
    let file = format!("port {port}\nbind 127.0.0.1\nsave \"\"\ncluster-enabled yes\n{lines}\n");
    fs::write(folder.join("node.conf"), file).expect("written");
    let mut command = match whose {
        Whose::Ours | Whose::OursAs(_) => {
            let mut command = Command::new(env!("CARGO_BIN_EXE_lockstorm"));
            command.args(["serve", "--as", INSTALLED.name(), "--end-with-stdin", "--data", "."]);
            command.args(["--config", "node.conf"]);
            command
        }
        Whose::Redis | Whose::RealOf(_) => {
            let mut command = Command::new("redis-server");
            command.arg("node.conf");
            command
        }
    };
    let mut child = spawn(&mut command, folder);
    let mut has_ended = false;
    until("it has loaded its data, or ends", || {
        has_ended = child.try_wait().expect("a child").is_some();
        let mut line = match Line::to(port) {
            _ if has_ended => return Ok(()),
            line => line.map_err(|error| error.to_string())?,
        };
        line.send(&["PING".to_owned()]);
        match text(&line.receive()) {
            // An earlier connection may still be open.
            told if told == "+PONG" || told.starts_with("-ERR max number of clients") => Ok(()),
            told => Err(told),
        }
    });
    // Long lines may be broken anywhere.
    let said = || log(folder).split_whitespace().collect::<Vec<_>>().join(" ");
    if has_ended { Err(said()) } else { Ok(Started { child, port }) }
}

/// A folder with the data of a node outside of any cluster after these commands.
fn data_of(test: &str, options: &[&str], commands: &[(&str, &str)]) -> std::path::PathBuf {
    let folder = folder(test);
    let before = redis(&folder, options).expect("redis-server is there");
    let mut stream = before.connect();
    for (command, answer) in commands {
        asks(&mut stream, command, answer);
    }
    stream.flush().expect("open");
    folder
}

#[test]
fn a_node_of_a_cluster_refuses_to_start_where_redis_does() {
    const REFUSED: &[(&str, &str)] = &[
        ("replicaof 127.0.0.1 1", "replicaof directive not allowed in cluster mode"),
        ("slaveof 127.0.0.1 1", "replicaof directive not allowed in cluster mode"),
        ("cluster-announce-port 70000", "argument must be between 0 and 65535 inclusive"),
        (
            "cluster-announce-hostname a_b",
            "Hostnames may only contain alphanumeric characters, hyphens or dots",
        ),
        ("cluster-preferred-endpoint-type name", "one of the following: ip, hostname, unknown-endpoint"),
        ("cluster-replica-validity-factor -1", "argument must be between 0 and 2147483647 inclusive"),
        ("maxclients 0", "argument must be between 1 and 4294967295 inclusive"),
        ("port 64000", "too high"),
    ];
    if !redis_is_there() {
        return nothing_to_compare_with();
    }
    for whose in [Redis, Ours] {
        for (lines, why) in REFUSED {
            let folder = folder(&format!("cluster_refused_{whose:?}"));
            let said = start(whose, &folder, lines).err().unwrap_or_else(|| panic!("{whose:?}: {lines}"));
            assert!(said.contains(why), "{whose:?}: {lines}: {said}");
        }
        let folder = folder(&format!("cluster_corrupted_{whose:?}"));
        fs::write(folder.join("nodes.conf"), "nonsense\n").expect("written");
        let said = start(whose, &folder, "").err().expect("no cluster is in the file");
        assert!(said.contains("Unrecoverable error: corrupted cluster config file"), "{whose:?}: {said}");
    }
}

/// Redis intends the same error as ours, but crashes when it counts the first such key for its
/// slot.
#[test]
fn a_node_of_a_cluster_has_no_snapshot_of_other_databases() {
    if !redis_is_there() {
        return nothing_to_compare_with();
    }
    for whose in [Redis, Ours] {
        let writes = [("SELECT 1", "+OK\r\n"), ("SET b 2", "+OK\r\n"), ("SAVE", "+OK\r\n")];
        let folder = data_of(&format!("cluster_snapshot_{whose:?}"), &[], &writes);
        let said = start(whose, &folder, "").err().unwrap_or_else(|| panic!("{whose:?} starts"));
        let is_told = said.contains("You can't have keys in a DB different than DB 0 when in Cluster mode.");
        assert!(is_told || whose == Redis, "{said}");

        // A key that has expired by then is in no database.
        let writes = [("SELECT 1", "+OK\r\n"), ("SET b 2 PXAT 1", "+OK\r\n"), ("SAVE", "+OK\r\n")];
        let folder = data_of(&format!("cluster_expired_{whose:?}"), &[], &writes);
        let node = start(whose, &folder, "").unwrap_or_else(|said| panic!("{whose:?}: {said}"));
        assert_eq!(node.ask("DBSIZE"), ":0", "{whose:?}");
    }
}

/// Regression: the node did not start at all.
#[test]
fn a_log_of_other_databases_is_replayed_into_the_first() {
    const WRITES: [(&str, &str); 3] =
        [("SET a 1", "+OK\r\n"), ("SELECT 1", "+OK\r\n"), ("SET b 2", "+OK\r\n")];
    if !redis_is_there() {
        return nothing_to_compare_with();
    }
    for whose in [Redis, Ours] {
        let options = ["--appendonly", "yes", "--appendfsync", "always"];
        let folder = data_of(&format!("cluster_log_{whose:?}"), &options, &WRITES);
        let node = start(whose, &folder, "appendonly yes").unwrap_or_else(|said| panic!("{whose:?}: {said}"));
        assert_eq!(node.ask("DBSIZE"), ":2", "{whose:?}");
        // The node takes the slots of both keys.
        let nodes = node.ask("CLUSTER NODES");
        assert!(nodes.contains(" connected 3300 15495"), "{whose:?}: {nodes}");
        assert_eq!(node.ask("CLUSTER GETKEYSINSLOT 3300 9"), "[\"b\"]", "{whose:?}");
    }
}

#[test]
fn a_node_of_a_cluster_starts_with_options_that_it_has_no_use_for() {
    if !redis_is_there() {
        return nothing_to_compare_with();
    }
    for whose in [Redis, Ours] {
        let folder = folder(&format!("cluster_starts_{whose:?}"));
        let node = start(whose, &folder, "replicaof no one\ndatabases 4\nmaxclients 1")
            .unwrap_or_else(|said| panic!("{whose:?}: {said}"));
        // The connection that found it listening closes a moment later.
        for (command, answer) in [
            ("CONFIG GET databases", "[\"databases\" \"4\"]"),
            ("SELECT 0", "+OK"),
            ("SELECT 1", "-ERR SELECT is not allowed in cluster mode"),
        ] {
            until(command, || match node.ask(command) {
                told if told == answer => Ok(()),
                told => Err(told),
            });
        }
        let mut first = Line::to(node.port).expect("it listens");
        until("there is one client", || {
            first.send(&["PING".to_owned()]);
            match text(&first.receive()) {
                told if told == "+PONG" => Ok(()),
                told => {
                    first = Line::to(node.port).expect("it listens");
                    Err(told)
                }
            }
        });
        let refused = node.ask("PING");
        assert_eq!(refused, "-ERR max number of clients + cluster connections reached", "{whose:?}");
    }
}
