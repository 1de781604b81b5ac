//! One step: an event in, and everything that follows from it.

use std::time::Duration;

use crate::{
    config::Config,
    env::Env,
    event::{Action, Event},
    node::Node,
    time::Monotonic,
};

/// A Redis node without sockets, clocks or threads. Whoever drives it gives it events and carries out its actions.
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
    pub(super) node: Node,
    /// The alarm the driver was last asked for.
    alarm: Option<Monotonic>,
    /// When the periodic work is next due.
    cron_due: Monotonic,
}

impl Server {
    /// A node that has just started. It asks for its first alarm in the environment's outbox.
    pub fn new(config: Config, env: &mut Env) -> Server {
        let (run_id, replication_id) = (env.random_id(), env.random_id());
        let node = Node::new(config, run_id, replication_id, env.monotonic);
        let mut server = Server { node, alarm: None, cron_due: env.monotonic };
        server.set_alarm(env);
        server
    }

    /// The node's state, to look at from outside.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Takes in one event. Actions are left in `env.outbox`, in order; the replies of a step go out as one write per
    /// connection.
    pub fn step(&mut self, env: &mut Env, event: Event) {
        match event {
            Event::Connected { conn, peer, local } => self.connected(env, conn, peer, local),
            Event::Dialed { conn } => self.dialed(env, conn),
            Event::Bytes { conn, bytes } => self.received(env, conn, &bytes),
            Event::Closed { conn } => self.disconnected(env, conn),
            Event::Alarm => self.alarm = None,
        }
        self.run_due(env);
        self.settle_peers(env);
        self.flush(env);
        self.set_alarm(env);
    }

    /// Whatever the time has made due, on an alarm or on any other event that comes late enough.
    fn run_due(&mut self, env: &mut Env) {
        self.run_peers_due(env);
        if env.monotonic >= self.cron_due {
            self.cron_due =
                env.monotonic + Duration::from_millis(1000 / u64::from(self.node.config.hz.clamp(1, 500)));
        }
    }

    /// Asks for the alarm that is due first, if that is not the one already asked for.
    fn set_alarm(&mut self, env: &mut Env) {
        let at = self.peers_due().map_or(self.cron_due, |due| due.min(self.cron_due));
        if self.alarm != Some(at) {
            self.alarm = Some(at);
            env.outbox.push(Action::Alarm { at });
        }
    }
}
