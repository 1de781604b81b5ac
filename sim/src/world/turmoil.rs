//! The world on `turmoil`: its hosts, its sockets, its ticks of one millisecond, under the same orders.
//!
//! Every link of `turmoil` is held, and its packets are released one by one when they are due on the world's own links: this
//! makes it possible to cut a single direction, and keeps the order.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    future::Future,
    net::IpAddr,
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use turmoil::{Protocol, Segment, Sim};

use super::{
    fabric::{Fabric, Parcel},
    host::Host,
    machine::lock,
    timeline::{End, World, WorldError},
    trace::Event,
};
use crate::time::True;

/// The time of one step of `turmoil`.
const TICK: Duration = Duration::from_millis(1);

/// The state of a world on `turmoil`.
pub(super) struct Turmoil {
    sim: Sim<'static>,
    desk: Rc<Desk>,
    /// The packets that `turmoil` has between each two hosts, in its order, by their numbers.
    held: BTreeMap<(IpAddr, IpAddr), Vec<u64>>,
    /// Those among them that arrive with the next step.
    released: BTreeSet<u64>,
}

/// State that the world shares with the software of its hosts.
#[derive(Default)]
struct Desk {
    /// The hosts while `turmoil` runs them; at all other times they are in the world.
    hosts: RefCell<Vec<Host>>,
    wakers: RefCell<Vec<Option<Waker>>>,
    /// How often hosts were polled in this tick, how often they may be, and which was polled last.
    polls: Cell<u64>,
    polls_max: Cell<u64>,
    last_polled: Cell<usize>,
}

/// The software of a host from a start to its end: its tasks, which the host has.
struct Body {
    desk: Rc<Desk>,
    index: usize,
}

impl Body {
    fn start(desk: Rc<Desk>, index: usize) -> Body {
        desk.hosts.borrow_mut()[index].start();
        Body { desk, index }
    }
}

impl Future for Body {
    type Output = turmoil::Result;
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<turmoil::Result> {
        let Desk { hosts, wakers, polls, polls_max, last_polled } = &*self.desk;
        polls.set(polls.get() + 1);
        last_polled.set(self.index);
        // Code that wakes itself forever would never let the tick end.
        if polls.get() <= polls_max.get() {
            wakers.borrow_mut()[self.index] = Some(cx.waker().clone());
            hosts.borrow_mut()[self.index].poll(cx.waker());
        }
        Poll::Pending
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if let Some(host) = self.desk.hosts.borrow_mut().get_mut(self.index) {
            host.drop_tasks();
        }
    }
}

impl Turmoil {
    /// A network of hosts with these names, and the address of each.
    pub(super) fn new<'a>(seed: u64, names: impl Iterator<Item = &'a str>) -> (Turmoil, Vec<IpAddr>) {
        let mut builder = turmoil::Builder::new();
        // Abandoned connection attempts never free their ports, so there must be enough of them.
        builder.tick_duration(TICK).rng_seed(seed).tcp_capacity(1 << 16).ephemeral_ports(10_000..=65_535);
        let sim = builder.build();
        let addresses = names.map(|name| sim.lookup(name)).collect();
        let turmoil = Turmoil { sim, desk: Rc::default(), held: BTreeMap::new(), released: BTreeSet::new() };
        (turmoil, addresses)
    }

    /// Lets a packet arrive with the next step.
    pub(super) fn release(&mut self, number: u64) {
        self.released.insert(number);
    }

    fn let_go(&mut self) {
        if self.released.is_empty() {
            return;
        }
        let Turmoil { sim, held, released, .. } = self;
        sim.links(|links| {
            for link in links {
                let Some(held) = held.get_mut(&link.pair()) else { continue };
                let mut kept = Vec::new();
                for (number, packet) in held.drain(..).zip(link) {
                    if released.remove(&number) {
                        packet.deliver();
                    } else {
                        kept.push(number);
                    }
                }
                *held = kept;
            }
        });
        released.clear();
    }
}

impl World {
    /// Hands the hosts of a new world to `turmoil`, and starts them.
    pub(super) fn enter_turmoil(&mut self) {
        let addresses: Vec<IpAddr> = self.hosts.iter().map(|host| host.address).collect();
        let polls_max = self.steps_per_instant;
        self.in_turmoil(|sim, desk| {
            desk.polls_max.set(polls_max);
            desk.wakers.borrow_mut().resize(addresses.len(), None);
            // Within a tick hosts run in this order. The host added last directs the others, and runs before them, so that an
            // order is still for the instant that it is given in.
            for (index, address) in addresses.iter().enumerate().rev() {
                let desk = desk.clone();
                sim.host(*address, move || Body::start(desk.clone(), index));
            }
            for (index, one) in addresses.iter().enumerate() {
                addresses[..index].iter().for_each(|other| sim.hold(*one, *other));
            }
        });
    }

    /// Starts the software of a host.
    pub(super) fn start_on_turmoil(&mut self, host: usize) {
        let address = self.hosts[host].address;
        self.in_turmoil(|sim, _| sim.bounce(address));
    }

    /// Drops the tasks of a host.
    pub(super) fn end_on_turmoil(&mut self, host: usize) {
        let address = self.hosts[host].address;
        self.in_turmoil(|sim, _| sim.crash(address));
    }

    /// Has `turmoil` do something to the hosts.
    fn in_turmoil<T>(&mut self, f: impl FnOnce(&mut Sim<'static>, &Rc<Desk>) -> T) -> T {
        let Fabric::Turmoil(turmoil) = &mut self.fabric else { unreachable!("only asked for on turmoil") };
        std::mem::swap(&mut self.hosts, &mut *turmoil.desk.hosts.borrow_mut());
        let out = f(&mut turmoil.sim, &turmoil.desk);
        std::mem::swap(&mut self.hosts, &mut *turmoil.desk.hosts.borrow_mut());
        out
    }

    /// As [`World::run`], tick by tick.
    pub(super) fn run_in_ticks(&mut self, until: True) -> Result<End, WorldError> {
        loop {
            self.carry_out_orders()?;
            if self.finished {
                return Ok(End::Finished);
            }
            self.hosts.iter().for_each(|host| host.machine.fire_timers());
            self.deliver();
            self.tick()?;
            self.end_stopping_hosts();
            self.collect();
            self.call_hooks();
            self.pass_panic_on();
            if self.now() >= until {
                return Ok(End::TimeUp);
            }
            self.set_now((self.now() + TICK).min(until));
        }
    }

    fn tick(&mut self) -> Result<(), WorldError> {
        self.step()?;
        let Fabric::Turmoil(turmoil) = &mut self.fabric else { unreachable!("only asked for on turmoil") };
        turmoil.let_go();
        for index in lock(&self.shared.ready).drain(..) {
            let waker = turmoil.desk.wakers.borrow_mut()[index].take();
            waker.into_iter().for_each(Waker::wake);
        }
        turmoil.desk.polls.set(0);
        // Bodies do not end and do not fail: their panics are caught where the tasks are.
        self.in_turmoil(|sim, _| sim.step()).expect("no host of a world ends by itself");
        let Fabric::Turmoil(turmoil) = &self.fabric else { unreachable!("only asked for on turmoil") };
        let (polls, last) = (turmoil.desk.polls.get(), turmoil.desk.last_polled.get());
        self.steps += polls.min(self.steps_per_instant);
        if polls > self.steps_per_instant {
            let host = self.hosts[last].machine.name.to_string();
            return Err(WorldError::Livelock { at: self.now(), host, steps: self.steps_per_instant });
        }
        Ok(())
    }

    /// Moves new packets of `turmoil` onto the links.
    pub(super) fn collect_from_turmoil(&mut self) {
        let Fabric::Turmoil(turmoil) = &mut self.fabric else { unreachable!("only asked for on turmoil") };
        let (held, packets, mut sent) = (&mut turmoil.held, &mut self.packets, Vec::new());
        turmoil.sim.links(|links| {
            for link in links {
                let held = held.entry(link.pair()).or_default();
                for packet in link.skip(held.len()) {
                    held.push(*packets);
                    sent.push((*packets, packet.pair(), contents(packet.protocol())));
                    *packets += 1;
                }
            }
        });
        for (number, (source, destination), (flags, payload)) in sent {
            let (from, to) = (self.by_address[&source.ip()], self.by_address[&destination.ip()]);
            if self.hosts[from].crashed {
                continue;
            }
            let due = self.send(from, to, number, Parcel::OnTurmoil);
            let (to, source_port) = (Arc::clone(&self.hosts[to].machine.name), source.port());
            let destination_port = destination.port();
            let event = Event::Packet { to, source_port, destination_port, flags, payload, due };
            self.hosts[from].machine.record(event);
        }
    }
}

fn contents(protocol: &Protocol) -> (&'static str, Bytes) {
    match protocol {
        Protocol::Udp(datagram) => ("UDP", datagram.0.clone()),
        Protocol::Tcp(Segment::Data(_, bytes)) => ("DATA", bytes.clone()),
        Protocol::Tcp(Segment::Syn(_)) => ("SYN", Bytes::new()),
        Protocol::Tcp(Segment::Fin(_)) => ("FIN", Bytes::new()),
        Protocol::Tcp(Segment::Rst) => ("RST", Bytes::new()),
    }
}
