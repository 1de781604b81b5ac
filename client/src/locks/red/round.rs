//! One acquisition on all nodes: the count of their votes, and what is held when they suffice.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{Semaphore, mpsc};

use super::node::{self, Claim, Vote};
use super::options::Options;
use crate::env::{Boottime, Env, within};
use crate::error::{Error, ErrorKind, Result};
use crate::guard::{Guard, Keeper, not_held};
use crate::hold::{Hold, locked};
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
    pub(super) fn begin(nodes: &[Arc<Session>], lock: &str, lease: Duration) -> Self {
        let env = &nodes[0].around.env;
        // 20 bytes, as the published algorithm proposes.
        let value = format!("{:016x}{:016x}{:08x}", env.random(), env.random(), env.random() >> 32);
        let claim = Claim { lock: lock.to_owned(), value, lease };
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

/// A held RedLock.
pub(super) struct Held {
    nodes: Arc<[Arc<Session>]>,
    claim: Claim,
    /// Taken by the release.
    round: Mutex<Option<Round>>,
    quorum: usize,
    options: Options,
}

impl Held {
    pub(super) fn new(
        nodes: Arc<[Arc<Session>]>,
        round: Round,
        quorum: usize,
        options: Options,
    ) -> Arc<Self> {
        let claim = round.claim.clone();
        Arc::new(Self { nodes, claim, round: Mutex::new(Some(round)), quorum, options })
    }

    pub(super) fn into_guard(self: Arc<Self>, deadline: Boottime, lease: Duration, renew: bool) -> Guard {
        let around = self.nodes[0].around.clone();
        let env = around.env.clone();
        let Claim { lock, value, .. } = &self.claim;
        let hold = Hold::granted(around, lock, value, deadline, lease, None);
        if renew {
            env.spawn(Box::pin(self.clone().keep_extending(hold.clone())));
        }
        Guard::new(hold, self, env)
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

    async fn extend_once(&self, hold: &Hold, lease: Duration) -> Result<()> {
        let env = self.nodes[0].env();
        let begun = env.boottime();
        let (vote, mut votes) = mpsc::channel(self.nodes.len());
        for node in self.nodes.iter() {
            let asked = node::extend(node.clone(), self.claim.clone(), lease, vote.clone());
            node.around.env.spawn(Box::pin(asked));
        }
        drop(vote);
        let tally = count(env, &mut votes, self.nodes.len(), self.quorum, self.options.node_timeout).await;
        if tally.yes >= self.quorum {
            hold.renewed_until(begun + lease.saturating_sub(self.options.drift(lease)));
            return if hold.is_valid() { Ok(()) } else { Err(not_held(hold)) };
        }
        if tally.no > self.nodes.len() - self.quorum {
            // So many have lost it that there is no majority left.
            hold.lose(LostReason::NoQuorum);
            return Err(not_held(hold));
        }
        Err(tally.no_quorum(self.quorum))
    }
}

impl Keeper for Held {
    fn release(self: Arc<Self>, hold: Arc<Hold>) -> BoxFuture<'static, Result<()>> {
        let round = locked(&self.round).take();
        Box::pin(async move {
            let done = match round {
                Some(round) => round.free(self.quorum).await,
                None => Ok(false),
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
