//! Migrations of slots between Valkey 9 nodes on hosts of the world, atomic ones and those by
//! SETSLOT: masters `a` and `b`, and a replica `b1` of `b`. Links take 20 ms, a tick comes every
//! 100 ms.

use lockstorm_sim::{
    config::Config,
    drive::{DrivenNode, world},
    durability::Disk,
    generation::Generation,
    server::Server,
};

use super::*;

/// The nodes, each with its line of the cluster file.
const NODES: [(&str, &str); 3] = [
    ("a", "master - 0 0 1 connected 0-8191"),
    ("b", "master - 0 0 2 connected 8192-16383"),
    ("b1", "slave ID 0 0 2 connected"),
];

/// Moves the slot of `foo` to `a`.
const MIGRATE: &str =
    "CLUSTER MIGRATESLOTS SLOTSRANGE 12182 12182 NODE aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

fn id(at: usize) -> String {
    ["a", "b", "c"][at].repeat(40)
}

fn nodes_conf(mine: usize) -> String {
    let lines = NODES.iter().enumerate().map(|(at, (name, rest))| {
        let mine = if at == mine { "myself," } else { "" };
        format!("{} {name}:6379@16379 {mine}{}\n", id(at), rest.replace("ID", &id(1)))
    });
    lines.collect::<String>() + "vars currentEpoch 2 lastVoteEpoch 0\n"
}

/// A command: its time in milliseconds, the node, and its words.
type Said = (i64, &'static str, &'static str);

struct Group {
    world: World,
    nodes: Vec<DrivenNode>,
}

/// Runs a group for some seconds with these orders, each at a millisecond. Each command has a
/// connection of its own, made two seconds after the start.
fn play(commands: &'static [Said], orders: &[(i64, &str)], secs: i64) -> Group {
    let mut builder = World::builder(1).latency(Latency::Fixed(ms(20))).keep(TraceRetention::Events);
    let nodes: Vec<DrivenNode> = NODES.iter().map(|_| DrivenNode::new()).collect();
    for (at, (name, _)) in NODES.into_iter().enumerate() {
        let driven = nodes[at].clone();
        builder = builder.host(name, move |ctx| {
            let mut config =
                Config::of(Generation::Valkey91).with(|config| config.persistence.save = Vec::new());
            config.cluster.enabled = true;
            config.cluster.announce_ip = name.into();
            config.replication.diskless_sync_delay = 0;
            world::run_with(ctx, 6379, driven.clone(), move |env, before| {
                let fresh = Disk { nodes: Some(nodes_conf(at)), ..Disk::default() };
                let disk = before.map_or(fresh, |server| server.node().persistence.disk.clone());
                Server::restart(config, disk, env)
            })
        });
    }
    for (number, (at, node, command)) in commands.iter().enumerate() {
        builder = builder.host(format!("c{number}"), move |ctx| async move {
            ctx.sleep_until(Monotonic::from_secs(2)).await;
            let mut stream = ctx.dial(node, 6379).await.expect("the node listens");
            ctx.sleep_until(Monotonic::from_millis(*at)).await;
            stream.write_all(format!("{command}\r\n").as_bytes()).await.expect("open");
            let mut reply = [0; 4096];
            let read = stream.read(&mut reply).await.unwrap_or_default();
            ctx.observe("reply", format!("{command} -> {}", reply[..read].escape_ascii()));
            std::future::pending::<()>().await;
        });
    }
    let mut world = builder.build();
    for (at, order) in orders {
        world.control().at(MS(*at), verb(order));
    }
    world.run(MS(secs * 1_000)).expect("it runs");
    Group { world, nodes }
}

impl Group {
    /// Returns the time of the reply to a command, and asserts that it begins as expected.
    fn reply(&self, command: &str, expected: &str) -> i64 {
        let begin = format!("{command} -> ");
        let found = self.world.records().into_iter().find_map(|record| match record.event {
            Event::Observed { kind: "reply", detail } => {
                detail.strip_prefix(&begin).map(|reply| (reply.to_owned(), record.at.as_millis()))
            }
            _ => None,
        });
        let (reply, at) = found.unwrap_or_else(|| panic!("no reply to {command}"));
        assert!(reply.starts_with(expected), "{command}: {reply}");
        at
    }

    /// Returns the jobs that a node shows, as text.
    fn jobs(&self, at: usize) -> String {
        let jobs =
            self.nodes[at].look(|server| server.node().cluster.as_ref().map(|cluster| cluster.show_jobs()));
        format!("{:?}", jobs.flatten().expect("it runs, in a cluster"))
    }

    fn keys(&self, at: usize) -> usize {
        self.nodes[at].look(|server| server.node().dbs[0].len()).expect("it runs")
    }
}

/// The copy leaves at the tick at 3.2 s. The target has it at 3.22 s, the source holds writes back
/// from 3.24 s on, lets the target have the slot at 3.28 s, and knows that it has it at 3.32 s.
#[test]
fn a_slot_moves_with_its_writes_and_without_a_time_of_two_answers() {
    const COMMANDS: &[Said] = &[
        (2_500, "b", "SET foo 1 PX 60000"),
        (2_500, "b", "BLPOP {foo}queue 0"),
        (3_030, "b", MIGRATE),
        (3_090, "b", "CLUSTER SETSLOT 12182 STABLE"),
        (3_205, "b", "INCR foo"),
        (3_210, "a", "DBSIZE"),
        (3_230, "b", "EVAL \"return redis.call('incr', KEYS[1])\" 1 foo"),
        (3_230, "b", "SET a 1"),
        (3_230, "b", "GET foo"),
        (3_400, "a", "GET foo"),
        (3_400, "a", "PTTL foo"),
        (3_400, "b", "EXISTS foo"),
        (3_400, "b", "CLUSTER CANCELSLOTMIGRATIONS"),
    ];
    let group = play(COMMANDS, &[], 6);
    group.reply("SET foo 1 PX 60000", "+OK");
    group.reply(MIGRATE, "+OK");
    group.reply("CLUSTER SETSLOT 12182 STABLE", "-ERR Slot export in progress.");
    assert_eq!(group.reply("INCR foo", ":2"), 3_245);
    // The target has the copy, which no command about all keys shows.
    assert_eq!(group.reply("DBSIZE", ":0"), 3_250);
    // Writes wait, those to other slots as well; reads do not.
    assert_eq!(group.reply(COMMANDS[6].2, "-MOVED 12182 a:6379"), 3_340);
    assert_eq!(group.reply("SET a 1", "+OK"), 3_340);
    assert_eq!(group.reply("GET foo", "$1\\r\\n2"), 3_270);
    group.reply("BLPOP {foo}queue 0", "-MOVED 12182 a:6379");
    group.reply("PTTL foo", ":59");
    group.reply("EXISTS foo", "-MOVED 12182 a:6379");
    group.reply("CLUSTER CANCELSLOTMIGRATIONS", "-ERR No migrations ongoing");
    for at in [0, 1] {
        assert!(group.jobs(at).contains("success"), "{}", group.jobs(at));
    }
    assert_eq!((group.keys(0), group.keys(1)), (1, 1));
}

/// The permission to take the slot waits on a cut link for longer than the source holds writes
/// back: the source takes writes again, and they are lost.
#[test]
fn a_permission_that_comes_after_the_pause_loses_writes() {
    const COMMANDS: &[Said] = &[
        (2_500, "b", "SET foo old"),
        (3_030, "b", MIGRATE),
        (4_000, "b", "SET foo new"),
        (16_000, "a", "GET foo"),
    ];
    let group = play(COMMANDS, &[(3_270, "cut b a"), (15_000, "heal b a")], 20);
    // The pause begins at 3.24 s and lasts 10 s.
    assert_eq!(group.reply("SET foo new", "+OK"), 13_260);
    group.reply("GET foo", "$3\\r\\nold");
    assert!(group.jobs(0).contains("success"), "{}", group.jobs(0));
    assert!(group.jobs(1).contains("migration may have succeeded with lost writes"), "{}", group.jobs(1));
}

/// A source that dies before the hand-over leaves nothing at the target, which drops the copy when
/// it has heard nothing for `repl-timeout`, or that another node has the slot.
#[test]
fn a_copy_without_its_source_is_dropped() {
    const COMMANDS: &[Said] = &[(2_500, "b", "SET foo 1"), (3_030, "b", MIGRATE)];
    let group = play(COMMANDS, &[(3_235, "crash b")], 5);
    assert_eq!(group.keys(0), 1, "the copy is there, and hidden");
    assert!(group.jobs(0).contains("waiting-for-paused"), "{}", group.jobs(0));
    drop(group);
    let group = play(COMMANDS, &[(3_235, "crash b")], 70);
    assert_eq!(group.keys(0), 0);
    assert!(group.jobs(0).contains("Timed out after too long with no interaction"), "{}", group.jobs(0));
}

/// A cancelled migration and a flushed one leave the slot where it was.
#[test]
fn a_migration_ends_by_a_command_at_its_source() {
    const CANCELLED: &[Said] = &[
        (2_500, "b", "SET foo 1"),
        (3_030, "b", MIGRATE),
        (3_210, "b", "CLUSTER CANCELSLOTMIGRATIONS"),
        (4_000, "b", "GET foo"),
    ];
    let group = play(CANCELLED, &[], 5);
    group.reply("CLUSTER CANCELSLOTMIGRATIONS", "+OK");
    group.reply("GET foo", "$1\\r\\n1");
    assert!(group.jobs(1).contains("cancelled"), "{}", group.jobs(1));
    assert!(group.jobs(0).contains("Connection lost to source"), "{}", group.jobs(0));
    assert_eq!(group.keys(0), 0);
    drop(group);
    const FLUSHED: &[Said] = &[(2_500, "b", "SET foo 1"), (3_030, "b", MIGRATE), (3_210, "b", "FLUSHALL")];
    let group = play(FLUSHED, &[], 5);
    group.reply("FLUSHALL", "+OK");
    assert!(group.jobs(1).contains("Data was flushed"), "{}", group.jobs(1));
    assert_eq!((group.keys(0), group.keys(1)), (0, 0));
}

/// SETSLOT is replicated: the replica knows the slot that moves, and so does the target when the
/// replica has taken the place of the source.
#[test]
fn a_promoted_replica_goes_on_with_a_migration_by_setslot() {
    const MIGRATING: &str = "CLUSTER SETSLOT 12182 MIGRATING aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const IMPORTING: &str = "CLUSTER SETSLOT 12182 IMPORTING bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
    const COMMANDS: &[Said] = &[
        (4_000, "a", IMPORTING),
        (4_000, "b", MIGRATING),
        (5_000, "b1", "CLUSTER SETSLOT 12182 STABLE"),
        (6_000, "b1", "CLUSTER FAILOVER"),
        (9_000, "b1", "GET foo"),
        (9_000, "a", "GET foo{foo}"),
    ];
    let marks = |group: &Group, at: usize| {
        let shown = group.nodes[at].look(|server| {
            server.node().cluster.as_ref().map(|cluster| format!("{:?}", cluster.show_nodes()))
        });
        let shown = shown.flatten().expect("it runs, in a cluster");
        let marks = shown.split(['[', ']']).find(|part| part.starts_with("12182-"));
        marks.map(str::to_owned)
    };
    let group = play(COMMANDS, &[], 5);
    group.reply(MIGRATING, "+OK");
    for at in [1, 2] {
        assert_eq!(marks(&group, at), Some(format!("12182->-{}", id(0))));
    }
    drop(group);
    let group = play(COMMANDS, &[], 10);
    group.reply("CLUSTER SETSLOT 12182 STABLE", "-ERR Please use SETSLOT only with masters.");
    group.reply("CLUSTER FAILOVER", "+OK");
    group.reply("GET foo", "-ASK 12182 a:6379");
    group.reply("GET foo{foo}", "-MOVED 12182 b1:6379");
    assert_eq!(marks(&group, 0), Some(format!("12182-<-{}", id(2))));
    // The former source keeps the mark as a replica, as on real nodes of Valkey 8.1 and 9.1.
    for at in [1, 2] {
        assert_eq!(marks(&group, at), Some(format!("12182->-{}", id(0))));
    }
}
