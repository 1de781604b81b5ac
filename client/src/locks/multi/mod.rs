//! The multi lock, Redisson's `getMultiLock(locks)`: several locks of any kinds, of one or more
//! clients, all or none.
//!
//! The locks are asked for one after another, in the order of their keys, whatever order they were
//! named in: two multi locks of this crate do not wait for each other in a circle. Others,
//! Redisson's among them, may ask in another order. So no lock is waited for without end while
//! another is held: after [`PATIENCE`] at most all are given back, and the next round begins with
//! the one that was not to be had, waiting for it with empty hands.
//!
//! Each member is acquired, renewed, lost and given back as if it stood alone, and nothing about
//! the others is known to its server. The caller's own future does the work: dropping it ends the
//! request under way and drops the guards that were got, which both give back what they have.

mod guard;
mod member;

use std::future::IntoFuture;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};

use crate::env::{Boottime, Env, Monotonic, draw, pause, within};
use crate::error::{Error, Result};
use crate::limits::LEASE;
use crate::lock::{AcquireOptions, Handle, Object, PendingAcquire, options};
use crate::owner::OwnerId;
use crate::wait::WaitLimit;
pub use guard::{HeldMember, MultiGuard};
use member::{Member, Part};

/// The longest time for which one lock is waited for while another is held. Half of it is drawn, so
/// that two that block each other do not give way at the same moment.
const PATIENCE: Duration = Duration::from_secs(1);

/// The longest pause between two rounds, which is drawn.
const PAUSE: Duration = Duration::from_millis(20);

/// The handle of several locks that are held together or not at all.
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
/// The users of the clients need the rights that each of the locks needs, and no others. Waiting is
/// not fair: a lock that gives way loses its place in the queue of a
/// [fair](crate::Client::fair_lock) member.
#[derive(Clone)]
pub struct MultiLock {
    members: Arc<[Box<dyn Member>]>,
    /// In which they are asked for.
    order: Arc<[usize]>,
}

/// Sets up a [`MultiLock`].
#[derive(Default)]
#[must_use = "a builder does nothing until build"]
pub struct MultiLockBuilder {
    members: Vec<Box<dyn Member>>,
}

impl MultiLockBuilder {
    /// Adds a lock.
    pub fn member<O: Object>(mut self, lock: &Handle<O>) -> Self {
        self.members.push(Box::new(lock.0.clone()));
        self
    }

    /// The lock of all members.
    ///
    /// # Errors
    /// When there are none, or two of them are one lock, which would wait for itself.
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
        Ok(MultiLock { members, order: order.into() })
    }
}

impl MultiLock {
    /// A lock of no members yet.
    pub fn builder() -> MultiLockBuilder {
        MultiLockBuilder::default()
    }

    /// Waits until all locks are granted, however long that takes. Without a lease the watchdogs of
    /// their clients renew them.
    ///
    /// A [lease](AcquireAll::lease) runs from the moment at which all are had: those that were
    /// granted long before are extended. Without an [owner](AcquireAll::owner) the owner is a new
    /// one, the same for all members.
    ///
    /// # Errors
    /// Those of any of the members, as of [`Handle::acquire`]; what the others had granted is given
    /// back. The error is [definite](Error::is_definite) when it is known that nothing is held.
    pub fn acquire(&self) -> AcquireAll {
        AcquireAll(self.pending(WaitLimit::Unbounded))
    }

    /// Takes the locks if all are free now. `None` means that another owner has one of them, and
    /// that the others were given back; one that could not be given back ends with its lease.
    ///
    /// # Errors
    /// As [`MultiLock::acquire`].
    pub fn try_acquire(&self) -> TryAcquireAll {
        TryAcquireAll(self.pending(WaitLimit::NoWait))
    }

    /// Waits for all of the locks, for at most `wait` altogether. `None` means that another owner
    /// has one of them; what is held or under way when the time runs out is given back in the
    /// background.
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
    /// # Errors
    /// As [`MultiLock::acquire`], and when a server has not answered by the end of `wait`.
    pub fn try_acquire_for(&self, wait: Duration) -> TryAcquireAll {
        TryAcquireAll(self.pending(WaitLimit::For(wait)))
    }

    /// The keys of the members, in the order in which they were named.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|member| member.key())
    }

    fn pending(&self, limit: WaitLimit) -> PendingAcquire<MultiGuard> {
        let lock = self.clone();
        PendingAcquire::new(limit, |options| lock.acquire_all(options))
    }

    /// Clocks and random numbers are those of the first member's client.
    fn env(&self) -> Arc<dyn Env> {
        self.members[0].sessions()[0].ctx.env.clone()
    }

    async fn acquire_all(self, options: AcquireOptions) -> Result<Option<MultiGuard>> {
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

impl std::fmt::Debug for MultiLock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MultiLock").field("keys", &self.keys().collect::<Vec<_>>()).finish_non_exhaustive()
    }
}

/// What a round over all members came to. In all cases but the first everything was given back.
enum Round {
    /// In the order in which the members were named.
    Got(Vec<Box<dyn Part>>),
    /// Another owner has the member at this place of the order.
    Refused(usize),
    /// The member at this place of the order could not be asked in the time that there was while
    /// others were held.
    Unanswered(usize, Error),
    /// Members were lost before the last one was granted.
    Lost(Error),
}

/// The acquisition of all members.
struct Collector {
    env: Arc<dyn Env>,
    lock: MultiLock,
    owner: OwnerId,
    options: AcquireOptions,
    end: Option<Monotonic>,
    /// The place of the order that the next round begins with.
    first: usize,
}

/// A member that was granted, with its number.
type Held = Vec<(usize, Box<dyn Part>)>;

impl Collector {
    /// Asks each member once.
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

    /// How long one member is waited for: as long as the caller waits, but no longer than
    /// `patience`.
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

    /// Makes what was granted one by one last for the lease from now, where that has taken a while,
    /// and makes sure that nothing was lost meanwhile. `None` when a server does not answer in the
    /// time that there is with locks held.
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

    /// Gives all back, within the caller's time or in the background; false when it is not known
    /// that nothing is held.
    async fn give_back(&self, held: Held) -> bool {
        let released = join_all(held.into_iter().map(|(_, part)| part.release()));
        let done = match self.end {
            None => Some(released.await),
            // Each is begun at once, and goes on when its future is dropped.
            Some(end) => within(&*self.env, end, pin!(released)).await,
        };
        let is_known = |outcome: &Result<()>| outcome.as_ref().err().is_none_or(Error::is_definite);
        done.is_some_and(|outcomes| outcomes.iter().all(is_known))
    }

    /// Rests before the next round; false when the caller's time is up.
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

/// A time drawn evenly from nothing to `most`.
fn drawn(env: &dyn Env, most: Duration) -> Duration {
    Duration::from_micros(draw(env, u64::try_from(most.as_micros()).unwrap_or(u64::MAX)))
}

/// An acquisition of several locks that waits until all are granted. Await it, after setting what
/// differs from the defaults.
#[must_use = "nothing is asked for until this is awaited"]
pub struct AcquireAll(PendingAcquire<MultiGuard>);

/// An acquisition of several locks that may come to nothing. Await it, after setting what differs
/// from the defaults.
#[must_use = "nothing is asked for until this is awaited"]
pub struct TryAcquireAll(PendingAcquire<MultiGuard>);

options!(AcquireAll);
options!(TryAcquireAll);

impl IntoFuture for AcquireAll {
    type Output = Result<MultiGuard>;
    type IntoFuture = BoxFuture<'static, Result<MultiGuard>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.0.run_unbounded())
    }
}

impl IntoFuture for TryAcquireAll {
    type Output = Result<Option<MultiGuard>>;
    type IntoFuture = BoxFuture<'static, Result<Option<MultiGuard>>>;

    fn into_future(self) -> Self::IntoFuture {
        self.0.run()
    }
}

/// How long one of so many members is waited for at most: what the first was granted must last
/// until the last one is.
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
