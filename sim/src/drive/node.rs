//! One node on its platform: accepts, dials, rings the alarm, and carries events in and actions out.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, VecDeque},
    fmt,
    future::{Future, poll_fn},
    net::{IpAddr, Ipv4Addr},
    panic::resume_unwind,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use tokio::task::JoinSet;

use super::{Platform, wire::carry};
use crate::{
    env::{Env, Observation},
    event::{Action, ConnId, Event},
    server::Server,
    time::Monotonic,
};

/// A server that can be looked at while somebody drives it, and after. Cheap to clone.
#[derive(Clone, Default)]
pub struct Node(Rc<Slot>);

#[derive(Default)]
struct Slot {
    server: RefCell<Option<Server>>,
    watcher: RefCell<Option<Watcher>>,
}

/// Called with everything a server saw or did.
type Watcher = Box<dyn FnMut(&Observation)>;

impl Node {
    /// A node without a server, until one is started.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a server in, and takes out the one that was there.
    pub fn replace(&self, server: Server) -> Option<Server> {
        self.0.server.replace(Some(server))
    }

    /// Takes the server out: after a crash, for what was durable.
    pub fn take(&self) -> Option<Server> {
        self.0.server.take()
    }

    /// Looks at the server, if there is one.
    ///
    /// # Panics
    /// If called from inside a step of this server.
    pub fn look<T>(&self, look: impl FnOnce(&Server) -> T) -> Option<T> {
        self.0.server.borrow().as_ref().map(look)
    }

    /// From the next start on, calls `watch` with everything the server saw or did in a step, when the step is done; it
    /// may look at the node then. It replaces the watcher before it.
    pub fn watch(&self, watch: impl FnMut(&Observation) + 'static) {
        self.0.watcher.replace(Some(Box::new(watch)));
    }

    fn tell(&self, observation: &Observation) {
        // Taken out for the call, so that the watcher may set another one.
        let Some(mut watcher) = self.0.watcher.take() else { return };
        watcher(observation);
        self.0.watcher.borrow_mut().get_or_insert(watcher);
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.server.borrow().is_some() { "Node(server)" } else { "Node(empty)" })
    }
}

/// What is to be written to a connection, and who writes it.
#[derive(Default)]
pub(super) struct Outgoing {
    bytes: VecDeque<Bytes>,
    /// How many bytes that is.
    queued: usize,
    /// The peer has left more unread than it may.
    pub(super) overrun: bool,
    /// No more follows: close when all is written.
    pub(super) closing: bool,
    /// The network has taken a reply, and so all that follows.
    pub(super) mute: bool,
    pub(super) waker: Option<Waker>,
}

impl Outgoing {
    /// Takes the next piece to write.
    pub(super) fn next_piece(&mut self) -> Option<Bytes> {
        let piece = self.bytes.pop_front()?;
        self.queued -= piece.len();
        Some(piece)
    }

    /// Adds a piece; a peer that leaves too much unread is cut off instead.
    fn push(&mut self, piece: Bytes) {
        if self.mute || self.overrun {
            return;
        }
        self.queued += piece.len();
        self.bytes.push_back(piece);
        self.overrun = self.queued > QUEUED_MAX;
    }
}

/// What a peer may leave unread, in bytes. Redis sets ordinary clients no limit; this one only guards the process.
const QUEUED_MAX: usize = 1 << 30;

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// A node while it is driven.
pub(super) struct Driver<P: Platform> {
    pub(super) platform: P,
    node: Node,
    env: RefCell<Env>,
    wires: RefCell<BTreeMap<ConnId, Outgoing>>,
    alarm: Cell<Option<Monotonic>>,
    alarm_waker: Cell<Option<Waker>>,
    newborn: RefCell<VecDeque<Task>>,
    waker: Cell<Option<Waker>>,
    exit: Cell<bool>,
}

/// Drives the server in `node` until it exits. `env` is the one the server was made with: its outbox may already ask
/// for something. Dropping the future is a crash; what the server knew is still in `node`.
///
/// # Panics
/// If `node` is empty.
pub async fn serve<P: Platform>(platform: P, listener: P::Listener, node: Node, mut env: Env) {
    env.observing = P::WATCHED || node.0.watcher.borrow().is_some();
    let driver = Rc::new(Driver {
        platform,
        node,
        env: RefCell::new(env),
        wires: RefCell::default(),
        alarm: Cell::default(),
        alarm_waker: Cell::default(),
        newborn: RefCell::default(),
        waker: Cell::default(),
        exit: Cell::new(false),
    });
    driver.carry_out();
    driver.spawn(accept(driver.clone(), listener));
    driver.spawn(ring(driver.clone()));
    // Every task of the node belongs to this set, so that it ends with this future.
    let mut tasks = JoinSet::new();
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
        if driver.exit.get() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

impl<P: Platform> Driver<P> {
    /// Gives the server an event, and carries out what it asks for.
    pub(super) fn step(self: &Rc<Self>, event: Event) {
        {
            let mut env = self.env.borrow_mut();
            (env.wall, env.monotonic) = (self.platform.wall(), self.platform.monotonic());
            let mut server = self.node.0.server.borrow_mut();
            server.as_mut().expect("a node that is driven has a server").step(&mut env, event);
        }
        self.carry_out();
    }

    fn carry_out(self: &Rc<Self>) {
        let (actions, observations) = {
            let mut env = self.env.borrow_mut();
            (std::mem::take(&mut env.outbox), std::mem::take(&mut env.observations))
        };
        for observation in &observations {
            self.platform.observed(observation);
            self.node.tell(observation);
        }
        for action in actions {
            match action {
                Action::Send { conn, bytes } => self.with_wire(conn, |wire| wire.push(bytes)),
                Action::Close { conn } => self.with_wire(conn, |wire| wire.closing = true),
                Action::Dial { conn, host, port } => self.dial(conn, host, port),
                Action::Alarm { at } => {
                    self.alarm.set(Some(at));
                    wake(&self.alarm_waker);
                }
                Action::Exit => {
                    self.exit.set(true);
                    wake(&self.waker);
                }
            }
        }
    }

    fn dial(self: &Rc<Self>, conn: ConnId, host: String, port: u16) {
        self.wires.borrow_mut().insert(conn, Outgoing::default());
        let driver = self.clone();
        self.spawn(async move {
            match driver.platform.dial(&host, port).await {
                Ok(stream) => {
                    driver.step(Event::Dialed { conn });
                    carry(driver, conn, stream, None).await;
                }
                Err(_) => driver.hung_up(conn),
            }
        });
    }

    /// The other side closed, or never was there.
    pub(super) fn hung_up(self: &Rc<Self>, conn: ConnId) {
        // A connection that the server has closed itself is none of its business any more.
        if self.wires.borrow_mut().remove(&conn).is_some_and(|wire| !wire.closing) {
            self.step(Event::Closed { conn });
        }
    }

    pub(super) fn forget(&self, conn: ConnId) {
        self.wires.borrow_mut().remove(&conn);
    }

    /// Looks at what is to be written to a connection; `None` if it is gone.
    pub(super) fn wire<T>(&self, conn: ConnId, f: impl FnOnce(&mut Outgoing) -> T) -> Option<T> {
        self.wires.borrow_mut().get_mut(&conn).map(f)
    }

    fn with_wire(&self, conn: ConnId, f: impl FnOnce(&mut Outgoing)) {
        let waker = self.wire(conn, |wire| {
            f(wire);
            wire.waker.take()
        });
        if let Some(waker) = waker.flatten() {
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

/// Takes connections in, and numbers them.
async fn accept<P: Platform>(driver: Rc<Driver<P>>, listener: P::Listener) {
    let mut next = 1;
    loop {
        let Ok(stream) = driver.platform.accept(&listener).await else {
            // Out of file descriptors, most likely; some connection has to go first.
            driver.platform.wait(Duration::from_millis(100)).await;
            continue;
        };
        let Ok((peer, local)) = driver.platform.addresses(&stream) else { continue };
        let conn = ConnId(next);
        next += 1;
        driver.wires.borrow_mut().insert(conn, Outgoing::default());
        driver.step(Event::Connected { conn, peer: peer.to_string(), local: local.to_string() });
        driver.spawn(carry(driver.clone(), conn, stream, Some(peer.ip())));
    }
}

/// Rings the alarm that the server asked for last.
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

/// What stands for a peer's address when there is none to ask: nobody's.
pub(super) const NOBODY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
