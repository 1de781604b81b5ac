//! The network of the world: moves packets from a host's kernel onto a link, and from the link into
//! another host's kernel.

use std::{cmp::Reverse, net::IpAddr};

use crate::{
    conn::Side,
    fabric::Fabric,
    lock::lock,
    packet::{Kind, Packet},
    payload::Payload,
    proxy,
    time::True,
    timeline::World,
    trace::{Arrival, Sent},
};

impl World {
    /// Moves the packets that the hosts have sent onto the links.
    pub(crate) fn collect(&mut self) {
        match &self.fabric {
            Fabric::Event => {}
            #[cfg(feature = "turmoil")]
            Fabric::Turmoil(_) => return self.collect_from_turmoil(),
            Fabric::Real => return self.collect_from_real(),
        }
        let mut busy = std::mem::take(&mut *lock(&self.shared.busy));
        busy.sort_unstable();
        for &from in &busy {
            let mut outbox = std::mem::take(&mut self.outbox);
            self.hosts[from].machine.kernel(|kernel| {
                kernel.is_known_busy = false;
                kernel.collect(&mut outbox);
            });
            outbox.drain(..).for_each(|packet| self.put_on_link(from, packet));
            self.outbox = outbox;
        }
        busy.clear();
        let mut since = lock(&self.shared.busy);
        busy.append(&mut since);
        *since = busy; // its memory serves again
    }

    fn put_on_link(&mut self, from: usize, packet: Packet) {
        let Some(&to) = self.by_address.get(&IpAddr::V4(*packet.to.ip())) else {
            return; // no host has this address: as on a real network, there is no answer
        };
        if self.hosts[from].crashed {
            return;
        }
        let number = self.packets;
        self.packets += 1;
        let arrival = self.arrival(from, to);
        let (name, machine) = (&self.hosts[to].machine.name, &self.hosts[from].machine);
        let ports = (packet.from.port(), packet.to.port());
        machine.record_sent(&Sent {
            to: name,
            ports,
            flags: packet.flags(),
            payload: &packet.payload,
            arrival,
        });
        self.send(from, to, arrival.due, number, Payload::Packet(packet));
    }

    /// Moves the payloads of connections in real time onto the links.
    fn collect_from_real(&mut self) {
        for (conn, side, carried) in self.shared.sent.take() {
            let (from, to) = match side {
                Side::Far => (conn.from, conn.to),
                Side::Near => (conn.to, conn.from),
            };
            if !self.hosts[from].crashed {
                let number = self.packets;
                self.packets += 1;
                let due = self.arrival(from, to).due;
                self.send(from, to, due, number, Payload::Real(conn, carried));
            }
        }
    }

    /// Draws the arrival of a packet unless a fault interferes, for [`World::send`].
    pub(crate) fn arrival(&mut self, from: usize, to: usize) -> Arrival {
        let (index, now) = (from * self.hosts.len() + to, self.now());
        self.links[index].arrival(now, &mut self.network)
    }

    /// Puts a packet on its link, with the arrival that was drawn for it.
    pub(crate) fn send(&mut self, from: usize, to: usize, due: True, number: u64, payload: Payload) {
        let index = from * self.hosts.len() + to;
        let empty = self.links[index].head().is_none();
        self.links[index].send(due, number, payload);
        if empty {
            self.schedule(index);
        }
    }

    fn is_open(&self, index: usize) -> bool {
        let link = &self.links[index];
        !link.is_cut() && self.hosts[index % self.hosts.len()].reachable()
    }

    fn schedule(&mut self, index: usize) {
        if let Some((due, number)) = self.links[index].head()
            && self.is_open(index)
        {
            self.due.push(Reverse((due, number, index)));
        }
    }

    /// Delivers the packets that have arrived by now.
    pub(crate) fn deliver(&mut self) {
        let now = self.now();
        while let Some(&Reverse((due, number, index))) = self.due.peek() {
            if due > now {
                return;
            }
            self.due.pop();
            if self.links[index].head() != Some((due, number)) || !self.is_open(index) {
                continue; // out of date, or blocked: reopening schedules it anew
            }
            let head = self.links[index].take().expect("it has a head");
            self.steps += 1;
            let (from, to) = (index / self.hosts.len(), index % self.hosts.len());
            let (from, to_name) = (&self.hosts[from].machine.name, &self.hosts[to].machine.name);
            lock(&self.shared.trace).note(now, to_name, Some(from));
            match (&mut self.fabric, head.payload) {
                (Fabric::Event, Payload::Packet(packet)) => self.deliver_to(to, packet),
                #[cfg(feature = "turmoil")]
                (Fabric::Turmoil(turmoil), _) => turmoil.release(head.number),
                (Fabric::Real, Payload::Real(conn, carried)) => match index % self.hosts.len() == conn.to {
                    true => {
                        if let Some(arrived) = conn.arrive_far(carried) {
                            proxy::start(self.shared.clone(), conn, arrived);
                        }
                    }
                    false => conn.arrive_near(carried),
                },
                _ => unreachable!("no such packet is ever sent"),
            }
            self.schedule(index);
        }
    }

    /// Releases the waiting packets of a link, unless it is still blocked.
    pub(crate) fn reopen(&mut self, index: usize) {
        if self.is_open(index) {
            let now = self.now();
            if self.links[index].is_late(now) {
                self.forget_given_up(index);
            }
            self.links[index].reopen(now, &mut self.network);
            self.schedule(index);
        }
    }

    /// Drops waiting requests of abandoned connection attempts. Waiting packets stand for
    /// retransmissions by the kernel, and no kernel retransmits for an abandoned attempt.
    fn forget_given_up(&mut self, index: usize) {
        // `turmoil` itself drops such a request on arrival.
        let Fabric::Event = &self.fabric else { return };
        let kernel = lock(&self.hosts[index / self.hosts.len()].machine.kernel);
        self.links[index].retain(|payload| {
            let Payload::Packet(packet) = payload else { return true };
            packet.kind != Kind::Syn || kernel.is_connected(packet.from.port(), packet.to)
        });
    }

    /// Drops the waiting packets of a crashed kernel, which cannot retransmit them.
    pub(crate) fn forget_waiting_from(&mut self, host: usize) {
        for index in host * self.hosts.len()..(host + 1) * self.hosts.len() {
            if !self.is_open(index) {
                self.links[index].clear();
            }
        }
    }

    pub(crate) fn reopen_all_to(&mut self, host: usize) {
        for from in 0..self.hosts.len() {
            self.reopen(from * self.hosts.len() + host);
        }
    }

    /// Aborts the end at `host` of every connection whose peer `which` selects.
    pub(crate) fn abort_connections(&self, host: usize, which: impl Fn(IpAddr) -> bool) {
        if let Fabric::Real = self.fabric {
            let conns = lock(&self.shared.real).conns.clone();
            for conn in conns.iter().filter_map(std::sync::Weak::upgrade) {
                if conn.from == host && which(self.hosts[conn.to].address) {
                    conn.abort(Side::Near);
                }
                if conn.to == host && which(self.hosts[conn.from].address) {
                    conn.abort(Side::Far);
                }
            }
            return;
        }
        match &self.fabric {
            Fabric::Event => {}
            #[cfg(feature = "turmoil")]
            Fabric::Turmoil(_) => {
                let wires = lock(&self.hosts[host].machine.on_turmoil.wires).clone();
                let wires = wires.iter().filter_map(std::sync::Weak::upgrade);
                return wires.filter(|wire| which(wire.peer())).for_each(|wire| wire.abort());
            }
            Fabric::Real => unreachable!("the connections of real time were closed above"),
        }
        let ends = lock(&self.hosts[host].machine.kernel).ends();
        for (local, peer) in ends {
            if which(IpAddr::V4(*peer.ip())) && !local.ip().is_loopback() {
                self.deliver_to(host, Packet::reset(peer, local));
            }
        }
    }

    /// Hands a packet to the kernel of a host. A reset of a connection that is not yet established
    /// is lost: the kernel would keep such a connection, closed but bound, beyond the host's end,
    /// because no software owns it, and closing the listener closes only those that are half open.
    /// No one could listen at that port again.
    fn deliver_to(&self, host: usize, packet: Packet) {
        self.hosts[host].machine.kernel(|kernel| {
            if !kernel.resets_half_open(&packet) {
                kernel.deliver(packet);
            }
        });
    }
}
