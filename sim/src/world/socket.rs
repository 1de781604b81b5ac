//! The sockets of a host, over the network of the world's engine.

#[cfg(feature = "turmoil")]
use std::{future::poll_fn, sync::Mutex};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
#[cfg(feature = "turmoil")]
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    sync::mpsc::UnboundedReceiver,
};
use turmoil_net::shim::tokio::net as events;

use super::{
    conn::Dialed,
    engine::Engine,
    lock::lock,
    machine::{Machine, RealListener},
};

#[cfg(feature = "turmoil")]
use super::wire::Wire;

/// A connection between two hosts, or of a host with itself.
#[derive(Debug)]
pub struct TcpStream(Kind);

#[derive(Debug)]
enum Kind {
    Events(events::TcpStream),
    #[cfg(feature = "turmoil")]
    Turmoil(turmoil::net::TcpStream, Arc<Wire>),
    /// A connection within a host, or one accepted by a listener, in real time.
    Real(tokio::net::TcpStream),
    /// A connection from one host to another, in real time.
    Dialed(Dialed),
    /// A connection from a host to itself on `turmoil`. `turmoil`'s own loopback takes a tick,
    /// while a kernel takes no time.
    #[cfg(feature = "turmoil")]
    Loopback(DuplexStream, IpAddr),
}

/// The buffer size in bytes of a connection from a host to itself.
#[cfg(feature = "turmoil")]
const LOOPBACK: usize = 1 << 20;

/// The first byte that an acceptor sends on `turmoil`. `turmoil` establishes a connection as soon
/// as the request has arrived, but the connecting side must not see it before an answer can have
/// come back.
#[cfg(feature = "turmoil")]
const GREETING: u8 = b'!';

impl TcpStream {
    pub(super) async fn connect(machine: &Machine, host: &str, port: u16) -> io::Result<TcpStream> {
        let host = &*machine.shared.dialed_by(host);
        match machine.shared.engine {
            Engine::Event => Ok(TcpStream(Kind::Events(events::TcpStream::connect((host, port)).await?))),
            Engine::Real if host == &*machine.name => TcpStream::connect_within(machine, port).await,
            Engine::Real => Ok(TcpStream(Kind::Dialed(Dialed::open(machine.conn_to(host, port)?).await?))),
            #[cfg(feature = "turmoil")]
            Engine::Turmoil => TcpStream::connect_on_turmoil(machine, host, port).await,
        }
    }

    /// Connects a host to itself in real time, over no link.
    async fn connect_within(machine: &Machine, port: u16) -> io::Result<TcpStream> {
        let listening = lock(&machine.shared.real).listening.clone();
        let address = loop {
            let heard = listening.notified();
            let key = (machine.name.to_string(), port);
            let listener = lock(&machine.shared.real).listeners.get(&key).copied();
            match listener.ok_or(io::ErrorKind::ConnectionRefused)?.address {
                Some(address) => break address,
                None => heard.await,
            }
        };
        #[expect(clippy::disallowed_methods, reason = "the way to real servers, for hosts on real time only")]
        let stream = tokio::net::TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        lock(&machine.shared.real).dialed.insert(stream.local_addr()?.port(), machine.name.clone());
        Ok(TcpStream(Kind::Real(stream)))
    }

    #[cfg(feature = "turmoil")]
    async fn connect_on_turmoil(machine: &Machine, host: &str, port: u16) -> io::Result<TcpStream> {
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
                Some(Ok(())) => Ok(TcpStream(Kind::Loopback(one, address))),
                _ => Err(refused.into()),
            };
        }
        let stream = turmoil::net::TcpStream::connect(SocketAddr::new(address, port)).await?;
        let mut stream = TcpStream::on_turmoil(machine, stream)?;
        match stream.read_u8().await {
            Ok(GREETING) => Ok(stream),
            _ => Err(io::ErrorKind::ConnectionReset.into()),
        }
    }

    #[cfg(feature = "turmoil")]
    fn on_turmoil(machine: &Machine, stream: turmoil::net::TcpStream) -> io::Result<TcpStream> {
        let wire = Arc::new(Wire::to(stream.peer_addr()?.ip()));
        let mut wires = lock(&machine.on_turmoil.wires);
        wires.retain(|wire| wire.strong_count() > 0);
        wires.push(Arc::downgrade(&wire));
        drop(wires);
        Ok(TcpStream(Kind::Turmoil(stream, wire)))
    }

    /// Returns the address of the other end.
    ///
    /// # Errors
    /// If it is no longer connected.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        match &self.0 {
            Kind::Events(stream) => stream.peer_addr(),
            #[cfg(feature = "turmoil")]
            Kind::Turmoil(stream, _) => stream.peer_addr(),
            Kind::Real(stream) => stream.peer_addr(),
            Kind::Dialed(stream) => stream.peer_addr(),
            #[cfg(feature = "turmoil")]
            Kind::Loopback(_, address) => Ok(SocketAddr::new(*address, 0)),
        }
    }

    /// Returns the address of this end.
    ///
    /// # Errors
    /// If it is no longer connected.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match &self.0 {
            Kind::Events(stream) => stream.local_addr(),
            #[cfg(feature = "turmoil")]
            Kind::Turmoil(stream, _) => stream.local_addr(),
            Kind::Real(stream) => stream.local_addr(),
            Kind::Dialed(stream) => stream.local_addr(),
            #[cfg(feature = "turmoil")]
            Kind::Loopback(_, address) => Ok(SocketAddr::new(*address, 0)),
        }
    }
}

impl AsyncRead for TcpStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Kind::Events(stream) => Pin::new(stream).poll_read(cx, buf),
            Kind::Real(stream) => Pin::new(stream).poll_read(cx, buf),
            Kind::Dialed(stream) => Pin::new(stream).poll_read(cx, buf),
            #[cfg(feature = "turmoil")]
            Kind::Loopback(stream, _) => Pin::new(stream).poll_read(cx, buf),
            #[cfg(feature = "turmoil")]
            Kind::Turmoil(stream, wire) => {
                wire.check(cx, &wire.reader)?;
                Pin::new(stream).poll_read(cx, buf)
            }
        }
    }
}

impl AsyncWrite for TcpStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            Kind::Events(stream) => Pin::new(stream).poll_write(cx, buf),
            Kind::Real(stream) => Pin::new(stream).poll_write(cx, buf),
            Kind::Dialed(stream) => Pin::new(stream).poll_write(cx, buf),
            #[cfg(feature = "turmoil")]
            Kind::Loopback(stream, _) => Pin::new(stream).poll_write(cx, buf),
            #[cfg(feature = "turmoil")]
            Kind::Turmoil(stream, wire) => {
                wire.check(cx, &wire.writer)?;
                Pin::new(stream).poll_write(cx, buf)
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Kind::Events(stream) => Pin::new(stream).poll_flush(cx),
            Kind::Real(stream) => Pin::new(stream).poll_flush(cx),
            Kind::Dialed(stream) => Pin::new(stream).poll_flush(cx),
            #[cfg(feature = "turmoil")]
            Kind::Loopback(stream, _) => Pin::new(stream).poll_flush(cx),
            #[cfg(feature = "turmoil")]
            Kind::Turmoil(stream, _) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Kind::Events(stream) => Pin::new(stream).poll_shutdown(cx),
            Kind::Real(stream) => Pin::new(stream).poll_shutdown(cx),
            Kind::Dialed(stream) => Pin::new(stream).poll_shutdown(cx),
            #[cfg(feature = "turmoil")]
            Kind::Loopback(stream, _) => Pin::new(stream).poll_shutdown(cx),
            #[cfg(feature = "turmoil")]
            Kind::Turmoil(stream, wire) => {
                wire.check(cx, &wire.writer)?;
                Pin::new(stream).poll_shutdown(cx)
            }
        }
    }
}

/// Accepts connections to one port of a host.
pub struct TcpListener {
    kind: Listening,
    #[cfg(feature = "turmoil")]
    machine: Arc<Machine>,
}

enum Listening {
    Events(events::TcpListener),
    #[cfg(feature = "turmoil")]
    Turmoil {
        listener: turmoil::net::TcpListener,
        own: Mutex<UnboundedReceiver<DuplexStream>>,
    },
    Real(tokio::net::TcpListener),
}

impl TcpListener {
    pub(super) async fn bind(machine: &Arc<Machine>, port: u16) -> io::Result<TcpListener> {
        let address = (IpAddr::from([0, 0, 0, 0]), port);
        let kind = match machine.shared.engine {
            Engine::Event => Listening::Events(events::TcpListener::bind(address).await?),
            #[cfg(feature = "turmoil")]
            Engine::Turmoil => {
                let listener = turmoil::net::TcpListener::bind(address).await?;
                let (sender, own) = tokio::sync::mpsc::unbounded_channel();
                lock(&machine.on_turmoil.loopback).insert(port, sender);
                Listening::Turmoil { listener, own: Mutex::new(own) }
            }
            Engine::Real => {
                let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
                let (host, address) = (machine.name.to_string(), listener.local_addr()?);
                let real = &mut lock(&machine.shared.real);
                let own = RealListener { address: Some(address), is_server: false };
                real.listeners.insert((host, port), own);
                real.listening.notify_waiters();
                Listening::Real(listener)
            }
        };
        Ok(TcpListener {
            kind,
            #[cfg(feature = "turmoil")]
            machine: machine.clone(),
        })
    }

    /// Returns the next connection, and the address of its peer.
    ///
    /// # Errors
    /// Those of a real `accept`.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        match &self.kind {
            Listening::Events(listener) => {
                let (stream, peer) = listener.accept().await?;
                Ok((TcpStream(Kind::Events(stream)), peer))
            }
            Listening::Real(listener) => {
                let (stream, peer) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok((TcpStream(Kind::Real(stream)), peer))
            }
            #[cfg(feature = "turmoil")]
            Listening::Turmoil { listener, own } => {
                let (stream, peer) = tokio::select! {
                    biased;
                    Some(stream) = poll_fn(|cx| lock(own).poll_recv(cx)) => {
                        let address = turmoil::lookup(&*self.machine.name);
                        let stream = TcpStream(Kind::Loopback(stream, address));
                        return Ok((stream, SocketAddr::new(address, 0)));
                    }
                    accepted = listener.accept() => accepted?,
                };
                let mut stream = TcpStream::on_turmoil(&self.machine, stream)?;
                stream.write_all(&[GREETING]).await?;
                Ok((stream, peer))
            }
        }
    }
}
