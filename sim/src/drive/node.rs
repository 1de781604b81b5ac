//! One node on its platform: accepts and dials connections, rings the alarm, passes events to the
//! server, and carries out its actions.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, VecDeque},
    fmt,
    future::{Future, poll_fn},
    net::IpAddr,
    panic::resume_unwind,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use tokio::task::{AbortHandle, JoinSet};

use super::{
    Platform,
    outgoing::Outgoing,
    wire::{READ, carry},
};
use crate::{
    env::{Env, Observation},
    event::{Action, ConnId, Event},
    server::Server,
    time::Monotonic,
};

/// A handle to a server that can be inspected while it is driven, and afterwards. Cheap to clone.
#[derive(Clone, Default)]
pub struct DrivenNode(Rc<Slot>);

#[derive(Default)]
struct Slot {
    server: RefCell<Option<Server>>,
    watcher: RefCell<Option<Watcher>>,
    /// Events of the server's machine that are not delivered yet; `carrier` wakes the task that
    /// delivers them.
    given: RefCell<VecDeque<Event>>,
    carrier: Cell<Option<Waker>>,
}

/// A function that receives every observation of a server.
type Watcher = Box<dyn FnMut(&Observation)>;

impl DrivenNode {
    /// Creates a handle without a server.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores a server, and returns the one that was stored before.
    pub fn replace(&self, server: Server) -> Option<Server> {
        self.0.server.replace(Some(server))
    }

    /// Takes the server out: after a crash, for its durable state.
    pub fn take(&self) -> Option<Server> {
        self.0.given.take();
        self.0.server.take()
    }

    /// Calls `look` with the server, if there is one.
    ///
    /// # Panics
    /// If called from inside a step of this server.
    pub fn look<T>(&self, look: impl FnOnce(&Server) -> T) -> Option<T> {
        self.0.server.borrow().as_ref().map(look)
    }

    /// From the next start on, calls `watch` with every observation of a step, once the step is
    /// done, so that it may look at the node. Replaces the watcher before it.
    pub fn watch(&self, watch: impl FnMut(&Observation) + 'static) {
        self.0.watcher.replace(Some(Box::new(watch)));
    }

    /// Delivers an event of the server's machine, which comes from no connection, as soon as the
    /// host runs. The event is lost if there is no server.
    pub fn give(&self, event: Event) {
        if self.0.server.borrow().is_some() {
            self.0.given.borrow_mut().push_back(event);
            wake(&self.0.carrier);
        }
    }

    fn tell(&self, observation: &Observation) {
        // Take the watcher out for the call, so that it may set another one.
        let Some(mut watcher) = self.0.watcher.take() else { return };
        watcher(observation);
        self.0.watcher.borrow_mut().get_or_insert(watcher);
    }
}

impl fmt::Debug for DrivenNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.server.borrow().is_some() { "Node(server)" } else { "Node(empty)" })
    }
}

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// The longest time that an orderly end waits for peers that do not read their last bytes.
const GRACE: Duration = Duration::from_secs(1);

/// The pause of a script between two of its turns: long enough to read everything that has arrived.
const BREAK: Duration = Duration::from_millis(1);

/// The most alarms that one move of a manual clock rings; the rest of the move is then one step. So
/// the node answers soon, however far a client moves the clock.
const ALARMS_MAX: usize = 100_000;

/// The state of a node that is being driven.
pub(super) struct Driver<P: Platform> {
    pub(super) platform: P,
    node: DrivenNode,
    env: RefCell<Env>,
    wires: RefCell<BTreeMap<ConnId, Rc<RefCell<Outgoing>>>>,
    /// The read buffer. All connections share it, so that thousands of idle ones cost little.
    pub(super) buffer: RefCell<Vec<u8>>,
    alarm: Cell<Option<Monotonic>>,
    alarm_waker: Cell<Option<Waker>>,
    /// The time to which a manual clock is moving.
    destination: Cell<Option<Monotonic>>,
    /// True if the server closed a connection in the last step.
    hung_up: Cell<bool>,
    /// Connections whose unsent output must be reported to the server.
    long: RefCell<Vec<ConnId>>,
    /// True while the server neither reads nor answers; `unstalled` wakes the connections that wait
    /// for it to continue.
    stalled: Cell<bool>,
    unstalled: RefCell<Vec<Waker>>,
    newborn: RefCell<VecDeque<Task>>,
    waker: Cell<Option<Waker>>,
    exit: Cell<bool>,
}

/// Drives the server in `node` until it exits and all of its output is on its way. `env` is the one
/// with which the server was made: its outbox may already contain actions. Other nodes of the
/// cluster, if there is one, connect to `bus`. Dropping the future is a crash; the server's state
/// is then still in `node`.
///
/// # Panics
/// If `node` is empty.
pub async fn serve<P: Platform>(
    platform: P,
    listener: P::Listener,
    bus: Option<P::Listener>,
    node: DrivenNode,
    mut env: Env,
) {
    env.observing = P::WATCHED || node.0.watcher.borrow().is_some();
    env.manual_clock = platform.manual_clock().is_some();
    env.logging = platform.logs().then(Default::default);
    let driver = Rc::new(Driver {
        platform,
        node,
        env: RefCell::new(env),
        wires: RefCell::default(),
        buffer: RefCell::new(vec![0; READ]),
        alarm: Cell::default(),
        alarm_waker: Cell::default(),
        destination: Cell::default(),
        hung_up: Cell::default(),
        long: RefCell::default(),
        stalled: Cell::default(),
        unstalled: RefCell::default(),
        newborn: RefCell::default(),
        waker: Cell::default(),
        exit: Cell::new(false),
    });
    driver.carry_out();
    // Every task of the node belongs to this set, so that it ends with this future.
    let mut tasks = JoinSet::new();
    let mut accepting = vec![tasks.spawn_local(accept(driver.clone(), listener, ConnId::FIRST))];
    accepting.extend(bus.map(|bus| tasks.spawn_local(accept(driver.clone(), bus, ConnId::BUS))));
    driver.spawn(ring(driver.clone()));
    driver.spawn(signals(driver.clone()));
    driver.spawn(given(driver.clone()));
    let mut ending = false;
    poll_fn(|cx| {
        while let Some(task) = { driver.newborn.borrow_mut().pop_front() } {
            tasks.spawn_local(task);
        }
        while let Poll::Ready(Some(ended)) = tasks.poll_join_next(cx) {
            if let Err(error) = ended
                && let Ok(panic) = error.try_into_panic()
            {
                resume_unwind(panic);
            }
        }
        driver.waker.set(Some(cx.waker().clone()));
        if !driver.exit.get() {
            return Poll::Pending;
        }
        // Stop accepting before the first connection is closed.
        accepting.iter().for_each(AbortHandle::abort);
        if !accepting.iter().all(AbortHandle::is_finished) {
            return Poll::Pending;
        }
        if !std::mem::replace(&mut ending, true) {
            driver.hang_up_on_all();
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if driver.wires.borrow().is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

impl<P: Platform> Driver<P> {
    /// Passes an event to the server, and carries out its actions.
    pub(super) fn step(self: &Rc<Self>, event: Event) {
        self.hung_up.set(false);
        self.step_once(event);
        self.move_clock();
    }

    fn step_once(self: &Rc<Self>, event: Event) {
        if self.exit.get() {
            return;
        }
        {
            let mut env = self.env.borrow_mut();
            (env.wall, env.monotonic) = (self.platform.wall(), self.platform.monotonic());
            let mut server = self.node.0.server.borrow_mut();
            server.as_mut().expect("a node that is driven has a server").step(&mut env, event);
        }
        self.carry_out();
    }

    /// Returns true if the server is stalled; the calling task is then woken when the server
    /// continues. Until then the bytes of peers stay in their sockets.
    pub(super) fn is_stalled(&self, cx: &Context<'_>) -> bool {
        if self.stalled.get() {
            self.unstalled.borrow_mut().push(cx.waker().clone());
        }
        self.stalled.get()
    }

    /// Returns true if the server closed a connection in the last step.
    pub(super) fn has_hung_up(&self) -> bool {
        self.hung_up.get()
    }

    fn travel_to(&self, at: Option<Monotonic>) {
        self.destination.set(self.destination.get().max(at));
    }

    /// Moves a manual clock to its destination, from alarm to alarm.
    fn move_clock(self: &Rc<Self>) {
        let Some(clock) = self.platform.manual_clock().cloned() else { return };
        let mut alarms = 0;
        while let Some(destination) = self.destination.get() {
            alarms += 1;
            let alarm = self.alarm.get().filter(|at| *at < destination && alarms <= ALARMS_MAX);
            if alarm.is_none() {
                self.destination.set(None);
                alarms = 0;
            }
            clock.move_to(alarm.unwrap_or(destination));
            self.alarm.set(None);
            self.step_once(Event::Alarm);
        }
    }

    fn carry_out(self: &Rc<Self>) {
        let (mut actions, observations, log) = {
            let mut env = self.env.borrow_mut();
            let env = &mut *env;
            (
                std::mem::take(&mut env.outbox),
                std::mem::take(&mut env.observations),
                std::mem::take(&mut env.log),
            )
        };
        for observation in &observations {
            self.platform.observed(observation);
            self.node.tell(observation);
        }
        log.iter().for_each(|line| self.platform.log(line));
        // A killed client sees the end before the caller of CLIENT KILL gets its reply, as in
        // Redis, which closes the socket in the middle of the command. Nothing is written until all
        // actions are carried out, so bytes that are sent in this step still come before the end.
        for action in &actions {
            if let Action::Close { conn } | Action::Drain { conn } | Action::Kill { conn, .. } = action {
                self.hung_up.set(true);
                self.with_wire(*conn, |wire| wire.closing = true);
            }
        }
        for action in actions.drain(..) {
            match action {
                Action::Send { conn, bytes } => self.send(conn, bytes),
                // The connection may have been dialed in this step.
                Action::Close { conn } => self.with_wire(conn, |wire| wire.closing = true),
                Action::Drain { conn } => {
                    self.with_wire(conn, |wire| (wire.closing, wire.reports_end) = (true, true));
                }
                Action::Kill { conn, discard } => self.with_wire(conn, |wire| {
                    (wire.killed, wire.reports_end) = (true, false);
                    wire.overrun |= discard;
                }),
                Action::Dial { conn, host, port, from } => self.dial(conn, host, port, from),
                Action::Alarm { at } => {
                    self.alarm.set(Some(at));
                    wake(&self.alarm_waker);
                }
                Action::Stall { until } => self.stall(until),
                Action::ResumeScript => self.resume_script_soon(),
                Action::Advance { by } => self.travel_to(Some(self.platform.monotonic() + by)),
                Action::Exit => self.end(),
            }
        }
        // Keep the allocation for the next step.
        self.env.borrow_mut().outbox = actions;
        while let Some(conn) = { self.long.borrow_mut().pop() } {
            let unsent = self.wires.borrow().get(&conn).and_then(|wire| wire.borrow_mut().unsent_news());
            self.tell_unsent(conn, unsent);
        }
    }

    fn send(&self, conn: ConnId, bytes: Bytes) {
        self.with_wire(conn, |wire| {
            wire.push(bytes);
            if wire.is_long() {
                self.long.borrow_mut().push(conn);
            }
        });
    }

    /// Reports the number of unsent bytes to the server, unless it is `None`.
    pub(super) fn tell_unsent(self: &Rc<Self>, conn: ConnId, unsent: Option<usize>) {
        if let Some(bytes) = unsent {
            self.step_once(Event::Unsent { conn, bytes });
        }
    }

    /// Stops reading until `until`; `None` continues.
    fn stall(&self, until: Option<Monotonic>) {
        if self.platform.manual_clock().is_some() {
            // No client can advance the clock of a node that does not listen, so waiting takes no
            // time.
            self.travel_to(until);
        }
        self.stalled.set(until.is_some());
        if until.is_none() {
            self.unstalled.take().into_iter().for_each(Waker::wake);
        }
    }

    /// Begins an orderly end: stops accepting, and then closes all connections.
    fn end(&self) {
        self.exit.set(true);
        wake(&self.waker);
    }

    /// Closes all connections once their replies are written, or after [`GRACE`].
    fn hang_up_on_all(self: &Rc<Self>) {
        // This also drops the listeners that it shares.
        self.env.borrow_mut().ports = None;
        self.wires.borrow_mut().retain(|_, wire| wire.borrow().carried);
        let wires: Vec<ConnId> = self.wires.borrow().keys().copied().collect();
        wires.into_iter().for_each(|conn| self.with_wire(conn, |wire| wire.closing = true));
        let driver = self.clone();
        self.spawn(async move {
            driver.platform.wait(GRACE).await;
            driver.wires.borrow_mut().clear();
            wake(&driver.waker);
        });
    }

    fn dial(self: &Rc<Self>, conn: ConnId, host: String, port: u16, from: Option<IpAddr>) {
        let wire = self.new_wire(conn);
        let driver = self.clone();
        self.spawn(async move {
            match driver.platform.dial(&host, port, from).await {
                Ok(stream) if !driver.exit.get() => {
                    wire.borrow_mut().carried = true;
                    let local =
                        driver.platform.ends(&stream).map_or_else(|_| String::new(), |ends| ends.local);
                    driver.step(Event::Dialed { conn, local });
                    carry(driver, conn, wire, stream, None).await;
                }
                _ => driver.hung_up(conn),
            }
        });
    }

    /// Resumes the long script after all connections have been served.
    fn resume_script_soon(self: &Rc<Self>) {
        let driver = self.clone();
        self.spawn(async move {
            driver.platform.wait(BREAK).await;
            driver.step(Event::ResumeScript);
        });
    }

    fn new_wire(&self, conn: ConnId) -> Rc<RefCell<Outgoing>> {
        let wire = Rc::new(RefCell::new(Outgoing::default()));
        self.wires.borrow_mut().insert(conn, wire.clone());
        wire
    }

    /// Ends a connection: the peer closed it, the dial failed, or all output of the server is
    /// written.
    pub(super) fn hung_up(self: &Rc<Self>, conn: ConnId) {
        let wire = self.wires.borrow_mut().remove(&conn);
        // The server expects no event for a connection that it closed itself, unless it drains it.
        let is_news = |wire: &Outgoing| !wire.closing || wire.reports_end;
        if wire.is_some_and(|wire| is_news(&wire.borrow())) {
            self.step(Event::Closed { conn });
        }
    }

    fn with_wire(&self, conn: ConnId, f: impl FnOnce(&mut Outgoing)) {
        let wire = self.wires.borrow().get(&conn).cloned();
        let waker = wire.and_then(|wire| {
            let mut wire = wire.borrow_mut();
            f(&mut wire);
            wire.waker.take()
        });
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.newborn.borrow_mut().push_back(Box::pin(task));
        wake(&self.waker);
    }
}

fn wake(waker: &Cell<Option<Waker>>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}

/// Accepts connections, and numbers them from `first` on.
async fn accept<P: Platform>(driver: Rc<Driver<P>>, listener: P::Listener, first: u64) {
    let mut next = first;
    loop {
        let Ok(stream) = driver.platform.accept(&listener).await else {
            // Most likely there are no free file descriptors: wait for another connection to end.
            driver.platform.wait(Duration::from_millis(100)).await;
            continue;
        };
        let Ok(ends) = driver.platform.ends(&stream) else { continue };
        let conn = ConnId(next);
        next += 1;
        let wire = driver.new_wire(conn);
        wire.borrow_mut().carried = true;
        driver.step(Event::Connected { conn, peer: ends.peer, local: ends.local });
        driver.spawn(carry(driver.clone(), conn, wire, stream, Some(ends.host)));
    }
}

/// Passes signals that ask the process to end to the server.
async fn signals<P: Platform>(driver: Rc<Driver<P>>) {
    loop {
        let signal = driver.platform.signal().await;
        driver.step(Event::Signal(signal));
    }
}

/// Passes events of the machine to the server.
async fn given<P: Platform>(driver: Rc<Driver<P>>) {
    poll_fn(|cx: &mut Context<'_>| {
        while let Some(event) = { driver.node.0.given.borrow_mut().pop_front() } {
            driver.step(event);
        }
        driver.node.0.carrier.set(Some(cx.waker().clone()));
        Poll::Pending
    })
    .await
}

/// Rings the alarm that the server set last.
async fn ring<P: Platform>(driver: Rc<Driver<P>>) {
    let (mut set, mut sleep): (_, Option<Task>) = (None, None);
    poll_fn(|cx: &mut Context<'_>| {
        loop {
            if driver.alarm.get() != set {
                set = driver.alarm.get();
                sleep = set.map(|at| Box::pin(driver.platform.sleep_until(at)) as Task);
            }
            let rung = sleep.as_mut().is_some_and(|sleep| sleep.as_mut().poll(cx).is_ready());
            if !rung {
                driver.alarm_waker.set(Some(cx.waker().clone()));
                return Poll::Pending;
            }
            (set, sleep) = (None, None);
            driver.alarm.set(None);
            driver.step(Event::Alarm);
        }
    })
    .await
}
