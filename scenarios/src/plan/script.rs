//! A client's steps with their times drawn.

use std::fmt;

use lockstorm_sim::world::Entropy;

use crate::{
    scenario::{Step, StepEntry},
    units::Span,
};

/// One step of a script.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedStep {
    /// Not before this time after the start, in true time.
    pub at: Option<Span>,
    /// What is done, with every range among its times drawn; nothing by a step that only waits for its time.
    pub step: Option<Step>,
}

impl fmt::Display for PlannedStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = self.at {
            write!(f, "at {at}: ")?;
        }
        f.write_str(&self.step.as_ref().map_or("nothing".to_owned(), |step| step.words()))
    }
}

pub(super) fn draw(steps: &[StepEntry], client: &str, entropy: &Entropy) -> Vec<PlannedStep> {
    let mut stream = entropy.stream(&format!("plan/script/{client}"));
    let planned = steps.iter().map(|entry| {
        let at = entry.at.map(|at| at.at(stream.unit()));
        let mut step = entry.given().into_iter().next();
        step.iter_mut().for_each(|step| step.draw(&mut || stream.unit()));
        PlannedStep { at, step }
    });
    planned.collect()
}
