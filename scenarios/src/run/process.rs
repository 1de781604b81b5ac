//! What runs on the hosts of a world.
//!
//! To have another program run, write its [`Process`] in a file of its own, with a function that
//! makes it of what was planned, and add that to [`PROCESSES`](super::PROCESSES).

use std::{any::Any, rc::Rc};

use lockstorm_sim::world::{HostCtx, HostState};

use super::{Engine, Stage, operator::Operated};
use crate::{file::plan::PlannedHost, run::subject::Local};

/// What runs on a host, over all its lives.
pub(super) trait Process {
    /// Runs from one start of its host to the crash of the host, or to the exit of the process.
    fn run(&self, ctx: HostCtx) -> Local<'static, ()>;
    /// The node that it is, as its operator sees it.
    fn node(&self) -> Option<Rc<dyn Operated>> {
        None
    }
    /// The program of the machine's that it is, if it is one.
    fn program(&self) -> Option<Rc<dyn Program>> {
        None
    }
}

/// A program of the machine's, which its host starts, stops and kills.
pub(super) trait Program {
    /// Waits until it is up, before the time of the run begins: a process is not at once.
    fn comes_up(&self, name: &str);
    /// Its host does this from now on.
    fn is_now(&self, state: HostState);
    /// Ends it with the run.
    fn end(&self);
}

/// What a process is made of.
pub(super) struct Planned<'a> {
    pub(super) host: &'a PlannedHost,
    pub(super) engine: Engine,
    pub(super) stage: &'a Rc<Stage>,
}

impl Planned<'_> {
    /// What the host is to run, if it is of this kind.
    pub(super) fn software<S: Any>(&self) -> Option<&S> {
        let software: &dyn Any = &*self.host.software;
        software.downcast_ref()
    }
}

/// Makes the process, if it is the one that a planned host is to run.
pub(super) type Make = fn(&Planned<'_>) -> Option<Box<dyn Process>>;
