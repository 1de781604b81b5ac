//! A Sentinel on its host: started from its configuration file, which outlives a crash, and
//! observed for its events.

use std::{cell::Cell, rc::Rc};

use lockstorm_sim::{
    config::Config,
    drive::{DrivenNode, world},
    env::{Env, Observation},
    generation::Generation,
    server::Server,
};
use lockstorm_world::HostCtx;

use super::{
    Engine, Stage,
    operator::{self, Console, Operated},
    process::{Planned, Process},
};
use crate::{file::plan::PlannedSentinel, judge::history::EventKind, run::subject::Local};

/// The port of every Sentinel.
const PORT: u16 = 26379;

/// A Sentinel over all its lives.
struct SimulatedSentinel {
    stage: Rc<Stage>,
    file: String,
    options: Vec<(String, String)>,
    generation: Generation,
    node: DrivenNode,
    operated: Rc<OperatedSentinel>,
}

/// A Sentinel as its operator sees it.
#[derive(Default)]
struct OperatedSentinel {
    console: Console,
    /// Set if the next start begins with the original configuration file.
    disk_lost: Cell<bool>,
}

impl Operated for OperatedSentinel {
    fn console(&self) -> &Console {
        &self.console
    }

    fn lose_disk(&self) {
        self.disk_lost.set(true);
    }

    fn is_master(&self) -> bool {
        false
    }
}

pub(super) fn process(planned: &Planned<'_>) -> Option<Box<dyn Process>> {
    let sentinel = planned.software::<PlannedSentinel>().filter(|_| planned.engine != Engine::Real)?;
    let (stage, file, options) = (planned.stage.clone(), sentinel.file.clone(), sentinel.options.clone());
    let (node, generation) = (DrivenNode::new(), sentinel.generation);
    Some(Box::new(SimulatedSentinel { stage, file, options, generation, node, operated: Rc::default() }))
}

impl SimulatedSentinel {
    fn config(&self) -> Config {
        let mut config = Config::of(self.generation).with(|config| config.network.port = PORT);
        operator::set(&mut config, self.options.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        config
    }
}

impl Process for SimulatedSentinel {
    fn run(&self, ctx: HostCtx) -> Local<'static, ()> {
        let (host, shared, now) = (self.stage.host(ctx.name()), self.stage.shared.clone(), ctx.clone());
        self.node.watch(move |observation| {
            let Observation::Published { channel, message, .. } = observation else { return };
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into();
            let what = EventKind::Sentinel { event: text(channel), message: text(message) };
            shared.get().history.record(now.moment().0, host, what);
        });
        let (file, config) = (self.file.clone(), self.config());
        let password = config.security.requirepass.clone();
        let operated = self.operated.clone();
        let start = move |env: &mut Env, before: Option<Server>| {
            let before = before.filter(|_| !operated.disk_lost.take());
            let saved = before.and_then(|server| Some(server.node().sentinel.as_ref()?.saved().to_owned()));
            Server::sentinel(config, &saved.unwrap_or(file), env)
                .expect("the file was written by this program")
        };
        let (node, console) = (self.node.clone(), self.operated.console().clone());
        Box::pin(async move {
            let operator = tokio::task::spawn_local(operator::operate(ctx.clone(), PORT, console, password));
            world::run_with(ctx, PORT, node, start).await;
            operator.abort();
        })
    }

    fn node(&self) -> Option<Rc<dyn Operated>> {
        Some(self.operated.clone())
    }
}
