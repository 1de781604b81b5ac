//! What runs on the hosts of a world.
//!
//! To put another program on a host, write its [`Process`], plan its hosts as a [`Software`], and add a line in [`of`].

use std::{cell::RefCell, rc::Rc};

use lockstorm_sim::world::HostCtx;

use super::{Engine, Stage, client, node, operator::Operated, real, resource};
use crate::{
    plan::{PlannedLine, Software},
    scenario::Client,
    subject::Local,
};

/// What runs on a host, over all its lives.
pub(super) trait Process {
    /// Runs from one start of its host to the crash of the host, or to the exit of the process.
    fn run(&self, ctx: HostCtx) -> Local<'static, ()>;
    /// The node that it is, as its operator sees it.
    fn node(&self) -> Option<Rc<dyn Operated>> {
        None
    }
}

/// The process on a planned host.
pub(super) fn of(software: &Software, engine: Engine, stage: &Rc<Stage>) -> Box<dyn Process> {
    let stage = stage.clone();
    match software {
        Software::Node(written) if engine == Engine::Real => {
            Box::new(RealNode { stage, actor: Rc::new(real::Actor::new(written.clone())) })
        }
        Software::Node(written) => {
            Box::new(SimulatedNode { stage, actor: Rc::new(node::Actor::new(written.clone())) })
        }
        Software::Client { client, lines } => {
            Box::new(ClientProcess { stage, client: Rc::new(client.clone()), lines: Rc::new(lines.clone()) })
        }
        Software::Resource => Box::new(Resource { stage, memory: Rc::default() }),
    }
}

struct SimulatedNode {
    stage: Rc<Stage>,
    actor: Rc<node::Actor>,
}

impl Process for SimulatedNode {
    fn run(&self, ctx: HostCtx) -> Local<'static, ()> {
        Box::pin(node::play(ctx, self.stage.clone(), self.actor.clone()))
    }

    fn node(&self) -> Option<Rc<dyn Operated>> {
        Some(self.actor.clone())
    }
}

/// A `redis-server` of this machine.
struct RealNode {
    stage: Rc<Stage>,
    actor: Rc<real::Actor>,
}

impl Process for RealNode {
    fn run(&self, ctx: HostCtx) -> Local<'static, ()> {
        Box::pin(real::play(ctx, self.stage.clone(), self.actor.clone()))
    }

    fn node(&self) -> Option<Rc<dyn Operated>> {
        Some(self.actor.clone())
    }
}

/// A client with its lines of work, or with a user's code.
struct ClientProcess {
    stage: Rc<Stage>,
    client: Rc<Client>,
    lines: Rc<Vec<PlannedLine>>,
}

impl Process for ClientProcess {
    fn run(&self, ctx: HostCtx) -> Local<'static, ()> {
        Box::pin(client::play(ctx, self.stage.clone(), self.client.clone(), self.lines.clone()))
    }
}

/// The guarded resource, which keeps its memory over a crash.
struct Resource {
    stage: Rc<Stage>,
    memory: Rc<RefCell<resource::Memory>>,
}

impl Process for Resource {
    fn run(&self, ctx: HostCtx) -> Local<'static, ()> {
        Box::pin(resource::play(ctx, self.stage.clone(), self.memory.clone()))
    }
}
