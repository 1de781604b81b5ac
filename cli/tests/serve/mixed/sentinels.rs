//! Sentinels of several generations vote together, and fail over nodes of several generations.

use std::{
    fmt::Write as _,
    thread,
    time::{Duration, Instant},
};

use lockstorm_sim::generation::Generation::{Redis62, Redis70, Redis82, Valkey81, Valkey91};

use super::{
    Kind, Process, real,
    replication::{Outcome, outcome},
    simulated, within,
};
use crate::{
    cluster::rig::{Line, now, text},
    served::{PATIENCE, folder},
};

/// `down-after-milliseconds`: see the tests of Sentinels of one generation.
const DOWN_AFTER: Duration = Duration::from_millis(2_500);

/// A quorum that three Sentinels never reach: one with it does not stand for election.
const NEVER: usize = 4;

/// Bounds of the time from the kill to the leader's +sdown, and from there to the promotion and to
/// the last +switch-master. Real groups took 2.5 s, 1.1 s and 2.3 s.
const SDOWN: std::ops::Range<Duration> = Duration::from_millis(2_000)..Duration::from_secs(6);
const PROMOTED: Duration = Duration::from_secs(5);
const SWITCHED: Duration = Duration::from_secs(8);

/// A group: Sentinels, of which the first one stands for election, and nodes. The first node is the
/// master, and the second one the replica that is preferred.
#[derive(Clone)]
struct Group {
    sentinels: [Kind; 3],
    nodes: [Kind; 3],
}

impl Group {
    fn name(&self) -> String {
        let mut name = String::new();
        for kind in self.sentinels.iter().chain(&self.nodes) {
            let _ = write!(name, "{}{} ", if kind.is_real { "real-" } else { "" }, kind.generation);
        }
        name.trim_end().replace(' ', "_")
    }
}

/// An event of a Sentinel, and its time since the master was killed.
#[derive(Debug)]
struct Said {
    by: usize,
    event: String,
    message: String,
    at: Duration,
}

/// Collects the events of a Sentinel until it has switched.
fn listen(by: usize, port: u16, killed: Instant, mut line: Line) -> Vec<Said> {
    let mut said = Vec::new();
    loop {
        let received = text(&line.receive());
        // `["pmessage" "*" "+sdown" "master main .."]`
        let words: Vec<&str> = received.split('"').skip(1).step_by(2).collect();
        let [_, _, event, message] = words[..] else {
            panic!("no event from the Sentinel at {port}: {received}; {said:#?}");
        };
        let (event, message) = (event.to_owned(), message.to_owned());
        let is_last = event == "+switch-master";
        said.push(Said { by, event, message, at: killed.elapsed() });
        if is_last {
            return said;
        }
    }
}

fn fails_over(group: &Group) {
    let name = group.name();
    let folder = folder(&format!("mixed_sentinels_{name}"));
    // A smaller priority is preferred.
    let node = |at: usize| {
        let priority = ["100", "10", "100"][at];
        Process::node(group.nodes[at], &folder, &format!("n{at}"), &[("replica-priority", priority)])
    };
    let mut nodes = [0, 1, 2].map(node);
    for replica in &nodes[1..] {
        assert_eq!(replica.ask(&format!("REPLICAOF 127.0.0.1 {}", nodes[0].port)), "+OK");
        let is_up = within(PATIENCE, || replica.info("master_link_status") == "up");
        assert!(is_up, "{name}: {}", replica.log());
    }
    let sentinels = [0, 1, 2].map(|at| {
        let lines = format!(
            "sentinel monitor main 127.0.0.1 {} {}\nsentinel down-after-milliseconds main {}\n\
             sentinel failover-timeout main 20000\n",
            nodes[0].port,
            if at == 0 { 2 } else { NEVER },
            DOWN_AFTER.as_millis()
        );
        Process::sentinel(group.sentinels[at], &folder, &format!("s{at}"), &lines)
    });
    for sentinel in &sentinels {
        let knows_all = within(PATIENCE, || {
            let master = sentinel.ask("SENTINEL MASTER main");
            ["\"num-slaves\" \"2\"", "\"num-other-sentinels\" \"2\"", "\"flags\" \"master\""]
                .iter()
                .all(|field| master.contains(field))
        });
        assert!(knows_all, "{name}: {}", sentinel.log());
    }
    // An INFO, which each Sentinel sends every ten seconds, brings the priorities.
    let knows_priorities =
        || sentinels[0].ask("SENTINEL REPLICAS main").contains("\"slave-priority\" \"10\"");
    assert!(within(PATIENCE, knows_priorities), "{name}: {}", sentinels[0].log());
    let lines = [0, 1, 2].map(|at| {
        let mut line = Line::to(sentinels[at].port).expect("it listens");
        line.send(&["PSUBSCRIBE", "*"].map(str::to_owned));
        assert!(text(&line.receive()).contains("psubscribe"));
        line
    });
    nodes[0].kill();
    let killed = now();
    let said: Vec<Said> = thread::scope(|scope| {
        let threads: Vec<_> = (0..)
            .zip(lines)
            .map(|(at, line)| {
                let port = sentinels[at].port;
                scope.spawn(move || listen(at, port, killed, line))
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("its own message says why")).collect()
    });
    let at = |event: &str| {
        let first = said.iter().filter(|said| said.by == 0).find(|said| said.event == event);
        first.unwrap_or_else(|| panic!("{name}: {event} is not among {said:#?}")).at
    };
    let (down, promoted) = (at("+sdown"), at("+promoted-slave"));
    let switched = said.iter().filter(|said| said.event == "+switch-master").map(|said| said.at).max();
    let switched = switched.expect("each thread has waited for one");
    assert!(SDOWN.contains(&down), "{name}: down after {down:?}");
    assert!(promoted - down < PROMOTED, "{name}: down {down:?}, promoted {promoted:?}");
    assert!(switched.saturating_sub(down) < SWITCHED, "{name}: down {down:?}, switched {switched:?}");
    // The vote of the leader itself is not enough.
    let has_voted = |by: usize| said.iter().any(|said| said.by == by && said.event == "+vote-for-leader");
    assert!(has_voted(0) && (has_voted(1) || has_voted(2)), "{name}: {said:#?}");
    let expected = format!("main 127.0.0.1 {} 127.0.0.1 {}", nodes[0].port, nodes[1].port);
    for switch in said.iter().filter(|said| said.event == "+switch-master") {
        assert_eq!(switch.message, expected, "{name}");
    }

    // The promoted node takes writes, which the other replica gets without a new snapshot.
    assert_eq!(nodes[1].ask("SET k v"), "+OK", "{name}");
    assert!(within(PATIENCE, || nodes[2].ask("GET k") == "\"v\""), "{name}: {}", nodes[2].log());
    assert_eq!(nodes[1].info("sync_full"), "0", "{name}");

    // The old master follows when it comes back, if it can read a snapshot of the new one.
    nodes[0].start_again();
    let port = nodes[1].port.to_string();
    assert!(within(PATIENCE, || nodes[0].info("master_port") == port), "{name}: {}", nodes[0].log());
    let outcome = outcome(group.nodes[1].generation, group.nodes[0].generation);
    let follows = within(PATIENCE, || match outcome {
        Outcome::Up => nodes[0].info("master_link_status") == "up",
        Outcome::Refused(version) => nodes[0].log().contains(&format!("version {version}")),
    });
    assert!(follows, "{name}: not {outcome:?}: {}", nodes[0].log());
    assert_eq!(nodes[0].ask("GET k"), if outcome == Outcome::Up { "\"v\"" } else { "nil" }, "{name}");
}

/// Plays the groups whose servers are installed, a few at a time, because a busy machine delays all
/// of them.
fn play(groups: &[Group]) {
    const AT_A_TIME: usize = 3;
    let is_there = |group: &&Group| group.sentinels.iter().chain(&group.nodes).all(|kind| kind.is_there());
    let groups: Vec<&Group> = groups.iter().filter(is_there).collect();
    for some in groups.chunks(AT_A_TIME) {
        thread::scope(|scope| {
            for group in some {
                scope.spawn(|| fails_over(group));
            }
        });
    }
}

#[test]
fn sentinels_of_several_generations_fail_over_nodes_of_several() {
    play(&[
        Group {
            sentinels: [simulated(Valkey91), real(Redis70), real(Redis82)],
            nodes: [real(Redis70), simulated(Valkey91), real(Valkey91)],
        },
        Group {
            sentinels: [real(Valkey91), simulated(Redis82), simulated(Redis70)],
            nodes: [simulated(Valkey81), real(Redis82), simulated(Redis82)],
        },
        Group {
            sentinels: [simulated(Redis70), real(Valkey91), simulated(Valkey91)],
            nodes: [simulated(Redis62), real(Valkey81), simulated(Valkey91)],
        },
        Group {
            sentinels: [simulated(Redis62), real(Valkey81), real(Redis62)],
            nodes: [real(Redis62), simulated(Redis70), real(Valkey91)],
        },
        Group {
            sentinels: [real(Valkey81), simulated(Valkey81), simulated(Redis62)],
            nodes: [simulated(Valkey81), real(Valkey91), simulated(Redis82)],
        },
    ]);
}

#[test]
#[ignore = "of twenty groups and their real times: cargo test -p lockstorm-cli --test serve -- --ignored mixed"]
fn every_sentinel_leads_a_failover_of_other_generations() {
    let leaders = [Redis70, Redis82, Valkey91].map(|generation| [real(generation), simulated(generation)]);
    let nodes = [
        [real(Redis62), simulated(Redis70), real(Valkey91)],
        [simulated(Redis62), real(Redis82), simulated(Redis82)],
        [real(Redis70), simulated(Valkey81), real(Redis82)],
        [simulated(Valkey81), real(Valkey91), simulated(Redis82)],
    ];
    let mut groups = Vec::new();
    for (at, leader) in leaders.into_iter().flatten().enumerate() {
        // One voter of each other generation: one real, one simulated.
        let mut others = leaders.iter().filter(|kinds| kinds[0].generation != leader.generation);
        let (one, other) = (others.next().expect("two others"), others.next().expect("two others"));
        let voters = if at % 2 == 0 { [one[0], other[1]] } else { [one[1], other[0]] };
        let sentinels = [leader, voters[0], voters[1]];
        groups.extend(nodes.map(|nodes| Group { sentinels, nodes }));
    }
    play(&groups);
}
