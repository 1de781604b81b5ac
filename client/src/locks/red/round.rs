//! One acquisition on all nodes: the count of their votes, and what is held when they suffice.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{Semaphore, mpsc};

use super::node::{self, Claim, Vote};
use super::options::Options;
use crate::env::{Boottime, Env, within};
use crate::error::{Error, ErrorKind, Result};
use crate::guard::{Guard, Keeper, not_held};
use crate::hold::{Hold, locked};
use crate::key::Key;
use crate::observer::LostReason;
use crate::session::Session;

/// How the nodes voted.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) yes: usize,
    no: usize,
    unknown: usize,
    /// What the last of the unknown ones said.
    reason: Option<Error>,
}

impl Tally {
    /// How many nodes said anything definite.
    pub(super) fn answered(&self) -> usize {
        self.yes + self.no
    }

    /// The error of a count that decides nothing.
    pub(super) fn no_quorum(&self, quorum: usize) -> Error {
        let reason = self.reason.as_ref().map_or_else(|| "no answer in time".to_owned(), ToString::to_string);
        Error::indefinite(ErrorKind::NoQuorum { answered: self.answered(), quorum, reason })
    }

    fn add(&mut self, vote: Vote) {
        match vote {
            Vote::Yes => self.yes += 1,
            Vote::No => self.no += 1,
            Vote::Unknown(error) => {
                self.unknown += 1;
                self.reason = Some(error);
            }
        }
    }
}

/// Counts votes until there are `quorum`, until there cannot be any more, or until `limit`.
async fn count(
    env: &dyn Env,
    votes: &mut mpsc::Receiver<Vote>,
    nodes: usize,
    quorum: usize,
    limit: Duration,
) -> Tally {
    let mut tally = Tally::default();
    let counting = async {
        while tally.yes < quorum && tally.no + tally.unknown <= nodes - quorum {
            let Some(vote) = votes.recv().await else { return };
            tally.add(vote);
        }
    };
    within(env, env.now() + limit, counting).await;
    tally
}

/// The word that the nodes shall be freed, which is given by closing, at the latest when this is dropped.
///
/// A semaphore wakes those who wait in the order in which they came. A `tokio::sync::watch` would draw the order from
/// the thread's own random numbers, and a simulated run would not repeat itself.
struct Release(Arc<Semaphore>);

impl Drop for Release {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// All nodes were asked. Dropping this frees them.
pub(super) struct Round {
    claim: Claim,
    /// Before the first request was sent.
    pub(super) begun: Boottime,
    nodes: usize,
    votes: mpsc::Receiver<Vote>,
    release: Release,
    freed: mpsc::Receiver<Result<bool>>,
}

impl Round {
    /// Asks all nodes at once.
    pub(super) fn begin(nodes: &[Arc<Session>], lock: &Key, lease: Duration) -> Self {
        let env = &nodes[0].around.env;
        // 20 bytes, as the published algorithm proposes.
        let value = format!("{:016x}{:016x}{:08x}", env.random(), env.random(), env.random() >> 32);
        let claim = Claim { lock: lock.clone(), value, lease };
        let begun = env.boottime();
        let (vote, votes) = mpsc::channel(nodes.len());
        let (free, freed) = mpsc::channel(nodes.len());
        let release = Release(Arc::new(Semaphore::new(0)));
        for node in nodes {
            let asked =
                node::claim(node.clone(), claim.clone(), vote.clone(), release.0.clone(), free.clone());
            node.around.env.spawn(Box::pin(asked));
        }
        Self { claim, begun, nodes: nodes.len(), votes, release, freed }
    }

    pub(super) fn value(&self) -> &str {
        &self.claim.value
    }

    pub(super) async fn count(&mut self, env: &dyn Env, quorum: usize, limit: Duration) -> Tally {
        count(env, &mut self.votes, self.nodes, quorum, limit).await
    }

    /// Frees all nodes, also those that did not answer. Done when a majority was freed, or when that is hopeless.
    async fn free(mut self, quorum: usize) -> Result<bool> {
        self.release.0.close();
        let (mut freed, mut failure) = (0, None);
        while freed < quorum {
            match self.freed.recv().await {
                Some(Ok(was_held)) => freed += usize::from(was_held),
                Some(Err(error)) => failure = Some(error),
                None => break,
            }
        }
        match failure {
            _ if freed >= quorum => Ok(true),
            Some(error) => Err(error),
            None => Ok(false),
        }
    }
}

/// One owner at one RedLock.
///
/// The nodes know a random value and nothing of owners, so that it is here that acquisitions of one owner nest.
#[derive(Default)]
pub(super) struct Turn {
    /// Attempts and releases of one owner come one after another, so that nobody nests in what is being freed.
    pub(super) mine: tokio::sync::Mutex<()>,
    held: Mutex<Weak<Held>>,
}

impl Turn {
    /// What the owner holds, as far as this client knows.
    pub(super) fn held(&self) -> Option<Arc<Held>> {
        let held = locked(&self.held).upgrade()?;
        held.holds().iter().any(|hold| hold.is_valid()).then_some(held)
    }
}

/// A held RedLock: one value on the nodes, and the levels that its owner has taken with it.
pub(super) struct Held {
    nodes: Arc<[Arc<Session>]>,
    turn: Arc<Turn>,
    claim: Claim,
    levels: Mutex<Levels>,
    quorum: usize,
    options: Options,
}

struct Levels {
    /// Taken by the last release.
    round: Option<Round>,
    holds: Vec<Weak<Hold>>,
}

impl Held {
    pub(super) fn new(
        nodes: Arc<[Arc<Session>]>,
        turn: Arc<Turn>,
        round: Round,
        quorum: usize,
        options: Options,
    ) -> Arc<Self> {
        let claim = round.claim.clone();
        let levels = Mutex::new(Levels { round: Some(round), holds: Vec::new() });
        let held = Arc::new(Self { nodes, turn, claim, levels, quorum, options });
        *locked(&held.turn.held) = Arc::downgrade(&held);
        held
    }

    pub(super) fn value(&self) -> &str {
        &self.claim.value
    }

    /// The levels that were not given back.
    pub(super) fn holds(&self) -> Vec<Arc<Hold>> {
        locked(&self.levels).holds.iter().filter_map(Weak::upgrade).collect()
    }

    /// A level that lasts until `deadline`.
    pub(super) fn level(self: Arc<Self>, deadline: Boottime, lease: Duration, renew: bool) -> Guard {
        let around = self.nodes[0].around.clone();
        let env = around.env.clone();
        let Claim { lock, value, .. } = &self.claim;
        let hold = Hold::granted(around, lock, value, deadline, lease, None);
        locked(&self.levels).holds.push(Arc::downgrade(&hold));
        if renew {
            env.spawn(Box::pin(self.clone().keep_extending(hold.clone())));
        }
        Guard::new(hold, self, env)
    }

    /// One more level for the same owner: the nodes are asked for `lease` from now, which shortens nothing.
    pub(super) async fn nest(self: Arc<Self>, lease: Duration, renew: bool) -> Result<Guard, Tally> {
        let (tally, deadline) = self.ask_for_more(lease).await;
        if self.is_gone(&tally) {
            for hold in self.holds() {
                hold.lose(LostReason::NoQuorum);
            }
        }
        if tally.yes < self.quorum || self.nodes[0].env().boottime() >= deadline {
            return Err(tally);
        }
        Ok(self.level(deadline, lease, renew))
    }

    /// Extends every third of the lease until the hold is over; after a failure sooner.
    async fn keep_extending(self: Arc<Self>, hold: Arc<Hold>) {
        let env = self.nodes[0].around.env.clone();
        let period = hold.lease / 3;
        let mut due = env.now() + period;
        while within(&*env, due, hold.over()).await.is_none() {
            due = env.now() + period;
            if let Err(error) = self.extend_once(&hold, hold.lease).await {
                hold.renew_failed(&error);
                let config = &self.nodes[0].config;
                due = env.now() + config.retry_delay(&*env, 0).min(period / 4);
            }
        }
        // Over may also mean that the lease ran out unnoticed.
        hold.is_valid();
    }

    /// Asks all nodes for `lease` from now. With a quorum the lock lasts until the deadline returned.
    async fn ask_for_more(&self, lease: Duration) -> (Tally, Boottime) {
        let env = self.nodes[0].env();
        let begun = env.boottime();
        let (vote, mut votes) = mpsc::channel(self.nodes.len());
        for node in self.nodes.iter() {
            let asked = node::extend(node.clone(), self.claim.clone(), lease, vote.clone());
            node.around.env.spawn(Box::pin(asked));
        }
        drop(vote);
        let tally = count(env, &mut votes, self.nodes.len(), self.quorum, self.options.node_timeout).await;
        (tally, begun + lease.saturating_sub(self.options.drift(lease)))
    }

    /// Whether so many nodes have lost the value that there is no majority left.
    pub(super) fn is_gone(&self, tally: &Tally) -> bool {
        tally.no > self.nodes.len() - self.quorum
    }

    async fn extend_once(&self, hold: &Hold, lease: Duration) -> Result<()> {
        let (tally, deadline) = self.ask_for_more(lease).await;
        if tally.yes >= self.quorum {
            hold.renewed_until(deadline);
            return if hold.is_valid() { Ok(()) } else { Err(not_held(hold)) };
        }
        if self.is_gone(&tally) {
            hold.lose(LostReason::NoQuorum);
            return Err(not_held(hold));
        }
        Err(tally.no_quorum(self.quorum))
    }
}

impl Held {
    /// Gives one level back. After the last one the nodes are to be freed.
    async fn leave(&self, hold: &Hold) -> Option<Round> {
        let _mine = self.turn.mine.lock().await;
        let mut levels = locked(&self.levels);
        levels.holds.retain(|other| other.upgrade().is_some_and(|other| other.number != hold.number));
        if levels.holds.is_empty() { levels.round.take() } else { None }
    }
}

impl Keeper for Held {
    fn release(self: Arc<Self>, hold: Arc<Hold>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            let done = match self.leave(&hold).await {
                Some(round) => round.free(self.quorum).await,
                // The levels below are still held, and nobody but their owner needs to know of this one.
                None => Ok(hold.why_lost().is_none()),
            };
            let done = done.and_then(|was_held| if was_held { Ok(()) } else { Err(not_held(&hold)) });
            hold.released(done.as_ref().err());
            done
        })
    }

    fn extend(self: Arc<Self>, hold: Arc<Hold>, lease: Duration) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move { self.extend_once(&hold, lease).await })
    }
}
