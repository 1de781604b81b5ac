//! The loop of the world: polls every host that can run, moves its packets onto the links, and
//! jumps to the next event.
//!
//! True time is kept here, in nanoseconds. tokio's paused clock follows it in whole milliseconds,
//! which is the resolution of its timers. Code that sleeps by tokio instead of by its host's clock
//! wakes with that precision.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
    fmt,
    future::{Future, poll_fn},
    net::{IpAddr, Ipv4Addr},
    panic::resume_unwind,
    pin::pin,
    rc::Rc,
    sync::{Arc, atomic::Ordering},
    task::{Poll, Waker},
    time::Duration,
};

use tokio::{runtime::Runtime, time::Instant};

use crate::{
    clock::Clock,
    control::Control,
    fabric::Fabric,
    host::{Host, HostState},
    kernel::Kernel,
    link::Link,
    lock::lock,
    machine::Shared,
    packet::Packet,
    time::True,
    trace::{Activity, Fingerprint, Record},
};

/// The reason why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It has reached its time limit.
    TimeUp,
    /// [`crate::Verb::Finish`] was executed.
    Finished,
}

/// The reason why a run could not continue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorldError {
    /// Too much happened without time advancing: most likely some code wakes itself forever.
    #[error("{steps} polls and packets at the one instant {at}; the last host to run was {host}")]
    Livelock {
        /// The instant of true time at which the run is stuck.
        at: True,
        /// The host that ran last.
        host: String,
        /// The number of polls and packets.
        steps: u64,
    },
    /// The run was longer than its limit.
    #[error("the run reached its limit of {steps} polls and packets at {at}")]
    TooLong {
        /// The true time that the run had reached.
        at: True,
        /// The limit on polls and packets.
        steps: u64,
    },
    /// The verb changes the clock of a real server process.
    #[error("\"{verb}\" cannot be done to the clock of a real process")]
    Impossible {
        /// The verb, in the words of the trace.
        verb: String,
    },
    /// An order names a host that does not exist.
    #[error("no host is called {host}, as \"{verb}\" has it; there are {known}")]
    UnknownHost {
        /// The name that no host has.
        host: String,
        /// The verb that names it.
        verb: String,
        /// The names of the hosts, separated by commas.
        known: String,
    },
}

/// Called with every record except packets, soon after the event and before time advances.
pub type Hook = Box<dyn FnMut(&Record, &Control)>;

/// Called with true time, a host's name, and its old and new state whenever the state changes.
pub type StateHook = Box<dyn FnMut(True, &str, HostState, HostState)>;

/// Called with the instant of the next known event, when nothing more happens at the present one.
pub type LullHook = Box<dyn FnMut(True)>;

/// A simulated world. It lives on one thread.
pub struct World {
    pub(crate) runtime: Rc<Runtime>,
    /// tokio's clock at true zero.
    origin: Instant,
    pub(crate) shared: Arc<Shared>,
    pub(crate) hosts: Vec<Host>,
    pub(crate) by_address: BTreeMap<IpAddr, usize>,
    /// From host `a` to host `b` at `a * hosts + b`.
    pub(crate) links: Vec<Link>,
    /// The heads of the links: arrival, number of the packet, link. Entries may be out of date.
    pub(crate) due: BinaryHeap<Reverse<(True, u64, usize)>>,
    /// The next timer of each host that has one. An instant costs time in proportion to the hosts
    /// that it concerns, not to all.
    timers: BTreeSet<(True, usize)>,
    pub(crate) network: crate::Stream,
    pub(crate) packets: u64,
    pub(crate) outbox: Vec<Packet>,
    hooks: Vec<Hook>,
    state_hooks: Vec<StateHook>,
    lull_hooks: Vec<LullHook>,
    pub(crate) finished: bool,
    /// Set while the software of some host ends with the instant.
    pub(crate) stopping: bool,
    pub(crate) steps: u64,
    steps_before_now: u64,
    pub(crate) steps_per_instant: u64,
    steps_per_run: u64,
    last_polled: usize,
    pub(crate) fabric: Fabric,
}

impl World {
    pub(crate) fn new(
        shared: Arc<Shared>,
        fabric: Fabric,
        hosts: Vec<Host>,
        links: Vec<Link>,
        (hooks, state_hooks, lull_hooks): (Vec<Hook>, Vec<StateHook>, Vec<LullHook>),
        (steps_per_instant, steps_per_run): (u64, u64),
    ) -> Self {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        match fabric {
            Fabric::Real => runtime.enable_all(),
            _ => runtime.enable_time().start_paused(true),
        };
        let runtime = runtime.build().expect("the system has what a runtime needs");
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
            timers: BTreeSet::new(),
            packets: 0,
            outbox: vec![],
            hooks,
            state_hooks,
            lull_hooks,
            finished: false,
            stopping: false,
            steps: 0,
            steps_before_now: 0,
            steps_per_instant,
            steps_per_run,
            last_polled: 0,
            fabric,
        };
        world.start_all();
        world
    }

    /// Returns the present true time, which begins at zero.
    pub fn now(&self) -> True {
        self.shared.now()
    }

    /// Returns the handle to order verbs.
    pub fn control(&self) -> Control {
        self.shared.control.clone()
    }

    /// Returns the clocks of a host, with their whole past.
    pub fn clock(&self, host: &str) -> Option<Clock> {
        self.hosts.iter().find(|h| *h.machine.name == *host).map(|h| lock(&h.machine.clock).clone())
    }

    /// Returns the IP address of a host; `None` if no host has this name.
    pub fn address(&self, host: &str) -> Option<IpAddr> {
        self.hosts.iter().find(|h| *h.machine.name == *host).map(|h| h.address)
    }

    /// Returns the number of open sockets of a host in virtual time; `None` if no host has this
    /// name.
    pub fn sockets(&self, host: &str) -> Option<usize> {
        self.hosts.iter().find(|h| *h.machine.name == *host).map(|h| lock(&h.machine.kernel).sockets())
    }

    /// Returns the fingerprint of everything that has happened so far.
    pub fn fingerprint(&self) -> Fingerprint {
        lock(&self.shared.trace).fingerprint()
    }

    /// Returns the records kept, oldest first.
    pub fn records(&self) -> Vec<Record> {
        lock(&self.shared.trace).records().iter().cloned().collect()
    }

    /// Returns the activities of the hosts, in order. Empty unless all records are kept.
    pub fn activities(&self) -> Vec<Activity> {
        lock(&self.shared.trace).activities().to_vec()
    }

    /// Returns the numbers of records and of packets so far.
    pub fn counts(&self) -> (u64, u64) {
        (lock(&self.shared.trace).count(), self.packets)
    }

    /// Runs until `until` by true time, or until [`crate::Verb::Finish`] is executed. Another call
    /// continues the run.
    ///
    /// # Errors
    /// If the world cannot continue, see [`WorldError`].
    ///
    /// # Panics
    /// With the panic of any code that ran on a host.
    pub fn run(&mut self, until: True) -> Result<End, WorldError> {
        (0..self.hosts.len()).for_each(|host| self.note_state(host));
        self.advance(until)
    }

    pub(crate) async fn drive(&mut self, until: True) -> Result<End, WorldError> {
        // One timer of tokio serves the whole run; it is moved to each deadline in turn.
        #[expect(clippy::disallowed_methods, reason = "the timeline is where true time is made")]
        let mut alarm = pin!(tokio::time::sleep_until(self.origin));
        let real = matches!(self.fabric, Fabric::Real);
        loop {
            if real {
                self.follow_tokio();
            }
            self.apply_due_verbs()?;
            if self.finished {
                return Ok(End::Finished);
            }
            self.fire_timers();
            self.deliver();
            self.poll_hosts()?;
            self.end_stopping_hosts();
            self.collect();
            self.call_hooks();
            self.pass_panic_on();
            if !lock(&self.shared.ready).is_empty() || !self.shared.sent.is_empty() {
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
            let next = if self.lull_hooks.is_empty() {
                next.min(until)
            } else {
                self.lull_hooks.iter_mut().for_each(|hook| hook(next.min(until)));
                // A hook may have added a timer.
                self.next_event().min(until)
            };
            let deadline = if real {
                self.origin + next.since(True::ZERO)
            } else {
                self.origin + Duration::from_millis(u64::try_from(next.as_millis()).unwrap_or(0))
            };
            if alarm.deadline() != deadline {
                alarm.as_mut().reset(deadline);
            }
            poll_fn(|cx| {
                if !lock(&self.shared.ready).is_empty() || !self.shared.sent.is_empty() {
                    return Poll::Ready(());
                }
                let alarm = alarm.as_mut().poll(cx);
                if alarm.is_pending() {
                    self.shared.loop_waker.sleeps(cx);
                }
                alarm
            })
            .await;
            self.shared.loop_waker.is_awake();
            self.follow_tokio();
            if !real && lock(&self.shared.ready).is_empty() {
                self.set_now(next);
            }
        }
    }

    /// Advances true time to tokio's clock, unless it is later already.
    fn follow_tokio(&mut self) {
        #[expect(clippy::disallowed_methods, reason = "the timeline is where true time is made")]
        let passed = Instant::now() - self.origin;
        self.set_now(self.now().max(True::ZERO + passed));
    }

    /// Continues a panic of code on a host as a panic of the run.
    pub(crate) fn pass_panic_on(&self) {
        let panic = lock(&self.shared.panic).take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// Starts the software of a host.
    pub(crate) fn start(&mut self, host: usize) {
        self.start_software(host);
        self.note_state(host);
    }

    /// Drops the software of a host.
    pub(crate) fn end(&mut self, host: usize, how: &'static str) {
        self.end_software(host, how);
        self.note_state(host);
    }

    /// Calls the state hooks if the state of a host has changed.
    pub(crate) fn note_state(&mut self, host: usize) {
        let (now, state) = (self.now(), self.hosts[host].state());
        let before = std::mem::replace(&mut self.hosts[host].told, state);
        if before != state {
            let name = &*self.hosts[host].machine.name;
            self.state_hooks.iter_mut().for_each(|hook| hook(now, name, before, state));
        }
    }

    pub(crate) fn set_now(&mut self, now: True) {
        if now != self.now() {
            self.steps_before_now = self.steps;
            self.shared.now.store(now.as_nanos(), Ordering::Relaxed);
            self.shared.control.set_now(now);
        }
    }

    /// Computes the next timers of hosts whose timers or clocks have changed.
    fn note_timers(&mut self) {
        let mut retimed = std::mem::take(&mut *lock(&self.shared.retimed));
        for host in retimed.drain(..) {
            let (before, due) = self.hosts[host].machine.retime();
            if before != due {
                self.timers.remove(&(before, host));
                if due != True::MAX {
                    self.timers.insert((due, host));
                }
            }
        }
        *lock(&self.shared.retimed) = retimed; // its memory serves again
    }

    /// Wakes the tasks whose timers are due, in the order of their hosts.
    pub(crate) fn fire_timers(&mut self) {
        self.note_timers();
        let now = self.now();
        let due = self.timers.iter().take_while(|(due, _)| *due <= now);
        let mut hosts: Vec<usize> = due.map(|(_, host)| *host).collect();
        hosts.sort_unstable();
        hosts.into_iter().for_each(|host| self.hosts[host].machine.fire_timers());
    }

    /// Returns the time of the next known event.
    fn next_event(&mut self) -> True {
        self.note_timers();
        let timers = self.timers.first().map(|(due, _)| *due);
        let orders = self.shared.control.next_due();
        let packet = self.due.peek().map(|&Reverse((due, ..))| due);
        timers.into_iter().chain(orders).chain(packet).min().unwrap_or(True::MAX)
    }

    /// Counts a poll or a packet, and fails at the limits.
    pub(crate) fn step(&mut self) -> Result<(), WorldError> {
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
            if self.hosts[index].state() == HostState::Running {
                lock(&self.shared.trace).note(self.now(), &self.hosts[index].machine.name, None);
            }
            let waker = Waker::from(self.hosts[index].machine.clone());
            self.hosts[index].poll(&waker);
            self.call_hooks();
            if self.shared.control.next_due().is_some_and(|at| at <= self.now()) {
                return Ok(()); // an order given by a host takes effect now, before the other hosts are polled
            }
        }
    }

    pub(crate) fn end_stopping_hosts(&mut self) {
        if !self.stopping || !lock(&self.shared.ready).is_empty() {
            return;
        }
        for host in 0..self.hosts.len() {
            if self.hosts[host].stopping && self.hosts[host].runs() {
                self.end(host, "stop");
            }
        }
        self.stopping = self.hosts.iter().any(|host| host.stopping);
    }

    pub(crate) fn call_hooks(&mut self) {
        while let Some(record) = { lock(&self.shared.trace).take_unseen() } {
            self.hooks.iter_mut().for_each(|hook| hook(&record, &self.shared.control));
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.state_hooks.clear();
        // Sockets close themselves through the network, under their own host, so hosts are dropped
        // first.
        for host in 0..self.hosts.len() {
            if self.hosts[host].is_up() {
                self.end(host, "the end of the world");
            }
            // Connections that linger hold wakers, and these their host.
            let kernel = &self.hosts[host].machine.kernel;
            let sockets = std::mem::replace(&mut *lock(kernel), Kernel::new(Ipv4Addr::UNSPECIFIED));
            drop(sockets);
        }
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "World(seed {}, now {})", self.shared.entropy.seed(), self.now())
    }
}
