//! Relays between real processes: each host of a rig has its own address on the loopback network. A
//! relay listens there, and the process behind it listens at another port. Processes dial from
//! their own addresses, so that a relay knows who dials.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    io,
    net::{IpAddr, SocketAddr},
    rc::Rc,
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::{Notify, mpsc},
    task::JoinHandle,
    time::Instant,
};

/// Difference between a process's port and the port of its relay. A cluster bus port is 10,000
/// above the client port.
pub(crate) const BEHIND: u16 = 20_000;

/// The cut and the slow pairs of hosts, each direction by itself.
#[derive(Clone, Default)]
pub(crate) struct Cuts(Rc<(RefCell<Pairs>, Notify)>, Rc<RefCell<Delays>>);

type Pairs = BTreeSet<(IpAddr, IpAddr)>;
type Delays = BTreeMap<(IpAddr, IpAddr), Duration>;

impl Cuts {
    pub(crate) fn set(&self, from: IpAddr, to: IpAddr, cut: bool) {
        let mut pairs = self.0.0.borrow_mut();
        if cut {
            pairs.insert((from, to));
        } else {
            pairs.remove(&(from, to));
        }
        drop(pairs);
        self.0.1.notify_waiters();
    }

    /// Delays everything that `from` sends to `to` by `by` from now on.
    pub(crate) fn slow(&self, from: IpAddr, to: IpAddr, by: Duration) {
        self.1.borrow_mut().insert((from, to), by);
    }

    fn delay(&self, from: IpAddr, to: IpAddr) -> Option<Duration> {
        self.1.borrow().get(&(from, to)).copied()
    }

    /// Waits until `from` can send to `to`.
    async fn passable(&self, from: IpAddr, to: IpAddr) {
        loop {
            let changed = self.0.1.notified();
            if !self.0.0.borrow().contains(&(from, to)) {
                return;
            }
            changed.await;
        }
    }
}

/// Connects from an address of this machine.
pub(crate) async fn dial(from: IpAddr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::new(from, 0))?;
    let stream = socket.connect(to).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The relays of a rig's hosts.
pub(crate) struct Relays {
    cuts: Cuts,
    /// The addresses at which the relays of a host listen.
    at: BTreeMap<String, Vec<SocketAddr>>,
    listening: BTreeMap<String, Vec<JoinHandle<()>>>,
}

impl Relays {
    pub(crate) fn new(cuts: Cuts) -> Relays {
        Relays { cuts, at: BTreeMap::new(), listening: BTreeMap::new() }
    }

    /// Listens for a host, even before its process runs.
    pub(crate) fn open(&mut self, host: &str, at: Vec<SocketAddr>) -> io::Result<()> {
        self.at.insert(host.to_owned(), at);
        self.reopen(host)
    }

    /// Listens for a host again; does nothing if it already listens.
    pub(crate) fn reopen(&mut self, host: &str) -> io::Result<()> {
        if self.listening.contains_key(host) {
            return Ok(());
        }
        let listening = self.at[host].iter().map(|at| listen(*at, self.cuts.clone()));
        self.listening.insert(host.to_owned(), listening.collect::<io::Result<_>>()?);
        Ok(())
    }

    /// Refuses further connections to a host, as a host without a listening process does: a cluster
    /// node sends a ping as soon as it is connected.
    pub(crate) fn close(&mut self, host: &str) {
        self.listening.remove(host).into_iter().flatten().for_each(|task| task.abort());
    }
}

/// Relays connections to an address to the process behind it.
fn listen(at: SocketAddr, cuts: Cuts) -> io::Result<JoinHandle<()>> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(at)?;
    let listener: TcpListener = socket.listen(128)?;
    Ok(tokio::task::spawn_local(async move {
        while let Ok((stream, peer)) = listener.accept().await {
            let cuts = cuts.clone();
            tokio::task::spawn_local(async move {
                let (from, to) = (peer.ip(), at.ip());
                // A dial into a cut is answered once the cut is healed.
                cuts.passable(from, to).await;
                cuts.passable(to, from).await;
                let Ok(behind) = dial(from, SocketAddr::new(to, at.port() + BEHIND)).await else { return };
                let _ = stream.set_nodelay(true);
                let (near, far) = (stream.into_split(), behind.into_split());
                let there = copy(near.0, far.1, (from, to), cuts.clone());
                let back = copy(far.0, near.1, (to, from), cuts);
                tokio::join!(there, back);
            });
        }
    }))
}

async fn copy(
    mut reading: tokio::net::tcp::OwnedReadHalf,
    mut writing: tokio::net::tcp::OwnedWriteHalf,
    (from, to): (IpAddr, IpAddr),
    cuts: Cuts,
) {
    let mut bytes = vec![0; 16 << 10];
    loop {
        let read = reading.read(&mut bytes).await.unwrap_or(0);
        if let Some(delay) = cuts.delay(from, to) {
            bytes.truncate(read);
            return copy_late(bytes, delay, reading, writing, (from, to), cuts).await;
        }
        cuts.passable(from, to).await;
        if read == 0 || writing.write_all(&bytes[..read]).await.is_err() {
            // None of these processes can use a half-closed connection.
            let _ = writing.shutdown().await;
            return;
        }
    }
}

/// Limit of the pieces under way on a slow link.
const UNDER_WAY: usize = 1_000;

/// Copies these bytes and all that follow, each piece later by `delay`.
async fn copy_late(
    first: Vec<u8>,
    delay: Duration,
    mut reading: tokio::net::tcp::OwnedReadHalf,
    mut writing: tokio::net::tcp::OwnedWriteHalf,
    (from, to): (IpAddr, IpAddr),
    cuts: Cuts,
) {
    let (sender, mut receiver) = mpsc::channel(UNDER_WAY);
    let read = async move {
        let mut bytes = first;
        while !bytes.is_empty() && sender.send((now() + delay, bytes)).await.is_ok() {
            bytes = vec![0; 16 << 10];
            let read = reading.read(&mut bytes).await.unwrap_or(0);
            bytes.truncate(read);
        }
    };
    // This task owns the receiver, so that reading ends when writing does.
    let write = async move {
        while let Some((due, bytes)) = receiver.recv().await {
            sleep_until(due).await;
            cuts.passable(from, to).await;
            if writing.write_all(&bytes).await.is_err() {
                break;
            }
        }
        let _ = writing.shutdown().await;
    };
    tokio::join!(read, write);
}

#[expect(clippy::disallowed_methods, reason = "real processes run in real time")]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "real processes run in real time")]
async fn sleep_until(due: Instant) {
    tokio::time::sleep_until(due).await;
}

#[derive(Clone, Debug)]
pub(crate) struct Addresses(pub(crate) BTreeMap<String, IpAddr>);

impl Addresses {
    pub(crate) fn of(&self, host: &str) -> IpAddr {
        self.0[host]
    }

    pub(crate) fn name(&self, address: IpAddr) -> Option<&str> {
        self.0.iter().find(|(_, known)| **known == address).map(|(name, _)| name.as_str())
    }

    /// Replaces addresses by names in a text. No address is a prefix of another.
    pub(crate) fn named(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (name, address)| text.replace(&address.to_string(), name))
    }
}
