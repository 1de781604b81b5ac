//! Nodes that are processes of a real server, for `lockstorm run --real`: the same clients,
//! scripts, workloads, faults and checkers, in real time.
//!
//! A crash is SIGKILL. The node loses the data that it had not yet passed to the operating system,
//! but not the data that the system had not yet written to disk. So only the durability kinds
//! `none` and `rdb` lose as much as in a power failure.

mod files;
mod lives;
mod mirror;
mod order;
mod places;
mod possible;
mod process;
mod reader;
mod reads;
mod sentinel;
mod server;
mod view;
mod watch;

use std::{
    cell::{Cell, RefCell},
    io,
    net::SocketAddr,
    pin::Pin,
    rc::Rc,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use lockstorm_world::{
    HostCtx, HostState,
    time::{True, Wall},
};

use tokio::sync::{Notify, oneshot};

use lives::Lives;
pub(super) use order::put_in_order;
use places::BUS;
pub(super) use places::Places;
pub use possible::impossible;
use process::{BUS_APART, Home};
use reads::Reads;
pub(super) use sentinel::process as sentinel;
use view::View;
use watch::Watcher;

use super::{
    Engine, Stage,
    held::Watched,
    operator::{self, BACK_DOOR, Console, Operated},
    process::{Planned, Process as HostProcess, Program},
};
use crate::{
    file::{plan::PlannedNode, scenario::Node as Written, server::Server},
    judge::history::Serving,
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
    /// The `nodes.conf` of a node of a cluster, which names hosts.
    nodes_conf: Option<String>,
    /// The server that the program was asked to be, and the command by which the watcher reads the
    /// keys.
    server: Option<Server>,
    reads: Reads,
    console: Console,
    places: Rc<Places>,
    lives: Lives,
    master: Cell<bool>,
    /// The node's last view of its cluster.
    view: RefCell<View>,
    /// The time until which the server's actions are known. Each life of the server has its own
    /// cell, because its last actions are found out after its end.
    seen_until: RefCell<Rc<Cell<Option<True>>>>,
    /// The state of the locks at the last crash.
    last_seen: RefCell<Option<Vec<Watched>>>,
}

impl RealServer {
    /// Creates a node that is not started yet, and makes clients wait for it.
    fn new(planned: &PlannedNode, stage: &Stage) -> RealServer {
        let PlannedNode { node, master: follows, users, nodes_conf, .. } = planned.clone();
        // If no caller has looked for a server program, the program is the `redis-server` on the
        // PATH.
        let server = planned.server.clone().and_then(Result::ok);
        let program = server.as_ref().map_or_else(|| "redis-server".into(), |server| server.program.clone());
        let reads = Reads::on(server.as_ref());
        let (places, lives) = (stage.places.clone(), Lives::new(program, stage.opening.clone()));
        let master = Cell::new(follows.is_none() && nodes_conf.is_none());
        let (console, view, seen_until, last_seen) = Default::default();
        RealServer {
            written: node,
            follows,
            users,
            nodes_conf,
            server,
            reads,
            console,
            places,
            lives,
            master,
            view,
            seen_until,
            last_seen,
        }
    }

    /// Starts the server if it is not running, in its previous home if it had one.
    fn start(&self, name: &str) -> io::Result<Rc<Home>> {
        let home = || match self.places.ip(name) {
            Some(ip) => Home::at(name, ip, self.nodes_conf.is_some()),
            None => Home::new(name),
        };
        self.lives.start(home, |home| {
            let mut options = operator::options(&self.written);
            options.extend(files::announcements(&self.places, name, self.server.as_ref()));
            if let Some(written) = &self.nodes_conf {
                let file = files::cluster_file(written, &self.places, self.server.as_ref());
                home.begin_file(files::CLUSTER_FILE, &file)?;
            } else if self.places.ip(name).is_some() {
                home.begin_file(files::NODE_FILE, &files::node_file(home.address, &options, &self.users))?;
                return Ok(vec![files::NODE_FILE.to_owned()]);
            }
            Ok(process::arguments(home.address, &options, &self.users))
        })
    }

    /// Returns true if the node has its master from its files: a node of a cluster, or one that
    /// Sentinels have made write its file again.
    fn remembers(&self, home: &Home) -> bool {
        // The comment heads what CONFIG REWRITE adds.
        let is_rewritten = |text: String| text.contains("# Generated by CONFIG REWRITE");
        self.nodes_conf.is_some() || home.text(files::NODE_FILE).is_some_and(is_rewritten)
    }

    /// Returns true if the running server is the life that this cell belongs to.
    fn is_life_of(&self, seen_until: &Rc<Cell<Option<True>>>) -> bool {
        Rc::ptr_eq(&self.seen_until.borrow(), seen_until) && !self.lives.has_ended()
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
        self.seen_until.borrow().get().filter(|_| !self.lives.is_paused())
    }

    fn follows(&self) -> Option<String> {
        let view = self.view.borrow();
        let line = self.nodes_conf.as_ref()?.lines().find(|line| line.split(' ').next() == view.master())?;
        line.split(' ').nth(1)?.split_once(':').map(|(host, _)| host.to_owned())
    }

    fn serving(&self, slot: u16) -> Option<Serving> {
        (self.nodes_conf.is_some() && !self.lives.has_ended()).then(|| self.view.borrow().serving(slot))
    }

    fn cluster_id(&self) -> Option<String> {
        let line = self.nodes_conf.as_ref()?.lines().find(|line| line.contains(" myself,"))?;
        line.split(' ').next().map(str::to_owned)
    }

    fn is_process(&self) -> bool {
        true
    }
}

impl Program for RealServer {
    fn is_now(&self, state: HostState) {
        if state == HostState::Down {
            self.seen_until.take();
            self.view.take();
        }
        self.lives.is_now(state);
    }

    fn comes_up(&self, name: &str) {
        // The nodes of a cluster count the time without word from the others, so they start with
        // the run.
        if self.nodes_conf.is_some() {
            return;
        }
        // If the start fails here, the run tries it again at its beginning, and reports the reason.
        let Ok(home) = self.start(name) else { return };
        self.lives.comes_up(&home);
    }

    fn end(&self) {
        self.lives.end();
    }
}

/// A server process of this machine, for a node of a run in real time.
struct RealNode {
    stage: Rc<Stage>,
    server: Rc<RealServer>,
}

pub(super) fn process(planned: &Planned<'_>) -> Option<Box<dyn HostProcess>> {
    let node = planned.software::<PlannedNode>().filter(|_| planned.engine == Engine::Real)?;
    let server = Rc::new(RealServer::new(node, planned.stage));
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

/// Announces that a process will listen at a port of the host, gives the operator a way to it, and
/// opens the doors of the host.
fn announce(ctx: &HostCtx, places: &Places, home: &Home, port: u16) -> Result<(), String> {
    if let Some(why) = places.lack() {
        return Err(why);
    }
    ctx.stand_for(port, None);
    ctx.stand_for(BACK_DOOR, Some(home.address));
    places.open(ctx).map_err(|error| format!("the door of {} does not open: {error}", ctx.name()))
}

/// Runs a node from one start to its crash.
async fn play(ctx: HostCtx, stage: Rc<Stage>, server: Rc<RealServer>) {
    let home = match server.start(ctx.name()) {
        Ok(home) => home,
        Err(error) => {
            return stage.fail(&ctx, format!("{} does not start: {error}", server.lives.program.display()));
        }
    };
    if let Err(why) = announce(&ctx, &server.places, &home, PORT) {
        return stage.fail(&ctx, why);
    }
    if let (Some(_), Some(bus)) = (&server.nodes_conf, home.address.port().checked_add(BUS_APART)) {
        ctx.stand_for_others(BUS, Some(SocketAddr::new(home.address.ip(), bus)));
    }
    let (deadline, mut up) = (ctx.monotonic() + START_MAX, false);
    while !up && ctx.monotonic() < deadline && !server.lives.has_ended() {
        up = reader::answers(&ctx, server.reads).await;
        if !up {
            ctx.wire_delay(AGAIN).await;
        }
    }
    if !up {
        let words = home.last_words();
        return stage.fail(&ctx, format!("the server of {} did not start: {words}", ctx.name()));
    }
    let Some(watcher) = Watcher::begin(ctx.clone(), stage.clone(), &server).await else {
        return stage.fail(&ctx, format!("the server of {} does not let itself be watched", ctx.name()));
    };
    ctx.stand_for(PORT, Some(home.address));
    server.lives.is_opened();
    if let Some(master) = server.follows.as_ref().filter(|_| !server.remembers(&home)) {
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
