//! A host: from inside ([`HostCtx`], the interface for code on it), and from outside (its tasks,
//! and its state).

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::task::LocalSet;

use crate::{
    cause::Cause,
    clock::{ClockId, Rate, Reading},
    control::Control,
    entropy::Stream,
    fate::Fate,
    lock::lock,
    machine::{Alarm, Machine, RealListener},
    proxy,
    socket::{TcpListener, TcpStream},
    time::{Boottime, Monotonic, True, Wall},
    trace::{Event, HostName},
};

/// A task for a host to run.
type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One life of a host's software, from a start to a crash or an end.
#[derive(Default)]
struct Life {
    incarnation: u64,
    over: AtomicBool,
    stopping: AtomicBool,
    waiting_for_stop: Mutex<Vec<Waker>>,
    spawned: Mutex<VecDeque<Task>>,
}

/// The access of code on a host: its clocks, its PRNG, its sockets, its tasks. None of these tasks
/// and sockets survives a crash.
#[derive(Clone)]
pub struct HostCtx {
    machine: Arc<Machine>,
    life: Arc<Life>,
}

impl HostCtx {
    /// Returns the host's name, which is unique in its world.
    pub fn name(&self) -> &str {
        &self.machine.name
    }

    /// Returns the number of earlier starts of the host's software.
    pub fn incarnation(&self) -> u64 {
        self.life.incarnation
    }

    /// Returns the reading of the wall clock.
    pub fn wall(&self) -> Wall {
        lock(&self.machine.clock).wall(self.machine.shared.now())
    }

    /// Returns the reading of the monotonic clock.
    pub fn monotonic(&self) -> Monotonic {
        self.machine.monotonic()
    }

    /// Returns the reading of the boottime clock.
    pub fn boottime(&self) -> Boottime {
        lock(&self.machine.clock).boottime(self.machine.shared.now())
    }

    /// Returns true time, and the readings of the host's clocks. For recorders only: no real
    /// program can know true time, so code under test must not use it.
    pub fn moment(&self) -> (True, Reading) {
        let now = self.machine.shared.now();
        (now, lock(&self.machine.clock).read(now))
    }

    /// Resolves when the host's monotonic clock shows `at`, at exactly that true instant if the
    /// host runs then.
    pub fn sleep_until(&self, at: Monotonic) -> Sleep {
        Sleep { machine: self.machine.clone(), alarm: Alarm::Clock(at), timer: None }
    }

    /// Resolves after a length of true time, which the host's clocks do not affect: for delays of
    /// messages on the wire.
    pub fn wire_delay(&self, delay: Duration) -> Sleep {
        let at = self.machine.shared.now() + delay;
        Sleep { machine: self.machine.clone(), alarm: Alarm::Wire(at), timer: None }
    }

    /// Wakes `waker` at an instant of true time, as a [`HostCtx::wire_delay`] until then would.
    pub fn wake_at(&self, at: True, waker: Waker) {
        let number = self.machine.next_number.fetch_add(1, Ordering::Relaxed);
        self.machine.timers_changed();
        let before = lock(&self.machine.timers).insert((Alarm::Wire(at), number), waker);
        drop(before);
    }

    /// Returns 64 random bits of the host's own stream, which continues over restarts.
    pub fn random(&self) -> u64 {
        lock(&self.machine.random).next_u64()
    }

    /// Returns a named stream of random numbers, for this host and incarnation.
    pub fn stream(&self, name: &str) -> Stream {
        let (host, life) = (&self.machine.name, self.life.incarnation);
        self.machine.shared.entropy.stream(&format!("hosts/{host}/{life}/{name}"))
    }

    /// Connects to a port of a host. Over a cut link it waits until the cut heals.
    ///
    /// # Errors
    /// `NotFound` for an unknown host, `ConnectionRefused` if no process listens there, otherwise
    /// those of a real `connect`.
    pub async fn dial(&self, host: &str, port: u16) -> io::Result<TcpStream> {
        TcpStream::connect(&self.machine, host, port).await
    }

    /// Listens on a port of this host.
    ///
    /// # Errors
    /// `AddrInUse` if the port already has a listener.
    pub async fn listen(&self, port: u16) -> io::Result<TcpListener> {
        TcpListener::bind(&self.machine, port).await
    }

    /// With real sockets: maps this port of this host to the real address of a server process.
    /// `None` announces that a server will listen soon: connection attempts wait for it.
    pub fn stand_for(&self, port: u16, address: Option<SocketAddr>) {
        self.stand(port, RealListener { address, is_server: true });
    }

    /// Like [`HostCtx::stand_for`], for a port at which the process does not speak the world's
    /// protocol. No message rule applies to it.
    pub fn stand_for_others(&self, port: u16, address: Option<SocketAddr>) {
        self.stand(port, RealListener { address, is_server: false });
    }

    fn stand(&self, port: u16, listener: RealListener) {
        let real = &mut lock(&self.machine.shared.real);
        real.listeners.insert((self.name().to_owned(), port), listener);
        real.listening.notify_waiters();
    }

    /// With real sockets: returns the real address of a port of a host.
    pub fn stands_at(&self, host: &str, port: u16) -> Option<SocketAddr> {
        lock(&self.machine.shared.real).listeners.get(&(host.to_owned(), port))?.address
    }

    /// With real sockets: returns a real address at which a server process on this host reaches a
    /// port of another host, over the links between the two.
    ///
    /// # Errors
    /// If no more sockets can be opened.
    pub async fn gate(&self, host: &str, port: u16) -> io::Result<SocketAddr> {
        let key = (self.machine.name.clone(), host.to_owned(), port);
        let known = lock(&self.machine.shared.real).gates.get(&key).copied();
        if let Some(address) = known {
            return Ok(address);
        }
        let address = proxy::gate(self.machine.clone(), host.to_owned(), port).await?;
        lock(&self.machine.shared.real).gates.insert(key, address);
        Ok(address)
    }

    /// With real sockets: makes the address of this listener one at which the server processes of
    /// all hosts, and the code on them, reach this port of this host, over the links from their
    /// hosts. A process must bind its connections to the [address](crate::real_address) of its
    /// host. The door outlives the host's software.
    ///
    /// # Errors
    /// Those of the listener.
    pub fn open_door(&self, port: u16, listener: std::net::TcpListener) -> io::Result<()> {
        let (shared, name) = (&self.machine.shared, &self.machine.name);
        let address = listener.local_addr()?;
        proxy::door(shared.clone(), listener, (name.clone(), port))?;
        lock(&shared.real).doors.insert(address, (name.clone(), port));
        Ok(())
    }

    /// With real sockets: returns the address of the door of a host's port.
    pub fn door(&self, host: &str, port: u16) -> Option<SocketAddr> {
        let real = lock(&self.machine.shared.real);
        let mut doors = real.doors.iter();
        doors.find(|(_, (of, at))| **of == *host && *at == port).map(|(address, _)| *address)
    }

    /// With real sockets: returns the host that opened the connection with this local port.
    pub fn dialed_from(&self, port: u16) -> Option<HostName> {
        lock(&self.machine.shared.real).dialed.get(&port).cloned()
    }

    /// Returns the name of the host with this address.
    pub fn host_at(&self, address: IpAddr) -> Option<HostName> {
        lock(&self.machine.shared.names).get(&address).cloned()
    }

    /// Runs a task on this host until the task or the host's software ends.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if self.life.over.load(Ordering::Relaxed) {
            return;
        }
        lock(&self.life.spawned).push_back(Box::pin(task));
        self.machine.queue();
    }

    /// Resolves when the host is asked to stop. Code that becomes runnable within the same instant
    /// still runs.
    pub fn stopping(&self) -> Stopping {
        Stopping(self.life.clone())
    }

    /// Emits an event to the recorder and the runner's hooks.
    pub fn observe(&self, kind: &'static str, detail: impl Into<String>) {
        self.record(Event::Observed { kind, detail: detail.into() });
    }

    /// Adds an event of this host to the trace, with its clocks' readings.
    pub fn record(&self, event: Event) {
        self.machine.record(event);
    }

    /// Returns the effect of the message rules on a command that this host, a node, has read.
    pub fn judge(&self, client: &str, arguments: &[impl AsRef<[u8]>]) -> Fate {
        let mut rules = lock(&self.machine.shared.rules);
        if rules.is_empty() { Fate::default() } else { rules.judge(&self.machine.name, client, arguments) }
    }

    /// Returns the world's control, for tests in which code on a host orders faults.
    pub fn control(&self) -> &Control {
        &self.machine.shared.control
    }
}

impl std::fmt::Debug for HostCtx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HostCtx({}, incarnation {})", self.machine.name, self.life.incarnation)
    }
}

/// See [`HostCtx::sleep_until`].
pub struct Sleep {
    machine: Arc<Machine>,
    alarm: Alarm,
    timer: Option<u64>,
}

impl Sleep {
    fn forget(&mut self) {
        if let Some(timer) = self.timer.take() {
            self.machine.timers_changed();
            let waker = lock(&self.machine.timers).remove(&(self.alarm, timer));
            drop(waker); // not under the lock: it may be the last hold on a task with timers of its own
        }
    }
}

impl Future for Sleep {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.machine.shows(self.alarm) {
            self.forget();
            return Poll::Ready(());
        }
        let machine = self.machine.clone();
        let timer = *self.timer.get_or_insert_with(|| machine.next_number.fetch_add(1, Ordering::Relaxed));
        machine.timers_changed();
        let before = lock(&machine.timers).insert((self.alarm, timer), cx.waker().clone());
        drop(before);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.forget();
    }
}

/// See [`HostCtx::stopping`].
pub struct Stopping(Arc<Life>);

impl Future for Stopping {
    type Output = ();
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.0.stopping.load(Ordering::Relaxed) {
            return Poll::Ready(());
        }
        let mut waiting = lock(&self.0.waiting_for_stop);
        if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

/// A task whose panic ends the run instead of being swallowed by the executor.
struct Loud<F> {
    task: F,
    machine: Arc<Machine>,
}

impl<F: Future<Output = ()> + Unpin> Future for Loud<F> {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        catch_unwind(AssertUnwindSafe(|| Pin::new(&mut this.task).poll(cx))).unwrap_or_else(|panic| {
            lock(&this.machine.shared.panic).get_or_insert(panic);
            Poll::Ready(())
        })
    }
}

/// Makes a host's software; called at every start.
pub(crate) type Software = Box<dyn FnMut(HostCtx) -> Pin<Box<dyn Future<Output = ()>>>>;

/// The state of a host's software and kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostState {
    /// Its software runs, or has ended by itself.
    Running,
    /// Its software does not run; its kernel and its clocks do.
    Paused,
    /// Neither its software nor its kernel runs.
    Suspended,
    /// It has no software: it has crashed, or was killed or stopped.
    Down,
}

/// The conditions on the clocks of a host, by cause, and the own rate of each clock.
pub(crate) struct ClockFaults {
    pub(crate) own: [Rate; 3],
    pub(crate) rates: BTreeMap<(Cause, Option<ClockId>), Rate>,
    pub(crate) freezes: BTreeSet<(Cause, Option<ClockId>)>,
}

impl Default for ClockFaults {
    fn default() -> ClockFaults {
        ClockFaults { own: [Rate::NOMINAL; 3], rates: BTreeMap::new(), freezes: BTreeSet::new() }
    }
}

impl ClockFaults {
    /// Returns the rate of a clock with all conditions applied, and true if it is frozen.
    pub(crate) fn of(&self, clock_id: ClockId) -> (Rate, bool) {
        let concerns = |of: &Option<ClockId>| of.is_none_or(|of| of == clock_id);
        let rates = self.rates.iter().filter(|((_, of), _)| concerns(of)).map(|(_, rate)| *rate);
        let rate = rates.fold(self.own[clock_id as usize], Rate::and);
        (rate, self.freezes.iter().any(|(_, of)| concerns(of)))
    }
}

/// A host as the world sees it.
pub(crate) struct Host {
    pub(crate) machine: Arc<Machine>,
    pub(crate) address: IpAddr,
    software: Software,
    tasks: Option<LocalSet>,
    life: Arc<Life>,
    started: u64,
    /// The causes that keep it down, paused, blocked and suspended.
    pub(crate) crashes: BTreeSet<Cause>,
    pub(crate) pauses: BTreeSet<Cause>,
    pub(crate) blocks: BTreeSet<Cause>,
    pub(crate) suspensions: BTreeSet<Cause>,
    /// The conditions on its clocks.
    pub(crate) clocks: ClockFaults,
    /// The state last reported to the hooks.
    pub(crate) told: HostState,
    /// Set while its power is off.
    pub(crate) crashed: bool,
    /// Set when its software ends with this instant.
    pub(crate) stopping: bool,
    /// Set when it was woken while it did not run.
    missed: bool,
}

impl Host {
    pub(crate) fn new(machine: Machine, address: IpAddr, software: Software) -> Self {
        Self {
            machine: Arc::new(machine),
            address,
            software,
            tasks: None,
            life: Arc::default(),
            started: 0,
            crashes: BTreeSet::new(),
            pauses: BTreeSet::new(),
            blocks: BTreeSet::new(),
            suspensions: BTreeSet::new(),
            clocks: ClockFaults::default(),
            told: HostState::Down,
            crashed: false,
            stopping: false,
            missed: false,
        }
    }

    /// Returns true if packets reach its kernel.
    pub(crate) fn reachable(&self) -> bool {
        !self.crashed && self.suspensions.is_empty()
    }

    /// Returns true if its software is polled.
    pub(crate) fn runs(&self) -> bool {
        self.pauses.is_empty() && self.blocks.is_empty() && self.suspensions.is_empty()
    }

    pub(crate) fn state(&self) -> HostState {
        if !self.is_up() {
            HostState::Down
        } else if !self.suspensions.is_empty() {
            HostState::Suspended
        } else if !self.runs() {
            HostState::Paused
        } else {
            HostState::Running
        }
    }

    /// Returns true if it has software to poll or to end.
    pub(crate) fn is_up(&self) -> bool {
        self.tasks.is_some()
    }

    /// Starts its software.
    pub(crate) fn start(&mut self) {
        self.life = Arc::new(Life { incarnation: self.started, ..Life::default() });
        self.started += 1;
        self.crashed = false;
        // Listeners of earlier lives are gone; connection attempts wait for new ones.
        for ((host, _), listener) in &mut lock(&self.machine.shared.real).listeners {
            if **host == *self.machine.name {
                listener.address = None;
            }
        }
        self.machine.record(Event::Started { incarnation: self.life.incarnation });
        let task = (self.software)(HostCtx { machine: self.machine.clone(), life: self.life.clone() });
        let machine = self.machine.clone();
        let tasks = LocalSet::new();
        tasks.spawn_local(async move {
            Loud { task, machine: machine.clone() }.await;
            machine.record(Event::Finished);
        });
        self.tasks = Some(tasks);
        self.machine.queue();
    }

    /// Polls its tasks, if it runs; they wake `waker`.
    pub(crate) fn poll(&mut self, waker: &Waker) {
        self.machine.queued.store(false, Ordering::Relaxed);
        if !self.runs() {
            self.missed = true;
            return;
        }
        let Some(tasks) = &mut self.tasks else { return };
        loop {
            while let Some(task) = lock(&self.life.spawned).pop_front() {
                tasks.spawn_local(Loud { task, machine: self.machine.clone() });
            }
            let _ = Pin::new(&mut *tasks).poll(&mut Context::from_waker(waker));
            if lock(&self.life.spawned).is_empty() {
                return;
            }
        }
    }

    /// Queues the host for a poll if it was woken while a pause or suspension lasted. Call it when
    /// one has ended.
    pub(crate) fn catch_up(&mut self) {
        if self.runs() && std::mem::take(&mut self.missed) {
            self.machine.queue();
        }
    }

    /// Asks its software to stop.
    pub(crate) fn ask_to_stop(&mut self) {
        self.stopping = true;
        self.life.stopping.store(true, Ordering::Relaxed);
        let waiting = std::mem::take(&mut *lock(&self.life.waiting_for_stop));
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Drops its tasks; tasks spawned by their destructors do not run.
    pub(crate) fn drop_tasks(&mut self) {
        self.life.over.store(true, Ordering::Relaxed);
        drop(self.tasks.take());
    }

    /// Drops its tasks; their destructors close sockets.
    pub(crate) fn end(&mut self, how: &'static str) {
        self.drop_tasks();
        let never_run = std::mem::take(&mut *lock(&self.life.spawned));
        drop(never_run);
        (self.stopping, self.missed) = (false, false);
        self.blocks.clear();
        self.machine.record(Event::Ended { how });
    }
}
