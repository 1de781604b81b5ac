//! The causal chain of a violation, from the first call to the instant at which two owners held a
//! lock.
//!
//! Events on one host have an order. A client's request happens before the node's action, and that
//! before the client's reaction to the reply: *happens-before* of Lamport, "Time, Clocks, and the
//! Ordering of Events in a Distributed System" (1978). Much more happens before a violation than
//! leads to it. A chain is followed from the end to the beginning and has only the events that each
//! event needed. A belief needs its grants. A grant needs the call and the end of the hold that was
//! in its way. An end needs the grant that ended and the promotion of the node. A wake-up needs its
//! message. A fault is in the chain if it was in force on a host between an event and an event it
//! needed. A clock is in it if it was wrong during that time and decided ([`clocks`]). [`roots`]
//! selects the events from which a chain is followed.

mod clocks;
mod roots;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use lockstorm_world::time::True;

use crate::judge::{
    history::{
        Call, Event, EventKind, Fault, GainCause, History, Host, HostKind, Life, Lock, LossCause, Outcome,
        Owner, Party, Role, Wake,
    },
    verdict::Witness,
};

pub(crate) use clocks::Shown;

/// The most events and clocks of a chain; the latest are kept.
const LINKS_MAX: usize = 24;

/// The most faults of a chain among those that led to its events; the latest are kept.
const FAULTS_MAX: usize = 24;

/// The time for which an order, or a fault that is over, still explains what a host does by itself.
const JUST_NOW: Duration = Duration::from_secs(1);

/// A link of a chain: an event or a fault, by its index in the history, or a clock that was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    Fault(usize),
    Clock(Shown),
    Event(usize),
}

/// A link with its time and the indexes of the links that caused it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) at: True,
    pub(crate) what: What,
    pub(crate) after: Vec<usize>,
}

/// Returns the chain of a witness, in the order of true time. Empty if the witness concerns no
/// lock.
pub(crate) fn of_witness(history: &History, witness: &Witness) -> Vec<Link> {
    Chain::of(history, witness).map_or_else(Vec::new, |chain| chain.links())
}

/// Returns the faults in the chain of a witness, by their indexes in the history and thus in the
/// order of their beginnings, each with the end of its effect.
pub(in crate::judge::checker) fn faults(history: &History, witness: &Witness) -> BTreeMap<usize, True> {
    let Some(chain) = Chain::of(history, witness) else { return BTreeMap::new() };
    let of_link = |link: Link| if let What::Fault(number) = link.what { Some(number) } else { None };
    let faults = chain.links().into_iter().filter_map(of_link);
    faults.map(|number| (number, chain.in_force_until[number])).collect()
}

/// A chain under construction, from the end to the beginning.
struct Chain<'a> {
    history: &'a History,
    lock: Lock,
    /// The index of the call by which the first owner got its hold. The chain leaves out the causes
    /// of that call.
    begin: usize,
    /// True if the chain concerns the fate of one owner's hold, not two holds at once.
    is_of_one: bool,
    /// The end of the effect of each fault of the history.
    in_force_until: Vec<True>,
    /// The events needed by each event, by index.
    events: BTreeMap<usize, Vec<usize>>,
    /// The events caused by each fault.
    faults: BTreeMap<usize, BTreeSet<usize>>,
    /// The events caused by each clock that was wrong.
    clocks: BTreeMap<Shown, BTreeSet<usize>>,
}

impl<'a> Chain<'a> {
    /// Builds the chain of a violation; `None` if its witness concerns no lock.
    fn of(history: &'a History, witness: &Witness) -> Option<Self> {
        let lock = witness.lock?;
        Some(Chain::to(history, lock, &witness.owners, witness.from, witness.until))
    }

    /// Builds the chain of the state of these owners' holds at `from` and of the events until
    /// `until`.
    fn to(history: &'a History, lock: Lock, owners: &[Owner], from: True, until: True) -> Self {
        let (events, faults, clocks) = Default::default();
        let is_of_one = false;
        let in_force_until = history.faults.iter().map(|fault| in_force_until(history, fault)).collect();
        let mut chain = Chain { history, lock, begin: 0, is_of_one, in_force_until, events, faults, clocks };
        let mut todo = chain.roots(owners, from, until);
        while let Some(at) = todo.pop() {
            if chain.events.contains_key(&at) {
                continue;
            }
            let mut needed = chain.needed(at);
            needed.retain(|needed| *needed < at);
            chain.find_faults_before(at, &needed);
            chain.find_clocks_before(at);
            todo.extend(&needed);
            chain.events.insert(at, needed);
        }
        chain
    }

    fn is_about(&self, event: &Event, owner: Owner) -> bool {
        event.kind.lock() == Some(self.lock) && event.kind.owner() == Some(owner)
    }

    fn grants(&self, event: &Event, owner: Owner) -> bool {
        self.is_about(event, owner) && matches!(event.kind, EventKind::Granted { .. })
    }

    /// Returns true if the event is a change of the lock's queue.
    fn is_queue(&self, event: &Event) -> bool {
        event.kind.lock() == Some(self.lock) && matches!(event.kind, EventKind::Queue { .. })
    }

    fn nodes(&self) -> impl Iterator<Item = Host> + use<'a> {
        self.history.lock(self.lock).authority.groups.iter().flatten().copied()
    }

    /// Returns the last event before an index that meets a condition.
    fn last(&self, before: usize, is: impl Fn(&Event) -> bool) -> Option<usize> {
        self.history.events[..before].iter().rposition(is)
    }

    /// Like [`Chain::last`], but returns no event before the chain's beginning.
    fn last_within(&self, before: usize, is: impl Fn(&Event) -> bool) -> Option<usize> {
        self.last(before, is).filter(|at| *at >= self.begin)
    }

    /// Returns the owner's last call to acquire the lock. If each hold has a name of its own, a
    /// call by the owner's client counts.
    fn call(&self, before: usize, owner: Owner) -> Option<usize> {
        let of_client = self.history.lock(self.lock).names_its_holds();
        let calls = |event: &Event| {
            let call = matches!(event.kind, EventKind::Invoke { call: Call::Acquire { .. }, .. });
            let by_client = of_client
                && event.kind.lock() == Some(self.lock)
                && event.host == self.history.client_of(owner);
            call && (by_client || self.is_about(event, owner))
        };
        self.last(before, calls)
    }

    /// Returns the events without which this one could not have happened.
    fn needed(&self, at: usize) -> Vec<usize> {
        let Event { host, kind, .. } = &self.history.events[at];
        let on_host = |event: &Event| event.host == *host;
        let Some(owner) = kind.owner() else { return self.needed_by_group(at, *host, kind) };
        let of = |event: &Event| self.is_about(event, owner);
        let call = self.call(at, owner);
        match kind {
            EventKind::Believes { .. } => {
                let mut grants: Vec<usize> = Vec::new();
                for node in self.history.header.hosts_of(HostKind::Node) {
                    let gives = |event: &Event| event.host == node && of(event) && gives(event);
                    grants.extend(self.last(at, gives).filter(|grant| Some(*grant) > call));
                }
                if grants.is_empty() { call.into_iter().collect() } else { grants }
            }
            EventKind::Disbelieves { .. } => {
                let believes = |event: &Event| of(event) && matches!(event.kind, EventKind::Believes { .. });
                self.last(at, believes).into_iter().collect()
            }
            EventKind::Waiting { .. } => call.into_iter().chain(self.in_the_way(at, owner)).collect(),
            EventKind::Woken { by, .. } => {
                let publishes = |event: &Event| {
                    matches!(event.kind, EventKind::Published { .. }) && event.kind.lock() == Some(self.lock)
                };
                let message = (*by == Wake::Message).then(|| self.last_within(at, publishes)).flatten();
                call.into_iter().chain(message).collect()
            }
            EventKind::Granted { .. } => {
                let woken = |event: &Event| of(event) && matches!(event.kind, EventKind::Woken { .. });
                let woken = self.last(at, woken).filter(|woken| Some(*woken) > call);
                let ended = |event: &Event| {
                    let others = event.kind.owner().is_some_and(|other| other != owner);
                    on_host(event) && event.kind.lock() == Some(self.lock) && others && ends(event)
                };
                let serves = |event: &Event| {
                    let is_master = matches!(&event.kind, EventKind::Serves { lock, how } if *lock == self.lock && how.is_master());
                    on_host(event) && is_master
                };
                let asked = woken.or(call);
                let parts = [
                    asked,
                    self.last_within(at, ended),
                    self.promoted(at, *host),
                    self.last_within(at, serves),
                    self.counted_before(at, owner),
                ];
                parts.into_iter().flatten().collect()
            }
            EventKind::Extended { .. } => {
                self.last(at, |event| on_host(event) && of(event) && has(event)).into_iter().collect()
            }
            // The node has the earlier grant without the later end, from its disk or by
            // replication.
            EventKind::Regained { how, .. } => {
                let granted = self.last(at, |event| of(event) && gives(event));
                let ended = self.last(at, |event| of(event) && ends(event));
                let by = match how {
                    GainCause::Restart => self.last(at, |event| {
                        event.host == *host && matches!(event.kind, EventKind::Life { .. })
                    }),
                    GainCause::Failover => self.promoted(at, *host),
                };
                granted.into_iter().chain(ended).chain(by).collect()
            }
            EventKind::Released { by, .. } => {
                let releases = |event: &Event| {
                    let call = matches!(event.kind, EventKind::Invoke { call: Call::Release, .. });
                    call && event.host == by.client && by.owner.is_none_or(|by| self.is_about(event, by))
                };
                let releases = self.last(at, releases);
                let is_foreign = !self.history.is_own(owner, *by);
                let belief = releases.filter(|_| is_foreign).and_then(|call| self.belief_of(call, *by));
                let counted = self.counted_before(at, owner);
                releases.into_iter().chain(belief).chain(counted).collect()
            }
            EventKind::Vanished { how, .. } => {
                let here = self.last(at, |event| on_host(event) && of(event) && gives(event));
                let granted = here.or_else(|| self.last(at, |event| of(event) && gives(event)));
                let by = match how {
                    LossCause::Failover => self.promoted(at, *host),
                    LossCause::Expired if here.is_none() => self.promoted(at, *host),
                    LossCause::Crash => {
                        let lives = |event: &Event| {
                            event.host == *host && matches!(event.kind, EventKind::Life { .. })
                        };
                        self.last_within(at, lives)
                    }
                    LossCause::Deleted(by) | LossCause::Overwritten(by) => {
                        let calls = |event: &Event| {
                            let is_call = matches!(event.kind, EventKind::Invoke { .. });
                            is_call && event.host == by.client && event.kind.lock() == Some(self.lock)
                        };
                        let calls = self.last(at, calls);
                        let belief = calls.and_then(|call| self.belief_of(call, *by));
                        return granted.into_iter().chain(calls).chain(belief).collect();
                    }
                    LossCause::Expired | LossCause::Evicted | LossCause::Flushed => None,
                };
                granted.into_iter().chain(by).collect()
            }
            EventKind::Write { .. } => {
                let believes = |event: &Event| of(event) && matches!(event.kind, EventKind::Believes { .. });
                // A peer's client may not report its beliefs.
                let grants = |event: &Event| of(event) && gives(event);
                let since = self.last(at, believes).or_else(|| self.last(at, grants));
                since.or(call).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// Like [`Chain::needed`], for an event without an owner.
    fn needed_by_group(&self, at: usize, host: Host, kind: &EventKind) -> Vec<usize> {
        let latest = |is: &dyn Fn(&Event) -> bool| self.last(at, is);
        match kind {
            EventKind::Published { .. } => {
                let ends = |event: &Event| {
                    let counted = matches!(event.kind, EventKind::Counted { left: 0, .. });
                    event.host == host && event.kind.lock() == Some(self.lock) && (ends(event) || counted)
                };
                latest(&ends).into_iter().collect()
            }
            EventKind::Return { op, .. } => {
                let call =
                    |event: &Event| matches!(event.kind, EventKind::Invoke { op: of, .. } if of == *op);
                latest(&call).into_iter().collect()
            }
            EventKind::Counted { .. } => {
                let counts = |event: &Event| {
                    let call = matches!(
                        event.kind,
                        EventKind::Invoke { call: Call::Set | Call::CountDown | Call::Delete, .. }
                    );
                    call && event.kind.lock() == Some(self.lock)
                };
                let before = |event: &Event| {
                    matches!(event.kind, EventKind::Counted { .. }) && event.kind.lock() == Some(self.lock)
                };
                let parts =
                    [latest(&counts), latest(&before), self.restarted(at, host), self.promoted(at, host)];
                parts.into_iter().flatten().collect()
            }
            EventKind::Passed { by, .. } => {
                let takes = |event: &Event| {
                    let call = matches!(event.kind, EventKind::Invoke { call: Call::Take { .. }, .. });
                    call && event.kind.lock() == Some(self.lock) && event.host == by.client
                };
                let parts = [latest(&takes), self.restarted(at, host), self.promoted(at, host)];
                parts.into_iter().flatten().collect()
            }
            EventKind::Queue { waiters, .. } => {
                let queue = |event: &Event| self.is_queue(event);
                let here = latest(&|event| event.host == host && queue(event));
                // A node that replaced another one continues with the queue that it had received
                // from it.
                let is_later = |promoted: usize| here.is_none_or(|here| here < promoted);
                let took_over = here.is_none() || self.promoted(at, host).is_some_and(is_later);
                let elsewhere = latest(&queue).filter(|_| took_over);
                let before = elsewhere.or(here);
                let gone =
                    before.into_iter().flat_map(|at| self.waiters(at)).filter(|one| !waiters.contains(one));
                let calls = gone.filter_map(|owner| self.call(at, *owner));
                let asks = |event: &Event| {
                    let tries = matches!(event.kind, EventKind::Invoke { .. } | EventKind::Woken { .. });
                    tries && event.kind.lock() == Some(self.lock)
                };
                calls.chain(latest(&asks)).chain(elsewhere).chain(self.promoted(at, host)).collect()
            }
            EventKind::Became { .. } => {
                let sentinels = ["+odown", "+try-failover", "+selected-slave"].map(|name| {
                    latest(
                        &|event| matches!(&event.kind, EventKind::Sentinel { event, .. } if **event == *name),
                    )
                });
                let cluster = ["fail", "elected", "takeover"].map(|name| {
                    let is_named =
                        |event: &Event| matches!(&event.kind, EventKind::Cluster { event, .. } if **event == *name);
                    latest(&|event| event.host == host && is_named(event))
                });
                sentinels.into_iter().chain(cluster).flatten().collect()
            }
            EventKind::Serves { .. } => {
                let sees =
                    |event: &Event| event.host == host && matches!(event.kind, EventKind::Cluster { .. });
                latest(&sees).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the latest grant to another owner, for whose end a refused owner waits, unless that
    /// hold has ended.
    fn in_the_way(&self, before: usize, owner: Owner) -> Option<usize> {
        let grants = |event: &Event| {
            let of_other = event.kind.owner() != Some(owner) && event.kind.lock() == Some(self.lock);
            of_other && has(event)
        };
        let grant = self.last(before, grants)?;
        let holder = &self.history.events[grant];
        let owner = holder.kind.owner()?;
        let is_over = |event: &Event| event.host == holder.host && self.is_about(event, owner) && ends(event);
        (!self.history.events[grant..before].iter().any(is_over)).then_some(grant)
    }

    /// Returns the belief by which a client released a hold of another owner.
    fn belief_of(&self, call: usize, by: Party) -> Option<usize> {
        let releases =
            matches!(self.history.events[call].kind, EventKind::Invoke { call: Call::Release, .. });
        let of_party = |event: &Event| {
            let of_lock = event.kind.lock() == Some(self.lock) && event.host == by.client;
            of_lock && by.owner.is_none_or(|owner| self.is_about(event, owner))
        };
        let believes = |event: &Event| of_party(event) && is_of_belief(event);
        if releases { self.last(call, believes) } else { None }
    }

    /// Returns the node's previous count of the owner's hold, if the chain concerns that hold alone
    /// or its owner still believed in it. A nested grant and a release continue from that count,
    /// and a loss in between affects both.
    fn counted_before(&self, at: usize, owner: Owner) -> Option<usize> {
        let host = self.history.events[at].host;
        let counts = |event: &Event| {
            event.host == host
                && self.is_about(event, owner)
                && (gives(event)
                    || matches!(event.kind, EventKind::Released { .. } | EventKind::Vanished { .. }))
        };
        let believed = self.last(at, |event| self.is_about(event, owner) && is_of_belief(event));
        let is_nested =
            believed.is_some_and(|at| matches!(self.history.events[at].kind, EventKind::Believes { .. }));
        let before = self.last(at, counts)?;
        let goes_on =
            if ends(&self.history.events[before]) { is_nested } else { self.is_of_one || is_nested };
        goes_on.then_some(before)
    }

    /// Returns the owners in the queue of a queue event.
    fn waiters(&self, at: usize) -> &'a [Owner] {
        match &self.history.events[at].kind {
            EventKind::Queue { waiters, .. } => waiters,
            _ => &[],
        }
    }

    /// Returns the node's restart after its last crash, in which it lost what it had not stored.
    fn restarted(&self, before: usize, node: Host) -> Option<usize> {
        let lives = |event: &Event| {
            event.host == node && matches!(event.kind, EventKind::Life { life: Life::Started })
        };
        self.last_within(before, lives).filter(|at| self.history.events[*at].at > True::ZERO)
    }

    /// Returns the node's promotion to master, if it was not a master from the start. It may
    /// precede the first owner's call, since the other owner's hold depends on it all the same.
    fn promoted(&self, before: usize, node: Host) -> Option<usize> {
        let became =
            |event: &Event| event.host == node && event.kind == EventKind::Became { role: Role::Master };
        self.last(before, became).filter(|at| self.history.events[*at].at > True::ZERO)
    }

    /// Adds the faults in force on the hosts of an event and of the events that it needed, between
    /// the two.
    fn find_faults_before(&mut self, at: usize, needed: &[usize]) {
        let event = &self.history.events[at];
        let mut hosts = vec![event.host];
        // A hold ends because its client does not extend it, and a write leaves only when its
        // client runs.
        if matches!(event.kind, EventKind::Vanished { .. } | EventKind::Write { .. }) {
            hosts.extend(event.kind.owner().map(|owner| self.history.client_of(owner)));
        }
        // A master is replaced because of faults on it.
        let is_about_masters = matches!(
            event.kind,
            EventKind::Sentinel { .. } | EventKind::Cluster { .. } | EventKind::Became { .. }
        );
        if is_about_masters {
            hosts.extend(self.nodes().filter(|node| self.history.was_master(self.lock, *node, at)));
        }
        // An action of a node or a Sentinel by itself depends on what has just happened to it.
        if needed.is_empty() && event.kind.owner().is_none() {
            self.find_faults(&hosts, event.at - JUST_NOW, event.at, at);
        }
        for needed in needed {
            let before = &self.history.events[*needed];
            let mut both: Vec<Host> = hosts.iter().copied().chain([before.host]).collect();
            // A waiter for the end of a hold waits for the holder's client.
            if matches!(event.kind, EventKind::Waiting { .. }) && gives(before) {
                both.extend(before.kind.owner().map(|owner| self.history.client_of(owner)));
            }
            if let EventKind::Return { outcome, .. } = &event.kind {
                let nodes = self.nodes_called_with(before);
                if matches!(outcome, Outcome::Failed { .. }) {
                    self.find_commands_before(&nodes, event.at, at);
                }
                both.extend(nodes);
            }
            self.find_faults(&both, before.at, event.at, at);
        }
    }

    /// Returns the nodes of all locks that a client called for at the instant of this call: locks
    /// that are taken together fail together.
    fn nodes_called_with(&self, call: &Event) -> Vec<Host> {
        let events = &self.history.events;
        let at_once = events.partition_point(|event| event.at < call.at)
            ..events.partition_point(|event| event.at <= call.at);
        let calls =
            |event: &&Event| event.host == call.host && matches!(event.kind, EventKind::Invoke { .. });
        let locks = events[at_once].iter().filter(calls).filter_map(|event| event.kind.lock());
        locks.flat_map(|lock| self.history.lock(lock).authority.groups.concat()).collect()
    }

    /// Adds the faults that changed the later replies of these nodes. Until a change is undone, the
    /// nodes may refuse later requests because of it.
    fn find_commands_before(&mut self, nodes: &[Host], until: True, event: usize) {
        let given = |fault: &Fault| fault.reconfigures && fault.from <= until;
        for (number, fault) in self.history.faults.iter().enumerate().filter(|(_, fault)| given(fault)) {
            if fault.targets.iter().any(|node| nodes.contains(node)) {
                self.faults.entry(number).or_default().insert(event);
            }
        }
    }

    fn find_faults(&mut self, hosts: &[Host], from: True, until: True, event: usize) {
        for (number, (fault, end)) in self.history.faults.iter().zip(&self.in_force_until).enumerate() {
            let in_force = fault.from <= until && *end >= from;
            if in_force && fault.targets.iter().any(|host| hosts.contains(host)) {
                self.faults.entry(number).or_default().insert(event);
            }
        }
    }

    fn links(&self) -> Vec<Link> {
        let Self { history, events, faults, clocks, .. } = self;
        let of_clocks = clocks.keys().map(|shown| (shown.at, What::Clock(*shown)));
        let of_events = events.keys().map(|event| (history.events[*event].at, What::Event(*event)));
        let mut order: Vec<(True, What)> = of_clocks.chain(of_events).collect();
        order.sort();
        order.drain(..order.len().saturating_sub(LINKS_MAX));
        let is_told = |event: &usize| order.iter().any(|(_, what)| *what == What::Event(*event));
        let led = faults.iter().filter(|(_, events)| events.iter().any(is_told)).map(|(fault, _)| *fault);
        let led: Vec<usize> = led.collect();
        let latest = &led[led.len().saturating_sub(FAULTS_MAX)..];
        order.extend(latest.iter().map(|fault| (history.faults[*fault].from, What::Fault(*fault))));
        order.sort();
        let places: BTreeMap<What, usize> =
            order.iter().enumerate().map(|(place, (_, what))| (*what, place)).collect();
        let after = |what: &What| -> Vec<usize> {
            let causes: Vec<What> = match what {
                What::Fault(_) => Vec::new(),
                What::Clock(shown) => self.causes_of_clock(shown),
                What::Event(event) => {
                    let caused = faults.iter().filter(|(_, events)| events.contains(event));
                    let caused = caused.map(|(fault, _)| What::Fault(*fault));
                    let shown = clocks.iter().filter(|(_, events)| events.contains(event));
                    let shown = shown.map(|(shown, _)| What::Clock(*shown));
                    let needed = events[event].iter().map(|needed| What::Event(*needed));
                    caused.chain(shown).chain(needed).collect()
                }
            };
            let all = causes.into_iter().filter_map(|what| places.get(&what).copied());
            // A fault that begins during a belief explains why the belief lasted, not why it began.
            all.filter(|cause| *cause < places[what]).collect()
        };
        order.iter().map(|(at, what)| Link { at: *at, what: *what, after: after(what) }).collect()
    }
}

/// Returns the end of a fault's effect. A crash has an effect until its hosts have started again. A
/// change of a clock ends at once; the link of the clock covers it. Any other instantaneous fault
/// may hit a message, so it has an effect until the next return of a call by a targeted client, or
/// by any client if none is targeted.
fn in_force_until(history: &History, fault: &Fault) -> True {
    if fault.until.is_some() || fault.lasts {
        return fault.until.unwrap_or(True::MAX);
    }
    let after = |at: True| &history.events[history.events.partition_point(|event| event.at < at)..];
    let is_life = |event: &Event, host: Host, of: Life| {
        event.host == host && matches!(event.kind, EventKind::Life { life } if life == of)
    };
    // In real time a crash is observed some time after its order.
    let ordered = || after(fault.from).iter().take_while(|event| event.at <= fault.from + JUST_NOW);
    let is_down = |host: &&Host| ordered().any(|event| is_life(event, **host, Life::Crashed));
    let starts = |host: &Host| {
        let started = after(fault.from).iter().find(|event| is_life(event, *host, Life::Started));
        started.map_or(True::MAX, |event| event.at)
    };
    if let Some(up) = fault.targets.iter().filter(is_down).map(starts).max() {
        return up;
    }
    let steps = |host: &Host| {
        history.clock(*host).segments().iter().skip(1).any(|segment| segment.from == fault.from)
    };
    if fault.targets.iter().any(steps) {
        return fault.from;
    }
    let is_target = |host: Host| fault.targets.contains(&host);
    let of_some = history.header.hosts_of(HostKind::Client).any(is_target);
    let returns = |event: &&Event| {
        matches!(event.kind, EventKind::Return { .. }) && (is_target(event.host) || !of_some)
    };
    after(fault.from).iter().find(returns).map_or(True::MAX, |event| event.at)
}

/// Returns true if the event begins or ends a belief.
fn is_of_belief(event: &Event) -> bool {
    matches!(event.kind, EventKind::Believes { .. } | EventKind::Disbelieves { .. })
}

/// Returns true if the event gives an owner a hold, or a longer one.
fn gives(event: &Event) -> bool {
    has(event) || matches!(event.kind, EventKind::Extended { .. })
}

/// Returns true if an owner has a hold on a node from this event on: the node granted it, or came
/// back with it.
fn has(event: &Event) -> bool {
    matches!(event.kind, EventKind::Granted { .. } | EventKind::Regained { .. })
}

/// Returns true if the event ends its owner's hold on its node.
pub(in crate::judge::checker) fn ends(event: &Event) -> bool {
    matches!(event.kind, EventKind::Vanished { .. } | EventKind::Released { left: 0, .. })
}
