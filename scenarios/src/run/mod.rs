//! Runs a plan: builds the world, runs it, and returns the history and its fingerprint.

pub(crate) mod bridge;
mod client;
pub mod code;
mod director;
pub mod experiment;
mod held;
pub mod hunt;
mod late;
mod node;
mod operator;
mod peer;
mod probe;
mod process;
pub mod real;
pub(crate) mod recorder;
mod reshard;
mod resource;
pub mod runner;
mod script;
mod sentinel;
pub(crate) mod subject;
pub mod tally;
mod tap;
mod witness;
mod workload;
pub mod worklist;

use std::{cell::RefCell, collections::BTreeMap, rc::Rc, time::Duration};

use lockstorm_client::wire;
use lockstorm_sim::drive::world::Resp;
use lockstorm_world::{
    Activity, HostCtx, HostState, Latency, Rate, Record, TraceRetention, Verb, World,
    time::{Boottime, Monotonic, True, Wall},
};

use crate::{
    file::plan::{Plan, PlannedLock},
    judge::{
        history::{
            Clock, Ended, Header, History, Host, HostInfo, HostKind, Life, LockInfo,
            Resource as HistoryResource, Segment,
        },
        object::Role,
    },
    run::recorder::Shared,
    units::{Draw, Span},
};

use late::Late;
pub use lockstorm_world::Engine;
use operator::Operated;
use process::{Planned, Program};
pub use tap::Captures;
use tap::Taps;

/// The constructors of the processes. A host runs the process of the first constructor that accepts
/// its plan.
const PROCESSES: &[process::Make] = &[
    node::process,
    real::process,
    real::sentinel,
    client::process,
    peer::process,
    resource::process,
    sentinel::process,
    probe::process,
];

/// The true start time on correct wall clocks: 2024-01-01 in milliseconds. Any value works; a round
/// one reads well.
const EPOCH_MS: i64 = 1_704_067_200_000;

/// A run counts as broken off if the nodes were not observed for more than this at its end.
const UNSEEN_MAX: Duration = Duration::from_secs(1);

/// The director's host. It is not part of the experiment.
const DIRECTOR: &str = "(director)";

/// The result of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The events, for the checkers.
    pub history: History,
    /// SHA-256 of every event, for comparing runs.
    pub fingerprint: String,
    /// The events of the trace that were kept, for diagnosis.
    pub records: Vec<Record>,
    /// The instants at which hosts ran and packets arrived. Empty unless all records were kept.
    pub activities: Vec<Activity>,
}

/// Runs a plan.
///
/// # Panics
/// Propagates a panic of any code that ran on a host.
pub fn run(plan: &Plan, title: &str, engine: Engine, keep: TraceRetention) -> Outcome {
    play(plan, title, (engine, keep), Taps::default(), None).0
}

/// Runs a plan like [`run`], and returns what MONITOR shows on its simulated nodes besides. The
/// lines come from the nodes themselves, over no connection, so the fingerprint is the same.
///
/// # Panics
/// Propagates a panic of any code that ran on a host.
pub fn monitored(plan: &Plan, title: &str, engine: Engine, keep: TraceRetention) -> (Outcome, Captures) {
    play(plan, title, (engine, keep), Taps::open(), None)
}

/// Runs a plan in virtual time like [`run`]. Calls `lull` before time advances, with the instant of
/// the next known event. It may add faults that begin then or later. The process has to end soon
/// after the run, because the run leaves its memory behind.
fn run_with_late_faults(
    plan: &Plan,
    title: &str,
    keep: TraceRetention,
    lull: impl FnMut(True, &Late) + 'static,
) -> Outcome {
    play(plan, title, (Engine::Event, keep), Taps::default(), Some(Box::new(lull))).0
}

/// Called before time advances, see [`run_with_late_faults`].
type Lull = Box<dyn FnMut(True, &Late)>;

fn play(
    plan: &Plan,
    title: &str,
    (engine, keep): (Engine, TraceRetention),
    taps: Taps,
    lull: Option<Lull>,
) -> (Outcome, Captures) {
    let plan = Rc::new(plan.clone());
    let mut header = header(&plan, title);
    header.engine = engine.name().into();
    let shared = Shared::new(History::new(header));
    let hosts: BTreeMap<String, Host> =
        plan.hosts.iter().enumerate().map(|(at, host)| (host.name.clone(), Host(at as u16))).collect();
    let stage = Rc::new(Stage {
        plan: plan.clone(),
        shared: shared.clone(),
        hosts,
        nodes: RefCell::default(),
        programs: RefCell::default(),
        failed: RefCell::default(),
        outside: real::Outside::default(),
        places: Rc::new(if engine == Engine::Real { real::Places::of(&plan) } else { Default::default() }),
        opening: Rc::default(),
        connecting: Rc::default(),
        taps,
        late: Late::default(),
    });
    let mut processes = Vec::new();
    for host in &plan.hosts {
        let planned = Planned { host, engine, stage: &stage };
        let process = PROCESSES.iter().find_map(|make| make(&planned));
        let process = process.expect("there is a process for all software");
        if let Some(node) = process.node() {
            stage.nodes.borrow_mut().insert(host.name.clone(), node);
        }
        if let Some(program) = process.program() {
            program.comes_up(&host.name);
            stage.programs.borrow_mut().insert(host.name.clone(), program);
        }
        processes.push(process);
    }
    let epoch = if engine == Engine::Real { real::wall() } else { Wall::from_millis(EPOCH_MS) };
    let mut builder = World::builder(plan.seed)
        .engine(engine)
        .epoch(epoch)
        .latency(latency(plan.scenario.network.latency))
        .protocol(Resp::default)
        .keep(keep);
    let lives = stage.clone();
    builder = builder.state_hook(move |at, host, before, now| lives.host_changed(at, host, before, now));
    let ends_soon = lull.is_some();
    if let Some(mut lull) = lull {
        let lulls = stage.clone();
        builder = builder.lull_hook(move |next| lull(next, &lulls.late));
    }
    for (host, process) in plan.hosts.iter().zip(processes) {
        builder = builder.host(host.name.clone(), move |ctx| process.run(ctx));
        let wall = Wall::from_nanos(epoch.as_nanos().saturating_add(host.offset.0));
        builder = builder.clocks(&host.name, wall, Monotonic::ZERO, Boottime::ZERO);
    }
    for (name, address) in &plan.scenario.address {
        if let Some(to) = &address.points_to {
            builder = builder.address(name, to.as_str());
        }
    }
    for link in &plan.links {
        builder = builder.link(&link.from, &link.to, latency(link.latency));
    }
    let direct = stage.clone();
    let play = move |ctx: HostCtx| {
        let stage = direct.clone();
        async move {
            if engine == Engine::Real {
                tokio::task::spawn_local(real::end_on_interrupt(ctx.clone(), stage.clone()));
                let outside = stage.clone();
                tokio::task::spawn_local(async move { outside.outside.play().await });
            }
            director::play(ctx, stage).await;
        }
    };
    let mut world = builder.host(DIRECTOR, play).build();
    for host in plan.hosts.iter().filter(|host| host.rate != Default::default()) {
        let rate = Rate::factor(1.0 + host.rate.0);
        world.control().at(True::ZERO, Verb::ClockRate { host: host.name.clone(), clock_id: None, rate });
    }
    let ended = world.run(plan.phases.ends);
    let fingerprint = world.fingerprint().to_string();
    let records = world.records();
    let activities = world.activities();
    let seen_until = stage.nodes.borrow().values().filter_map(|actor| actor.seen_until()).min();
    for actor in stage.nodes.borrow().values() {
        actor.close();
    }
    for program in stage.programs.borrow().values() {
        program.end();
    }
    let mut recorder = shared.get();
    let history = &mut recorder.history;
    for (at, host) in plan.hosts.iter().enumerate() {
        if let Some(clock) = world.clock(&host.name) {
            history.clocks[at] = segments(&clock);
        }
    }
    if engine == Engine::Real {
        real::put_in_order(&mut history.events);
    }
    // Drop the events after the last moment at which every node was observed. A client's later
    // event may be the result of an unobserved event of a node.
    let end = seen_until.map_or(world.now(), |seen| seen.min(world.now()));
    history.events.retain(|event| event.at <= end);
    if world.now() - UNSEEN_MAX > end {
        history.header.ended = Ended::Early("for too long it could not be seen what a node did".into());
    }
    history.header.fingerprint = fingerprint.as_str().into();
    let failed = stage.failed.take();
    if let Some(why) = ended.err().map(|error| error.to_string()).or(failed) {
        history.header.ended = Ended::Early(why.into());
    }
    history.header.end = end;
    history.header.calm = history.header.calm.map(|calm| calm.min(end));
    history.leave_out_idle_probe();
    let history = history.clone();
    let outcome = Outcome { history, fingerprint, records, activities };
    if ends_soon {
        // The memory goes with the process. To free it would write to pages that are shared.
        std::mem::forget(world);
    }
    (outcome, stage.taps.captures())
}

/// The state that all hosts of a run share.
struct Stage {
    plan: Rc<Plan>,
    shared: Shared,
    hosts: BTreeMap<String, Host>,
    nodes: RefCell<BTreeMap<String, Rc<dyn Operated>>>,
    programs: RefCell<BTreeMap<String, Rc<dyn Program>>>,
    /// The reason why the run was broken off.
    failed: RefCell<Option<String>>,
    /// The addresses of the real processes of a group.
    places: Rc<real::Places>,
    /// The tasks that must outlive a host.
    outside: real::Outside,
    /// Clients wait for this before they begin.
    opening: Rc<real::Opening>,
    /// Opens when all peers have connected. No peer gets a request before.
    connecting: Rc<real::Opening>,
    /// The commands of the nodes, if they are monitored.
    taps: Taps,
    /// Faults that are added during the run.
    late: Late,
}

impl Stage {
    /// Returns the number of a host in the history.
    fn host(&self, name: &str) -> Host {
        self.hosts[name]
    }

    /// Ends the run early. Keeps the first reason.
    fn fail(&self, ctx: &HostCtx, why: String) {
        self.failed.borrow_mut().get_or_insert(why);
        ctx.control().now(Verb::Finish);
    }

    /// Records a host's change of state, and reports the new state to its program.
    fn host_changed(&self, at: True, name: &str, before: HostState, now: HostState) {
        let Some(host) = self.hosts.get(name) else { return };
        let (started, becomes) = match (before, now) {
            (_, HostState::Down) => (None, Some(Life::Crashed)),
            (HostState::Down, HostState::Running) => (Some(Life::Started), None),
            (_, HostState::Running) => (None, Some(Life::Resumed)),
            (before, HostState::Paused) => {
                ((before == HostState::Down).then_some(Life::Started), Some(Life::Paused))
            }
            (before, HostState::Suspended) => {
                ((before == HostState::Down).then_some(Life::Started), Some(Life::Suspended))
            }
        };
        for life in started.into_iter().chain(becomes) {
            self.shared.life(at, *host, life);
        }
        let program = self.programs.borrow().get(name).cloned();
        if let Some(program) = program {
            program.is_now(now);
        }
    }

    /// Returns the locks on trial, as yet without state.
    fn locks(&self) -> Vec<held::Watched> {
        let watched =
            |lock: &PlannedLock| held::Watched::new(lock.number, self.plan.object(lock.number), &lock.key);
        self.plan.judged().map(watched).collect()
    }
}

fn latency(drawn: Draw<Span>) -> Latency {
    match drawn {
        Draw::Fixed(Span(fixed)) => Latency::Fixed(fixed),
        Draw::Range(Span(min), Span(max)) => Latency::Uniform { min, max },
    }
}

fn header(plan: &Plan, title: &str) -> Header {
    let hosts = plan
        .hosts
        .iter()
        .map(|host| HostInfo { server: host.server(), ..HostInfo::new(&*host.name, host.software.kind()) });
    let hosts: Vec<HostInfo> = hosts.collect();
    let number = |name: &String| Host(hosts.iter().position(|host| *host.name == **name).unwrap_or(0) as u16);
    let infos = plan.judged().map(|PlannedLock { number: lock, key, written, nodes, .. }| {
        let mut groups: Vec<Vec<Host>> =
            nodes.iter().map(|node| plan.group_of(node).iter().map(number).collect()).collect();
        if plan.scenario.is_cluster() {
            // In a cluster the lock's slot, and its key with it, may move to any group.
            groups = vec![groups.concat()];
        }
        let object = plan.object(*lock);
        let (kind, authority) = (object.promises(), object.authority(groups));
        let keys = object.keys(key).list;
        // The key that counts permits does not say who holds them, and it stays when all are given
        // back.
        let lasts = |role: Role| role == Role::Token || (role == Role::Holders && written.kind.has_permits());
        let lasting = keys.iter().filter(|key| lasts(key.role));
        let lasting_keys = lasting.map(|key| String::from_utf8_lossy(&key.name).into()).collect();
        let passing_keys = vec![wire::unlock_latches(key).into()];
        let name: Box<str> = key.as_str().into();
        LockInfo { keys: vec![name.clone()], lasting_keys, passing_keys, name, kind, authority }
    });
    let infos: Vec<LockInfo> = infos.collect();
    let resource = plan.hosts.iter().position(|host| host.software.kind() == HostKind::Resource);
    let fence = plan.scenario.resource.as_ref().map(|resource| resource.fence).unwrap_or_default();
    let mut header = Header::new(title, hosts, infos, plan.phases.ends);
    header.about = plan.scenario.about.as_str().into();
    header.claim = plan.scenario.claim.clone();
    header.seed = plan.seed;
    header.resource = resource.map(|at| HistoryResource { host: Host(at as u16), fence });
    header.calm = Some(plan.phases.storm_ends);
    header.probe = plan.phases.probe;
    if let Some(Span(progress)) = plan.scenario.run.progress {
        header.bounds.progress = progress;
    }
    let expect = plan.scenario.expect.iter();
    let expect = expect.filter_map(|(checker, one)| Some((checker.clone(), serde_json::to_value(one).ok()?)));
    header.expect = expect.collect();
    header
}

/// Converts the clock of a host to the form of the history.
fn segments(clock: &lockstorm_world::Clock) -> Clock {
    let segments = clock.segments().map(|segment| {
        let lockstorm_world::Segment { from, readings, rates } = segment;
        Segment { from, readings, rates }
    });
    Clock::try_from(segments.collect::<Vec<_>>()).expect("a clock has pieces, in the order of time")
}
