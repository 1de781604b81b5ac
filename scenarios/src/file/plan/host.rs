//! A planned host: its clocks, and the software that runs on it.

use std::{any::Any, fmt, rc::Rc};

use lockstorm_world::Entropy;

use super::{PlannedNode, PlannedSentinel};
use crate::{
    file::scenario::{Clock, word},
    judge::history::HostKind,
    units::{Rate, Step},
};

/// A host of the run with the errors of its clocks and its software.
#[derive(Debug, Clone)]
pub(crate) struct PlannedHost {
    /// The name in the file, with a number from 1 for a member of a group.
    pub(crate) name: String,
    /// The time by which its wall clock is ahead of true time at the start.
    pub(crate) offset: Step,
    /// The rate by which its clocks run faster than true time.
    pub(crate) rate: Rate,
    /// The process to start; [`Software::kind`] is its role in the history.
    pub(crate) software: Rc<dyn Software>,
}

/// The software of a host. The run selects the process to start by the concrete type.
pub(crate) trait Software: Any + fmt::Debug {
    /// Returns the kind under which the history records the host.
    fn kind(&self) -> HostKind;
    /// Returns the node whose data it replicates from the start.
    fn replica_of(&self) -> Option<&str> {
        None
    }
    /// Returns the reasons why no real process can run in its place, each as the end of a sentence
    /// about its host.
    fn unreal(&self) -> Vec<String> {
        Vec::new()
    }
    /// Returns true if the software is a separate process in real time. Such a process has the
    /// clocks of the machine.
    fn is_process(&self) -> bool {
        false
    }
    /// Describes its work, one line for each part.
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

impl PlannedHost {
    /// Returns the name and version of the real server that a node or Sentinel runs on.
    pub(crate) fn server(&self) -> Option<Box<str>> {
        let software: &dyn Any = &*self.software;
        let of_node = software.downcast_ref::<PlannedNode>().map(|node| &node.server);
        let of_sentinel = software.downcast_ref::<PlannedSentinel>().map(|sentinel| &sentinel.server);
        let server = of_node.or(of_sentinel)?.as_ref()?;
        Some(server.as_ref().ok()?.to_string().into())
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
