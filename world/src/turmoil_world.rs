//! A world on `turmoil`: ticks of one millisecond under the same schedule.

use std::{net::IpAddr, rc::Rc, sync::Arc, task::Waker};

use bytes::Bytes;
use turmoil::{Protocol, Segment, Sim};

use crate::{
    fabric::Fabric,
    lock::lock,
    payload::Payload,
    time::True,
    timeline::{End, World, WorldError},
    trace::{Arrival, Event},
    turmoil::{Body, Desk, TICK},
};

impl World {
    /// Moves the hosts of a new world to `turmoil`, and starts them.
    pub(crate) fn enter_turmoil(&mut self) {
        let addresses: Vec<IpAddr> = self.hosts.iter().map(|host| host.address).collect();
        let polls_max = self.steps_per_instant;
        self.in_turmoil(|sim, desk| {
            desk.polls_max.set(polls_max);
            desk.wakers.borrow_mut().resize(addresses.len(), None);
            // Within a tick hosts run in this order. The host added last controls the others. It
            // runs before them, so that its orders are still executed in the instant for which they
            // are given.
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
    pub(crate) fn start_on_turmoil(&mut self, host: usize) {
        let address = self.hosts[host].address;
        self.in_turmoil(|sim, _| sim.bounce(address));
    }

    /// Drops the tasks of a host.
    pub(crate) fn end_on_turmoil(&mut self, host: usize) {
        let address = self.hosts[host].address;
        self.in_turmoil(|sim, _| sim.crash(address));
    }

    /// Lends the hosts to `turmoil` for one call.
    fn in_turmoil<T>(&mut self, f: impl FnOnce(&mut Sim<'static>, &Rc<Desk>) -> T) -> T {
        let Fabric::Turmoil(turmoil) = &mut self.fabric else { unreachable!("only asked for on turmoil") };
        std::mem::swap(&mut self.hosts, &mut *turmoil.desk.hosts.borrow_mut());
        let out = f(&mut turmoil.sim, &turmoil.desk);
        std::mem::swap(&mut self.hosts, &mut *turmoil.desk.hosts.borrow_mut());
        out
    }

    /// Like [`World::run`], tick by tick.
    pub(crate) fn run_in_ticks(&mut self, until: True) -> Result<End, WorldError> {
        loop {
            self.apply_due_verbs()?;
            if self.finished {
                return Ok(End::Finished);
            }
            self.fire_timers();
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
        // Bodies neither end nor fail: panics are caught in the tasks.
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
    pub(crate) fn collect_from_turmoil(&mut self) {
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
            let Arrival { due, drawn } = self.arrival(from, to);
            self.send(from, to, due, number, Payload::OnTurmoil);
            let (to, source_port) = (Arc::clone(&self.hosts[to].machine.name), source.port());
            let destination_port = destination.port();
            let event = Event::Packet { to, source_port, destination_port, flags, payload, due, drawn };
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
