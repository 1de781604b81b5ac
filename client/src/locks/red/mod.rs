//! RedLock as published ("Distributed Locks with Redis", redis.io): one lock on N independent servers, held by whoever
//! has a majority of them.
//!
//! The validity is what is left of the lease when the majority has answered, less an allowance for clocks that run at
//! different rates. It is measured by the clock that goes on during suspend.

mod node;
mod options;
mod round;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use redis::Value;
use tokio::sync::oneshot;

use crate::acquire::Patience;
use crate::client::Client;
use crate::config::check_lease;
use crate::env::{Monotonic, draw, pause, within};
use crate::error::{Error, ErrorKind, Result};
use crate::guard::Guard;
use crate::hold::OwnerState;
use crate::key::Key;
use crate::lock::{Acquire, Obtain, Terms, TryAcquire, Wanted, check_name};
use crate::observer::{LostReason, What};
use crate::owner::OwnerId;
use crate::progress::Progress;
use crate::session::Session;
use crate::task::answer_of;
use options::Options;
use round::{Held, Round, Tally};

/// A lock on several independent servers. Cheap to clone; holds nothing by itself.
///
/// On the nodes stands a random value, a new one for each grant. Acquisitions of one [owner](Acquire::owner) nest: the
/// inner ones extend what the outermost was granted, by a majority as ever, and the last release frees the nodes. Nesting
/// is known to the first client alone, as no other can have that owner.
#[derive(Clone)]
pub struct RedLock {
    nodes: Arc<[Arc<Session>]>,
    key: Key,
    options: Options,
}

/// A RedLock over `clients`, one for each independent server: see [`RedLock::new`].
///
/// # Errors
/// As [`RedLock::new`].
pub fn red_lock(clients: impl IntoIterator<Item = Client>, name: &str) -> Result<RedLock> {
    RedLock::new(clients, name)
}

impl RedLock {
    /// A lock called `name` on the servers of `clients`, which must be independent masters, best five. Clocks, random
    /// numbers, tasks and the observer are those of the first client.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> lockstorm_client::Result<()> {
    /// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
    /// # let url = server.url();
    /// use lockstorm_client::{Client, RedLock};
    /// let mut clients = Vec::new();
    /// # let second = lockstorm_sim::TestServer::start().await.expect("a free port");
    /// # let third = lockstorm_sim::TestServer::start().await.expect("a free port");
    /// # let urls = [url, second.url(), third.url()];
    /// for url in urls {
    ///     // Connects when it is used, so that a server may be down.
    ///     clients.push(Client::builder().endpoint(url).build()?);
    /// }
    /// let lock = RedLock::new(clients, "stock")?;
    /// let guard = lock.acquire().lease(Duration::from_secs(10)).await?;
    /// println!("held for {:?} more", guard.validity());
    /// guard.release().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// When there are no clients, two of them lead to the same server, or the name is empty.
    pub fn new(clients: impl IntoIterator<Item = Client>, name: &str) -> Result<Self> {
        let nodes: Arc<[Arc<Session>]> = clients.into_iter().map(|client| client.session).collect();
        let Some(first) = nodes.first() else { return Err(Error::config("a RedLock needs servers")) };
        let key = first.key(name);
        check_name(name, &key)?;
        check_independence(&nodes)?;
        Ok(Self { nodes, key, options: Options::default() })
    }

    /// How long to wait for each server, all of which are asked at once; small against the lease. Default 50 ms.
    pub fn node_timeout(mut self, timeout: Duration) -> Self {
        self.options.node_timeout = timeout;
        self
    }

    /// The allowance for clocks that run at different rates, in millionths of the lease, to which 2 ms are added.
    /// Default 10 000: 1 %.
    pub fn drift_ppm(mut self, ppm: u32) -> Self {
        self.options.drift_ppm = ppm;
        self
    }

    /// The longest pause between attempts, which is drawn from nothing to this. Default 200 ms.
    pub fn retry_delay(mut self, most: Duration) -> Self {
        self.options.retry_delay = most;
        self
    }

    /// How many attempts a waiting acquisition makes. Default as many as its time allows.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.options.attempts = Some(attempts);
        self
    }

    /// How many servers make a majority.
    pub fn quorum(&self) -> usize {
        self.nodes.len() / 2 + 1
    }

    /// Waits until the lock is granted. Without a lease it has the first client's watchdog time-out, and is extended
    /// every third of it until release.
    ///
    /// # Errors
    /// [`ErrorKind::NoQuorum`] when too few servers answer, for all attempts that the first client's configuration
    /// allows in a row.
    pub fn acquire(&self) -> Acquire {
        Acquire(self.wanted(Patience::Forever))
    }

    /// Makes one attempt.
    ///
    /// # Errors
    /// [`ErrorKind::NoQuorum`] when too few servers answer to know whether the lock is free.
    pub fn try_acquire(&self) -> TryAcquire {
        TryAcquire(self.wanted(Patience::Once))
    }

    /// Makes attempts for at most `wait`; `None` when somebody else has it.
    ///
    /// # Errors
    /// As [`RedLock::acquire`].
    pub fn try_acquire_for(&self, wait: Duration) -> TryAcquire {
        TryAcquire(self.wanted(Patience::For(wait)))
    }

    fn wanted(&self, patience: Patience) -> Wanted {
        Wanted::new(Arc::new(self.clone()), patience)
    }

    /// Whether a majority of the servers is taken by one and the same holder.
    ///
    /// # Errors
    /// When too few servers answer to know.
    pub async fn is_locked(&self) -> Result<bool> {
        let values = self.ask_all(redis::cmd("GET").arg(&*self.key)).await?;
        Ok(values.iter().any(|value| {
            !matches!(value, Value::Nil)
                && values.iter().filter(|other| *other == value).count() >= self.quorum()
        }))
    }

    /// How many levels `owner`, an owner of the first client, holds; zero when no majority of the servers has it.
    ///
    /// # Errors
    /// When too few servers answer to know.
    pub async fn hold_count(&self, owner: OwnerId) -> Result<u64> {
        let Some(held) = Held::of(&self.owner(Some(owner))) else { return Ok(0) };
        let values = self.ask_all(redis::cmd("GET").arg(&*self.key)).await?;
        let ours = Value::BulkString(held.value().as_bytes().to_vec());
        let has_it = values.iter().filter(|value| **value == ours).count() >= self.quorum();
        Ok(if has_it { held.holds().len() as u64 } else { 0 })
    }

    /// How long a majority of the servers is taken for, by their clocks; `None` when it is not.
    ///
    /// # Errors
    /// When too few servers answer to know.
    pub async fn remaining(&self) -> Result<Option<Duration>> {
        let replies = self.ask_all(redis::cmd("PTTL").arg(&*self.key)).await?;
        let mut left: Vec<i64> = replies
            .iter()
            .filter_map(|reply| if let Value::Int(left) = reply { Some(*left) } else { None })
            .collect();
        left.sort_unstable_by(|a, b| b.cmp(a));
        Ok(left.get(self.quorum() - 1).and_then(|&left| crate::protocol::remaining(left)))
    }

    /// Frees every server, whoever holds it; true when any was taken. Holds of the first client are lost at once, those of
    /// others learn of it at their next extension.
    ///
    /// # Errors
    /// When fewer than a majority of the servers answer.
    pub async fn force_release(&self) -> Result<bool> {
        self.first().ctx.ledger.lose_all(&self.key, LostReason::NotHeld);
        let replies = self.ask_all(redis::cmd("DEL").arg(&*self.key)).await?;
        Ok(replies.contains(&Value::Int(1)))
    }

    /// The lock's key on each server.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The replies of those servers that answer, when they are a majority.
    async fn ask_all(&self, command: &redis::Cmd) -> Result<Vec<Value>> {
        let env = self.first().env();
        let limit = env.now() + self.options.node_timeout;
        let asked =
            self.nodes.iter().map(|node| within(env, limit, node.router.ask_once(self.key.slot(), command)));
        let (mut replies, mut reason) = (Vec::new(), String::new());
        for reply in futures_util::future::join_all(asked).await {
            match reply {
                Some(Ok(reply)) => replies.push(reply),
                // Taken all the same, by a lock of another kind, such as Redisson's RedLock, which is a hash.
                Some(Err(error)) if error.is_server("WRONGTYPE") => replies.push(Value::Boolean(true)),
                Some(Err(error)) => reason = error.to_string(),
                None => "no answer in time".clone_into(&mut reason),
            }
        }
        if replies.len() < self.quorum() {
            let (answered, quorum) = (replies.len(), self.quorum());
            return Err(Error::indefinite(ErrorKind::NoQuorum { answered, quorum, reason }));
        }
        Ok(replies)
    }

    fn first(&self) -> &Arc<Session> {
        &self.nodes[0]
    }

    /// What this client knows of `owner`; without one, of an owner that no other request has.
    fn owner(&self, owner: Option<OwnerId>) -> Arc<OwnerState> {
        let first = self.first();
        match owner {
            Some(owner) => first.ctx.ledger.owner(&self.key, &first.field(owner)),
            None => first.ctx.ledger.anonymous(&self.key),
        }
    }

    async fn run(self, terms: Terms, begun: Monotonic, progress: Arc<Progress>, answer: Answer) {
        let Terms { owner, lease, patience } = terms;
        let mut answer = answer;
        let env = self.first().ctx.env.clone();
        let owner = self.owner(owner);
        let end = match patience {
            Patience::For(wait) => Some(begun + wait),
            Patience::Once | Patience::Forever => None,
        };
        let work = &self.first().ctx.work;
        let _under_way = work.begin();
        let mut attempts = 0;
        let mut unanswered = 0;
        let outcome = loop {
            if answer.is_closed() {
                return;
            }
            if work.is_closing() {
                break Err(Error::definite(ErrorKind::Shutdown));
            }
            progress.asking(env.now());
            let tally = match self.attempt(&owner, lease).await {
                Ok(guard) => break Ok(Some(guard)),
                Err(tally) => tally,
            };
            let undecided = (tally.answered() < self.quorum()).then(|| tally.no_quorum(self.quorum()));
            match &undecided {
                Some(error) => progress.failed(error),
                None => progress.refused(),
            }
            attempts += 1;
            unanswered = if undecided.is_some() { unanswered + 1 } else { 0 };
            let last = patience == Patience::Once
                || self.options.attempts.is_some_and(|most| attempts >= most)
                || unanswered > self.first().config.retry_attempts
                || end.is_some_and(|end| env.now() >= end);
            if last {
                break undecided.map_or(Ok(None), Err);
            }
            let most = u64::try_from(self.options.retry_delay.as_micros()).unwrap_or(u64::MAX);
            let delay = Duration::from_micros(draw(&*env, most));
            tokio::select! {
                biased;
                () = answer.closed() => return,
                () = work.closing() => {}
                () = pause(&*env, delay) => {}
            }
        };
        // A guard that nobody receives is dropped and thereby released.
        drop(answer.send(outcome));
    }

    /// One attempt on all nodes. On failure all are freed again, in the background.
    async fn attempt(&self, owner: &Arc<OwnerState>, lease: Option<Duration>) -> Result<Guard, Tally> {
        let session = self.first();
        let actual = lease.unwrap_or(session.config.watchdog_timeout);
        let _serial = owner.serial.lock().await;
        if let Some(held) = Held::of(owner) {
            session.ctx.emit(&self.key, held.value(), What::Attempt);
            match held.clone().nest(actual, lease.is_none()).await {
                // Lost without a word: the owner asks anew, as one who has nothing.
                Err(tally) if held.is_gone(&tally) => {}
                done => return done,
            }
        }
        let mut round = Round::begin(&self.nodes, &self.key, actual);
        session.ctx.emit(&self.key, round.value(), What::Attempt);
        let tally = round.count(session.env(), self.quorum(), self.options.node_timeout).await;
        let deadline = round.begun + actual.saturating_sub(self.options.drift(actual));
        // The second look at the clock: replies that were long under way leave nothing of the lease.
        if tally.yes < self.quorum() || session.env().boottime() >= deadline {
            return Err(tally);
        }
        let held = Held::new(self.nodes.clone(), owner.clone(), round, self.quorum(), self.options);
        Ok(held.level(deadline, actual, lease.is_none()))
    }
}

type Answer = oneshot::Sender<Result<Option<Guard>>>;

impl Obtain for RedLock {
    fn obtain(self: Arc<Self>, terms: Terms) -> BoxFuture<'static, Result<Option<Guard>>> {
        Box::pin(async move {
            if let Some(lease) = terms.lease {
                check_lease("lease", lease)?;
            }
            let (env, patience) = (self.first().ctx.env.clone(), self.first().config.call_timeout);
            let begun = env.now();
            let wait = match terms.patience {
                Patience::For(wait) if !wait.is_zero() => Some(wait),
                _ => None,
            };
            let progress = Arc::new(Progress::new(begun));
            let (lock, seen) = (self.as_ref().clone(), progress.clone());
            let answered = answer_of(&*env, |answer| lock.run(terms, begun, progress, answer));
            seen.outcome(&*env, begun, wait, patience, answered).await
        })
    }
}

/// A server that votes twice makes a majority of less than one.
fn check_independence(nodes: &[Arc<Session>]) -> Result<()> {
    for (at, node) in nodes.iter().enumerate() {
        for endpoint in &node.config.endpoints {
            let others = nodes[..at].iter().flat_map(|other| &other.config.endpoints);
            if others.into_iter().any(|other| other.is_same_place(endpoint)) {
                let what = format!("two of the servers of a RedLock are {endpoint}, and must be independent");
                return Err(Error::config(what));
            }
        }
    }
    Ok(())
}

impl std::fmt::Debug for RedLock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedLock")
            .field("key", &self.key)
            .field("nodes", &self.nodes.len())
            .finish_non_exhaustive()
    }
}
