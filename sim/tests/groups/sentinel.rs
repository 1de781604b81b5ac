//! Sentinels on hosts of the world that watch a master with its replicas: their events, in order
//! and with times.
//!
//! With `down-after-milliseconds` of 2,000 (D) and links of 1 ms, a tick (h) takes 52 to 100 ms.

use lockstorm_sim::{
    config::Config,
    drive::{DrivenNode, world},
    env::Env,
    generation::Generation,
    server::Server,
};

use super::*;

const NODES: [&str; 3] = ["m", "r1", "r2"];
const SENTINELS: [&str; 3] = ["s1", "s2", "s3"];

/// A group of Sentinels; most tests use `GROUP` with few changes.
#[derive(Clone, Copy)]
struct Group {
    seed: u64,
    quorum: u32,
    failover_timeout: u32,
    /// Additional lines of the Sentinels' files.
    more: &'static str,
    /// The `replica-priority` of `r1` and of `r2`.
    priorities: [i32; 2],
    /// The commands that `c` sends to `s1`, each with its second.
    commands: &'static [(i64, &'static str)],
    /// The generation of the nodes and of the Sentinels.
    generation: Generation,
}

const GROUP: Group = Group {
    seed: 1,
    quorum: 2,
    failover_timeout: 60_000,
    more: "",
    priorities: [100, 100],
    commands: &[],
    generation: Generation::Redis70,
};

/// An event of a Sentinel: its time in milliseconds, the Sentinel, the event's name and its
/// message.
type Said = (i64, String, String, String);

/// Returns the events of a group's Sentinels within `secs` seconds, and the replies to `c`. The
/// orders are executed at seconds of true time.
fn said(group: Group, orders: &[(i64, &str)], secs: i64) -> (Vec<Said>, String) {
    let mut builder = World::builder(group.seed).latency(Latency::Fixed(ms(1))).keep(TraceRetention::Events);
    for (at, name) in NODES.into_iter().enumerate() {
        let driven = DrivenNode::new();
        builder = builder.host(name, move |ctx| {
            let replicaof = (at > 0).then(|| ("m".into(), 6379));
            let mut config =
                Config::of(group.generation).with(|config| config.replication.replicaof = replicaof);
            config.replication.announce.ip = name.into();
            config.replication.announce.priority = if at > 0 { group.priorities[at - 1] } else { 100 };
            world::run(ctx, config, driven.clone())
        });
    }
    for name in SENTINELS {
        let driven = DrivenNode::new();
        builder = builder.host(name, move |ctx| {
            let file = format!(
                "sentinel resolve-hostnames yes\nsentinel announce-ip {name}\n\
                 sentinel monitor main m 6379 {}\nsentinel down-after-milliseconds main 2000\n\
                 sentinel failover-timeout main {}\n{}",
                group.quorum, group.failover_timeout, group.more
            );
            let config = Config::of(group.generation).with(|config| config.network.port = 26379);
            world::run_with(ctx, 26379, driven.clone(), move |env: &mut Env, before| {
                let saved =
                    before.and_then(|server| Some(server.node().sentinel.as_ref()?.saved().to_owned()));
                Server::sentinel(config, &saved.unwrap_or(file), env).expect("the file can be followed")
            })
        });
    }
    let mut world = builder
        .host("c", move |ctx| async move {
            for (at, command) in group.commands {
                ctx.sleep_until(Monotonic::from_secs(*at)).await;
                let mut stream = ctx.dial("s1", 26379).await.expect("it listens");
                stream.write_all(format!("{command}\r\n").as_bytes()).await.expect("open");
                let mut reply = [0; 4096];
                let len = stream.read(&mut reply).await.expect("answered");
                ctx.observe("reply", reply[..len].escape_ascii().to_string());
            }
        })
        .build();
    for (at, order) in orders {
        world.control().at(MS(at * 1_000), verb(order));
    }
    world.run(MS(secs * 1_000)).expect("it runs");
    let replies = observed(&world, "reply");
    let said = world.records().into_iter().filter_map(|record| {
        let (host, _) = record.host?;
        let Event::Effect { effect } = record.event else { return None };
        let (message, event) = effect.strip_prefix("published ")?.rsplit_once(" of ")?;
        let (message, _) = message.rsplit_once(" to ")?;
        let told = host.starts_with('s') && event.starts_with(['+', '-']);
        told.then(|| (record.at.as_millis(), host.to_string(), event.to_owned(), message.to_owned()))
    });
    (said.collect(), replies)
}

/// Returns the replies to `c` without their times and line breaks.
fn answers(replies: &str) -> Vec<&str> {
    let parts = replies.split(r"\r\n@");
    let mut answers: Vec<&str> =
        parts.map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start()).collect();
    // The last part is only the time of the last reply.
    answers.pop();
    answers
}

/// Returns the names of one Sentinel's events from a second on, in order.
fn names<'a>(said: &'a [Said], host: &str, from_secs: i64) -> Vec<&'a str> {
    let told = said.iter().filter(|(at, by, ..)| *at >= from_secs * 1_000 && by == host);
    told.map(|(_, _, event, _)| event.as_str()).collect()
}

/// Returns the time, the Sentinel and the message of the first event of this name from a second on.
fn first<'a>(said: &'a [Said], event: &str, from_secs: i64) -> Option<(i64, &'a str, &'a str)> {
    let found = said.iter().find(|(at, _, name, _)| *at >= from_secs * 1_000 && name == event)?;
    Some((found.0, &found.1, &found.3))
}

#[test]
fn a_killed_master_is_failed_over_in_the_order_and_the_time_that_redis_takes() {
    for seed in 1..=8 {
        let (said, _) = said(Group { seed, ..GROUP }, &[(20, "kill m")], 40);
        let (at, leader, _) = first(&said, "+promoted-slave", 20).expect("it is failed over");
        // D after the first PING to the dead port, then three or four ticks. The INFO that shows
        // the promotion comes within a second of the previous one.
        assert!((22_000..24_500).contains(&at), "seed {seed}: promoted at {at}");
        let leads: Vec<&str> = names(&said, leader, 20);
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
            "+slave",
            "+slave",
            "+sdown",
        ];
        // The old master loses its agreement on being down once the others watch another master.
        // Depending on the times of their answers the leader logs that or not.
        let leads: Vec<&str> = leads.into_iter().filter(|event| *event != "-odown").collect();
        assert_eq!(leads, expected, "seed {seed}");
        let (_, _, promoted) = first(&said, "+promoted-slave", 20).expect("it was found before");
        let new = promoted.split(' ').nth(2).expect("a host");
        for sentinel in SENTINELS {
            let switch = said.iter().find(|(_, by, event, _)| by == sentinel && event == "+switch-master");
            let (when, _, _, message) = switch.expect("every Sentinel learns of the new master");
            assert_eq!(*message, format!("main m 6379 {new} 6379"), "seed {seed}, {sentinel}");
            let last = if sentinel == leader { 3_000 } else { 150 };
            assert!((at..at + last).contains(when), "seed {seed}: {sentinel} switches at {when}");
        }
        for observer in SENTINELS.into_iter().filter(|name| *name != leader) {
            let told = names(&said, observer, 20);
            let learns = told.iter().position(|event| *event == "+config-update-from").expect("by a hello");
            assert_eq!(told[learns + 1], "+switch-master", "{told:?}");
        }
    }
}

#[test]
fn sentinels_find_each_other_and_the_replicas_by_hellos_and_info() {
    let (said, replies) = said(Group { commands: &[(15, "SENTINEL CKQUORUM main")], ..GROUP }, &[], 16);
    for sentinel in SENTINELS {
        let told = names(&said, sentinel, 0);
        let count = |event| told.iter().filter(|name| **name == event).count();
        assert_eq!((count("+sentinel"), count("+slave")), (2, 2), "{told:?}");
    }
    let quorum = r"+OK 3 usable Sentinels. Quorum and failover authorization can be reached\r\n";
    assert!(replies.starts_with(quorum), "{replies}");
    assert_eq!(said.iter().filter(|(.., event, _)| event == "+sdown").count(), 0, "{said:?}");
}

/// Without a reset the wait begins with the first PING that finds no answer, up to one PING period
/// later.
#[test]
fn a_crashed_master_is_down_after_its_last_answer_and_a_paused_one_as_well() {
    for order in ["crash m", "pause m"] {
        for seed in 1..=5 {
            let (said, _) = said(Group { seed, ..GROUP }, &[(20, order)], 30);
            let (at, ..) = first(&said, "+sdown", 20).expect("it is down");
            assert!((21_900..23_250).contains(&at), "{order}, seed {seed}: down at {at}");
            let (at, ..) = first(&said, "+promoted-slave", 20).expect("it is failed over");
            assert!((22_200..25_500).contains(&at), "{order}, seed {seed}: promoted at {at}");
        }
    }
}

#[test]
fn an_old_master_that_comes_back_is_a_replica_ten_seconds_later() {
    let (said, _) = said(GROUP, &[(20, "kill m"), (40, "restart m")], 60);
    let back = first(&said, "-role-change", 40).expect("it says that it is a master");
    let (converted, _, message) = first(&said, "+convert-to-slave", 40).expect("it is told otherwise");
    assert!(message.starts_with("slave m:6379 m 6379 @ main r"), "{message}");
    assert!((9_900..11_300).contains(&(converted - back.0)), "{back:?}, {converted}");
    let (at, ..) = first(&said, "+role-change", 40).expect("it is a replica then");
    assert!(at > converted && at - converted < 10_200, "{at}");
}

/// The time in which a forced failover loses writes: the old master lives on, and no Sentinel
/// reconfigures it.
#[test]
fn a_manual_failover_leaves_the_old_master_its_clients_for_ten_seconds() {
    let group =
        Group { commands: &[(20, "SENTINEL FAILOVER main"), (21, "SENTINEL FAILOVER main")], ..GROUP };
    let (said, replies) = said(group, &[], 50);
    assert!(replies.starts_with(r"+OK\r\n"), "{replies}");
    assert_eq!(first(&said, "+elected-leader", 20).map(|(_, by, _)| by), Some("s1"));
    assert_eq!(first(&said, "+odown", 0), None);
    assert_eq!(first(&said, "+vote-for-leader", 20).map(|(_, by, _)| by), Some("s1"), "of itself alone");
    let (switched, ..) = first(&said, "+switch-master", 20).expect("it is failed over");
    let (converted, ..) = first(&said, "+convert-to-slave", 20).expect("the old master is told");
    assert!((9_900..11_500).contains(&(converted - switched)), "{switched}, {converted}");
}

/// A group in which a client begins a coordinated failover at 15 s: the Sentinels' INFO of the
/// master comes five seconds before and after.
const COORDINATED: Group = Group {
    commands: &[(15, "SENTINEL FAILOVER main COORDINATED"), (15, "SENTINEL FAILOVER main COORDINATED")],
    generation: Generation::Valkey91,
    ..GROUP
};

/// The events of a Sentinel of Valkey 9.1.2 whose peers have voted for it.
#[test]
fn a_coordinated_failover_leaves_no_second_master() {
    for seed in 1..=4 {
        let (said, replies) = said(Group { seed, ..COORDINATED }, &[], 50);
        let expected = ["+OK", "-INPROG Failover already in progress"];
        assert_eq!(answers(&replies), expected, "seed {seed}");
        let expected = [
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
            "+slave-reconf-sent",
            "+slave-reconf-inprog",
            "+slave-reconf-done",
            "+failover-end",
            "+switch-master",
            "+slave",
            "+slave",
        ];
        assert_eq!(names(&said, "s1", 15), expected, "seed {seed}");
        for other in ["s2", "s3"] {
            let told = names(&said, other, 15);
            assert_eq!(told[..2], ["+new-epoch", "+vote-for-leader"], "seed {seed}, {other}");
            assert_eq!(told[2..], ["+config-update-from", "+switch-master", "+slave", "+slave"], "{other}");
        }
        let (promoted, ..) = first(&said, "+promoted-slave", 15).expect("it hands over");
        assert!((15_100..17_600).contains(&promoted), "seed {seed}: promoted at {promoted}");
    }
}

#[test]
fn a_coordinated_failover_needs_votes() {
    let group = Group { failover_timeout: 5_000, ..COORDINATED };
    let (said, _) = said(group, &[(14, "crash s2"), (14, "crash s3")], 30);
    let (aborted, ..) = first(&said, "-failover-abort-not-elected", 15).expect("it is not elected");
    assert!((20_000..21_200).contains(&aborted), "{aborted}");
    assert_eq!(first(&said, "+selected-slave", 15), None);
}

/// The Sentinel asks the master to fail over within the time that is left. A frozen master does not
/// answer.
#[test]
fn a_coordinated_failover_ends_after_its_time_without_a_promotion() {
    let group = Group { failover_timeout: 5_000, ..COORDINATED };
    let (frozen, _) = said(group, &[(15, "pause m")], 24);
    let (asked, ..) = first(&frozen, "+failover-state-wait-promotion", 15).expect("it is asked");
    let (aborted, ..) = first(&frozen, "-failover-abort-slave-timeout", 15).expect("it does not answer");
    assert!((5_000..5_200).contains(&(aborted - asked)), "{asked}, {aborted}");
    assert_eq!(first(&frozen, "+promoted-slave", 15), None);
    // With less than a second left the master is not asked at all.
    let (late, _) = said(Group { failover_timeout: 1_000, ..COORDINATED }, &[], 20);
    let (chosen, ..) = first(&late, "+selected-slave", 15).expect("it is chosen");
    let (aborted, _, message) = first(&late, "-failover-abort-master-timeout", 15).expect("no time is left");
    assert!((50..110).contains(&(aborted - chosen)), "{chosen}, {aborted}");
    assert_eq!(message, "master main m 6379");
}

/// Only Valkey 9 has the option.
#[test]
fn a_failover_is_coordinated_where_the_sentinel_can_and_the_master_can() {
    let replies = |generation, commands| said(Group { commands, generation, ..GROUP }, &[], 16).1;
    let lacking: &[(i64, &str)] = &[(15, "SENTINEL FAILOVER main COORDINATED")];
    for generation in [Generation::Redis70, Generation::Redis82, Generation::Valkey81] {
        let error = r"-ERR wrong number of arguments for \'sentinel|failover\' command";
        assert_eq!(answers(&replies(generation, lacking)), [error], "{generation}");
    }
    let rows: &[(i64, &str)] = &[
        // At 0 s the Sentinel has no INFO of the master yet.
        (0, "SENTINEL FAILOVER main COORDINATED"),
        (0, "SENTINEL FAILOVER main"),
        (15, "SENTINEL FAILOVER x y"),
        (15, "SENTINEL FAILOVER main y"),
        (15, "SENTINEL FAILOVER main coordinated y"),
        (15, "SENTINEL FAILOVER main"),
        (15, "SENTINEL FAILOVER main coordinated"),
    ];
    let expected = [
        "-NOGOODPRIMARY Primary does not support FAILOVER command",
        "-NOGOODSLAVE No suitable replica to promote",
        "-ERR No such master with that name",
        "-ERR Unknown failover option specified",
        r"-ERR wrong number of arguments for \'sentinel|failover\' command",
        "+OK",
        "-INPROG Failover already in progress",
    ];
    assert_eq!(answers(&replies(Generation::Valkey91, rows)), expected);
}

#[test]
fn the_replica_with_the_lowest_priority_is_promoted_and_none_with_zero() {
    for (priorities, promoted) in
        [([100, 10], Some("r2")), ([10, 100], Some("r1")), ([0, 100], Some("r2")), ([0, 0], None)]
    {
        let (said, _) = said(Group { priorities, ..GROUP }, &[(20, "kill m")], 30);
        let chosen = first(&said, "+selected-slave", 20).and_then(|(.., message)| message.split(' ').nth(2));
        assert_eq!(chosen, promoted, "{priorities:?}");
        assert_eq!(first(&said, "-failover-abort-no-good-slave", 20).is_some(), promoted.is_none());
    }
}

#[test]
fn one_sentinel_of_three_neither_agrees_with_itself_nor_elects_itself() {
    let orders = [(20, "crash s2"), (20, "crash s3"), (20, "kill m")];
    let (agreed, _) = said(GROUP, &orders, 60);
    assert_eq!(first(&agreed, "+sdown", 20).map(|(_, by, _)| by), Some("s1"));
    assert_eq!(first(&agreed, "+odown", 20), None);
    // With a quorum of one it agrees with itself, but finds no majority.
    let group = Group { quorum: 1, failover_timeout: 5_000, ..GROUP };
    let (alone, _) = said(group, &orders, 60);
    let tries: Vec<i64> = alone.iter().filter(|said| said.2 == "+try-failover").map(|said| said.0).collect();
    let (aborted, ..) = first(&alone, "-failover-abort-not-elected", 20).expect("it is not elected");
    assert_eq!(first(&alone, "+elected-leader", 20), None);
    // The candidate waits for votes for the smaller of ten seconds and the timeout. It tries again
    // after twice the timeout. Both vary by up to the random second.
    assert!((5_000..6_200).contains(&(aborted - tries[0])), "{aborted}: {tries:?}");
    assert!(tries.windows(2).all(|two| (9_900..11_200).contains(&(two[1] - two[0]))), "{tries:?}");
}

#[test]
fn a_sentinel_whose_clock_steps_does_not_trust_itself_for_thirty_seconds() {
    let (said, _) = said(GROUP, &[(20, "step s1"), (21, "kill m")], 60);
    let mut told = names(&said, "s1", 20).into_iter();
    assert_eq!(told.next(), Some("+tilt"), "{said:?}");
    let (begun, ..) = first(&said, "+tilt", 20).expect("it was there");
    let (ended, ..) = first(&said, "-tilt", 20).expect("it ends");
    assert!(
        (20_000..20_110).contains(&begun) && (30_000..30_110).contains(&(ended - begun)),
        "{begun}, {ended}"
    );
    // The two others agree that the master is down, and `s1` votes although it is in TILT.
    let (promoted, by, _) = first(&said, "+promoted-slave", 20).expect("it is failed over");
    assert!(promoted < 26_000 && by != "s1", "{by} at {promoted}");
    let (at, ..) =
        said.iter().find(|said| said.1 == "s1" && said.2 == "+switch-master").expect("a hello tells it");
    assert!(*at < promoted + 150, "a hello is believed in TILT as well: {at}");
    let downs = said.iter().filter(|said| said.1 == "s1" && said.2 == "+sdown" && said.0 < ended);
    assert_eq!(downs.count(), 0);
}

#[test]
fn a_sentinel_that_restarts_knows_its_users() {
    let commands = &[
        (5, "ACL SETUSER clerk on nopass -@all +sentinel|masters"),
        (6, "SENTINEL FLUSHCONFIG"),
        (30, "ACL LIST"),
    ];
    let (_, users) = said(Group { commands, ..GROUP }, &[(20, "crash s1"), (21, "up s1")], 40);
    assert!(users.contains("user clerk on nopass resetchannels -@all +sentinel|masters"), "{users}");
}

#[test]
fn a_sentinel_that_restarts_knows_its_id_the_epoch_and_the_others() {
    let orders = [(20, "kill m"), (30, "crash s2"), (31, "up s2")];
    let (said, _) = said(GROUP, &orders, 50);
    let new = first(&said, "+switch-master", 20).and_then(|(.., message)| message.split(' ').nth(3));
    let down = said.iter().find(|said| said.1 == "s2" && said.0 > 31_000).expect("it starts again");
    assert_eq!(
        (&*down.2, down.3.clone()),
        ("+sdown", format!("slave m:6379 m 6379 @ main {} 6379", new.expect("a host")))
    );
    // Neither it nor the others discover a new Sentinel.
    assert_eq!(first(&said, "+sentinel", 25), None, "{said:?}");
    assert_eq!(first(&said, "+new-epoch", 30), None);
}

#[test]
fn a_group_of_sentinels_says_the_same_whenever_it_is_run() {
    let run = || said(Group { seed: 3, ..GROUP }, &[(20, "kill m"), (30, "restart m")], 60);
    assert_eq!(run(), run());
}

#[test]
fn a_partitioned_master_is_replaced_and_told_when_the_partition_heals() {
    let cut = ["r1", "r2", "s1", "s2", "s3"].into_iter().flat_map(|other| {
        [
            (20, format!("cut m {other}")),
            (20, format!("cut {other} m")),
            (60, format!("heal m {other}")),
            (60, format!("heal {other} m")),
        ]
    });
    let cut: Vec<(i64, String)> = cut.collect();
    let orders: Vec<(i64, &str)> = cut.iter().map(|(at, order)| (*at, order.as_str())).collect();
    let (said, _) = said(GROUP, &orders, 100);
    let (promoted, ..) = first(&said, "+promoted-slave", 20).expect("the majority replaces it");
    assert!((22_200..25_500).contains(&promoted), "{promoted}");
    let (seen, ..) = first(&said, "-role-change", 60).expect("it is seen again");
    let (converted, ..) = first(&said, "+convert-to-slave", 60).expect("it is told");
    assert!((9_900..11_300).contains(&(converted - seen)), "{seen}, {converted}");
}
