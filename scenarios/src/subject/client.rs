//! The production client.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc, sync::Arc, time::Duration};

use lockstorm_client::{Builder, Client, Error, Guard, Lock as ClientLock, OwnerId, RedLock, ReplicaWait};

use super::{Ask, Failure, Held, Local, Patience, Subject, SubjectContext};
use crate::{
    bridge::HostEnv,
    history::Lock,
    recorder::Line,
    scenario::{Lock as ScenarioLock, LockKind, Sync, traits::ClockName},
    units::Span,
};

/// Makes the clients of a process, and the handles of these locks. Locks with the same settings on the same nodes share a client.
pub(super) fn make(context: &SubjectContext, locks: &[Lock]) -> Result<Production, Failure> {
    let mut made: Vec<(Settings<'_>, Vec<Client>)> = Vec::new();
    let (mut handles, mut others) = (BTreeMap::new(), Vec::new());
    for &lock in locks {
        let written = &context.lock(lock).written;
        let settings = Settings::of(context, lock);
        let known = made.iter().position(|(known, _)| *known == settings);
        let at = match known {
            Some(at) => at,
            None => {
                let env = match settings.clock {
                    // As on a platform whose only steady clock stops while the machine sleeps.
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
        handles.insert(lock, handle(written, clients, &context.lock(lock).key)?);
        if known.is_none() {
            others.push(handle(written, clients, &format!("warm-up of {}", context.ctx.name()))?);
        }
    }
    Ok(Production(Rc::new(Handles { handles, others })))
}

/// What a client is set up with.
#[derive(PartialEq)]
struct Settings<'a> {
    groups: &'a [Vec<String>],
    clock: ClockName,
    watchdog: Span,
    sync: Sync,
    timeouts: [Option<Span>; 3],
}

impl Settings<'_> {
    fn of(context: &SubjectContext, lock: Lock) -> Settings<'_> {
        let written = &context.lock(lock).written;
        Settings {
            groups: context.groups_of(lock),
            clock: written.subject.traits.with(&written.traits).clock,
            watchdog: written.watchdog,
            sync: written.sync,
            timeouts: [written.response_timeout, written.sync_timeout, written.fair_wait],
        }
    }
}

/// Sets up a client of one group of nodes as the scenario says.
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
        });
    for node in group {
        builder = builder.endpoint(format!("redis://{node}:6379"));
    }
    let set = |value: Option<Span>| value.map(|Span(duration)| duration);
    if let Some(timeout) = set(lock.response_timeout) {
        builder = builder.response_timeout(timeout);
    }
    if let Some(timeout) = set(lock.sync_timeout) {
        builder = builder.replica_timeout(timeout);
    }
    if let Some(wait) = set(lock.fair_wait) {
        builder = builder.fair_wait_timeout(wait);
    }
    builder
}

/// The client's handle of a lock on trial.
enum Handle {
    One(ClientLock),
    Red(RedLock),
}

/// The production client of a process.
pub(super) struct Production(Rc<Handles>);

struct Handles {
    handles: BTreeMap<Lock, Handle>,
    /// For each client another lock of the same kind on the same nodes, for the warm-up: scripts are loaded with the first lock of
    /// a process.
    others: Vec<Handle>,
}

impl Production {
    /// For one line of work, whose number is that of its owner.
    pub(super) fn on(&self, line: Line) -> OfLine {
        OfLine { handles: self.0.clone(), line }
    }
}

/// The production client as one line of work uses it.
pub(super) struct OfLine {
    handles: Rc<Handles>,
    line: Line,
}

fn handle(lock: &ScenarioLock, clients: &[Client], name: &str) -> Result<Handle, Failure> {
    let Some(first) = clients.first() else {
        return Err(Failure { definite: true, message: "the client knows no node".to_owned() });
    };
    Ok(match lock.kind {
        LockKind::Plain => Handle::One(first.lock(name)),
        LockKind::Fair => Handle::One(first.fair_lock(name)),
        LockKind::Fenced => Handle::One(first.fenced_lock(name)),
        LockKind::ReadWrite | LockKind::Semaphore => {
            let message = "the client has no such lock".to_owned();
            return Err(Failure { definite: true, message });
        }
        LockKind::Red => {
            let mut red = RedLock::new(clients.iter().cloned(), name).map_err(failure)?;
            if let Some(Span(timeout)) = lock.node_timeout {
                red = red.node_timeout(timeout);
            }
            if let Some(Span(delay)) = lock.retry_delay {
                red = red.retry_delay(delay);
            }
            Handle::Red(red)
        }
    })
}

impl Subject for OfLine {
    fn warm_up(&self) -> Local<'static, ()> {
        let lease = Duration::from_secs(1);
        // Once for the process.
        let others = self.handles.others.iter().filter(|_| self.line == Line::FIRST);
        let asked: Vec<_> = others
            .map(|other| match other {
                Handle::One(lock) => lock.try_acquire().lease(lease),
                Handle::Red(lock) => lock.try_acquire().lease(lease),
            })
            .collect();
        Box::pin(async move {
            for asked in asked {
                if let Ok(Some(guard)) = asked.await {
                    let _ = guard.release().await;
                }
            }
        })
    }

    fn acquire(&self, ask: Ask) -> Local<'_, Result<Option<Rc<dyn Held>>, Failure>> {
        Box::pin(async move {
            let owner = OwnerId::new(i64::from(self.line.0));
            let handle = &self.handles.handles[&ask.lock];
            let guard = match ask.wait {
                Patience::Unbounded => {
                    let wanted = match handle {
                        Handle::One(lock) => lock.acquire(),
                        Handle::Red(lock) => lock.acquire(),
                    };
                    let wanted = wanted.owner(owner);
                    match ask.lease {
                        Some(lease) => wanted.lease(lease).await.map(Some),
                        None => wanted.await.map(Some),
                    }
                }
                Patience::None | Patience::For(_) => {
                    let wanted = match (handle, ask.wait) {
                        (Handle::One(lock), Patience::For(wait)) => lock.try_acquire_for(wait),
                        (Handle::Red(lock), Patience::For(wait)) => lock.try_acquire_for(wait),
                        (Handle::One(lock), _) => lock.try_acquire(),
                        (Handle::Red(lock), _) => lock.try_acquire(),
                    };
                    let wanted = wanted.owner(owner);
                    match ask.lease {
                        Some(lease) => wanted.lease(lease).await,
                        None => wanted.await,
                    }
                }
            };
            let guard = guard.map_err(failure)?;
            Ok(guard.map(|guard| Rc::new(Hold(RefCell::new(Some(guard)))) as Rc<dyn Held>))
        })
    }
}

/// A guard, until it is released.
struct Hold(RefCell<Option<Guard>>);

impl Held for Hold {
    fn release(&self) -> Local<'_, Result<(), Failure>> {
        Box::pin(async move {
            let Some(guard) = self.0.take() else { return Ok(()) };
            guard.release().await.map_err(failure)
        })
    }

    fn extend(&self, lease: Duration) -> Local<'_, Result<(), Failure>> {
        Box::pin(async move {
            // Taken out meanwhile: a borrow must not be held over an await.
            let Some(guard) = self.0.take() else { return Ok(()) };
            let extended = guard.extend(lease).await.map_err(failure);
            self.0.replace(Some(guard));
            extended
        })
    }

    fn is_held(&self) -> bool {
        self.0.borrow().as_ref().is_some_and(Guard::is_valid)
    }

    fn lost(&self) -> Local<'_, ()> {
        let lost = self.0.borrow().as_ref().map(Guard::lost);
        Box::pin(async move {
            if let Some(lost) = lost {
                lost.await;
            }
        })
    }

    fn owner(&self) -> Option<String> {
        self.0.borrow().as_ref().map(|guard| guard.owner().to_owned())
    }

    fn token(&self) -> Option<u64> {
        self.0.borrow().as_ref().and_then(Guard::fencing_token)
    }
}

fn failure(error: Error) -> Failure {
    Failure { definite: error.is_definite(), message: error.to_string() }
}
