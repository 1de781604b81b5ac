//! The sockets of a host on `turmoil`.

use std::{
    future::poll_fn,
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf},
    sync::mpsc::UnboundedReceiver,
};

use crate::{lock::lock, machine::Machine, wire::Wire};

/// The buffer size in bytes of a connection from a host to itself.
const LOOPBACK: usize = 1 << 20;

/// The first byte that an acceptor sends. `turmoil` establishes a connection as soon as the request
/// has arrived, but the connecting side must not see it before an answer can have come back.
const GREETING: u8 = b'!';

/// A connection on `turmoil`.
#[derive(Debug)]
pub(crate) enum Stream {
    Remote(turmoil::net::TcpStream, Arc<Wire>),
    /// A connection from a host to itself. `turmoil`'s own loopback takes a tick, while a kernel
    /// takes no time.
    Loopback(DuplexStream, IpAddr),
}

impl Stream {
    pub(crate) async fn connect(machine: &Machine, host: &str, port: u16) -> io::Result<Stream> {
        let unknown = || io::Error::new(io::ErrorKind::NotFound, format!("no host is called {host}"));
        let address = host.parse().ok().or_else(|| {
            let names = lock(&machine.shared.names);
            names.iter().find(|(_, name)| ***name == *host).map(|(address, _)| *address)
        });
        let address: IpAddr = address.ok_or_else(unknown)?;
        if host == &*machine.name {
            let (one, other) = tokio::io::duplex(LOOPBACK);
            let listener = lock(&machine.on_turmoil.loopback).get(&port).cloned();
            let handed = listener.map(|listener| listener.send(other));
            let refused = io::ErrorKind::ConnectionRefused;
            return match handed {
                Some(Ok(())) => Ok(Stream::Loopback(one, address)),
                _ => Err(refused.into()),
            };
        }
        let stream = turmoil::net::TcpStream::connect(SocketAddr::new(address, port)).await?;
        let mut stream = Stream::remote(machine, stream)?;
        match stream.read_u8().await {
            Ok(GREETING) => Ok(stream),
            _ => Err(io::ErrorKind::ConnectionReset.into()),
        }
    }

    fn remote(machine: &Machine, stream: turmoil::net::TcpStream) -> io::Result<Stream> {
        let wire = Arc::new(Wire::to(stream.peer_addr()?.ip()));
        let mut wires = lock(&machine.on_turmoil.wires);
        wires.retain(|wire| wire.strong_count() > 0);
        wires.push(Arc::downgrade(&wire));
        drop(wires);
        Ok(Stream::Remote(stream, wire))
    }

    pub(crate) fn peer_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Stream::Remote(stream, _) => stream.peer_addr(),
            Stream::Loopback(_, address) => Ok(SocketAddr::new(*address, 0)),
        }
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Stream::Remote(stream, _) => stream.local_addr(),
            Stream::Loopback(_, address) => Ok(SocketAddr::new(*address, 0)),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut *self {
            Stream::Loopback(stream, _) => Pin::new(stream).poll_read(cx, buf),
            Stream::Remote(stream, wire) => {
                wire.check(cx, &wire.reader)?;
                Pin::new(stream).poll_read(cx, buf)
            }
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match &mut *self {
            Stream::Loopback(stream, _) => Pin::new(stream).poll_write(cx, buf),
            Stream::Remote(stream, wire) => {
                wire.check(cx, &wire.writer)?;
                Pin::new(stream).poll_write(cx, buf)
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Stream::Loopback(stream, _) => Pin::new(stream).poll_flush(cx),
            Stream::Remote(stream, _) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Stream::Loopback(stream, _) => Pin::new(stream).poll_shutdown(cx),
            Stream::Remote(stream, wire) => {
                wire.check(cx, &wire.writer)?;
                Pin::new(stream).poll_shutdown(cx)
            }
        }
    }
}

/// Accepts connections to one port of a host on `turmoil`.
pub(crate) struct Listener {
    listener: turmoil::net::TcpListener,
    /// The connections of the host to itself.
    own: Mutex<UnboundedReceiver<DuplexStream>>,
    machine: Arc<Machine>,
}

impl Listener {
    pub(crate) async fn bind(machine: &Arc<Machine>, address: (IpAddr, u16)) -> io::Result<Listener> {
        let listener = turmoil::net::TcpListener::bind(address).await?;
        let (sender, own) = tokio::sync::mpsc::unbounded_channel();
        lock(&machine.on_turmoil.loopback).insert(address.1, sender);
        Ok(Listener { listener, own: Mutex::new(own), machine: machine.clone() })
    }

    pub(crate) async fn accept(&self) -> io::Result<(Stream, SocketAddr)> {
        let (stream, peer) = tokio::select! {
            biased;
            Some(stream) = poll_fn(|cx| lock(&self.own).poll_recv(cx)) => {
                let address = turmoil::lookup(&*self.machine.name);
                return Ok((Stream::Loopback(stream, address), SocketAddr::new(address, 0)));
            }
            accepted = self.listener.accept() => accepted?,
        };
        let mut stream = Stream::remote(&self.machine, stream)?;
        stream.write_all(&[GREETING]).await?;
        Ok((stream, peer))
    }
}
