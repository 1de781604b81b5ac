//! Executes the steps of scripts.

use std::time::Duration;

use lockstorm_world::time::True;

use super::client::{Actor, TakenHold, failed};
use crate::{
    file::{
        plan::{LockEntry, PlannedStep},
        scenario::{Acquire, Extend, Poll, Release, Repeat, Step, TryAcquire, Work},
    },
    judge::history::{Call, Mode, Outcome},
    run::subject::{Ask, Counting, Patience},
    units::{Span, millis},
};

/// The pause of a retrying client after a failed acquisition.
const RETRY: Duration = Duration::from_millis(100);

/// The script ended before its last step.
struct Stopped;

/// The holds that a script has not released, the latest last.
type Holds = Vec<TakenHold>;

impl Actor {
    /// Executes the steps, and returns the holds that they did not release.
    pub(super) async fn follow(&self, script: &[PlannedStep]) -> Holds {
        let mut held = Holds::new();
        let mut rounds = 0;
        'script: loop {
            for PlannedStep { at, of, step } in script {
                if let Some(Span(at)) = at {
                    self.until(True::ZERO + *at).await;
                }
                match step {
                    Some(Step::Repeat(Repeat(times))) if rounds < *times => {
                        rounds += 1;
                        continue 'script;
                    }
                    Some(step) if self.act(step, *of, &mut held).await.is_err() => break 'script,
                    _ => {}
                }
            }
            break;
        }
        held
    }

    async fn act(&self, step: &Step, of: Option<LockEntry>, held: &mut Holds) -> Result<(), Stopped> {
        // A scenario with several locks names the one that a step concerns.
        let lock = of.unwrap_or(LockEntry(0));
        match step {
            Step::Acquire(acquire) => held.push(self.acquire(acquire, lock).await?),
            Step::TryAcquire(attempt) => held.push(self.try_acquire(attempt, lock).await?),
            Step::Poll(poll) => held.push(self.poll(poll, lock).await?),
            Step::Release(release) => {
                let at = if release.first { first(held, of) } else { latest(held, of) };
                if let Some(at) = at {
                    self.release(release, held.remove(at)).await;
                }
            }
            Step::Extend(extend) => {
                let at = latest(held, of).ok_or(Stopped)?;
                self.extend(extend, &held[at]).await;
            }
            Step::Forget(_) => {
                let at = latest(held, of).ok_or(Stopped)?;
                held[at].1.forget();
            }
            Step::Work(work) => {
                self.work_as_written(work, of, &held[..latest(held, of).map_or(0, |at| at + 1)]).await
            }
            Step::Write(write) => {
                let held = &held[..latest(held, of).map_or(0, |at| at + 1)];
                if !write.if_held || held.last().is_some_and(|(_, hold)| hold.is_held()) {
                    self.write(of, held).await;
                }
            }
            Step::Check(_) if latest(held, of).is_some_and(|at| held[at].1.is_held()) => {}
            Step::Check(_) => return Err(Stopped),
            Step::Set(_) => {
                self.count(lock, Counting::Set).await;
            }
            Step::CountDown(_) => {
                self.count(lock, Counting::Down).await;
            }
            Step::Wait(wait) => {
                let patience = wait.limit.map_or(Patience::Unbounded, |Span(limit)| Patience::For(limit));
                self.count(lock, Counting::Await(patience)).await.filter(|open| *open).ok_or(Stopped)?;
            }
            Step::Take(take) => {
                let wait = take.wait.map_or(Patience::Unbounded, |Span(wait)| Patience::For(wait));
                self.count(lock, Counting::Take { permits: take.permits, wait }).await;
            }
            Step::Delete(_) => {
                self.count(lock, Counting::Delete).await;
            }
            Step::Sleep(sleep) => self.ctx.wire_delay(sleep.0.drawn().0).await,
            Step::Block(block) => self.block(block.0.0).await,
            // The steps that it repeats precede it.
            Step::Repeat(_) => {}
        }
        Ok(())
    }

    async fn acquire(&self, acquire: &Acquire, lock: LockEntry) -> Result<TakenHold, Stopped> {
        let lease = self.lease(lock, acquire.lease, acquire.watchdog);
        let wait = acquire.wait.map_or(Patience::Unbounded, |Span(wait)| Patience::For(wait));
        loop {
            match self
                .ask(Ask {
                    lock,
                    lease,
                    wait,
                    mode: mode(acquire.shared),
                    permits: acquire.permits.unwrap_or(1),
                })
                .await
            {
                Ok(Some(hold)) => return Ok(hold),
                Ok(None) => return Err(Stopped),
                Err(_) if acquire.retry => self.ctx.wire_delay(RETRY).await,
                Err(_) => return Err(Stopped),
            }
        }
    }

    async fn try_acquire(&self, attempt: &TryAcquire, lock: LockEntry) -> Result<TakenHold, Stopped> {
        let lease = self.lease(lock, attempt.lease, attempt.watchdog);
        let ask = Ask {
            lock,
            lease,
            wait: Patience::None,
            mode: mode(attempt.shared),
            permits: attempt.permits.unwrap_or(1),
        };
        self.ask(ask).await.ok().flatten().ok_or(Stopped)
    }

    async fn poll(&self, poll: &Poll, lock: LockEntry) -> Result<TakenHold, Stopped> {
        let lease = self.lease(lock, poll.lease, false);
        loop {
            let ask = Ask { lock, lease, wait: Patience::None, mode: mode(poll.shared), permits: 1 };
            if let Ok(Some(hold)) = self.ask(ask).await {
                return Ok(hold);
            }
            if poll.until.is_some_and(|Span(until)| self.ctx.moment().0 >= True::ZERO + until) {
                return Err(Stopped);
            }
            self.ctx.wire_delay(poll.every.0).await;
        }
    }

    async fn release(&self, release: &Release, hold: TakenHold) {
        let given_back = self.give_back(&hold).await;
        if let (Err(failure), Some(Span(after))) = (given_back, release.retry_after)
            && !failure.definite
        {
            self.ctx.wire_delay(after).await;
            let _ = self.give_back(&hold).await;
        }
    }

    async fn extend(&self, extend: &Extend, (lock, hold): &TakenHold) {
        let Span(lease) = extend.lease;
        let call = Call::Extend { lease_ms: millis(lease) };
        let history = self.about(*lock);
        let op = history.invoked(self.owner, call);
        let extended = hold.extend(lease).await;
        let outcome = extended.as_ref().map_or_else(failed, |()| Outcome::Ok);
        history.returned(op, call, outcome);
    }

    async fn work_as_written(&self, work: &Work, of: Option<LockEntry>, held: &[TakenHold]) {
        let now = self.ctx.moment().0;
        let end = match (work.length, work.until) {
            (Some(length), _) => now + length.drawn().0,
            (None, Some(Span(until))) => (True::ZERO + until).max(now),
            (None, None) => now,
        };
        self.work(of, held, end, work.write_every.map(|Span(every)| every), work.until_lost).await;
    }
}

/// Returns the index of the latest hold of a lock, or of any lock.
fn latest(held: &[TakenHold], of: Option<LockEntry>) -> Option<usize> {
    held.iter().rposition(|(lock, _)| of.is_none_or(|of| of == *lock))
}

/// Returns the index of the first hold of a lock, or of any lock.
fn first(held: &[TakenHold], of: Option<LockEntry>) -> Option<usize> {
    held.iter().position(|(lock, _)| of.is_none_or(|of| of == *lock))
}

fn mode(shared: bool) -> Mode {
    if shared { Mode::Shared } else { Mode::Exclusive }
}
