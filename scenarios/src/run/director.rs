//! Carries the faults out: on time, or when something has happened, on whoever plays the part then.

use std::{collections::BTreeMap, rc::Rc, time::Duration};

use lockstorm_sim::{
    time::True,
    world::{HostCtx, Verb},
};

use super::Stage;
use crate::{
    fault::Deed,
    history::{Host, Life, What},
    plan::{Occurrence, Target, When},
    selector::Selector,
};

/// Something that the director has yet to do.
enum Cue {
    /// An occurrence begins.
    Begin(usize),
    /// What an occurrence did is undone.
    End { occurrence: usize, targets: Vec<Vec<String>>, fault: usize },
}

/// Plays the director from the start of the run to its end.
pub(super) async fn play(ctx: HostCtx, stage: Rc<Stage>) {
    let mut cues: BTreeMap<(True, u64), Cue> = BTreeMap::new();
    let mut number = 0;
    let mut cue = |cues: &mut BTreeMap<(True, u64), Cue>, at: True, cue: Cue| {
        cues.insert((at, number), cue);
        number += 1;
    };
    for (at, occurrence) in stage.plan.faults.iter().enumerate() {
        match &occurrence.when {
            When::At(when) => cue(&mut cues, *when, Cue::Begin(at)),
            When::After(trigger, delay) => {
                let clients = trigger.client.as_ref().map(|clients| {
                    let names = clients.names().iter().flat_map(|name| members(&stage, name.as_str()));
                    names.filter_map(|name| stage.hosts.get(&name).copied()).collect()
                });
                stage.shared.await_trigger(at, trigger, *delay, clients);
            }
        }
    }
    loop {
        while let Some((occurrence, due)) = stage.shared.get().take_due() {
            cue(&mut cues, due, Cue::Begin(occurrence));
        }
        let now = ctx.moment().0;
        while let Some(entry) = cues.first_entry().filter(|entry| entry.key().0 <= now) {
            match entry.remove() {
                Cue::Begin(at) => {
                    if let Some((when, end)) = begin(&ctx, &stage, at) {
                        cue(&mut cues, when, end);
                    }
                }
                Cue::End { occurrence, targets, fault } => {
                    end(&ctx, &stage, &stage.plan.faults[occurrence], &targets);
                    stage.shared.get().history.fault_ended(fault, ctx.moment().0);
                }
            }
        }
        let next = cues.first_key_value().map_or(True::MAX, |(&(at, _), _)| at);
        let wait = Duration::from_nanos(u64::try_from(next.as_nanos() - now.as_nanos()).unwrap_or(0));
        tokio::select! {
            biased;
            () = stage.shared.happened() => {}
            () = ctx.wire_delay(wait) => {}
        }
    }
}

/// Begins an occurrence; returns when and what is to be done to undo it.
fn begin(ctx: &HostCtx, stage: &Stage, at: usize) -> Option<(True, Cue)> {
    let occurrence = &stage.plan.faults[at];
    let now = ctx.moment().0;
    let targets: Vec<Vec<String>> =
        occurrence.targets.iter().map(|targets| resolve(stage, targets)).collect();
    // Nobody plays the part: there is nothing to do to nobody.
    if !targets.is_empty() && targets.iter().any(Vec::is_empty) {
        return None;
    }
    let kinds = occurrence.fault.kinds();
    let kind = kinds.first()?;
    let hosts = targets.iter().flatten().filter_map(|name| stage.hosts.get(name).copied()).collect();
    let fault = stage.shared.get().history.fault_started(now, kind.words(&targets), hosts, kind.lasts());
    let mut fractions = occurrence.fractions.iter().copied().cycle();
    let deeds = kind.begin(&occurrence.name, &targets, &mut || fractions.next().unwrap_or(0.0));
    carry_out(ctx, stage, deeds);
    // The storm ends for whatever can be undone; what has no end given stays as it is.
    let length = occurrence.length?;
    let end = (now + length).min(stage.plan.phases.storm_ends.max(now));
    Some((end, Cue::End { occurrence: at, targets, fault }))
}

fn end(ctx: &HostCtx, stage: &Stage, occurrence: &Occurrence, targets: &[Vec<String>]) {
    if let Some(kind) = occurrence.fault.kinds().first() {
        carry_out(ctx, stage, kind.end(&occurrence.name, targets));
    }
}

fn carry_out(ctx: &HostCtx, stage: &Stage, deeds: Vec<Deed>) {
    for deed in deeds {
        match deed {
            Deed::World(verb) => {
                tell(ctx, stage, &verb);
                if let Some(node) = verb.host().and_then(|host| stage.nodes.borrow().get(host).cloned()) {
                    node.told(&verb);
                }
                ctx.control().now(verb);
            }
            Deed::Console { node, command } => {
                if let Some(actor) = stage.nodes.borrow().get(&node) {
                    actor.console().give(command);
                }
            }
        }
    }
}

/// Writes down what a verb does to the life of a host.
fn tell(ctx: &HostCtx, stage: &Stage, verb: &Verb) {
    let (host, life) = match verb {
        Verb::Pause { host } => (host, Life::Paused),
        Verb::Suspend { host } => (host, Life::Suspended),
        Verb::Resume { host } | Verb::Wake { host } => (host, Life::Resumed),
        Verb::Crash { host } => (host, Life::Crashed),
        _ => return,
    };
    if let Some(host) = stage.hosts.get(host) {
        stage.shared.get().history.record(ctx.moment().0, *host, What::Life { life });
    }
}

/// The hosts of a group, or the one host.
fn members(stage: &Stage, name: &str) -> Vec<String> {
    if stage.hosts.contains_key(name) {
        return vec![name.to_owned()];
    }
    let scenario = &stage.plan.scenario;
    let count = scenario.client.get(name).map(|client| client.count);
    let count = count.or_else(|| scenario.node.get(name).map(|node| node.count));
    crate::scenario::group(name, count.flatten())
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

/// Who plays a part at this moment.
fn part(stage: &Stage, selector: &Selector) -> Option<String> {
    let name = |host: Option<Host>| host.map(|host| stage.shared.get().history.host_name(host).to_owned());
    match selector {
        Selector::Holder => {
            let holder = stage.shared.get().holder();
            name(holder)
        }
        Selector::Waiter => {
            let waiter = stage.shared.get().waiter();
            name(waiter)
        }
        Selector::Master => {
            stage.nodes.borrow().iter().find(|(_, actor)| actor.is_master()).map(|(name, _)| name.clone())
        }
        Selector::Replica => {
            stage.nodes.borrow().iter().find(|(_, actor)| !actor.is_master()).map(|(name, _)| name.clone())
        }
        _ => None,
    }
}
