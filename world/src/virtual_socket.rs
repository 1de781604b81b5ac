//! Sockets in virtual time, over the kernel of their host.

use std::{
    future::poll_fn,
    io,
    net::{IpAddr, SocketAddr, SocketAddrV4},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::{kernel::Fd, lock::lock, machine::Machine};

/// One end of a connection. The kernel closes it when it is dropped.
pub(crate) struct Stream {
    machine: Arc<Machine>,
    fd: Fd,
}

impl Stream {
    pub(crate) async fn connect(machine: &Arc<Machine>, host: &str, port: u16) -> io::Result<Stream> {
        let IpAddr::V4(address) = machine.shared.address_of(host)? else {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        };
        let fd = machine.kernel(|kernel| kernel.connect(SocketAddrV4::new(address, port)))?;
        let stream = Stream { machine: machine.clone(), fd };
        poll_fn(|cx| stream.machine.kernel(|kernel| kernel.poll_connected(fd, cx))).await?;
        Ok(stream)
    }

    pub(crate) fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(lock(&self.machine.kernel).ends_of(self.fd)?.1.into())
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(lock(&self.machine.kernel).ends_of(self.fd)?.0.into())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.machine.kernel(|kernel| kernel.close(self.fd));
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stream({} of {})", self.fd, self.machine.name)
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.machine.kernel(|kernel| kernel.poll_read(self.fd, cx, buf))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.machine.kernel(|kernel| kernel.poll_write(self.fd, cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.machine.kernel(|kernel| kernel.shut_down(self.fd)))
    }
}

/// Accepts connections to one port of a host.
pub(crate) struct Listener {
    machine: Arc<Machine>,
    port: u16,
}

impl Listener {
    pub(crate) fn bind(machine: &Arc<Machine>, port: u16) -> io::Result<Listener> {
        let port = machine.kernel(|kernel| kernel.listen(port))?;
        Ok(Listener { machine: machine.clone(), port })
    }

    pub(crate) async fn accept(&self) -> io::Result<(Stream, SocketAddr)> {
        let (fd, peer) = poll_fn(|cx| self.machine.kernel(|kernel| kernel.poll_accept(self.port, cx))).await;
        Ok((Stream { machine: self.machine.clone(), fd }, peer.into()))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.machine.kernel(|kernel| kernel.close_listener(self.port));
    }
}
