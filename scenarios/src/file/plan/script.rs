//! The steps of a client with their ranges drawn.

use std::fmt;

use lockstorm_world::Entropy;

use crate::{
    file::{
        plan::LockEntry,
        scenario::{Client, Scenario, Step, StepEntry, Workload, WorkloadEntry, group},
    },
    units::Span,
};

/// A step of a script, with its times drawn from the seed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlannedStep {
    /// The earliest start, in true time after the start of the run.
    pub(crate) at: Option<Span>,
    /// The lock that the step names, if any.
    pub(crate) of: Option<LockEntry>,
    /// The action, with all ranges among its times drawn; `None` for a step that only waits for its
    /// time.
    pub(crate) step: Option<Step>,
}

impl fmt::Display for PlannedStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = self.at {
            write!(f, "at {at}: ")?;
        }
        f.write_str(&self.step.as_ref().map_or("nothing".to_owned(), |step| step.words()))
    }
}

/// One line of work of a client: a separate owner.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlannedLine {
    /// Its name; empty for the only line of a client.
    pub(crate) name: String,
    /// Its steps in the order of the file; empty with a workload.
    pub(crate) script: Vec<PlannedStep>,
    /// Its workload, if it has one instead of a script.
    pub(crate) workload: Option<Workload>,
}

/// Returns the lines of work of one client, in the order of the file.
pub(super) fn lines(
    scenario: &Scenario,
    written: &Client,
    client: &str,
    entropy: &Entropy,
) -> Vec<PlannedLine> {
    let line = |name: String, steps: &[StepEntry], workload: &Option<WorkloadEntry>| {
        let stream = if name.is_empty() { client.to_owned() } else { format!("{client}/{name}") };
        let script = draw(scenario, steps, &stream, entropy);
        // A valid workload has one kind.
        let workload = workload.as_ref().and_then(|workload| workload.given().into_iter().next());
        PlannedLine { name, script, workload }
    };
    if written.line.is_empty() {
        return vec![line(String::new(), &written.steps, &written.workload)];
    }
    let named = written
        .line
        .iter()
        .flat_map(|(name, of)| group(name, of.count).into_iter().map(move |name| (name, of)));
    named.map(|(name, of)| line(name, &of.steps, &of.workload)).collect()
}

fn draw(scenario: &Scenario, steps: &[StepEntry], name: &str, entropy: &Entropy) -> Vec<PlannedStep> {
    let mut stream = entropy.stream(&format!("plan/script/{name}"));
    let planned = steps.iter().map(|entry| {
        let at = entry.at.map(|at| at.at(stream.unit()));
        let mut step = entry.given().into_iter().next();
        step.iter_mut().for_each(|step| step.draw(&mut || stream.unit()));
        let of = entry.of.as_ref().and_then(|of| scenario.lock.get_index_of(of.as_str()));
        let of = of.and_then(|of| u16::try_from(of).ok()).map(LockEntry);
        PlannedStep { at, of, step }
    });
    planned.collect()
}
