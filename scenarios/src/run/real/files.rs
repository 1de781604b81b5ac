//! The configuration of the processes of a group: each binds its connections to the address of its
//! host, and announces the doors of the host.

use std::net::SocketAddr;

use lockstorm_sim::{config::file::quoted, generation::Feature};

use super::{
    PORT,
    places::{BUS, Places, SENTINEL_PORT},
};
use crate::file::server::Server;

/// The file of a node that Sentinels watch. They make it write the file again (CONFIG REWRITE).
pub(super) const NODE_FILE: &str = "redis.conf";

/// The file of a Sentinel, which writes it again after each change of its state.
pub(super) const SENTINEL_FILE: &str = "sentinel.conf";

/// The file of a node of a cluster, which writes it again after each change of its view.
pub(super) const CLUSTER_FILE: &str = "nodes.conf";

/// Returns the options of a process on this address: its port, and the address of its own
/// connections. Before Redis 7.0 these come from the first address that it listens on.
fn own_address(address: SocketAddr, server: Option<&Server>) -> Vec<(String, String)> {
    let (ip, port) = (address.ip().to_string(), address.port().to_string());
    let mut options = vec![("bind".to_owned(), ip.clone()), ("port".to_owned(), port)];
    if server.is_none_or(|server| server.has_option("bind-source-addr")) {
        options.push(("bind-source-addr".to_owned(), ip));
    }
    options
}

/// Returns the options by which a node of a group announces the doors of its host. Empty outside of
/// groups.
pub(super) fn announcements(places: &Places, host: &str, server: Option<&Server>) -> Vec<(String, String)> {
    let Some(door) = places.door(host, PORT) else { return Vec::new() };
    let (ip, port) = (door.ip().to_string(), door.port().to_string());
    let mut options = Vec::new();
    if server.is_none_or(|server| server.has_option("bind-source-addr")) {
        options.push(("bind-source-addr", ip.clone()));
    }
    match places.door(host, BUS) {
        Some(bus) => options.extend([
            ("cluster-enabled", "yes".to_owned()),
            ("cluster-config-file", CLUSTER_FILE.to_owned()),
            ("cluster-announce-ip", ip),
            ("cluster-announce-port", port),
            ("cluster-announce-bus-port", bus.port().to_string()),
        ]),
        None => options.extend([("replica-announce-ip", ip), ("replica-announce-port", port)]),
    }
    options.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns the configuration file of a node on this address.
pub(super) fn node_file(address: SocketAddr, options: &[(String, String)], users: &[Vec<String>]) -> String {
    let own = [("bind", address.ip().to_string()), ("port", address.port().to_string())];
    let mut file: String = own.iter().map(|(name, value)| format!("{name} {value}\n")).collect();
    for (name, value) in options {
        let words: Vec<&str> = value.split_whitespace().collect();
        if name == "save" && words.len() > 1 {
            // Redis 6.2 takes one pair in a line.
            file.extend(words.chunks(2).map(|pair| format!("save {}\n", pair.join(" "))));
        } else if words.len() > 1 && !value.contains(['"', '\'', '\\']) {
            file += &format!("{name} {}\n", words.join(" "));
        } else {
            file += &format!("{name} {}\n", quoted(value));
        }
    }
    for words in users {
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        file += &format!("user {}\n", words.join(" "));
    }
    file
}

/// Returns the configuration file of the Sentinel of a host, from the one that names hosts.
pub(super) fn sentinel_file(
    written: &str,
    places: &Places,
    (host, address): (&str, SocketAddr),
    server: Option<&Server>,
) -> String {
    let own = own_address(address, server).into_iter().map(|(name, value)| format!("{name} {value}\n"));
    let mut file: String = own.collect();
    for line in written.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        file += &match words[..] {
            ["sentinel", "announce-ip", _] => match places.door(host, SENTINEL_PORT) {
                Some(door) => {
                    format!("sentinel announce-ip {}\nsentinel announce-port {}", door.ip(), door.port())
                }
                None => line.to_owned(),
            },
            ["sentinel", "monitor", name, master, _, quorum] => match places.door(master, PORT) {
                Some(door) => format!("sentinel monitor {name} {} {} {quorum}", door.ip(), door.port()),
                None => line.to_owned(),
            },
            _ => line.to_owned(),
        };
        file.push('\n');
    }
    file
}

/// Returns the `nodes.conf` of a node of a cluster, from the one that names hosts. A shard has the
/// id of its master, where the server keeps shards. Such a server belongs to no shard, and stops,
/// if its line has no shard id.
pub(super) fn cluster_file(written: &str, places: &Places, server: Option<&Server>) -> String {
    let shards = server.is_some_and(|server| server.has(Feature::ShardIds));
    let mut file = String::new();
    for line in written.lines() {
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let shard = match &words[..] {
            [_, _, _, master, ..] if master != "-" => master.clone(),
            [own, ..] => own.clone(),
            [] => String::new(),
        };
        if let Some(address) = words.get_mut(1)
            && let Some((host, _)) = address.split_once(':')
            && let (Some(door), Some(bus)) = (places.door(host, PORT), places.door(host, BUS))
        {
            *address = format!("{door}@{}", bus.port());
            if shards {
                *address += &format!(",,shard-id={shard}");
            }
        }
        file += &words.join(" ");
        file.push('\n');
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        file::{
            plan::{Plan, PlannedNode, PlannedSentinel},
            scenario::parse,
            server::Kind,
        },
        run::operator,
    };

    fn server(options: &[&str]) -> Server {
        Server {
            program: "/server".into(),
            kind: Kind::Redis,
            version: "7.0.15".to_owned(),
            commands: Default::default(),
            options: options.iter().map(|&option| option.to_owned()).collect(),
        }
    }

    fn plan(text: &str) -> Plan {
        let source = parse("group.toml", text).expect("it is a scenario");
        Plan::draw(&source.variants[0].scenario, 0)
    }

    fn software<'a, S: std::any::Any>(plan: &'a Plan, host: &str) -> &'a S {
        let planned = plan.hosts.iter().find(|planned| planned.name == host).expect("a host");
        let software: &dyn std::any::Any = &*planned.software;
        software.downcast_ref().expect("this software")
    }

    const WATCHED: &str = r#"
[node.m]
durability = "rdb"
[node.r]
replica_of = "m"
config = { client-output-buffer-limit = "normal 0 0 0" }
[sentinel.s]
count = 3
down_after = "5s"
failover_timeout = "1m"
[lock]
[client.c]
[run]
storm = "1s"
"#;

    /// The file of each process names its own port and address, and the doors of the others.
    #[test]
    fn each_process_of_a_watched_group_gets_its_file() {
        let plan = plan(WATCHED);
        let places = Places::with(&[
            ("m", PORT, "127.1.0.1:7001"),
            ("r", PORT, "127.1.0.2:7002"),
            ("s1", SENTINEL_PORT, "127.1.0.4:7004"),
        ]);
        let new = server(&["bind-source-addr"]);
        let node = |host: &str, own: &str, server: &Server| {
            let mut options = operator::options(&software::<PlannedNode>(&plan, host).node);
            options.extend(announcements(&places, host, Some(server)));
            node_file(own.parse().expect("an address"), &options, &[])
        };
        assert_eq!(
            node("m", "127.1.0.1:8001", &new),
            "bind 127.1.0.1\nport 8001\nsave 3600 1\nsave 300 100\nsave 60 10000\nappendonly \"no\"\n\
             appendfsync \"everysec\"\nbind-source-addr \"127.1.0.1\"\nreplica-announce-ip \"127.1.0.1\"\n\
             replica-announce-port \"7001\"\n"
        );
        assert_eq!(
            node("r", "127.1.0.2:8002", &server(&[])),
            "bind 127.1.0.2\nport 8002\nsave \"\"\nappendonly \"no\"\nappendfsync \"everysec\"\n\
             client-output-buffer-limit normal 0 0 0\nreplica-announce-ip \"127.1.0.2\"\n\
             replica-announce-port \"7002\"\n"
        );
        let own = ("s1", "127.1.0.4:8004".parse().expect("an address"));
        assert_eq!(
            sentinel_file(&software::<PlannedSentinel>(&plan, "s1").file, &places, own, Some(&new)),
            "bind 127.1.0.4\nport 8004\nbind-source-addr 127.1.0.4\nsentinel resolve-hostnames yes\n\
             sentinel announce-ip 127.1.0.4\nsentinel announce-port 7004\n\
             sentinel monitor m 127.1.0.1 7001 2\nsentinel down-after-milliseconds m 5000\n\
             sentinel failover-timeout m 60000\n"
        );
    }

    /// A node of a cluster gets the doors of all nodes for clients and for the bus.
    #[test]
    fn a_node_of_a_cluster_knows_the_others_by_their_doors() {
        let plan = plan("[node.n]\ncluster = true\ncount = 2\n[lock]\n[client.c]\n[run]\nstorm = \"1s\"\n");
        let places = Places::with(&[
            ("n1", PORT, "127.1.0.1:7001"),
            ("n1", BUS, "127.1.0.1:7101"),
            ("n2", PORT, "127.1.0.2:7002"),
            ("n2", BUS, "127.1.0.2:7102"),
        ]);
        let written = software::<PlannedNode>(&plan, "n2").nodes_conf.clone().expect("a file");
        let file = cluster_file(&written, &places, Some(&server(&[])));
        let addresses: Vec<&str> = file.lines().filter_map(|line| line.split(' ').nth(1)).collect();
        assert_eq!(addresses, ["127.1.0.1:7001@7101", "127.1.0.2:7002@7102", "currentEpoch"]);
        assert!(file.lines().nth(1).is_some_and(|line| line.contains(" myself,master - ")), "{file}");
        let of_today = Server { version: "8.2.3".to_owned(), ..server(&[]) };
        let file = cluster_file(&written, &places, Some(&of_today));
        for line in file.lines().filter(|line| line.contains("master")) {
            let words: Vec<&str> = line.split(' ').collect();
            assert!(words[1].ends_with(&format!(",,shard-id={}", words[0])), "{line}");
        }
        let options = announcements(&places, "n2", Some(&server(&["bind-source-addr"])));
        let options: Vec<String> =
            options.into_iter().map(|(name, value)| format!("{name} {value}")).collect();
        let expected = [
            "bind-source-addr 127.1.0.2",
            "cluster-enabled yes",
            "cluster-config-file nodes.conf",
            "cluster-announce-ip 127.1.0.2",
            "cluster-announce-port 7002",
            "cluster-announce-bus-port 7102",
        ];
        assert_eq!(options, expected);
        assert_eq!(announcements(&Places::default(), "n2", None), []);
    }
}
