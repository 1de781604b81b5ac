//! The permits of the production client's expirable semaphore, kept either by their guard or by
//! their IDs alone.

use std::{cell::RefCell, rc::Rc, time::Duration};

use lockstorm_client::{Error, PermitGuard, PermitId, PermitSemaphore};

use super::{Ask, Failure, Held, Local, Patience, failure, not_so};

/// Acquires permits once.
pub(super) async fn acquired(semaphore: &PermitSemaphore, ask: Ask) -> Result<Option<Rc<dyn Held>>, Error> {
    let held = |guard| Permits { of: semaphore.clone(), held: RefCell::new(Some(Leasehold::Guard(guard))) };
    Ok(granted(semaphore, ask).await?.map(|guard| Rc::new(held(guard)) as Rc<dyn Held>))
}

async fn granted(semaphore: &PermitSemaphore, ask: Ask) -> Result<Option<PermitGuard>, Error> {
    let wanted = match ask.wait {
        Patience::Unbounded => {
            let wanted = semaphore.acquire(ask.permits);
            return match ask.lease {
                Some(lease) => wanted.lease(lease).await.map(Some),
                None => wanted.await.map(Some),
            };
        }
        Patience::For(wait) => semaphore.try_acquire_for(ask.permits, wait),
        Patience::None => semaphore.try_acquire(ask.permits),
    };
    match ask.lease {
        Some(lease) => wanted.lease(lease).await,
        None => wanted.await,
    }
}

/// Permits, until they are released.
struct Permits {
    of: PermitSemaphore,
    held: RefCell<Option<Leasehold>>,
}

/// The way in which permits are kept.
enum Leasehold {
    Guard(PermitGuard),
    /// By their IDs alone.
    Ids(Vec<PermitId>),
}

impl Held for Permits {
    fn release(&self) -> Local<'_, Result<(), Failure>> {
        Box::pin(async move {
            match self.held.take() {
                None => Ok(()),
                Some(Leasehold::Guard(guard)) => guard.release().await.map_err(failure),
                Some(Leasehold::Ids(ids)) => match self.of.release(&ids).await {
                    Ok(true) => Ok(()),
                    Ok(false) => Err(not_so("one of the permits is not out any more")),
                    Err(error) => {
                        // Keep the IDs for another release.
                        self.held.replace(Some(Leasehold::Ids(ids)));
                        Err(failure(error))
                    }
                },
            }
        })
    }

    fn extend(&self, lease: Duration) -> Local<'_, Result<(), Failure>> {
        Box::pin(async move {
            // Take the permits out: a borrow must not be held across an await.
            let Some(held) = self.held.take() else { return Ok(()) };
            let extended = match &held {
                Leasehold::Guard(guard) => guard.extend(lease).await.map_err(failure),
                Leasehold::Ids(ids) => updated(&self.of, ids, lease).await,
            };
            self.held.replace(Some(held));
            extended
        })
    }

    fn forget(&self) {
        let held = self.held.take().map(|held| match held {
            Leasehold::Guard(guard) => Leasehold::Ids(guard.forget()),
            ids @ Leasehold::Ids(_) => ids,
        });
        self.held.replace(held);
    }

    fn is_held(&self) -> bool {
        matches!(&*self.held.borrow(), Some(Leasehold::Guard(guard)) if guard.is_valid())
    }

    fn lost(&self) -> Local<'_, ()> {
        let lost = match &*self.held.borrow() {
            Some(Leasehold::Guard(guard)) => Some(guard.lost()),
            _ => None,
        };
        Box::pin(async move {
            match lost {
                Some(lost) => drop(lost.await),
                None => std::future::pending().await,
            }
        })
    }

    /// Returns the ID of the first permit.
    fn owner(&self) -> Option<String> {
        match &*self.held.borrow() {
            Some(Leasehold::Guard(guard)) => guard.ids().first().map(ToString::to_string),
            Some(Leasehold::Ids(ids)) => ids.first().map(ToString::to_string),
            None => None,
        }
    }

    fn token(&self) -> Option<u64> {
        None
    }
}

/// Sets a new lease on each of these permits.
async fn updated(of: &PermitSemaphore, ids: &[PermitId], lease: Duration) -> Result<(), Failure> {
    for id in ids {
        if !of.update_lease(*id, lease).await.map_err(failure)? {
            return Err(not_so("one of the permits is not out any more"));
        }
    }
    Ok(())
}
