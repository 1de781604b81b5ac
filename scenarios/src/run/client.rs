//! A client on its host: its subject, and what the script or the workload that uses it is made of.

use std::{rc::Rc, time::Duration};

use indexmap::IndexSet;
use lockstorm_sim::{
    time::{Monotonic, True},
    world::{Condition, HostCtx},
};

use super::{Play, Stage, resource::Writer};
use crate::{
    bridge::HostEnv,
    code::{Code, CodeHost, Write},
    history::{Call, Lock, Outcome, Owner},
    plan::PlannedStep,
    recorder::HistoryWriter,
    scenario::{Client, Workload},
    subject::{self, Ask, Failure, Held, Patience, Seat, Subject},
    units::Span,
};

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
    let groups = if stage.plan.scenario.lock.kind.needs_quorum() {
        groups
    } else {
        // A node of a group that is there already brings no other.
        vec![groups.into_iter().flatten().collect::<IndexSet<_>>().into_iter().collect()]
    };
    let seat = Seat { ctx: ctx.clone(), plan: stage.plan.clone(), groups, teller: teller.clone() };
    if let Some(code) = &client.code {
        return run_code(code, ctx, stage, seat, owner).await;
    }
    let make = subject::maker(stage.plan.scenario.lock.subject.algorithm);
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
    let held = match client.workload.as_ref().and_then(|workload| workload.given().pop()) {
        Some(Workload::Contend(contend)) => contend.play(&actor).await,
        None => script.play(&actor).await,
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
        Box::pin(async move { writer.write(Lock(0), owner, token).await })
    });
    code.start(CodeHost { env, name, lock, owner, teller, builders: Rc::new(builders), write }).await;
    std::future::pending::<()>().await;
}

/// One line of work of a client.
pub(super) struct Actor {
    pub(super) ctx: HostCtx,
    pub(super) stage: Rc<Stage>,
    pub(super) teller: HistoryWriter,
    subject: Rc<dyn Subject>,
    writer: Writer,
    pub(super) owner: Owner,
}

impl Actor {
    pub(super) async fn work(
        &self,
        held: &[Rc<dyn Held>],
        end: True,
        write_every: Option<Duration>,
        until_lost: bool,
    ) {
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

    pub(super) async fn write(&self, held: &[Rc<dyn Held>]) {
        let token = held.last().and_then(|hold| hold.token());
        let owner = held.last().and_then(|hold| hold.owner());
        let owner = owner.map_or(self.owner, |name| self.teller.owner_named(&name));
        self.writer.write(Lock(0), owner, token).await;
    }

    pub(super) async fn ask(&self, ask: Ask) -> Result<Option<Rc<dyn Held>>, Failure> {
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

    pub(super) async fn give_back(&self, lock: Lock, hold: &dyn Held) -> Result<(), Failure> {
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
    pub(super) fn lease(&self, own: Option<Span>, watchdog: bool) -> Option<Duration> {
        let lock = self.stage.plan.scenario.lock.lease.filter(|_| !watchdog);
        own.or(lock).map(|Span(lease)| lease)
    }

    pub(super) async fn until(&self, at: True) {
        let nanos = at.as_nanos() - self.ctx.moment().0.as_nanos();
        if let Ok(nanos) = u64::try_from(nanos) {
            self.ctx.wire_delay(Duration::from_nanos(nanos)).await;
        }
    }

    /// Keeps the host's one processor busy: to everything on the host this is a pause, and that is what it is made of.
    pub(super) async fn block(&self, length: Duration) {
        let blocked = Condition::Blocked { host: self.ctx.name().to_owned() };
        // A process blocks itself once at a time, and its successor must not be set free by its end.
        let cause = format!("incarnation {} of {}", self.ctx.incarnation(), self.ctx.name());
        self.ctx.control().now(blocked.clone().begin(&cause));
        self.ctx.control().after(length, blocked.end(&cause));
        let after = Monotonic::from_nanos(self.ctx.monotonic().as_nanos() + 1);
        self.ctx.sleep_until(after).await;
    }
}

pub(super) fn failed(failure: &Failure) -> Outcome {
    Outcome::Failed { definite: failure.definite, message: failure.message.as_str().into() }
}
