//! The programs on the hosts of a world.
//!
//! To add a program, write its [`Process`] in a file of its own, with a function that constructs it
//! from its part of the plan, and add that function to [`PROCESSES`](super::PROCESSES).

use std::{any::Any, rc::Rc};

use lockstorm_world::{HostCtx, HostState};

use super::{Engine, Stage, operator::Operated};
use crate::{file::plan::PlannedHost, run::subject::Local};

/// The program of a host, over all the host's lives.
pub(super) trait Process {
    /// Runs from one start of its host to the crash of the host, or to the exit of the process.
    fn run(&self, ctx: HostCtx) -> Local<'static, ()>;
    /// Returns the node that this process runs, if it is one.
    fn node(&self) -> Option<Rc<dyn Operated>> {
        None
    }
    /// Returns the operating system's process behind this one, if there is one.
    fn program(&self) -> Option<Rc<dyn Program>> {
        None
    }
}

/// A process of the operating system. Its simulated host starts, stops and kills it.
pub(super) trait Program {
    /// Starts the process and waits until it is up, before the time of the run begins. A start
    /// takes real time.
    fn comes_up(&self, name: &str);
    /// Passes on a change of the host's state.
    fn is_now(&self, state: HostState);
    /// Ends the process at the end of the run.
    fn end(&self);
}

/// The input for constructing a process.
pub(super) struct Planned<'a> {
    pub(super) host: &'a PlannedHost,
    pub(super) engine: Engine,
    pub(super) stage: &'a Rc<Stage>,
}

impl Planned<'_> {
    /// Returns the planned software of the host, if it has type `S`.
    pub(super) fn software<S: Any>(&self) -> Option<&S> {
        let software: &dyn Any = &*self.host.software;
        software.downcast_ref()
    }
}

/// Constructs the process of a planned host. Returns `None` if the host runs something else.
pub(super) type Make = fn(&Planned<'_>) -> Option<Box<dyn Process>>;
