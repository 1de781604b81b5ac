//! Builds a world: its hosts with their software, the network between them, and the limits of a
//! run.

use std::{
    collections::{BTreeMap, VecDeque},
    future::Future,
    net::IpAddr,
    sync::{Arc, Mutex, atomic::AtomicI64},
    time::Duration,
};

#[cfg(feature = "turmoil")]
use crate::turmoil::Turmoil;
use crate::{
    clock::Clock,
    conn::Sent,
    control::Control,
    engine::Engine,
    entropy::Entropy,
    fabric::Fabric,
    host::{Host, HostState, Software},
    link::{Latency, Link},
    loop_waker::LoopWaker,
    machine::{Machine, Shared},
    protocol::{NewProtocol, Protocol},
    rule::Rules,
    time::{Boottime, Monotonic, True, Wall},
    timeline::{Hook, LullHook, StateHook, World},
    trace::{Record, Trace, TraceRetention},
};

/// See [`World::builder`].
pub struct Builder {
    seed: u64,
    engine: Engine,
    epoch: Wall,
    latency: Latency,
    links: Vec<(String, String, Latency)>,
    addresses: BTreeMap<String, String>,
    hosts: Vec<(String, Software)>,
    clocks: BTreeMap<String, Clock>,
    hooks: Vec<Hook>,
    state_hooks: Vec<StateHook>,
    lull_hooks: Vec<LullHook>,
    keep: TraceRetention,
    protocol: Option<NewProtocol>,
    steps_per_instant: u64,
    steps_per_run: u64,
}

impl World {
    /// Starts the description of a world with this seed.
    pub fn builder(seed: u64) -> Builder {
        Builder::new(seed)
    }
}

impl Builder {
    fn new(seed: u64) -> Self {
        Self {
            seed,
            engine: Engine::Event,
            // 2024-01-01T00:00:00Z: a plausible date, for code that reads one.
            epoch: Wall::from_secs(1_704_067_200),
            latency: Latency::Uniform { min: Duration::from_micros(200), max: Duration::from_millis(1) },
            links: vec![],
            addresses: BTreeMap::new(),
            hosts: vec![],
            clocks: BTreeMap::new(),
            hooks: vec![],
            state_hooks: vec![],
            lull_hooks: vec![],
            keep: TraceRetention::Last(1_000),
            protocol: None,
            steps_per_instant: 1_000_000,
            steps_per_run: 10_000_000_000,
        }
    }

    /// Sets the engine that advances time and delivers packets; by default lockstorm's own
    /// timeline.
    pub fn engine(mut self, engine: Engine) -> Self {
        self.engine = engine;
        self
    }

    /// Sets the reading of correct wall clocks at true zero; by default the first instant of 2024.
    pub fn epoch(mut self, epoch: Wall) -> Self {
        self.epoch = epoch;
        self
    }

    /// Adds a host. `software` is called at every start, so only its captures survive a crash.
    /// Tasks belong to the host if they are spawned by [`HostCtx::spawn`](crate::HostCtx::spawn) or
    /// `tokio::task::spawn_local`. A task of `tokio::spawn` belongs to no host and has no network.
    ///
    /// # Panics
    /// If a host of this name exists already.
    pub fn host<S, F>(mut self, name: impl Into<String>, mut software: S) -> Self
    where
        S: FnMut(crate::HostCtx) -> F + 'static,
        F: Future<Output = ()> + 'static,
    {
        let name = name.into();
        assert!(self.hosts.iter().all(|(other, _)| *other != name), "two hosts called {name}");
        self.hosts.push((name, Box::new(move |ctx| Box::pin(software(ctx)))));
        self
    }

    /// Sets the readings of this host's clocks at true zero, instead of the epoch, zero and zero.
    pub fn clocks(
        mut self,
        host: impl Into<String>,
        wall: Wall,
        monotonic: Monotonic,
        boottime: Boottime,
    ) -> Self {
        self.clocks.insert(host.into(), Clock::new(wall, monotonic, boottime));
        self
    }

    /// Sets the default latency of links; 0.2 to 1 ms if it is not set.
    pub fn latency(mut self, latency: Latency) -> Self {
        self.latency = latency;
        self
    }

    /// Sets the latency of one direction between two hosts.
    pub fn link(mut self, from: impl Into<String>, to: impl Into<String>, latency: Latency) -> Self {
        self.links.push((from.into(), to.into(), latency));
        self
    }

    /// Adds an address besides those of the hosts. Dialing it reaches `host`, until
    /// [`Verb::Point`](crate::Verb::Point) moves it.
    pub fn address(mut self, name: impl Into<String>, host: impl Into<String>) -> Self {
        self.addresses.insert(name.into(), host.into());
        self
    }

    /// Sets the records to keep; by default the last 1,000.
    pub fn keep(mut self, keep: TraceRetention) -> Self {
        self.keep = keep;
        self
    }

    /// Sets the protocol of server processes in real time
    /// ([`HostCtx::stand_for`](crate::HostCtx::stand_for)), so that message rules apply to their
    /// requests. `make` is called for each connection to a server. Without a protocol no rule
    /// applies to them.
    pub fn protocol<P: Protocol + 'static>(mut self, make: impl Fn() -> P + Send + Sync + 'static) -> Self {
        self.protocol = Some(Box::new(move || Box::new(make())));
        self
    }

    /// Calls `hook` with every record except packets, before time advances, so that it can order
    /// faults in reaction to events.
    pub fn hook(mut self, hook: impl FnMut(&Record, &Control) + 'static) -> Self {
        self.hooks.push(Box::new(hook));
        self
    }

    /// Calls `hook` with the old and the new state of a host whenever it changes; first when the
    /// host starts.
    pub fn state_hook(mut self, hook: impl FnMut(True, &str, HostState, HostState) + 'static) -> Self {
        self.state_hooks.push(Box::new(hook));
        self
    }

    /// Calls `hook` before time advances, with the instant of the next known event. Nothing is left
    /// to do at the present instant then. The hook may add timers by
    /// [`HostCtx::wake_at`](crate::HostCtx::wake_at). The turmoil engine calls no such hook.
    pub fn lull_hook(mut self, hook: impl FnMut(True) + 'static) -> Self {
        self.lull_hooks.push(Box::new(hook));
        self
    }

    /// Limits the number of polls and packets in one true instant (by default a million) and in a
    /// whole run (ten thousand million). More count as an endless loop, and are an error.
    pub fn limits(mut self, per_instant: u64, per_run: u64) -> Self {
        (self.steps_per_instant, self.steps_per_run) = (per_instant, per_run);
        self
    }

    /// Returns the world at true zero, with every host about to start.
    ///
    /// # Panics
    /// If a link or clocks name a host that does not exist.
    pub fn build(self) -> World {
        let entropy = Entropy::new(self.seed);
        let loop_waker = Arc::new(LoopWaker::default());
        let shared = Arc::new(Shared {
            now: AtomicI64::new(True::ZERO.as_nanos()),
            entropy,
            control: Control::default(),
            trace: Mutex::new(Trace::new(self.keep, !self.hooks.is_empty())),
            rules: Mutex::new(Rules::default()),
            ready: Mutex::new(VecDeque::new()),
            loop_waker: loop_waker.clone(),
            panic: Mutex::new(None),
            names: Mutex::default(),
            ips: Mutex::default(),
            retimed: Mutex::default(),
            busy: Mutex::default(),
            addresses: Mutex::new(self.addresses),
            engine: self.engine,
            protocol: self.protocol,
            real: Mutex::default(),
            sent: Arc::new(Sent::new(loop_waker)),
        });
        let count = self.hosts.len();
        let names = self.hosts.iter().map(|(name, _)| name.as_str());
        let (fabric, addresses): (Fabric, Vec<IpAddr>) = match self.engine {
            Engine::Event => (Fabric::Event, virtual_addresses(names)),
            #[cfg(feature = "turmoil")]
            Engine::Turmoil => {
                let (turmoil, addresses) = Turmoil::new(self.seed, names);
                (Fabric::Turmoil(Box::new(turmoil)), addresses)
            }
            Engine::Real => (Fabric::Real, (0..count).map(real_address).collect()),
        };
        let mut clocks = self.clocks;
        let mut hosts: Vec<Host> = Vec::with_capacity(count);
        for (index, (name, software)) in self.hosts.into_iter().enumerate() {
            let address = addresses[index];
            let clock = clocks
                .remove(&name)
                .unwrap_or_else(|| Clock::new(self.epoch, Monotonic::ZERO, Boottime::ZERO));
            let machine = Machine::new(index, name.into(), shared.clone(), clock, address);
            shared.names.lock().expect("a new lock").insert(address, machine.name.clone());
            shared.ips.lock().expect("a new lock").insert(machine.name.clone(), address);
            shared.real.lock().expect("a new lock").hosts.insert(machine.name.clone(), index);
            hosts.push(Host::new(machine, address, software));
        }
        assert!(clocks.is_empty(), "clocks of unknown hosts: {:?}", clocks.keys());
        let mut links: Vec<Link> = (0..count * count).map(|_| Link::new(self.latency)).collect();
        for (from, to, latency) in self.links {
            let index = |name: &str| {
                hosts
                    .iter()
                    .position(|host| *host.machine.name == *name)
                    .unwrap_or_else(|| panic!("no host {name}"))
            };
            links[index(&from) * count + index(&to)].latency = latency;
        }
        World::new(
            shared,
            fabric,
            hosts,
            links,
            (self.hooks, self.state_hooks, self.lull_hooks),
            (self.steps_per_instant, self.steps_per_run),
        )
    }
}

/// Returns the address of each host in virtual time: the one that its name is, or the next of a
/// private network.
fn virtual_addresses<'a>(names: impl Iterator<Item = &'a str>) -> Vec<IpAddr> {
    let mut next = 1_u16;
    names
        .map(|name| {
            name.parse().unwrap_or_else(|_| {
                let [high, low] = next.to_be_bytes();
                next += 1;
                IpAddr::from([192, 168, high, low])
            })
        })
        .collect()
}

/// Returns the loopback address of a host in real time, in which all hosts are this machine, by the
/// number of hosts that were added to the world before it.
///
/// # Panics
/// If 65,535 were.
pub fn real_address(before: usize) -> IpAddr {
    let number = u16::try_from(before + 1).expect("a world has fewer hosts");
    let [high, low] = number.to_be_bytes();
    IpAddr::from([127, 1, high, low])
}
