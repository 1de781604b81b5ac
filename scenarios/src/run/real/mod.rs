//! Nodes that are processes of a real server, for `lockstorm run --real`: the same clients,
//! scripts, workloads, faults and checkers, in real time.
//!
//! A crash is SIGKILL. The node loses the data that it had not yet passed to the operating system,
//! but not the data that the system had not yet written to disk. So only the durability kinds
//! `none` and `rdb` lose as much as in a power failure.

mod mirror;
mod order;
mod process;
mod reads;
mod server;
mod watch;

use std::{
    cell::{Cell, RefCell},
    io,
    path::PathBuf,
    pin::Pin,
    rc::Rc,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use lockstorm_world::{
    Condition, HostCtx, HostState,
    time::{True, Wall},
};

use tokio::sync::{Notify, oneshot};

pub(super) use order::put_in_order;
use process::{Home, Process};
use reads::Reads;
use watch::Watcher;

use super::{
    Engine, Stage,
    held::Watched,
    operator::{self, BACK_DOOR, Console, Operated},
    process::{Planned, Process as HostProcess, Program},
};
use crate::{
    file::{
        fault::FaultAction,
        plan::{Plan, PlannedNode, Target},
        scenario::Node as Written,
        selector::Selector,
    },
    judge::history::HostKind,
    run::subject::Local,
};

/// The longest time for a server's start, on a busy machine and with a log to load.
const START_MAX: Duration = Duration::from_secs(30);

/// The pause between two requests to a server that is starting.
const AGAIN: Duration = Duration::from_millis(10);

/// The clients' port of a server.
pub(super) const PORT: u16 = 6379;

/// The server of one node over all its lives.
pub(super) struct RealServer {
    written: Written,
    /// The master that it replicates from the start.
    follows: Option<String>,
    users: Vec<Vec<String>>,
    /// The program, and the command by which the watcher reads the keys.
    program: PathBuf,
    reads: Reads,
    console: Console,
    home: RefCell<Option<Rc<Home>>>,
    process: RefCell<Option<Process>>,
    paused: Cell<bool>,
    master: Cell<bool>,
    /// The clients wait for this. `is_open` is set once this server has opened, or is gone.
    opening: Rc<Opening>,
    is_open: Cell<bool>,
    /// The time until which the server's actions are known. Each life of the server has its own
    /// cell, because its last actions are found out after its end.
    seen_until: RefCell<Rc<Cell<Option<True>>>>,
    /// The state of the locks at the last crash.
    last_seen: RefCell<Option<Vec<Watched>>>,
}

impl RealServer {
    /// Creates a node that is not started yet, and makes clients wait for it.
    fn new(planned: &PlannedNode, opening: Rc<Opening>) -> RealServer {
        opening.awaits_one_more();
        let (written, follows, users) = (planned.node.clone(), planned.master.clone(), planned.users.clone());
        // A program that no caller has asked is a Redis 7 that the shell finds.
        let server = planned.server.as_ref().and_then(|server| server.as_ref().ok());
        let program = server.map_or_else(|| "redis-server".into(), |server| server.program.clone());
        let reads = Reads::on(server);
        let master = Cell::new(follows.is_none());
        let (console, home, process, paused, is_open, seen_until, last_seen) = Default::default();
        RealServer {
            written,
            follows,
            users,
            program,
            reads,
            console,
            home,
            process,
            paused,
            master,
            opening,
            is_open,
            seen_until,
            last_seen,
        }
    }

    /// Stops clients from waiting for this server: it accepts connections, or is gone before it
    /// did.
    fn is_opened(&self) {
        if !self.is_open.replace(true) {
            self.opening.one_is_ready();
        }
    }

    /// Starts the server if it is not running, in its previous home if it had one.
    fn start(&self, name: &str) -> io::Result<Rc<Home>> {
        if let (Some(home), Some(_)) = (&*self.home.borrow(), &*self.process.borrow()) {
            return Ok(home.clone());
        }
        let home = match self.home.borrow().clone() {
            Some(home) => home,
            None => Rc::new(Home::new(name)?),
        };
        self.process.replace(Some(Process::start(
            &self.program,
            &home,
            &operator::options(&self.written),
            &self.users,
        )?));
        self.home.replace(Some(home.clone()));
        Ok(home)
    }

    /// Returns true if the running server is the life that this cell belongs to.
    fn is_life_of(&self, seen_until: &Rc<Cell<Option<True>>>) -> bool {
        Rc::ptr_eq(&self.seen_until.borrow(), seen_until)
            && self.process.borrow_mut().as_mut().is_some_and(|process| !process.has_ended())
    }
}

impl Operated for RealServer {
    fn console(&self) -> &Console {
        &self.console
    }

    fn is_master(&self) -> bool {
        self.master.get()
    }

    fn seen_until(&self) -> Option<True> {
        // A stopped process does nothing that the watcher could miss.
        self.seen_until.borrow().get().filter(|_| !self.paused.get())
    }
}

impl Program for RealServer {
    fn is_now(&self, state: HostState) {
        let paused = matches!(state, HostState::Paused | HostState::Suspended);
        if self.paused.replace(paused) != paused
            && let Some(process) = &*self.process.borrow()
        {
            process.hold(paused);
        }
        if state == HostState::Down {
            self.seen_until.take();
            self.process.take();
            self.is_opened();
        }
    }

    fn comes_up(&self, name: &str) {
        // If the start fails here, the run tries it again at its beginning, and reports the reason.
        let Ok(home) = self.start(name) else { return };
        home.answers_within(START_MAX, || self.process.borrow_mut().as_mut().is_none_or(Process::has_ended));
    }

    fn end(&self) {
        self.process.take();
        self.home.take();
    }
}

/// A server process of this machine, for a node of a run in real time.
struct RealNode {
    stage: Rc<Stage>,
    server: Rc<RealServer>,
}

pub(super) fn process(planned: &Planned<'_>) -> Option<Box<dyn HostProcess>> {
    let node = planned.software::<PlannedNode>().filter(|_| planned.engine == Engine::Real)?;
    let server = Rc::new(RealServer::new(node, planned.stage.opening.clone()));
    Some(Box::new(RealNode { stage: planned.stage.clone(), server }))
}

impl HostProcess for RealNode {
    fn run(&self, ctx: HostCtx) -> Local<'static, ()> {
        Box::pin(play(ctx, self.stage.clone(), self.server.clone()))
    }

    fn node(&self) -> Option<Rc<dyn Operated>> {
        Some(self.server.clone())
    }

    fn program(&self) -> Option<Rc<dyn Program>> {
        Some(self.server.clone())
    }
}

/// Runs a node from one start to its crash.
async fn play(ctx: HostCtx, stage: Rc<Stage>, server: Rc<RealServer>) {
    let home = match server.start(ctx.name()) {
        Ok(home) => home,
        Err(error) => {
            return stage.fail(&ctx, format!("{} does not start: {error}", server.program.display()));
        }
    };
    ctx.stand_for(PORT, None);
    ctx.stand_for(BACK_DOOR, Some(home.address));
    let (deadline, mut up) = (ctx.monotonic() + START_MAX, false);
    while !up && ctx.monotonic() < deadline {
        let ended = server.process.borrow_mut().as_mut().is_none_or(Process::has_ended);
        if ended {
            break;
        }
        up = watch::answers(&ctx, server.reads).await;
        if !up {
            ctx.wire_delay(AGAIN).await;
        }
    }
    if !up {
        let words = home.last_words();
        return stage.fail(&ctx, format!("the server of {} did not start: {words}", ctx.name()));
    }
    let Some(watcher) =
        Watcher::begin(ctx.clone(), stage.clone(), server.reads, server.last_seen.take()).await
    else {
        return stage.fail(&ctx, format!("the server of {} does not let itself be watched", ctx.name()));
    };
    ctx.stand_for(PORT, Some(home.address));
    server.is_opened();
    if let Some(master) = &server.follows {
        watcher.follows();
        server.console.give(["REPLICAOF", master.as_str(), "6379"].map(str::to_owned).to_vec());
    }
    // The console of a real node needs no password, and neither does the watcher.
    tokio::task::spawn_local(operator::operate(ctx, PORT, server.console.clone(), String::new()));
    let seen_until = server.seen_until.borrow().clone();
    let (ended, end) = oneshot::channel();
    stage.outside.give(async move {
        watcher.watch(server, seen_until).await;
        // The receiver is dropped if the node has crashed.
        let _ = ended.send(());
    });
    let _ = end.await;
}

/// Counts the processes that must be ready before others begin: servers that do not accept clients
/// yet, and peers that have not connected. Without it, a client could ask a server too early. The
/// server would refuse, and the client would later ask for its lock without the connection that it
/// has in virtual time.
#[derive(Default)]
pub(super) struct Opening {
    closed: Cell<usize>,
    given_up: Cell<bool>,
    opened: Notify,
}

impl Opening {
    /// Adds a process that must be ready.
    pub(super) fn awaits_one_more(&self) {
        self.closed.set(self.closed.get() + 1);
    }

    /// Counts one process as ready, or as never getting ready.
    pub(super) fn one_is_ready(&self) {
        self.closed.set(self.closed.get().saturating_sub(1));
        self.opened.notify_waiters();
    }

    /// Counts one process that was killed before it was ready.
    pub(super) fn one_is_gone(&self) {
        self.given_up.set(true);
        self.one_is_ready();
    }

    /// Returns true if a process was killed before it was ready.
    pub(super) fn lacks_one(&self) -> bool {
        self.given_up.get()
    }

    /// Resolves when all are ready. In virtual time that is from the start.
    pub(super) async fn is_over(&self) {
        loop {
            let opened = self.opened.notified();
            if self.closed.get() == 0 {
                return;
            }
            opened.await;
        }
    }
}

/// The tasks that run outside of the nodes. A crash ends all tasks on its host, and must not end
/// the watching of the events that led to it.
#[derive(Default)]
pub(super) struct Outside {
    given: RefCell<Vec<Pin<Box<dyn Future<Output = ()>>>>>,
    more: Notify,
}

impl Outside {
    fn give(&self, task: impl Future<Output = ()> + 'static) {
        self.given.borrow_mut().push(Box::pin(task));
        self.more.notify_one();
    }

    /// Spawns every task that is given to it, and never returns.
    pub(super) async fn play(&self) {
        loop {
            for task in self.given.take() {
                tokio::task::spawn_local(task);
            }
            self.more.notified().await;
        }
    }
}

/// Returns the wall clock of this machine.
#[expect(clippy::disallowed_methods, reason = "real servers tell the time by the real clock")]
pub fn wall() -> Wall {
    Wall::ZERO + SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Ends the run when [`interrupt`] is called.
pub(super) async fn end_on_interrupt(ctx: HostCtx, stage: Rc<Stage>) {
    let mut ended = std::pin::pin!(ENDED.notified());
    // Register before the look, or an interrupt in between is lost.
    ended.as_mut().enable();
    if !interrupted() {
        ended.await;
    }
    stage.fail(&ctx, "interrupted".to_owned());
}

/// Ends all runs with real servers in this process, and those that start later. A program calls it
/// when a signal tells it to end, so that no server outlives it.
pub fn interrupt() {
    INTERRUPTED.store(true, Ordering::Relaxed);
    ENDED.notify_waiters();
}

/// Returns true once [`interrupt`] was called.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

static ENDED: Notify = Notify::const_new();

/// Returns the parts of a plan that are impossible with real servers in real time, one line each.
/// Empty if all are possible.
pub fn impossible(plan: &Plan) -> Vec<String> {
    let mut problems = Vec::new();
    let clients = plan.hosts.iter().find(|host| host.software.kind() == HostKind::Client);
    let client = clients.map_or_else(String::new, |host| host.name.clone());
    for occurrence in &plan.faults {
        let somebody = |targets: &Vec<Target>| {
            let name = |target: &Target| match target {
                Target::Host(name) => name.clone(),
                Target::Role(Selector::Holder(_) | Selector::Waiter(_)) => client.clone(),
                Target::Role(_) => "somebody".to_owned(),
            };
            targets.iter().map(name).collect::<Vec<_>>()
        };
        let targets: Vec<Vec<String>> = occurrence.targets.iter().map(somebody).collect();
        let is_process = |host: Option<&str>| host.is_some_and(|host| is_process(plan, host));
        let impossible = occurrence.fault.actions(&targets).into_iter().find_map(|action| match action {
            FaultAction::World(verb) if is_process(verb.bends_clock_of()) => Some(verb.to_string()),
            FaultAction::For(condition) if is_process(condition.bends_clock_of()) => {
                Some(condition.to_string())
            }
            FaultAction::Disk { node, .. } => Some(format!("a disk of {node} that takes nothing")),
            FaultAction::Console { node, command } => unknown_command(plan, &node, &command),
            FaultAction::LoseDisk { host } => Some(format!("lose the disk of {host}")),
            // The monotonic clock of a stopped process continues.
            FaultAction::For(Condition::Suspended { host }) if is_peer(plan, &host) => {
                Some(format!("suspension of {host}"))
            }
            _ => None,
        });
        if let Some(what) = impossible {
            let name = occurrence.of();
            problems.push(format!("fault {name:?} needs \"{what}\""));
        }
    }
    for host in &plan.hosts {
        let bends_clock = host.offset != Default::default() || host.rate != Default::default();
        if bends_clock && host.software.is_process() {
            problems.push(format!("{} has clocks of its own", host.name));
        }
        problems.extend(host.software.unreal().into_iter().map(|does| format!("{} {does}", host.name)));
    }
    problems.extend(plan.locks.iter().filter(|lock| lock.written.is_counted_apart()).map(|lock| {
        format!(
            "what lock {:?} grants to each client by itself is in keys named at run time, which are not followed",
            lock.name
        )
    }));
    problems.sort();
    problems.dedup();
    problems
}

/// Returns the reason why a node's server cannot execute a command, if it cannot.
fn unknown_command(plan: &Plan, node: &str, command: &[String]) -> Option<String> {
    let planned = plan.hosts.iter().find(|planned| planned.name == node)?;
    let software: &dyn std::any::Any = &*planned.software;
    let server = software.downcast_ref::<PlannedNode>()?.server.as_ref()?.as_ref().ok()?;
    let name = command.first()?;
    (!server.has_command(name)).then(|| format!("{name}, which {server} does not have"))
}

/// Returns true if a host runs a separate process, or may do so: a role that only nodes have.
fn is_process(plan: &Plan, host: &str) -> bool {
    let planned = plan.hosts.iter().find(|planned| planned.name == host);
    planned.is_none_or(|planned| planned.software.is_process())
}

/// Returns true if a host is a client that runs as a separate process.
fn is_peer(plan: &Plan, host: &str) -> bool {
    let planned = plan.hosts.iter().find(|planned| planned.name == host);
    planned.is_some_and(|host| host.software.kind() == HostKind::Client && host.software.is_process())
}
