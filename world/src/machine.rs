//! The part of a host that outlives its software: its name, its clocks and their timers; and the
//! state that all hosts share.

use std::{
    any::Any,
    collections::{BTreeMap, VecDeque},
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    task::{Wake, Waker},
};

use tokio::sync::Notify;

#[cfg(feature = "turmoil")]
use crate::wire::OnTurmoil;
use crate::{
    clock::Clock,
    conn::{self, Conn},
    control::Control,
    engine::Engine,
    entropy::{Entropy, Stream},
    kernel::Kernel,
    lock::lock,
    loop_waker::LoopWaker,
    protocol::NewProtocol,
    rule::Rules,
    time::{Monotonic, True},
    trace::{Event, HostName, Sent, Trace},
};

/// The payload of a panic.
pub(crate) type Panic = Box<dyn Any + Send>;

/// State that the world shares with the code on its hosts. Only one thread uses it, so no lock is
/// ever contended; locks are needed because client code requires futures that are `Send`.
pub(crate) struct Shared {
    pub(crate) now: AtomicI64,
    pub(crate) entropy: Entropy,
    pub(crate) control: Control,
    pub(crate) trace: Mutex<Trace>,
    pub(crate) rules: Mutex<Rules>,
    pub(crate) ready: Mutex<VecDeque<usize>>,
    pub(crate) loop_waker: Arc<LoopWaker>,
    pub(crate) panic: Mutex<Option<Panic>>,
    pub(crate) names: Mutex<BTreeMap<IpAddr, HostName>>,
    /// The address of each host in virtual time.
    pub(crate) ips: Mutex<BTreeMap<HostName, IpAddr>>,
    /// The hosts whose timers or clocks have changed.
    pub(crate) retimed: Mutex<Vec<usize>>,
    /// The hosts whose kernels have something to collect.
    pub(crate) busy: Mutex<Vec<usize>>,
    /// The hosts behind the additional addresses, by address.
    pub(crate) addresses: Mutex<BTreeMap<String, String>>,
    pub(crate) engine: Engine,
    /// The protocol of server processes, if message rules apply to them.
    pub(crate) protocol: Option<NewProtocol>,
    /// With real sockets: the real addresses of hosts' ports, and the host of each real socket.
    pub(crate) real: Mutex<RealPorts>,
    pub(crate) sent: Arc<conn::Sent>,
}

impl Shared {
    pub(crate) fn now(&self) -> True {
        True::from_nanos(self.now.load(Ordering::Relaxed))
    }

    /// Returns the host that a dialed name leads to: that of an additional address, or the host of
    /// this name.
    pub(crate) fn dialed_by(&self, name: &str) -> String {
        lock(&self.addresses).get(name).cloned().unwrap_or_else(|| name.to_owned())
    }

    /// Returns the address of the host with this name, or the address that the name is.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    pub(crate) fn address_of(&self, name: &str) -> io::Result<IpAddr> {
        if let Some(address) = lock(&self.ips).get(name) {
            return Ok(*address);
        }
        if name == "localhost" {
            return Ok(Ipv4Addr::LOCALHOST.into());
        }
        name.parse().map_err(|_| no_host(name))
    }

    /// Returns the host and port that a dialed name and port lead to: those behind a door, or the
    /// same port of the host that the name leads to.
    pub(crate) fn behind(&self, name: &str, port: u16) -> (String, u16) {
        if let Ok(address) = name.parse::<IpAddr>()
            && let Some((host, port)) = lock(&self.real).doors.get(&SocketAddr::new(address, port))
        {
            return (host.to_string(), *port);
        }
        (self.dialed_by(name), port)
    }

    /// With real sockets: a connection from a host to a port of another, which is yet to be opened.
    ///
    /// # Errors
    /// `NotFound` for an unknown host.
    pub(crate) fn conn(self: &Arc<Self>, from: &HostName, host: &str, port: u16) -> io::Result<Arc<Conn>> {
        let host = &*self.dialed_by(host);
        let real = &mut *lock(&self.real);
        let known = |name: &str| {
            let found = real.hosts.get_key_value(name).map(|(name, &index)| (index, name.clone()));
            found.ok_or_else(|| no_host(name))
        };
        let conn = Conn::new(self.sent.clone(), known(from)?, known(host)?, port);
        real.conns.retain(|conn| conn.strong_count() > 0);
        real.conns.push(Arc::downgrade(&conn));
        Ok(conn)
    }
}

fn no_host(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("no host is called {name}"))
}

/// The real addresses of this machine behind the ports of the world, and the connections between
/// them.
#[derive(Debug, Default)]
pub(crate) struct RealPorts {
    /// The index of each host.
    pub(crate) hosts: BTreeMap<HostName, usize>,
    /// The listeners, by host and port.
    pub(crate) listeners: BTreeMap<(String, u16), RealListener>,
    /// Notified when an awaited listener exists.
    pub(crate) listening: Arc<Notify>,
    /// The hosts that opened connections, by the local port of each connection.
    pub(crate) dialed: BTreeMap<u16, HostName>,
    /// The connections between hosts.
    pub(crate) conns: Vec<Weak<Conn>>,
    /// The addresses at which server processes reach other hosts, by both hosts and the port.
    pub(crate) gates: BTreeMap<(HostName, String, u16), SocketAddr>,
    /// The host and port behind each address at which the server processes of all hosts reach it.
    pub(crate) doors: BTreeMap<SocketAddr, (HostName, u16)>,
}

/// A listener of a host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RealListener {
    /// The real address; `None` while the listener is awaited.
    pub(crate) address: Option<SocketAddr>,
    /// True for a listener of a server process, false for one of code in this process.
    pub(crate) is_server: bool,
}

/// The deadline of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Alarm {
    /// The host's monotonic clock.
    Clock(Monotonic),
    /// True time, for delays on the wire.
    Wire(True),
}

/// The smallest alarm of each kind.
const CLOCK: Alarm = Alarm::Clock(Monotonic::from_nanos(i64::MIN));
const WIRE: Alarm = Alarm::Wire(True::from_nanos(i64::MIN));

/// The wakers of timers. The number distinguishes timers of one instant, in the order of their
/// creation.
pub(crate) type Timers = BTreeMap<(Alarm, u64), Waker>;

/// The part of a host that outlives its software: its name, its clocks and their timers.
pub(crate) struct Machine {
    pub(crate) index: usize,
    pub(crate) name: HostName,
    pub(crate) shared: Arc<Shared>,
    pub(crate) clock: Mutex<Clock>,
    pub(crate) timers: Mutex<Timers>,
    /// The time of the next timer, in nanoseconds of true time, as the world knows it.
    next_due: AtomicI64,
    /// Set while the world knows that a timer or the clock has changed.
    timers_changed: AtomicBool,
    pub(crate) next_number: AtomicU64,
    pub(crate) random: Mutex<Stream>,
    pub(crate) queued: AtomicBool,
    /// Its sockets in virtual time.
    pub(crate) kernel: Mutex<Kernel>,
    #[cfg(feature = "turmoil")]
    pub(crate) on_turmoil: OnTurmoil,
}

impl Machine {
    pub(crate) fn new(
        index: usize,
        name: HostName,
        shared: Arc<Shared>,
        clock: Clock,
        address: IpAddr,
    ) -> Self {
        let address = match address {
            IpAddr::V4(address) => address,
            IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
        };
        let random = Mutex::new(shared.entropy.stream(&format!("hosts/{name}")));
        Self {
            index,
            name,
            shared,
            clock: Mutex::new(clock),
            timers: Mutex::default(),
            next_due: AtomicI64::new(True::MAX.as_nanos()),
            timers_changed: AtomicBool::new(false),
            next_number: AtomicU64::new(0),
            random,
            queued: AtomicBool::new(false),
            kernel: Mutex::new(Kernel::new(address)),
            #[cfg(feature = "turmoil")]
            on_turmoil: OnTurmoil::default(),
        }
    }

    pub(crate) fn record(&self, event: Event) {
        let now = self.shared.now();
        let reading = lock(&self.clock).read(now);
        lock(&self.shared.trace).push(now, Some((self.name.clone(), reading)), event);
    }

    pub(crate) fn record_sent(&self, sent: &Sent<'_>) {
        let now = self.shared.now();
        let reading = lock(&self.clock).read(now);
        lock(&self.shared.trace).push_sent(now, (&self.name, reading), sent);
    }

    /// Lends the kernel for one call, and wakes the tasks that the call concerns.
    pub(crate) fn kernel<T>(&self, call: impl FnOnce(&mut Kernel) -> T) -> T {
        let mut kernel = lock(&self.kernel);
        let out = call(&mut kernel);
        if kernel.is_busy() && !kernel.is_known_busy {
            kernel.is_known_busy = true;
            lock(&self.shared.busy).push(self.index);
        }
        let mut woken = kernel.take_woken();
        drop(kernel); // a wake may drop a task, and its sockets with it
        while let Some(waker) = woken {
            waker.wake();
            woken = lock(&self.kernel).take_woken();
        }
        out
    }

    pub(crate) fn monotonic(&self) -> Monotonic {
        lock(&self.clock).monotonic(self.shared.now())
    }

    pub(crate) fn shows(&self, alarm: Alarm) -> bool {
        match alarm {
            Alarm::Clock(at) => self.monotonic() >= at,
            Alarm::Wire(at) => self.shared.now() >= at,
        }
    }

    pub(crate) fn change_clock(&self, change: impl FnOnce(&mut Clock, True)) {
        change(&mut lock(&self.clock), self.shared.now());
        self.timers_changed();
    }

    /// Makes the world compute the time of the next timer anew before it needs it.
    pub(crate) fn timers_changed(&self) {
        if !self.timers_changed.load(Ordering::Relaxed) {
            self.timers_changed.store(true, Ordering::Relaxed);
            lock(&self.shared.retimed).push(self.index);
        }
    }

    /// Computes the time of the host's next timer by the present rate of its clock, or the end of
    /// time if there is none. Returns the time that the world knew before, and the present one.
    pub(crate) fn retime(&self) -> (True, True) {
        self.timers_changed.store(false, Ordering::Relaxed);
        let timers = lock(&self.timers);
        let clock = timers.first_key_value().map(|(&(alarm, _), _)| alarm);
        let wire = match clock {
            Some(Alarm::Clock(_)) => timers.range((WIRE, 0)..).next().map(|(&(alarm, _), _)| alarm),
            _ => None, // the first timer is the first of the wire
        };
        let when = |alarm| match alarm {
            Alarm::Clock(at) => lock(&self.clock).true_at_monotonic(at, self.shared.now()),
            Alarm::Wire(at) => Some(at),
        };
        let due = [clock, wire].into_iter().flatten().filter_map(when).min().unwrap_or(True::MAX);
        (True::from_nanos(self.next_due.swap(due.as_nanos(), Ordering::Relaxed)), due)
    }

    /// Wakes the tasks whose timers are due by the present readings of the clocks, in order.
    pub(crate) fn fire_timers(&self) {
        self.timers_changed();
        for from in [CLOCK, WIRE] {
            loop {
                let mut timers = lock(&self.timers);
                let Some(key) = timers.range((from, 0)..).next().map(|(&key, _)| key) else { break };
                let waker = if self.shows(key.0) { timers.remove(&key) } else { None };
                drop(timers); // a wake may drop a task, and its timers with it
                let Some(waker) = waker else { break };
                waker.wake();
            }
        }
    }

    /// With real sockets: a connection to a port of another host, which is yet to be opened.
    ///
    /// # Errors
    /// `NotFound` for an unknown host.
    pub(crate) fn conn_to(&self, host: &str, port: u16) -> io::Result<Arc<Conn>> {
        self.shared.conn(&self.name, host, port)
    }

    /// Schedules the host's tasks to be polled again.
    pub(crate) fn queue(&self) {
        if !self.queued.swap(true, Ordering::Relaxed) {
            lock(&self.shared.ready).push_back(self.index);
        }
        self.shared.loop_waker.wake();
    }
}

impl Wake for Machine {
    fn wake(self: Arc<Self>) {
        self.queue();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        self.queue();
    }
}
