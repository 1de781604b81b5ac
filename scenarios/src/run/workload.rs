//! Runs the workloads.

use std::time::Duration;

use lockstorm_world::Stream;

use super::client::{Actor, TakenHold};
use crate::{
    file::{
        name::Name,
        plan::LockEntry,
        scenario::{Contend, Count, Take, Workload},
    },
    judge::history::Mode,
    run::subject::{Ask, Counting, Patience},
    units::{Draw, Rate, Span},
};

/// Draws with probability `share`; without a share returns false.
fn occurs(share: Option<Rate>, stream: &mut Stream) -> bool {
    share.is_some_and(|Rate(share)| stream.unit() < share)
}

/// One level of each lock on trial, in the order in which they were taken.
type Level = Vec<TakenHold>;

impl Actor {
    /// Repeats the workload until its end. Releases everything that it takes.
    pub(super) async fn work_through(&self, workload: &Workload) {
        match workload {
            Workload::Contend(contending) => self.contend(contending).await,
            Workload::Count(counting) => self.count_over_and_over(counting).await,
            Workload::Take(taking) => self.take_over_and_over(taking).await,
        }
    }

    /// Takes permits of every rate limiter, thinks and repeats: until the end of the storm, and
    /// then until each limiter has granted once.
    async fn take_over_and_over(&self, taking: &Take) {
        let mut stream = self.stream();
        let wait = taking.wait.map_or(Patience::Unbounded, |Span(wait)| Patience::For(wait));
        let mut calm = false;
        while !self.is_over(&mut calm) {
            for (lock, _) in self.stage.plan.entries() {
                let permits = 1 + stream.below(u64::from(taking.permits));
                let permits = u32::try_from(permits).unwrap_or(taking.permits);
                let granted = self.count(lock, Counting::Take { permits, wait }).await;
                calm &= granted == Some(true);
            }
            self.think(taking.think, &mut stream).await;
        }
    }

    /// Sets, counts down or awaits every latch, as drawn, thinks and repeats until the end of the
    /// storm. Then sets, counts down and awaits each latch once.
    async fn count_over_and_over(&self, count: &Count) {
        let mut stream = self.stream();
        let latches = || self.stage.plan.entries();
        let patience = Patience::For(count.wait.0);
        let mut calm = false;
        while !self.is_over(&mut calm) {
            if !calm {
                for (latch, _) in latches() {
                    let counting = match stream.below(4) {
                        0 => Counting::Set,
                        1 => Counting::Await(patience),
                        _ => Counting::Down,
                    };
                    self.count(latch, counting).await;
                }
                self.think(count.think, &mut stream).await;
                continue;
            }
            for (latch, planned) in latches() {
                self.count(latch, Counting::Set).await;
                for _ in 0..planned.written.count.unwrap_or(1) {
                    self.count(latch, Counting::Down).await;
                }
            }
            for (latch, _) in latches() {
                self.count(latch, Counting::Await(Patience::Unbounded)).await;
            }
        }
    }

    /// Returns the random stream of this line of work.
    fn stream(&self) -> Stream {
        let name =
            if self.name.is_empty() { "workload".to_owned() } else { format!("workload/{}", self.name) };
        self.ctx.stream(&name)
    }

    /// Acquires, holds, writes, releases, thinks and repeats: until the end of the storm, and then
    /// until the locks were granted once.
    async fn contend(&self, contend: &Contend) {
        let mut stream = self.stream();
        let locks = self.locks(contend);
        if contend.together {
            return self.contend_together(contend, &locks, &mut stream).await;
        }
        let wait = contend.wait.map_or(Patience::Unbounded, |Span(wait)| Patience::For(wait));
        let permits = contend.permits.unwrap_or(1);
        let mut calm = false;
        for _ in 0..contend.rounds.unwrap_or(u32::MAX) {
            if self.is_over(&mut calm) {
                return;
            }
            let mode = if occurs(contend.shared, &mut stream) { Mode::Shared } else { Mode::Exclusive };
            let downgrades = mode == Mode::Exclusive && occurs(contend.downgrades, &mut stream);
            if let Some(held) = self.take_all(&locks, wait, mode, permits).await {
                let Span(length) = drawn(contend.hold, &mut stream);
                if downgrades {
                    self.hold_and_downgrade(&locks, held, length, contend.write_every).await;
                } else {
                    let levels = contend.levels.map_or(1, |levels| 1 + stream.below(u64::from(levels)));
                    self.hold_levels((&locks, mode), held, levels, length, contend.write_every).await;
                }
            } else {
                calm = false;
            }
            self.think(contend.think, &mut stream).await;
        }
    }

    /// Returns true if the rounds are over. In the calm there is one more round, to show that the
    /// lock can still be acquired. A caller whose round failed resets `calm`, and so continues.
    fn is_over(&self, calm: &mut bool) -> bool {
        self.ctx.moment().0 >= self.stage.plan.phases.storm_ends && std::mem::replace(calm, true)
    }

    async fn think(&self, think: Draw<Span>, stream: &mut Stream) {
        let Span(think) = drawn(think, stream);
        // Every round takes time, also without think time: otherwise a lock that fails at once
        // would cause an endless loop.
        self.ctx.wire_delay(think.max(Duration::from_millis(1))).await;
    }

    /// Contends for several locks as one.
    async fn contend_together(&self, contend: &Contend, locks: &[LockEntry], stream: &mut Stream) {
        let wait = contend.wait.map_or(Patience::Unbounded, |Span(wait)| Patience::For(wait));
        let (lease, permits) = (self.lease(locks[0], None, false), 1);
        let asks: Vec<Ask> =
            locks.iter().map(|&lock| Ask { lock, lease, wait, mode: Mode::Exclusive, permits }).collect();
        let mut calm = false;
        for _ in 0..contend.rounds.unwrap_or(u32::MAX) {
            if self.is_over(&mut calm) {
                return;
            }
            if let Some(held) = self.ask_for_all(&asks).await {
                let Span(length) = drawn(contend.hold, stream);
                let every = contend.write_every.map_or(length / 2, |Span(every)| every);
                let working = self.write_until(self.ctx.moment().0 + length, Some(every), async || {
                    self.write_as(locks[0], held.owner(), held.token()).await;
                });
                tokio::select! {
                    biased;
                    () = held.lost() => {}
                    () = working => {}
                }
                self.give_all_of(&asks, &*held).await;
            } else {
                calm = false;
            }
            self.think(contend.think, stream).await;
        }
    }

    /// Returns the locks that a round takes, in order.
    fn locks(&self, contend: &Contend) -> Vec<LockEntry> {
        let all = self.stage.plan.entries();
        match &contend.of {
            None => all.map(|(lock, _)| lock).collect(),
            Some(names) => {
                let of = |name: &Name| {
                    all.clone().find(|(_, lock)| lock.name == name.as_str()).map(|(lock, _)| lock)
                };
                names.iter().filter_map(of).collect()
            }
        }
    }

    /// Takes one level of every lock, in order. If one is refused, releases those that were
    /// granted.
    async fn take_all(&self, locks: &[LockEntry], wait: Patience, mode: Mode, permits: u32) -> Option<Level> {
        let mut level = Level::new();
        for &lock in locks {
            let lease = self.lease(lock, None, false);
            match self.ask(Ask { lock, lease, wait, mode, permits }).await {
                Ok(Some(hold)) => level.push(hold),
                _ => {
                    self.give_all_back(level).await;
                    return None;
                }
            }
        }
        Some(level)
    }

    async fn give_all_back(&self, level: Level) {
        for hold in level.iter().rev() {
            let _ = self.give_back(hold).await;
        }
    }

    /// Takes further levels of the locks, works for `length` in total, and releases the levels one
    /// by one. Spreads the time evenly over both directions. A refused level makes the current one
    /// the deepest; a lost level ends its work. Shared holders write nothing.
    async fn hold_levels(
        &self,
        (locks, mode): (&[LockEntry], Mode),
        first: Level,
        levels: u64,
        length: Duration,
        write_every: Option<Span>,
    ) {
        let stretch = length / u32::try_from(2 * levels - 1).unwrap_or(u32::MAX);
        let every = write_every.map_or(stretch / 2, |Span(every)| every);
        let every = (mode == Mode::Exclusive).then_some(every);
        // Only the first lock's level guards the writes, because the resource belongs to that lock
        // and checks its tokens.
        let guarding = |level: &Level| level.iter().take(1).cloned().collect::<Vec<_>>();
        let mut held = vec![first];
        while let Some(innermost) = held.last().filter(|_| (held.len() as u64) < levels) {
            self.work(None, &guarding(innermost), self.ctx.moment().0 + stretch, every, true).await;
            match self.take_all(locks, Patience::None, mode, 1).await {
                Some(level) => held.push(level),
                None => break,
            }
        }
        while let Some(innermost) = held.pop() {
            self.work(None, &guarding(&innermost), self.ctx.moment().0 + stretch, every, true).await;
            self.give_all_back(innermost).await;
        }
    }
}

impl Actor {
    /// Works alone for half of `length`, takes the locks in shared mode as well, gives up the
    /// exclusive holds, and works on among readers.
    async fn hold_and_downgrade(
        &self,
        locks: &[LockEntry],
        alone: Level,
        length: Duration,
        write_every: Option<Span>,
    ) {
        let (half, every) = (length / 2, write_every.map_or(length / 4, |Span(every)| every));
        self.work(None, &alone, self.ctx.moment().0 + half, Some(every), true).await;
        let shared = self.take_all(locks, Patience::None, Mode::Shared, 1).await;
        self.give_all_back(alone).await;
        if let Some(shared) = shared {
            self.work(None, &shared, self.ctx.moment().0 + half, None, true).await;
            self.give_all_back(shared).await;
        }
    }
}

fn drawn(draw: Draw<Span>, stream: &mut Stream) -> Span {
    draw.at(stream.unit())
}

#[cfg(test)]
mod tests {
    use lockstorm_world::{Entropy, TraceRetention};

    use super::*;
    use crate::{
        file::{plan::Plan, scenario::parse},
        judge::history::EventKind,
        run::{self, Engine},
    };

    #[test]
    fn so_many_are_of_a_kind_as_the_share_says() {
        let mut stream = Entropy::new(1).stream("workload");
        for (share, least, most) in [
            (None, 0, 0),
            (Some(0.0), 0, 0),
            (Some(0.1), 950, 1_050),
            (Some(0.9), 8_900, 9_100),
            (Some(1.0), 10_000, 10_000),
        ] {
            let times = (0..10_000).filter(|_| occurs(share.map(Rate), &mut stream)).count();
            assert!((least..=most).contains(&times), "{share:?}: {times} of 10,000");
        }
    }

    /// A packet takes 1 ms, so an acquisition or a release takes 2 ms.
    const ONE_WRITER: &str = r#"
[node.m]
[lock]
kind = "read-write"
[network]
latency = "1ms"
[client.c]
workload.contend = { hold = "4s", think = "1ms", rounds = 1, downgrades = "100%" }
[run]
storm = "6s"
"#;

    #[test]
    fn a_writer_that_downgrades_is_alone_for_half_of_the_time_and_then_among_readers() {
        let source = parse("workload.toml", ONE_WRITER).unwrap_or_else(|error| panic!("{error}"));
        let plan = Plan::draw(&source.variants[0].scenario, 0);
        let history = run::run(&plan, "workload", Engine::Event, TraceRetention::Nothing).history;
        // The times at which the writer first believes that it holds the lock in a mode, and first
        // knows that it no longer does.
        let (mut changes, mut times) = (Vec::new(), Vec::new());
        for event in &history.events {
            let change = match event.kind {
                EventKind::Believes { mode, .. } => (true, mode),
                EventKind::Disbelieves { mode, .. } => (false, mode),
                _ => continue,
            };
            if !changes.contains(&change) {
                changes.push(change);
                times.push(event.at);
            }
        }
        let (alone, shared) = (Mode::Exclusive, Mode::Shared);
        assert_eq!(changes, [(true, alone), (true, shared), (false, alone), (false, shared)]);
        let passed: Vec<u128> = times.windows(2).map(|pair| pair[1].since(pair[0]).as_millis()).collect();
        assert_eq!(passed, [2_000 + 2, 0, 2_000 + 2]);
    }
}
