//! One acquisition on all nodes: counts their votes, and makes a hold of a majority.

use std::any::Any;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use super::node::{self, Claim, Vote};
use super::options::Options;
use super::word::{Fate, Word};
use crate::env::{Boottime, Env, within};
use crate::error::{Error, Result};
use crate::guard::{Guard, not_held};
use crate::hold::{Grant, Hold, Keeper, OwnerState, Parts};
use crate::key::Key;
use crate::mutex::locked;
use crate::observer::LossCause;
use crate::renew::Renewal;
use crate::session::Session;

/// The votes of the nodes.
#[derive(Debug, Default)]
pub(super) struct Tally {
    nodes: usize,
    pub(super) yes: usize,
    no: usize,
    /// The errors of the other nodes. Some of these may have executed the request.
    failures: Vec<Error>,
}

impl Tally {
    /// Returns the number of nodes with a definite answer.
    pub(super) fn answered(&self) -> usize {
        self.yes + self.no
    }

    /// Returns the error of a count without a quorum. It is definite if the nodes that may have
    /// executed the request are no quorum. If permanent refusals, such as of a wrong password, make
    /// a quorum impossible, one of them is returned instead of the count.
    pub(super) fn no_quorum(&self, quorum: usize) -> Error {
        let too_many = self.nodes - quorum;
        if let Some(refusal) = self.refusals().nth(too_many) {
            return refusal.clone();
        }
        let undone = self.no + self.failures.iter().filter(|error| error.is_definite()).count();
        // The last refusal of a node explains more than a missing reply.
        let failure = self.failures.iter().max_by_key(|error| !error.is_silence());
        let error = Error::no_quorum(self.answered(), quorum, failure);
        if undone > too_many { error.made_definite() } else { error }
    }

    /// Returns the permanent refusals.
    fn refusals(&self) -> impl Iterator<Item = &Error> {
        self.failures.iter().filter(|error| error.is_final())
    }

    /// Returns true if more votes can still change the outcome: a quorum, no quorum, or too many
    /// permanent refusals.
    fn is_open(&self, quorum: usize) -> bool {
        let too_many = self.nodes - quorum;
        let missing = self.nodes - self.answered() - self.failures.len();
        let refused = self.refusals().count();
        let may_be_refused = 0 < refused && refused <= too_many && refused + missing > too_many;
        self.yes < quorum && (self.no + self.failures.len() <= too_many || may_be_refused)
    }

    fn add(&mut self, vote: Vote) {
        match vote {
            Vote::Yes => self.yes += 1,
            Vote::No => self.no += 1,
            Vote::Unknown(error) => self.failures.push(error),
        }
    }
}

/// Counts votes until more of them cannot change the outcome, or until `limit`.
async fn count(
    env: &dyn Env,
    votes: &mut mpsc::Receiver<Vote>,
    nodes: usize,
    quorum: usize,
    limit: Duration,
) -> Tally {
    let mut tally = Tally { nodes, ..Tally::default() };
    let counting = async {
        while tally.is_open(quorum) {
            let Some(vote) = votes.recv().await else { return };
            tally.add(vote);
        }
    };
    within(env, env.now() + limit, pin!(counting)).await;
    tally
}

/// Decides that the nodes are freed, at the latest when dropped, unless another fate was decided
/// before.
struct Release(Arc<Word>);

impl Drop for Release {
    fn drop(&mut self) {
        self.0.give(Fate::Freed);
    }
}

/// A request to all nodes. Dropping it frees them.
pub(super) struct Round {
    claim: Claim,
    /// The time before the first request was sent.
    pub(super) begun: Boottime,
    nodes: usize,
    votes: mpsc::Receiver<Vote>,
    release: Release,
    freed: mpsc::Receiver<Result<bool>>,
    again: Again,
}

/// For each node, sends the deadline until which the lock is to be set again. The task that set the
/// node first also sets it again. So it sends no such request after the release, and a request in
/// transit is freed by the release behind it.
type Again = Arc<[mpsc::Sender<Boottime>]>;

impl Round {
    /// Asks all nodes in parallel.
    pub(super) fn begin(nodes: &[Arc<Session>], lock: &Key, lease: Duration) -> Self {
        let env = &nodes[0].ctx.env;
        // 20 bytes, as the published algorithm proposes.
        let value = format!("{:016x}{:016x}{:08x}", env.random(), env.random(), env.random() >> 32);
        let claim = Claim { lock: lock.clone(), value, lease };
        let begun = env.boottime();
        let (vote, votes) = mpsc::channel(nodes.len());
        let (free, freed) = mpsc::channel(nodes.len());
        let release = Release(Arc::default());
        let ask = |node: &Arc<Session>| {
            let (again, told) = mpsc::channel(1);
            let asked =
                node::claim(node.clone(), claim.clone(), vote.clone(), release.0.clone(), free.clone(), told);
            node.ctx.env.spawn(Box::pin(asked));
            again
        };
        let again = nodes.iter().map(ask).collect();
        Self { claim, begun, nodes: nodes.len(), votes, release, freed, again }
    }

    pub(super) fn value(&self) -> &str {
        &self.claim.value
    }

    pub(super) async fn count(&mut self, env: &dyn Env, quorum: usize, limit: Duration) -> Tally {
        count(env, &mut self.votes, self.nodes, quorum, limit).await
    }

    /// Leaves the nodes as they are until the lease ends.
    fn leave(self) {
        self.release.0.give(Fate::Left);
    }

    /// Frees all nodes, including those that did not answer. Returns once a majority was freed, or
    /// cannot be freed any more.
    pub(super) async fn free(mut self, quorum: usize) -> Result<bool> {
        self.release.0.give(Fate::Freed);
        let (mut freed, mut failure) = (0, None);
        while freed < quorum {
            match self.freed.recv().await {
                Some(Ok(was_held)) => freed += usize::from(was_held),
                Some(Err(error)) if failure.is_some() && error.is_silence() => {}
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

/// A held Redlock: one value on the nodes, and its owner's levels.
///
/// The nodes store a random value and know no owners, so nesting is handled here.
pub(super) struct Held {
    nodes: Arc<[Arc<Session>]>,
    owner: Arc<OwnerState>,
    claim: Claim,
    word: Arc<Word>,
    again: Again,
    /// Taken by the last release.
    round: Mutex<Option<Round>>,
    quorum: usize,
    options: Options,
}

impl Held {
    pub(super) fn new(
        nodes: Arc<[Arc<Session>]>,
        owner: Arc<OwnerState>,
        round: Round,
        quorum: usize,
        options: Options,
    ) -> Arc<Self> {
        let (claim, again) = (round.claim.clone(), round.again.clone());
        let word = round.release.0.clone();
        Arc::new(Self { nodes, owner, claim, word, again, round: Mutex::new(Some(round)), quorum, options })
    }

    /// Returns what `owner` holds, as far as this client knows.
    pub(super) fn of(owner: &OwnerState) -> Option<Arc<Self>> {
        owner.holds().into_iter().filter(|hold| hold.is_valid()).find_map(|hold| {
            let keeper: Arc<dyn Any + Send + Sync> = hold.keeper()?;
            keeper.downcast().ok()
        })
    }

    pub(super) fn value(&self) -> &str {
        &self.claim.value
    }

    /// Returns the levels that are not released.
    pub(super) fn holds(&self) -> Vec<Arc<Hold>> {
        let mut holds = self.owner.holds();
        holds.retain(|hold| hold.owner == self.claim.value);
        holds
    }

    /// Makes a guard for a level that lasts until `deadline`.
    pub(super) fn level(self: Arc<Self>, deadline: Boottime, lease: Duration, renew: bool) -> Guard {
        let first = &self.nodes[0];
        let grant = Grant { deadline, lease, renewed: renew, token: None, parts: Parts::WHOLE };
        let keeper: Arc<dyn Keeper> = self.clone();
        let hold = Hold::granted(first.ctx.clone(), &self.owner, &self.claim.value, &keeper, grant);
        if renew {
            first.watchdog.watch(&hold, Renewal::Keeper);
        }
        Guard::new(hold, keeper, (), first.ctx.env.clone())
    }

    /// Extends the lock for one more level of the same owner: asks the nodes for `lease` from now,
    /// which never shortens a lease. Returns the new deadline.
    pub(super) async fn nest(&self, lease: Duration) -> Result<Boottime, Tally> {
        let (tally, deadline) = self.ask_for_more(lease).await;
        if self.is_gone(&tally) {
            for hold in self.holds() {
                hold.lose(LossCause::NoQuorum);
            }
        }
        if tally.yes < self.quorum || self.nodes[0].env().boottime() >= deadline {
            return Err(tally);
        }
        Ok(deadline)
    }

    /// Asks all nodes for `lease` from now. With a quorum the lock lasts until the returned
    /// deadline, and nodes that have lost it are set again for the rest of that time. Their votes
    /// count only from the next time on, because this answer shows that they had not kept the lock.
    async fn ask_for_more(&self, lease: Duration) -> (Tally, Boottime) {
        let env = self.nodes[0].env();
        let begun = env.boottime();
        let (vote, mut votes) = mpsc::channel(self.nodes.len());
        let ask = |(node, again): (&Arc<Session>, &mpsc::Sender<Boottime>)| {
            let (grant, granted) = oneshot::channel();
            let (claim, vote, again) = (self.claim.clone(), vote.clone(), again.clone());
            node.ctx.env.spawn(Box::pin(node::extend(node.clone(), claim, lease, vote, granted, again)));
            grant
        };
        let grants: Vec<_> = self.nodes.iter().zip(self.again.iter()).map(ask).collect();
        drop(vote);
        let tally = count(env, &mut votes, self.nodes.len(), self.quorum, self.options.node_timeout).await;
        let deadline = begun + lease.saturating_sub(self.options.drift(lease));
        if tally.yes >= self.quorum {
            for grant in grants {
                // Only nodes that have lost the lock use it.
                let _ = grant.send(deadline);
            }
        }
        (tally, deadline)
    }

    /// Returns true if too many nodes have lost the value for a majority.
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
            hold.lose(LossCause::NoQuorum);
            return Err(not_held(hold));
        }
        Err(tally.no_quorum(self.quorum))
    }
}

impl Held {
    /// Releases one level. After the last one, returns the round whose nodes must be freed.
    async fn leave(&self, hold: &Hold) -> Option<Round> {
        let _serial = self.owner.serial.lock().await;
        self.owner.remove(hold.number);
        if self.holds().is_empty() { locked(&self.round).take() } else { None }
    }
}

impl Keeper for Held {
    fn release(self: Arc<Self>, hold: Arc<Hold>) -> BoxFuture<'static, Result<()>> {
        self.nodes[0].watchdog.forget(&hold);
        Box::pin(async move {
            let done = match self.leave(&hold).await {
                Some(round) => round.free(self.quorum).await,
                // Other levels are still held; only this client knows of the released one.
                None => Ok(hold.why_lost().is_none()),
            };
            let done = done.and_then(|was_held| if was_held { Ok(()) } else { Err(not_held(&hold)) });
            hold.released(done.as_ref().err());
            done
        })
    }

    fn overdue(&self, time: Duration) -> Error {
        self.word.trouble.overdue(time)
    }

    fn forget(self: Arc<Self>, hold: Arc<Hold>) -> Option<BoxFuture<'static, ()>> {
        self.nodes[0].watchdog.forget(&hold);
        Some(Box::pin(async move {
            if let Some(round) = self.leave(&hold).await {
                round.leave();
            }
        }))
    }

    fn extend(self: Arc<Self>, hold: Arc<Hold>, lease: Duration) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move { self.extend_once(&hold, lease).await })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    const NODES: usize = 5;
    const QUORUM: usize = 3;

    /// The possible answers of a node. `Refused` is permanent, `Down` is transient, and after
    /// `Lost` the request may have been executed.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Said {
        Yes,
        No,
        Refused,
        Down,
        Lost,
    }

    use Said::{Down, Lost, No, Refused, Yes};

    fn vote(said: Said) -> Vote {
        let server = |code: &str| {
            let (code, message) = (code.to_owned(), "says the server".to_owned());
            Error::definite(ErrorKind::Server { code, message })
        };
        match said {
            Yes => Vote::Yes,
            No => Vote::No,
            Refused => Vote::Unknown(server("WRONGPASS")),
            Down => Vote::Unknown(server("LOADING")),
            Lost => Vote::Unknown(Error::shutdown()),
        }
    }

    /// Counts votes that come in this order. Returns the tally and the number of votes used.
    fn counted(votes: [Said; NODES]) -> (Tally, usize) {
        let mut tally = Tally { nodes: NODES, ..Tally::default() };
        let mut used = 0;
        while used < NODES && tally.is_open(QUORUM) {
            tally.add(vote(votes[used]));
            used += 1;
        }
        (tally, used)
    }

    /// Returns all sequences of answers of five nodes.
    fn every_order() -> impl Iterator<Item = [Said; NODES]> {
        let all = [Yes, No, Refused, Down, Lost];
        (0..all.len().pow(5)).map(move |number| {
            std::array::from_fn(|node| all[number / all.len().pow(node as u32) % all.len()])
        })
    }

    #[test]
    fn the_order_of_votes_changes_neither_who_is_granted_nor_what_is_refused_for_good() {
        for votes in every_order() {
            let how_many = |said| votes.iter().filter(|&&one| one == said).count();
            let (tally, _) = counted(votes);
            assert!(!tally.is_open(QUORUM), "{votes:?}");
            assert_eq!(tally.yes >= QUORUM, how_many(Yes) >= QUORUM, "{votes:?}");
            if tally.yes < QUORUM {
                let error = tally.no_quorum(QUORUM);
                // Two nodes that refuse leave three, which are a quorum.
                assert_eq!(error.is_final(), how_many(Refused) > 2, "{votes:?}: {error}");
                // A definite error must hold whatever the nodes that were not counted have done.
                let may_be_held = how_many(Yes) + how_many(Lost);
                assert!(!error.is_definite() || may_be_held < QUORUM, "{votes:?}: {error}");
            }
        }
    }

    /// Regression: a missing reply hid the refusal of another node.
    #[test]
    fn a_refusal_explains_more_than_a_missing_reply() {
        let lost = || Vote::Unknown(Error::indefinite(ErrorKind::Disconnected("reset".into())));
        for refused_first in [true, false] {
            let mut tally = Tally { nodes: NODES, ..Tally::default() };
            let (first, then) = if refused_first { (vote(Down), lost()) } else { (lost(), vote(Down)) };
            [Vote::No, first, then].into_iter().for_each(|vote| tally.add(vote));
            let error = tally.no_quorum(QUORUM).to_string();
            assert!(error.contains("LOADING"), "{error}");
        }
    }

    /// Do not wait for slow nodes once their votes cannot change the outcome.
    #[test]
    fn votes_are_counted_until_they_change_nothing() {
        for (votes, used) in [
            ([Yes, Yes, Yes, No, No], 3),
            ([Yes, No, Yes, No, Yes], 5),
            ([No, No, No, Yes, Yes], 3),
            ([Lost, Down, No, Yes, Yes], 3),
            // While the other nodes may still refuse as well, their votes matter for the error.
            ([No, No, Refused, Refused, Refused], 5),
            ([Refused, Refused, Refused, Yes, Yes], 3),
            ([Refused, No, No, No, Yes], 4),
        ] {
            assert_eq!(counted(votes).1, used, "{votes:?}");
        }
    }
}
