//! The sockets of a host, over the network of the world's engine.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

#[cfg(feature = "turmoil")]
use crate::turmoil_socket;
use crate::{
    conn::Dialed,
    engine::Engine,
    lock::lock,
    machine::{Machine, RealListener},
    virtual_socket,
};

/// A connection between two hosts, or of a host with itself.
#[derive(Debug)]
pub struct TcpStream(Kind);

#[derive(Debug)]
enum Kind {
    Virtual(virtual_socket::Stream),
    #[cfg(feature = "turmoil")]
    Turmoil(turmoil_socket::Stream),
    /// A connection within a host, or one accepted by a listener, in real time.
    Real(tokio::net::TcpStream),
    /// A connection from one host to another, in real time.
    Dialed(Dialed),
}

/// Evaluates an expression for the stream of any kind.
macro_rules! each_kind {
    ($kind:expr, $stream:ident => $does:expr) => {
        match $kind {
            Kind::Virtual($stream) => $does,
            #[cfg(feature = "turmoil")]
            Kind::Turmoil($stream) => $does,
            Kind::Real($stream) => $does,
            Kind::Dialed($stream) => $does,
        }
    };
}

impl TcpStream {
    pub(crate) async fn connect(machine: &Arc<Machine>, host: &str, port: u16) -> io::Result<TcpStream> {
        let (host, port) = machine.shared.behind(host, port);
        let host = &*host;
        let kind = match machine.shared.engine {
            Engine::Event => Kind::Virtual(virtual_socket::Stream::connect(machine, host, port).await?),
            Engine::Real if host == &*machine.name => Kind::Real(connect_within(machine, port).await?),
            Engine::Real => Kind::Dialed(Dialed::open(machine.conn_to(host, port)?).await?),
            #[cfg(feature = "turmoil")]
            Engine::Turmoil => Kind::Turmoil(turmoil_socket::Stream::connect(machine, host, port).await?),
        };
        Ok(TcpStream(kind))
    }

    /// Returns the address of the other end.
    ///
    /// # Errors
    /// If it is no longer connected.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        each_kind!(&self.0, stream => stream.peer_addr())
    }

    /// Returns the address of this end.
    ///
    /// # Errors
    /// If it is no longer connected.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        each_kind!(&self.0, stream => stream.local_addr())
    }
}

/// Connects a host to itself in real time, over no link.
async fn connect_within(machine: &Machine, port: u16) -> io::Result<tokio::net::TcpStream> {
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
    Ok(stream)
}

impl AsyncRead for TcpStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        each_kind!(&mut self.0, stream => Pin::new(stream).poll_read(cx, buf))
    }
}

impl AsyncWrite for TcpStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        each_kind!(&mut self.0, stream => Pin::new(stream).poll_write(cx, buf))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each_kind!(&mut self.0, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each_kind!(&mut self.0, stream => Pin::new(stream).poll_shutdown(cx))
    }
}

/// Accepts connections to one port of a host.
pub struct TcpListener(Listening);

enum Listening {
    Virtual(virtual_socket::Listener),
    #[cfg(feature = "turmoil")]
    Turmoil(turmoil_socket::Listener),
    Real(tokio::net::TcpListener),
}

impl TcpListener {
    pub(crate) async fn bind(machine: &Arc<Machine>, port: u16) -> io::Result<TcpListener> {
        let kind = match machine.shared.engine {
            Engine::Event => Listening::Virtual(virtual_socket::Listener::bind(machine, port)?),
            #[cfg(feature = "turmoil")]
            Engine::Turmoil => {
                let address = (std::net::IpAddr::from([0, 0, 0, 0]), port);
                Listening::Turmoil(turmoil_socket::Listener::bind(machine, address).await?)
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
        Ok(TcpListener(kind))
    }

    /// Returns the next connection, and the address of its peer.
    ///
    /// # Errors
    /// Those of a real `accept`.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (kind, peer) = match &self.0 {
            Listening::Virtual(listener) => {
                let (stream, peer) = listener.accept().await?;
                (Kind::Virtual(stream), peer)
            }
            Listening::Real(listener) => {
                let (stream, peer) = listener.accept().await?;
                stream.set_nodelay(true)?;
                (Kind::Real(stream), peer)
            }
            #[cfg(feature = "turmoil")]
            Listening::Turmoil(listener) => {
                let (stream, peer) = listener.accept().await?;
                (Kind::Turmoil(stream), peer)
            }
        };
        Ok((TcpStream(kind), peer))
    }
}
