//! The network of the world: moves packets from a host's kernel onto a link, and from the link into
//! another host's kernel.

use std::{
    cmp::Reverse,
    net::{IpAddr, SocketAddr},
};

use bytes::Bytes;
use turmoil_net::{NetstatState, Packet, TcpFlags, TcpSegment, Transport};

use crate::{
    conn::Side,
    fabric::Fabric,
    lock::lock,
    payload::Payload,
    proxy,
    time::True,
    timeline::World,
    trace::{Event, HostName},
};

impl World {
    /// Moves the packets that the hosts have sent onto the links.
    pub(crate) fn collect(&mut self) {
        let net = match &self.fabric {
            Fabric::Event(net) => net,
            #[cfg(feature = "turmoil")]
            Fabric::Turmoil(_) => return self.collect_from_turmoil(),
            Fabric::Real => return self.collect_from_real(),
        };
        let mut outbox = std::mem::take(&mut self.outbox);
        net.egress_all(&mut outbox);
        for packet in outbox.drain(..) {
            let (Some(&from), Some(&to)) =
                (self.by_address.get(&packet.src), self.by_address.get(&packet.dst))
            else {
                continue; // no host has this address: as on a real network, there is no answer
            };
            if self.hosts[from].crashed {
                continue;
            }
            let number = self.packets;
            self.packets += 1;
            let due = self.send(from, to, number, Payload::Packet(packet.clone()));
            let event = packet_event(&packet, self.hosts[to].machine.name.clone(), due);
            self.hosts[from].machine.record(event);
        }
        self.outbox = outbox;
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
                self.send(from, to, number, Payload::Real(conn, carried));
            }
        }
    }

    /// Puts a packet on its link; returns its arrival unless a fault interferes.
    pub(crate) fn send(&mut self, from: usize, to: usize, number: u64, payload: Payload) -> True {
        let (index, now) = (from * self.hosts.len() + to, self.now());
        let empty = self.links[index].head().is_none();
        let due = self.links[index].send(now, number, payload, &mut self.network);
        if empty {
            self.schedule(index);
        }
        due
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
            let (from, to) = (&self.hosts[from].machine.name, &self.hosts[to].machine.name);
            lock(&self.shared.trace).note(now, to, Some(from));
            match (&mut self.fabric, head.payload) {
                (Fabric::Event(_), Payload::Packet(packet)) if resets_half_open(&packet) => {}
                (Fabric::Event(net), Payload::Packet(packet)) => net.deliver(packet),
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
        let Fabric::Event(_) = &self.fabric else { return };
        let sockets = turmoil_net::netstat(self.hosts[index / self.hosts.len()].address).entries;
        self.links[index].retain(|payload| {
            let Payload::Packet(packet) = payload else { return true };
            match &packet.payload {
                Transport::Tcp(segment) if segment.flags.syn && !segment.flags.ack => {
                    sockets.iter().any(|socket| {
                        let peer = SocketAddr::new(packet.dst, segment.dst_port);
                        socket.local.port() == segment.src_port && socket.peer == Some(peer)
                    })
                }
                _ => true,
            }
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
        let net = match &self.fabric {
            Fabric::Event(net) => net,
            #[cfg(feature = "turmoil")]
            Fabric::Turmoil(_) => {
                let wires = lock(&self.hosts[host].machine.on_turmoil.wires).clone();
                let wires = wires.iter().filter_map(std::sync::Weak::upgrade);
                return wires.filter(|wire| which(wire.peer())).for_each(|wire| wire.abort());
            }
            Fabric::Real => unreachable!("the connections of real time were closed above"),
        };
        let sockets = turmoil_net::netstat(self.hosts[host].address).entries;
        for (local, peer) in sockets.into_iter().filter_map(|socket| Some((socket.local, socket.peer?))) {
            let reset = reset(peer, local);
            if which(peer.ip()) && !resets_half_open(&reset) {
                net.deliver(reset);
            }
        }
    }
}

/// Returns true if a packet would reset a connection that its receiver has not finished opening.
/// The receiving kernel would keep such a socket, closed but bound, beyond the host's end: no
/// software owns it, and closing the listener closes only sockets that are half open. No one could
/// listen at that port again. A socket that is left half open is closed with the listener.
fn resets_half_open(packet: &Packet) -> bool {
    let Transport::Tcp(segment) = &packet.payload else { return false };
    let peer = SocketAddr::new(packet.src, segment.src_port);
    segment.flags.rst
        && turmoil_net::netstat(packet.dst).entries.iter().any(|socket| {
            socket.local.port() == segment.dst_port
                && socket.peer == Some(peer)
                && socket.state == Some(NetstatState::SynReceived)
        })
}

/// Returns a reset as the kernel of `from` would send it to `to`.
fn reset(from: SocketAddr, to: SocketAddr) -> Packet {
    let flags = TcpFlags { rst: true, ..TcpFlags::default() };
    let (src_port, dst_port) = (from.port(), to.port());
    let segment = TcpSegment { src_port, dst_port, seq: 0, ack: 0, flags, window: 0, payload: Bytes::new() };
    Packet { src: from.ip(), dst: to.ip(), ttl: 64, payload: Transport::Tcp(segment) }
}

fn packet_event(packet: &Packet, to: HostName, due: True) -> Event {
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
