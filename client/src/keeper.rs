//! Releases and extends the holds of locks on one master.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use redis::Value;

use crate::attempt::{Lease, Unlock};
use crate::config::{PERMIT_MEMORY, PERMIT_PATIENCE, millis};
use crate::env::Boottime;
use crate::error::{Error, Result};
use crate::explain::explained;
use crate::guard::not_held;
use crate::hold::{Hold, Keeper, OwnerState};
use crate::observer::LossCause;
use crate::owner;
use crate::route::{Confirm, Persistence, Remembered};
use crate::script::Call;
use crate::session::Session;
use crate::wire::{self, Slot};

/// The keeper of the holds of one owner on one lock.
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

    fn overdue(&self, time: Duration) -> Error {
        self.owner.trouble.overdue(time)
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
        let lasts = self.owner.lasts_until();
        match give_back(&self.session, &*self.kind, &self.owner, Confirm::AsConfigured, lasts).await? {
            true => Ok(()),
            false => Err(not_held(hold)),
        }
    }
}

/// Releases one level of the owner `of`. Returns false if the server has none. The caller holds the
/// owner's `serial`, and has already stopped counting the level. Retries until the server has no
/// level left: until `lasts`, or, for kinds whose grants never expire, for a time in which the
/// server still remembers the request.
///
/// To undo a grant that does not count, pass [`Confirm::No`]: the missing confirmation by replicas
/// may be the reason for the undo.
pub(crate) async fn give_back(
    session: &Session,
    kind: &dyn Lease,
    of: &OwnerState,
    confirm: Confirm,
    lasts: Boottime,
) -> Result<bool> {
    let OwnerState { key, owner, trouble, .. } = of;
    let request = owner::request_id(session.env());
    let slot = session.router.together(key.slot());
    let memory = if kind.renewal().is_none() { PERMIT_MEMORY } else { session.config.latch_ttl() };
    let now = session.env().boottime();
    let most = now + PERMIT_PATIENCE;
    let until = if kind.renewal().is_none() {
        most
    } else {
        // The caller still gets the servers' error, even if the lease ends before that.
        lasts.max(now + session.config.call_timeout).min(most)
    };
    let failed = |error: &Error| trouble.failed(error);
    let persistence = Persistence { until, is_unlimited: true, memory, failed: &failed };
    let call = |spent: &[String]| {
        kind.release(&Unlock {
            key,
            owner,
            request: &request,
            remaining_ms: millis(of.longest_validity()).max(1),
            latch_ms: millis(memory),
            spent,
            now_ms: millis(session.env().wall().0),
            publish: session.router.publish(),
        })
    };
    if !kind.is_remembered() {
        let done = session.router.run_persistently(&call(&[]), confirm, &persistence).await;
        trouble.end();
        return match done {
            Ok(Remembered { reply: Value::Int(1), .. }) => Ok(true),
            // If nothing is held after a lost reply, the earlier request has released it.
            Ok(Remembered { reply: Value::Int(0), was_lost, .. }) => Ok(was_lost),
            Ok(Remembered { reply, .. }) => Err(Error::unexpected(&reply)),
            Err(error) => {
                Err(Box::pin(explained(session, kind.rights(), key, &call(&[]).keys(), error)).await)
            }
        };
    }
    let counted = kind.counted(key).map(|channel| (session.hub.listening(&channel), channel));
    let mut done = run_with_spent(session, slot, confirm, &persistence, call).await;
    if let (true, Some(script)) = (is_refused(&done), kind.release_without_latch()) {
        // Boxed because it is rare: it must not enlarge every release.
        let call = call(&[]).without_latch(script);
        let is_last = of.levels(&kind.parts(), now).iter().all(|levels| levels.most == 0);
        done = Box::pin(give_back_without_latch(session, &call, confirm, &persistence, is_last)).await;
    }
    trouble.end();
    let done = match done {
        Ok(done) => done,
        Err(error) => {
            let keys = call(&[]);
            return Err(Box::pin(explained(session, kind.rights(), key, &keys.keys(), error)).await);
        }
    };
    match done.reply {
        Value::Int(freed) => {
            if let (Some((listening, channel)), 1..) = (&counted, freed) {
                session.hub.released(channel, u32::try_from(freed - 1).unwrap_or(u32::MAX), *listening);
            }
            // If an earlier request may still be in transit, keep the latch: that request must find
            // the result.
            if done.is_final {
                let latch = wire::unlock_latch(key, &request);
                session.latches.add(slot, latch, session.env().now(), memory);
            }
            Ok(true)
        }
        Value::Nil => Ok(false),
        other => Err(Error::unexpected(&other)),
    }
}

fn is_refused(done: &Result<Remembered>) -> bool {
    matches!(done, Err(error) if error.is_server("NOPERM") && error.is_definite())
}

/// Runs a release that the server does not remember. If the owner has no other level, a retry does
/// no harm once the earlier request cannot be executed any more. If it has others, a retry would
/// take one of them, so no retry follows a lost reply.
async fn give_back_without_latch(
    session: &Session,
    call: &Call,
    confirm: Confirm,
    persistence: &Persistence<'_>,
    is_last: bool,
) -> Result<Remembered> {
    let router = &session.router;
    let done = if is_last {
        router.run_persistently(call, confirm, persistence).await?
    } else {
        let once = Persistence { memory: Duration::ZERO, ..*persistence };
        router.run_remembered(call, confirm, &once).await?
    };
    // If nothing is held after a lost reply, the earlier request has released it.
    let reply = if done.was_lost && done.reply == Value::Nil { Value::Int(1) } else { done.reply };
    Ok(Remembered { reply, is_final: false, ..done })
}

/// Runs a call that the server remembers and that also deletes spent latches. These may belong to
/// other locks, to which this user may have lost the right. Such a refusal says nothing about the
/// call itself, which is then sent without them.
pub(crate) async fn run_with_spent(
    session: &Session,
    slot: Slot,
    confirm: Confirm,
    persistence: &Persistence<'_>,
    call: impl Fn(&[String]) -> Call + Send,
) -> Result<Remembered> {
    let router = &session.router;
    let spent = session.latches.take(slot, session.env().now());
    let with = call(&spent);
    let refused = match router.run_remembered(&with, confirm, persistence).await {
        Err(error) if error.is_server("NOPERM") && !spent.is_empty() => error,
        done => return done,
    };
    let without = call(&[]);
    let done = router.run_remembered(&without, confirm, persistence).await?;
    // The reply to a request before the refused one may have been lost.
    let is_final = done.is_final && refused.is_definite();
    Ok(Remembered { is_final, ..done })
}

/// Deletes the latches that no further release will delete. Any that remain expire.
pub(crate) async fn delete_latches(session: &Session) {
    while let Some(slot) = session.latches.any_slot() {
        let spent = session.latches.take(slot, session.env().now());
        if !spent.is_empty() && session.router.ask_once(slot, redis::cmd("DEL").arg(spent)).await.is_err() {
            return;
        }
    }
}
