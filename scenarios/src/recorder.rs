//! Writes the history of a run down while it happens, and tells the director when something happened that a fault waits for.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use lockstorm_client::{LostReason, Observer, WokenBy};
use lockstorm_sim::{
    time::{Boottime, Monotonic, True},
    world::{Face, HostCtx},
};
use tokio::sync::Notify;

use crate::{
    fault::{Happening, Trigger},
    history::{Call, Deadline, History, Host, Life, Lock, Mode, Op, Outcome, Owner, Wait, Wake, What, Why},
};

/// The lock that a scenario is about; any others are those it is taken together with.
pub const LOCK: Lock = Lock(0);

/// A history being written.
#[derive(Debug)]
pub struct Recorder {
    /// What has happened so far.
    pub history: History,
    ops: u32,
    /// What occurrences of faults wait for: the number of the occurrence, its trigger, the clients, how often it happened.
    awaited: Vec<Awaited>,
    /// Occurrences whose trigger has happened, with when they are due.
    due: VecDeque<(usize, True)>,
    /// The owner that each client is at present, and whom each name in Redis stands for: an algorithm may write a new name
    /// for every acquisition, and it is still the same line of work.
    current: BTreeMap<Host, Owner>,
    names: BTreeMap<String, Owner>,
    /// The holds that each owner believes in, with the clock reading each ends at: an owner of nested holds believes in the
    /// lock until the last of them is given back.
    holds: BTreeMap<(Lock, Owner), BTreeMap<u64, Boottime>>,
    /// The owner that each client last came to believe in, by lock.
    believed: BTreeMap<(Lock, Host), Owner>,
    /// Owners that believe they hold a lock, and owners that wait for one: the longest first.
    believers: Vec<(Lock, Owner)>,
    waiters: Vec<(Lock, Owner)>,
}

#[derive(Debug)]
struct Awaited {
    occurrence: usize,
    trigger: Trigger,
    delay: Duration,
    clients: Option<Vec<Host>>,
    count: u64,
}

/// A recorder that many hosts share. All of one run live on one thread, so nobody ever waits for it.
#[derive(Debug, Clone)]
pub struct Shared(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    recorder: Mutex<Recorder>,
    happened: Notify,
}

impl Shared {
    /// A recorder at the beginning of a run.
    pub fn new(history: History) -> Shared {
        let recorder = Recorder {
            history,
            ops: 0,
            awaited: Vec::new(),
            due: VecDeque::new(),
            current: BTreeMap::new(),
            names: BTreeMap::new(),
            holds: BTreeMap::new(),
            believed: BTreeMap::new(),
            believers: Vec::new(),
            waiters: Vec::new(),
        };
        Shared(Arc::new(Inner { recorder: Mutex::new(recorder), happened: Notify::new() }))
    }

    /// The recorder itself.
    ///
    /// # Panics
    /// When code that was writing has panicked: the run is lost then.
    pub fn get(&self) -> MutexGuard<'_, Recorder> {
        self.0.recorder.lock().expect("nobody panics while writing history")
    }

    /// Resolves when something has happened that an occurrence waits for.
    pub async fn happened(&self) {
        self.0.happened.notified().await;
    }

    /// Has an occurrence wait for its trigger, among these clients or all.
    pub fn await_trigger(
        &self,
        occurrence: usize,
        trigger: &Trigger,
        delay: Duration,
        clients: Option<Vec<Host>>,
    ) {
        let trigger = trigger.clone();
        self.get().awaited.push(Awaited { occurrence, trigger, delay, clients, count: 0 });
    }

    /// Writes down what becomes of a host. Whoever crashes neither holds nor waits any more: what starts on the host later is
    /// another owner.
    pub fn life(&self, at: True, host: Host, life: Life) {
        let mut recorder = self.get();
        recorder.history.record(at, host, What::Life { life });
        if life == Life::Crashed {
            let Recorder { history, holds, believers, waiters, .. } = &mut *recorder;
            holds.retain(|(_, owner), _| history.client_of(*owner) != host);
            believers.retain(|(_, owner)| history.client_of(*owner) != host);
            waiters.retain(|(_, owner)| history.client_of(*owner) != host);
        }
    }

    fn record(&self, at: True, host: Host, what: What, happening: Option<Happening>) {
        let mut recorder = self.get();
        recorder.history.record(at, host, what);
        let Some(happening) = happening else { return };
        let Recorder { awaited, due, .. } = &mut *recorder;
        for awaited in awaited {
            let of_client = awaited.clients.as_ref().is_none_or(|clients| clients.contains(&host));
            if awaited.trigger.event != happening || !of_client {
                continue;
            }
            awaited.count += 1;
            let nth = awaited.trigger.nth;
            if awaited.count == nth || (awaited.trigger.always && awaited.count > nth) {
                due.push_back((awaited.occurrence, at + awaited.delay));
                self.0.happened.notify_one();
            }
        }
    }
}

impl Recorder {
    /// The next occurrence whose trigger has happened, with when it is due.
    pub fn take_due(&mut self) -> Option<(usize, True)> {
        self.due.pop_front()
    }

    /// The owner that a node has granted a lock to under a name which `client` has written: the one that the name has stood for
    /// before, if that is one of this client's, else the owner that the client is at present, which the name stands for from now
    /// on. Where no client is known to have written it, the one that the name stands for, or an owner of `node`.
    ///
    /// A name that is known comes first: a request of a process that has crashed may still arrive when its host is
    /// somebody else already. A name that two clients use stands for the one that was granted the lock last.
    ///
    /// Of a quorum every name is an owner of its own: nodes that granted two attempts of one client, one of them long given
    /// up, have not granted the lock together.
    pub fn owner_granted(&mut self, name: &str, client: Option<Host>, node: Host) -> Owner {
        let Some(client) = client else {
            return self.names.get(name).copied().unwrap_or_else(|| self.history.owner(name, node));
        };
        let owner = self.owner_named(name, client);
        if self.history.header.locks[0].authority.quorum == 1 {
            self.names.insert(name.to_owned(), owner);
        }
        owner
    }

    /// The owner that a name in Redis stands for where this client uses it.
    pub fn owner_named(&mut self, name: &str, client: Host) -> Owner {
        if self.history.header.locks[0].authority.quorum > 1 {
            return self.history.owner(name, client);
        }
        let known = self.names.get(name).copied();
        if let Some(owner) = known.filter(|owner| self.history.client_of(*owner) == client) {
            return owner;
        }
        let owner = self.current.get(&client).copied();
        let owner = owner.unwrap_or_else(|| self.history.owner(name, client));
        if known.is_none() {
            self.names.insert(name.to_owned(), owner);
        }
        owner
    }

    /// The name of the owner that a client is at present.
    pub fn name_of(&self, client: Host) -> Option<Box<str>> {
        self.current.get(&client).map(|owner| self.history.owners[owner.0 as usize].name.clone())
    }

    /// The client that has believed longest to hold the lock, of those that still do.
    pub fn holder(&self) -> Option<Host> {
        self.believers.first().map(|(_, owner)| self.history.client_of(*owner))
    }

    /// The client that has waited longest.
    pub fn waiter(&self) -> Option<Host> {
        self.waiters.first().map(|(_, owner)| self.history.client_of(*owner))
    }
}

/// Writes down what one client does and believes.
#[derive(Debug, Clone)]
pub struct Teller {
    shared: Shared,
    ctx: HostCtx,
    host: Host,
    /// The lock that this is about.
    lock: Lock,
    /// The clock that the client's deadlines are readings of.
    clock: Face,
}

impl Teller {
    /// For the client on this host.
    pub fn new(shared: Shared, ctx: HostCtx, host: Host) -> Teller {
        Teller { shared, ctx, host, lock: LOCK, clock: Face::Boottime }
    }

    /// The same, about this lock.
    #[must_use]
    pub fn about(&self, lock: Lock) -> Teller {
        Teller { lock, ..self.clone() }
    }

    /// The same, for a client whose deadlines are readings of this clock.
    #[must_use]
    pub fn counting_by(self, clock: Face) -> Teller {
        Teller { clock, ..self }
    }

    /// What the client calls itself in Redis: its host's name, and how often it was started where that is more than once.
    /// A restarted client is somebody else, as a process with a fresh UUID is.
    pub fn client_id(&self) -> String {
        match self.ctx.incarnation() {
            0 => self.ctx.name().to_owned(),
            again => format!("{}.{}", self.ctx.name(), again + 1),
        }
    }

    /// The owner that this client is from now on: one script is one line of work.
    pub fn owner(&self) -> Owner {
        let name = format!("{}:1", self.client_id());
        let mut recorder = self.shared.get();
        let owner = recorder.history.owner(&name, self.host);
        recorder.current.insert(self.host, owner);
        recorder.names.insert(name, owner);
        recorder.believed.retain(|(_, host), _| *host != self.host);
        owner
    }

    /// The owner for which this client writes when it does not say for which: the one that came last to believe that it holds
    /// the lock, of those that still do; failing that, the last one that did; failing that, the one that it is.
    pub fn writer(&self, otherwise: Owner) -> Owner {
        let recorder = self.shared.get();
        let of_client = |(lock, owner): &&(Lock, Owner)| {
            *lock == self.lock && recorder.history.client_of(*owner) == self.host
        };
        let still = recorder.believers.iter().rev().find(of_client).map(|(_, owner)| owner);
        still.or(recorder.believed.get(&(self.lock, self.host))).copied().unwrap_or(otherwise)
    }

    /// The owner that a name in Redis stands for, which this client has chosen.
    pub fn owner_named(&self, name: &str) -> Owner {
        self.shared.get().owner_named(name, self.host)
    }

    /// The application called.
    pub fn invoked(&self, owner: Owner, call: Call) -> Op {
        let op = {
            let mut recorder = self.shared.get();
            recorder.ops += 1;
            Op(recorder.ops)
        };
        let happening = match call {
            Call::Acquire { .. } => Some(Happening::Asked),
            Call::Release => Some(Happening::Releasing),
            _ => None,
        };
        self.tell(What::Invoke { op, lock: self.lock, owner, call }, happening);
        op
    }

    /// The call came back.
    pub fn returned(&self, op: Op, call: Call, outcome: Outcome) {
        let happening = match (call, &outcome) {
            (Call::Acquire { .. }, Outcome::Ok) => Some(Happening::Acquired),
            (Call::Acquire { .. }, Outcome::Refused) => Some(Happening::Refused),
            (Call::Release, Outcome::Ok) => Some(Happening::Released),
            _ => None,
        };
        self.tell(What::Return { op, outcome }, happening);
    }

    /// From now on the owner thinks that it holds the lock, until its clock shows `until` or it is told otherwise.
    pub fn believes(
        &self,
        owner: Owner,
        until: Option<Deadline>,
        token: Option<u64>,
        count: u32,
        mode: Mode,
    ) {
        let again = {
            let mut recorder = self.shared.get();
            let Recorder { waiters, history, .. } = &mut *recorder;
            waiters.retain(|(lock, waiter)| *lock != self.lock || history.client_of(*waiter) != self.host);
            let again = recorder.believers.contains(&(self.lock, owner));
            if !again {
                recorder.believers.push((self.lock, owner));
                recorder.believed.insert((self.lock, self.host), owner);
            }
            again
        };
        let what = What::Believes { lock: self.lock, owner, until, token, count, mode };
        self.tell(what, again.then_some(Happening::Renewed));
    }

    /// From now on the owner knows that it does not hold the lock.
    pub fn disbelieves(&self, owner: Owner, why: Why) {
        self.shared.get().believers.retain(|believer| *believer != (self.lock, owner));
        let happening = (why != Why::Released).then_some(Happening::Lost);
        self.tell(What::Disbelieves { lock: self.lock, owner, why }, happening);
    }

    /// The owner was refused and waits.
    pub fn waits(&self, owner: Owner) {
        {
            let mut recorder = self.shared.get();
            if !recorder.waiters.contains(&(self.lock, owner)) {
                recorder.waiters.push((self.lock, owner));
            }
        }
        self.tell(What::Waiting { lock: self.lock, owner }, Some(Happening::Waiting));
    }

    /// The owner stopped waiting in order to try again.
    pub fn woken(&self, owner: Owner, by: Wake) {
        self.tell(What::Woken { lock: self.lock, owner, by }, None);
    }

    /// The owner has given up waiting.
    pub fn gave_up(&self, owner: Owner) {
        self.shared.get().waiters.retain(|waiter| *waiter != (self.lock, owner));
    }

    /// One of the production client's holds began or was renewed.
    fn holds(&self, owner: Owner, hold: u64, until: Boottime, token: Option<u64>) {
        self.shared.get().holds.entry((self.lock, owner)).or_default().insert(hold, until);
        self.believes_in_holds(owner, token);
    }

    /// One of the production client's holds ended.
    fn let_go(&self, owner: Owner, hold: u64, why: Why) {
        let left = {
            let mut recorder = self.shared.get();
            let Some(holds) = recorder.holds.get_mut(&(self.lock, owner)) else { return };
            if holds.remove(&hold).is_none() {
                return;
            }
            holds.len()
        };
        if left == 0 {
            self.disbelieves(owner, why);
        } else {
            self.believes_in_holds(owner, None);
        }
    }

    fn believes_in_holds(&self, owner: Owner, token: Option<u64>) {
        let (until, count) = {
            let recorder = self.shared.get();
            let holds = recorder.holds.get(&(self.lock, owner)).cloned().unwrap_or_default();
            (holds.values().max().copied(), u32::try_from(holds.len()).unwrap_or(u32::MAX))
        };
        let until = until.map(|until| match self.clock {
            Face::Monotonic => Deadline::from(Monotonic::from_nanos(until.as_nanos())),
            _ => Deadline::from(until),
        });
        self.believes(owner, until, token, count, Mode::Exclusive);
    }

    fn tell(&self, what: What, happening: Option<Happening>) {
        self.ctx.observe("client", format!("{what:?}"));
        self.shared.record(self.ctx.moment().0, self.host, what, happening);
    }

    /// How an application's wait is written down.
    pub fn wait(wait: Option<Duration>) -> Wait {
        match wait {
            None => Wait::Unbounded,
            Some(Duration::ZERO) => Wait::No,
            Some(wait) => Wait::Ms(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        }
    }
}

impl Observer for Teller {
    fn observe(&self, event: &lockstorm_client::Event<'_>) {
        use lockstorm_client::What as Told;
        let Some(lock) = self.shared.get().history.header.lock(event.lock) else { return };
        let about = self.about(lock);
        let owner = about.owner_named(event.owner);
        let boottime = |deadline: lockstorm_client::Boottime| {
            Boottime::from_nanos(i64::try_from(deadline.0.as_nanos()).unwrap_or(i64::MAX))
        };
        match event.what {
            Told::Acquired { hold, deadline, token, .. } => {
                about.holds(owner, hold, boottime(deadline), token)
            }
            Told::Renewed { hold, deadline } => about.holds(owner, hold, boottime(deadline), None),
            Told::Lost { hold, why: LostReason::Expired } => about.let_go(owner, hold, Why::Expired),
            Told::Lost { hold, .. } => about.let_go(owner, hold, Why::Lost),
            Told::Releasing { hold } => about.let_go(owner, hold, Why::Released),
            Told::Waiting { .. } => about.waits(owner),
            Told::Woken { by: WokenBy::Message } => about.woken(owner, Wake::Message),
            Told::Woken { by: WokenBy::Timer } => about.woken(owner, Wake::Timer),
            _ => {}
        }
    }
}
