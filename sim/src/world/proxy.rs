//! The far end of a [connection](super::conn) in real time: a proxy that passes on what the links
//! of the world bring to a real socket, and what the socket brings to the links.
//!
//! To servers it speaks RESP: it splits what a client sends into commands, so that message rules
//! pick some of them, and counts the replies, so that a rule about one reply spares those before
//! it.

use std::{
    collections::VecDeque, future::pending, io, net::SocketAddr, pin::pin, sync::Arc, sync::atomic::Ordering,
};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::mpsc::UnboundedReceiver,
    time::Instant,
};

use super::{
    conn::{Carried, Conn, Dialed, Side},
    lock::lock,
    machine::{Machine, Shared},
};
use crate::{
    drive::{Break, Fate},
    resp::{Decoder, Limits, Replies},
};

/// Bytes read at once from a server.
const READ: usize = 16 << 10;

/// The commands that a server answers with pushes instead of a reply.
const ANSWERED_BY_PUSHES: [&[u8]; 6] =
    [b"SUBSCRIBE", b"PSUBSCRIBE", b"SSUBSCRIBE", b"UNSUBSCRIBE", b"PUNSUBSCRIBE", b"SUNSUBSCRIBE"];

/// Starts the far end of a connection, outside of all hosts: a kernel goes on while its host's
/// software stands still.
#[expect(clippy::disallowed_methods, reason = "only in real time, and the task of no host")]
pub(super) fn start(shared: Arc<Shared>, conn: Arc<Conn>, arrived: UnboundedReceiver<Carried>) {
    tokio::spawn(async move {
        let mut arrived = arrived;
        match open(&shared, &conn, &mut arrived).await {
            Some(Ok((stream, is_server))) => carry(shared, conn, arrived, stream, is_server).await,
            Some(Err(error)) => conn.send(Side::Near, Carried::Refused(error.kind())),
            None => {}
        }
    });
}

/// Connects to the listener, as soon as there is one, and says whether it is that of a server
/// process. `None` if the attempt was given up.
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

/// Cuts what a client sends into commands.
#[derive(Default)]
struct Tap {
    raw: BytesMut,
    decoder: Decoder,
}

/// A command that has arrived, and what becomes of it.
struct Command {
    due: Instant,
    raw: Bytes,
    fate: Fate,
    /// Whether the server answers it with a reply.
    has_reply: bool,
}

/// The far end of one connection.
struct Proxy {
    shared: Arc<Shared>,
    conn: Arc<Conn>,
    /// `None` where the listener is no server, and after a protocol error.
    tap: Option<Tap>,
    /// The next command, if it has come.
    next: Option<Command>,
    replies: Replies,
    /// Replies that the server owes.
    owed: u64,
    /// What comes from the server is dropped.
    is_mute: bool,
    /// What comes from the server leaves no sooner than this.
    sending: Option<Instant>,
    held_back: VecDeque<Bytes>,
    /// The client writes no more.
    has_ended: bool,
    /// The server writes no more.
    is_closed: bool,
}

/// What to do with a connection next.
enum Next {
    /// Go on.
    Again,
    /// It is over, and the client learns of it in order.
    Close,
    /// It is over, and the server learns of it at once.
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
    let mut proxy = Proxy {
        shared,
        conn: conn.clone(),
        tap: is_server.then(Tap::default),
        next: None,
        replies: Replies::default(),
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
            // The server is gone, which reading finds as well.
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
            // If the socket cannot be told to reset, it closes.
            let _ = reading.as_ref().set_zero_linger();
        }
        _ if !is_lost => conn.send(Side::Near, Carried::End),
        _ => {}
    }
}

type Writing<'a> = tokio::net::tcp::WriteHalf<'a>;

impl Proxy {
    /// Takes in bytes of the client.
    async fn take_in(&mut self, bytes: Bytes, writing: &mut Writing<'_>) {
        match &mut self.tap {
            Some(tap) => {
                tap.raw.extend_from_slice(&bytes);
                tap.decoder.feed(&bytes);
            }
            None => {
                // Reading finds as well that the server is gone.
                let _ = writing.write_all(&bytes).await;
                self.conn.written(bytes.len());
            }
        }
    }

    /// Passes on every command whose time has come, and what was held back, and carries out what
    /// the rules say.
    async fn pass_on(&mut self, writing: &mut Writing<'_>) -> io::Result<Next> {
        loop {
            self.let_go();
            if self.next.is_none() {
                self.next = self.next_command(writing).await?;
            }
            let waits = |command: &Command| {
                // A rule about a reply spares those of earlier commands.
                let spares = command.fate.breaks.is_some_and(|at| at != Break::BeforeRequest)
                    || !command.fate.reply_delay.is_zero();
                command.due > now() || (spares && self.owed > 0)
            };
            let Some(command) = self.next.take_if(|command| !waits(command)) else { break };
            match command.fate.breaks {
                Some(Break::BeforeRequest) => return Ok(Next::Close),
                Some(Break::LoseReply) => self.is_mute = true,
                _ if !command.fate.reply_delay.is_zero() => {
                    let late = now() + command.fate.reply_delay;
                    // An earlier reply that is late still goes first.
                    self.sending = Some(self.sending.map_or(late, |earlier| earlier.max(late)));
                }
                _ => {}
            }
            writing.write_all(&command.raw).await?;
            self.conn.written(command.raw.len());
            if command.fate.breaks == Some(Break::BeforeReply) {
                return Ok(Next::Close);
            }
            self.owed += u64::from(command.has_reply);
        }
        if self.has_ended && self.next.is_none() {
            writing.shutdown().await?;
        }
        Ok(Next::Again)
    }

    /// Takes the next whole command out of the tap, and asks the rules about it.
    async fn next_command(&mut self, writing: &mut Writing<'_>) -> io::Result<Option<Command>> {
        let Some(tap) = &mut self.tap else { return Ok(None) };
        let arguments = match tap.decoder.next(&Limits::default()) {
            Ok(Some(arguments)) => arguments,
            Ok(None) => return Ok(None),
            Err(_) => {
                // The server says what is wrong with them.
                let rest = std::mem::take(&mut tap.raw);
                self.tap = None;
                writing.write_all(&rest).await?;
                self.conn.written(rest.len());
                return Ok(None);
            }
        };
        let length = tap.raw.len() - tap.decoder.unread();
        let raw = tap.raw.split_to(length).freeze();
        let mut rules = lock(&self.shared.rules);
        let fate = match rules.is_empty() {
            true => Fate::default(),
            false => rules.judge(&self.conn.host, &self.conn.client, &arguments),
        };
        let has_reply = !ANSWERED_BY_PUSHES.iter().any(|name| name.eq_ignore_ascii_case(&arguments[0]));
        Ok(Some(Command { due: now() + fate.request_delay, raw, fate, has_reply }))
    }

    /// Sends bytes of the server back, unless a rule has it otherwise.
    fn send_back(&mut self, bytes: &[u8]) {
        self.owed = self.owed.saturating_sub(self.replies.count(bytes));
        if self.is_mute {
            return;
        }
        let bytes = Bytes::copy_from_slice(bytes);
        if self.sending.is_some() { self.held_back.push_back(bytes) } else { self.conn.send_back(bytes) }
    }

    /// Lets go of what was held back, if it is late enough.
    fn let_go(&mut self) {
        if self.sending.is_some_and(|until| until <= now()) {
            self.sending = None;
            self.held_back.drain(..).for_each(|bytes| self.conn.send_back(bytes));
        }
    }

    /// When there is something to do without anything new.
    fn alarm(&self) -> Option<Instant> {
        let command = self.next.as_ref().map(|command| command.due).filter(|due| *due > now());
        command.into_iter().chain(self.sending).min()
    }
}

#[expect(clippy::disallowed_methods, reason = "only in real time")]
fn now() -> Instant {
    Instant::now()
}

/// A real address at which a server process on one host reaches a port of another one over the
/// links of the world.
pub(super) async fn gate(machine: Arc<Machine>, host: String, port: u16) -> io::Result<SocketAddr> {
    let listener = tokio::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    #[expect(clippy::disallowed_methods, reason = "only in real time, and the task of no host")]
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (machine, host) = (machine.clone(), host.clone());
            tokio::spawn(async move {
                let _ = stream.set_nodelay(true);
                let Ok(conn) = machine.conn_to(&host, port) else { return };
                let Ok(mut dialed) = Dialed::open(conn).await else { return };
                // Either end says by closing what became of it.
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut dialed).await;
            });
        }
    });
    Ok(address)
}
