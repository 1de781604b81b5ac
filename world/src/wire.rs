//! One end of a connection on `turmoil`, which faults can abort.

use std::{
    collections::BTreeMap,
    io,
    net::IpAddr,
    sync::{
        Mutex, Weak,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Waker},
};

use tokio::{io::DuplexStream, sync::mpsc::UnboundedSender};

use crate::lock::lock;

/// The connections of one host on `turmoil`.
#[derive(Debug, Default)]
pub(crate) struct OnTurmoil {
    /// The host's ends of connections.
    pub(crate) wires: Mutex<Vec<Weak<Wire>>>,
    /// The host's listeners, by port, for connections to itself.
    pub(crate) loopback: Mutex<BTreeMap<u16, UnboundedSender<DuplexStream>>>,
}

/// One end of a connection on `turmoil`, for faults: they can abort it, which `turmoil` itself
/// cannot.
#[derive(Debug)]
pub(crate) struct Wire {
    peer: IpAddr,
    aborted: AtomicBool,
    pub(crate) reader: Mutex<Option<Waker>>,
    pub(crate) writer: Mutex<Option<Waker>>,
}

impl Wire {
    /// Returns an end of a connection whose other end is on the host with this address.
    pub(crate) fn to(peer: IpAddr) -> Wire {
        Wire { peer, aborted: AtomicBool::new(false), reader: Mutex::default(), writer: Mutex::default() }
    }

    /// Returns an error if the connection was aborted; otherwise registers the waiting task to be
    /// woken by an abort.
    pub(crate) fn check(&self, cx: &Context<'_>, waiting: &Mutex<Option<Waker>>) -> io::Result<()> {
        if self.aborted.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let mut waiting = lock(waiting);
        match &mut *waiting {
            Some(waker) => waker.clone_from(cx.waker()),
            None => *waiting = Some(cx.waker().clone()),
        }
        Ok(())
    }

    /// The host of the other end.
    pub(crate) fn peer(&self) -> IpAddr {
        self.peer
    }

    /// Breaks the connection at this end.
    pub(crate) fn abort(&self) {
        self.aborted.store(true, Ordering::Relaxed);
        for waiting in [&self.reader, &self.writer] {
            let waker = lock(waiting).take();
            waker.into_iter().for_each(Waker::wake);
        }
    }
}
