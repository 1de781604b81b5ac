//! Giving back and extending the holds of single-server locks.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use redis::Value;

use crate::attempt::{Lease, Unlock};
use crate::config::millis;
use crate::error::{Error, Result};
use crate::guard::not_held;
use crate::hold::{Hold, Keeper, OwnerState};
use crate::observer::LossCause;
use crate::owner;
use crate::route::Confirm;
use crate::session::Session;
use crate::wire;

/// Keeps the holds of one owner on one lock.
pub(crate) struct Held {
    pub(crate) session: Arc<Session>,
    pub(crate) kind: Arc<dyn Lease>,
    pub(crate) owner: Arc<OwnerState>,
}

impl Keeper for Held {
    fn release(self: Arc<Self>, hold: Arc<Hold>) -> BoxFuture<'static, Result<()>> {
        // Before anything is sent, so that no renewal follows the release.
        self.session.watchdog.forget(&hold);
        Box::pin(async move {
            let done = self.release_one_level(&hold).await;
            hold.released(done.as_ref().err());
            done
        })
    }

    fn extend(self: Arc<Self>, hold: Arc<Hold>, lease: Duration) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            let call = self.kind.renewal().call_one(lease, &hold.key, &hold.owner);
            let sent = self.session.env().boottime();
            let reply = self.session.router.run_repeatable(&call).await?;
            if !self.kind.renewal().read_one(&reply)? {
                hold.lose(LossCause::NotHeld);
                return Err(not_held(&hold));
            }
            hold.renewed(sent, lease);
            if hold.is_valid() { Ok(()) } else { Err(not_held(&hold)) }
        })
    }
}

impl Held {
    async fn release_one_level(&self, hold: &Hold) -> Result<()> {
        let _serial = self.owner.serial.lock().await;
        let superseded = self.owner.superseded(hold);
        self.owner.remove(hold.number);
        if superseded {
            return Err(not_held(hold));
        }
        match give_back(&self.session, &*self.kind, &self.owner, Confirm::AsConfigured).await? {
            true => Ok(()),
            false => Err(not_held(hold)),
        }
    }
}

/// Gives one level of what `owner` has back; false when it had none. Called with its `serial`, when the level is no longer
/// counted there.
///
/// To take a grant back that does not count, no replica needs to confirm it: there may be none, which is why.
pub(crate) async fn give_back(
    session: &Session,
    kind: &dyn Lease,
    of: &OwnerState,
    confirm: Confirm,
) -> Result<bool> {
    let OwnerState { key, owner, .. } = of;
    let request = owner::request_id(session.env());
    let slot = session.router.together(key.slot());
    let spent = session.latches.take(slot, session.env().now());
    let latch_life = session.config.latch_ttl();
    let call = kind.release(&Unlock {
        key,
        owner,
        request: &request,
        remaining_ms: millis(of.longest_validity()).max(1),
        latch_ms: millis(latch_life),
        spent: &spent,
        now_ms: millis(session.env().wall().0),
        publish: session.router.publish(),
    });
    match session.router.run_remembered(&call, confirm).await? {
        (Value::Int(_), is_final) => {
            // Where a request may still be on its way, it must find the result of the one that was faster.
            if is_final {
                let latch = wire::unlock_latch(key, &request);
                session.latches.add(slot, latch, session.env().now(), latch_life);
            }
            Ok(true)
        }
        (Value::Nil, _) => Ok(false),
        (other, _) => Err(Error::unexpected(&other)),
    }
}

/// Deletes the latches that no further release will delete. Those that this does not reach end by themselves.
pub(crate) async fn delete_latches(session: &Session) {
    while let Some(slot) = session.latches.any_slot() {
        let spent = session.latches.take(slot, session.env().now());
        if !spent.is_empty() && session.router.ask_once(slot, redis::cmd("DEL").arg(spent)).await.is_err() {
            return;
        }
    }
}
