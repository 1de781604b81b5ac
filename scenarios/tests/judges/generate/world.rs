//! Plausible histories: a few servers and clients that keep the rules of their lock, with faults.
//! Servers expire keys by their own clocks and lose them in crashes and failovers. Requests,
//! replies and writes come late or never. Clients nest holds, give up, stand still and crash.

mod faults;
mod refusals;

use std::{collections::BTreeMap, time::Duration};

use lockstorm::judge::history::{
    Accepted, Call, ClockId, Deadline, EventKind, History, Host, Lock, LockKind, LossCause, Mode, Op,
    Outcome, Owner, Party, Reason, Serving, Wait, Wake,
};
use lockstorm_world::time::{True, Wall};
use proptest::strategy::Strategy;

use super::{
    Bytes, Cast, LEASES, STEPS, bytes, cast, ms, one_of,
    parts::{Key, Late, Node, Open, Request, Wants},
};

pub(crate) fn strategy() -> impl Strategy<Value = Bytes> {
    bytes(48)
}

struct World {
    history: History,
    nodes: Vec<Host>,
    clients: Vec<Host>,
    shop: Host,
    owners: Vec<Owner>,
    now: True,
    ops: u32,
    state: Vec<Node>,
    /// The master of each group.
    masters: Vec<usize>,
    /// The first group's previous master, while it does not know of a failover.
    deposed: Option<usize>,
    calls: BTreeMap<Owner, Open>,
    /// The hosts that stand still for any reason, and the hosts that crashed.
    still: Vec<Host>,
    down: Vec<Host>,
    under_way: Vec<Request>,
    late: Vec<Late>,
    tokens: BTreeMap<Owner, u64>,
    greatest: Option<u64>,
    in_cluster: bool,
    /// True if every acquisition fails with an error.
    turns_away: bool,
}

pub(crate) fn history((of, steps): Bytes) -> History {
    let Cast { history, nodes, clients, shop, owners, in_cluster } = cast(&of);
    let groups = &history.header.locks[0].authority.groups;
    let masters = groups.iter().map(|group| usize::from(group[0].0)).collect();
    let mut world = World {
        state: vec![Node::default(); nodes.len()],
        history,
        nodes,
        clients,
        shop,
        owners,
        now: ms(0),
        ops: 0,
        masters,
        deposed: None,
        calls: BTreeMap::new(),
        still: Vec::new(),
        down: Vec::new(),
        under_way: Vec::new(),
        late: Vec::new(),
        tokens: BTreeMap::new(),
        greatest: None,
        in_cluster,
        turns_away: of[8] / 12 % 8 == 7,
    };
    world.serves(world.masters[0], Serving::Whole);
    for step in &steps {
        world.passes(one_of(STEPS, step[0]));
        world.step(step);
    }
    world.passes(one_of(STEPS, of[11]));
    world.history.header.end = world.now;
    world.history
}

impl World {
    fn tell(&mut self, host: Host, what: EventKind) {
        self.history.record(self.now, host, what);
    }

    fn wall_ms(&self, node: usize, at: True) -> i64 {
        self.history.clock(self.nodes[node]).reading(ClockId::Wall, at) / 1_000_000
    }

    /// Lets time pass; keys expire one by one, by their node's clock.
    fn passes(&mut self, length: Duration) {
        let until = self.now + length;
        loop {
            let mut first: Option<(True, usize, Lock)> = None;
            for (node, state) in self.state.iter().enumerate().filter(|(_, state)| !state.down) {
                for (lock, key) in &state.keys {
                    let Some(expires) = key.expires_ms else { continue };
                    let clock = self.history.clock(self.nodes[node]);
                    let Some(at) = clock.expires(Wall::from_millis(expires), self.now) else { continue };
                    if at <= until && first.is_none_or(|(earliest, ..)| at < earliest) {
                        first = Some((at, node, *lock));
                    }
                }
            }
            let Some((at, node, lock)) = first else { break };
            self.now = at;
            self.loses(node, lock, LossCause::Expired);
        }
        self.now = until;
    }

    fn loses(&mut self, node: usize, lock: Lock, how: LossCause) {
        let Some(key) = self.state[node].keys.remove(&lock) else { return };
        for owner in key.holders.into_keys() {
            let mode = self.mode(lock, owner);
            self.tell(self.nodes[node], EventKind::Vanished { lock, owner, how, mode });
        }
    }

    /// The mode in which an owner uses a lock: two of three owners only read a read-write lock.
    fn mode(&self, lock: Lock, owner: Owner) -> Mode {
        let reads = self.history.lock(lock).kind == LockKind::ReadWrite && !owner.0.is_multiple_of(3);
        if reads { Mode::Shared } else { Mode::Exclusive }
    }

    fn able(&self, host: Host) -> bool {
        !self.still.contains(&host)
    }

    fn step(&mut self, &[_, kind, who, which, how, much]: &[u8; 6]) {
        let owner = one_of(&self.owners, who);
        let client = self.history.client_of(owner);
        let lock = Lock(u16::from(which) % self.history.header.locks.len() as u16);
        let node = usize::from(which / 4) % self.nodes.len();
        match kind % 38 {
            // The most common step, complete: a call, its execution and its reply.
            0..6 => self.calls(owner, lock, Wants::Acquire(one_of(LEASES, how)), much),
            // Holders release more often than others.
            6..9 => self.holder_releases(lock, node, much),
            9 => self.calls(owner, lock, Wants::Release, much),
            10..12 => self.comes_back(owner, how),
            12..14 if self.able(client) => self.writes(owner, lock, how, much),
            14 => self.arrives(much),
            15 | 16 => self.delivers(usize::from(much)),
            17 if self.able(client) => self.renews(owner, lock, one_of(LEASES, how), much),
            18 => self.crashes_node(node, how),
            19 => self.crashes_client(client),
            20 => self.stands_still(one_of(&[&self.nodes[..], &self.clients[..]].concat(), which), how),
            21 => {
                self.changes_clock(one_of(&[&self.nodes[..], &self.clients[..]].concat(), which), how, much)
            }
            22 => self.fails_over(how),
            23 => {
                let party = Party { client: one_of(&self.clients, much), owner: None };
                let ways = [
                    LossCause::Evicted,
                    LossCause::Flushed,
                    LossCause::Deleted(party),
                    LossCause::Overwritten(party),
                ];
                self.loses(node, lock, one_of(&ways, how));
            }
            24 => self.waits(owner, how),
            25 => self.leaves_queue(owner),
            26 => {
                let why = one_of(&[Reason::Lost, Reason::Expired, Reason::Released], how);
                let mode = self.mode(lock, owner);
                self.tell(client, EventKind::Disbelieves { lock, owner, why, mode });
            }
            27 => self.history.header.calm = Some(self.now),
            28 => {
                let target = if much < 128 { self.nodes[node] } else { client };
                self.is_disturbed(target, how);
            }
            29 => self.renews_for_another(owner, lock, node, much),
            30 => self.wakes(usize::from(which), how),
            31..34 => self.gives_to_waiter(owner, lock, which, much),
            34 if how >= 192 => self.tell(client, EventKind::Abandoned { lock, owner }),
            34 | 35 => self.calls_together(owner, how, much),
            36 => self.is_told(lock, node),
            37 => self.returns_released(owner, lock, how, much),
            _ => {}
        }
    }

    /// An owner makes a call. `reach` decides which nodes execute it now, and if it returns now.
    fn calls(&mut self, owner: Owner, lock: Lock, wants: Wants, reach: u8) {
        let client = self.history.client_of(owner);
        if self.calls.contains_key(&owner) || !self.able(client) {
            return;
        }
        let op = Op(self.ops);
        self.ops += 1;
        let wants = match (self.history.lock(lock).kind, wants) {
            (LockKind::Latch { .. }, Wants::Acquire(Some(..500))) => Wants::Open,
            (LockKind::Latch { .. }, Wants::Acquire(_)) => Wants::Await,
            (LockKind::Latch { .. }, _) => Wants::Down,
            (LockKind::Rate { .. }, _) => Wants::Take(1 + u32::from(reach % 2)),
            (_, wants) => wants,
        };
        let mode = self.mode(lock, owner);
        let wait = one_of(&[Wait::No, Wait::Ms(1_000), Wait::Unbounded], reach);
        let call = match wants {
            Wants::Await => Call::Await { wait: Wait::Unbounded },
            Wants::Down => Call::CountDown,
            Wants::Open => Call::Delete,
            Wants::Take(permits) => Call::Take { permits, wait: Wait::Unbounded },
            Wants::Acquire(lease_ms) => Call::Acquire { wait, lease_ms, mode },
            _ => Call::Release,
        };
        let (since, done, token) = (self.now, 0, None);
        self.calls.insert(owner, Open { op, lock, wants, since, done, token, depth: 1 });
        self.tell(client, EventKind::Invoke { op, lock, owner, call });
        if wants == Wants::Release {
            self.tell(client, EventKind::Disbelieves { lock, owner, why: Reason::Released, mode });
        }
        if matches!(wants, Wants::Acquire(_)) && self.turns_away {
            return self.is_turned_away(owner, reach);
        }
        for group in 0..self.masters.len() {
            let request = Request { op: Some(op), lock, owner, group, wants };
            // A zero reaches every node.
            if reach & (1 << (group % 6)) == 0 {
                self.executes(request);
            } else {
                self.under_way.push(request);
            }
        }
        if reach < 64 {
            self.comes_back(owner, 0);
        } else if wait != Wait::No && self.calls.get(&owner).is_some_and(|open| open.done == 0) {
            self.waits(owner, 0);
        }
    }

    /// An owner takes all locks, or releases them all, at one instant. Another may have one of
    /// them.
    fn calls_together(&mut self, owner: Owner, how: u8, much: u8) {
        let client = self.history.client_of(owner);
        let is_hold = |lock: &Lock| {
            !matches!(self.history.lock(*lock).kind, LockKind::Latch { .. } | LockKind::Rate { .. })
        };
        let locks: Vec<Lock> =
            (0..self.history.header.locks.len() as u16).map(Lock).filter(is_hold).collect();
        if how % 4 == 3 {
            locks.iter().for_each(|lock| self.calls(owner, *lock, Wants::Release, 0));
            return;
        }
        if let Some(last) = locks.last().filter(|_| how % 4 == 2) {
            self.calls(one_of(&self.owners, much), *last, Wants::Acquire(Some(10_000)), 0);
        }
        if self.calls.contains_key(&owner) || !self.able(client) {
            return;
        }
        let (since, lease_ms) = (self.now, one_of(LEASES, how / 4));
        let mut asked = Vec::new();
        for lock in locks {
            let (op, mode) = (Op(self.ops), self.mode(lock, owner));
            self.ops += 1;
            let call = Call::Acquire { wait: Wait::No, lease_ms, mode };
            self.tell(client, EventKind::Invoke { op, lock, owner, call });
            asked.push((lock, op));
        }
        for (lock, op) in asked {
            self.passes(one_of(STEPS, much));
            let wants = Wants::Acquire(lease_ms);
            self.calls.insert(owner, Open { op, lock, wants, since, done: 0, token: None, depth: 1 });
            self.reaches_all(op, lock, owner, wants);
            self.comes_back(owner, 0);
        }
    }

    /// An owner has a lock until another owner has asked for it, which may be woken soon.
    fn gives_to_waiter(&mut self, owner: Owner, lock: Lock, which: u8, much: u8) {
        self.calls(owner, lock, Wants::Acquire(Some(10_000)), 0);
        // The call reaches every node, but does not return yet.
        self.calls(one_of(&self.owners, much), lock, Wants::Acquire(one_of(LEASES, much)), 64);
        self.passes(one_of(STEPS, which));
        self.calls(owner, lock, Wants::Release, 0);
        if which.is_multiple_of(2) {
            self.passes(one_of(STEPS, much));
            self.wakes(usize::from(which), much);
        }
    }

    /// One of a lock's holders on a node that have no call under way gives it back.
    fn holder_releases(&mut self, lock: Lock, node: usize, reach: u8) {
        let holders = self.state[node].keys.get(&lock).into_iter().flat_map(|key| key.holders.keys());
        let holder = holders.copied().find(|owner| !self.calls.contains_key(owner));
        if let Some(owner) = holder {
            self.calls(owner, lock, Wants::Release, reach);
        }
    }

    /// One of the owners that ask for a lock is woken and asks again.
    fn wakes(&mut self, which: usize, how: u8) {
        let asking =
            self.calls.iter().filter(|(_, open)| matches!(open.wants, Wants::Acquire(_)) && open.done == 0);
        let asking: Vec<(Owner, Open)> = asking.map(|(owner, open)| (*owner, *open)).collect();
        let Some(&(owner, Open { op, lock, wants, .. })) = asking.get(which % asking.len().max(1)) else {
            return;
        };
        if !self.able(self.history.client_of(owner)) {
            return;
        }
        self.waits(owner, 2 + how % 2);
        self.reaches_all(op, lock, owner, wants);
    }

    /// Every group executes a request of a call.
    fn reaches_all(&mut self, op: Op, lock: Lock, owner: Owner, wants: Wants) {
        for group in 0..self.masters.len() {
            self.executes(Request { op: Some(op), lock, owner, group, wants });
        }
    }

    /// The master that a client's requests reach: every other client reaches a deposed one.
    fn master(&self, group: usize, client: Host) -> usize {
        let of_old = self.deposed.filter(|_| group == 0 && client.0.is_multiple_of(2));
        of_old.unwrap_or(self.masters[group])
    }

    fn executes(&mut self, Request { op, lock, owner, group, wants }: Request) {
        let client = self.history.client_of(owner);
        let node = self.master(group, client);
        let host = self.nodes[node];
        if self.state[node].down || !self.able(host) {
            self.under_way.push(Request { op, lock, owner, group, wants });
            return;
        }
        let mut key = self.state[node].keys.get(&lock).cloned().unwrap_or_default();
        let until = |key: &Key| key.expires_ms.map(Wall::from_millis);
        let by = Party { client, owner: None };
        match wants {
            Wants::Acquire(lease_ms) => {
                let kind = self.history.lock(lock).kind;
                let mode = self.mode(lock, owner);
                let queue = self.state[node].queues.entry(lock).or_default();
                let others = key.holders.iter().filter(|(other, _)| **other != owner);
                let free = match kind {
                    LockKind::Semaphore { permits } | LockKind::Permits { permits } => {
                        key.holders.values().sum::<u32>() < permits
                    }
                    LockKind::ReadWrite => {
                        others.count() == 0 || (mode == Mode::Shared && key.mode == Mode::Shared)
                    }
                    _ => others.count() == 0,
                };
                let held = key.holders.contains_key(&owner);
                if !free || (!held && queue.first().is_some_and(|first| *first != owner)) {
                    let joins = kind == LockKind::Fair && !queue.contains(&owner);
                    if joins {
                        self.queue(node, lock, |queue| queue.push(owner));
                    }
                    return;
                }
                self.state[node].token += 1;
                let token = Some(self.state[node].token);
                let count = key.holders.entry(owner).or_default();
                *count += 1;
                let count = *count;
                key.mode = mode;
                key.expires_ms = lease_ms.map(|lease| self.wall_ms(node, self.now) + lease as i64);
                let until = until(&key);
                self.tell(host, EventKind::Granted { lock, owner, lease_ms, until, count, token, mode });
                let others: Vec<Owner> =
                    key.holders.keys().filter(|other| **other != owner).copied().collect();
                for owner in others {
                    let mode = self.mode(lock, owner);
                    self.tell(host, EventKind::Extended { lock, owner, by, lease_ms, until, mode });
                }
                self.state[node].keys.insert(lock, key);
                self.state[node].stored = self.state[node].keys.clone();
                if self.state[node].queues[&lock].contains(&owner) {
                    self.queue(node, lock, |queue| queue.retain(|waiter| *waiter != owner));
                }
                if let Some(open) = self.calls.get_mut(&owner).filter(|open| Some(open.op) == op) {
                    open.done += 1;
                    (open.token, open.depth) = (token, count);
                }
            }
            Wants::Release => {
                let Some(count) = key.holders.get_mut(&owner) else { return };
                *count -= 1;
                let left = *count;
                if left == 0 {
                    key.holders.remove(&owner);
                }
                let (lease_ms, until) = match left {
                    0 => (None, None),
                    _ => (
                        key.expires_ms.map(|at| (at - self.wall_ms(node, self.now)).max(0) as u64),
                        until(&key),
                    ),
                };
                if key.holders.is_empty() {
                    self.state[node].keys.remove(&lock);
                } else {
                    self.state[node].keys.insert(lock, key);
                }
                let mode = self.mode(lock, owner);
                self.tell(host, EventKind::Released { lock, owner, by, left, lease_ms, until, mode });
                self.tell(host, EventKind::Published { lock, receivers: 1 });
                if let Some(open) = self.calls.get_mut(&owner).filter(|open| Some(open.op) == op) {
                    open.done += 1;
                }
            }
            Wants::Take(permits) => {
                let kind = self.history.lock(lock).kind;
                let LockKind::Rate { permits: rate, window_ms, per_client } = kind else { return };
                let now = self.wall_ms(node, self.now);
                let of = (lock, per_client.then_some(by.client));
                if !self.state[node].takes(of, (rate, window_ms), now, permits) {
                    return;
                }
                self.tell(host, EventKind::Passed { lock, by, permits });
                if let Some(open) = self.calls.get_mut(&owner).filter(|open| Some(open.op) == op) {
                    open.done += 1;
                }
            }
            Wants::Await | Wants::Down | Wants::Open => {
                if self.counts(node, lock, wants)
                    && let Some(open) = self.calls.get_mut(&owner).filter(|open| Some(open.op) == op)
                {
                    open.done += 1;
                }
            }
            Wants::Renew(_) if self.counts(node, lock, wants) => {}
            Wants::Renew(lease_ms) => {
                if !key.holders.contains_key(&owner) {
                    return;
                }
                key.expires_ms = lease_ms.map(|lease| self.wall_ms(node, self.now) + lease as i64);
                let until = until(&key);
                let holders: Vec<Owner> = key.holders.keys().copied().collect();
                self.state[node].keys.insert(lock, key);
                for owner in holders {
                    let mode = self.mode(lock, owner);
                    self.tell(host, EventKind::Extended { lock, owner, by, lease_ms, until, mode });
                }
            }
        }
    }

    /// A node executes a request on a latch; returns true on success.
    fn counts(&mut self, node: usize, lock: Lock, wants: Wants) -> bool {
        let LockKind::Latch { count } = self.history.lock(lock).kind else { return false };
        let (left, done) = self.state[node].counts(lock, count, wants);
        if let Some(left) = left {
            self.tell(self.nodes[node], EventKind::Counted { lock, left });
        }
        done
    }

    fn queue(&mut self, node: usize, lock: Lock, change: impl FnOnce(&mut Vec<Owner>)) {
        let queue = self.state[node].queues.entry(lock).or_default();
        change(queue);
        let waiters = queue.clone().into();
        self.tell(self.nodes[node], EventKind::Queue { lock, waiters });
    }

    /// A call returns, with the nodes' decision or an error of the network.
    fn comes_back(&mut self, owner: Owner, how: u8) {
        let client = self.history.client_of(owner);
        if !self.able(client) {
            return;
        }
        let Some(Open { op, lock, wants, since, done, token, depth }) = self.calls.remove(&owner) else {
            return;
        };
        let needed = self.history.lock(lock).authority.quorum;
        let outcome = match how % 8 {
            6 => Outcome::Failed { definite: false, message: "no reply".into() },
            7 => Outcome::Failed { definite: done == 0, message: "given up".into() },
            _ if done >= needed => Outcome::Ok,
            _ => Outcome::Refused,
        };
        if let (Outcome::Ok, Wants::Acquire(lease_ms)) = (&outcome, wants) {
            self.tokens.extend(token.map(|token| (owner, token)));
            self.believes(owner, lock, lease_ms, since, token, depth);
        }
        self.tell(client, EventKind::Return { op, outcome });
    }

    fn believes(
        &mut self,
        owner: Owner,
        lock: Lock,
        lease_ms: Option<u64>,
        since: True,
        token: Option<u64>,
        count: u32,
    ) {
        let client = self.history.client_of(owner);
        let drift = self.history.lock(lock).authority.drift;
        let own = [ClockId::Boottime, ClockId::Boottime, ClockId::Wall, ClockId::Monotonic];
        let clock = one_of(&own, owner.0 as u8);
        let until = lease_ms.map(|lease| {
            let asked = self.history.clock(client).reading(clock, since);
            Deadline { clock, nanos: asked + drift.promised(lease).as_nanos() as i64 }
        });
        let mode = self.mode(lock, owner);
        self.tell(client, EventKind::Believes { lock, owner, until, token, count, mode });
    }

    fn delivers(&mut self, which: usize) {
        if !self.under_way.is_empty() {
            let request = self.under_way.remove(which % self.under_way.len());
            self.executes(request);
        }
    }

    fn renews(&mut self, owner: Owner, lock: Lock, lease_ms: Option<u64>, reach: u8) {
        for group in 0..self.masters.len() {
            let request = Request { op: None, lock, owner, group, wants: Wants::Renew(lease_ms) };
            if reach & (1 << (group % 6)) == 0 {
                self.executes(request);
            } else {
                self.under_way.push(request);
            }
        }
        if reach < 128 {
            self.believes(owner, lock, lease_ms, self.now, None, 1);
        }
    }

    /// An owner renews or releases a hold of another owner.
    fn renews_for_another(&mut self, owner: Owner, lock: Lock, node: usize, much: u8) {
        let (by, mode) = (Party { client: one_of(&self.clients, much), owner: None }, self.mode(lock, owner));
        let Some(key) = self.state[node].keys.get_mut(&lock) else { return };
        if !key.holders.contains_key(&owner) {
            return;
        }
        let until = key.expires_ms.map(Wall::from_millis);
        let what = if much.is_multiple_of(2) {
            EventKind::Extended { lock, owner, by, lease_ms: Some(500), until, mode }
        } else {
            key.holders.remove(&owner);
            if key.holders.is_empty() {
                self.state[node].keys.remove(&lock);
            }
            EventKind::Released { lock, owner, by, left: 0, lease_ms: None, until: None, mode }
        };
        self.tell(self.nodes[node], what);
    }

    /// An owner writes with its latest token or another one; some writes arrive late.
    fn writes(&mut self, owner: Owner, lock: Lock, how: u8, much: u8) {
        let own = self.tokens.get(&owner).copied();
        let token = one_of(&[own, own, own, own.map(|token| token.saturating_sub(1)), None], how);
        let write = Late { lock, owner, token, sent: self.now };
        if much < 128 {
            self.lands(write);
        } else {
            self.late.push(write);
        }
    }

    fn arrives(&mut self, which: u8) {
        if !self.late.is_empty() {
            let write = self.late.remove(usize::from(which) % self.late.len());
            self.lands(write);
        }
    }

    fn lands(&mut self, Late { lock, owner, token, sent }: Late) {
        let accepted = Accepted { greater: token > self.greatest, at_least: token >= self.greatest };
        self.greatest = self.greatest.max(token);
        self.tell(self.shop, EventKind::Write { lock, owner, token, sent, accepted });
    }

    /// A waiting owner reports that it waits, or that it was woken.
    fn waits(&mut self, owner: Owner, how: u8) {
        let client = self.history.client_of(owner);
        let asks = |open: &&Open| self.able(client) && matches!(open.wants, Wants::Acquire(_));
        let Some(lock) = self.calls.get(&owner).filter(asks).map(|open| open.lock) else { return };
        let what = match how % 4 {
            0 | 1 => EventKind::Waiting { lock, owner },
            2 => EventKind::Woken { lock, owner, by: Wake::Message },
            _ => EventKind::Woken { lock, owner, by: Wake::Timer },
        };
        self.tell(client, what);
    }

    /// An owner gives up its place in the queue, or is removed from it.
    fn leaves_queue(&mut self, owner: Owner) {
        let node = self.master(0, self.history.client_of(owner));
        if let Some(lock) = self.state[node].queued_for(owner) {
            self.queue(node, lock, |queue| queue.retain(|waiter| *waiter != owner));
        }
    }
}
