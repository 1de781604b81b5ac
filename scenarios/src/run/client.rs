//! A client on its host: its subject, and the script or the workload that uses it.

use std::{rc::Rc, time::Duration};

use indexmap::IndexSet;
use lockstorm_sim::{
    time::{Monotonic, True},
    world::{Condition, HostCtx, Stream},
};

use super::{Stage, resource::Writer};
use crate::{
    bridge::HostEnv,
    code::{Code, CodeHost, Write},
    history::{Call, Lock, Mode, Outcome, Owner},
    plan::{Action, PlannedStep},
    recorder::HistoryWriter,
    scenario::{Client, Contend, LockKind},
    subject::{self, Ask, Failure, Held, Patience, Seat, Subject},
    units::{Draw, Span},
};

/// The lock that steps are about.
const LOCK: Lock = Lock(0);

/// How long after a failure that says nothing a client that retries asks again.
const RETRY: Duration = Duration::from_millis(100);

/// Plays a client from one start to the end of its script, or to its crash.
pub(super) async fn play(ctx: HostCtx, stage: Rc<Stage>, client: Rc<Client>, script: Rc<Vec<PlannedStep>>) {
    let host = stage.host(ctx.name());
    let teller = HistoryWriter::new(stage.shared.clone(), ctx.clone(), host);
    let nodes = match &client.nodes {
        None => stage.plan.lock_nodes.clone(),
        Some(known) => known.iter().map(|node| node.as_str().to_owned()).collect(),
    };
    let owner = teller.owner();
    let groups: Vec<Vec<String>> = nodes.iter().map(|node| stage.plan.group_of(node)).collect();
    // Of several nodes a lock that is no RedLock finds the master; a RedLock wants them all.
    let groups = match stage.plan.scenario.lock.kind {
        LockKind::Red => groups,
        // A node of a group that is there already brings no other.
        _ => vec![groups.into_iter().flatten().collect::<IndexSet<_>>().into_iter().collect()],
    };
    let seat = Seat { ctx: ctx.clone(), plan: stage.plan.clone(), groups, teller: teller.clone() };
    if let Some(code) = &client.code {
        return run_code(code, ctx, stage, seat, owner).await;
    }
    let (_, make) = subject::of(stage.plan.scenario.lock.subject);
    let subject = match make(seat).await {
        Ok(subject) => subject,
        Err(failure) => return ctx.observe("no subject", failure.message),
    };
    tokio::task::spawn_local(subject.warm_up());
    let writer = Writer::new(ctx.clone());
    if stage.plan.scenario.resource.is_some() {
        writer.connect().await;
    }
    let actor = Actor { ctx, stage, teller, subject, writer, owner };
    let held = match client.workload.as_ref().and_then(|workload| workload.contend.as_ref()) {
        Some(contend) => {
            actor.contend(contend).await;
            Vec::new()
        }
        None => actor.perform(&script).await,
    };
    // A process that has nothing left to do still holds what it holds, and its watchdog still renews.
    std::future::pending::<()>().await;
    drop(held);
}

/// Runs a user's code from one start of its host to the next.
async fn run_code(code: &Code, ctx: HostCtx, stage: Rc<Stage>, seat: Seat, owner: Owner) {
    let env = HostEnv::new(ctx.clone());
    let writer = Rc::new(Writer::new(ctx.clone()));
    if stage.plan.scenario.resource.is_some() {
        writer.connect().await;
    }
    let name = ctx.name().to_owned();
    let (lock, teller) = (stage.plan.scenario.lock.name.clone(), seat.teller.clone());
    let writing = teller.clone();
    let (own, groups) = (env.clone(), seat.groups.clone());
    let builders = move || groups.iter().map(|group| subject::client::builder(&own, &seat, group)).collect();
    let write: Write = Rc::new(move |token| {
        let (writer, owner) = (writer.clone(), writing.writer(owner));
        Box::pin(async move { writer.write(LOCK, owner, token).await })
    });
    code.start(CodeHost { env, name, lock, owner, teller, builders: Rc::new(builders), write }).await;
    std::future::pending::<()>().await;
}

/// One level of each lock on trial, in the order in which they were taken.
type Level = Vec<(Lock, Rc<dyn Held>)>;

/// A script that ends before its last step.
struct Stopped;

struct Actor {
    ctx: HostCtx,
    stage: Rc<Stage>,
    teller: HistoryWriter,
    subject: Rc<dyn Subject>,
    writer: Writer,
    owner: Owner,
}

impl Actor {
    /// Goes through the script; returns what it did not give back.
    async fn perform(&self, script: &[PlannedStep]) -> Vec<Rc<dyn Held>> {
        let mut held: Vec<Rc<dyn Held>> = Vec::new();
        let mut rounds = 0;
        'script: loop {
            for step in script {
                if let Some(Span(at)) = step.at {
                    self.until(True::ZERO + at).await;
                }
                if let Action::Repeat(times) = step.action {
                    if rounds < times {
                        rounds += 1;
                        continue 'script;
                    }
                } else if self.act(&step.action, &mut held).await.is_err() {
                    break 'script;
                }
            }
            break;
        }
        held
    }

    async fn act(&self, action: &Action, held: &mut Vec<Rc<dyn Held>>) -> Result<(), Stopped> {
        match action {
            Action::Acquire(acquire) => {
                let lease = self.lease(acquire.lease, acquire.watchdog);
                let wait = acquire.wait.map_or(Patience::Unbounded, |Span(wait)| Patience::For(wait));
                loop {
                    match self.ask(Ask { lock: LOCK, lease, wait, mode: mode(acquire.shared) }).await {
                        Ok(Some(hold)) => {
                            held.push(hold);
                            return Ok(());
                        }
                        Ok(None) => return Err(Stopped),
                        Err(_) if acquire.retry => self.ctx.wire_delay(RETRY).await,
                        Err(_) => return Err(Stopped),
                    }
                }
            }
            Action::TryAcquire(attempt) => {
                let lease = self.lease(attempt.lease, attempt.watchdog);
                match self
                    .ask(Ask { lock: LOCK, lease, wait: Patience::None, mode: mode(attempt.shared) })
                    .await
                {
                    Ok(Some(hold)) => held.push(hold),
                    _ => return Err(Stopped),
                }
            }
            Action::Poll(poll) => {
                let lease = self.lease(poll.lease, false);
                loop {
                    let ask = Ask { lock: LOCK, lease, wait: Patience::None, mode: mode(poll.shared) };
                    if let Ok(Some(hold)) = self.ask(ask).await {
                        held.push(hold);
                        return Ok(());
                    }
                    if poll.until.is_some_and(|Span(until)| self.ctx.moment().0 >= True::ZERO + until) {
                        return Err(Stopped);
                    }
                    self.ctx.wire_delay(poll.every.0).await;
                }
            }
            Action::Release(release) => {
                let Some(hold) = held.pop() else { return Ok(()) };
                let given_back = self.give_back(LOCK, &*hold).await;
                if let (Err(failure), Some(Span(after))) = (given_back, release.retry_after)
                    && !failure.definite
                {
                    self.ctx.wire_delay(after).await;
                    let _ = self.give_back(LOCK, &*hold).await;
                }
            }
            Action::Extend(extend) => {
                let Some(hold) = held.last() else { return Err(Stopped) };
                let Span(lease) = extend.lease;
                let call = Call::Extend { lease_ms: u64::try_from(lease.as_millis()).unwrap_or(u64::MAX) };
                let op = self.teller.invoked(self.owner, call);
                let extended = hold.extend(lease).await;
                let outcome = extended.as_ref().map_or_else(failed, |()| Outcome::Ok);
                self.teller.returned(op, call, outcome);
            }
            Action::Work { length, until, write_every, until_lost } => {
                let now = self.ctx.moment().0;
                let end = match (length, until) {
                    (Some(Span(length)), _) => now + *length,
                    (None, Some(Span(until))) => (True::ZERO + *until).max(now),
                    (None, None) => now,
                };
                self.work(held, end, write_every.map(|Span(every)| every), *until_lost).await;
            }
            Action::Write(write) => {
                if !write.if_held || held.last().is_some_and(|hold| hold.is_held()) {
                    self.write(held).await;
                }
            }
            Action::Check => {
                if !held.last().is_some_and(|hold| hold.is_held()) {
                    return Err(Stopped);
                }
            }
            Action::Sleep(Span(length)) => self.ctx.wire_delay(*length).await,
            Action::Block(Span(length)) => self.block(*length).await,
            Action::Repeat(_) => {}
        }
        Ok(())
    }

    /// Acquire, hold, write, release, think, again, until the end of the storm and once more.
    async fn contend(&self, contend: &Contend) {
        let mut stream = self.ctx.stream("workload");
        let lease = self.lease(None, false);
        let wait = contend.wait.map_or(Patience::Unbounded, |Span(wait)| Patience::For(wait));
        let mut calm = false;
        for _ in 0..contend.rounds.unwrap_or(u32::MAX) {
            // One more round in the calm, for the lock to show that it still can be had.
            if self.ctx.moment().0 >= self.stage.plan.phases.storm_ends && std::mem::replace(&mut calm, true)
            {
                return;
            }
            if let Some(held) = self.take_all(wait, lease).await {
                let Span(length) = drawn(contend.hold, &mut stream);
                let levels = contend.levels.map_or(1, |levels| 1 + stream.below(u64::from(levels)));
                self.hold_levels(held, levels, length, contend.write_every).await;
            }
            let Span(think) = drawn(contend.think, &mut stream);
            // A round takes time even where nothing is thought: a lock that fails at once must not become an endless loop.
            self.ctx.wire_delay(think.max(Duration::from_millis(1))).await;
        }
    }

    /// Takes one level of every lock, in their order; those that were granted are given back if one is not.
    async fn take_all(&self, wait: Patience, lease: Option<Duration>) -> Option<Level> {
        let mut level = Level::new();
        let locks: Vec<Lock> = self.stage.shared.get().history.header.locks().collect();
        for lock in locks {
            match self.ask(Ask { lock, lease, wait, mode: Mode::Exclusive }).await {
                Ok(Some(hold)) => level.push((lock, hold)),
                _ => {
                    self.give_all_back(level).await;
                    return None;
                }
            }
        }
        Some(level)
    }

    async fn give_all_back(&self, level: Level) {
        for (lock, hold) in level.iter().rev() {
            let _ = self.give_back(*lock, &**hold).await;
        }
    }

    /// Takes further levels of the locks, works `length` in all, and gives the levels back one by one. The time is spread
    /// evenly over going in and coming out. A level that is refused is the deepest; one that is lost ends the work.
    async fn hold_levels(&self, first: Level, levels: u64, length: Duration, write_every: Option<Span>) {
        let stretch = length / u32::try_from(2 * levels - 1).unwrap_or(u32::MAX);
        let every = write_every.map_or(stretch / 2, |Span(every)| every);
        // The resource is that of the first lock, so that its tokens go with the writes.
        let guarding = |level: &Level| level.iter().take(1).map(|(_, hold)| hold.clone()).collect::<Vec<_>>();
        let mut held = vec![first];
        while let Some(innermost) = held.last().filter(|_| (held.len() as u64) < levels) {
            self.work(&guarding(innermost), self.ctx.moment().0 + stretch, Some(every), true).await;
            match self.take_all(Patience::None, self.lease(None, false)).await {
                Some(level) => held.push(level),
                None => break,
            }
        }
        while let Some(innermost) = held.pop() {
            self.work(&guarding(&innermost), self.ctx.moment().0 + stretch, Some(every), true).await;
            self.give_all_back(innermost).await;
        }
    }

    async fn work(&self, held: &[Rc<dyn Held>], end: True, write_every: Option<Duration>, until_lost: bool) {
        let working = async {
            loop {
                let now = self.ctx.moment().0;
                let next =
                    write_every.map_or(end, |every| (now + every.max(Duration::from_micros(1))).min(end));
                self.until(next).await;
                if next >= end {
                    return;
                }
                self.write(held).await;
            }
        };
        match held.last().filter(|_| until_lost) {
            None => working.await,
            Some(hold) => tokio::select! {
                biased;
                () = hold.lost() => {}
                () = working => {}
            },
        }
    }

    async fn write(&self, held: &[Rc<dyn Held>]) {
        let token = held.last().and_then(|hold| hold.token());
        let owner = held.last().and_then(|hold| hold.owner());
        let owner = owner.map_or(self.owner, |name| self.teller.owner_named(&name));
        self.writer.write(LOCK, owner, token).await;
    }

    async fn ask(&self, ask: Ask) -> Result<Option<Rc<dyn Held>>, Failure> {
        let wait = match ask.wait {
            Patience::None => Some(Duration::ZERO),
            Patience::For(wait) => Some(wait),
            Patience::Unbounded => None,
        };
        let lease_ms = ask.lease.map(|lease| u64::try_from(lease.as_millis()).unwrap_or(u64::MAX));
        let call = Call::Acquire { wait: HistoryWriter::wait(wait), lease_ms };
        let teller = self.teller.about(ask.lock);
        let op = teller.invoked(self.owner, call);
        let granted = self.subject.acquire(ask).await;
        let outcome = match &granted {
            Ok(Some(_)) => Outcome::Ok,
            Ok(None) => Outcome::Refused,
            Err(failure) => failed(failure),
        };
        if outcome != Outcome::Ok {
            teller.gave_up(self.owner);
        }
        teller.returned(op, call, outcome);
        granted
    }

    async fn give_back(&self, lock: Lock, hold: &dyn Held) -> Result<(), Failure> {
        let teller = self.teller.about(lock);
        let op = teller.invoked(self.owner, Call::Release);
        let released = hold.release().await;
        let outcome = match &released {
            Ok(()) => Outcome::Ok,
            Err(failure) => failed(failure),
        };
        teller.returned(op, Call::Release, outcome);
        released
    }

    /// The lease of an acquisition: its own, or the lock's; `None` for the watchdog.
    fn lease(&self, own: Option<Span>, watchdog: bool) -> Option<Duration> {
        let lock = self.stage.plan.scenario.lock.lease.filter(|_| !watchdog);
        own.or(lock).map(|Span(lease)| lease)
    }

    async fn until(&self, at: True) {
        let nanos = at.as_nanos() - self.ctx.moment().0.as_nanos();
        if let Ok(nanos) = u64::try_from(nanos) {
            self.ctx.wire_delay(Duration::from_nanos(nanos)).await;
        }
    }

    /// Keeps the host's one processor busy: to everything on the host this is a pause, and that is what it is made of.
    async fn block(&self, length: Duration) {
        let blocked = Condition::Blocked { host: self.ctx.name().to_owned() };
        // A process blocks itself once at a time, and its successor must not be set free by its end.
        let cause = format!("incarnation {} of {}", self.ctx.incarnation(), self.ctx.name());
        self.ctx.control().now(blocked.clone().begin(&cause));
        self.ctx.control().after(length, blocked.end(&cause));
        let after = Monotonic::from_nanos(self.ctx.monotonic().as_nanos() + 1);
        self.ctx.sleep_until(after).await;
    }
}

fn failed(failure: &Failure) -> Outcome {
    Outcome::Failed { definite: failure.definite, message: failure.message.as_str().into() }
}

fn mode(shared: bool) -> Mode {
    if shared { Mode::Shared } else { Mode::Exclusive }
}

fn drawn(draw: Draw<Span>, stream: &mut Stream) -> Span {
    draw.at(stream.unit())
}
