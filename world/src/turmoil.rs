//! The network of a world on `turmoil`, and the software of its hosts there.
//!
//! Every link of `turmoil` is held, and its packets are released one by one when they are due on
//! the world's own links. This makes it possible to cut a single direction, and keeps packets in
//! order.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    future::Future,
    net::IpAddr,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use turmoil::Sim;

use crate::host::Host;

/// The time of one step of `turmoil`.
pub(crate) const TICK: Duration = Duration::from_millis(1);

/// The state of a world on `turmoil`.
pub(crate) struct Turmoil {
    pub(crate) sim: Sim<'static>,
    pub(crate) desk: Rc<Desk>,
    /// The packets that `turmoil` holds between each two hosts, in its order, by their numbers.
    pub(crate) held: BTreeMap<(IpAddr, IpAddr), Vec<u64>>,
    /// The packets among them that arrive with the next step.
    released: BTreeSet<u64>,
}

/// State that the world shares with the software of its hosts.
#[derive(Default)]
pub(crate) struct Desk {
    /// The hosts while `turmoil` runs them; at all other times they are in the world.
    pub(crate) hosts: RefCell<Vec<Host>>,
    pub(crate) wakers: RefCell<Vec<Option<Waker>>>,
    /// The number of polls in this tick, its limit, and the host polled last.
    pub(crate) polls: Cell<u64>,
    pub(crate) polls_max: Cell<u64>,
    pub(crate) last_polled: Cell<usize>,
}

/// The software of a host from a start to its end; the host owns the tasks.
pub(crate) struct Body {
    desk: Rc<Desk>,
    index: usize,
}

impl Body {
    pub(crate) fn start(desk: Rc<Desk>, index: usize) -> Body {
        desk.hosts.borrow_mut()[index].start();
        Body { desk, index }
    }
}

impl Future for Body {
    type Output = turmoil::Result;
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<turmoil::Result> {
        let Desk { hosts, wakers, polls, polls_max, last_polled } = &*self.desk;
        polls.set(polls.get() + 1);
        last_polled.set(self.index);
        // Code that wakes itself forever would never let the tick end.
        if polls.get() <= polls_max.get() {
            wakers.borrow_mut()[self.index] = Some(cx.waker().clone());
            hosts.borrow_mut()[self.index].poll(cx.waker());
        }
        Poll::Pending
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if let Some(host) = self.desk.hosts.borrow_mut().get_mut(self.index) {
            host.drop_tasks();
        }
    }
}

impl Turmoil {
    /// Returns a network of hosts with these names, and the address of each.
    pub(crate) fn new<'a>(seed: u64, names: impl Iterator<Item = &'a str>) -> (Turmoil, Vec<IpAddr>) {
        let mut builder = turmoil::Builder::new();
        // Abandoned connection attempts never free their ports, so there must be enough ports.
        builder.tick_duration(TICK).rng_seed(seed).tcp_capacity(1 << 16).ephemeral_ports(10_000..=65_535);
        let sim = builder.build();
        let addresses = names.map(|name| sim.lookup(name)).collect();
        let turmoil = Turmoil { sim, desk: Rc::default(), held: BTreeMap::new(), released: BTreeSet::new() };
        (turmoil, addresses)
    }

    /// Lets a packet arrive with the next step.
    pub(crate) fn release(&mut self, number: u64) {
        self.released.insert(number);
    }

    /// Delivers the packets that were released.
    pub(crate) fn let_go(&mut self) {
        if self.released.is_empty() {
            return;
        }
        let Turmoil { sim, held, released, .. } = self;
        sim.links(|links| {
            for link in links {
                let Some(held) = held.get_mut(&link.pair()) else { continue };
                let mut kept = Vec::new();
                for (number, packet) in held.drain(..).zip(link) {
                    if released.remove(&number) {
                        packet.deliver();
                    } else {
                        kept.push(number);
                    }
                }
                *held = kept;
            }
        });
        released.clear();
    }
}
