//! How each workload is played.

use std::{rc::Rc, time::Duration};

use lockstorm_sim::world::Stream;

use super::{Play, client::Actor};
use crate::{
    history::{Lock, Mode},
    scenario::Contend,
    subject::{Ask, Held, Patience},
    units::{Draw, Span},
};

/// One level of each lock on trial, in the order in which they were taken.
type Level = Vec<(Lock, Rc<dyn Held>)>;

impl Play for Contend {
    async fn play(&self, actor: &Actor) -> Vec<Rc<dyn Held>> {
        actor.contend(self).await;
        Vec::new()
    }
}

impl Actor {
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
}

fn drawn(draw: Draw<Span>, stream: &mut Stream) -> Span {
    draw.at(stream.unit())
}
