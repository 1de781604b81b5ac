//! The occurrences of all faults, each with its start, its length and its targets.

use std::{fmt, time::Duration};

use indexmap::IndexMap;
use lockstorm_world::{Entropy, Stream, time::True};

use super::{PlannedHost, links::all, phases::Phases};
use crate::{
    file::{
        fault::{Fault, FaultKind, Trigger},
        scenario::{Scenario, word},
        selector::{Hosts, Selector},
    },
    units::Span,
};

/// The number of fractions that an occurrence draws for the ranges among its fault's parameters.
const FRACTIONS: usize = 4;

/// One occurrence of a fault: a fault without `every` has one.
#[derive(Debug, Clone)]
pub(crate) struct Occurrence {
    /// The fault's name in the scenario; for repeated faults followed by `#` and the number of the
    /// occurrence.
    pub(crate) name: String,
    /// A true instant, or the event that triggers it and a delay.
    pub(crate) when: When,
    /// The time after which it is undone; `None` for never.
    pub(crate) length: Option<Duration>,
    /// The fault, with all ranges among its parameters drawn.
    pub(crate) fault: FaultKind,
    /// The targets, one list for each of the fault's selectors.
    pub(crate) targets: Vec<Vec<Target>>,
}

impl Occurrence {
    /// Returns the name of its fault.
    pub(crate) fn of(&self) -> &str {
        self.name.split_once('#').map_or(&self.name, |(fault, _)| fault)
    }
}

/// The start of an occurrence: known before the run, or triggered in it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum When {
    /// An instant of true time, drawn before the run.
    At(True),
    /// This delay after an event of the run.
    After(Trigger, Duration),
}

/// A target of a fault: a host, or a role that is resolved in the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// A host, known before the run.
    Host(String),
    /// The hosts in this role when the fault begins, such as `@master`.
    Role(Selector),
}

/// Draws the occurrences of these faults among the hosts of the scenario.
pub(super) fn draw(
    scenario: &Scenario,
    faults: &IndexMap<String, Fault>,
    hosts: &[PlannedHost],
    entropy: &Entropy,
    phases: &Phases,
) -> Vec<Occurrence> {
    let mut occurrences = Vec::new();
    for (name, written) in faults.iter().filter(|(_, fault)| !fault.off) {
        // A valid fault has one kind.
        let Some(kind) = written.given().into_iter().next() else { continue };
        let mut stream = entropy.stream(&format!("plan/fault/{name}"));
        let mut one = |when: When, number: usize, stream: &mut Stream| {
            let name = if written.every.is_some() { format!("{name}#{number}") } else { name.clone() };
            let length = written.length.map(|length| length.at(stream.unit()).0);
            let mut fault = kind.clone();
            let targets = fault
                .hosts()
                .into_iter()
                .map(|hosts_of| targets(scenario, hosts, hosts_of, stream))
                .collect();
            let mut fractions = [(); FRACTIONS].map(|()| stream.unit()).into_iter().cycle();
            fault.draw(&mut || fractions.next().unwrap_or_default());
            occurrences.push(Occurrence { name, when, length, fault, targets });
        };
        if let Some(trigger) = &written.on {
            let delay = trigger.delay.at(stream.unit()).0;
            one(When::After(trigger.clone(), delay), 1, &mut stream);
            continue;
        }
        let mut at = True::ZERO + written.at.unwrap_or_default().at(stream.unit()).0;
        let last = written.until.map_or(phases.storm_ends, |until| True::ZERO + until.0);
        one(When::At(at), 1, &mut stream);
        let Some(every) = written.every else { continue };
        for number in 2.. {
            // The period is never too short for this loop to end: validation has checked it.
            at += every.at(stream.unit()).0;
            if at >= last {
                break;
            }
            one(When::At(at), number, &mut stream);
        }
    }
    occurrences
}

fn targets(scenario: &Scenario, hosts: &[PlannedHost], written: &Hosts, stream: &mut Stream) -> Vec<Target> {
    let selectors = written.names().iter().filter_map(|name| name.as_str().parse::<Selector>().ok());
    let mut targets = Vec::new();
    for selector in selectors {
        let candidates = all(scenario, hosts, &selector);
        let minority = candidates.len().saturating_sub(1) / 2;
        let chosen = match selector {
            Selector::Holder(_)
            | Selector::Waiter(_)
            | Selector::Master(_)
            | Selector::Replica(_)
            | Selector::Leader => {
                targets.push(Target::Role(selector));
                continue;
            }
            Selector::AnyNode | Selector::AnyClient | Selector::AnySentinel => pick(candidates, 1, stream),
            Selector::Minority | Selector::SentinelMinority => pick(candidates, minority, stream),
            Selector::Named(_) | Selector::Nodes | Selector::Clients | Selector::Sentinels => candidates,
        };
        targets.extend(chosen.into_iter().map(Target::Host));
    }
    targets
}

/// Draws this number of candidates without replacement, or all if there are fewer.
fn pick(mut candidates: Vec<String>, count: usize, stream: &mut Stream) -> Vec<String> {
    let mut picked = Vec::new();
    while picked.len() < count && !candidates.is_empty() {
        picked.push(candidates.remove(stream.below(candidates.len() as u64) as usize));
    }
    picked
}

impl fmt::Display for Occurrence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.when {
            When::At(at) => write!(f, "{} at {at}", self.name)?,
            When::After(trigger, delay) => {
                let (event, nth) = (word(trigger.event), trigger.nth);
                let of = trigger.of.as_ref().map(|name| format!(" of {}", name.as_str())).unwrap_or_default();
                write!(f, "{} {} after {event}{of} #{nth}", self.name, Span(*delay))?;
            }
        }
        if let Some(length) = self.length {
            write!(f, " for {}", Span(length))?;
        }
        let name = |target: &Target| match target {
            Target::Host(name) => name.clone(),
            Target::Role(selector) => selector.to_string(),
        };
        let targets: Vec<Vec<String>> =
            self.targets.iter().map(|targets| targets.iter().map(name).collect()).collect();
        write!(f, ": {}", self.fault.words(&targets))
    }
}
