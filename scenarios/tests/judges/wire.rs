//! Compares two ways to the same history: the recorder, which reads a node's memory, and an
//! observer of the wire. The observer sees only the commands that the node read, the expiry of
//! keys, and the node's clock.
//!
//! A replica must not have granted anything. The state of a promoted replica depends on how much of
//! its master's stream had arrived, which the clients' wire does not show: from the promotion on it
//! is not compared. The state of a node after a restart is known if its disk keeps all or nothing;
//! so no released hold may come back with a node that has no replicas.
//!
//! Not compared are nodes that evict keys for want of memory, refuse writes for want of replicas,
//! keep time in another way than Redis, are replicated to in another way, or redirect clients to
//! other nodes of a cluster. Locks whose keys do not name their holders are not compared either,
//! nor those with a lease on a field of a hash, or whose script works or waits before it grants:
//! the observer knows the expiry of keys, and the time at which a command was read. Commands behind
//! a WAIT count once the WAIT has ended, which its reply shows. Faults that delay or drop commands
//! between the wire and the node are removed from a scenario; with replicas to wait for, so are
//! faults that drop replies. The rest of the scenario stays unchanged.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::atomic::{AtomicUsize, Ordering},
};

use lockstorm::{
    file::{
        fault::Fault,
        plan::Plan,
        scenario::{
            Durability, Lock, Node, Scenario,
            traits::{Grant, LeaseOn, Replicas, Token},
        },
    },
    judge::history::{
        Event as Recorded, EventKind, GainCause, History, Host, HostKind, Life, LossCause, Role,
    },
    run::{self, Engine, Outcome},
};
use lockstorm_world::{
    Event, TraceRetention,
    time::{True, Wall},
};
use redis::{Parser, Value};

use crate::{
    observer::{Change, Heard, Observer},
    stock,
};

/// An event at a node as seen on the wire, or a change of its role.
enum Happens {
    Hears(Heard),
    /// A notification that some key has expired, with the node's time. The observer itself must
    /// find out which key.
    Expires(Wall),
    Restarts,
    Becomes(Role, True),
}

/// A WAIT without a reply, which holds up the later commands of its connection.
#[derive(Default)]
struct Held {
    /// Number of replies before that of the WAIT. Each command between this WAIT and the previous
    /// one has one reply.
    before: usize,
    /// Commands behind the WAIT; the node executes them when the WAIT has ended.
    behind: VecDeque<Heard>,
}

impl Held {
    /// Takes a reply on a connection; returns the commands that the node then executes, if it ends
    /// a WAIT.
    fn ends(
        held: &mut BTreeMap<(Host, u64), Held>,
        place: (Host, u64),
        reply: &Value,
        (at, wall): (True, Wall),
    ) -> Vec<Happens> {
        let Some(mut ended) = held.remove(&place) else { return Vec::new() };
        // The node closes the connection of a WAIT that a new role has ended.
        if matches!(reply, Value::ServerError(error) if error.code() == "UNBLOCKED") {
            return Vec::new();
        }
        if ended.before > 0 {
            ended.before -= 1;
            held.insert(place, ended);
            return Vec::new();
        }
        let (mut executed, mut before) = (Vec::new(), 0);
        while let Some(heard) = ended.behind.pop_front() {
            let heard = Heard { at, wall, ..heard };
            let waits = waits(&heard);
            executed.push(Happens::Hears(heard));
            if waits {
                held.insert(place, Held { before, behind: ended.behind });
                break;
            }
            before += 1;
        }
        executed
    }
}

/// A run, and the data for following its nodes.
struct Watched<'a> {
    outcome: &'a Outcome,
    scenario: &'a Scenario,
    /// True if a client has several lines of work.
    several: bool,
}

impl<'a> Watched<'a> {
    fn new(outcome: &'a Outcome, scenario: &'a Scenario) -> Watched<'a> {
        let several = scenario.client.values().any(|client| client.lines() > 1);
        Watched { outcome, scenario, several }
    }

    fn history(&self) -> &History {
        &self.outcome.history
    }

    /// The node's entry in the scenario; several nodes under one name share an entry.
    fn written(&self, node: Host) -> &Node {
        let name = self.history().host_name(node);
        let base = name.trim_end_matches(|char: char| char.is_ascii_digit());
        let named = |(key, node): &(&String, &Node)| *key == name || (node.count.is_some() && *key == base);
        self.scenario.node.iter().find(named).map(|(_, node)| node).expect("a node of the scenario")
    }

    fn keeps(&self, node: Host) -> bool {
        self.written(node).durability == Durability::AofAlways
    }

    /// The story of a node, in order. A role comes before commands of the same instant.
    fn story(&self, node: Host) -> Vec<Happens> {
        let history = self.history();
        let name = history.host_name(node);
        let roles = history.events.iter().filter(|event| event.host == node);
        let mut roles = roles
            .filter_map(|event| match event.kind {
                EventKind::Became { role } => Some((event.at, role)),
                _ => None,
            })
            .peekable();
        let mut story = Vec::new();
        let mut held: BTreeMap<(Host, u64), Held> = BTreeMap::new();
        for record in &self.outcome.records {
            let Some((host, clocks)) = &record.host else { continue };
            if **host != *name {
                continue;
            }
            while let Some((at, role)) = roles.next_if(|(at, _)| *at < record.at) {
                story.push(Happens::Becomes(role, at));
            }
            match &record.event {
                Event::Started { incarnation } if *incarnation > 0 => {
                    held.clear();
                    story.push(Happens::Restarts);
                }
                Event::Effect { effect } if effect.starts_with("expired ") => {
                    story.push(Happens::Expires(clocks.wall));
                }
                Event::Request { client, connection, command } => {
                    let Some(client) = history.header.host(client) else { continue };
                    let (at, wall, connection) = (record.at, clocks.wall, *connection);
                    let other_node =
                        history.header.hosts[usize::from(client.0)].kind == HostKind::Node && client != node;
                    if other_node {
                        continue;
                    }
                    let heard = Heard { at, wall, client, connection, command: command.clone() };
                    let place = (client, connection);
                    match held.get_mut(&place) {
                        Some(held) => held.behind.push_back(heard),
                        None => {
                            if waits(&heard) {
                                held.insert(place, Held::default());
                            }
                            story.push(Happens::Hears(heard));
                        }
                    }
                }
                Event::Reply { client, connection, bytes } => {
                    let Some(client) = history.header.host(client) else { continue };
                    let place = (client, *connection);
                    if !held.contains_key(&place) {
                        continue;
                    }
                    // Several replies may be sent together. The parser keeps the bytes it has read
                    // of the others.
                    let (mut parser, mut rest) = (Parser::new(), &bytes[..]);
                    while let Ok(reply) = parser.parse_value(&mut rest) {
                        // A message of a subscription ends no WAIT.
                        if !matches!(reply, Value::Push { .. }) {
                            story.extend(Held::ends(&mut held, place, &reply, (record.at, clocks.wall)));
                        }
                    }
                }
                _ => {}
            }
        }
        story.extend(roles.map(|(at, role)| Happens::Becomes(role, at)));
        story
    }

    /// Checks that the recorded changes of a node follow from its story; the error is the first
    /// difference.
    fn compare(&self, node: Host, compared: &AtomicUsize) -> Result<(), String> {
        let (story, recorded, keeps) = (self.story(node), self.recorded(node), self.keeps(node));
        // If another node may have been the master in the meantime, it has received the release.
        let is_alone = !self.scenario.node.values().any(|node| node.replica_of.is_some());
        let came_back = |event: &&Recorded| {
            let restarted = matches!(event.kind, EventKind::Regained { how: GainCause::Restart, .. });
            is_alone && event.host == node && restarted
        };
        if let Some(event) = self.history().events.iter().find(came_back) {
            return Err(format!("its disk keeps all or nothing, and it has recorded {event:?}"));
        }
        // `None` while the state of the node is unknown.
        let mut observer = Some(Observer::new(self.written(node).generation(), keeps));
        let (mut at, mut from, mut role) = (0, True::ZERO, Role::Master);
        loop {
            let turn = story[at..].iter().enumerate().find_map(|(number, happens)| match happens {
                Happens::Becomes(role, when) => Some((at + number, *role, *when)),
                _ => None,
            });
            let (end, next_role, until) = turn.unwrap_or((story.len(), role, True::MAX));
            let chapter = &story[at..end];
            let mine = recorded.iter().filter(|change| from <= change.at && change.at < until);
            let mine: Vec<Change> = mine.cloned().collect();
            match (role, observer.take()) {
                (Role::Replica, _) if mine.is_empty() => {}
                (Role::Replica, _) => return Err(format!("a replica has recorded {:?}", mine[0])),
                (Role::Master, Some(mut known)) => {
                    differ(&self.follow(&mut known, chapter, keeps), &mine)?;
                    compared.fetch_add(mine.len(), Ordering::Relaxed);
                }
                (Role::Master, None) => break,
            }
            if turn.is_none() {
                break;
            }
            (at, from, role) = (end + 1, until, next_role);
        }
        Ok(())
    }

    /// The changes that follow from a part of a node's story.
    fn follow(&self, observer: &mut Observer, story: &[Happens], keeps: bool) -> Vec<Change> {
        let mut changes = Vec::new();
        for happens in story {
            match happens {
                Happens::Hears(heard) => {
                    changes.extend(observer.hears(heard, &self.history().header, self.several));
                }
                Happens::Expires(wall) => observer.looks(*wall),
                Happens::Restarts => observer.restarts(keeps),
                Happens::Becomes(..) => {}
            }
        }
        changes
    }

    /// The recorded changes of a node: grants and releases.
    fn recorded(&self, node: Host) -> Vec<Change> {
        let history = self.history();
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

    /// Returns true if a node keeps its keys, they name the owner of the lock, and the state after
    /// a restart is known.
    fn watches(&self, node: Host) -> bool {
        let history = self.history();
        let named = history.header.locks.iter().all(|lock| lock.kind.is_exclusive());
        let events = || history.events.iter().filter(|event| event.host == node);
        let evicts =
            events().any(|event| matches!(event.kind, EventKind::Vanished { how: LossCause::Evicted, .. }));
        let restarts = events().any(|event| matches!(event.kind, EventKind::Life { life: Life::Crashed }));
        let durability = self.written(node).durability;
        let known = matches!(durability, Durability::None | Durability::AofAlways);
        named && !evicts && (known || !restarts)
    }
}

/// Returns true if a command may hold up the later commands of its connection.
fn waits(heard: &Heard) -> bool {
    heard.words().first().is_some_and(|verb| verb == "WAIT")
}

/// Checks that both sides have the same changes; the error is the first difference.
fn differ(wire: &[Change], recorded: &[Change]) -> Result<(), String> {
    if wire == recorded {
        return Ok(());
    }
    let first = wire.iter().zip(recorded).position(|(one, other)| one != other);
    let first = first.unwrap_or(wire.len().min(recorded.len()));
    let (wire, recorded) = (wire.get(first), recorded.get(first));
    Err(format!("change {first}:\n  on the wire {wire:?}\n  recorded    {recorded:?}"))
}

/// Returns true if the nodes of a scenario are Redis and execute every command as soon as they have
/// read it, and no two owners of one client write the same name.
fn plain(scenario: &Scenario) -> bool {
    // The commands that a node reads do not show if it has enough replicas.
    let odd = |node: &Node| node.is_no_redis() || node.config.contains_key("min-replicas-to-write");
    let shared = |lock: &Lock| lock.subject.traits.with(&lock.traits).token == Token::Shared;
    let hidden = |lock: &Lock| {
        let traits = lock.subject.traits.with(&lock.traits);
        let in_script = traits.grant == Grant::AfterWork || traits.replicas == Replicas::InScript;
        traits.lease == LeaseOn::Field || in_script
    };
    let several = scenario.client.values().any(|client| client.lines() > 1);
    let alike = several && scenario.lock.values().any(shared);
    let plain_nodes = !scenario.node.values().any(odd) && !scenario.is_cluster();
    plain_nodes && !alike && !scenario.lock.values().any(hidden)
}

/// Returns true if a fault acts between reading and executing a command, or drops the reply that
/// shows the end of a WAIT.
fn hides(fault: &Fault, is_replicated: bool) -> bool {
    let delays = fault.delay.as_ref().is_some_and(|delay| delay.request.is_some());
    // A node whose disk refuses writes refuses commands that write.
    let refuses = fault.disk_fails.is_some() || fault.disk_full.is_some();
    // The master holds writes back until its replica has all that it has.
    let pauses = fault.failover.as_ref().is_some_and(|failover| failover.coordinated);
    let loses_reply = fault.lose_reply.is_some() || fault.drop_connection.is_some();
    delays
        || refuses
        || pauses
        || fault.drop_connection.as_ref().is_some_and(|drop| drop.before)
        || is_replicated && loses_reply
}

#[test]
fn the_wire_tells_of_the_grants_and_releases_that_were_recorded() {
    let [alone, replicated] = [(); 2].map(|()| AtomicUsize::new(0));
    let (found, runs) = stock::look_at_each(|trial, case| {
        let mut scenario = trial.variant(case).scenario.clone();
        if !plain(&scenario) {
            return Vec::new();
        }
        let is_replicated = scenario.node.values().any(|node| node.replica_of.is_some());
        scenario.fault.retain(|_, fault| !hides(fault, is_replicated));
        let plan = Plan::draw(&scenario, case.seed);
        let outcome = run::run(&plan, &trial.token(case), Engine::Event, TraceRetention::Events);
        let watched = Watched::new(&outcome, &scenario);
        let compared = if is_replicated { &replicated } else { &alone };
        let nodes = outcome.history.header.hosts_of(HostKind::Node).filter(|node| watched.watches(*node));
        let told = nodes.filter_map(|node| {
            let difference = watched.compare(node, compared).err()?;
            Some(format!("{} on {}: {difference}", trial.token(case), outcome.history.host_name(node)))
        });
        told.collect()
    });
    assert!(found.is_empty(), "{} differences in {runs} runs:\n{}", found.len(), found.join("\n"));
    // Fewer comparisons would mean that the observer skips too much.
    let [alone, replicated] = [alone, replicated].map(AtomicUsize::into_inner);
    println!("compared: {alone} without replicas, {replicated} with some");
    assert!(alone > 1_000 && replicated > 0, "only {alone} and {replicated} were compared");
}
