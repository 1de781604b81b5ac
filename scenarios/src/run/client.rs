//! A client on its host: its subject, and the script or workload that uses it.

use std::{cell::Cell, collections::BTreeSet, rc::Rc, time::Duration};

use indexmap::IndexSet;
use lockstorm_world::{
    Condition, HostCtx,
    time::{Monotonic, True},
};

use super::{
    Stage,
    process::{Planned, Process},
    resource::Writer,
};
use crate::{
    file::{
        plan::{LockEntry, PlannedClient, PlannedLine, PlannedLock},
        scenario::Client,
    },
    judge::history::{Call, Lock, Mode, Op, Outcome, Owner, Wait},
    run::{
        bridge::HostEnv,
        code::{Code, CodeHost, CodeLock, Write},
        recorder::{HistoryWriter, Line},
        subject::{
            self, Ask, Counting, Failure, Held, HeldTogether, Local, Patience, SubjectContext, Subjects,
            together,
        },
    },
    units::{Span, millis},
};

/// A client with its lines of work, or with a user's code.
struct ClientProcess {
    stage: Rc<Stage>,
    client: Rc<Client>,
    lines: Rc<Vec<PlannedLine>>,
}

pub(super) fn process(planned: &Planned<'_>) -> Option<Box<dyn Process>> {
    let PlannedClient { client, lines } = planned.software()?;
    let (client, lines) = (Rc::new(client.clone()), Rc::new(lines.clone()));
    Some(Box::new(ClientProcess { stage: planned.stage.clone(), client, lines }))
}

impl Process for ClientProcess {
    fn run(&self, ctx: HostCtx) -> Local<'static, ()> {
        Box::pin(play(ctx, self.stage.clone(), self.client.clone(), self.lines.clone()))
    }
}

/// Runs a client from one start to the end of its lines of work, or to its crash.
async fn play(ctx: HostCtx, stage: Rc<Stage>, client: Rc<Client>, lines: Rc<Vec<PlannedLine>>) {
    stage.opening.is_over().await;
    let context = context(&ctx, &stage, &client);
    let numbers: Vec<Line> = (1..=lines.len() as u32).map(Line).collect();
    let owners: Vec<Owner> = numbers.iter().map(|line| context.history.on(*line).owner()).collect();
    if let Some(code) = &client.code {
        return run_code(code, ctx, stage, context).await;
    }
    let subjects = match subject::make(&context, &numbers) {
        Ok(subjects) => subjects,
        Err(failure) => return ctx.observe("no subject", failure.message),
    };
    for of_line in &subjects {
        for (at, subject) in of_line.iter().enumerate() {
            // A subject with several locks warms up once.
            if !of_line[..at].iter().any(|before| Rc::ptr_eq(before, subject)) {
                tokio::task::spawn_local(subject.warm_up());
            }
        }
    }
    perform(&stage, &context, &lines, owners, subjects).await;
}

/// Runs each line of work with its owner and subjects. Never returns.
pub(super) async fn perform(
    stage: &Rc<Stage>,
    context: &SubjectContext,
    lines: &Rc<Vec<PlannedLine>>,
    owners: Vec<Owner>,
    subjects: Vec<Subjects>,
) {
    let mut actors = Vec::new();
    for ((line, owner), subjects) in (1..).map(Line).zip(owners).zip(subjects) {
        let actor = Actor::new(stage, context, line, owner, subjects);
        if stage.plan.scenario.resource.is_some() {
            actor.writer.connect().await;
        }
        actors.push(Actor { name: lines[line.0 as usize - 1].name.clone(), ..actor });
    }
    if let [actor] = &actors[..] {
        let held = actor.play(&lines[0]).await;
        // A process that has nothing left to do keeps its holds, and its watchdog keeps renewing
        // them.
        std::future::pending::<()>().await;
        drop(held);
    }
    for (at, actor) in actors.into_iter().enumerate() {
        let lines = lines.clone();
        tokio::task::spawn_local(async move {
            let held = actor.play(&lines[at]).await;
            std::future::pending::<()>().await;
            drop(held);
        });
    }
    std::future::pending::<()>().await;
}

/// Returns the context for the subjects of a client.
pub(super) fn context(ctx: &HostCtx, stage: &Rc<Stage>, client: &Client) -> SubjectContext {
    let history = HistoryWriter::new(stage.shared.clone(), ctx.clone(), stage.host(ctx.name()));
    let groups = stage.plan.locks.iter().map(|lock| groups(stage, client, lock)).collect();
    let sentinels = client.asked_sentinels(&stage.plan.scenario);
    let login = stage.plan.scenario.login(client);
    let (plan, retries) = (stage.plan.clone(), client.retries.unwrap_or(0));
    SubjectContext { ctx: ctx.clone(), plan, groups, sentinels, login, retries, history }
}

/// Returns the nodes of a lock that a client knows, in groups of replicas.
fn groups(stage: &Stage, client: &Client, lock: &PlannedLock) -> Vec<Vec<String>> {
    let nodes = match &client.nodes {
        None => lock.nodes.clone(),
        Some(known) => known.iter().map(|node| node.as_str().to_owned()).collect(),
    };
    // A client that knows an address does not know the replicas of the node behind it.
    let is_address = |node: &String| stage.plan.scenario.address.contains_key(node);
    let group = |node: &String| if is_address(node) { vec![node.clone()] } else { stage.plan.group_of(node) };
    let groups: Vec<Vec<String>> = nodes.iter().map(group).collect();
    // A lock that needs no quorum finds the master among several nodes. A Redlock uses all of them.
    if lock.written.kind.needs_quorum() {
        groups
    } else {
        // A node of a group that is already listed adds no other.
        vec![groups.into_iter().flatten().collect::<IndexSet<_>>().into_iter().collect()]
    }
}

/// Returns the description of a lock for a user's code.
fn code_lock(stage: &Stage, lock: &PlannedLock) -> CodeLock {
    let PlannedLock { number, name, key, written, .. } = lock;
    // A writer's name shows that its hold is exclusive, so this mode matters only for readers.
    let mode = if written.kind.can_be_shared() { Mode::Shared } else { Mode::Exclusive };
    let asked_in = stage.plan.entries_of(*number).nth(1).map(|_| mode);
    CodeLock { name: name.clone(), key: key.clone(), number: *number, asked_in }
}

/// Runs a user's code from one start of its host to the next.
async fn run_code(code: &Code, ctx: HostCtx, stage: Rc<Stage>, context: SubjectContext) {
    let env = HostEnv::new(ctx.clone());
    let writer = Rc::new(Writer::new(ctx.clone()));
    if stage.plan.scenario.resource.is_some() {
        writer.connect().await;
    }
    let locks = stage.plan.locks.iter().map(|lock| code_lock(&stage, lock)).collect();
    let (own, clients) = (env.clone(), context.clone());
    let builders = move |at: usize| {
        let lock = LockEntry(u16::try_from(at).expect("a scenario has fewer locks"));
        let written = &clients.lock(lock).written;
        let groups = clients.groups_of(lock).iter();
        groups.map(|group| subject::client::builder(&own, &clients, written, group)).collect()
    };
    let write: Write = Rc::new(move |lock, owner, token| {
        let writer = writer.clone();
        Box::pin(async move { writer.write(lock, owner, token).await })
    });
    let host = CodeHost::new(env, ctx.name(), locks, context.history, Rc::new(builders), write);
    code.start(host).await;
    std::future::pending::<()>().await;
}

/// One line of work of a client.
pub(super) struct Actor {
    pub(super) ctx: HostCtx,
    pub(super) stage: Rc<Stage>,
    /// The name of the line, empty for a client with only one.
    pub(super) name: String,
    pub(super) history: HistoryWriter,
    subjects: Subjects,
    writer: Writer,
    pub(super) owner: Owner,
    /// The lock of the latest request.
    asked: Cell<LockEntry>,
}

/// A hold that an actor was granted, as far as its subject knows.
pub(super) type TakenHold = (LockEntry, Rc<dyn Held>);

impl Actor {
    /// Returns the history writer of a lock, for this line of work.
    pub(super) fn about(&self, lock: LockEntry) -> HistoryWriter {
        self.history.about(self.stage.plan.entry(lock).number)
    }

    /// Creates a line of work without a name, not connected to the resource.
    pub(super) fn new(
        stage: &Rc<Stage>,
        context: &SubjectContext,
        line: Line,
        owner: Owner,
        subjects: Subjects,
    ) -> Actor {
        let (ctx, history) = (context.ctx.clone(), context.history.on(line));
        let writer = Writer::new(ctx.clone());
        let (stage, name, asked) = (stage.clone(), String::new(), Cell::new(LockEntry(0)));
        Actor { ctx, stage, name, history, subjects, writer, owner, asked }
    }

    /// Runs the line of work, and returns the holds that it has not released.
    async fn play(&self, line: &PlannedLine) -> Vec<TakenHold> {
        match &line.workload {
            Some(workload) => {
                self.work_through(workload).await;
                Vec::new()
            }
            None => {
                let held = self.follow(&line.script).await;
                self.leave(&held);
                held
            }
        }
    }

    /// Records the locks that are not released, once for each owner.
    fn leave(&self, held: &[TakenHold]) {
        let owner = |(lock, hold): &TakenHold| {
            (self.stage.plan.entry(*lock).number, self.holder(*lock, hold.owner()))
        };
        let left: BTreeSet<(Lock, Owner)> =
            held.iter().filter(|(_, hold)| hold.is_held()).map(owner).collect();
        left.into_iter().for_each(|(lock, owner)| self.history.about(lock).abandoned(owner));
    }

    /// Returns the owner of this name, or without a name that of this line of work.
    fn holder(&self, lock: LockEntry, name: Option<String>) -> Owner {
        name.map_or(self.owner, |name| self.about(lock).holder(&name))
    }

    pub(super) async fn work(
        &self,
        of: Option<LockEntry>,
        held: &[TakenHold],
        end: True,
        write_every: Option<Duration>,
        until_lost: bool,
    ) {
        let working = self.write_until(end, write_every, async || self.write(of, held).await);
        match held.last().filter(|_| until_lost) {
            None => working.await,
            Some((_, hold)) => tokio::select! {
                biased;
                () = hold.lost() => {}
                () = working => {}
            },
        }
    }

    /// Writes to the resource at the given interval until `end`.
    pub(super) async fn write_until(&self, end: True, every: Option<Duration>, mut write: impl AsyncFnMut()) {
        loop {
            let now = self.ctx.moment().0;
            let next = every.map_or(end, |every| (now + every.max(Duration::from_micros(1))).min(end));
            self.until(next).await;
            if next >= end {
                return;
            }
            write().await;
        }
    }

    /// Writes to the resource under the latest hold. Without a hold, as after a release, writes
    /// under the lock `of`, or under the one that was requested last.
    pub(super) async fn write(&self, of: Option<LockEntry>, held: &[TakenHold]) {
        let (lock, hold) = match held.last() {
            Some((lock, hold)) => (*lock, Some(hold)),
            None => (of.unwrap_or_else(|| self.asked.get()), None),
        };
        let token = hold.and_then(|hold| hold.token());
        self.write_as(lock, hold.and_then(|hold| hold.owner()), token).await;
    }

    /// Writes to the resource as the owner of this name, or as this line of work.
    pub(super) async fn write_as(&self, lock: LockEntry, owner: Option<String>, token: Option<u64>) {
        self.writer.write(self.stage.plan.entry(lock).number, self.holder(lock, owner), token).await;
    }

    pub(super) async fn ask(&self, ask: Ask) -> Result<Option<TakenHold>, Failure> {
        self.asked.set(ask.lock);
        let op = self.asks(&ask).invoked(self.owner, acquisition(&ask));
        let granted = self.subjects[usize::from(ask.lock.0)].acquire(ask).await;
        self.answered(&ask, op, &granted);
        granted.map(|granted| granted.map(|hold| (ask.lock, hold)))
    }

    /// Requests several locks as one: all calls begin at the same instant and return together.
    pub(super) async fn ask_for_all(&self, asks: &[Ask]) -> Option<Rc<dyn HeldTogether>> {
        let ops: Vec<_> =
            asks.iter().map(|ask| self.asks(ask).invoked(self.owner, acquisition(ask))).collect();
        let of = |ask: &Ask| self.subjects[usize::from(ask.lock.0)].clone();
        let first = of(asks.first()?);
        let granted = match first.acquire_all(asks.to_vec()) {
            Some(granted) => granted.await,
            None => {
                let written = &self.stage.plan.entry(asks[0].lock).written;
                let together = written.all_traits().together;
                let subjects: Vec<_> = asks.iter().map(of).collect();
                together::acquire_all(&subjects, asks, together).await
            }
        };
        for (ask, op) in asks.iter().zip(ops) {
            self.answered(ask, op, &granted);
        }
        granted.ok().flatten()
    }

    /// Returns the history writer of a lock that is about to be requested. If the name in the key
    /// does not show the mode of the hold, records the requested mode.
    fn asks(&self, ask: &Ask) -> HistoryWriter {
        let history = self.about(ask.lock);
        if self.stage.plan.entries_of(self.stage.plan.entry(ask.lock).number).nth(1).is_some() {
            history.asks_in(self.owner, ask.mode);
        }
        history
    }

    /// Records the outcome of an acquisition.
    fn answered<T>(&self, ask: &Ask, op: Op, granted: &Result<Option<T>, Failure>) {
        let history = self.about(ask.lock);
        let outcome = match granted {
            Ok(Some(_)) => Outcome::Ok,
            Ok(None) => Outcome::Refused,
            Err(failure) => failed(failure),
        };
        if outcome != Outcome::Ok {
            history.gave_up(self.owner);
        }
        history.returned(op, acquisition(ask), outcome);
    }

    /// Performs an operation on a latch or a rate limiter. Returns true if it succeeded, false if
    /// it was refused, and `None` if it failed.
    pub(super) async fn count(&self, lock: LockEntry, counting: Counting) -> Option<bool> {
        let call = match counting {
            Counting::Set => Call::Set,
            Counting::Down => Call::CountDown,
            Counting::Await(patience) => Call::Await { wait: wait(patience) },
            Counting::Delete => Call::Delete,
            Counting::Take { permits, wait: patience } => Call::Take { permits, wait: wait(patience) },
        };
        let history = self.about(lock);
        let op = history.invoked(self.owner, call);
        let done = self.subjects[usize::from(lock.0)].count(lock, counting).await;
        let outcome = match &done {
            Ok(true) => Outcome::Ok,
            Ok(false) => Outcome::Refused,
            Err(failure) => failed(failure),
        };
        history.returned(op, call, outcome);
        done.ok()
    }

    /// Releases several locks that were granted together.
    pub(super) async fn give_all_of(&self, asks: &[Ask], held: &dyn HeldTogether) {
        let about = |ask: &Ask| self.about(ask.lock);
        let ops: Vec<_> = asks.iter().map(|ask| about(ask).invoked(self.owner, Call::Release)).collect();
        let released = held.release_each().await;
        for ((ask, op), released) in asks.iter().zip(ops).zip(&released) {
            about(ask).returned(op, Call::Release, released.as_ref().map_or_else(failed, |()| Outcome::Ok));
        }
    }

    pub(super) async fn give_back(&self, (lock, hold): &TakenHold) -> Result<(), Failure> {
        let history = self.about(*lock);
        let op = history.invoked(self.owner, Call::Release);
        let released = hold.release().await;
        history.returned(op, Call::Release, released.as_ref().map_or_else(failed, |()| Outcome::Ok));
        released
    }

    /// Returns the lease of an acquisition: its own, or the lock's. `None` stands for the watchdog.
    pub(super) fn lease(&self, lock: LockEntry, own: Option<Span>, watchdog: bool) -> Option<Duration> {
        let lock = self.stage.plan.entry(lock).written.lease;
        own.or(lock.filter(|_| !watchdog)).map(|Span(lease)| lease)
    }

    pub(super) async fn until(&self, at: True) {
        let nanos = at.as_nanos() - self.ctx.moment().0.as_nanos();
        if let Ok(nanos) = u64::try_from(nanos) {
            self.ctx.wire_delay(Duration::from_nanos(nanos)).await;
        }
    }

    /// Keeps the host's one processor busy. For everything on the host this is equivalent to a
    /// pause, and it is implemented as one.
    pub(super) async fn block(&self, length: Duration) {
        let blocked = Condition::Blocked { host: self.ctx.name().to_owned() };
        // The cause contains the incarnation, so that the end of this block does not release the
        // block of a successor.
        let cause = format!("incarnation {} of {}", self.ctx.incarnation(), self.ctx.name());
        self.ctx.control().now(blocked.clone().begin(&cause));
        self.ctx.control().after(length, blocked.end(&cause));
        let after = Monotonic::from_nanos(self.ctx.monotonic().as_nanos() + 1);
        self.ctx.sleep_until(after).await;
    }
}

/// Returns the call that is recorded for an acquisition.
fn acquisition(ask: &Ask) -> Call {
    let lease_ms = ask.lease.map(millis);
    Call::Acquire { wait: wait(ask.wait), lease_ms, mode: ask.mode }
}

/// Converts the patience of a call to the form of the history.
fn wait(patience: Patience) -> Wait {
    HistoryWriter::wait(match patience {
        Patience::None => Some(Duration::ZERO),
        Patience::For(wait) => Some(wait),
        Patience::Unbounded => None,
    })
}

pub(super) fn failed(failure: &Failure) -> Outcome {
    Outcome::Failed { definite: failure.definite, message: failure.message.as_str().into() }
}
