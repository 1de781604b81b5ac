//! The production client.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc, sync::Arc, time::Duration};

use lockstorm_client::{
    Builder, Client, Credentials, Durability, Error, ErrorKind, FencedLock, Guard, Handle as LockHandle,
    Latch, Lock as ClientLock, Lockable, MultiGuard, MultiLock, Object, OwnerId, PermitSemaphore,
    RateLimiter, RateMode, ReadWriteLock, Redlock, ReplicaWait, Semaphore, SemaphorePermits, Sentinels,
};
use lockstorm_sim::cluster::key_slot;

use super::{
    AllOrNone, Ask, Counting, Failure, Held, HeldTogether, Local, Patience, Subject, SubjectContext, failure,
    leased, not_so,
};
use crate::{
    file::{
        plan::LockEntry,
        scenario::{Lock as ScenarioLock, LockKind, Sync, Synced, traits::ClockName},
    },
    judge::{history::Mode, object::faster_multi},
    run::{bridge::HostEnv, recorder::Line},
    units::Span,
};

/// Creates the clients of a process, and the handles of these locks. Locks with the same settings
/// on the same nodes share a client.
pub(super) fn make(context: &SubjectContext, locks: &[LockEntry]) -> Result<Production, Failure> {
    let mut made: Vec<(Settings<'_>, Vec<Client>)> = Vec::new();
    let (mut handles, mut others, mut unset) = (BTreeMap::new(), Vec::new(), Vec::new());
    for &lock in locks {
        let written = &context.lock(lock).written;
        let settings = Settings::of(context, lock);
        let known = made.iter().position(|(known, _)| *known == settings);
        let at = match known {
            Some(at) => at,
            None => {
                let env = match settings.clock {
                    // Like a platform whose only steady clock stops while the machine is suspended.
                    ClockName::Monotonic => HostEnv::without_boottime(context.ctx.clone()),
                    ClockName::Boottime | ClockName::Wall => HostEnv::new(context.ctx.clone()),
                };
                let built =
                    settings.groups.iter().map(|group| builder(&env, context, written, group).build());
                made.push((settings, built.collect::<Result<_, _>>().map_err(failure)?));
                made.len() - 1
            }
        };
        let clients = &made[at].1;
        let host = context.ctx.name();
        let made = handle(written, clients, host, &context.lock(lock).key)?;
        if matches!(made, Handle::Semaphore(_) | Handle::Permits(_) | Handle::Rate(_)) {
            unset.push((made.clone(), written.clone()));
        }
        handles.insert(lock, made);
        if known.is_none() {
            others.push(handle(written, clients, host, &warm_up(context, lock))?);
        }
    }
    Ok(Production(Rc::new(Handles { handles, others, unset })))
}

/// Returns the name of the lock for the warm-up. In a cluster it is in the slot of the lock on
/// trial, so that the slot's node loads the scripts.
fn warm_up(context: &SubjectContext, lock: LockEntry) -> String {
    let (host, key) = (context.ctx.name(), &context.lock(lock).key);
    let name = format!("warm-up of {host}");
    if !context.plan.scenario.is_cluster() {
        return name;
    }
    let slot = key_slot(key.as_bytes());
    let mut names = (0..).map(|number| format!("{name} {number}"));
    names.find(|name| key_slot(name.as_bytes()) == slot).expect("numbers do not end")
}

/// The settings of a client. Locks with equal settings share it.
#[derive(PartialEq)]
struct Settings<'a> {
    groups: &'a [Vec<String>],
    clock: ClockName,
    watchdog: Span,
    sync: Sync,
    synced: Synced,
    timeouts: [Option<Span>; 4],
}

impl Settings<'_> {
    fn of(context: &SubjectContext, lock: LockEntry) -> Settings<'_> {
        let written = &context.lock(lock).written;
        Settings {
            groups: context.groups_of(lock),
            clock: written.all_traits().clock,
            watchdog: written.watchdog,
            sync: written.sync,
            synced: written.synced,
            timeouts: [
                written.response_timeout,
                written.sync_timeout,
                written.synced_timeout,
                written.fair_wait,
            ],
        }
    }
}

/// Builds the client of one group of nodes from the scenario's settings.
pub(crate) fn builder(
    env: &HostEnv,
    context: &SubjectContext,
    lock: &ScenarioLock,
    group: &[String],
) -> Builder {
    let mut builder = Client::builder()
        .env(Arc::new(env.clone()))
        .client_id(context.history.client_id())
        .observer(Arc::new(context.history.clone().counting_by(env.lease_clock())))
        .watchdog_timeout(lock.watchdog.0)
        .replica_wait(match lock.sync {
            Sync::None => ReplicaWait::None,
            Sync::One => ReplicaWait::Synced,
            Sync::Majority => ReplicaWait::Majority,
            Sync::All => ReplicaWait::All,
        })
        .durability(match lock.synced {
            Synced::None => Durability::Memory,
            Synced::Master => Durability::Master,
            Synced::All => Durability::All,
        });
    if let (false, Some(master)) = (context.sentinels.is_empty(), group.first()) {
        // Sentinels name a master after the node that was the first master.
        let sentinels = context.sentinels.iter().map(|host| format!("redis://{host}:26379"));
        let mut sentinels = sentinels.fold(Sentinels::of(master), Sentinels::at);
        if let Some((user, password)) = &context.login {
            sentinels = sentinels.credentials(Credentials::new(user, password));
        }
        builder = builder.endpoint(sentinels);
    } else {
        for node in group {
            builder = builder.endpoint(format!("redis://{node}:6379"));
        }
        if context.plan.scenario.is_cluster() {
            builder = builder.cluster();
        }
        if let Some((user, password)) = context.login.clone() {
            let credentials = Credentials::new(user, password);
            builder = builder.credentials(move || std::future::ready(Ok(credentials.clone())));
        }
    }
    let set = |value: Option<Span>| value.map(|Span(duration)| duration);
    if let Some(timeout) = set(lock.response_timeout) {
        builder = builder.response_timeout(timeout);
    }
    if let Some(timeout) = set(lock.sync_timeout) {
        builder = builder.replica_timeout(timeout);
    }
    if let Some(timeout) = set(lock.synced_timeout) {
        builder = builder.durability_timeout(timeout);
    }
    if let Some(wait) = set(lock.fair_wait) {
        builder = builder.fair_wait_timeout(wait);
    }
    builder
}

/// The client's handle of a lock on trial.
#[derive(Clone)]
enum Handle {
    One(ClientLock),
    Fenced(FencedLock),
    Red(Redlock),
    Halves(ReadWriteLock),
    Semaphore(Semaphore),
    Permits(PermitSemaphore),
    Latch { latch: Latch, count: u32 },
    Rate(RateLimiter),
}

/// Returns the half of a read-write lock for this mode.
fn half(lock: &ReadWriteLock, mode: Mode) -> ClientLock {
    if mode == Mode::Shared { lock.read() } else { lock.write() }
}

/// The production client of a process.
pub(super) struct Production(Rc<Handles>);

struct Handles {
    handles: BTreeMap<LockEntry, Handle>,
    /// For each client another lock of the same kind on the same nodes, for the warm-up: a process
    /// loads the scripts with its first lock.
    others: Vec<Handle>,
    /// The semaphores and rate limiters, each with the lock of the scenario. Each process sets
    /// their number of permits at its start, unless it is already set.
    unset: Vec<(Handle, ScenarioLock)>,
}

impl Production {
    /// Returns the subject for one line of work. The line's number is also its owner ID.
    pub(super) fn on(&self, line: Line) -> OfLine {
        OfLine { handles: self.0.clone(), line }
    }
}

/// The production client as one line of work uses it.
pub(super) struct OfLine {
    handles: Rc<Handles>,
    line: Line,
}

/// Creates a client's handle of a lock. `host` determines the values of a faster multi-lock.
fn handle(lock: &ScenarioLock, clients: &[Client], host: &str, name: &str) -> Result<Handle, Failure> {
    let Some(first) = clients.first() else {
        return Err(not_so("the client knows no node"));
    };
    Ok(match lock.kind {
        LockKind::Plain => Handle::One(first.lock(name)),
        LockKind::Fair => Handle::One(first.fair_lock(name)),
        LockKind::Spin => Handle::One(first.spin_lock(name)),
        LockKind::NonReentrant => Handle::One(first.non_reentrant_lock(name)),
        LockKind::NonReentrantFair => Handle::One(first.non_reentrant_fair_lock(name)),
        LockKind::String => Handle::One(first.string_lock(name)),
        LockKind::Fenced => Handle::Fenced(first.fenced_lock(name)),
        LockKind::FasterMulti => Handle::One(first.faster_multi_lock(name, faster_multi::values_of(host))),
        LockKind::Semaphore => Handle::Semaphore(first.semaphore(name)),
        LockKind::PermitSemaphore => Handle::Permits(first.permit_semaphore(name)),
        LockKind::Rate => Handle::Rate(first.rate_limiter(name)),
        LockKind::Latch => Handle::Latch { latch: first.latch(name), count: lock.count.unwrap_or(1) },
        LockKind::ReadWrite => Handle::Halves(first.rw_lock(name)),
        LockKind::Redlock => {
            let mut red = Redlock::builder(clients.iter().cloned());
            if let Some(Span(timeout)) = lock.node_timeout {
                red = red.node_timeout(timeout);
            }
            if let Some(Span(delay)) = lock.retry_delay {
                red = red.retry_delay(delay);
            }
            Handle::Red(red.build(name).map_err(failure)?)
        }
    })
}

impl Subject for OfLine {
    fn warm_up(&self) -> Local<'static, ()> {
        async fn once<O: Object>(lock: &LockHandle<O>) {
            if let Ok(Some(guard)) = lock.try_acquire().lease(Duration::from_secs(1)).await {
                let _ = guard.release().await;
            }
        }
        // Only the first line of work warms up, once for the process.
        let others = self.handles.others.iter().filter(|_| self.line == Line::FIRST);
        let others: Vec<Handle> = others.cloned().collect();
        let unset = if self.line == Line::FIRST { self.handles.unset.clone() } else { Vec::new() };
        Box::pin(async move {
            for (handle, lock) in &unset {
                let permits = lock.permits.unwrap_or(1);
                let mode = if lock.per_client { RateMode::PerClient } else { RateMode::Overall };
                // If no server answers, another process sets the number.
                let _ = match handle {
                    Handle::Semaphore(semaphore) => semaphore.set_permits(permits).await,
                    Handle::Permits(semaphore) => semaphore.set_permits(permits).await,
                    Handle::Rate(limiter) => limiter.try_set_rate(mode, permits, lock.window()).await,
                    _ => continue,
                };
            }
            for other in &others {
                match other {
                    Handle::One(lock) => once(lock).await,
                    Handle::Fenced(lock) => once(lock).await,
                    Handle::Red(lock) => once(lock).await,
                    Handle::Halves(lock) => {
                        once(&lock.read()).await;
                        once(&lock.write()).await;
                    }
                    Handle::Semaphore(semaphore) => {
                        let _ = semaphore.add_permits(1).await;
                        if let Ok(Some(permit)) = semaphore.try_acquire(1).await {
                            let _ = permit.release().await;
                        }
                    }
                    Handle::Permits(semaphore) => {
                        let _ = semaphore.add_permits(1).await;
                        if let Ok(Some(permit)) = semaphore.try_acquire(1).lease(Duration::from_secs(1)).await
                        {
                            let _ = permit.release().await;
                        }
                    }
                    Handle::Rate(limiter) => {
                        if limiter.try_set_rate(RateMode::Overall, 1, Duration::from_secs(1)).await.is_ok() {
                            let _ = limiter.try_acquire(1).await;
                        }
                    }
                    Handle::Latch { latch, .. } => {
                        if latch.try_set(1).await.is_ok() {
                            let _ = latch.count_down().await;
                        }
                    }
                }
            }
        })
    }

    fn acquire_all(&self, asks: Vec<Ask>) -> Option<Local<'_, AllOrNone>> {
        let owner = OwnerId::new(i64::from(self.line.0));
        Some(Box::pin(async move {
            let guard = asked_together(&self.handles.handles, owner, &asks).await?;
            Ok(guard.map(|guard| Rc::new(HoldOfAll(RefCell::new(Some(guard)))) as Rc<dyn HeldTogether>))
        }))
    }

    fn acquire(&self, ask: Ask) -> Local<'_, Result<Option<Rc<dyn Held>>, Failure>> {
        Box::pin(async move {
            let owner = OwnerId::new(i64::from(self.line.0));
            match &self.handles.handles[&ask.lock] {
                Handle::One(lock) => Ok(asked(lock, owner, ask).await?.map(|guard| held(guard, None))),
                Handle::Fenced(lock) => Ok(asked(lock, owner, ask).await?.map(|guard| {
                    let token = guard.token();
                    held(guard, Some(token))
                })),
                Handle::Red(lock) => Ok(asked(lock, owner, ask).await?.map(|guard| held(guard, None))),
                Handle::Halves(lock) => {
                    let guard = asked(&half(lock, ask.mode), owner, ask).await?;
                    Ok(guard.map(|guard| held(guard, None)))
                }
                Handle::Semaphore(semaphore) => {
                    let permit = match ask.wait {
                        Patience::Unbounded => semaphore.acquire(ask.permits).await.map(Some),
                        Patience::None => semaphore.try_acquire(ask.permits).await,
                        Patience::For(wait) => semaphore.try_acquire_for(ask.permits, wait).await,
                    };
                    let held = |permit| Rc::new(Permit(RefCell::new(Some(permit)))) as Rc<dyn Held>;
                    Ok(permit.map_err(failure)?.map(held))
                }
                Handle::Permits(semaphore) => leased::acquired(semaphore, ask).await.map_err(failure),
                Handle::Latch { .. } | Handle::Rate(_) => Err(not_so("it has no holder")),
            }
        })
    }

    fn count(&self, lock: LockEntry, counting: Counting) -> Local<'_, Result<bool, Failure>> {
        Box::pin(async move {
            let done = match &self.handles.handles[&lock] {
                Handle::Latch { latch, count } => counted(latch, *count, counting).await,
                Handle::Rate(limiter) => taken(limiter, counting).await,
                _ => return Err(not_so("it has a holder")),
            };
            done.map_err(failure).and_then(|done| done.ok_or_else(|| not_so("that is not done with it")))
        })
    }
}

/// Acquires all locks as one multi-lock, with the lease and the wait of the first.
async fn asked_together(
    handles: &BTreeMap<LockEntry, Handle>,
    owner: OwnerId,
    asks: &[Ask],
) -> Result<Option<MultiGuard>, Failure> {
    let mut builder = MultiLock::builder();
    for ask in asks {
        builder = match &handles[&ask.lock] {
            Handle::One(lock) => builder.member(lock),
            Handle::Fenced(lock) => builder.member(lock),
            Handle::Red(lock) => builder.member(lock),
            Handle::Halves(lock) => builder.member(&half(lock, ask.mode)),
            Handle::Semaphore(_) | Handle::Permits(_) | Handle::Latch { .. } | Handle::Rate(_) => {
                return Err(not_so("a multi lock is of locks alone"));
            }
        };
    }
    let lock = builder.build().map_err(failure)?;
    asked(&lock, owner, asks[0]).await
}

/// Performs an operation on a latch. Returns `None` for an operation of a rate limiter.
async fn counted(latch: &Latch, count: u32, counting: Counting) -> Result<Option<bool>, Error> {
    let done = match counting {
        Counting::Set => latch.try_set(count).await,
        Counting::Down => latch.count_down().await.map(|left| left.is_some()),
        Counting::Await(Patience::Unbounded) => latch.wait().await.map(|()| true),
        Counting::Await(Patience::For(limit)) => latch.wait_for(limit).await,
        Counting::Await(Patience::None) => latch.wait_for(Duration::ZERO).await,
        Counting::Delete => latch.delete().await,
        Counting::Take { .. } => return Ok(None),
    };
    done.map(Some)
}

/// Takes permits of a rate limiter. Returns `None` for an operation of a latch.
async fn taken(limiter: &RateLimiter, counting: Counting) -> Result<Option<bool>, Error> {
    let Counting::Take { permits, wait } = counting else { return Ok(None) };
    let taken = match wait {
        Patience::Unbounded => limiter.acquire(permits).await.map(|()| true),
        Patience::For(limit) => limiter.try_acquire_for(permits, limit).await,
        Patience::None => limiter.try_acquire(permits).await,
    };
    taken.map(Some)
}

/// Acquires a lock, or several together.
async fn asked<O: Lockable>(
    lock: &LockHandle<O>,
    owner: OwnerId,
    ask: Ask,
) -> Result<Option<O::Guard>, Failure> {
    let with_limit = match ask.wait {
        Patience::Unbounded => None,
        Patience::None => Some(lock.try_acquire()),
        Patience::For(limit) => Some(lock.try_acquire_for(limit)),
    };
    let done = match (with_limit, ask.lease) {
        (None, None) => lock.acquire().owner(owner).await.map(Some),
        (None, Some(lease)) => lock.acquire().owner(owner).lease(lease).await.map(Some),
        (Some(limited), None) => limited.owner(owner).await,
        (Some(limited), Some(lease)) => limited.owner(owner).lease(lease).await,
    };
    done.map_err(failure)
}

fn held<G: 'static>(guard: Guard<G>, token: Option<u64>) -> Rc<dyn Held> {
    Rc::new(HeldGuard { guard: RefCell::new(Some(guard)), token })
}

/// A guard, until it is released.
struct HeldGuard<G> {
    guard: RefCell<Option<Guard<G>>>,
    token: Option<u64>,
}

impl<G: 'static> Held for HeldGuard<G> {
    fn release(&self) -> Local<'_, Result<(), Failure>> {
        Box::pin(async move {
            let Some(guard) = self.guard.take() else { return Ok(()) };
            guard.release().await.map_err(failure)
        })
    }

    fn extend(&self, lease: Duration) -> Local<'_, Result<(), Failure>> {
        Box::pin(async move {
            // Take the guard out: a borrow must not be held across an await.
            let Some(guard) = self.guard.take() else { return Ok(()) };
            let extended = guard.extend(lease).await.map_err(failure);
            self.guard.replace(Some(guard));
            extended
        })
    }

    fn is_held(&self) -> bool {
        self.guard.borrow().as_ref().is_some_and(Guard::is_valid)
    }

    fn lost(&self) -> Local<'_, ()> {
        let lost = self.guard.borrow().as_ref().map(Guard::lost);
        Box::pin(async move {
            if let Some(lost) = lost {
                lost.await;
            }
        })
    }

    fn owner(&self) -> Option<String> {
        self.guard.borrow().as_ref().map(|guard| guard.owner().to_owned())
    }

    fn token(&self) -> Option<u64> {
        self.guard.borrow().is_some().then_some(self.token).flatten()
    }
}

/// Permits without a lease, until they are released.
struct Permit(RefCell<Option<SemaphorePermits>>);

impl Held for Permit {
    fn release(&self) -> Local<'_, Result<(), Failure>> {
        Box::pin(async move {
            let Some(permit) = self.0.take() else { return Ok(()) };
            permit.release().await.map_err(failure)
        })
    }

    fn extend(&self, _lease: Duration) -> Local<'_, Result<(), Failure>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn is_held(&self) -> bool {
        self.0.borrow().is_some()
    }

    fn lost(&self) -> Local<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn owner(&self) -> Option<String> {
        self.0.borrow().as_ref().map(|permit| permit.owner().to_owned())
    }

    fn token(&self) -> Option<u64> {
        None
    }
}

/// The guard of several locks, until it is released.
struct HoldOfAll(RefCell<Option<MultiGuard>>);

impl HeldTogether for HoldOfAll {
    fn release_each(&self) -> Local<'_, Vec<Result<(), Failure>>> {
        Box::pin(async move {
            let Some(guard) = self.0.take() else { return Vec::new() };
            let keys: Vec<String> = guard.members().map(|member| member.key().to_owned()).collect();
            let Err(error) = guard.release().await else { return vec![Ok(()); keys.len()] };
            let ErrorKind::Members { failed, .. } = error.kind() else {
                return vec![Err(failure(error)); keys.len()];
            };
            let of = |key: &String| failed.iter().find(|(other, _)| other == key);
            keys.iter().map(|key| of(key).map_or(Ok(()), |(_, error)| Err(failure(error.clone())))).collect()
        })
    }

    fn lost(&self) -> Local<'_, ()> {
        let lost = self.0.borrow().as_ref().map(MultiGuard::lost);
        Box::pin(async move {
            if let Some(lost) = lost {
                lost.await;
            }
        })
    }

    fn owner(&self) -> Option<String> {
        self.0.borrow().as_ref()?.members().next().map(|first| first.owner().to_owned())
    }

    fn token(&self) -> Option<u64> {
        self.0.borrow().as_ref()?.members().next()?.token()
    }
}
