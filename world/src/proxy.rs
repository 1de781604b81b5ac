//! The far end of a [connection](crate::conn) in real time: a proxy between the links of the world
//! and a real socket.
//!
//! To servers it speaks their [protocol](Protocol), if the world has one. It splits the client's
//! bytes into requests, so that message rules apply to single requests. It counts the replies, so
//! that a rule about one reply does not affect earlier replies.

use std::{
    collections::VecDeque, future::pending, io, net::SocketAddr, pin::pin, sync::Arc, sync::atomic::Ordering,
};

use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc::UnboundedReceiver,
    time::Instant,
};

use crate::{
    conn::{Carried, Conn, Dialed, Side},
    fate::{Break, Fate},
    lock::lock,
    machine::{Machine, Shared},
    protocol::{Protocol, Request},
    trace::HostName,
};

/// The size in bytes of one read from a server.
const READ: usize = 16 << 10;

/// Starts the far end of a connection as a task of no host: a kernel continues while its host's
/// software is stopped.
#[expect(clippy::disallowed_methods, reason = "only in real time, and the task of no host")]
pub(crate) fn start(shared: Arc<Shared>, conn: Arc<Conn>, arrived: UnboundedReceiver<Carried>) {
    tokio::spawn(async move {
        let mut arrived = arrived;
        match open(&shared, &conn, &mut arrived).await {
            Some(Ok((stream, is_server))) => carry(shared, conn, arrived, stream, is_server).await,
            Some(Err(error)) => conn.send(Side::Near, Carried::Refused(error.kind())),
            None => {}
        }
    });
}

/// Connects to the listener once there is one. Returns the stream, and true if the listener is a
/// server process; `None` if the attempt was given up.
async fn open(
    shared: &Shared,
    conn: &Arc<Conn>,
    arrived: &mut UnboundedReceiver<Carried>,
) -> Option<io::Result<(TcpStream, bool)>> {
    let listening = lock(&shared.real).listening.clone();
    let (address, is_server) = loop {
        let heard = listening.notified();
        let key = (conn.host.to_string(), conn.port);
        let listener = lock(&shared.real).listeners.get(&key).copied();
        let Some(listener) = listener else { return Some(Err(io::ErrorKind::ConnectionRefused.into())) };
        if let Some(address) = listener.address {
            break (address, listener.is_server);
        }
        tokio::select! {
            biased;
            _ = arrived.recv() => return None,
            () = heard => {}
        }
    };
    let connected = async {
        #[expect(clippy::disallowed_methods, reason = "the way to real servers, for hosts on real time only")]
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (local, peer) = (stream.local_addr()?, stream.peer_addr()?);
        lock(&shared.real).dialed.insert(local.port(), conn.client.clone());
        conn.send(Side::Near, Carried::Connected(local, peer));
        Ok(stream)
    };
    Some(connected.await.map(|stream| (stream, is_server)))
}

/// A request that has arrived, with the effect of the rules on it.
struct Arrived {
    due: Instant,
    request: Request,
    fate: Fate,
}

/// The far end of one connection.
struct Proxy {
    shared: Arc<Shared>,
    conn: Arc<Conn>,
    /// `None` if the listener is no server process, without a protocol, and after an error of it.
    protocol: Option<Box<dyn Protocol>>,
    /// The next complete request, if any.
    next: Option<Arrived>,
    /// The number of replies that the server owes.
    owed: u64,
    /// Set when bytes from the server are dropped.
    is_mute: bool,
    /// The earliest time at which bytes from the server may leave.
    sending: Option<Instant>,
    held_back: VecDeque<Bytes>,
    /// Set when the client has stopped writing.
    has_ended: bool,
    /// Set when the server has stopped writing.
    is_closed: bool,
}

/// The next step of a connection.
enum Next {
    /// Continue.
    Again,
    /// End the connection: the client sees its end after all earlier bytes.
    Close,
    /// End the connection: the server gets a reset immediately.
    Abort,
}

async fn carry(
    shared: Arc<Shared>,
    conn: Arc<Conn>,
    mut arrived: UnboundedReceiver<Carried>,
    mut stream: TcpStream,
    is_server: bool,
) {
    let (mut reading, mut writing) = stream.split();
    let protocol = shared.protocol.as_ref().filter(|_| is_server).map(|make| make());
    let mut proxy = Proxy {
        shared,
        conn: conn.clone(),
        protocol,
        next: None,
        owed: 0,
        is_mute: false,
        sending: None,
        held_back: VecDeque::new(),
        has_ended: false,
        is_closed: false,
    };
    let mut buffer = vec![0; READ];
    let next = loop {
        match proxy.pass_on(&mut writing).await {
            Ok(Next::Again) => {}
            Ok(next) => break next,
            // The server is gone; reading will notice it as well.
            Err(_) => proxy.next = None,
        }
        if proxy.is_closed && proxy.held_back.is_empty() {
            break Next::Close;
        }
        let alarm = proxy.alarm();
        let mut alarm = pin!(async {
            match alarm {
                #[expect(clippy::disallowed_methods, reason = "only in real time")]
                Some(at) => tokio::time::sleep_until(at).await,
                None => pending().await,
            }
        });
        let has_room = conn.has_room_back();
        tokio::select! {
            biased;
            carried = arrived.recv() => match carried {
                Some(Carried::Bytes(bytes)) => proxy.take_in(bytes, &mut writing).await,
                Some(Carried::End) => proxy.has_ended = true,
                Some(Carried::Reset) | None => break Next::Abort,
                Some(Carried::Connect | Carried::Connected(..) | Carried::Refused(_)) => {}
            },
            () = &mut alarm => {}
            read = reading.read(&mut buffer), if has_room && !proxy.is_closed => match read {
                Ok(count @ 1..) => proxy.send_back(&buffer[..count]),
                _ => proxy.is_closed = true,
            },
            () = conn.has_read.notified(), if !has_room => {}
        }
    };
    // A host that has lost its power does not notify its peers.
    let is_lost = conn.is_lost.load(Ordering::Relaxed);
    match next {
        Next::Abort => {
            // If setting the reset fails, the socket closes normally.
            let _ = reading.as_ref().set_zero_linger();
        }
        _ if !is_lost => conn.send(Side::Near, Carried::End),
        _ => {}
    }
}

type Writing<'a> = tokio::net::tcp::WriteHalf<'a>;

impl Proxy {
    /// Accepts bytes of the client.
    async fn take_in(&mut self, bytes: Bytes, writing: &mut Writing<'_>) {
        match &mut self.protocol {
            Some(protocol) => protocol.feed(&bytes),
            None => {
                // An error means that the server is gone; reading will notice it as well.
                let _ = writing.write_all(&bytes).await;
                self.conn.written(bytes.len());
            }
        }
    }

    /// Passes on every request that is due and every byte held back long enough, and applies the
    /// rules.
    async fn pass_on(&mut self, writing: &mut Writing<'_>) -> io::Result<Next> {
        loop {
            self.let_go();
            if self.next.is_none() {
                self.next = self.next_request(writing).await?;
            }
            let waits = |arrived: &Arrived| {
                // A rule about a reply does not affect the replies of earlier requests.
                let spares = arrived.fate.breaks.is_some_and(|at| at != Break::BeforeRequest)
                    || !arrived.fate.reply_delay.is_zero();
                arrived.due > now() || (spares && self.owed > 0)
            };
            let Some(Arrived { request, fate, .. }) = self.next.take_if(|arrived| !waits(arrived)) else {
                break;
            };
            match fate.breaks {
                Some(Break::BeforeRequest) => return Ok(Next::Close),
                Some(Break::LoseReply) => self.is_mute = true,
                _ if !fate.reply_delay.is_zero() => {
                    let late = now() + fate.reply_delay;
                    // An earlier reply that is delayed longer still leaves first.
                    self.sending = Some(self.sending.map_or(late, |earlier| earlier.max(late)));
                }
                _ => {}
            }
            writing.write_all(&request.raw).await?;
            self.conn.written(request.raw.len());
            if fate.breaks == Some(Break::BeforeReply) {
                return Ok(Next::Close);
            }
            self.owed += u64::from(request.has_reply);
        }
        if self.has_ended && self.next.is_none() {
            writing.shutdown().await?;
        }
        Ok(Next::Again)
    }

    /// Takes the next complete request, and evaluates the rules for it.
    async fn next_request(&mut self, writing: &mut Writing<'_>) -> io::Result<Option<Arrived>> {
        let Some(protocol) = &mut self.protocol else { return Ok(None) };
        let request = match protocol.next_request() {
            Ok(Some(request)) => request,
            Ok(None) => return Ok(None),
            Err(rest) => {
                // The server itself reports the error.
                self.protocol = None;
                writing.write_all(&rest).await?;
                self.conn.written(rest.len());
                return Ok(None);
            }
        };
        let mut rules = lock(&self.shared.rules);
        let fate = match rules.is_empty() {
            true => Fate::default(),
            false => rules.judge(&self.conn.host, &self.conn.client, &request.arguments),
        };
        Ok(Some(Arrived { due: now() + fate.request_delay, request, fate }))
    }

    /// Sends bytes of the server back, unless a rule drops or delays them.
    fn send_back(&mut self, bytes: &[u8]) {
        if let Some(protocol) = &mut self.protocol {
            self.owed = self.owed.saturating_sub(protocol.count_replies(bytes));
        }
        if self.is_mute {
            return;
        }
        let bytes = Bytes::copy_from_slice(bytes);
        if self.sending.is_some() { self.held_back.push_back(bytes) } else { self.conn.send_back(bytes) }
    }

    /// Sends the bytes held back, once their delay has passed.
    fn let_go(&mut self) {
        if self.sending.is_some_and(|until| until <= now()) {
            self.sending = None;
            self.held_back.drain(..).for_each(|bytes| self.conn.send_back(bytes));
        }
    }

    /// Returns the time of the next action that no new input triggers.
    fn alarm(&self) -> Option<Instant> {
        let request = self.next.as_ref().map(|arrived| arrived.due).filter(|due| *due > now());
        request.into_iter().chain(self.sending).min()
    }
}

#[expect(clippy::disallowed_methods, reason = "only in real time")]
fn now() -> Instant {
    Instant::now()
}

/// Returns a real address at which a server process on one host reaches a port of another host over
/// the links of the world.
pub(crate) async fn gate(machine: Arc<Machine>, host: String, port: u16) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    #[expect(clippy::disallowed_methods, reason = "only in real time, and the task of no host")]
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            relay(stream, machine.conn_to(&host, port));
        }
    });
    Ok(address)
}

/// Serves a listener as a door of a host: each connection to it leads to this port of the host,
/// over the links from the host whose address the connection comes from. A connection from an
/// address of no host is closed.
pub(crate) fn door(
    shared: Arc<Shared>,
    listener: std::net::TcpListener,
    (host, port): (HostName, u16),
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    #[expect(clippy::disallowed_methods, reason = "only in real time, and the task of no host")]
    tokio::spawn(async move {
        while let Ok((stream, peer)) = listener.accept().await {
            let from = lock(&shared.names).get(&peer.ip()).cloned();
            let known = from.ok_or_else(|| io::ErrorKind::PermissionDenied.into());
            relay(stream, known.and_then(|from| shared.conn(&from, &host, port)));
        }
    });
    Ok(())
}

/// Carries a process's connection over a connection of the world until one of them ends.
fn relay(mut stream: TcpStream, conn: io::Result<Arc<Conn>>) {
    #[expect(clippy::disallowed_methods, reason = "only in real time, and the task of no host")]
    tokio::spawn(async move {
        let _ = stream.set_nodelay(true);
        let Ok(mut dialed) = Dialed::open(conn?).await else { return io::Result::Ok(()) };
        // Both ends learn of an error by the closing of the connection.
        let _ = tokio::io::copy_bidirectional(&mut stream, &mut dialed).await;
        Ok(())
    });
}
