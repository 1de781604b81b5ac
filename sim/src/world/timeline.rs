//! The loop of the world: let every host that can run run, give its packets to the links, jump to the next event.
//!
//! True time is kept here, in nanoseconds. tokio's paused clock follows it in whole milliseconds, which is as fine as its
//! timers are; code on a host that sleeps by tokio instead of by the host's clock is woken to the millisecond.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    fmt,
    future::{Future, poll_fn},
    net::{IpAddr, SocketAddr},
    panic::resume_unwind,
    pin::pin,
    rc::Rc,
    sync::{Arc, atomic::Ordering},
    task::Poll,
    time::Duration,
};

use tokio::{runtime::Runtime, time::Instant};
use turmoil_net::{EnterGuard, Net, Packet, TcpFlags, TcpSegment, Transport};

use super::{
    builder::Builder,
    clock::{Clock, Face},
    control::{Control, Verb},
    host::{Host, Shared, lock},
    link::Link,
    trace::{Event, Fingerprint, Hook, Record},
};
use crate::time::True;

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Its time is over.
    TimeUp,
    /// Somebody ordered [`Verb::Finish`].
    Finished,
}

/// Why a run could not go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorldError {
    /// Too much happened without time going on: most likely some code wakes itself for ever.
    #[error("{steps} polls and packets at the one instant {at}; the last host to run was {host}")]
    Livelock {
        /// When.
        at: True,
        /// Who ran last.
        host: String,
        /// How many polls and packets there were.
        steps: u64,
    },
    /// The run was longer than its limit.
    #[error("the run reached its limit of {steps} polls and packets at {at}")]
    TooLong {
        /// When.
        at: True,
        /// The limit.
        steps: u64,
    },
    /// An order names a host that does not exist.
    #[error("no host is called {host}, as \"{verb}\" has it; there are {known}")]
    UnknownHost {
        /// The name.
        host: String,
        /// The order.
        verb: String,
        /// The hosts there are.
        known: String,
    },
}

/// A simulated world. It lives on one thread, and a thread has one world at a time.
pub struct World {
    runtime: Rc<Runtime>,
    /// tokio's clock at true zero.
    origin: Instant,
    shared: Arc<Shared>,
    hosts: Vec<Host>,
    by_address: BTreeMap<IpAddr, usize>,
    /// From host `a` to host `b` at `a * hosts + b`.
    links: Vec<Link>,
    /// The heads of the links: when due, number of the packet, link. Entries may be out of date.
    due: BinaryHeap<Reverse<(True, u64, usize)>>,
    network: super::Stream,
    packets: u64,
    outbox: Vec<Packet>,
    hooks: Vec<Hook>,
    finished: bool,
    steps: u64,
    steps_before_now: u64,
    steps_per_instant: u64,
    steps_per_run: u64,
    last_polled: usize,
    net: EnterGuard,
}

impl World {
    /// Starts the description of a world that runs from this seed.
    pub fn builder(seed: u64) -> Builder {
        Builder::new(seed)
    }

    pub(super) fn new(
        shared: Arc<Shared>,
        net: Net,
        hosts: Vec<Host>,
        links: Vec<Link>,
        hooks: Vec<Hook>,
        steps_per_instant: u64,
        steps_per_run: u64,
    ) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without input and output needs nothing from the system");
        #[expect(clippy::disallowed_methods, reason = "the timeline is where true time is made")]
        let origin = runtime.block_on(async { Instant::now() });
        let by_address = hosts.iter().enumerate().map(|(index, host)| (host.address, index)).collect();
        let mut world = Self {
            runtime: Rc::new(runtime),
            origin,
            network: shared.entropy.stream("network"),
            shared,
            hosts,
            by_address,
            links,
            due: BinaryHeap::new(),
            packets: 0,
            outbox: vec![],
            hooks,
            finished: false,
            steps: 0,
            steps_before_now: 0,
            steps_per_instant,
            steps_per_run,
            last_polled: 0,
            net: net.enter(),
        };
        let runtime = world.runtime.clone();
        // Software may look for the runtime while it is made, so it is made inside.
        runtime.block_on(async { world.hosts.iter_mut().for_each(Host::start) });
        world
    }

    /// True time.
    pub fn now(&self) -> True {
        self.shared.now()
    }

    /// The handle that gives orders.
    pub fn control(&self) -> Control {
        self.shared.control.clone()
    }

    /// The clocks of a host, with their whole past.
    pub fn clock(&self, host: &str) -> Option<Clock> {
        self.hosts.iter().find(|h| *h.machine.name == *host).map(|h| lock(&h.machine.clock).clone())
    }

    /// The fingerprint of everything that happened so far.
    pub fn fingerprint(&self) -> Fingerprint {
        lock(&self.shared.trace).fingerprint()
    }

    /// The records that were kept, oldest first.
    pub fn records(&self) -> Vec<Record> {
        lock(&self.shared.trace).records().iter().cloned().collect()
    }

    /// How much has happened: records and packets.
    pub fn counts(&self) -> (u64, u64) {
        (lock(&self.shared.trace).count(), self.packets)
    }

    /// Runs until `until` by true time, or until somebody orders [`Verb::Finish`]. It can be called again to go on.
    ///
    /// # Errors
    /// If the world cannot go on, see [`WorldError`].
    ///
    /// # Panics
    /// With the panic of any code that ran on a host.
    pub fn run(&mut self, until: True) -> Result<End, WorldError> {
        let runtime = self.runtime.clone();
        runtime.block_on(self.drive(until))
    }

    async fn drive(&mut self, until: True) -> Result<End, WorldError> {
        // One timer of tokio's for the whole run; it is moved to each deadline in turn.
        #[expect(clippy::disallowed_methods, reason = "the timeline is where true time is made")]
        let mut alarm = pin!(tokio::time::sleep_until(self.origin));
        loop {
            self.carry_out_orders()?;
            if self.finished {
                return Ok(End::Finished);
            }
            self.hosts.iter().for_each(|host| host.machine.fire_timers());
            self.deliver();
            self.poll_hosts()?;
            self.end_stopping_hosts();
            self.collect();
            self.call_hooks();
            if let Some(panic) = lock(&self.shared.panic).take() {
                resume_unwind(panic);
            }
            if !lock(&self.shared.ready).is_empty() {
                continue;
            }
            let next = self.next_event();
            if next <= self.now() {
                self.step()?;
                continue;
            }
            if self.now() >= until {
                return Ok(End::TimeUp);
            }
            let next = next.min(until);
            let millis = Duration::from_millis(u64::try_from(next.as_millis()).unwrap_or(0));
            let deadline = self.origin + millis;
            if alarm.deadline() != deadline {
                alarm.as_mut().reset(deadline);
            }
            poll_fn(|cx| {
                if !lock(&self.shared.ready).is_empty() {
                    return Poll::Ready(());
                }
                let alarm = alarm.as_mut().poll(cx);
                if alarm.is_pending() {
                    *lock(&self.shared.sleeper) = Some(cx.waker().clone());
                }
                alarm
            })
            .await;
            *lock(&self.shared.sleeper) = None;
            #[expect(clippy::disallowed_methods, reason = "the timeline is where true time is made")]
            let passed = Instant::now() - self.origin;
            self.set_now(self.now().max(True::ZERO + passed));
            if lock(&self.shared.ready).is_empty() {
                self.set_now(next);
            }
        }
    }

    fn set_now(&mut self, now: True) {
        if now != self.now() {
            self.steps_before_now = self.steps;
            self.shared.now.store(now.as_nanos(), Ordering::Relaxed);
            self.shared.control.set_now(now);
        }
    }

    /// When something will happen that is already known.
    fn next_event(&self) -> True {
        let timers = self.hosts.iter().filter_map(|host| host.machine.next_timer());
        let orders = self.shared.control.next_due();
        let packet = self.due.peek().map(|&Reverse((due, ..))| due);
        timers.chain(orders).chain(packet).min().unwrap_or(True::MAX)
    }

    /// Counts a poll or a packet, and calls off a world that does nothing else.
    fn step(&mut self) -> Result<(), WorldError> {
        self.steps += 1;
        let at = self.now();
        if self.steps - self.steps_before_now > self.steps_per_instant {
            let host = self.hosts.get(self.last_polled).map_or("", |host| &host.machine.name).to_owned();
            return Err(WorldError::Livelock { at, host, steps: self.steps_per_instant });
        }
        if self.steps > self.steps_per_run {
            return Err(WorldError::TooLong { at, steps: self.steps_per_run });
        }
        Ok(())
    }

    fn poll_hosts(&mut self) -> Result<(), WorldError> {
        loop {
            let Some(index) = lock(&self.shared.ready).pop_front() else { return Ok(()) };
            self.step()?;
            self.last_polled = index;
            self.hosts[index].poll();
            self.call_hooks();
            if self.shared.control.next_due().is_some_and(|at| at <= self.now()) {
                return Ok(()); // an order given by a host is for now, not for when everybody has had a turn
            }
        }
    }

    fn end_stopping_hosts(&mut self) {
        if !lock(&self.shared.ready).is_empty() {
            return;
        }
        for host in self.hosts.iter_mut().filter(|host| host.stopping && host.runs()) {
            host.end("stop");
        }
    }

    fn call_hooks(&mut self) {
        while let Some(record) = { lock(&self.shared.trace).take_unseen() } {
            self.hooks.iter_mut().for_each(|hook| hook(&record, &self.shared.control));
        }
    }

    /// Gives what the hosts have sent to the links.
    fn collect(&mut self) {
        let mut outbox = std::mem::take(&mut self.outbox);
        self.net.egress_all(&mut outbox);
        let now = self.now();
        for packet in outbox.drain(..) {
            let (Some(&from), Some(&to)) =
                (self.by_address.get(&packet.src), self.by_address.get(&packet.dst))
            else {
                continue; // nobody has this address: as on a real network, nobody answers
            };
            if self.hosts[from].crashed {
                continue;
            }
            let index = from * self.hosts.len() + to;
            let number = self.packets;
            self.packets += 1;
            let empty = self.links[index].head().is_none();
            let event = |due| packet_event(&packet, self.hosts[to].machine.name.clone(), due);
            let due = self.links[index].send(now, number, packet.clone(), &mut self.network);
            self.hosts[from].machine.record(event(due));
            if empty {
                self.schedule(index);
            }
        }
        self.outbox = outbox;
    }

    fn is_open(&self, index: usize) -> bool {
        let link = &self.links[index];
        link.cuts == 0 && link.holds == 0 && self.hosts[index % self.hosts.len()].reachable()
    }

    fn schedule(&mut self, index: usize) {
        if let Some((due, number)) = self.links[index].head()
            && self.is_open(index)
        {
            self.due.push(Reverse((due, number, index)));
        }
    }

    /// Hands over what has arrived by now.
    fn deliver(&mut self) {
        let now = self.now();
        while let Some(&Reverse((due, number, index))) = self.due.peek() {
            if due > now {
                return;
            }
            self.due.pop();
            if self.links[index].head() != Some((due, number)) || !self.is_open(index) {
                continue; // out of date, or blocked: reopening schedules it anew
            }
            let packet = self.links[index].take().expect("it has a head");
            self.steps += 1;
            self.net.deliver(packet);
            self.schedule(index);
        }
    }

    /// Lets packets that waited go on, if nothing blocks the link any more.
    fn reopen(&mut self, index: usize) {
        if self.is_open(index) {
            let now = self.now();
            self.links[index].reopen(now, &mut self.network);
            self.schedule(index);
        }
    }

    fn reopen_all_to(&mut self, host: usize) {
        for from in 0..self.hosts.len() {
            self.reopen(from * self.hosts.len() + host);
        }
    }

    /// Aborts one end of every connection of `host` that `which` picks by its peer.
    fn abort_connections(&self, host: usize, which: impl Fn(IpAddr) -> bool) {
        let sockets = turmoil_net::netstat(self.hosts[host].address).entries;
        for (local, peer) in sockets.into_iter().filter_map(|socket| Some((socket.local, socket.peer?))) {
            if which(peer.ip()) {
                self.net.deliver(reset(peer, local));
            }
        }
    }

    fn carry_out_orders(&mut self) -> Result<(), WorldError> {
        while let Some(verb) = self.shared.control.take_due(self.now()) {
            self.step()?;
            let text = verb.to_string();
            lock(&self.shared.trace).push(self.now(), None, Event::Fault { verb: text });
            self.carry_out(verb)?;
            self.call_hooks();
        }
        Ok(())
    }

    fn host(&self, name: &str, verb: &Verb) -> Result<usize, WorldError> {
        self.hosts.iter().position(|host| *host.machine.name == *name).ok_or_else(|| {
            WorldError::UnknownHost {
                host: name.to_owned(),
                verb: verb.to_string(),
                known: self.hosts.iter().map(|host| &*host.machine.name).collect::<Vec<_>>().join(", "),
            }
        })
    }

    fn link(&self, from: &str, to: &str, verb: &Verb) -> Result<usize, WorldError> {
        Ok(self.host(from, verb)? * self.hosts.len() + self.host(to, verb)?)
    }

    fn carry_out(&mut self, verb: Verb) -> Result<(), WorldError> {
        let now = self.now();
        match &verb {
            Verb::Pause { host } => {
                let host = self.host(host, &verb)?;
                self.hosts[host].pauses += 1;
            }
            Verb::Resume { host } => {
                let host = self.host(host, &verb)?;
                self.hosts[host].pauses = self.hosts[host].pauses.saturating_sub(1);
                self.hosts[host].catch_up();
            }
            Verb::Suspend { host } => {
                let host = self.host(host, &verb)?;
                self.hosts[host].suspensions += 1;
                lock(&self.hosts[host].machine.clock).suspend(now, true);
            }
            Verb::Wake { host } => {
                let host = self.host(host, &verb)?;
                self.hosts[host].suspensions = self.hosts[host].suspensions.saturating_sub(1);
                self.awaken(host);
            }
            Verb::Crash { host } => {
                let host = self.host(host, &verb)?;
                self.crash(host);
            }
            Verb::Kill { host } => {
                let host = self.host(host, &verb)?;
                if self.hosts[host].is_up() {
                    self.hosts[host].pauses = 0;
                    self.hosts[host].end("kill");
                }
            }
            Verb::Stop { host } => {
                let host = self.host(host, &verb)?;
                if self.hosts[host].is_up() {
                    self.hosts[host].ask_to_stop();
                }
            }
            Verb::Restart { host } => {
                let host = self.host(host, &verb)?;
                if self.hosts[host].is_up() {
                    self.crash(host);
                }
                self.hosts[host].start();
                self.reopen_all_to(host);
            }
            Verb::Cut { from, to } => {
                let link = self.link(from, to, &verb)?;
                self.links[link].cuts += 1;
            }
            Verb::Heal { from, to } => {
                let link = self.link(from, to, &verb)?;
                self.links[link].cuts = self.links[link].cuts.saturating_sub(1);
                self.reopen(link);
            }
            Verb::Hold { from, to } => {
                let link = self.link(from, to, &verb)?;
                self.links[link].holds += 1;
            }
            Verb::Release { from, to } => {
                let link = self.link(from, to, &verb)?;
                self.links[link].holds = self.links[link].holds.saturating_sub(1);
                self.reopen(link);
            }
            Verb::Reset { one, other } => {
                let (there, back) = (self.link(one, other, &verb)?, self.link(other, one, &verb)?);
                let (one, other) = (self.host(one, &verb)?, self.host(other, &verb)?);
                self.collect();
                self.links[there].clear();
                self.links[back].clear();
                let (one_address, other_address) = (self.hosts[one].address, self.hosts[other].address);
                self.abort_connections(one, |peer| peer == other_address);
                self.abort_connections(other, |peer| peer == one_address);
            }
            Verb::Latency { from, to, latency } => {
                let link = self.link(from, to, &verb)?;
                self.links[link].latency = *latency;
            }
            Verb::Delay { from, to, by } => {
                let link = self.link(from, to, &verb)?;
                self.links[link].delay = *by;
            }
            Verb::Loss { from, to, per_million } => {
                let link = self.link(from, to, &verb)?;
                self.links[link].loss_per_million = *per_million;
            }
            Verb::ClockStep { host, by_nanos } => {
                let host = self.host(host, &verb)?;
                lock(&self.hosts[host].machine.clock).step(now, *by_nanos);
            }
            Verb::ClockSlew { host, by_nanos, over } => {
                let host = self.host(host, &verb)?;
                lock(&self.hosts[host].machine.clock).slew(now, *by_nanos, *over);
            }
            Verb::ClockRate { host, face, rate } => {
                let host = self.host(host, &verb)?;
                lock(&self.hosts[host].machine.clock).set_rate(now, faces(face), *rate);
            }
            Verb::ClockFreeze { host, face } | Verb::ClockUnfreeze { host, face } => {
                let host = self.host(host, &verb)?;
                let frozen = matches!(verb, Verb::ClockFreeze { .. });
                lock(&self.hosts[host].machine.clock).freeze(now, faces(face), frozen);
            }
            Verb::AddRule(rule) => lock(&self.shared.rules).add(rule.clone()),
            Verb::RemoveRule { name } => lock(&self.shared.rules).remove(name),
            Verb::Calm => self.calm(),
            Verb::Finish => self.finished = true,
        }
        Ok(())
    }

    fn calm(&mut self) {
        lock(&self.shared.rules).clear();
        for link in &mut self.links {
            (link.cuts, link.holds, link.loss_per_million, link.delay) = (0, 0, 0, Duration::ZERO);
        }
        for host in 0..self.hosts.len() {
            (self.hosts[host].pauses, self.hosts[host].suspensions) = (0, 0);
            self.awaken(host);
        }
        (0..self.links.len()).for_each(|link| self.reopen(link));
    }

    /// Ends what a suspension did, if no other suspends the host.
    fn awaken(&mut self, host: usize) {
        if self.hosts[host].suspensions == 0 {
            lock(&self.hosts[host].machine.clock).suspend(self.now(), false);
            self.hosts[host].catch_up();
            self.reopen_all_to(host);
        }
    }

    /// Turns the power of a host off. Its connections are aborted first and without a word to their peers, so that its
    /// kernel forgets them instead of closing them politely; what its destructors still send goes nowhere.
    fn crash(&mut self, host: usize) {
        self.collect();
        self.hosts[host].crashed = true;
        (self.hosts[host].pauses, self.hosts[host].suspensions) = (0, 0);
        lock(&self.hosts[host].machine.clock).suspend(self.now(), false);
        self.abort_connections(host, |_| true);
        if self.hosts[host].is_up() {
            self.hosts[host].end("crash");
        }
        self.collect();
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Sockets close themselves through the network, under their own host, so hosts go first.
        for host in &mut self.hosts {
            if host.is_up() {
                host.end("the end of the world");
            }
        }
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "World(seed {}, now {})", self.shared.entropy.seed(), self.now())
    }
}

fn faces(face: &Option<Face>) -> &[Face] {
    face.as_ref().map_or(&Face::ALL, std::slice::from_ref)
}

fn reset(from: SocketAddr, to: SocketAddr) -> Packet {
    let flags = TcpFlags { rst: true, ..TcpFlags::default() };
    let (src_port, dst_port) = (from.port(), to.port());
    let segment =
        TcpSegment { src_port, dst_port, seq: 0, ack: 0, flags, window: 0, payload: bytes::Bytes::new() };
    Packet { src: from.ip(), dst: to.ip(), ttl: 64, payload: Transport::Tcp(segment) }
}

fn packet_event(packet: &Packet, to: super::HostName, due: True) -> Event {
    let (source_port, destination_port, flags, payload) = match &packet.payload {
        Transport::Udp(datagram) => (datagram.src_port, datagram.dst_port, "UDP", &datagram.payload),
        Transport::Tcp(segment) => {
            let TcpFlags { syn, ack, fin, rst, .. } = segment.flags;
            let flags = match (syn, fin, rst, ack) {
                (_, _, true, _) => "RST",
                (true, _, _, true) => "SYN ACK",
                (true, ..) => "SYN",
                (_, true, ..) => "FIN",
                _ if segment.payload.is_empty() => "ACK",
                _ => "DATA",
            };
            (segment.src_port, segment.dst_port, flags, &segment.payload)
        }
    };
    Event::Packet { to, source_port, destination_port, flags, payload: payload.clone(), due }
}
