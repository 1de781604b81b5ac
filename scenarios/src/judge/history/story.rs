//! Small histories for tests, written in the order of their events. Times are milliseconds of true
//! time; each client has one owner, such as `c1:1` for `c1`.

use std::{collections::BTreeMap, time::Duration};

use lockstorm_world::time::{True, Wall};

use super::{
    Accepted, Authority, Bounds, Call, Clock, ClockId, CommandCount, Deadline, Drift, Ended, EventKind,
    Fence, GainCause, Header, History, Host, HostInfo, HostKind, KeyLeft, Life, Lock, LockInfo, LockKind,
    LossCause, Mode, Op, Outcome, Owner, Party, Probe, Reason, Resource, Role, Segment, Wait, Wake,
};

/// A history being written.
pub(crate) struct Story {
    history: History,
    now: True,
    ops: u32,
    /// The lock that the next events concern.
    lock: Lock,
    open: BTreeMap<(Lock, Owner), Op>,
    counts: BTreeMap<(Lock, Host, Owner, Mode), u32>,
    /// The mode in which each owner was last granted a lock or believes in it. The next events
    /// concern that hold.
    modes: BTreeMap<(Lock, Owner), Mode>,
    greatest: Option<u64>,
}

fn ms(at: i64) -> True {
    True::from_millis(at)
}

impl Story {
    fn with(nodes: &[&str], kind: LockKind, authority: impl Fn(Vec<Host>) -> Authority) -> Self {
        let host = |kind: HostKind| move |name: &&str| HostInfo::new(*name, kind);
        let mut hosts: Vec<HostInfo> = nodes.iter().map(host(HostKind::Node)).collect();
        hosts.extend(["c1", "c2", "c3", "c4"].iter().map(host(HostKind::Client)));
        hosts.extend(["shop"].iter().map(host(HostKind::Resource)));
        let authority = authority((0..nodes.len()).map(|node| Host(node as u16)).collect());
        let keys = vec!["stock".into()];
        let lasting_keys = vec!["stock:token".into()];
        let passing_keys = vec!["latch:{stock}:".into()];
        let locks =
            vec![LockInfo { name: "stock".into(), kind, keys, lasting_keys, passing_keys, authority }];
        let shop = Host(hosts.len() as u16 - 1);
        let mut header = Header::new("a story", hosts, locks, ms(60_000));
        header.resource = Some(Resource { host: shop, fence: Fence::None });
        let (now, lock, ops) = (True::ZERO, Lock(0), 0);
        let (open, counts, modes) = Default::default();
        Self { history: History::new(header), now, ops, lock, open, counts, modes, greatest: None }
    }

    /// A story with one node `m`.
    pub(crate) fn one_node() -> Self {
        Self::with(&["m"], LockKind::Exclusive, Authority::group)
    }

    /// A story with one node `m` and a lock of this kind.
    pub(crate) fn of_kind(kind: LockKind) -> Self {
        Self::with(&["m"], kind, Authority::group)
    }

    /// A story with a master `m` and its replica `r`.
    pub(crate) fn failover(kind: LockKind) -> Self {
        Self::with(&["m", "r"], kind, Authority::group)
    }

    /// A story with five independent nodes, `a` to `e`. A lease of ten seconds makes a promise 102
    /// ms shorter.
    pub(crate) fn quorum() -> Self {
        Self::with(&["a", "b", "c", "d", "e"], LockKind::Exclusive, |nodes| {
            Authority::majority(nodes, Drift::REDLOCK)
        })
    }

    fn host(&self, name: &str) -> Host {
        self.history.header.host(name).unwrap_or_else(|| panic!("no host {name}"))
    }

    fn owner(&mut self, client: &str) -> Owner {
        let host = self.host(client);
        self.history.owner(&format!("{client}:1"), host)
    }

    pub(crate) fn tell(mut self, host: &str, what: EventKind) -> Self {
        let host = self.host(host);
        self.history.record(self.now, host, what);
        self
    }

    fn wall(&self, node: &str, lease_ms: u64) -> Option<Wall> {
        let now = self.history.clock(self.host(node)).reading(ClockId::Wall, self.now);
        Some(Wall::from_nanos(now) + Duration::from_millis(lease_ms))
    }

    /// Makes the next events concern the lock of this name; a new lock is like the first.
    pub(crate) fn about(mut self, name: &str) -> Self {
        let locks = &mut self.history.header.locks;
        let known = locks.iter().position(|lock| &*lock.name == name);
        let at = known.unwrap_or(locks.len());
        if known.is_none() {
            locks.push(LockInfo { name: name.into(), keys: vec![name.into()], ..locks[0].clone() });
        }
        self.lock = Lock(at as u16);
        self
    }

    /// Sets the time of the next events.
    pub(crate) fn at(mut self, millis: i64) -> Self {
        self.now = ms(millis);
        self
    }

    /// The run ends at this time, after all faults.
    pub(crate) fn ends(mut self, millis: i64) -> History {
        self.history.header.end = ms(millis);
        self.history
    }

    /// The run is given up at this time, for this reason.
    pub(crate) fn given_up(mut self, millis: i64, why: &str) -> History {
        self.history.header.ended = Ended::Early(why.into());
        self.ends(millis)
    }

    /// The storm ends now.
    pub(crate) fn calm(mut self) -> Self {
        self.history.header.calm = Some(self.now);
        self
    }

    /// Sets the plan of lockstorm's own client.
    pub(crate) fn probe(mut self, probe: Probe) -> Self {
        self.history.header.probe = Some(probe);
        self
    }

    /// Sets the limits beyond which something counts as late.
    pub(crate) fn bounds(mut self, bounds: Bounds) -> Self {
        self.history.header.bounds = bounds;
        self
    }

    /// The resource refuses old tokens.
    pub(crate) fn fenced(mut self, fence: Fence) -> Self {
        if let Some(resource) = &mut self.history.header.resource {
            resource.fence = fence;
        }
        self
    }

    /// Changes the clocks of a host now: their readings in milliseconds and the errors of their
    /// rates in parts per million (wall, monotonic, boottime).
    pub(crate) fn clocks(mut self, host: &str, readings: [i64; 3], ppm_off: [i64; 3]) -> Self {
        let host = self.host(host).0 as usize;
        let readings = readings.map(|reading| reading * 1_000_000);
        let rates = ppm_off.map(|ppm| 1_000_000_000 + ppm * 1_000);
        let mut segments = self.history.clocks[host].segments().to_vec();
        segments.retain(|segment| segment.from < self.now);
        segments.push(Segment { from: self.now, readings, rates });
        self.history.clocks[host] = Clock::try_from(segments).expect("told in order");
        self
    }

    /// An instantaneous fault.
    pub(crate) fn fault(mut self, words: &str, targets: &[&str]) -> Self {
        let targets = targets.iter().map(|name| self.host(name)).collect();
        self.history.fault_started(self.now, "", words, targets, false);
        self
    }

    /// An instantaneous occurrence of the fault of this name in the scenario.
    pub(crate) fn occurs(mut self, name: &str, words: &str, targets: &[&str]) -> Self {
        let targets = targets.iter().map(|name| self.host(name)).collect();
        self.history.fault_started(self.now, name, words, targets, false);
        self
    }

    /// A fault that begins now and never ends.
    pub(crate) fn fault_for_good(mut self, words: &str, targets: &[&str]) -> Self {
        let targets = targets.iter().map(|name| self.host(name)).collect();
        self.history.fault_started(self.now, "", words, targets, true);
        self
    }

    /// A fault that lasts from now until `until`.
    pub(crate) fn fault_until(mut self, until: i64, words: &str, targets: &[&str]) -> Self {
        let targets = targets.iter().map(|name| self.host(name)).collect();
        let fault = self.history.fault_started(self.now, "", words, targets, true);
        self.history.fault_ended(fault, ms(until));
        self
    }

    pub(crate) fn life(self, host: &str, life: Life) -> Self {
        self.tell(host, EventKind::Life { life })
    }

    pub(crate) fn became(self, node: &str, role: Role) -> Self {
        self.tell(node, EventKind::Became { role })
    }

    /// A node has this many levels of a client's hold by replication.
    pub(crate) fn counts(mut self, node: &str, client: &str, count: u32) -> Self {
        let (owner, at) = (self.owner(client), self.host(node));
        let mode = self.mode(owner);
        self.counts.insert((self.lock, at, owner, mode), count);
        self
    }

    /// Makes the client's next events concern its hold in this mode.
    pub(crate) fn in_mode(mut self, client: &str, mode: Mode) -> Self {
        let owner = self.owner(client);
        self.modes.insert((self.lock, owner), mode);
        self
    }

    fn mode(&self, owner: Owner) -> Mode {
        self.modes.get(&(self.lock, owner)).copied().unwrap_or_default()
    }

    pub(crate) fn calls(mut self, client: &str, call: Call) -> Self {
        let owner = self.owner(client);
        self.ops += 1;
        let op = Op(self.ops);
        self.open.insert((self.lock, owner), op);
        let lock = self.lock;
        self.tell(client, EventKind::Invoke { op, lock, owner, call })
    }

    /// A client asks for the lock and waits without a limit.
    pub(crate) fn asks(self, client: &str) -> Self {
        self.calls(client, Call::Acquire { wait: Wait::Unbounded, lease_ms: None, mode: Mode::Exclusive })
    }

    /// A client asks to share the lock and waits without a limit.
    pub(crate) fn asks_to_read(self, client: &str) -> Self {
        self.calls(client, Call::Acquire { wait: Wait::Unbounded, lease_ms: None, mode: Mode::Shared })
    }

    /// A client's call returns.
    pub(crate) fn returns(mut self, client: &str, outcome: Outcome) -> Self {
        let owner = self.owner(client);
        let op = self.open.remove(&(self.lock, owner)).unwrap_or_else(|| panic!("{client} asked nothing"));
        self.tell(client, EventKind::Return { op, outcome })
    }

    /// A client believes that it holds the lock for this long by its boottime clock.
    pub(crate) fn believes(self, client: &str, for_ms: i64) -> Self {
        self.believes_by(client, ClockId::Boottime, for_ms)
    }

    /// A client believes that it holds the lock for this long by the given clock.
    pub(crate) fn believes_by(mut self, client: &str, clock: ClockId, for_ms: i64) -> Self {
        let owner = self.owner(client);
        let now = self.history.clock(self.host(client)).reading(clock, self.now);
        let until = Some(Deadline { clock, nanos: now + for_ms * 1_000_000 });
        let (lock, mode) = (self.lock, self.mode(owner));
        self.tell(client, EventKind::Believes { lock, owner, until, token: None, count: 1, mode })
    }

    /// A client believes that it holds this many levels of the lock, for this long by its boottime
    /// clock.
    pub(crate) fn believes_times(mut self, client: &str, count: u32, for_ms: i64) -> Self {
        let owner = self.owner(client);
        let now = self.history.clock(self.host(client)).reading(ClockId::Boottime, self.now);
        let until = Some(Deadline { clock: ClockId::Boottime, nanos: now + for_ms * 1_000_000 });
        let (token, mode) = (None, self.mode(owner));
        let lock = self.lock;
        self.tell(client, EventKind::Believes { lock, owner, until, token, count, mode })
    }

    /// A client believes that it holds the lock until it learns otherwise.
    pub(crate) fn believes_for_ever(mut self, client: &str) -> Self {
        let owner = self.owner(client);
        let (until, token, mode) = (None, None, self.mode(owner));
        let lock = self.lock;
        self.tell(client, EventKind::Believes { lock, owner, until, token, count: 1, mode })
    }

    pub(crate) fn disbelieves(mut self, client: &str, why: Reason) -> Self {
        let owner = self.owner(client);
        let (lock, mode) = (self.lock, self.mode(owner));
        self.tell(client, EventKind::Disbelieves { lock, owner, why, mode })
    }

    /// A client's line of work ends without releasing the lock.
    pub(crate) fn abandons(mut self, client: &str) -> Self {
        let owner = self.owner(client);
        let lock = self.lock;
        self.tell(client, EventKind::Abandoned { lock, owner })
    }

    pub(crate) fn waiting(mut self, client: &str) -> Self {
        let owner = self.owner(client);
        let lock = self.lock;
        self.tell(client, EventKind::Waiting { lock, owner })
    }

    pub(crate) fn woken(mut self, client: &str, by: Wake) -> Self {
        let owner = self.owner(client);
        let lock = self.lock;
        self.tell(client, EventKind::Woken { lock, owner, by })
    }

    /// A node grants a client the lock (one more level) for this long by the node's wall clock.
    pub(crate) fn granted(self, node: &str, client: &str, lease_ms: u64) -> Self {
        self.granted_in(node, client, lease_ms, Mode::Exclusive)
    }

    pub(crate) fn granted_in(self, node: &str, client: &str, lease_ms: u64, mode: Mode) -> Self {
        self.grants(node, client, lease_ms, mode, None)
    }

    /// A node grants a client the lock with a fencing token.
    pub(crate) fn granted_with(self, node: &str, client: &str, lease_ms: u64, token: u64) -> Self {
        self.grants(node, client, lease_ms, Mode::Exclusive, Some(token))
    }

    fn grants(mut self, node: &str, client: &str, lease_ms: u64, mode: Mode, token: Option<u64>) -> Self {
        let (owner, at) = (self.owner(client), self.host(node));
        self.modes.insert((self.lock, owner), mode);
        let count = self.counts.entry((self.lock, at, owner, mode)).or_default();
        *count += 1;
        let (count, until) = (*count, self.wall(node, lease_ms));
        let (lock, lease_ms) = (self.lock, Some(lease_ms));
        self.tell(node, EventKind::Granted { lock, owner, lease_ms, until, count, token, mode })
    }

    /// A node of a quorum grants the lock to an attempt of a client. The attempt is an owner of its
    /// own.
    pub(crate) fn granted_attempt(mut self, node: &str, client: &str, attempt: &str, lease_ms: u64) -> Self {
        let (client, until) = (self.host(client), self.wall(node, lease_ms));
        let owner = self.history.owner(attempt, client);
        let (lock, lease_ms, token, mode) = (self.lock, Some(lease_ms), None, Mode::Exclusive);
        self.tell(node, EventKind::Granted { lock, owner, lease_ms, until, count: 1, token, mode })
    }

    /// A node grants a client the lock without a lease.
    pub(crate) fn granted_without_expiry(mut self, node: &str, client: &str) -> Self {
        let (owner, at) = (self.owner(client), self.host(node));
        self.counts.insert((self.lock, at, owner, Mode::Exclusive), 1);
        let (lock, lease_ms, until, token) = (self.lock, None, None, None);
        self.tell(
            node,
            EventKind::Granted { lock, owner, lease_ms, until, count: 1, token, mode: Mode::Exclusive },
        )
    }

    /// A node extends a client's lease, at the request of `by`.
    pub(crate) fn extended_by(mut self, node: &str, client: &str, lease_ms: u64, by: &str) -> Self {
        let (owner, until) = (self.owner(client), self.wall(node, lease_ms));
        let by = Party { client: self.host(by), owner: None };
        let (lock, lease_ms, mode) = (self.lock, Some(lease_ms), self.mode(owner));
        self.tell(node, EventKind::Extended { lock, owner, by, lease_ms, until, mode })
    }

    pub(crate) fn extended(self, node: &str, client: &str, lease_ms: u64) -> Self {
        self.extended_by(node, client, lease_ms, client)
    }

    /// A node releases a client's hold, at the request of `by`.
    pub(crate) fn released_by(mut self, node: &str, client: &str, by: &str) -> Self {
        let (owner, at) = (self.owner(client), self.host(node));
        let mode = self.mode(owner);
        let count = self.counts.entry((self.lock, at, owner, mode)).or_insert(1);
        *count = count.saturating_sub(1);
        let left = *count;
        let by = Party { client: self.host(by), owner: None };
        let lock = self.lock;
        self.tell(node, EventKind::Released { lock, owner, by, left, lease_ms: None, until: None, mode })
    }

    pub(crate) fn released(self, node: &str, client: &str) -> Self {
        self.released_by(node, client, client)
    }

    /// A node releases a level of a client's nested hold and sets a new lease on the rest.
    pub(crate) fn released_and_extended(self, node: &str, client: &str, lease_ms: u64) -> Self {
        let expires = self.wall(node, lease_ms);
        let mut story = self.released(node, client);
        if let Some(EventKind::Released { lease_ms: lease, until, .. }) =
            story.history.events.last_mut().map(|event| &mut event.kind)
        {
            (*lease, *until) = (Some(lease_ms), expires);
        }
        story
    }

    pub(crate) fn vanished(mut self, node: &str, client: &str, how: LossCause) -> Self {
        let (owner, at) = (self.owner(client), self.host(node));
        let mode = self.mode(owner);
        self.counts.remove(&(self.lock, at, owner, mode));
        let lock = self.lock;
        self.tell(node, EventKind::Vanished { lock, owner, how, mode })
    }

    /// A node restarts or is promoted with a hold of a client that its group no longer has: this
    /// many levels, for this long by the node's wall clock.
    pub(crate) fn regained(
        mut self,
        node: &str,
        client: &str,
        lease_ms: u64,
        count: u32,
        how: GainCause,
    ) -> Self {
        let (owner, at, until) = (self.owner(client), self.host(node), self.wall(node, lease_ms));
        let mode = self.mode(owner);
        self.counts.insert((self.lock, at, owner, mode), count);
        let (lock, lease_ms) = (self.lock, Some(lease_ms));
        self.tell(node, EventKind::Regained { lock, owner, lease_ms, until, count, how, mode })
    }

    /// A client deletes another client's key.
    pub(crate) fn deleted(self, node: &str, client: &str, by: &str) -> Self {
        let by = Party { client: self.host(by), owner: None };
        self.vanished(node, client, LossCause::Deleted(by))
    }

    pub(crate) fn queue(mut self, node: &str, clients: &[&str]) -> Self {
        let waiters = clients.iter().map(|client| self.owner(client)).collect();
        let lock = self.lock;
        self.tell(node, EventKind::Queue { lock, waiters })
    }

    /// A node publishes the lock's message to this many subscribers.
    pub(crate) fn published(self, node: &str, receivers: u32) -> Self {
        let lock = self.lock;
        self.tell(node, EventKind::Published { lock, receivers })
    }

    /// A node's count of a latch changes to `left`.
    pub(crate) fn counted(self, node: &str, left: u64) -> Self {
        let lock = self.lock;
        self.tell(node, EventKind::Counted { lock, left })
    }

    /// A client asks for permits of a rate limiter and waits without a limit.
    pub(crate) fn takes(self, client: &str, permits: u32) -> Self {
        self.calls(client, Call::Take { permits, wait: Wait::Unbounded })
    }

    /// A node grants a client permits of a rate limiter.
    pub(crate) fn passed(self, node: &str, client: &str, permits: u32) -> Self {
        let (lock, by) = (self.lock, Party { client: self.host(client), owner: None });
        self.tell(node, EventKind::Passed { lock, by, permits })
    }

    /// A client's write arrives, sent at `sent`.
    pub(crate) fn wrote(mut self, client: &str, token: Option<u64>, sent: i64) -> Self {
        let owner = self.owner(client);
        let accepted = Accepted { greater: token > self.greatest, at_least: token >= self.greatest };
        self.greatest = self.greatest.max(token);
        let lock = self.lock;
        self.tell("shop", EventKind::Write { lock, owner, token, sent: ms(sent), accepted })
    }

    /// A client asks, is granted the lock by a node immediately, and believes it for the whole
    /// lease.
    pub(crate) fn locks(self, client: &str, node: &str, lease_ms: u64) -> Self {
        self.asks(client)
            .granted(node, client, lease_ms)
            .returns(client, Outcome::Ok)
            .believes(client, i64::try_from(lease_ms).expect("a small lease"))
    }

    /// A client releases the lock, and the node executes the release.
    pub(crate) fn unlocks(self, client: &str, node: &str) -> Self {
        self.calls(client, Call::Release)
            .disbelieves(client, Reason::Released)
            .released(node, client)
            .returns(client, Outcome::Ok)
    }

    /// A client sent a node a command of this name this many times.
    pub(crate) fn commands(mut self, client: &str, node: &str, name: &str, count: u64) -> Self {
        let (node, client) = (self.host(node), self.host(client));
        self.history.commands.push(CommandCount { node, client, name: name.into(), count });
        self
    }

    /// A key remains at the end of the run.
    pub(crate) fn key_left(mut self, node: &str, key: &str, ttl_ms: Option<u64>) -> Self {
        let node = self.host(node);
        let (lock, owner) = (Lock(0), None);
        self.history.keys_left.push(KeyLeft { node, lock, key: key.into(), owner, ttl_ms });
        self
    }

    /// A key that a client's release wrote remains for another 16 s.
    pub(crate) fn latch_left(mut self, node: &str, key: &str, client: &str) -> Self {
        let (node, owner) = (self.host(node), Some(self.owner(client)));
        let (lock, ttl_ms) = (Lock(0), Some(16_000));
        self.history.keys_left.push(KeyLeft { node, lock, key: key.into(), owner, ttl_ms });
        self
    }
}
