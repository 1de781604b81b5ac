//! Giving back and extending the holds of single-server locks.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use redis::Value;

use crate::attempt::{Lease, Unlock};
use crate::config::{PERMIT_MEMORY, PERMIT_PATIENCE, millis};
use crate::env::pause;
use crate::error::{Error, Result};
use crate::guard::not_held;
use crate::hold::{Hold, Keeper, OwnerState};
use crate::observer::LossCause;
use crate::owner;
use crate::route::Confirm;
use crate::script::Call;
use crate::session::Session;
use crate::wire::{self, Slot};

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

    fn forget(self: Arc<Self>, hold: Arc<Hold>) -> Option<BoxFuture<'static, ()>> {
        self.session.watchdog.forget(&hold);
        None
    }

    fn extend(self: Arc<Self>, hold: Arc<Hold>, lease: Duration) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            let Some(renewal) = self.kind.renewal() else { return Ok(()) };
            let call = renewal.call_one(lease, &hold.key, &hold.owner, &hold.parts);
            let sent = self.session.env().boottime();
            self.owner.may_last(sent, self.session.config.call_timeout, lease);
            let reply = self.session.router.run_repeatable(&call).await?;
            if !renewal.read_one(&reply)? {
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
    let is_endless = kind.renewal().is_none();
    let (patience, latch_life) = if is_endless {
        (Patience::AsLongAsRemembered, PERMIT_MEMORY)
    } else {
        (Patience::AsConfigured, session.config.latch_ttl())
    };
    let call = |spent: &[String]| {
        kind.release(&Unlock {
            key,
            owner,
            request: &request,
            remaining_ms: millis(of.longest_validity()).max(1),
            latch_ms: millis(latch_life),
            spent,
            now_ms: millis(session.env().wall().0),
            publish: session.router.publish(),
        })
    };
    let (reply, is_final) = run_with_spent(session, slot, patience, confirm, call).await?;
    match reply {
        Value::Int(_) => {
            // Where a request may still be on its way, it must find the result of the one that was faster.
            if is_final {
                let latch = wire::unlock_latch(key, &request);
                session.latches.add(slot, latch, session.env().now(), latch_life);
            }
            Ok(true)
        }
        Value::Nil => Ok(false),
        other => Err(Error::unexpected(&other)),
    }
}

/// For how long a call that the server remembers is repeated.
#[derive(Clone, Copy)]
pub(crate) enum Patience {
    AsConfigured,
    /// As [`run_patiently`].
    AsLongAsRemembered,
}

/// Runs a call that the server remembers, and that deletes the spent latches it is written with. They are those of other
/// locks too, which this user may have lost the right to: such a refusal says nothing about the call, which is then sent
/// without them. Also says whether the reply is final.
pub(crate) async fn run_with_spent(
    session: &Session,
    slot: Slot,
    patience: Patience,
    confirm: Confirm,
    call: impl Fn(&[String]) -> Call + Send,
) -> Result<(Value, bool)> {
    let spent = session.latches.take(slot, session.env().now());
    let with = call(&spent);
    let refused = match run(session, patience, &with, confirm).await {
        Err(error) if error.is_server("NOPERM") && !spent.is_empty() => error,
        done => return done,
    };
    let without = call(&[]);
    let (reply, is_final) = run(session, patience, &without, confirm).await?;
    // A request before the refused one may have gone without a reply.
    Ok((reply, is_final && refused.is_definite()))
}

async fn run(session: &Session, patience: Patience, call: &Call, confirm: Confirm) -> Result<(Value, bool)> {
    match patience {
        Patience::AsConfigured => session.router.run_remembered(call, confirm).await,
        Patience::AsLongAsRemembered => run_patiently(session, call, confirm).await,
    }
}

/// Runs a call that the server remembers for [`PERMIT_MEMORY`], again and again for as long as it can be out of reach: what is
/// not given back is gone for good. Also says whether the reply is final, as [`run_remembered`](crate::route::Router).
async fn run_patiently(session: &Session, call: &Call, confirm: Confirm) -> Result<(Value, bool)> {
    let env = session.env();
    let (begun, mut rounds) = (env.boottime(), 0);
    loop {
        let done = session.router.run_remembered(call, confirm).await;
        match done {
            // A request of an earlier round may be under way still.
            Ok((reply, is_final)) => return Ok((reply, is_final && rounds == 0)),
            Err(error)
                if (error.is_transient() || error.is_lost_reply())
                    && env.boottime() - begun < PERMIT_PATIENCE
                    && !session.ctx.work.is_closing() =>
            {
                pause(env, session.config.retry_delay(env, rounds)).await;
                rounds = rounds.saturating_add(1);
            }
            // What an earlier round sent may have been obeyed.
            Err(error) if rounds > 0 => return Err(error.made_indefinite()),
            Err(error) => return Err(error),
        }
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
