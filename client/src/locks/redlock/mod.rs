//! Redlock as published ("Distributed Locks with Redis", redis.io): one lock on N independent
//! servers, held by the owner that has a majority of them.
//!
//! The validity is the rest of the lease when the majority has answered, less an allowance for
//! clocks of different rates. It is measured by the clock that continues during suspend.

mod options;
mod word;
mod node;
mod round;

use std::sync::Arc;
use std::time::Duration;

use redis::Value;

use crate::acquire_options::AcquireOptions;
use crate::attempt::{Answer, Sleep, remaining};
use crate::client::Client;
use crate::config::Redirects;
use crate::env::{draw, within};
use crate::error::{Error, Result};
use crate::guard::Guard;
use crate::hold::{OwnerState, Parts};
use crate::key::Key;
use crate::limits::LEASE;
use crate::lock::{Handle, Sessions, check_name, debug_key, sealed};
use crate::observer::{EventKind, LossCause};
use crate::owner::OwnerId;
use crate::session::Session;
use crate::wait::{Caller, WaitLimit, Wanted, wait};
use options::Options;
use round::{Held, Round, Tally};

/// The handle of a lock on several independent servers.
///
/// The nodes store a random value, a new one for each grant. Acquisitions of one
/// [owner](crate::Acquire::owner) nest: an inner one extends the outermost grant, again on a
/// majority, and the last release frees the nodes. Only the first client knows the levels; no other
/// client can have the same owner.
///
/// # Servers that forget
///
/// A server that restarts without its data has lost its vote. When a majority grants a renewal or
/// extension, the lock is set again, for the rest of the lease, on servers where no owner has it.
/// Such a vote counts from the next renewal on. So servers without a disk can be restarted one
/// after another while a lock is held, if
///
/// * each is away for longer than the longest lease in use, so that every grant that it has
///   forgotten has ended, and
/// * it is back for longer than two thirds of the lease and the
///   [timeout](RedlockBuilder::node_timeout) before the next one goes, so that a renewal comes in
///   between. The first renewal may only find that the connection has ended.
///
/// A server that is back earlier may vote for a second owner while its first vote still counts. If
/// the first owner has a bare majority, or if before its next renewal as many servers restart as
/// make another majority, both owners hold the lock for the rest of a lease.
pub type Redlock = Handle<OnMajority>;

/// A lock on a majority of independent servers.
#[derive(Clone)]
pub struct OnMajority {
    nodes: Arc<[Arc<Session>]>,
    key: Key,
    options: Options,
}

/// Collects the options of a [`Redlock`], such as the time for each node.
#[must_use = "a builder does nothing until build"]
pub struct RedlockBuilder {
    clients: Vec<Client>,
    options: Options,
}

impl Redlock {
    /// Returns a builder for a lock on the servers of `clients`, which must be independent masters,
    /// ideally five. Clocks, random numbers, tasks and the observer are those of the first client.
    /// Replicas and disks never confirm grants, even if the clients have a
    /// [`replica_wait`](crate::Builder::replica_wait) or a
    /// [`durability`](crate::Builder::durability): a replica that replaces a server and lacks the
    /// grant votes again. For the same reason no client may
    /// [follow redirections](crate::Builder::redirects): two of them could come to the same master.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> lockstorm_client::Result<()> {
    /// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
    /// # let url = server.url();
    /// use lockstorm_client::{Client, Redlock};
    /// let mut clients = Vec::new();
    /// # let second = lockstorm_sim::TestServer::start().await.expect("a free port");
    /// # let third = lockstorm_sim::TestServer::start().await.expect("a free port");
    /// # let urls = [url, second.url(), third.url()];
    /// for url in urls {
    ///     // Connects when it is used, so that a server may be down.
    ///     clients.push(Client::builder().endpoint(url).build()?);
    /// }
    /// let lock = Redlock::builder(clients).build("stock")?;
    /// let guard = lock.acquire().lease(Duration::from_secs(10)).await?;
    /// println!("held for {:?} more", guard.validity());
    /// guard.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn builder(clients: impl IntoIterator<Item = Client>) -> RedlockBuilder {
        RedlockBuilder { clients: clients.into_iter().collect(), options: Options::default() }
    }

    /// Returns the number of servers that make a majority.
    pub fn quorum(&self) -> usize {
        self.0.quorum()
    }
}

impl RedlockBuilder {
    /// Sets the time to wait for each server; all are asked in parallel. It should be small against
    /// the lease. Default 50 ms.
    pub fn node_timeout(mut self, timeout: Duration) -> Self {
        self.options.node_timeout = timeout;
        self
    }

    /// Sets the allowance for clocks of different rates, in millionths of the lease. In addition 2
    /// ms are always allowed. Default 10 000: 1 %.
    pub fn drift_ppm(mut self, ppm: u32) -> Self {
        self.options.drift_ppm = ppm;
        self
    }

    /// Sets the maximum pause between attempts; each pause is drawn from zero to this. Default 200
    /// ms.
    pub fn retry_delay(mut self, most: Duration) -> Self {
        self.options.retry_delay = most;
        self
    }

    /// Sets the number of attempts of a waiting acquisition. Default: as many as its time allows.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.options.attempts = Some(attempts);
        self
    }

    /// Builds the lock called `name`.
    ///
    /// # Errors
    /// When the builder has no clients, two of them use the same server, one follows redirections,
    /// or the name is empty.
    pub fn build(self, name: &str) -> Result<Redlock> {
        let nodes: Arc<[Arc<Session>]> = self.clients.into_iter().map(|client| client.session).collect();
        let Some(first) = nodes.first() else { return Err(Error::config("a Redlock needs servers")) };
        let key = first.key(name);
        check_name(name, &key)?;
        check_independence(&nodes)?;
        if nodes.iter().any(|node| node.config.redirects != Redirects::Never) {
            return Err(Error::config(
                "the servers of a Redlock must stay independent, and a client that follows redirections may come to another one",
            ));
        }
        Ok(Handle(OnMajority { nodes, key, options: self.options }))
    }
}

impl OnMajority {
    fn quorum(&self) -> usize {
        self.nodes.len() / 2 + 1
    }

    /// Returns the replies of the servers that answer; an error if they are no majority. Its reason
    /// is the most telling error of the others: a permanent refusal, then any that is not a lost
    /// reply.
    async fn ask_all(&self, command: &redis::Cmd) -> Result<Vec<Value>> {
        let env = self.first().env();
        let limit = env.now() + self.options.node_timeout;
        let asked = self
            .nodes
            .iter()
            .map(|node| within(env, limit, Box::pin(node.router.ask_once(self.key.slot(), command))));
        let (mut replies, mut failures) = (Vec::new(), Vec::new());
        for reply in futures_util::future::join_all(asked).await {
            match reply {
                Some(Ok(reply)) => replies.push(reply),
                // The key is taken by a lock of another kind. For example Redisson's RedLock is a
                // hash.
                Some(Err(error)) if error.is_server("WRONGTYPE") => replies.push(Value::Boolean(true)),
                Some(Err(error)) => failures.push(error),
                None => {}
            }
        }
        if replies.len() < self.quorum() {
            let failure = failures.into_iter().max_by_key(|error| (error.is_final(), !error.is_silence()));
            return Err(Error::no_quorum(replies.len(), self.quorum(), failure.as_ref()));
        }
        Ok(replies)
    }

    fn first(&self) -> &Arc<Session> {
        &self.nodes[0]
    }

    /// Returns the state of `owner`; if `None`, of a new owner that no other request shares.
    fn owner(&self, owner: Option<OwnerId>) -> Arc<OwnerState> {
        let first = self.first();
        let Some(owner) = owner else { return first.ctx.ledger.anonymous(&self.key) };
        // The name differs from that of the same owner at a lock on one master, and at a Redlock
        // over other masters, because their levels are counted and renewed separately. It cannot be
        // an owner's field, which ends with its number.
        let masters: Vec<_> = self.nodes.iter().flat_map(|node| node.config.deployment()).collect();
        let name = format!("{} (Redlock over {})", first.field(owner), masters.join(" "));
        first.ctx.ledger.owner(&self.key, &name)
    }

    /// Attempts once on all nodes, in `owner`'s turn. On failure all nodes are freed in the
    /// background. Returns `None` if the caller is gone; the grant was then undone here, because
    /// the owner's next request must not count that level.
    async fn attempt(
        &self,
        owner: &Arc<OwnerState>,
        lease: Option<Duration>,
        caller: &Caller<Guard>,
    ) -> Result<Option<Guard>, Tally> {
        let session = self.first();
        let actual = lease.unwrap_or(session.config.watchdog_timeout);
        caller.progress.sent();
        if let Some(held) = Held::of(owner) {
            session.ctx.emit(&self.key, held.value(), EventKind::Attempt);
            match held.nest(actual).await {
                // The hold was lost without a message: acquire as an owner that holds nothing.
                Err(tally) if held.is_gone(&tally) => {}
                Err(tally) => return Err(tally),
                // The nodes do not know levels, so nothing needs to be undone.
                Ok(_) if caller.is_gone() => return Ok(None),
                Ok(deadline) => return Ok(Some(held.level(deadline, actual, lease.is_none()))),
            }
        }
        let mut round = Round::begin(&self.nodes, &self.key, actual);
        session.ctx.emit(&self.key, round.value(), EventKind::Attempt);
        let tally = round.count(session.env(), self.quorum(), self.options.node_timeout).await;
        let deadline = round.begun + actual.saturating_sub(self.options.drift(actual));
        // Check the clock again: slow replies may leave nothing of the lease.
        if tally.yes < self.quorum() || session.env().boottime() >= deadline {
            return Err(tally);
        }
        if caller.is_gone() {
            // On nodes that cannot be freed now the value expires with its lease.
            let _ = round.free(self.quorum()).await;
            return Ok(None);
        }
        let held = Held::new(self.nodes.clone(), owner.clone(), round, self.quorum(), self.options);
        Ok(Some(held.level(deadline, actual, lease.is_none())))
    }
}

impl std::fmt::Debug for OnMajority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        debug_key(f, &self.key)
    }
}

impl sealed::Acquirable for OnMajority {
    type Guard = Guard;

    async fn acquire(self, options: AcquireOptions) -> Result<Option<Guard>> {
        let AcquireOptions { owner, lease, limit } = options;
        if let Some(lease) = lease {
            LEASE.check(lease)?;
        }
        let (first, owner) = (self.first().clone(), self.owner(owner));
        let attempts_left = self.options.attempts;
        wait(&first, limit, Majority { lock: self, owner, lease, limit, attempts_left, is_unclear: false })
            .await
    }
}

impl sealed::Single for OnMajority {
    type Got = ();

    fn key(&self) -> &str {
        &self.key
    }

    fn sessions(&self) -> Sessions<'_> {
        Sessions(&self.nodes)
    }

    async fn is_locked(&self) -> Result<bool> {
        let values = self.ask_all(redis::cmd("GET").arg(&*self.key)).await?;
        Ok(values.iter().any(|value| {
            !matches!(value, Value::Nil)
                && values.iter().filter(|other| *other == value).count() >= self.quorum()
        }))
    }

    async fn hold_count(&self, owner: OwnerId) -> Result<u64> {
        let Some(held) = Held::of(&self.owner(Some(owner))) else { return Ok(0) };
        let values = self.ask_all(redis::cmd("GET").arg(&*self.key)).await?;
        let ours = Value::BulkString(held.value().as_bytes().to_vec());
        let has_it = values.iter().filter(|value| **value == ours).count() >= self.quorum();
        Ok(if has_it { held.holds().len() as u64 } else { 0 })
    }

    async fn remaining(&self) -> Result<Option<Duration>> {
        let replies = self.ask_all(redis::cmd("PTTL").arg(&*self.key)).await?;
        let mut left: Vec<i64> = replies
            .iter()
            .filter_map(|reply| if let Value::Int(left) = reply { Some(*left) } else { None })
            .collect();
        left.sort_unstable_by(|a, b| b.cmp(a));
        Ok(left.get(self.quorum() - 1).and_then(|&left| remaining(left)))
    }

    async fn force_release(&self) -> Result<bool> {
        self.first().ctx.ledger.lose_all(&self.key, &Parts::WHOLE, LossCause::NotHeld);
        let replies = self.ask_all(redis::cmd("DEL").arg(&*self.key)).await?;
        Ok(replies.contains(&Value::Int(1)))
    }
}

/// The acquisition of one owner.
struct Majority {
    lock: OnMajority,
    owner: Arc<OwnerState>,
    lease: Option<Duration>,
    limit: WaitLimit,
    /// `None`: as many as the time allows.
    attempts_left: Option<u32>,
    /// Set if nodes may still execute the request of an earlier attempt.
    is_unclear: bool,
}

impl Majority {
    fn delay(&self) -> Duration {
        let most = u64::try_from(self.lock.options.retry_delay.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(draw(self.lock.first().env(), most))
    }
}

impl Wanted for Majority {
    type Got = Guard;

    async fn ask(&mut self, caller: &mut Caller<Guard>) -> Result<Answer<Guard>> {
        self.attempts_left = self.attempts_left.map(|left| left.saturating_sub(1));
        let (quorum, owner) = (self.lock.quorum(), self.owner.clone());
        let _serial = caller.unless_given_up(owner.serial.lock()).await?;
        match self.lock.attempt(&owner, self.lease, caller).await {
            Ok(Some(guard)) => Ok(Answer::Got(guard)),
            Ok(None) => Ok(Answer::Busy(Sleep::Unknown)),
            Err(tally) if tally.answered() < quorum => {
                let error = tally.no_quorum(quorum);
                self.is_unclear |= !error.is_definite();
                Err(if self.is_unclear { error.made_indefinite() } else { error })
            }
            Err(_) => Ok(Answer::Busy(Sleep::Unknown)),
        }
    }

    fn sleep(&mut self, _busy: Sleep) -> Duration {
        self.delay()
    }

    fn repeat_delay(&self, repeats: u32) -> Option<Duration> {
        let repeated = self.limit != WaitLimit::NoWait && self.lock.first().config.may_repeat(repeats);
        repeated.then(|| self.delay())
    }

    fn is_exhausted(&self) -> bool {
        self.attempts_left == Some(0)
    }
}

/// Refuses a server that is listed twice: with two votes, fewer servers than a majority could
/// decide.
fn check_independence(nodes: &[Arc<Session>]) -> Result<()> {
    for (at, node) in nodes.iter().enumerate() {
        for endpoint in node.config.deployment() {
            let mut others = nodes[..at].iter().flat_map(|other| other.config.deployment());
            if others.any(|other| other == endpoint) {
                let what = format!("two of the servers of a Redlock are {endpoint}, and must be independent");
                return Err(Error::config(what));
            }
        }
    }
    Ok(())
}
