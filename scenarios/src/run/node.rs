//! A Redis node on its host: started from its disk, observed, and with a console.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    rc::Rc,
};

use lockstorm_sim::{
    cluster::key_slot,
    config::Config,
    drive::{DrivenNode, world},
    durability::Disk,
    env::Env,
    event::{DiskFault, Event},
    server::Server,
};
use lockstorm_world::HostCtx;

use super::{
    Engine, Stage,
    operator::{self, Console, Operated},
    process::{Planned, Process},
    witness::{self, Witness},
};
use crate::{
    file::{plan::PlannedNode, scenario::Node as Written},
    judge::{history::Serving, object::keyspace_of},
    run::subject::Local,
};

/// The server of one node over all its lives.
struct SimulatedServer {
    written: Written,
    master: Option<String>,
    users: Vec<Vec<String>>,
    nodes_conf: Option<String>,
    node: DrivenNode,
    console: Console,
    /// Set if the next start finds an empty disk.
    disk_lost: Cell<bool>,
    /// The reasons why writes to the disk fail, by the number of the fault.
    disk_faults: RefCell<BTreeMap<usize, DiskFault>>,
    witness: RefCell<Option<Rc<RefCell<Witness>>>>,
}

impl SimulatedServer {
    fn new(planned: &PlannedNode) -> SimulatedServer {
        SimulatedServer {
            written: planned.node.clone(),
            master: planned.master.clone(),
            users: planned.users.clone(),
            nodes_conf: planned.nodes_conf.clone(),
            node: DrivenNode::new(),
            console: Console::default(),
            disk_lost: Cell::default(),
            disk_faults: RefCell::default(),
            witness: RefCell::default(),
        }
    }

    /// Returns the reason why writes to the disk fail. Of several reasons, returns the one that is
    /// detected first.
    fn disk_fault(&self) -> Option<DiskFault> {
        self.disk_faults.borrow().values().max().copied()
    }

    fn config(&self) -> Config {
        let mut config = Config::of(self.written.generation());
        let options = operator::options(&self.written);
        operator::set(&mut config, options.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        config.security.users.clone_from(&self.users);
        config.cluster.enabled = self.nodes_conf.is_some();
        config.mutations.wall_from_monotonic = self.written.expire_by_monotonic;
        config.mutations.replicate_relative_ttl = self.written.replicate_relative_ttl;
        config.mutations.expire_at_the_millisecond = self.written.expire_at_the_millisecond;
        config.mutations.replicate_in_part = self.written.replicate_in_part;
        let edit = self.written.script_edit.clone();
        config.mutations.script_edit = edit.map(|edit| (edit.find, edit.replace));
        config
    }
}

impl Operated for SimulatedServer {
    fn console(&self) -> &Console {
        &self.console
    }

    fn lose_disk(&self) {
        self.disk_lost.set(true);
    }

    fn spoil_disk(&self, by: usize, fault: DiskFault) {
        self.disk_faults.borrow_mut().insert(by, fault);
        self.node.give(Event::Disk { fault: self.disk_fault() });
    }

    fn mend_disk(&self, by: usize) {
        self.disk_faults.borrow_mut().remove(&by);
        self.node.give(Event::Disk { fault: self.disk_fault() });
    }

    fn is_master(&self) -> bool {
        self.node.look(|server| !server.node().is_replica()).unwrap_or(false)
    }

    fn follows(&self) -> Option<String> {
        let master = |server: &Server| {
            server.node().config.replication.replicaof.as_ref().map(|(host, _)| host.clone())
        };
        self.node.look(master).flatten()
    }

    fn serving(&self, slot: u16) -> Option<Serving> {
        witness::serving(&self.node, slot)
    }

    fn cluster_id(&self) -> Option<String> {
        self.node.look(|server| Some(server.node().cluster.as_ref()?.my_id().to_string())).flatten()
    }

    fn keys_of(&self, slot: u16) -> Vec<String> {
        let keys = |server: &Server| {
            let entries = keyspace_of(server.node()).into_iter().flat_map(|db| db.entries().iter());
            let of_slot = entries.map(|(key, _)| key).filter(|key| key_slot(key) == slot);
            let mut keys: Vec<String> =
                of_slot.filter_map(|key| String::from_utf8(key.to_vec()).ok()).collect();
            keys.sort();
            keys
        };
        self.node.look(keys).unwrap_or_default()
    }

    /// Drops the server and its observer. The node and its witness refer to each other, and a
    /// reference cycle would never be freed.
    fn close(&self) {
        if let Some(witness) = self.witness.take() {
            witness.borrow().close();
        }
        self.node.watch(|_| {});
        self.node.take();
    }
}

struct SimulatedNode {
    stage: Rc<Stage>,
    server: Rc<SimulatedServer>,
}

pub(super) fn process(planned: &Planned<'_>) -> Option<Box<dyn Process>> {
    let node = planned.software::<PlannedNode>().filter(|_| planned.engine != Engine::Real)?;
    let server = Rc::new(SimulatedServer::new(node));
    Some(Box::new(SimulatedNode { stage: planned.stage.clone(), server }))
}

impl Process for SimulatedNode {
    fn run(&self, ctx: HostCtx) -> Local<'static, ()> {
        Box::pin(play(ctx, self.stage.clone(), self.server.clone()))
    }

    fn node(&self) -> Option<Rc<dyn Operated>> {
        Some(self.server.clone())
    }
}

/// Runs a node from one start to its crash or exit.
async fn play(ctx: HostCtx, stage: Rc<Stage>, server: Rc<SimulatedServer>) {
    let host = stage.host(ctx.name());
    let mut config = server.config();
    if !stage.plan.scenario.sentinel.is_empty() {
        // Sentinels identify nodes by their announced address. In the world, hosts have names.
        ctx.name().clone_into(&mut config.replication.announce.ip);
        // Sentinels make nodes write their configuration file (CONFIG REWRITE). A node that no
        // Sentinel watches has no file, as a real one here has none.
        "redis.conf".clone_into(&mut config.server.config_file);
    }
    if config.cluster.enabled {
        ctx.name().clone_into(&mut config.cluster.announce_ip);
    }
    let port = config.network.port;
    let witness = {
        let mut witness = server.witness.borrow_mut();
        let witness = witness.get_or_insert_with(|| {
            let (shared, node, locks) = (stage.shared.clone(), server.node.clone(), stage.locks());
            Rc::new(RefCell::new(Witness::new(ctx.clone(), shared, host, node, locks, stage.hosts.clone())))
        });
        witness.clone()
    };
    let watching = witness.clone();
    server.node.watch(move |observation| watching.borrow_mut().saw(observation));
    let (console, password) = (server.console.clone(), config.security.requirepass.clone());
    let operator = tokio::task::spawn_local(operator::operate(ctx.clone(), port, console, password));
    let now = ctx.clone();
    let monitor = stage.taps.started(ctx.name());
    let start = |env: &mut Env, before: Option<Server>| {
        let starts_again = before.is_some();
        let disk = match before {
            Some(before) => Some(before.crash()).filter(|_| !server.disk_lost.take()),
            None => server.nodes_conf.clone().map(|nodes| Disk { nodes: Some(nodes), ..Disk::default() }),
        };
        // A node of a cluster remembers its master, and so does one with a file from CONFIG
        // REWRITE.
        let remembers =
            server.nodes_conf.is_some() || disk.as_ref().is_some_and(|disk| disk.config.is_some());
        let master = server.master.as_ref().filter(|_| !remembers);
        if let Some(master) = master {
            server.console.give(["REPLICAOF", master.as_str(), "6379"].map(str::to_owned).to_vec());
        }
        let disk = disk.map(|disk| Disk { fault: server.disk_fault(), ..disk });
        let started = match disk {
            Some(disk) => Server::restart(config, disk, env),
            None => Server::new(config, env),
        };
        if starts_again {
            witness.borrow_mut().restarted(now, &started, master.is_some());
        }
        // No monitor sees the commands of an append-only file that a start executes.
        env.monitor = monitor;
        started
    };
    world::run_with(ctx, port, server.node.clone(), start).await;
    operator.abort();
}
