//! A cluster on hosts of the world: three masters `a`, `b`, `c` with replicas `a1`, `b1`, `c1`, and
//! the times of their decisions.
//!
//! The node timeout (T) is 2,000 ms and a link takes 1 ms; a tick comes every 100 ms.

use std::{cell::RefCell, rc::Rc};

use lockstorm_sim::{
    config::{ClusterOptions, Config},
    drive::{DrivenNode, world},
    durability::Disk,
    event::{Action, ConnId, Event as ServerEvent},
    server::Server,
};

use super::*;

const NODES: [&str; 6] = ["a", "b", "c", "a1", "b1", "c1"];
const RANGES: [&str; 3] = ["0-5460", "5461-10922", "10923-16383"];
const NODE_TIMEOUT_MS: i64 = 2_000;

fn id(at: usize) -> String {
    format!("{at:x}").repeat(40)
}

/// Returns the cluster file of a node that knows all others.
fn nodes_conf(mine: usize) -> String {
    let lines = NODES.iter().enumerate().map(|(at, name)| {
        let (flags, master, slots) = match at {
            0..3 => ("master", "-".to_owned(), RANGES[at]),
            _ => ("slave", id(at - 3 + 1), ""),
        };
        let mine = if at == mine { "myself," } else { "" };
        let epoch = at % 3 + 1;
        format!("{} {name}:6379@16379 {mine}{flags} {master} 0 0 {epoch} connected {slots}\n", id(at + 1))
    });
    lines.collect::<String>() + "vars currentEpoch 3 lastVoteEpoch 0\n"
}

struct Cluster {
    world: World,
    nodes: Vec<DrivenNode>,
    now: i64,
}

impl Cluster {
    fn new(seed: u64, change: fn(&mut ClusterOptions)) -> Cluster {
        let mut builder = World::builder(seed).latency(Latency::Fixed(ms(1)));
        let nodes: Vec<DrivenNode> = NODES.iter().map(|_| DrivenNode::new()).collect();
        for (at, name) in NODES.into_iter().enumerate() {
            let driven = nodes[at].clone();
            builder = builder.host(name, move |ctx| {
                let mut config = Config::default().with(|config| config.persistence.save = Vec::new());
                config.cluster.enabled = true;
                config.cluster.node_timeout_ms = NODE_TIMEOUT_MS;
                config.cluster.announce_ip = name.into();
                change(&mut config.cluster);
                world::run_with(ctx, 6379, driven.clone(), move |env, before| {
                    let fresh = Disk { nodes: Some(nodes_conf(at)), ..Disk::default() };
                    let disk = before.map_or(fresh, |server| server.node().persistence.disk.clone());
                    Server::restart(config, disk, env)
                })
            });
        }
        Cluster { world: builder.build(), nodes, now: 0 }
    }

    fn order(&self, at_ms: i64, order: &str) {
        self.world.control().at(MS(at_ms), verb(order));
    }

    fn run_to(&mut self, at_ms: i64) {
        self.now = at_ms;
        self.world.run(MS(at_ms)).expect("it runs");
    }

    fn look<T>(&self, name: &str, look: impl FnOnce(&Server) -> T) -> T {
        let at = NODES.iter().position(|node| *node == name).expect("a node");
        self.nodes[at].look(look).expect("it runs, or has run")
    }

    fn is_ok(&self, name: &str) -> bool {
        self.look(name, |server| server.node().cluster.as_ref().is_some_and(|cluster| cluster.is_ok()))
    }

    fn is_master(&self, name: &str) -> bool {
        self.look(name, |server| !server.node().is_replica())
    }

    /// Returns the first time from now on at which `holds` is true, to 10 ms; `None` if it is not
    /// true before `until_ms`.
    fn when(&mut self, holds: impl Fn(&Cluster) -> bool, until_ms: i64) -> Option<i64> {
        while !holds(self) {
            if self.now >= until_ms {
                return None;
            }
            self.run_to(self.now + 10);
        }
        Some(self.now)
    }
}

#[test]
fn nodes_that_start_from_their_files_are_a_cluster_after_two_seconds() {
    let mut cluster = Cluster::new(1, |_| {});
    cluster.run_to(10);
    let ok = cluster.when(|cluster| NODES.iter().all(|name| cluster.is_ok(name)), 5_000).expect("all are ok");
    assert!((2_000..=2_300).contains(&ok), "masters stay closed for two seconds after their start: {ok}");
    cluster.run_to(10_000);
    assert!(NODES[..3].iter().all(|name| cluster.is_master(name)));
    assert!(NODES[3..].iter().all(|name| !cluster.is_master(name)));
    let up = |name| {
        cluster
            .look(name, |server| server.node().replication.master.as_ref().is_some_and(|link| link.is_up()))
    };
    assert!(NODES[3..].iter().all(|name| up(name)), "replicas follow");
}

/// PFAIL follows T after the first unanswered ping, and at most 1.5 T and a tick after the last
/// sign of life. FAIL follows within a second of gossip. The request for votes follows at a tick
/// 500 to 999 ms later, and the new master is elected when the answers arrive.
#[test]
fn a_killed_master_is_replaced_in_the_time_that_redis_takes() {
    for seed in 1..=8 {
        for order in ["kill a", "crash a", "pause a"] {
            let mut cluster = Cluster::new(seed, |_| {});
            cluster.order(20_000, order);
            cluster.run_to(20_000);
            let closed =
                cluster.when(|cluster| !cluster.is_ok("b"), 26_000).expect("b says that slots are down");
            assert!((22_000..=24_300).contains(&closed), "{order}, seed {seed}: closed at {closed}");
            let promoted = cluster.when(|cluster| cluster.is_master("a1"), 27_000).expect("a1 is elected");
            let took = promoted - closed;
            assert!(
                (400..=1_400).contains(&took),
                "{order}, seed {seed}: {took} ms from FAIL to the new master"
            );
            let open =
                cluster.when(|cluster| ["a1", "b", "c"].iter().all(|name| cluster.is_ok(name)), 28_000);
            assert!(open.is_some_and(|open| open - promoted <= 200), "{order}, seed {seed}: {open:?}");
        }
    }
}

#[test]
fn an_old_master_that_comes_back_is_a_replica_before_it_answers_again() {
    for (down, up) in [("kill a", "restart a"), ("pause a", "resume a")] {
        let mut cluster = Cluster::new(2, |_| {});
        cluster.order(20_000, down);
        cluster.order(40_000, up);
        cluster.run_to(40_000);
        assert!(cluster.is_master("a1"), "{down}");
        let follows = cluster.when(|cluster| !cluster.is_master("a"), 43_000);
        let follows = follows.unwrap_or_else(|| panic!("{up}: it follows"));
        assert!(follows <= 41_100, "{up}: {follows}");
    }
}

/// A master that is cut off stops within 1.5 T and a tick. After the heal it stays closed until it
/// has learned that it was replaced.
#[test]
fn a_master_in_a_minority_closes_and_follows_after_the_heal() {
    for seed in 1..=5 {
        let mut cluster = Cluster::new(seed, |_| {});
        for other in NODES.iter().filter(|name| **name != "a") {
            for (from, to) in [("a", *other), (*other, "a")] {
                cluster.order(20_000, &format!("cut {from} {to}"));
                cluster.order(40_000, &format!("heal {from} {to}"));
            }
        }
        cluster.run_to(20_000);
        let closed = cluster.when(|cluster| !cluster.is_ok("a"), 30_000).expect("a is among a minority");
        assert!((22_000..=23_100).contains(&closed), "seed {seed}: {closed}");
        let promoted = cluster.when(|cluster| cluster.is_master("a1"), 30_000).expect("a1 is elected");
        assert!((22_700..=25_500).contains(&promoted), "seed {seed}: {promoted}");
        cluster.run_to(40_000);
        assert!(cluster.is_master("a") && !cluster.is_ok("a"));
        let mut reopened = false;
        let follows = loop {
            reopened |= cluster.is_master("a") && cluster.is_ok("a");
            if !cluster.is_master("a") {
                break cluster.now;
            }
            assert!(cluster.now < 45_000, "seed {seed}: it never follows");
            cluster.run_to(cluster.now + 10);
        };
        assert!(!reopened, "seed {seed}: it answered as a master after the heal");
        assert!(follows <= 42_500, "seed {seed}: {follows}");
    }
}

#[test]
fn two_masters_never_fail_over() {
    let mut cluster = Cluster::new(3, |_| {});
    for name in ["c", "c1"] {
        cluster.order(20_000, &format!("kill {name}"));
    }
    cluster.order(60_000, "kill b");
    cluster.run_to(59_000);
    assert!(cluster.is_master("b"));
    // Two of three masters were left, which is a majority. Only one of them is left now, which is
    // none.
    assert_eq!(cluster.when(|cluster| cluster.is_master("b1"), 120_000), None);
}

/// Returns a function that runs a lone node, which knows the others by its file, and returns its
/// actions for each event.
fn alone(at: usize, change: fn(&mut ClusterOptions)) -> impl FnMut(Duration, ServerEvent) -> Vec<Action> {
    let mut env = lockstorm_sim::env::Env::new(1);
    let mut config = Config::default().with(|config| config.persistence.save = Vec::new());
    config.cluster.enabled = true;
    change(&mut config.cluster);
    config.cluster.announce_ip = NODES[at].into();
    let disk = Disk { nodes: Some(nodes_conf(at)), ..Disk::default() };
    let mut server = Server::restart(config, disk, &mut env);
    move |later, event| {
        env.monotonic += later;
        env.wall += later;
        server.step(&mut env, event);
        std::mem::take(&mut env.outbox)
    }
}

/// Returns the bytes that the replica `a1` sends to its master when an operator sends it `order`.
fn sent_to_master(order: &'static str) -> Vec<u8> {
    let client = ConnId(ConnId::FIRST);
    let (now, soon) = (Duration::ZERO, ms(200));
    let mut replica = alone(3, |_| {});
    let dials = replica(soon, ServerEvent::Alarm).into_iter().filter_map(|action| match action {
        Action::Dial { conn, host, .. } if conn.is_bus() => Some((conn, host)),
        _ => None,
    });
    let dials: Vec<_> = dials.collect();
    let mut said = Vec::new();
    for (conn, _) in &dials {
        said.extend(replica(now, ServerEvent::Dialed { conn: *conn, local: "a1:1".into() }));
    }
    said.extend(replica(now, connected(client, "operator:1")));
    said.extend(replica(now, ServerEvent::Bytes { conn: client, bytes: order.into() }));
    let (to_master, _) = dials.iter().find(|(_, host)| host == "a").expect("it dials a");
    let sent = said.iter().filter_map(|action| match action {
        Action::Send { conn, bytes } if conn == to_master => Some(&bytes[..]),
        _ => None,
    });
    sent.flatten().copied().collect()
}

fn connected(conn: ConnId, peer: &str) -> ServerEvent {
    ServerEvent::Connected { conn, peer: peer.into(), local: "x:1".into() }
}

/// Once, a master that learned of its successor when a tick was due redirected its blocked clients
/// because of the claim, before it processed its new role. Redis unblocks them with the claim.
#[test]
fn clients_that_wait_at_an_old_master_are_unblocked_and_not_redirected() {
    let client = ConnId(ConnId::FIRST);
    let line = |line: &'static str| ServerEvent::Bytes { conn: client, bytes: line.into() };
    let (now, soon) = (Duration::ZERO, ms(200));
    let claims = sent_to_master("CLUSTER FAILOVER TAKEOVER\r\n");

    for (late, what) in [(now, "between two ticks"), (soon, "with a tick that is due")] {
        let mut old = alone(0, |_| {});
        // A master refuses commands for two seconds after its start.
        for _ in 0..30 {
            old(soon, ServerEvent::Alarm);
        }
        old(now, connected(client, "waits:1"));
        // Its slot, 3300, belongs to `a`.
        let answered = old(now, line("BLPOP b 0\r\n"));
        assert!(!answered.iter().any(|action| matches!(action, Action::Send { .. })), "{answered:?}");
        let bus = ConnId(ConnId::BUS);
        old(now, connected(bus, "a1:1"));
        let done = old(late, ServerEvent::Bytes { conn: bus, bytes: claims.clone().into() });
        let told = done.iter().find_map(|action| match action {
            Action::Send { conn, bytes } if *conn == client => Some(String::from_utf8_lossy(bytes)),
            _ => None,
        });
        assert!(told.as_ref().is_some_and(|told| told.starts_with("-UNBLOCKED ")), "{what}: {told:?}");
    }
}

/// A master holds writes back for a replica until the failover is given up. Redis 7.0 and 8.2 and
/// Valkey 8.1 and 9.1 do so, too, if the replica is stopped right after the order.
#[test]
fn writes_wait_until_a_manual_failover_is_given_up() {
    let client = ConnId(ConnId::FIRST);
    let request = sent_to_master("CLUSTER FAILOVER\r\n");
    let cases: [(fn(&mut ClusterOptions), _); 2] =
        [(|_| {}, 5_000..=5_200), (|options| options.manual_failover_timeout_ms = 2_000, 2_000..=2_200)];
    for (change, expected) in cases {
        let mut master = alone(0, change);
        for _ in 0..30 {
            master(ms(200), ServerEvent::Alarm);
        }
        master(Duration::ZERO, connected(client, "writes:1"));
        let bus = ConnId(ConnId::BUS);
        master(Duration::ZERO, connected(bus, "a1:1"));
        master(Duration::ZERO, ServerEvent::Bytes { conn: bus, bytes: request.clone().into() });
        let mut done =
            master(Duration::ZERO, ServerEvent::Bytes { conn: client, bytes: "SET b v\r\n".into() });
        let mut waited = 0;
        let answers = |actions: &[Action]| {
            actions.iter().any(|action| matches!(action, Action::Send { conn, .. } if *conn == client))
        };
        while !answers(&done) && waited < 10_000 {
            waited += 100;
            done = master(ms(100), ServerEvent::Alarm);
        }
        assert!(expected.contains(&waited), "{waited} ms");
    }
}

/// A node that receives messages that no node would send continues.
#[test]
fn what_strangers_send_to_the_bus_does_no_harm() {
    let mut env = lockstorm_sim::env::Env::new(1);
    let mut config = Config::default().with(|config| config.persistence.save = Vec::new());
    config.cluster.enabled = true;
    let disk = Disk { nodes: Some(nodes_conf(0)), ..Disk::default() };
    let server = Rc::new(RefCell::new(Server::restart(config, disk, &mut env)));
    let mut step = |event| {
        server.borrow_mut().step(&mut env, event);
        std::mem::take(&mut env.outbox)
    };
    let garbage: [&[u8]; 4] = [b"GET / HTTP/1.1\r\n", b"RCmb", b"RCmb\0\0\0\0", b"RCmb\xff\xff\xff\xff"];
    for (at, bytes) in garbage.into_iter().enumerate() {
        let conn = ConnId(ConnId::BUS + at as u64);
        step(ServerEvent::Connected { conn, peer: "x:1".into(), local: "a:16379".into() });
        let bytes = bytes::Bytes::from_static(bytes);
        let done = step(ServerEvent::Bytes { conn, bytes: bytes.clone() });
        let killed = done.iter().any(|action| matches!(action, Action::Kill { conn: of, .. } if *of == conn));
        assert_eq!(killed, bytes.len() > 4, "{bytes:?}");
        step(ServerEvent::Closed { conn });
    }
    assert_eq!(server.borrow().node().cluster.as_ref().map(|cluster| cluster.connections()), Some(0));
}
