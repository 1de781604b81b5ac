//! Several servers in one process, connected by links whose delivery the test controls. Time is a
//! number, and only the test advances it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bytes::Bytes;
use lockstorm_sim::{
    config::Config,
    env::Env,
    event::{Action, ConnId, DiskFault, Event},
    server::Server,
};
use lockstorm_world::time::{Monotonic, Wall};

/// The delay of bytes and connections between nodes.
pub(crate) const LATENCY: Duration = Duration::from_millis(1);

/// The wall clock at the start of a test; not a whole second, like any real start.
pub(crate) const START: Wall = Wall::from_millis(1_700_000_000_250);

/// Node `n`, which the others reach as host `n<n>`.
struct Host {
    server: Option<Server>,
    env: Env,
    alarm: Option<Monotonic>,
    config: Config,
    accepted: u64,
}

/// The other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Node(usize, ConnId),
    Client,
}

#[derive(Debug)]
enum Delivery {
    Event(usize, Event),
    Dial { from: usize, conn: ConnId, to: usize },
}

/// The nodes, and the deliveries between them.
pub(crate) struct Switch {
    hosts: Vec<Host>,
    now: Monotonic,
    /// Deliveries by due time and order of sending.
    wire: BTreeMap<(Monotonic, u64), Delivery>,
    sent: u64,
    ends: BTreeMap<(usize, ConnId), End>,
    clients: BTreeMap<(usize, ConnId), Vec<u8>>,
    /// Pairs (from, to) whose deliveries are held, with these deliveries.
    held: BTreeMap<(usize, usize), Vec<Delivery>>,
    /// Pairs that cannot connect.
    severed: BTreeSet<(usize, usize)>,
}

impl Switch {
    /// One master without replicas for each configuration.
    pub(crate) fn new(configs: impl IntoIterator<Item = Config>) -> Switch {
        let mut switch = Switch {
            hosts: Vec::new(),
            now: Monotonic::from_secs(1000),
            wire: BTreeMap::new(),
            sent: 0,
            ends: BTreeMap::new(),
            clients: BTreeMap::new(),
            held: BTreeMap::new(),
            severed: BTreeSet::new(),
        };
        for (n, config) in configs.into_iter().enumerate() {
            let mut env = Env::new(n as u64);
            (env.wall, env.monotonic) = (START, switch.now);
            let server = Some(Server::new(config.clone(), &mut env));
            switch.hosts.push(Host { server, env, alarm: None, config, accepted: 0 });
            switch.carry_out(n);
        }
        switch
    }

    /// Node 0 and `replicas` synchronized replicas of it.
    pub(crate) fn following(replicas: usize, config: Config) -> Switch {
        let mut switch = Switch::new(vec![config; replicas + 1]);
        for n in 1..=replicas {
            switch.call(n, "REPLICAOF n0 6379");
        }
        switch.run_secs(2);
        for n in 1..=replicas {
            assert!(switch.call(n, "ROLE").contains("connected"), "node {n} follows node 0");
        }
        switch
    }

    /// The server of a running node.
    pub(crate) fn server(&self, node: usize) -> &Server {
        self.hosts[node].server.as_ref().expect("the node runs")
    }

    /// The replication offset of a node.
    pub(crate) fn offset(&self, node: usize) -> u64 {
        self.server(node).node().replication.history.offset
    }

    /// The number of pieces sent between nodes so far.
    pub(crate) fn deliveries(&self) -> u64 {
        self.sent
    }

    /// Returns true if a node has set an alarm.
    pub(crate) fn has_alarm(&self, node: usize) -> bool {
        self.hosts[node].alarm.is_some()
    }

    /// Moves only this node's wall clock forward.
    pub(crate) fn step_wall(&mut self, node: usize, by: Duration) {
        self.hosts[node].env.wall += by;
    }

    /// Sets a node's wall clock back.
    pub(crate) fn step_wall_back(&mut self, node: usize, by: Duration) {
        self.hosts[node].env.wall -= by;
    }

    /// Opens a client connection to a node.
    pub(crate) fn connect(&mut self, node: usize) -> ConnId {
        let conn = self.accept(node, End::Client, "client:1".into());
        self.clients.insert((node, conn), Vec::new());
        conn
    }

    /// Sends a command on a new connection and returns the immediate reply, with spaces for line
    /// breaks.
    pub(crate) fn call(&mut self, node: usize, line: &str) -> String {
        let conn = self.connect(node);
        self.send(node, conn, line);
        self.received(node, conn)
    }

    /// Sends a command line on a connection.
    pub(crate) fn send(&mut self, node: usize, conn: ConnId, line: &str) {
        self.step(node, Event::Bytes { conn, bytes: Bytes::from(format!("{line}\r\n")) });
    }

    /// The bytes received on a connection since the previous call.
    pub(crate) fn received(&mut self, node: usize, conn: ConnId) -> String {
        let bytes = std::mem::take(self.clients.get_mut(&(node, conn)).expect("a client's connection"));
        String::from_utf8_lossy(&bytes).trim_end().replace("\r\n", " ")
    }

    /// Holds everything that `from` sends to `to` until it is released.
    pub(crate) fn hold(&mut self, from: usize, to: usize) {
        self.held.entry((from, to)).or_default();
    }

    /// Delivers the held pieces, and ends the hold.
    pub(crate) fn release(&mut self, from: usize, to: usize) {
        for delivery in self.held.remove(&(from, to)).unwrap_or_default() {
            self.post(delivery);
        }
    }

    /// Closes every connection between two nodes, on both sides together; pieces on their way are
    /// lost.
    pub(crate) fn reset(&mut self, a: usize, b: usize) {
        let between = |node: usize, end: &End| match end {
            End::Node(other, _) => (node, *other) == (a, b) || (node, *other) == (b, a),
            End::Client => false,
        };
        let gone: Vec<_> =
            self.ends.iter().filter(|((node, _), end)| between(*node, end)).map(|(k, _)| *k).collect();
        self.held
            .iter_mut()
            .filter(|((from, to), _)| (*from, *to) == (a, b) || (*from, *to) == (b, a))
            .for_each(|(_, held)| held.clear());
        for (node, conn) in gone {
            self.ends.remove(&(node, conn));
            if self.hosts[node].server.is_some() {
                self.step(node, Event::Closed { conn });
            }
        }
    }

    /// Resets the connections between two nodes, and permits no new one until they are joined.
    pub(crate) fn sever(&mut self, a: usize, b: usize) {
        self.severed.extend([(a, b), (b, a)]);
        self.reset(a, b);
    }

    /// Lets two severed nodes connect again.
    pub(crate) fn join(&mut self, a: usize, b: usize) {
        self.severed.remove(&(a, b));
        self.severed.remove(&(b, a));
    }

    /// Fills the disk of a node: no further write succeeds.
    pub(crate) fn fill_disk(&mut self, node: usize) {
        self.step(node, Event::Disk { fault: Some(DiskFault::Full) });
    }

    /// Stops the server of a node with all its connections, and returns it.
    pub(crate) fn stop(&mut self, node: usize) -> Server {
        let server = self.hosts[node].server.take().expect("the node runs");
        self.hosts[node].alarm = None;
        for other in 0..self.hosts.len() {
            self.reset(node, other);
        }
        self.ends.retain(|(at, _), _| *at != node);
        self.clients.retain(|(at, _), _| *at != node);
        server
    }

    /// Starts a server on a node that was stopped.
    pub(crate) fn start(&mut self, node: usize, start: impl FnOnce(Config, &mut Env) -> Server) {
        let config = self.hosts[node].config.clone();
        let server = start(config, &mut self.hosts[node].env);
        self.hosts[node].server = Some(server);
        self.carry_out(node);
    }

    /// Advances time by whole seconds.
    pub(crate) fn run_secs(&mut self, seconds: u64) {
        self.run(Duration::from_secs(seconds));
    }

    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let alarm = self.hosts.iter().enumerate().filter_map(|(n, host)| Some((host.alarm?, n))).min();
            let packet = self.wire.keys().next().copied();
            match (packet, alarm) {
                (Some(key), alarm) if key.0 <= end && alarm.is_none_or(|(at, _)| key.0 <= at) => {
                    self.advance(key.0);
                    let delivery = self.wire.remove(&key).expect("it was just seen");
                    self.deliver(delivery);
                }
                (_, Some((at, n))) if at <= end => {
                    self.advance(at);
                    self.hosts[n].alarm = None;
                    self.step(n, Event::Alarm);
                }
                _ => break,
            }
        }
        self.advance(end);
    }

    fn advance(&mut self, to: Monotonic) {
        let by = to.since(self.now);
        self.now += by;
        for host in &mut self.hosts {
            host.env.wall += by;
            host.env.monotonic += by;
        }
    }

    fn step(&mut self, node: usize, event: Event) {
        let host = &mut self.hosts[node];
        let Some(server) = &mut host.server else { return };
        server.step(&mut host.env, event);
        self.carry_out(node);
    }

    fn carry_out(&mut self, node: usize) {
        for action in std::mem::take(&mut self.hosts[node].env.outbox) {
            match action {
                Action::Send { conn, bytes } => match self.ends.get(&(node, conn)) {
                    Some(&End::Node(to, conn)) => {
                        self.route(node, to, Delivery::Event(to, Event::Bytes { conn, bytes }))
                    }
                    Some(End::Client) => {
                        self.clients.entry((node, conn)).or_default().extend_from_slice(&bytes)
                    }
                    None => {}
                },
                Action::Close { conn } | Action::Drain { conn } | Action::Kill { conn, .. } => {
                    if let Some(End::Node(to, conn)) = self.ends.remove(&(node, conn)) {
                        self.route(node, to, Delivery::Event(to, Event::Closed { conn }));
                    }
                }
                Action::Dial { conn, host, .. } => {
                    let to =
                        host.strip_prefix('n').and_then(|n| n.parse().ok()).expect("hosts are n0, n1, ...");
                    self.route(node, to, Delivery::Dial { from: node, conn, to });
                }
                Action::Alarm { at } => self.hosts[node].alarm = Some(at.max(self.now)),
                // The server keeps deliveries that arrive during a stall.
                Action::Stall { .. } => {}
                Action::ResumeScript => panic!("scripts go by no clock here"),
                Action::Advance { .. } => panic!("the clock of the switch is moved by the test"),
                Action::Exit => panic!("no test here asks a node to exit"),
            }
        }
    }

    fn route(&mut self, from: usize, to: usize, delivery: Delivery) {
        match self.held.get_mut(&(from, to)) {
            Some(held) => held.push(delivery),
            None => self.post(delivery),
        }
    }

    fn post(&mut self, delivery: Delivery) {
        self.sent += 1;
        self.wire.insert((self.now + LATENCY, self.sent), delivery);
    }

    fn deliver(&mut self, delivery: Delivery) {
        match delivery {
            Delivery::Dial { from, conn, to } => {
                let refused = self.severed.contains(&(from, to)) || self.hosts[to].server.is_none();
                let answer = if refused {
                    Event::Closed { conn }
                } else {
                    let accepted = self.accept(to, End::Node(from, conn), format!("n{from}:50000"));
                    self.ends.insert((from, conn), End::Node(to, accepted));
                    Event::Dialed { conn, local: "n:50000".into() }
                };
                self.route(to, from, Delivery::Event(from, answer));
            }
            Delivery::Event(node, event) => {
                let known = match &event {
                    Event::Bytes { conn, .. } => self.ends.contains_key(&(node, *conn)),
                    Event::Closed { conn } => {
                        self.ends.remove(&(node, *conn));
                        true
                    }
                    _ => true,
                };
                if known {
                    self.step(node, event);
                }
            }
        }
    }

    fn accept(&mut self, node: usize, end: End, peer: String) -> ConnId {
        self.hosts[node].accepted += 1;
        let conn = ConnId(self.hosts[node].accepted);
        self.ends.insert((node, conn), end);
        self.step(node, Event::Connected { conn, peer, local: format!("n{node}:6379") });
        conn
    }
}
