//! Derives the effects of a real node's commands on the lock's keys from outside. MONITOR shows
//! each command with its connection, in the server's order and with its time in microseconds. A
//! shadow copy replays the commands and so has the keys after each one.
//!
//! The watcher reads the keys after each command that may concern them, and at least every 50 ms.
//! The reads show changes that the server makes itself: an expired key is detected 1 ms after its
//! expiry time.

use std::{cell::Cell, ops::Range, pin::pin, rc::Rc, time::Duration};

use bytes::Bytes;
use lockstorm_sim::cluster::key_slot;
use lockstorm_world::{
    HostCtx, TcpStream,
    time::{True, Wall},
};
use tokio::io::{AsyncReadExt, BufReader, Lines, ReadHalf};

use super::{
    RealServer,
    mirror::{From, Line, Mirror, Step, escaped},
    reader::{Answer, Connections, Reader, Reading, connections, read, role, tripwire},
    view::View,
};
use crate::{
    judge::{
        history::{Event, EventKind, GainCause, Host, Lock, Owner, Party, Role, Serving},
        object::{self, Content, Keys, Value},
    },
    run::recorder::Sender,
    run::{
        Stage,
        held::{Cause, Names, Watched},
    },
};

/// The longest interval between two reads of the keys.
const EVERY: Duration = Duration::from_millis(50);

/// A server may drop a key this many milliseconds before the copy's expiry time. The copy takes a
/// grant's time from MONITOR, and the server computed the expiry slightly earlier.
const EARLY_MS: i64 = 10;

/// The cause of a change of the keys.
enum Change<'a> {
    /// A command, of a client of the scenario or of another program.
    Command { name: &'a str, by: Option<&'a Sender> },
    /// MONITOR shows no command that made the change.
    Nothing {
        explained: &'a [bool],
        /// The expected expiry time of each key.
        expires_ms: &'a [Option<i64>],
        has_evicted: bool,
    },
}

/// Returns true if Sentinels may change the role of the nodes.
fn is_watched(stage: &Stage, cluster: Option<(u16, Serving)>) -> bool {
    cluster.is_none() && !stage.plan.scenario.sentinel.is_empty()
}

/// Waits until a tripwire ends. Returns true if the node has said that its role is another.
async fn tripped(wire: &mut Option<TcpStream>) -> bool {
    match wire {
        Some(wire) => wire.read_u8().await.is_ok(),
        None => std::future::pending().await,
    }
}

/// Watches the node on one host until it is gone.
pub(super) struct Watcher {
    ctx: HostCtx,
    stage: Rc<Stage>,
    host: Host,
    /// The keys of all locks, lock by lock, each with the prefix of its lease keys.
    keys: Vec<(Bytes, String)>,
    /// The locks' names, escaped as in MONITOR.
    names: Vec<String>,
    reader: Reader,
    monitor: Lines<BufReader<ReadHalf<TcpStream>>>,
    /// A command of a connection outside of the scenario has the sender `None`.
    mirror: Mirror<Option<Sender>>,
    locks: Vec<Watched>,
    /// The number of evicted keys at the last read.
    evicted: u64,
    /// In a cluster, the slot of the locks, and how the node served it when it was last asked.
    cluster: Option<(u16, Serving)>,
    /// False while the node refuses to read the keys.
    is_read: bool,
    /// True while the node has keys from its disk that it has refused to let the watcher read.
    has_unread: bool,
    /// The connection that ends when the node becomes a replica, under Sentinels, and the moment at
    /// which it ended.
    tripwire: Option<TcpStream>,
    tripped: Option<True>,
}

/// The words that begin the refusals of a node of a cluster to serve keys.
const ELSEWHERE: [&str; 5] = ["MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "CROSSSLOT"];

impl Watcher {
    /// Begins to watch the node on this host. If it had an earlier life, the present keys came from
    /// its disk; otherwise they existed from the start. Returns `None` if the node is gone already,
    /// or cannot be watched.
    pub(super) async fn begin(ctx: HostCtx, stage: Rc<Stage>, server: &RealServer) -> Option<Watcher> {
        let (reads, before) = (server.reads, server.last_seen.take());
        let cluster = server.nodes_conf.as_ref().and_then(|_| {
            let lock = stage.plan.judged().next()?;
            Some((key_slot(lock.key.as_bytes()), Serving::Elsewhere))
        });
        let (reader, monitor) = connections(&ctx, reads).await?;
        let (locks, host) = (before.unwrap_or_else(|| stage.locks()), stage.host(ctx.name()));
        if cluster.is_some() {
            // A node that comes back serves nothing until it says so.
            server.master.set(false);
        }
        let of_lock = |watched: &Watched| {
            let Keys { list, leases, .. } = watched.keys.clone();
            list.into_iter().map(move |key| {
                (key.name, if key.role == object::Role::Holders { leases.clone() } else { String::new() })
            })
        };
        let keys: Vec<(Bytes, String)> = locks.iter().flat_map(of_lock).collect();
        let names = stage.plan.judged().map(|lock| escaped(lock.key.as_bytes())).collect();
        let mirror =
            Mirror::new(reads.generation, locks.iter().map(|watched| watched.keys.clone()).collect());
        let (evicted, is_read, tripped) = (0, true, None);
        let tripwire = if is_watched(&stage, cluster) { tripwire(&ctx).await } else { None };
        let mut watcher = Watcher {
            ctx,
            stage,
            host,
            keys,
            names,
            reader,
            monitor,
            mirror,
            locks,
            evicted,
            cluster,
            is_read,
            has_unread: false,
            tripwire,
            tripped,
        };
        let Reading { values: read, at, evicted } = loop {
            match watcher.read().await {
                Answer::Kept(reading) => break reading,
                // A node whose slot holds no key has lost all. Of any others it says nothing.
                Answer::NotHere => match watcher.has_keys().await? {
                    true => {
                        watcher.has_unread = true;
                        return Some(watcher);
                    }
                    false => break watcher.nothing(),
                },
                Answer::NotNow => watcher.ctx.wire_delay(EVERY).await,
                Answer::Gone => return None,
            }
        };
        watcher.evicted = evicted;
        watcher.mirror.check(&read, at);
        watcher.each_lock(&read, |watcher, watched, values, _| {
            let lost = watched.restarted(values, at, watcher);
            lost.into_iter().for_each(|lost| watcher.tell(watcher.ctx.moment().0, lost));
            let came_back = {
                let history = &watcher.stage.shared.get().history;
                // The master has granted all that a replica has. In a cluster the node says later
                // that it is one.
                let is_master = watcher.cluster.is_none()
                    && history.was_master(watched.lock, watcher.host, history.events.len());
                let came_back = || watched.came_back(history, watcher.host, at, GainCause::Restart);
                is_master.then(came_back).unwrap_or_default()
            };
            came_back.into_iter().for_each(|what| watcher.tell(watcher.ctx.moment().0, what));
            if let Some(queue) = watched.queue(values, watcher) {
                watcher.tell(watcher.ctx.moment().0, queue);
            }
        });
        Some(watcher)
    }

    /// Records that the node is a replica from the beginning.
    pub(super) fn follows(&self) {
        let of_role =
            |event: &Event| event.host == self.host && matches!(event.kind, EventKind::Became { .. });
        // Skip this if a role was recorded: the node may have been promoted in an earlier life.
        if !self.stage.shared.get().history.events.iter().any(of_role) {
            self.tell(True::ZERO, EventKind::Became { role: Role::Replica });
        }
    }

    /// Watches until the node is gone, and records its last actions; the task outlives the node's
    /// host. Only the commands that a killed server had not yet sent to MONITOR stay unknown.
    pub(super) async fn watch(mut self, server: Rc<RealServer>, seen_until: Rc<Cell<Option<True>>>) {
        let mut again = false;
        loop {
            let gone = !again && self.wait().await;
            let answer = if gone { Answer::Gone } else { self.read().await };
            match answer {
                Answer::NotNow => again = false,
                Answer::Kept(reading) => {
                    let at = reading.at;
                    (again, self.is_read) = (false, true);
                    self.look_at_role(&server, Some(&reading)).await;
                    self.has_unread = false;
                    self.judge(reading, server.master.get());
                    seen_until.set(Some(self.true_time(at)));
                }
                Answer::NotHere => {
                    // It may have taken the slot right after. Then the keys are read again at once.
                    self.is_read = false;
                    let is_known = self.look_at_role(&server, None).await;
                    again = !is_known && !again;
                    if is_known {
                        self.mirror.end();
                        let steps = self.mirror.take();
                        self.judge_steps(steps, server.master.get());
                        seen_until.set(Some(self.ctx.moment().0));
                    }
                }
                Answer::Gone => {
                    self.mirror.end();
                    let steps = self.mirror.take();
                    self.judge_steps(steps, server.master.get());
                    // A client may have killed this connection while the server runs on. A server
                    // that is gone changes nothing more.
                    let Some((reader, monitor)) = self.connect_again(&server, &seen_until).await else {
                        seen_until.set(None);
                        server.last_seen.replace(Some(self.locks));
                        return;
                    };
                    (self.reader, self.monitor) = (reader, monitor);
                    if is_watched(&self.stage, self.cluster) {
                        (self.tripwire, self.tripped) = (tripwire(&self.ctx).await, None);
                    }
                    // The client that ended the connection may have changed the role.
                    again = true;
                }
            }
        }
    }

    /// Asks the node for its role, in a cluster for its view, and records a change of it, with the
    /// holds that a new master lacks. Records nothing yet if the node has become a master whose
    /// keys were not read; returns false then if they can be read now.
    async fn look_at_role(&mut self, server: &RealServer, reading: Option<&Reading>) -> bool {
        let connection = &mut self.reader.connection;
        // A master of a cluster may get the slot of the locks without a promotion.
        let was_replica = self.cluster.is_none() || server.view.borrow().master().is_some();
        let (becomes, is_master, how) = match &mut self.cluster {
            None => {
                let Some(role) = role(connection).await else { return true };
                let is_master = role == Role::Master;
                if server.master.get() == is_master {
                    self.tripped = None;
                    return true;
                }
                (vec![EventKind::Became { role }], is_master, GainCause::Failover)
            }
            Some((slot, serving)) => {
                let Some(view) = View::of(connection).await else { return true };
                let how = view.serving(*slot);
                server.view.replace(view);
                // The keys of a new master are to be read first, unless the mirror has them.
                let is_new = how.is_master() && !serving.is_master();
                if reading.is_none() && is_new && (how.answers() || self.has_unread) {
                    return !how.answers();
                }
                if std::mem::replace(serving, how) == how {
                    return true;
                }
                let history = &self.stage.shared.get().history;
                let of_lock = |watched: &Watched| EventKind::Serves { lock: watched.lock, how };
                let was = |lock| history.was_master(lock, self.host, history.events.len());
                let is_back = self.locks.first().is_some_and(|watched| was(watched.lock));
                let gain = if is_back { GainCause::Restart } else { GainCause::Failover };
                (self.locks.iter().map(of_lock).collect(), how.is_master(), gain)
            }
        };
        let mut now = self.ctx.moment().0;
        let was_master = server.master.replace(is_master);
        let mut before = None;
        if was_master && !is_master {
            // These are the commands of clients before the demotion.
            let steps = self.mirror.end_as_master(Option::is_some);
            self.judge_steps(steps, true);
            now = self.tripped.unwrap_or(now);
        } else if is_master && !was_master {
            // A client may have written already. The read has its writes, which the node had not as
            // a replica.
            before = self.mirror.begin_as_master(Option::is_some);
            let first = self.mirror.first_at().map(|at| self.true_time(at));
            now = first.map_or(now, |first| first.min(now));
        }
        becomes.into_iter().for_each(|what| self.tell(now, what));
        if is_master && !was_master && was_replica {
            self.stage.shared.node_promoted(now, self.host);
        }
        if is_master && !was_master {
            if self.has_unread && before.is_some() {
                let why = "clients changed it before the keys from its disk could be read";
                self.locks.iter().for_each(|watched| self.lost_sight(watched.lock, why));
            }
            let known = Reading { values: self.mirror.done(), ..self.nothing() };
            self.promoted(now, reading.unwrap_or(&known), before, how);
        }
        if is_watched(&self.stage, self.cluster) && is_master {
            (self.tripwire, self.tripped) = (tripwire(&self.ctx).await, None);
        }
        true
    }

    /// Returns true if the node of a cluster has keys in the slot of the locks.
    async fn has_keys(&mut self) -> Option<bool> {
        let (slot, _) = self.cluster?;
        let mut count = redis::cmd("CLUSTER");
        count.arg("COUNTKEYSINSLOT").arg(slot);
        let count: u64 = count.query_async(&mut self.reader.connection).await.ok()?;
        Some(count > 0)
    }

    /// Returns a reading of no keys, at this moment.
    fn nothing(&self) -> Reading {
        let values = vec![Value::default(); self.keys.len()];
        Reading { values, at: self.ctx.wall(), evicted: self.evicted }
    }

    /// Waits until the keys should be read. Returns true if MONITOR has ended.
    async fn wait(&mut self) -> bool {
        let expiry = self.until_expiry().unwrap_or(EVERY).min(EVERY);
        let mut alarm = pin!(self.ctx.wire_delay(expiry));
        loop {
            tokio::select! {
                biased;
                told = self.monitor.next_line() => {
                    let Ok(Some(told)) = told else { return true };
                    if self.take_in(&told) {
                        return false;
                    }
                }
                ended = tripped(&mut self.tripwire) => {
                    self.tripwire = None;
                    // The node itself says so if it is up.
                    self.tripped = ended.then(|| self.ctx.moment().0);
                    return false;
                }
                () = &mut alarm => return false,
            }
        }
    }

    /// Opens new connections to the node. Returns `None` if it has crashed or ended.
    async fn connect_again(
        &self,
        server: &RealServer,
        seen_until: &Rc<Cell<Option<True>>>,
    ) -> Option<Connections> {
        while server.is_life_of(seen_until) {
            if let Some(made) = connections(&self.ctx, self.reader.reads).await {
                // The answer may come from the node's next life.
                return server.is_life_of(seen_until).then_some(made);
            }
            self.ctx.wire_delay(EVERY).await;
        }
        None
    }

    /// Processes a line of MONITOR. Returns true if its command may have changed the keys.
    fn take_in(&mut self, told: &str) -> bool {
        let Some(line) = Line::parse(told).filter(|line| line.db == 0) else { return false };
        if line.from == From::Script {
            self.mirror.go_on(&line);
            return false;
        }
        self.mirror.end();
        let by = match line.from {
            From::Port(port) if port == self.reader.port => return false,
            From::Port(port) => self.ctx.dialed_from(port).map(|host| (host, port)),
            _ => None,
        };
        let concerns = matches!(&*line.name(), "FLUSHALL" | "FLUSHDB")
            || self.names.iter().any(|name| line.command.contains(name));
        if concerns {
            // Another node of a cluster moves keys, and acts for no client.
            let by = by.filter(|(host, _)| {
                self.cluster.is_none() || **host == *self.ctx.name() || !self.is_node(host)
            });
            let client = by.and_then(|(host, port)| Some((*self.stage.hosts.get(&*host)?, port)));
            if let Some((client, _)) = client {
                let mut recorder = self.stage.shared.get();
                recorder.history.count(self.host, client, &line.name());
            }
            let words = line.words();
            let words = words.iter().map(String::as_str);
            let sender =
                client.map(|(client, port)| self.stage.shared.get().sender(client, Some(port), words));
            self.mirror.begin(&line, sender);
        }
        concerns
    }

    fn is_node(&self, host: &str) -> bool {
        self.stage.nodes.borrow().contains_key(host)
    }

    /// Reads the keys, and processes the lines of MONITOR up to the read itself, which gives its
    /// time.
    async fn read(&mut self) -> Answer {
        let (mut connection, keys) = (self.reader.connection.clone(), self.keys.clone());
        let mut reading = pin!(read(&mut connection, self.reader.reads, &keys));
        let (mut read, mut at) = (None, None);
        loop {
            if let (Some((values, evicted)), Some(at)) = (&mut read, at) {
                return Answer::Kept(Reading { values: std::mem::take(values), at, evicted: *evicted });
            }
            tokio::select! {
                biased;
                answer = &mut reading, if read.is_none() => match answer {
                    Ok(kept) => read = Some(kept),
                    Err(error) if error.code().is_some_and(|code| ELSEWHERE.contains(&code)) => {
                        return Answer::NotHere;
                    }
                    Err(error) if error.is_io_error() || error.is_unrecoverable_error() => return Answer::Gone,
                    Err(_) => return Answer::NotNow,
                },
                told = self.monitor.next_line(), if at.is_none() => {
                    let Ok(Some(told)) = told else { return Answer::Gone };
                    let own = From::Port(self.reader.port);
                    match Line::parse(&told).filter(|line| line.from == own && line.name() == self.reader.reads.command) {
                        Some(line) => at = Some(line.at),
                        None => {
                            self.take_in(&told);
                        }
                    }
                }
            }
        }
    }

    /// Returns the time until 1 ms after the first expiry of a hold, by the wall clock. From then
    /// on a read finds the key expired.
    fn until_expiry(&self) -> Option<Duration> {
        if !self.is_read {
            return None;
        }
        let expires_ms = self.locks.iter().filter_map(|watched| watched.state.first_expiry_ms()).min();
        let left = expires_ms? + 1 - self.ctx.wall().as_millis();
        Some(Duration::from_millis(u64::try_from(left.max(1)).unwrap_or(1)))
    }

    /// Records the events that led to a reading.
    fn judge(&mut self, reading: Reading, master: bool) {
        let Reading { values, at, evicted } = reading;
        let expires_ms: Vec<Option<i64>> = self.mirror.done().iter().map(|value| value.expires_ms).collect();
        let (steps, explained) = self.mirror.check(&values, at);
        self.judge_steps(steps, master);
        let has_evicted = std::mem::replace(&mut self.evicted, evicted) != evicted;
        let (explained, expires_ms) = (&explained[..], &expires_ms[..]);
        self.compare(&values, at, &Change::Nothing { explained, expires_ms, has_evicted }, master);
    }

    fn judge_steps(&mut self, steps: Vec<Step<Option<Sender>>>, master: bool) {
        for Step { at, by, command, after } in steps {
            self.compare(&after, at, &Change::Command { name: &command, by: by.as_ref() }, master);
        }
    }

    /// Compares the node's keys with their previous state, and records the difference.
    fn compare(&mut self, now: &[Value], at: Wall, change: &Change<'_>, master: bool) {
        let wall_ms = at.as_millis();
        let true_time = self.true_time(at);
        self.each_lock(now, |watcher, watched, values, keys| {
            let queued = watched.queue(values, watcher);
            // The master granted what a replica repeats, and the node that a key came from what
            // moved.
            let moves = |name: &str| matches!(name, "MIGRATE" | "RESTORE-ASKING");
            let moved =
                watcher.cluster.is_some() && matches!(change, Change::Command { name, .. } if moves(name));
            if !master || moved {
                return watched.adopt(values, at, watcher);
            }
            let over = |early_ms| watched.state.first_expiry_ms().is_some_and(|at| at < wall_ms + early_ms);
            let (event, by) = match *change {
                Change::Command { name: "FLUSHALL" | "FLUSHDB", by } => ("flushed", by),
                Change::Command { name, by } => {
                    let dropped = over(0) && !watched.object.leases_are_apart();
                    (if dropped { "expired" } else { name }, by)
                }
                Change::Nothing { explained, expires_ms, has_evicted } => {
                    let holders =
                        || watched.keys.holders().map(|at| (&values[at], explained[keys.start + at]));
                    // Only a reading has a key's exact expiry time.
                    if holders().all(|(_, explained)| explained) {
                        return watched.adopt(values, at, watcher);
                    }
                    // The only change that a server makes itself is to drop a key.
                    let gone = holders().all(|(value, _)| value.content == Content::Nothing)
                        || watched.object.leases_are_apart();
                    // The key may expire before the leases in it, if a client with a wrong clock
                    // wrote them.
                    let expired = watched.keys.holders().any(|at| {
                        let ends = expires_ms[keys.start + at];
                        values[at].content == Content::Nothing
                            && ends.is_some_and(|at| at < wall_ms + EARLY_MS)
                    });
                    let event = match gone {
                        true if expired || over(EARLY_MS) => "expired",
                        true if has_evicted => "evicted",
                        _ => {
                            return watcher.lost_sight(watched.lock, "no command that did it was seen");
                        }
                    };
                    (event, None)
                }
            };
            let cause = Cause { event, by, node: watcher.host, wall_ms };
            let changes = watched.change(values, &cause, watcher);
            if let Change::Command { name, by: None } = change
                && event == *name
                && !changes.is_empty()
            {
                let why = format!("{name} came over a connection that is not of the scenario");
                return watcher.lost_sight(watched.lock, &why);
            }
            changes.into_iter().chain(queued).for_each(|what| watcher.tell(true_time, what));
        });
    }

    /// Fails the run: a lock was changed, and the cause is unknown.
    fn lost_sight(&self, lock: Lock, why: &str) {
        let (history, node) = (&self.stage.shared.get().history, self.ctx.name());
        let why = format!("`{}` was changed on {node}, and {why}", history.lock(lock).name);
        self.stage.fail(&self.ctx, why);
    }

    /// Handles the promotion of the node from replica to master, with the keys that it had `before`
    /// its clients changed them, if they have.
    fn promoted(&mut self, now: True, reading: &Reading, before: Option<Vec<Value>>, how: GainCause) {
        if before.is_none() {
            // The data may have come from the master without commands.
            self.mirror.check(&reading.values, reading.at);
        }
        self.each_lock(before.as_ref().unwrap_or(&reading.values), |watcher, watched, values, _| {
            watched.adopt(values, reading.at, watcher);
            let host = watcher.host;
            let told = watched.promoted(&watcher.stage.shared.get().history, host, reading.at, how);
            told.into_iter().for_each(|what| watcher.tell(now, what));
        });
    }

    /// Calls `happens` for each lock, with the values of its keys and their range among all keys.
    fn each_lock(
        &mut self,
        read: &[Value],
        happens: impl Fn(&Watcher, &mut Watched, &[Value], Range<usize>),
    ) {
        let (mut locks, mut from) = (std::mem::take(&mut self.locks), 0);
        for watched in &mut locks {
            let keys = from..(from + watched.keys.list.len()).min(read.len());
            from = keys.end;
            happens(self, watched, &read[keys.clone()], keys);
        }
        self.locks = locks;
    }

    /// Converts the server's wall time to true time. The server's clock is this machine's.
    fn true_time(&self, wall: Wall) -> True {
        let (here, reading) = self.ctx.moment();
        here - reading.wall.since(wall)
    }

    /// Adds an event that happened some time ago. The events are sorted when the run is over.
    fn tell(&self, at: True, what: EventKind) {
        self.stage.shared.get().history.events.push(Event { at, host: self.host, kind: what });
    }
}

impl Names for Watcher {
    fn owner(&self, lock: Lock, name: &str, writer: Option<Host>) -> Owner {
        self.stage.shared.get().owner_granted(lock, name, writer, self.host)
    }

    fn party(&self, lock: Lock, sender: &Sender, hold: (&str, Owner)) -> Party {
        self.stage.shared.get().party(lock, sender, hold)
    }

    fn is_own(&self, owner: Owner, by: Party) -> bool {
        self.stage.shared.get().history.is_own(owner, by)
    }

    fn name_of(&self, client: Host) -> Option<Box<str>> {
        self.stage.shared.get().name_of(client)
    }
}
