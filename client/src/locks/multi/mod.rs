//! The multi lock, Redisson's `getMultiLock(locks)`: several locks of any kinds, of one or more
//! clients, all or none.
//!
//! The locks are requested one after another in the order of their keys, not in the order in which
//! they were added. So two multi locks of this crate never wait for each other in a circle. Other
//! clients, Redisson's among them, may use another order. Therefore no lock is waited for
//! indefinitely while another is held: after [`PATIENCE`] at most all are released. The next round
//! begins with the lock that was not granted, and waits for it while nothing is held.
//!
//! Each member is acquired, renewed, lost and released as if it were alone, and its server knows
//! nothing about the others. The caller's own future does the work. Dropping it cancels the request
//! under way and drops the guards, so everything is released.

mod guard;
mod member;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use crate::acquire_options::AcquireOptions;
use crate::env::{Boottime, Env, Monotonic, draw, pause, within};
use crate::error::{Error, Result};
use crate::limits::LEASE;
use crate::lock::{Handle, Object, sealed};
use crate::owner::OwnerId;
use crate::wait::WaitLimit;
pub use guard::{HeldMember, MultiGuard};
use member::{Member, Part};

/// The longest wait for one lock while another is held. Half of it is drawn, so that two callers
/// that block each other do not give up at the same moment.
const PATIENCE: Duration = Duration::from_secs(1);

/// The maximum of the pause between two rounds, which is drawn.
const PAUSE: Duration = Duration::from_millis(20);

/// The handle of several locks that are held all together or not at all.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> lockstorm_client::Result<()> {
/// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
/// # let other = lockstorm_sim::TestServer::start().await.expect("a free port");
/// # let (here, there) = (server.url(), other.url());
/// use lockstorm_client::{Client, MultiLock};
/// let (here, there) = (Client::connect(&here).await?, Client::connect(&there).await?);
/// let both = MultiLock::builder()
///     .member(&here.lock("stock"))
///     .member(&there.fenced_lock("cash"))
///     .build()?;
/// let guard = both.acquire().await?;
/// guard.release().await?;
/// # Ok(()) }
/// ```
///
/// # Acquisition
///
/// If no [lease](crate::Acquire::lease) is set, the watchdogs of the clients renew the locks. A
/// lease runs from the moment at which all locks are held: if the first grants are much older, they
/// are extended. If no [owner](crate::Acquire::owner) is set, one new owner is used for all
/// members.
///
/// A time limit applies to all locks in total. If another owner has one of them then, the others
/// are released; grants and requests that exist when the time runs out, in the background. A lock
/// whose release failed ends with its lease.
///
/// ```
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> lockstorm_client::Result<()> {
/// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
/// # let url = server.url();
/// # let client = lockstorm_client::Client::connect(&url).await?;
/// use lockstorm_client::MultiLock;
/// let (stock, cash) = (client.lock("stock"), client.lock("cash"));
/// let other = cash.acquire().await?;
/// let both = MultiLock::builder().member(&stock).member(&cash).build()?;
/// assert!(both.try_acquire_for(Duration::from_millis(100)).await?.is_none());
/// other.release().await?;
/// let guard = both.try_acquire_for(Duration::from_millis(100)).await?.expect("both are free");
/// guard.release().await?;
/// # Ok(()) }
/// ```
///
/// An acquisition has the errors of any member, as for [`Handle::acquire`]; the locks that the
/// others had granted are released. The error is [definite](Error::is_definite) if certainly
/// nothing is held.
///
/// The users of the clients need the rights that each of the locks needs, and no others. Waiting is
/// not fair: when all locks are released, the place in the queue of a
/// [fair](crate::Client::fair_lock) member is lost.
pub type MultiLock = Handle<OnAll>;

/// Several locks that are held all together or not at all.
#[derive(Clone)]
pub struct OnAll {
    members: Arc<[Box<dyn Member>]>,
    /// The order in which the members are requested, by index.
    order: Arc<[usize]>,
}

/// Collects the members of a [`MultiLock`], which may be locks of different kinds and servers.
#[derive(Default)]
#[must_use = "a builder does nothing until build"]
pub struct MultiLockBuilder {
    members: Vec<Box<dyn Member>>,
}

impl MultiLockBuilder {
    /// Adds a member; the same lock must not be added twice.
    pub fn member<O: Object>(mut self, lock: &Handle<O>) -> Self {
        self.members.push(Box::new(lock.0.clone()));
        self
    }

    /// Builds the lock of all members.
    ///
    /// # Errors
    /// When it has no members, or two of them are the same lock, which would wait for itself.
    pub fn build(self) -> Result<MultiLock> {
        let members: Arc<[_]> = self.members.into();
        if members.is_empty() {
            return Err(Error::config("a multi lock needs members"));
        }
        for (at, member) in members.iter().enumerate() {
            if members[..at].iter().any(|other| member::is_same_lock(&**member, &**other)) {
                return Err(Error::config(format!("two members of a multi lock are {}", member.key())));
            }
        }
        let mut order: Vec<usize> = (0..members.len()).collect();
        order.sort_by_cached_key(|&at| (members[at].key().to_owned(), member::places(&*members[at])));
        Ok(Handle(OnAll { members, order: order.into() }))
    }
}

impl MultiLock {
    /// Returns a builder without members.
    pub fn builder() -> MultiLockBuilder {
        MultiLockBuilder::default()
    }

    /// Returns the keys of the members, in the order in which they were added.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys()
    }
}

impl OnAll {
    fn keys(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|member| member.key())
    }

    /// Returns the clocks and random numbers of the first member's client.
    fn env(&self) -> Arc<dyn Env> {
        self.members[0].sessions()[0].ctx.env.clone()
    }
}

impl sealed::Acquirable for OnAll {
    type Guard = MultiGuard;

    async fn acquire(self, options: AcquireOptions) -> Result<Option<MultiGuard>> {
        if let Some(lease) = options.lease {
            LEASE.check(lease)?;
        }
        let env = self.env();
        let end = match options.limit {
            WaitLimit::For(wait) => Some(env.now() + wait),
            WaitLimit::NoWait | WaitLimit::Unbounded => None,
        };
        let owner = options.owner.unwrap_or_else(|| OwnerId::fresh(&*env));
        let mut collector = Collector { env, lock: self, owner, options, end, first: 0 };
        loop {
            let excuse = match collector.round().await? {
                Round::Got(parts) => return Ok(Some(MultiGuard::new(parts))),
                Round::Refused(place) => {
                    collector.first = place;
                    None
                }
                Round::Unanswered(place, error) => {
                    collector.first = place;
                    Some(error)
                }
                Round::Lost(error) => Some(error),
            };
            if options.limit == WaitLimit::NoWait || !collector.pause().await {
                return excuse.map_or(Ok(None), Err);
            }
        }
    }
}

impl std::fmt::Debug for OnAll {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MultiLock").field("keys", &self.keys().collect::<Vec<_>>()).finish_non_exhaustive()
    }
}

/// The outcome of a round over all members. Except for `Got`, everything was released.
enum Round {
    /// The guards in the order in which the members were added.
    Got(Vec<Box<dyn Part>>),
    /// Another owner has the member at this place in the order.
    Refused(usize),
    /// The member at this place in the order did not answer within the time allowed while other
    /// locks are held.
    Unanswered(usize, Error),
    /// Members were lost before the last one was granted.
    Lost(Error),
}

/// An acquisition of all members.
struct Collector {
    env: Arc<dyn Env>,
    lock: OnAll,
    owner: OwnerId,
    options: AcquireOptions,
    end: Option<Monotonic>,
    /// The place in the order with which the next round begins.
    first: usize,
}

/// Granted members, each with its index.
type Held = Vec<(usize, Box<dyn Part>)>;

impl Collector {
    /// Requests each member once.
    async fn round(&self) -> Result<Round> {
        let count = self.lock.members.len();
        let begun = self.env.boottime();
        let mut held = Held::with_capacity(count);
        for nth in 0..count {
            let place = (self.first + nth) % count;
            let number = self.lock.order[place];
            let patience = (!held.is_empty()).then(|| self.env.now() + self.patience());
            let limit = self.limit(patience);
            let options = AcquireOptions { owner: Some(self.owner), limit, ..self.options };
            match self.lock.members[number].acquire(options).await {
                Ok(Some(part)) => held.push((number, part)),
                Ok(None) => {
                    self.give_back(held).await;
                    return Ok(Round::Refused(place));
                }
                Err(error) => {
                    let was_cut_short = limit != WaitLimit::NoWait
                        && patience.is_some_and(|patience| self.env.now() >= patience);
                    let undone = self.give_back(held).await;
                    let error = if undone { error } else { error.made_indefinite() };
                    return if was_cut_short { Ok(Round::Unanswered(place, error)) } else { Err(error) };
                }
            }
        }
        let Some(completed) = self.complete(&held, begun).await else {
            let undone = self.give_back(held).await;
            let error = self.lock.members[0].sessions()[0].config.no_reply();
            return Ok(Round::Unanswered(self.first, if undone { error.made_definite() } else { error }));
        };
        match completed {
            Ok(()) => {
                held.sort_by_key(|(number, _)| *number);
                Ok(Round::Got(held.into_iter().map(|(_, part)| part).collect()))
            }
            Err(error) => {
                let is_lost = held.iter().any(|(_, part)| !part.is_valid());
                let undone = self.give_back(held).await;
                let error = if undone { error.made_definite() } else { error.made_indefinite() };
                if is_lost { Ok(Round::Lost(error)) } else { Err(error) }
            }
        }
    }

    /// Returns the wait for one member: the caller's, but no longer than `patience`.
    fn limit(&self, patience: Option<Monotonic>) -> WaitLimit {
        let end = match self.options.limit {
            WaitLimit::NoWait => return WaitLimit::NoWait,
            WaitLimit::For(_) | WaitLimit::Unbounded => self.end.into_iter().chain(patience).min(),
        };
        end.map_or(WaitLimit::Unbounded, |end| WaitLimit::For(end - self.env.now()))
    }

    fn patience(&self) -> Duration {
        let half = most_patience(self.options.lease, self.lock.members.len()) / 2;
        half + drawn(&*self.env, half)
    }

    /// Completes a round: extends all leases to start now if the round took long, and checks that
    /// no lock was lost since. `None` if a server does not answer within the time allowed while
    /// locks are held.
    async fn complete(&self, held: &Held, begun: Boottime) -> Option<Result<()>> {
        let of_all =
            |outcomes: Vec<_>| Error::of_members(held.iter().map(|(_, part)| part.key()).zip(outcomes));
        if let Some(lease) = self.options.lease
            && self.env.boottime() - begun > lease / 10
        {
            let patience = self.env.now() + self.patience();
            let extended = join_all(held.iter().map(|(_, part)| part.extend(lease)));
            if let Err(error) = of_all(within(&*self.env, patience, pin!(extended)).await?) {
                return Some(Err(error));
            }
        }
        let still = |part: &dyn Part| if part.is_valid() { Ok(()) } else { Err(part.not_held()) };
        Some(of_all(held.iter().map(|(_, part)| still(&**part)).collect()))
    }

    /// Releases all locks, within the caller's time or in the background. Returns false if some may
    /// still be held.
    async fn give_back(&self, held: Held) -> bool {
        let released = join_all(held.into_iter().map(|(_, part)| part.release()));
        let done = match self.end {
            None => Some(released.await),
            // All releases have begun; each continues when its future is dropped.
            Some(end) => within(&*self.env, end, pin!(released)).await,
        };
        let is_known = |outcome: &Result<()>| outcome.as_ref().err().is_none_or(Error::is_definite);
        done.is_some_and(|outcomes| outcomes.iter().all(is_known))
    }

    /// Pauses before the next round. Returns false if the caller's time is up.
    async fn pause(&self) -> bool {
        let delay = drawn(&*self.env, PAUSE);
        let left = self.end.map(|end| end - self.env.now());
        if left.is_some_and(|left| left <= delay) {
            return false;
        }
        pause(&*self.env, delay).await;
        true
    }
}

/// Draws a time evenly from zero to `most`.
fn drawn(env: &dyn Env, most: Duration) -> Duration {
    Duration::from_micros(draw(env, u64::try_from(most.as_micros()).unwrap_or(u64::MAX)))
}

/// Returns the longest wait for one of `members` locks while others are held: the first grant must
/// last until the last one.
fn most_patience(lease: Option<Duration>, members: usize) -> Duration {
    let members = u32::try_from(members).unwrap_or(u32::MAX);
    lease.map_or(PATIENCE, |lease| PATIENCE.min(lease / members.saturating_mul(2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_share_half_of_the_lease() {
        let ms = Duration::from_millis;
        for (lease, members, most) in [
            (None, 2, PATIENCE),
            (Some(ms(30_000)), 2, PATIENCE),
            (Some(ms(3_000)), 2, ms(750)),
            (Some(ms(3_000)), 5, ms(300)),
        ] {
            assert_eq!(most_patience(lease, members), most, "{lease:?} for {members}");
        }
    }
}
