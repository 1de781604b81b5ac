//! One step of a node: processes an event and everything that follows from it.

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;

use super::{cron::Cron, evict::Evictor};
use crate::{
    commands::access::load_configured,
    config::Config,
    env::Env,
    event::{Action, Event},
    generation::Feature,
    node::Node,
    time::{Monotonic, Wall},
};

/// A Redis node without sockets, clocks or threads. Its driver passes events to it and carries out
/// its actions.
///
/// Keys expire by the wall clock, alarms ring by the monotonic one. After setting the wall clock a
/// driver should send [`Event::Alarm`] once, which is allowed at any time. The node then notices
/// work that has become due, as a real server does with its next periodic work.
///
/// ```
/// use lockstorm_sim::{config::Config, env::Env, event::{Action, ConnId, Event}, server::Server};
/// let mut env = Env::new(1);
/// let mut server = Server::new(Config::default(), &mut env);
/// let conn = ConnId(1);
/// server.step(&mut env, Event::Connected { conn, peer: "c1:1".into(), local: "n1:6379".into() });
/// server.step(&mut env, Event::Bytes { conn, bytes: "PING\r\n".into() });
/// let sent = env.outbox.iter().find_map(|action| match action {
///     Action::Send { bytes, .. } => Some(&bytes[..]),
///     _ => None,
/// });
/// assert_eq!(sent, Some(&b"+PONG\r\n"[..]));
/// ```
#[derive(Debug)]
pub struct Server {
    /// Boxed, because scripts borrow it by swapping (`commands/scripting/borrowed_node.rs`).
    pub(super) node: Box<Node>,
    /// The periodic work.
    pub(super) cron: Cron,
    /// The number of connections held by CLIENT PAUSE, including those that are gone by now.
    pub(super) held: usize,
    /// Changed keys on which clients are blocked, by database; served after the batch that changed
    /// them.
    pub(super) ready: VecDeque<(usize, Bytes)>,
    pub(super) evictor: Evictor,
    /// The alarm last requested from the driver.
    alarm: Option<Monotonic>,
    /// The end of the stall last reported to the driver.
    stall_told: Option<Monotonic>,
    /// Events that arrived while the node was stalled, in order.
    queued: VecDeque<Event>,
    /// Set while a request for the script's next turn is pending at the driver.
    pub(super) turn_asked: bool,
    /// The number of observations at the beginning of the step.
    observed: usize,
    /// The two clocks at the start, for
    /// [`Mutations::wall_from_monotonic`](crate::config::Mutations).
    started: (Wall, Monotonic),
}

/// An alarm may ring this much too early.
const ALARM_EARLY_MAX: Duration = Duration::from_millis(1);

impl Server {
    /// Returns a node that has just started.
    pub fn new(config: Config, env: &mut Env) -> Server {
        let (run_id, replication_id) = (env.random_id(), env.random_id());
        let node = Box::new(Node::new(config, run_id, replication_id, env.monotonic));
        let mut server = Server {
            node,
            cron: Cron::new(env.monotonic),
            held: 0,
            ready: VecDeque::new(),
            evictor: Evictor::default(),
            alarm: None,
            stall_told: None,
            queued: VecDeque::new(),
            turn_asked: false,
            observed: 0,
            started: (env.wall, env.monotonic),
        };
        server.node.persistence.saved_at = env.wall.as_secs();
        server.node.scripts.set_clock(env.script_clock);
        load_configured(&mut server.node, env);
        // A node without files has no cluster file that could be wrong.
        let _ = server.start_cluster(env);
        server.follow_configured(env);
        server.run_disk(env);
        server.settle_peers(env);
        server.carry_out_for_cluster(env);
        server.set_alarm(env);
        server
    }

    /// Returns the node's state, read-only.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Returns the port for the connections of other cluster nodes, if it is in a cluster.
    pub fn listens_for_cluster(&self) -> Option<u16> {
        self.node.cluster.as_ref()?;
        self.node.config.bus_port()
    }

    /// Processes one event. The actions are appended to `env.outbox`, in order; the replies of a
    /// step are sent as one write per connection.
    pub fn step(&mut self, env: &mut Env, event: Event) {
        if self.node.config.mutations.wall_from_monotonic {
            let (wall, monotonic) = self.started;
            env.wall = wall + env.monotonic.since(monotonic);
        }
        env.logging = env.logging.map(|_| self.node.config.server.loglevel);
        self.observed = env.observations.len();
        self.begin_turn(env);
        match event {
            Event::Alarm => self.alarm = None,
            Event::Unsent { conn, bytes } if !conn.is_bus() => {
                self.node.note_unsent(conn, bytes, env.monotonic);
                if self.node.clients.pending.is_empty() {
                    return self.set_alarm(env);
                }
            }
            event => {
                let event = self.take_for_sentinel(env, event);
                let event = event.and_then(|event| self.take_for_migration(env, event));
                self.queued.extend(event);
            }
        }
        self.end_late_migration(env);
        if self.node.stalled_until.is_some_and(|until| env.monotonic >= until) {
            self.node.stalled_until = None;
            if self.node.busy.is_none() {
                self.serve_ready(env);
            }
        }
        self.end_loading(env);
        // A stalled node neither reads nor answers: its input waits, as it would in the kernel's
        // buffers.
        while !self.must_end(env) {
            self.read_on(env);
            if self.must_end(env) {
                break;
            }
            match self.queued.pop_front() {
                Some(event) => self.take(env, event),
                None => {
                    self.run_due(env);
                    if self.node.clients.woken.is_empty() {
                        break;
                    }
                }
            }
        }
        self.carry_out_for_sentinel(env);
        if !self.is_stalled() {
            self.carry_out_for_cluster(env);
            self.evict_clients(env);
            self.node.send_broadcasts();
            self.flush(env);
            self.node.stats.note_rates(env.monotonic);
        }
        if self.node.exiting {
            // An orderly exit syncs everything.
            self.close_disk(env);
            env.outbox.push(Action::Exit);
            return;
        }
        self.ask_for_turn(env);
        self.set_alarm(env);
        self.tell_stall(env);
    }

    fn take(&mut self, env: &mut Env, event: Event) {
        let Some(event) = self.take_for_cluster(env, event) else { return };
        match event {
            Event::Connected { conn, peer, local } => self.connected(env, conn, peer, local),
            Event::Dialed { conn, .. } => self.dialed(env, conn),
            Event::Bytes { conn, bytes } => self.received(env, conn, &bytes),
            Event::Closed { conn } => self.disconnected(env, conn),
            Event::ResumeScript => self.resume_script(env),
            Event::Signal(signal) => self.signalled(env, signal),
            Event::Disk { fault } => self.node.persistence.disk.fault = fault,
            // Both were processed on arrival.
            Event::Alarm | Event::Unsent { .. } => {}
        }
    }

    /// Returns true if the node neither reads nor answers now.
    pub(super) fn is_stalled(&self) -> bool {
        self.node.stalled_until.is_some() || self.node.migration.is_some()
    }

    /// Returns true if the remaining work waits for another step: until a stall ends, or until an
    /// observer has seen the node after a command.
    fn must_end(&self, env: &Env) -> bool {
        self.is_stalled() || self.is_to_be_seen(env) && self.has_more()
    }

    /// Returns true if an observer has not yet seen the result of a command. It looks at the end of
    /// a step, so that it sees one command at a time.
    pub(super) fn is_to_be_seen(&self, env: &Env) -> bool {
        env.observing && env.observations.len() > self.observed
    }

    fn has_more(&self) -> bool {
        !self.node.clients.woken.is_empty() || !self.queued.is_empty()
    }

    /// Continues the connections that are no longer blocked, until one of them stalls the node.
    fn read_on(&mut self, env: &mut Env) {
        while !self.must_end(env)
            && let Some(conn) = self.node.clients.woken.pop_front()
        {
            self.process(env, conn);
        }
    }

    /// Does all work that has become due, on an alarm or on a later event.
    fn run_due(&mut self, env: &mut Env) {
        self.run_sentinel(env);
        self.run_cluster(env);
        self.reload_log(env);
        self.run_failover(env);
        self.run_shutdown(env);
        self.end_pause(env);
        self.node.limit_slow_readers(env.monotonic);
        // Nothing else runs while a script does.
        if self.node.busy.is_none() {
            self.apply_new_limit(env);
            self.node.limit_tracking(env);
            self.run_cron(env);
            self.close_idle_targets(env);
            self.serve_ready(env);
            self.end_waits(env);
            self.run_peers_due(env);
        }
        self.settle_peers(env);
        self.run_disk(env);
        // A sync may end a WAITAOF.
        if !self.node.replication.waiting.is_empty()
            && self.node.config.generation.has(Feature::SyncedOffsets)
        {
            self.wake_waiting_for_replicas(env);
        }
    }

    /// Returns the next time at which the node has work that no event triggers; `None` for an idle
    /// node, which needs no alarm.
    fn due(&self, env: &Env) -> Option<Monotonic> {
        if let Some(until) = self.node.stalled_until {
            return Some(until);
        }
        if let Some(migration) = &self.node.migration {
            return Some(migration.deadline);
        }
        if self.has_more() {
            return Some(env.monotonic);
        }
        if self.node.busy.is_some() {
            return [self.pause_due(), self.shutdown_due(env), self.failover_due()]
                .into_iter()
                .flatten()
                .min();
        }
        [
            self.node.loading.as_ref().map(|loading| loading.until),
            self.cron_due(env),
            self.targets_due(env),
            self.node.clients.waiting.first_deadline(),
            self.node.slow_readers_due(),
            self.pause_due(),
            self.shutdown_due(env),
            self.failover_due(),
            self.peers_due(env),
            self.disk_due(env),
            self.node.sentinel.as_ref().map(|sentinel| sentinel.due()),
            self.cluster_due(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Requests an alarm for the earliest due work, unless it is already requested. An alarm that
    /// is no longer needed still rings, and finds no work.
    pub(super) fn set_alarm(&mut self, env: &mut Env) {
        // No alarm can ring at the end of time.
        let Some(at) = self.due(env).filter(|at| *at < Monotonic::MAX) else { return };
        // Converting a wall-clock deadline to the monotonic clock jitters, because the two are
        // never read at the same instant. An alarm that rings slightly early finds no work and is
        // set again.
        if self.alarm.is_none_or(|alarm| alarm > at || at.since(alarm) > ALARM_EARLY_MAX) {
            self.alarm = Some(at);
            env.outbox.push(Action::Alarm { at });
        }
    }

    /// Tells the driver to stop or to resume reading, if that has changed.
    pub(super) fn tell_stall(&mut self, env: &mut Env) {
        let until = self.node.stalled_until;
        if std::mem::replace(&mut self.stall_told, until) != until {
            env.outbox.push(Action::Stall { until });
        }
    }
}
