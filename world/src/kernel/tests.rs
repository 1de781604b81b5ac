//! Two kernels that exchange packets by hand.

use std::{
    io::ErrorKind,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Wake,
};

use super::*;

const SERVER: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 2);
const PORT: u16 = 7;

/// Counts its wake-ups.
#[derive(Default)]
struct Counter(AtomicUsize);

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A server that listens at [`PORT`], and a client.
struct Pair {
    server: Kernel,
    client: Kernel,
    woken: Arc<Counter>,
}

impl Pair {
    fn new() -> Pair {
        let mut server = Kernel::new(SERVER);
        assert_eq!(server.listen(PORT).expect("it is free"), PORT);
        Pair { server, client: Kernel::new(CLIENT), woken: Arc::default() }
    }

    fn waker(&self) -> Waker {
        self.woken.clone().into()
    }

    /// Lets the packets of one kernel arrive at the other; returns their names and sizes.
    fn pass(from: &mut Kernel, to: &mut Kernel) -> Vec<(&'static str, usize)> {
        let mut packets = Vec::new();
        from.collect(&mut packets);
        assert!(!from.is_busy());
        let names = packets.iter().map(|packet| (packet.flags(), packet.payload.len())).collect();
        packets.into_iter().for_each(|packet| to.deliver(packet));
        while let Some(waker) = to.take_woken() {
            waker.wake();
        }
        names
    }

    /// Passes packets until there are none; returns the names of those to the server and of those
    /// back.
    fn settle(&mut self) -> [String; 2] {
        let (mut there, mut back) = (Vec::new(), Vec::new());
        while self.client.is_busy() || self.server.is_busy() {
            there.extend(Pair::pass(&mut self.client, &mut self.server));
            back.extend(Pair::pass(&mut self.server, &mut self.client));
        }
        [there, back].map(|way| way.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" "))
    }

    /// Opens a connection; returns both ends, the client's first.
    fn open(&mut self) -> (Fd, Fd) {
        let fd = self.client.connect(SocketAddrV4::new(SERVER, PORT)).expect("a port is free");
        assert_eq!(self.settle(), ["SYN ACK", "SYN ACK"].map(str::to_owned));
        let waker = self.waker();
        let cx = Context::from_waker(&waker);
        assert!(matches!(self.client.poll_connected(fd, &cx), Poll::Ready(Ok(()))));
        let Poll::Ready((accepted, peer)) = self.server.poll_accept(PORT, &cx) else { panic!("it is ready") };
        assert_eq!(peer, self.client.ends_of(fd).expect("it is open").0);
        (fd, accepted)
    }
}

fn write(kernel: &mut Kernel, fd: Fd, bytes: &[u8]) -> Poll<io::Result<usize>> {
    kernel.poll_write(fd, &Context::from_waker(Waker::noop()), bytes)
}

/// Reads at most `most` bytes: their number, an error, or nothing yet.
fn read(kernel: &mut Kernel, fd: Fd, waker: &Waker, most: usize) -> Option<Result<Vec<u8>, ErrorKind>> {
    let mut buffer = vec![0; most];
    let mut buffer = ReadBuf::new(&mut buffer);
    match kernel.poll_read(fd, &Context::from_waker(waker), &mut buffer) {
        Poll::Pending => None,
        Poll::Ready(read) => Some(read.map(|()| buffer.filled().to_vec()).map_err(|error| error.kind())),
    }
}

#[test]
fn bytes_arrive_in_order_and_wake_their_reader_once() {
    let mut pair = Pair::new();
    let (fd, accepted) = pair.open();
    let waker = pair.waker();
    assert_eq!(read(&mut pair.server, accepted, &waker, 9), None);
    assert_eq!(read(&mut pair.server, accepted, &waker, 9), None);
    for part in [b"one", b"two"] {
        assert!(matches!(write(&mut pair.client, fd, part), Poll::Ready(Ok(3))));
    }
    // All bytes that are written before a collection leave in one packet.
    assert_eq!(pair.settle(), ["DATA", "ACK"].map(str::to_owned));
    assert_eq!(pair.woken.0.load(Ordering::Relaxed), 1);
    assert_eq!(read(&mut pair.server, accepted, &waker, 4), Some(Ok(b"onet".to_vec())));
    assert_eq!(read(&mut pair.server, accepted, &waker, 9), Some(Ok(b"wo".to_vec())));
    assert_eq!(read(&mut pair.server, accepted, &waker, 9), None);
}

#[test]
fn a_window_of_bytes_is_underway_and_the_rest_waits() {
    let mut pair = Pair::new();
    let (fd, accepted) = pair.open();
    let big = vec![b'x'; 100_000];
    assert!(matches!(write(&mut pair.client, fd, &big), Poll::Ready(Ok(65_536))));
    assert!(write(&mut pair.client, fd, &big).is_pending());
    // 59,960 bytes fit into a packet; the window has 65,535; the last byte waits for room.
    let names = Pair::pass(&mut pair.client, &mut pair.server);
    assert_eq!(names, [("DATA", 59_960), ("DATA", 5_575)]);
    assert!(!pair.client.is_busy());
    Pair::pass(&mut pair.server, &mut pair.client);
    assert_eq!(Pair::pass(&mut pair.client, &mut pair.server), [("DATA", 1)]);
    let all = read(&mut pair.server, accepted, Waker::noop(), 100_000);
    assert_eq!(all, Some(Ok(vec![b'x'; 65_536])));
}

#[test]
fn a_connection_ends_when_both_ends_have_and_is_forgotten() {
    let mut pair = Pair::new();
    let (fd, accepted) = pair.open();
    assert!(matches!(write(&mut pair.client, fd, b"last"), Poll::Ready(Ok(4))));
    pair.client.close(fd);
    assert_eq!(pair.settle(), ["DATA FIN", "ACK ACK"].map(str::to_owned));
    assert_eq!(read(&mut pair.server, accepted, Waker::noop(), 9), Some(Ok(b"last".to_vec())));
    assert_eq!(read(&mut pair.server, accepted, Waker::noop(), 9), Some(Ok(Vec::new())));
    // The server may still write.
    assert!(matches!(write(&mut pair.server, accepted, b"late"), Poll::Ready(Ok(4))));
    pair.server.shut_down(accepted).expect("it is open");
    let broken = write(&mut pair.server, accepted, b"later");
    assert!(matches!(broken, Poll::Ready(Err(error)) if error.kind() == ErrorKind::BrokenPipe));
    pair.settle();
    pair.server.close(accepted);
    pair.settle();
    assert_eq!((pair.client.sockets(), pair.server.sockets()), (0, 1));
}

#[test]
fn bytes_that_were_not_read_are_answered_by_a_reset() {
    let mut pair = Pair::new();
    let (fd, accepted) = pair.open();
    assert!(matches!(write(&mut pair.client, fd, b"unread"), Poll::Ready(Ok(6))));
    pair.settle();
    pair.server.close(accepted);
    assert_eq!(pair.settle(), ["", "RST"].map(str::to_owned));
    assert_eq!(read(&mut pair.client, fd, Waker::noop(), 9), Some(Err(ErrorKind::ConnectionReset)));
    pair.client.close(fd);
    assert_eq!((pair.client.sockets(), pair.server.sockets()), (0, 1));
}

#[test]
fn a_port_without_listener_refuses_and_one_in_use_is_not_given_twice() {
    let mut pair = Pair::new();
    let fd = pair.client.connect(SocketAddrV4::new(SERVER, 8)).expect("a port is free");
    assert_eq!(pair.settle(), ["SYN", "RST"].map(str::to_owned));
    let refused = pair.client.poll_connected(fd, &Context::from_waker(Waker::noop()));
    assert!(matches!(refused, Poll::Ready(Err(error)) if error.kind() == ErrorKind::ConnectionRefused));
    assert_eq!(pair.server.listen(PORT).map_err(|error| error.kind()), Err(ErrorKind::AddrInUse));
    // Any free port will do; the port of an accepted connection is in use until it ends.
    assert_eq!(pair.server.listen(0).expect("one is free"), *OWN_PORTS.start());
    let (fd, accepted) = pair.open();
    pair.server.close_listener(PORT);
    assert_eq!(pair.server.listen(PORT).map_err(|error| error.kind()), Err(ErrorKind::AddrInUse));
    pair.client.close(fd);
    pair.server.close(accepted);
    pair.settle();
    assert_eq!(pair.server.listen(PORT).expect("it is free again"), PORT);
}

#[test]
fn a_closed_listener_resets_what_was_not_accepted() {
    let mut pair = Pair::new();
    let remote = SocketAddrV4::new(SERVER, PORT);
    let ready = pair.client.connect(remote).expect("a port is free");
    pair.settle();
    let half_open = pair.client.connect(remote).expect("a port is free");
    Pair::pass(&mut pair.client, &mut pair.server);
    let request = pair.client.ends_of(half_open).expect("it is open").0;
    assert!(pair.server.resets_half_open(&Packet::reset(request, remote)));
    pair.server.close_listener(PORT);
    let names: Vec<_> =
        Pair::pass(&mut pair.server, &mut pair.client).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["SYN ACK", "RST", "RST"]);
    for fd in [ready, half_open] {
        assert_eq!(read(&mut pair.client, fd, Waker::noop(), 9), Some(Err(ErrorKind::ConnectionReset)));
    }
    assert_eq!(pair.server.sockets(), 0);
}

#[test]
fn no_more_connections_wait_than_the_backlog_has_room_for() {
    let mut pair = Pair::new();
    for _ in 0..BACKLOG + 5 {
        pair.client.connect(SocketAddrV4::new(SERVER, PORT)).expect("a port is free");
    }
    let names = Pair::pass(&mut pair.client, &mut pair.server);
    assert_eq!(names.len(), BACKLOG + 5);
    assert_eq!(Pair::pass(&mut pair.server, &mut pair.client).len(), BACKLOG);
}

#[test]
fn a_host_talks_to_itself_over_no_link() {
    let mut kernel = Kernel::new(SERVER);
    kernel.listen(PORT).expect("it is free");
    let mut out = Vec::new();
    for address in [SERVER, Ipv4Addr::LOCALHOST] {
        let fd = kernel.connect(SocketAddrV4::new(address, PORT)).expect("a port is free");
        kernel.collect(&mut out);
        let cx = Context::from_waker(Waker::noop());
        let Poll::Ready((accepted, _)) = kernel.poll_accept(PORT, &cx) else { panic!("it is ready") };
        assert!(matches!(write(&mut kernel, fd, b"hello"), Poll::Ready(Ok(5))));
        kernel.collect(&mut out);
        assert_eq!(read(&mut kernel, accepted, Waker::noop(), 9), Some(Ok(b"hello".to_vec())));
    }
    assert!(out.is_empty());
}
