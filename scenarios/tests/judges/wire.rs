//! Two ways to the same history: the recorder, which looks into a node, against an observer of the wire, which sees only the
//! commands that the node read, and the node's clock.
//!
//! The observer runs every command on its own empty server and looks which owner holds the lock afterwards. It cannot know what
//! a node remembers over a restart or takes over from a master, nor what a node drops for want of memory, so it watches nodes
//! that live through the run alone. Nor can it know of a node that keeps its time in another way than Redis, or of commands
//! that are held up between the wire and the node. A change without a command (a key that expires) it detects with the next
//! command.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use lockstorm::{
    fault::Fault,
    history::{Event as Recorded, EventKind, History, Host, HostKind, Life, LockKind, LossCause},
    library,
    run::{Engine, Outcome},
    runner::{Runner, parse_seeds},
    scenario::{Node, Scenario, Source, parse},
};
use lockstorm_sim::{
    config::Config,
    env::Env,
    event::{ConnId, Event},
    keyspace::{ExpiryRule, Value},
    server::Server,
    time::{True, Wall},
    world::{self, TraceRetention},
};

/// What became of one owner's hold, when, and by which client's command.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Change {
    at: True,
    lock: usize,
    client: Host,
    /// How many holds the owner has now, and whether they have become more.
    count: u32,
    granted: bool,
}

/// The commands that change nothing but their own connection, or that wait for something.
const OF_CONNECTIONS: &[&str] = &[
    "AUTH",
    "CLIENT",
    "HELLO",
    "MONITOR",
    "PING",
    "PSUBSCRIBE",
    "QUIT",
    "REPLICAOF",
    "RESET",
    "SELECT",
    "SSUBSCRIBE",
    "SUBSCRIBE",
    "UNSUBSCRIBE",
    "WAIT",
];

/// A server that executes the commands of a node.
struct Observer {
    server: Server,
    env: Env,
    connections: u64,
}

impl Observer {
    fn new() -> Observer {
        let mut env = Env::new(0);
        let server = Server::new(Config { save: Vec::new(), ..Config::default() }, &mut env);
        Observer { server, env, connections: 0 }
    }

    /// Each command has a connection of its own, so that none leaves anything to the next but what it did to the keys.
    fn hears(&mut self, wall: Wall, command: &bytes::Bytes) {
        self.connections += 1;
        self.env.wall = wall;
        let conn = ConnId(self.connections);
        let (peer, local) = ("c1:1".to_owned(), "n1:6379".to_owned());
        for event in [
            Event::Connected { conn, peer, local },
            Event::Bytes { conn, bytes: command.clone() },
            Event::Closed { conn },
        ] {
            self.server.step(&mut self.env, event);
        }
        self.env.outbox.clear();
    }

    /// The holders of a lock, with their hold counts.
    fn holders(&self, key: &str) -> BTreeMap<String, u32> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let entry = self.server.node().dbs.first().and_then(|db| db.get(key.as_bytes()));
        let entry = entry.filter(|entry| !entry.is_expired(ExpiryRule::at(self.env.wall.as_millis())));
        match entry.map(|entry| &entry.value) {
            Some(Value::String(token)) => BTreeMap::from([(text(token.bytes()), 1)]),
            Some(Value::Hash(hash)) => hash
                .iter()
                .map(|(name, count)| (text(name), text(count)))
                .filter(|(name, _)| name != "mode")
                .map(|(name, count)| (name, count.parse().unwrap_or(1)))
                .collect(),
            _ => BTreeMap::new(),
        }
    }
}

/// What the observer concludes of a node.
fn concluded(outcome: &Outcome, node: Host) -> Vec<Change> {
    let history = &outcome.history;
    let name = history.host_name(node);
    let mut observer = Observer::new();
    let mut changes = Vec::new();
    // Whose each hold is: the client's that was granted it, under whatever name.
    let mut whose: BTreeMap<String, Host> = BTreeMap::new();
    for record in &outcome.records {
        let Some((host, clocks)) = &record.host else { continue };
        let world::Event::Request { client, command, .. } = &record.event else { continue };
        let verb =
            String::from_utf8_lossy(command).split("\r\n").nth(2).unwrap_or_default().to_ascii_uppercase();
        if **host != *name || OF_CONNECTIONS.contains(&&*verb) {
            continue;
        }
        let Some(client) = history.header.host(client) else { continue };
        observer.env.wall = clocks.wall;
        let locks = history.header.locks.iter();
        let before: Vec<_> = locks.map(|lock| observer.holders(&lock.name)).collect();
        observer.hears(clocks.wall, command);
        for (lock, before) in before.iter().enumerate() {
            let now = observer.holders(&history.header.locks[lock].name);
            for (owner, count) in before {
                let left = now.get(owner).copied().unwrap_or(0);
                if left < *count && whose.get(owner) == Some(&client) {
                    changes.push(Change { at: record.at, lock, client, count: left, granted: false });
                }
            }
            for (owner, count) in now {
                let had = before.get(&owner).copied().unwrap_or(0);
                if had < count {
                    if had == 0 {
                        whose.insert(owner.clone(), client);
                    }
                    let client = whose[&owner];
                    changes.push(Change { at: record.at, lock, client, count, granted: true });
                }
            }
        }
    }
    changes
}

/// What was recorded of a node: grants, and what owners gave back.
fn recorded(history: &History, node: Host) -> Vec<Change> {
    let events = history.events.iter().filter(|event| event.host == node);
    let change = |event: &Recorded| match &event.kind {
        EventKind::Granted { lock, owner, count, .. } => {
            let (client, lock) = (history.client_of(*owner), usize::from(lock.0));
            Some(Change { at: event.at, lock, client, count: *count, granted: true })
        }
        EventKind::Released { lock, by, left, .. } => {
            let (client, lock) = (by.client, usize::from(lock.0));
            Some(Change { at: event.at, lock, client, count: *left, granted: false })
        }
        _ => None,
    };
    events.filter_map(change).collect()
}

/// Whether the nodes of a scenario are Redis, and execute every command as soon as they have read it.
fn plain(scenario: &Scenario) -> bool {
    let odd = |node: &Node| node.expire_by_monotonic || node.expire_at_the_millisecond;
    let holds_up = |fault: &Fault| {
        let delays = fault.delay.as_ref().is_some_and(|delay| delay.request.is_some());
        delays || fault.drop_connection.as_ref().is_some_and(|drop| drop.before)
    };
    !scenario.node.values().any(odd) && !scenario.fault.values().any(holds_up)
}

/// Whether a node lives through the run, alone in its group, and its keys show which owner holds the lock.
fn watched(history: &History, node: Host) -> bool {
    let alone = history.header.locks.iter().all(|lock| {
        !matches!(lock.kind, LockKind::Semaphore { .. })
            && lock.authority.group_of(node).is_some_and(|group| lock.authority.groups[group].len() == 1)
    });
    let events = || history.events.iter().filter(|event| event.host == node);
    let restarts = events().any(|event| matches!(event.kind, EventKind::Life { life: Life::Crashed }));
    let evicts =
        events().any(|event| matches!(event.kind, EventKind::Vanished { how: LossCause::Evicted, .. }));
    alone && !restarts && !evicts
}

#[test]
fn the_wire_tells_of_the_grants_and_releases_that_were_recorded() {
    let parsed =
        library::ALL.iter().map(|stock| parse(stock.path, stock.text).expect("stock scenarios are valid"));
    let sources: Vec<Source> = parsed.collect();
    let seeds = std::env::var("LOCKSTORM_SEEDS").map_or(0..1, |seeds| parse_seeds(&seeds).expect("a range"));
    let trial = Runner::new(&sources).seeds(Some(seeds)).engine(Engine::Event);
    let cases = trial.cases();
    let (next, compared) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let found: Mutex<Vec<(usize, String)>> = Mutex::default();
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(case) = cases.get(number) else { return };
            if !plain(&trial.variant(*case).scenario) {
                continue;
            }
            let outcome = trial.outcome(*case, TraceRetention::Events);
            let nodes = outcome.history.header.hosts_of(HostKind::Node);
            for node in nodes.filter(|node| watched(&outcome.history, *node)) {
                let (wire, history) = (concluded(&outcome, node), recorded(&outcome.history, node));
                compared.fetch_add(history.len(), Ordering::Relaxed);
                if wire != history {
                    let name = outcome.history.host_name(node);
                    let first = wire.iter().zip(&history).position(|(one, other)| one != other);
                    let first = first.unwrap_or(wire.len().min(history.len()));
                    let told = format!(
                        "{} on {name}, change {first}:\n  on the wire {:?}\n  recorded    {:?}",
                        trial.token(*case),
                        wire.get(first),
                        history.get(first)
                    );
                    found.lock().expect("no thread panics").push((number, told));
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let mut found = found.into_inner().expect("every thread is done");
    found.sort_unstable();
    let told: Vec<&str> = found.iter().map(|(_, told)| &**told).collect();
    assert!(found.is_empty(), "{} of {} runs differ:\n{}", found.len(), cases.len(), told.join("\n"));
    // What is compared in one run of each scenario; fewer would mean that the observer looks away.
    let compared = compared.into_inner();
    assert!(compared > 1_000, "only {compared} grants and releases were compared");
}
