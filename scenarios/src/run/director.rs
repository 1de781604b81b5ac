//! Executes the faults: at their time or after a trigger, on the hosts that have the role at that
//! moment.

use std::{collections::BTreeMap, rc::Rc, time::Duration};

use lockstorm_sim::cluster::key_slot;
use lockstorm_world::{Cause, Condition, HostCtx, Verb, time::True};

use super::{
    Stage,
    late::{Change, LATE_MAX},
    operator::Operated,
    reshard,
};
use crate::{
    file::{
        fault::FaultAction,
        plan::{Occurrence, Target, When},
        scenario::{Address, group},
        selector::Selector,
    },
    judge::history::{Event, EventKind, Host, HostKind, Lock, Role, Serving},
    run::recorder::Scope,
};

/// A pending action of the director.
enum Cue {
    /// Begin an occurrence, by its index in the plan.
    Begin(usize),
    /// Begin an occurrence that was added during the run, by its index in [`Director::late`].
    BeginLate(usize),
    /// End a fault, by its number in the history.
    End(usize),
}

/// The lasting effects of a fault.
struct Kept {
    cause: Cause,
    conditions: Vec<Condition>,
    /// The nodes whose disks fail all writes.
    disks: Vec<String>,
}

/// A fault that was added during the run.
struct LateFault {
    occurrence: Occurrence,
    /// Its end, if that is known.
    end: Option<True>,
    /// Once it has begun: its number in the history, and the number of the cue that ends it.
    begun: Option<(usize, u64)>,
}

/// The director's pending actions, and the lasting faults that it has begun.
struct Director {
    ctx: HostCtx,
    stage: Rc<Stage>,
    cues: BTreeMap<(True, u64), Cue>,
    cues_given: u64,
    /// The number of the first fault that is added during the run. As cues, such faults come after
    /// those of the plan and before all others, as if they were the last ones of the plan.
    late_from: u64,
    late: Vec<LateFault>,
    /// The lasting effects of each fault, by its number in the history.
    in_force: BTreeMap<usize, Kept>,
    /// The node behind each address; `None` for an address that leads nowhere.
    addresses: BTreeMap<String, Option<String>>,
}

/// Runs the director from the start of the run to its end.
pub(super) async fn play(ctx: HostCtx, stage: Rc<Stage>) {
    let (cues, in_force, late) = Default::default();
    let node_of = |address: &Address| address.points_to.as_ref().map(|node| node.as_str().to_owned());
    let addresses = stage.plan.scenario.address.iter();
    let addresses = addresses.map(|(name, address)| (name.clone(), node_of(address))).collect();
    let (cues_given, late_from) = (0, 0);
    Director { ctx, stage, cues, cues_given, late_from, late, in_force, addresses }.play().await;
}

impl Director {
    async fn play(mut self) {
        let stage = self.stage.clone();
        for (at, occurrence) in stage.plan.faults.iter().enumerate() {
            match &occurrence.when {
                When::At(when) => self.cue(*when, Cue::Begin(at)),
                When::After(trigger, delay) => {
                    let lock = trigger.of.as_ref().and_then(|name| stage.plan.lock(name.as_str()));
                    let clients = trigger.client.as_ref().map(|clients| {
                        let names = clients.names().iter().flat_map(|name| members(&stage, name.as_str()));
                        names.filter_map(|name| stage.hosts.get(&name).copied()).collect()
                    });
                    stage.shared.await_trigger(at, trigger, *delay, Scope { clients, lock });
                }
            }
        }
        self.late_from = self.cues_given;
        self.cues_given += LATE_MAX;
        loop {
            for (at, change) in stage.late.take() {
                self.change(at, change);
            }
            loop {
                let due = stage.shared.get().take_due();
                let Some((occurrence, due)) = due else { break };
                self.cue(due, Cue::Begin(occurrence));
            }
            let now = self.ctx.moment().0;
            while let Some(entry) = self.cues.first_entry().filter(|entry| entry.key().0 <= now) {
                match entry.remove() {
                    Cue::Begin(occurrence) => self.begin(&stage.plan.faults[occurrence], None),
                    Cue::BeginLate(late) => {
                        let occurrence = self.late[late].occurrence.clone();
                        self.begin(&occurrence, Some(late));
                    }
                    Cue::End(fault) => self.end(fault),
                }
            }
            let next = self.cues.first_key_value().map_or(True::MAX, |(&(at, _), _)| at);
            let wait = Duration::from_nanos(u64::try_from(next.as_nanos() - now.as_nanos()).unwrap_or(0));
            tokio::select! {
                biased;
                () = stage.shared.happened() => {}
                () = stage.late.is_due(&self.ctx) => {}
                () = self.ctx.wire_delay(wait) => {}
            }
        }
    }

    fn cue(&mut self, at: True, cue: Cue) {
        self.cues.insert((at, self.cues_given), cue);
        self.cues_given += 1;
    }

    /// Adds a fault, or the end of one.
    fn change(&mut self, at: True, change: Change) {
        match change {
            Change::Begin(occurrence) => {
                let late = self.late.len();
                self.cues.insert((at, self.late_from + late as u64), Cue::BeginLate(late));
                self.late.push(LateFault { occurrence: *occurrence, end: None, begun: None });
            }
            Change::End(late) => {
                let late = &mut self.late[late];
                late.end = Some(at);
                if let Some((fault, cue)) = late.begun {
                    self.cues.insert((at, cue), Cue::End(fault));
                }
            }
        }
    }

    /// Begins an occurrence, and schedules its end. `late` is its index among the faults that were
    /// added during the run, whose ends are added, too.
    fn begin(&mut self, occurrence: &Occurrence, late: Option<usize>) {
        let now = self.ctx.moment().0;
        let targets: Vec<Vec<String>> =
            occurrence.targets.iter().map(|targets| resolve(&self.stage, targets)).collect();
        // No host has the role, so there is nothing to do.
        if !targets.is_empty() && targets.iter().any(Vec::is_empty) {
            return;
        }
        let kind = &occurrence.fault;
        let hosts = targets.iter().flatten().filter_map(|name| self.stage.hosts.get(name).copied()).collect();
        let words = kind.words(&targets);
        let shared = &self.stage.shared;
        let fault = shared.get().history.fault_started(now, occurrence.of(), words, hosts, kind.lasts());
        // A repeated fault begins under the same name each time, so each occurrence needs its own
        // cause.
        let cause = Cause::from(format!("{}/{fault}", occurrence.name));
        let (mut conditions, mut disks) = (Vec::new(), Vec::new());
        let actions = kind.actions(&targets);
        if actions.iter().any(FaultAction::reconfigures) {
            shared.get().history.fault_reconfigures(fault);
        }
        for action in actions {
            match action {
                FaultAction::For(condition) => {
                    self.ctx.control().now(condition.clone().begin(cause.clone()));
                    conditions.push(condition);
                }
                FaultAction::World(verb) => {
                    if let Verb::Restart { host } = &verb {
                        self.end_crashes(host);
                    }
                    self.ctx.control().now(verb);
                }
                FaultAction::LoseDisk { host } => {
                    if let Some(actor) = self.stage.nodes.borrow().get(&host) {
                        actor.lose_disk();
                    }
                }
                FaultAction::Disk { node, fault: why } => {
                    if let Some(actor) = self.stage.nodes.borrow().get(&node) {
                        actor.spoil_disk(fault, why);
                        disks.push(node);
                    }
                }
                FaultAction::MoveAddress { address, to, reset } => self.move_address(address, to, reset),
                FaultAction::Reshard { moved, to, step, atomic } => {
                    let (ctx, stage) = (self.ctx.clone(), self.stage.clone());
                    if atomic {
                        tokio::task::spawn_local(reshard::migrate(ctx, stage, moved, to));
                    } else {
                        tokio::task::spawn_local(reshard::reshard(ctx, stage, moved, to, step));
                    }
                }
                FaultAction::Console { node, command } => {
                    if let Some(actor) = self.stage.nodes.borrow().get(&node) {
                        actor.console().give(command);
                    }
                }
            }
        }
        if conditions.is_empty() && disks.is_empty() {
            return;
        }
        self.in_force.insert(fault, Kept { cause, conditions, disks });
        // The end of the storm ends every fault with a length. A fault without one stays.
        if let Some(length) = occurrence.length {
            let end = (now + length).min(self.stage.plan.phases.storm_ends.max(now));
            let Some(late) = late else { return self.cue(end, Cue::End(fault)) };
            let (late, cue) = (&mut self.late[late], self.cues_given);
            self.cues_given += 1;
            late.begun = Some((fault, cue));
            if let Some(end) = late.end {
                self.cues.insert((end, cue), Cue::End(fault));
            }
        }
    }

    /// Points an address to another node, or nowhere. If `reset` is set, breaks the clients'
    /// connections to the previous node.
    fn move_address(&mut self, address: String, to: Option<String>, reset: bool) {
        self.ctx.control().now(Verb::Point { address: address.clone(), host: to.clone() });
        let clients = self.stage.plan.scenario.client.iter().filter(|(_, client)| client.dials(&address));
        let clients = clients.flat_map(|(name, client)| group(name, client.count));
        let before = self.addresses.insert(address.clone(), to.clone()).flatten();
        if let Some(before) = before.filter(|before| reset && Some(before) != to.as_ref()) {
            for client in clients {
                self.ctx.control().now(Verb::Reset { one: client, other: before.clone() });
            }
        }
    }

    /// Ends the lasting effects of a fault, unless it is over already.
    fn end(&mut self, fault: usize) {
        let Some(Kept { cause, conditions, disks }) = self.in_force.remove(&fault) else { return };
        for condition in conditions {
            self.ctx.control().now(condition.end(cause.clone()));
        }
        for node in disks {
            if let Some(actor) = self.stage.nodes.borrow().get(&node) {
                actor.mend_disk(fault);
            }
        }
        self.is_over(fault);
    }

    /// Removes all conditions that keep a host down, before its start.
    fn end_crashes(&mut self, host: &str) {
        let mut over = Vec::new();
        self.in_force.retain(|fault, Kept { conditions, disks, .. }| {
            conditions
                .retain(|condition| !matches!(condition, Condition::Down { host: down } if down == host));
            let lasts = !conditions.is_empty() || !disks.is_empty();
            if !lasts {
                over.push(*fault);
            }
            lasts
        });
        over.into_iter().for_each(|fault| self.is_over(fault));
    }

    fn is_over(&self, fault: usize) {
        self.stage.shared.get().history.fault_ended(fault, self.ctx.moment().0);
    }
}

/// Returns the hosts of a group, or the single host of this name.
fn members(stage: &Stage, name: &str) -> Vec<String> {
    if stage.hosts.contains_key(name) { vec![name.to_owned()] } else { stage.plan.scenario.members(name) }
}

fn resolve(stage: &Stage, targets: &[Target]) -> Vec<String> {
    let mut hosts = Vec::new();
    for target in targets {
        match target {
            Target::Host(name) => hosts.push(name.clone()),
            Target::Role(selector) => hosts.extend(part(stage, selector)),
        }
    }
    hosts
}

/// Returns the host that has a role at this moment.
fn part(stage: &Stage, selector: &Selector) -> Option<String> {
    let lock = selector.lock().and_then(|name| stage.plan.lock(name));
    let name = |host: Option<Host>| host.map(|host| stage.shared.get().history.host_name(host).to_owned());
    match selector {
        Selector::Holder(_) => {
            let holder = stage.shared.get().holder(lock);
            name(holder)
        }
        Selector::Waiter(_) => {
            let waiter = stage.shared.get().waiter(lock);
            name(waiter)
        }
        Selector::Master(_) => master(stage, lock),
        Selector::Leader => {
            let recorder = stage.shared.get();
            let elected = |event: &&Event| matches!(&event.kind, EventKind::Sentinel { event, .. } if **event == *"+elected-leader");
            let last = recorder.history.events.iter().rev().find(elected);
            last.map(|event| recorder.history.host_name(event.host).to_owned())
        }
        Selector::Replica(_) if stage.plan.scenario.is_cluster() => {
            let master = master(stage, lock)?;
            let nodes = stage.nodes.borrow();
            let mut replicas = nodes
                .iter()
                .filter(|(_, node)| !node.is_master() && node.follows().as_ref() == Some(&master));
            replicas.next().map(|(name, _)| name.clone())
        }
        Selector::Replica(_) => {
            let of_lock = lock.map(|lock| stage.plan.nodes_of(lock));
            // Sentinels also have consoles, and are no replicas.
            let nodes = || stage.plan.hosts.iter().filter(|host| host.software.kind() == HostKind::Node);
            let is_meant = |name: &String| match &of_lock {
                Some(nodes) => nodes.contains(name),
                None => nodes().any(|host| host.name == *name),
            };
            let nodes = stage.nodes.borrow();
            let mut replicas = nodes.iter().filter(|(name, actor)| is_meant(name) && !actor.is_master());
            replicas.next().map(|(name, _)| name.clone())
        }
        _ => None,
    }
}

/// Returns the master of a lock: the one node of its group that accepts writes. After a failover
/// that the old master has not learned of, returns the one that was promoted last.
fn master(stage: &Stage, lock: Option<Lock>) -> Option<String> {
    // If a scenario does not name a lock, all have the same master.
    let group = stage.plan.nodes_of(lock.unwrap_or(Lock(0)));
    let nodes = stage.nodes.borrow();
    let slot = stage.plan.scenario.is_cluster().then(|| {
        let lock = stage.plan.entries_of(lock.unwrap_or(Lock(0))).next().expect("it is on trial");
        key_slot(lock.key.as_bytes())
    });
    let is_master = |actor: &Rc<dyn Operated>| match slot {
        None => actor.is_master(),
        Some(slot) => actor.serving(slot).is_some_and(Serving::is_master),
    };
    let masters: Vec<String> =
        group.into_iter().filter(|name| nodes.get(name).is_some_and(is_master)).collect();
    if masters.len() > 1 {
        let recorder = stage.shared.get();
        let history = &recorder.history;
        let promoted = |event: &Event| {
            let is = matches!(event.kind, EventKind::Became { role: Role::Master });
            let name = history.host_name(event.host);
            (is && masters.iter().any(|master| master == name)).then(|| name.to_owned())
        };
        if let Some(last) = history.events.iter().rev().find_map(promoted) {
            return Some(last);
        }
    }
    masters.into_iter().next()
}
