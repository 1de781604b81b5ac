//! The TCP of a host in virtual time: its sockets and their connections. It has no clock: the world
//! collects what it sends, and delivers what arrives. Links keep order and lose nothing but what
//! dies with a host, so nothing is ever sent twice.
//!
//! What a kernel does costs time in proportion to the packets and not to the sockets: it knows
//! which connections have something to send.

mod connection;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    io,
    net::{Ipv4Addr, SocketAddrV4},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use tokio::io::ReadBuf;

use crate::packet::{Kind, Packet};
use connection::{Connection, State, register};

/// The ports of connections that a host opens.
const OWN_PORTS: std::ops::RangeInclusive<u16> = 49_152..=65_535;

/// The most connections of a port that wait to be accepted.
const BACKLOG: usize = 1_024;

/// The number of a socket on its host. Numbers are never used twice.
pub(crate) type Fd = u64;

/// A socket that listens.
#[derive(Debug)]
struct Listener {
    /// The established connections that no code has accepted.
    ready: VecDeque<Fd>,
    waiting: Vec<Waker>,
}

/// The kernel of a host.
#[derive(Debug)]
pub(crate) struct Kernel {
    address: Ipv4Addr,
    listeners: BTreeMap<u16, Listener>,
    connections: BTreeMap<Fd, Connection>,
    /// The connections by local and remote address.
    by_ends: BTreeMap<(SocketAddrV4, SocketAddrV4), Fd>,
    /// The number of sockets of each port in use.
    ports: BTreeMap<u16, usize>,
    next_fd: Fd,
    next_port: u16,
    next_sequence: u32,
    outbound: VecDeque<Packet>,
    /// The connections that may have something to send.
    sending: BTreeSet<Fd>,
    /// The connections that are over, and forgotten with the next collection.
    over: Vec<Fd>,
    /// The tasks to wake as soon as the kernel is no longer borrowed.
    woken: VecDeque<Waker>,
    /// Set while the world knows that there is something to collect.
    pub(crate) is_known_busy: bool,
}

impl Kernel {
    pub(crate) fn new(address: Ipv4Addr) -> Kernel {
        Kernel {
            address,
            listeners: BTreeMap::new(),
            connections: BTreeMap::new(),
            by_ends: BTreeMap::new(),
            ports: BTreeMap::new(),
            next_fd: 0,
            next_port: *OWN_PORTS.start(),
            next_sequence: 0x0100_0000,
            outbound: VecDeque::new(),
            sending: BTreeSet::new(),
            over: Vec::new(),
            woken: VecDeque::new(),
            is_known_busy: false,
        }
    }

    /// Returns true if [`Kernel::collect`] has something to do.
    pub(crate) fn is_busy(&self) -> bool {
        !self.outbound.is_empty() || !self.sending.is_empty() || !self.over.is_empty()
    }

    /// Takes the next task to wake.
    pub(crate) fn take_woken(&mut self) -> Option<Waker> {
        self.woken.pop_front()
    }

    /// Returns the number of sockets that are open.
    pub(crate) fn sockets(&self) -> usize {
        self.listeners.len() + self.open().count()
    }

    fn open(&self) -> impl Iterator<Item = &Connection> {
        self.connections.values().filter(|connection| connection.state != State::Closed)
    }

    /// Returns the ends of every connection, the local one first.
    pub(crate) fn ends(&self) -> Vec<(SocketAddrV4, SocketAddrV4)> {
        self.open().map(|connection| (connection.local, connection.remote)).collect()
    }

    /// Returns true if a port of this host has, or asks for, a connection to `remote`.
    pub(crate) fn is_connected(&self, port: u16, remote: SocketAddrV4) -> bool {
        self.open().any(|connection| connection.local.port() == port && connection.remote == remote)
    }

    /// Returns true if this packet would reset a connection that is not yet established.
    pub(crate) fn resets_half_open(&self, packet: &Packet) -> bool {
        packet.kind == Kind::Rst
            && self.connections.values().any(|connection| {
                connection.local.port() == packet.to.port()
                    && connection.remote == packet.from
                    && connection.state == State::SynReceived
            })
    }

    fn take_port(&mut self) -> io::Result<u16> {
        let first = self.next_port;
        loop {
            let port = self.next_port;
            self.next_port = if port == *OWN_PORTS.end() { *OWN_PORTS.start() } else { port + 1 };
            if !self.ports.contains_key(&port) {
                return Ok(port);
            }
            if self.next_port == first {
                return Err(io::ErrorKind::AddrInUse.into());
            }
        }
    }

    fn free_port(&mut self, port: u16) {
        if let Some(count) = self.ports.get_mut(&port) {
            *count -= 1;
            if *count == 0 {
                self.ports.remove(&port);
            }
        }
    }

    fn insert(&mut self, local: SocketAddrV4, remote: SocketAddrV4, state: State) -> (Fd, &mut Connection) {
        let (fd, sequence) = (self.next_fd, self.next_sequence);
        self.next_fd += 1;
        // A step so large that the numbers of successive connections do not meet.
        self.next_sequence = sequence.wrapping_add(0x1_0000);
        *self.ports.entry(local.port()).or_default() += 1;
        self.by_ends.insert((local, remote), fd);
        let connection = Connection::new(local, remote, state, sequence);
        (fd, self.connections.entry(fd).or_insert(connection))
    }

    fn remove(&mut self, fd: Fd) {
        let Some(connection) = self.connections.remove(&fd) else { return };
        let ends = (connection.local, connection.remote);
        if self.by_ends.get(&ends) == Some(&fd) {
            self.by_ends.remove(&ends);
        }
        self.sending.remove(&fd);
        self.free_port(connection.local.port());
    }

    /// Listens on a port, or on any if it is 0; returns the port.
    ///
    /// # Errors
    /// `AddrInUse` if a socket has the port.
    pub(crate) fn listen(&mut self, port: u16) -> io::Result<u16> {
        let port = if port == 0 { self.take_port()? } else { port };
        if self.ports.contains_key(&port) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        self.ports.insert(port, 1);
        self.listeners.insert(port, Listener { ready: VecDeque::new(), waiting: Vec::new() });
        Ok(port)
    }

    /// Returns the next connection of a listening port, and the address of its other end.
    pub(crate) fn poll_accept(&mut self, port: u16, cx: &Context<'_>) -> Poll<(Fd, SocketAddrV4)> {
        let Some(listener) = self.listeners.get_mut(&port) else { return Poll::Pending };
        let Some(fd) = listener.ready.pop_front() else {
            register(&mut listener.waiting, cx);
            return Poll::Pending;
        };
        Poll::Ready((fd, self.connections[&fd].remote))
    }

    /// Closes a listening port, and resets the connections that no code has accepted.
    pub(crate) fn close_listener(&mut self, port: u16) {
        let Some(listener) = self.listeners.remove(&port) else { return };
        let half_open = self.connections.iter().filter(|(_, connection)| {
            connection.state == State::SynReceived && connection.local.port() == port
        });
        let half_open: Vec<Fd> = half_open.map(|(fd, _)| *fd).collect();
        for fd in listener.ready.into_iter().chain(half_open) {
            if let Some(connection) = self.connections.get(&fd) {
                self.outbound.push_back(connection.packet(Kind::Rst, Bytes::new()));
                self.remove(fd);
            }
        }
        self.free_port(port);
    }

    /// Asks for a connection to `remote`.
    ///
    /// # Errors
    /// `AddrInUse` if all ports are in use.
    pub(crate) fn connect(&mut self, remote: SocketAddrV4) -> io::Result<Fd> {
        let address = if remote.ip().is_loopback() { Ipv4Addr::LOCALHOST } else { self.address };
        let local = SocketAddrV4::new(address, self.take_port()?);
        let (fd, connection) = self.insert(local, remote, State::SynSent);
        let mut request = connection.packet(Kind::Syn, Bytes::new());
        request.sequence = request.sequence.wrapping_sub(1);
        self.outbound.push_back(request);
        Ok(fd)
    }

    /// Resolves when a connection that was asked for is established.
    pub(crate) fn poll_connected(&mut self, fd: Fd, cx: &Context<'_>) -> Poll<io::Result<()>> {
        self.connection(fd)?.poll_connected(cx)
    }

    fn connection(&mut self, fd: Fd) -> io::Result<&mut Connection> {
        self.connections.get_mut(&fd).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Returns the addresses of both ends, the local one first.
    pub(crate) fn ends_of(&self, fd: Fd) -> io::Result<(SocketAddrV4, SocketAddrV4)> {
        let connection = self.connections.get(&fd).ok_or(io::ErrorKind::NotFound)?;
        Ok((connection.local, connection.remote))
    }

    /// Reads what has arrived.
    pub(crate) fn poll_read(
        &mut self,
        fd: Fd,
        cx: &Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.connection(fd)?.poll_read(cx, buf).map_ok(|reopened| self.outbound.extend(reopened))
    }

    /// Accepts bytes to send.
    pub(crate) fn poll_write(&mut self, fd: Fd, cx: &Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = self.connection(fd)?.poll_write(cx, bytes);
        if written.is_ready() {
            self.sending.insert(fd);
        }
        written
    }

    /// Ends the direction of this host once all that was written is sent.
    pub(crate) fn shut_down(&mut self, fd: Fd) -> io::Result<()> {
        self.connection(fd)?.shut_down()?;
        self.sending.insert(fd);
        Ok(())
    }

    /// Closes a connection that no code owns any more: by a reset if it has bytes that were not
    /// read, else after all that was written is sent.
    pub(crate) fn close(&mut self, fd: Fd) {
        let Some(connection) = self.connections.get_mut(&fd) else { return };
        match connection.state {
            State::Closed | State::SynSent | State::SynReceived => self.remove(fd),
            _ if connection.is_unread() => {
                self.outbound.push_back(connection.packet(Kind::Rst, Bytes::new()));
                self.remove(fd);
            }
            _ => {
                connection.dropped = true;
                connection.shut_down().expect("a reset connection is closed");
                self.sending.insert(fd);
            }
        }
    }

    /// Takes in a packet. One that no connection and no listener expects is answered by a reset.
    pub(crate) fn deliver(&mut self, packet: Packet) {
        let Some(&fd) = self.by_ends.get(&(packet.to, packet.from)) else {
            match packet.kind {
                Kind::Rst => {}
                Kind::Syn if self.listeners.contains_key(&packet.to.port()) => self.admit(&packet),
                _ => self.outbound.push_back(Packet::reset(packet.to, packet.from)),
            }
            return;
        };
        let Some(connection) = self.connections.get_mut(&fd) else { return };
        match (connection.state, packet.kind) {
            (_, Kind::Rst) => connection.abort(&mut self.woken),
            (State::SynSent, Kind::SynAck) => {
                let answer = connection.established(&packet, &mut self.woken);
                self.outbound.push_back(answer);
            }
            (State::SynReceived, Kind::Data | Kind::Fin) => {
                if connection.confirmed(&packet)
                    && let Some(listener) = self.listeners.get_mut(&packet.to.port())
                {
                    listener.ready.push_back(fd);
                    self.woken.extend(listener.waiting.drain(..));
                }
            }
            (State::Closed | State::SynSent | State::SynReceived, _) => {}
            _ => {
                let answer = connection.receive(packet, &mut self.woken);
                self.outbound.extend(answer);
                if connection.has_more() {
                    self.sending.insert(fd);
                }
            }
        }
        if connection.is_over() {
            self.over.push(fd);
        }
    }

    /// Accepts a request for a connection, unless too many wait.
    fn admit(&mut self, request: &Packet) {
        let half_open = |connection: &&Connection| {
            connection.state == State::SynReceived && connection.local == request.to
        };
        let ready = self.listeners.get(&request.to.port()).map_or(0, |listener| listener.ready.len());
        if self.connections.len() >= BACKLOG
            && ready + self.connections.values().filter(half_open).count() >= BACKLOG
        {
            return;
        }
        let (_, connection) = self.insert(request.to, request.from, State::SynReceived);
        let answer = connection.accept(request);
        self.outbound.push_back(answer);
    }

    /// Appends all packets that leave this host to `out`, and delivers those to itself.
    pub(crate) fn collect(&mut self, out: &mut Vec<Packet>) {
        loop {
            while let Some(fd) = self.sending.pop_first() {
                let Some(connection) = self.connections.get_mut(&fd) else { continue };
                self.outbound.extend(std::iter::from_fn(|| connection.send()));
            }
            if self.outbound.is_empty() {
                break;
            }
            // Answers of this host to itself wait for the next turn.
            for _ in 0..self.outbound.len() {
                let Some(packet) = self.outbound.pop_front() else { break };
                if packet.to.ip().is_loopback() || *packet.to.ip() == self.address {
                    self.deliver(packet);
                } else {
                    out.push(packet);
                }
            }
        }
        for fd in std::mem::take(&mut self.over) {
            if self.connections.get(&fd).is_some_and(Connection::is_over) {
                self.remove(fd);
            }
        }
    }
}
