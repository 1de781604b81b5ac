//! A host as planned: its clocks, and what runs on it.

use std::{any::Any, fmt, rc::Rc};

use lockstorm_sim::world::Entropy;

use crate::{
    file::scenario::{Clock, word},
    judge::history::HostKind,
    units::{Rate, Step},
};

/// A host of the run.
#[derive(Debug, Clone)]
pub struct PlannedHost {
    /// Its name.
    pub name: String,
    /// How far its wall clock is ahead.
    pub offset: Step,
    /// How much faster than true time its clocks run.
    pub rate: Rate,
    /// What runs on it.
    pub software: Rc<dyn Software>,
}

/// What runs on a host. A process is chosen by the type behind it.
pub trait Software: Any + fmt::Debug {
    /// What the history calls a host that runs it.
    fn kind(&self) -> HostKind;
    /// The node whose data it repeats from the start.
    fn replica_of(&self) -> Option<&str> {
        None
    }
    /// What it is to do that no real program of its kind does, each as the end of a sentence about
    /// its host.
    fn unreal(&self) -> Vec<String> {
        Vec::new()
    }
    /// Whether it is a process of its own in real time, whose clocks are the machine's.
    fn is_process(&self) -> bool {
        false
    }
    /// What it will do, a line each.
    fn words(&self) -> Vec<String> {
        Vec::new()
    }
}

impl PlannedHost {
    /// Draws the clocks of a host.
    pub(super) fn draw(
        entropy: &Entropy,
        name: String,
        clock: &Clock,
        software: Rc<dyn Software>,
    ) -> PlannedHost {
        let mut stream = entropy.stream(&format!("plan/clock/{name}"));
        let offset = clock.offset.unwrap_or_default().at(stream.unit());
        let rate = clock.rate.unwrap_or_default().at(stream.unit());
        PlannedHost { name, offset, rate, software }
    }
}

impl fmt::Display for PlannedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, word(self.software.kind()))?;
        if self.offset != Step::default() {
            write!(f, ", wall clock {} ahead", self.offset)?;
        }
        if self.rate != Rate::default() {
            write!(f, ", clocks {} fast", self.rate)?;
        }
        Ok(())
    }
}
