//! The laboratory's own client. In the calm it acquires each lock that no owner was granted since
//! the storm, and releases it immediately. It skips a lock for which owners have asked so long that
//! `progress` is decided.
//!
//! It is not part of the experiment, so it disturbs it as little as possible. It sends nothing
//! before its first request, it leaves alone a lock that an owner has or waits for, and no checker
//! but `progress` sees its events.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    time::Duration,
};

use lockstorm_world::{HostCtx, time::True};

use super::{
    Stage, client,
    client::Actor,
    process::{Planned, Process},
};
use crate::{
    file::{
        plan::{LockEntry, Plan, PlannedProbe},
        scenario::Client,
    },
    judge::history::{Call, EventKind, History, Host, Life, Lock, Mode, Op, Outcome, Owner, Probe},
    run::{
        recorder::Line,
        subject::{self, Ask, Local, Patience},
    },
    units::Span,
};

/// The pause before the next attempt, after a lock was in use or an acquisition failed.
const AGAIN: Duration = Duration::from_secs(1);

struct ProbeProcess {
    stage: Rc<Stage>,
    client: Client,
    from: True,
}

pub(super) fn process(planned: &Planned<'_>) -> Option<Box<dyn Process>> {
    let PlannedProbe { client } = planned.software()?;
    let stage = planned.stage.clone();
    let Some(Probe::From { at: from }) = stage.plan.phases.probe else { return None };
    Some(Box::new(ProbeProcess { stage, client: client.clone(), from }))
}

impl Process for ProbeProcess {
    fn run(&self, ctx: HostCtx) -> Local<'static, ()> {
        Box::pin(play(ctx, self.stage.clone(), self.client.clone(), self.from))
    }
}

async fn play(ctx: HostCtx, stage: Rc<Stage>, client: Client, from: True) {
    stage.opening.is_over().await;
    let until = |at: True| ctx.wire_delay(at.since(ctx.moment().0));
    until(from).await;
    let longest = from.since(stage.plan.phases.storm_ends);
    let bound = stage.shared.get().history.header.bounds.progress;
    let mut seen = Seen::new(stage.plan.phases.storm_ends);
    let mut locks = asked_for(&stage.plan);
    let mut actors: Option<Vec<Rc<Actor>>> = None;
    while !locks.is_empty() {
        seen.look_at(&stage.shared.get().history);
        let mut in_use = Vec::new();
        for (lock, entry) in locks {
            if seen.is_decided(lock, bound) {
                continue;
            }
            if seen.is_in_use(lock, ctx.moment().0, longest) {
                in_use.push((lock, entry));
                continue;
            }
            if actors.is_none() {
                actors = make(&ctx, &stage, &client);
            }
            let Some(actors) = &actors else { break };
            tokio::task::spawn_local(ask(ctx.clone(), actors[usize::from(entry.0)].clone(), entry));
        }
        locks = in_use;
        until(ctx.moment().0 + AGAIN).await;
    }
    std::future::pending::<()>().await;
}

/// Returns the locks to ask for. Of several kinds under one name, which exclude each other, it
/// takes the first.
fn asked_for(plan: &Plan) -> Vec<(Lock, LockEntry)> {
    let mut locks = BTreeMap::new();
    for (entry, lock) in plan.entries().filter(|(_, lock)| lock.written.has_owners()) {
        locks.entry(lock.number).or_insert(entry);
    }
    locks.into_iter().collect()
}

/// Creates a line of work for each lock, so that the requests are independent. Returns `None` if
/// the subject cannot begin.
fn make(ctx: &HostCtx, stage: &Rc<Stage>, client: &Client) -> Option<Vec<Rc<Actor>>> {
    let context = client::context(ctx, stage, client);
    let numbers: Vec<Line> = (1..=stage.plan.locks.len() as u32).map(Line).collect();
    let owners: Vec<Owner> = numbers.iter().map(|line| context.history.on(*line).owner()).collect();
    let subjects = subject::make(&context, &numbers)
        .inspect_err(|failure| ctx.observe("no subject", failure.message.clone()))
        .ok()?;
    let lines = numbers.into_iter().zip(owners).zip(subjects);
    let actor = |((line, owner), subjects)| Rc::new(Actor::new(stage, &context, line, owner, subjects));
    Some(lines.map(actor).collect())
}

/// Requests a lock until it is granted, and releases it.
async fn ask(ctx: HostCtx, actor: Rc<Actor>, lock: LockEntry) {
    let written = &actor.stage.plan.entry(lock).written;
    // Use a lease even for a lock with a watchdog: the hold lasts only as long as the two messages
    // take.
    let Span(lease) = written.lease.unwrap_or(written.watchdog);
    let ask = Ask { lock, lease: Some(lease), wait: Patience::Unbounded, mode: Mode::Exclusive, permits: 1 };
    loop {
        if let Ok(Some(hold)) = actor.ask(ask).await {
            let _ = actor.give_back(&hold).await;
            return;
        }
        ctx.wire_delay(AGAIN).await;
    }
}

/// The state of the locks, derived from the events of the history.
struct Seen {
    storm_ends: True,
    /// The number of events that were processed.
    events: usize,
    /// The pending acquisitions: host, lock and start.
    calls: BTreeMap<Op, (Host, Lock, True)>,
    /// The first and the last request for each lock since the storm.
    asked: BTreeMap<Lock, (True, True)>,
    /// The owners that believe they hold a lock, on their hosts. The value is the time of the last
    /// renewal, or `None` for a belief without an end.
    believers: BTreeMap<(Lock, Owner, Mode, Host), Option<True>>,
    /// The locks of which an acquisition has succeeded since the storm.
    granted: BTreeSet<Lock>,
}

impl Seen {
    fn new(storm_ends: True) -> Seen {
        let (calls, asked, believers, granted) = Default::default();
        Seen { storm_ends, events: 0, calls, asked, believers, granted }
    }

    fn look_at(&mut self, history: &History) {
        for event in &history.events[self.events..] {
            let host = event.host;
            match event.kind {
                EventKind::Invoke { op, lock, call: Call::Acquire { .. }, .. } => {
                    self.calls.insert(op, (host, lock, event.at));
                    self.is_asked_for(lock, event.at, event.at);
                }
                EventKind::Return { op, ref outcome } => {
                    let Some((_, lock, from)) = self.calls.remove(&op) else { continue };
                    self.is_asked_for(lock, from, event.at);
                    if *outcome == Outcome::Ok && event.at >= self.storm_ends {
                        self.granted.insert(lock);
                    }
                }
                EventKind::Believes { lock, owner, mode, ref until, .. } => {
                    self.believers.insert((lock, owner, mode, host), until.map(|_| event.at));
                }
                EventKind::Disbelieves { lock, owner, mode, .. } => {
                    self.believers.remove(&(lock, owner, mode, host));
                }
                EventKind::Life { life: Life::Crashed | Life::Started } => {
                    self.calls.retain(|_, (of, ..)| *of != host);
                    self.believers.retain(|(.., of), _| *of != host);
                }
                _ => {}
            }
        }
        self.events = history.events.len();
    }

    fn is_asked_for(&mut self, lock: Lock, from: True, until: True) {
        if until >= self.storm_ends {
            self.asked.entry(lock).or_insert((from.max(self.storm_ends), until)).1 = until;
        }
    }

    /// Returns true if other owners have already decided the verdict: they were granted the lock,
    /// or they have asked for it for as long as the `bound`.
    fn is_decided(&self, lock: Lock, bound: Duration) -> bool {
        let asked = self.asked.get(&lock);
        self.granted.contains(&lock) || asked.is_some_and(|(from, until)| until.since(*from) >= bound)
    }

    /// Returns true if an owner asks for a lock, waits for it or has it. A hold that was not
    /// renewed for more than `long`, the longest lease, does not count.
    fn is_in_use(&self, lock: Lock, now: True, long: Duration) -> bool {
        if self.asked.get(&lock).is_some_and(|(_, asked)| now.since(*asked) < AGAIN) {
            return true;
        }
        let is_held = |renewed: &Option<True>| renewed.is_none_or(|renewed| now.since(renewed) <= long);
        let is_believed = self.believers.iter().any(|((of, ..), renewed)| *of == lock && is_held(renewed));
        is_believed || self.calls.values().any(|(_, of, _)| *of == lock)
    }
}

#[cfg(test)]
mod tests {
    use lockstorm_world::TraceRetention;

    use super::*;
    use crate::{
        file::scenario::{parse, word},
        judge::{checker, object::LockKind, verdict::Finding},
        run::{self, Engine},
    };

    /// A client holds the lock from 1 s on, with a lease of a second, in a storm that ends at 5 s.
    fn history(kind: LockKind, rest: &str) -> History {
        let nodes = if kind.needs_quorum() { "count = 3" } else { "" };
        let text = format!(
            "[node.m]\n{nodes}\n[lock]\nkind = {:?}\nlease = \"1s\"\n[run]\nstorm = \"5s\"\ncalm = \"10s\"\n{rest}",
            word(kind)
        );
        let source = parse("probe.toml", &text).unwrap_or_else(|error| panic!("{error}"));
        let plan = Plan::draw(&source.variants[0].scenario, 0);
        run::run(&plan, "probe", Engine::Event, TraceRetention::Nothing).history
    }

    const ONE_ROUND: &str = "[client.c]\nsteps = [{ at = \"1s\", try_acquire = {} }, { work = { for = \"100ms\" } }, { release = {} }]";

    fn found<'a>(findings: &'a [Finding], checker: &str) -> &'a Finding {
        findings.iter().find(|one| one.checker == checker).expect("there is such a checker")
    }

    #[test]
    fn a_lock_of_any_kind_that_no_client_asks_for_in_the_calm_is_asked_for() {
        for kind in LockKind::ALL.iter().copied().filter(|kind| !kind.is_latch() && !kind.is_rate()) {
            let history = history(kind, ONE_ROUND);
            let probe = history.probe().unwrap_or_else(|| panic!("{kind:?}: it asked"));
            let asked = history
                .events
                .iter()
                .find(|event| event.host == probe && matches!(event.kind, EventKind::Invoke { .. }));
            // The end of the storm at 5 s, plus the lease of 1 s.
            assert_eq!(asked.map(|event| event.at), Some(True::from_secs(6)), "{kind:?}");
            let findings = checker::check(&history);
            let progress = found(&findings, "progress");
            assert_eq!(progress.verdict.word(), "holds", "{kind:?}: {}", progress.verdict.sentence());
            assert!(progress.verdict.sentence().contains("(probe) is lockstorm's own client"), "{kind:?}");
        }
    }

    #[test]
    fn no_checker_but_progress_hears_of_it() {
        for kind in LockKind::ALL.iter().copied().filter(|kind| !kind.is_latch() && !kind.is_rate()) {
            let with = checker::check(&history(kind, ONE_ROUND));
            let without = checker::check(&history(kind, &format!("probe = false\n{ONE_ROUND}")));
            for (with, without) in with.iter().zip(&without).filter(|(with, _)| with.checker != "progress") {
                assert_eq!(with, without, "{kind:?}");
            }
            assert_eq!(found(&without, "progress").verdict.word(), "undecided", "{kind:?}");
        }
    }

    #[test]
    fn what_a_client_has_or_asked_for_in_the_calm_is_let_alone() {
        let rows = [
            // The watchdog's lease is 30 s, so the calm is too short for a request.
            "[client.c]\nsteps = [{ at = \"1s\", try_acquire = { watchdog = true } }]",
            "[client.c]\nsteps = [{ at = \"1s\", try_acquire = {} }, { at = \"5.1s\", acquire = {} }, { release = {} }]",
            "[client.c]\nworkload.contend = { hold = \"10ms\", think = \"10ms\" }",
        ];
        for row in rows {
            let history = history(LockKind::Plain, row);
            assert_eq!(history.probe(), None, "{row}");
            assert!(
                history.header.hosts.iter().all(|host| host.kind != crate::judge::history::HostKind::Probe),
                "{row}"
            );
        }
    }

    /// The client releases the lock at 11.5 s. Before that, no other owner can get it.
    #[test]
    fn what_is_given_back_late_in_the_calm_is_asked_for_then() {
        let steps = "[client.c]\nsteps = [{ at = \"1s\", try_acquire = { lease = \"2s\" } }, { at = \"2s\", extend = { lease = \"4s\" } }, \
                     { at = \"5s\", extend = { lease = \"4s\" } }, { at = \"8.5s\", extend = { lease = \"4s\" } }, { at = \"11.5s\", release = {} }]";
        let history = history(LockKind::Plain, steps);
        let probe = history.probe().expect("it asked");
        let asked = history
            .events
            .iter()
            .find(|event| event.host == probe && matches!(event.kind, EventKind::Invoke { .. }));
        assert_eq!(asked.map(|event| event.at), Some(True::from_secs(12)));
    }
}
