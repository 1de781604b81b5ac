//! The production client.

use std::{cell::RefCell, rc::Rc, sync::Arc, time::Duration};

use lockstorm_client::{Builder, Client, Error, Guard, Lock, OwnerId, RedLock, ReplicaWait};

use super::{Ask, Failure, Held, Local, Patience, Seat, Subject};
use crate::{
    bridge::HostEnv,
    scenario::{Lock as ScenarioLock, LockKind, Sync, traits::ClockName},
    units::Span,
};

/// The owner of a script: one script is one line of work.
const OWNER: i64 = 1;

pub(super) fn make(seat: Seat) -> Local<'static, Result<Rc<dyn Subject>, Failure>> {
    Box::pin(async move {
        let lock = &seat.plan.scenario.lock;
        let env = match lock.subject.traits.with(&lock.traits).clock {
            // As on a platform whose only steady clock stops while the machine sleeps.
            ClockName::Monotonic => HostEnv::without_boottime(seat.ctx.clone()),
            ClockName::Boottime | ClockName::Wall => HostEnv::new(seat.ctx.clone()),
        };
        let mut clients = Vec::new();
        for group in &seat.groups {
            clients.push(builder(&env, &seat, group).build().map_err(failure)?);
        }
        let other = format!("warm-up of {}", seat.ctx.name());
        let handles = lock.names().map(|name| handle(lock, &clients, name)).collect::<Result<_, _>>()?;
        let other = handle(lock, &clients, &other)?;
        Ok(Rc::new(Production { handles, other }) as Rc<dyn Subject>)
    })
}

/// Sets up a client of one group of nodes as the scenario says.
pub(crate) fn builder(env: &HostEnv, seat: &Seat, group: &[String]) -> Builder {
    let lock = &seat.plan.scenario.lock;
    let mut builder = Client::builder()
        .env(Arc::new(env.clone()))
        .client_id(seat.teller.client_id())
        .observer(Arc::new(seat.teller.clone().counting_by(env.lease_clock())))
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
    One(Lock),
    Red(RedLock),
}

struct Production {
    /// By number of the lock.
    handles: Vec<Handle>,
    /// Another lock of the same kind on the same nodes, for the warm-up: scripts are loaded with the first lock of a process.
    other: Handle,
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

impl Subject for Production {
    fn warm_up(&self) -> Local<'static, ()> {
        let lease = Duration::from_secs(1);
        let asked = match &self.other {
            Handle::One(lock) => lock.try_acquire().lease(lease),
            Handle::Red(lock) => lock.try_acquire().lease(lease),
        };
        Box::pin(async move {
            if let Ok(Some(guard)) = asked.await {
                let _ = guard.release().await;
            }
        })
    }

    fn acquire(&self, ask: Ask) -> Local<'_, Result<Option<Rc<dyn Held>>, Failure>> {
        Box::pin(async move {
            let owner = OwnerId::new(OWNER);
            let handle = &self.handles[usize::from(ask.lock.0)];
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
