//! What each step of a script does.

use std::{rc::Rc, time::Duration};

use lockstorm_sim::time::True;

use super::{
    Play,
    client::{Actor, failed},
};
use crate::{
    history::{Call, Lock, Mode, Outcome},
    plan::PlannedStep,
    scenario::{Acquire, Extend, Poll, Release, Repeat, Step, TryAcquire, Work},
    subject::{Ask, Held, Patience},
    units::Span,
};

/// The lock that steps are about.
const LOCK: Lock = Lock(0);

/// How long after a failure that says nothing a client that retries asks again.
const RETRY: Duration = Duration::from_millis(100);

/// A script that ends before its last step.
struct Stopped;

/// What a script has not given back, the latest last.
type Holds = Vec<Rc<dyn Held>>;

impl Play for Vec<PlannedStep> {
    async fn play(&self, actor: &Actor) -> Holds {
        let mut held = Holds::new();
        let mut rounds = 0;
        'script: loop {
            for PlannedStep { at, step } in self {
                if let Some(Span(at)) = at {
                    actor.until(True::ZERO + *at).await;
                }
                match step {
                    Some(Step::Repeat(Repeat(times))) if rounds < *times => {
                        rounds += 1;
                        continue 'script;
                    }
                    Some(step) if actor.act(step, &mut held).await.is_err() => break 'script,
                    _ => {}
                }
            }
            break;
        }
        held
    }
}

impl Actor {
    async fn act(&self, step: &Step, held: &mut Holds) -> Result<(), Stopped> {
        match step {
            Step::Acquire(acquire) => return self.acquire(acquire, held).await,
            Step::TryAcquire(attempt) => return self.try_acquire(attempt, held).await,
            Step::Poll(poll) => return self.poll(poll, held).await,
            Step::Release(release) => self.release(release, held).await,
            Step::Extend(extend) => return self.extend(extend, held).await,
            Step::Work(work) => self.work_as_written(work, held).await,
            Step::Write(write) => {
                if !write.if_held || held.last().is_some_and(|hold| hold.is_held()) {
                    self.write(held).await;
                }
            }
            Step::Check(_) if held.last().is_some_and(|hold| hold.is_held()) => {}
            Step::Check(_) => return Err(Stopped),
            Step::Sleep(sleep) => self.ctx.wire_delay(sleep.0.drawn().0).await,
            Step::Block(block) => self.block(block.0.0).await,
            // What it repeats is above it.
            Step::Repeat(_) => {}
        }
        Ok(())
    }

    async fn acquire(&self, acquire: &Acquire, held: &mut Holds) -> Result<(), Stopped> {
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

    async fn try_acquire(&self, attempt: &TryAcquire, held: &mut Holds) -> Result<(), Stopped> {
        let lease = self.lease(attempt.lease, attempt.watchdog);
        let ask = Ask { lock: LOCK, lease, wait: Patience::None, mode: mode(attempt.shared) };
        let Ok(Some(hold)) = self.ask(ask).await else { return Err(Stopped) };
        held.push(hold);
        Ok(())
    }

    async fn poll(&self, poll: &Poll, held: &mut Holds) -> Result<(), Stopped> {
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

    async fn release(&self, release: &Release, held: &mut Holds) {
        let Some(hold) = held.pop() else { return };
        let given_back = self.give_back(LOCK, &*hold).await;
        if let (Err(failure), Some(Span(after))) = (given_back, release.retry_after)
            && !failure.definite
        {
            self.ctx.wire_delay(after).await;
            let _ = self.give_back(LOCK, &*hold).await;
        }
    }

    async fn extend(&self, extend: &Extend, held: &Holds) -> Result<(), Stopped> {
        let Some(hold) = held.last() else { return Err(Stopped) };
        let Span(lease) = extend.lease;
        let call = Call::Extend { lease_ms: u64::try_from(lease.as_millis()).unwrap_or(u64::MAX) };
        let op = self.teller.invoked(self.owner, call);
        let extended = hold.extend(lease).await;
        let outcome = extended.as_ref().map_or_else(failed, |()| Outcome::Ok);
        self.teller.returned(op, call, outcome);
        Ok(())
    }

    async fn work_as_written(&self, work: &Work, held: &Holds) {
        let now = self.ctx.moment().0;
        let end = match (work.length, work.until) {
            (Some(length), _) => now + length.drawn().0,
            (None, Some(Span(until))) => (True::ZERO + until).max(now),
            (None, None) => now,
        };
        self.work(held, end, work.write_every.map(|Span(every)| every), work.until_lost).await;
    }
}

fn mode(shared: bool) -> Mode {
    if shared { Mode::Shared } else { Mode::Exclusive }
}
