//! The TCP ports of a node on the real network: bound at startup, and bound again when CONFIG SET
//! changes the port or the addresses.

use std::{
    io,
    net::{SocketAddr, TcpListener as StdListener, ToSocketAddrs},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use socket2::{Domain, Socket, Type};
use tokio::net::{TcpListener, TcpStream};

use crate::env::Ports;

/// Listens on each address; if `port` is 0, on the same free port for all. Addresses have the form
/// of `bind` in `redis.conf`: `*` is all of IPv4, and `::*` all of IPv6. An address with a `-`
/// before it is skipped if the machine does not have it, and reported to `passed_over`. Up to
/// `backlog` connections wait to be accepted.
///
/// # Errors
/// If another address cannot be listened on. The error names it.
pub fn bind<'a>(
    addresses: impl IntoIterator<Item = &'a str>,
    mut port: u16,
    backlog: u32,
    mut passed_over: impl FnMut(&str, &io::Error),
) -> io::Result<Vec<StdListener>> {
    let mut listeners = Vec::new();
    for address in addresses {
        let (optional, host) = match address.strip_prefix('-') {
            Some(host) => (true, host),
            None => (false, address),
        };
        let host = match host {
            "*" => "0.0.0.0",
            "::*" => "::",
            host => host,
        };
        match listen(host, port, backlog) {
            Ok(listener) => {
                port = listener.local_addr()?.port();
                listeners.push(listener);
            }
            Err(error) if optional && error.kind() != io::ErrorKind::AddrInUse => passed_over(host, &error),
            Err(error) => {
                return Err(io::Error::new(error.kind(), format!("cannot listen on {host}:{port}: {error}")));
            }
        }
    }
    Ok(listeners)
}

/// Listens on the first address of a host that can be listened on.
fn listen(host: &str, port: u16, backlog: u32) -> io::Result<StdListener> {
    let mut failed = io::ErrorKind::NotFound.into();
    for address in (host, port).to_socket_addrs()? {
        match listen_on(address, backlog) {
            Ok(listener) => return Ok(listener),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn listen_on(address: SocketAddr, backlog: u32) -> io::Result<StdListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    if address.is_ipv6() {
        // All of IPv6 must not include IPv4, which has its own listener.
        socket.set_only_v6(true)?;
    }
    // A port that a server has just left may be bound again.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// The current listeners. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Listening(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    listeners: Vec<TcpListener>,
    /// The waker of the task that waits for a connection on them.
    waiting: Option<Waker>,
}

impl Listening {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, listener: TcpListener) {
        self.inner().listeners.push(listener);
    }

    /// Accepts the next connection on any of them.
    pub(super) fn poll_accept(&self, cx: &Context<'_>) -> Poll<io::Result<TcpStream>> {
        let mut inner = self.inner();
        inner.waiting = Some(cx.waker().clone());
        let mut cx = Context::from_waker(cx.waker());
        for listener in &inner.listeners {
            if let Poll::Ready(accepted) = listener.poll_accept(&mut cx) {
                return Poll::Ready(accepted.map(|(stream, _)| stream));
            }
        }
        Poll::Pending
    }
}

fn taken_in(listeners: Vec<StdListener>) -> io::Result<Vec<TcpListener>> {
    listeners.into_iter().map(TcpListener::from_std).collect()
}

impl Ports for Listening {
    fn listen(&self, addresses: &[&str], port: u16, backlog: u32) -> io::Result<()> {
        let mut inner = self.inner();
        // Drop the old listeners first: the same port may be wanted again.
        let old: Vec<SocketAddr> =
            std::mem::take(&mut inner.listeners).iter().filter_map(|old| old.local_addr().ok()).collect();
        let bound = match port {
            0 => Ok(Vec::new()),
            port => bind(addresses.iter().copied(), port, backlog, |_, _| {}).and_then(taken_in),
        };
        let (listeners, result) = match bound {
            Ok(listeners) => (listeners, Ok(())),
            Err(error) => {
                // Listen on the old addresses again, unless another process has taken their ports.
                // Existing connections stay.
                let again = old.iter().filter_map(|address| listen_on(*address, backlog).ok()).collect();
                (taken_in(again).unwrap_or_default(), Err(error))
            }
        };
        inner.listeners = listeners;
        if let Some(waiting) = inner.waiting.take() {
            waiting.wake();
        }
        result
    }
}
