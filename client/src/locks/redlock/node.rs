//! One node of a Redlock, which is set, extended and freed independently of the others.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use redis::Value;
use tokio::sync::{mpsc, oneshot};

use super::word::{Fate, Word};
use crate::config::millis;
use crate::env::{Boottime, pause, within};
use crate::error::{Error, Result};
use crate::explain::explained_alone;
use crate::key::Key;
use crate::rights;
use crate::route::{Request, RequestPath};
use crate::script::{Call, script};
use crate::session::Session;
use crate::work::Trouble;

script!(RELEASE, "release.lua");
script!(EXTEND, "extend.lua");

/// A node's answer to the request for the lock, or for its extension.
pub(super) enum Vote {
    Yes,
    No,
    /// The node was not reached or did not answer. It may have said yes.
    Unknown(Error),
}

/// The request to all nodes in one acquisition.
#[derive(Clone)]
pub(super) struct Claim {
    pub(super) lock: Key,
    /// Random, and never used for a second acquisition, so that a late request cannot be mistaken
    /// for a newer one.
    pub(super) value: String,
    pub(super) lease: Duration,
}

impl Claim {
    fn set(&self, lease: Duration) -> redis::Cmd {
        let mut command = redis::cmd("SET");
        command.arg(&*self.lock).arg(&self.value).arg("NX").arg("PX").arg(millis(lease));
        command
    }

    fn release(&self) -> Call {
        RELEASE.call([&*self.lock]).arg(&self.value)
    }

    /// Writes the command that does what [`Claim::release`] does, where servers have it: Valkey
    /// from version 9.0 on.
    fn release_by_command(&self) -> redis::Cmd {
        let mut command = redis::cmd("DELIFEQ");
        command.arg(&*self.lock).arg(&self.value);
        command
    }
}

/// Sets one node, then serves it until its fate is known. For each deadline from `again` it sets
/// the lock once more on a node that has lost it. The release is sent after the last request on the
/// same connection. So it also frees what a request in transit sets, and no request follows it.
pub(super) async fn claim(
    session: Arc<Session>,
    claim: Claim,
    votes: mpsc::Sender<Vote>,
    word: Arc<Word>,
    freed: mpsc::Sender<Result<bool>>,
    mut again: mpsc::Receiver<Boottime>,
) {
    let env = session.ctx.env.clone();
    // Kept until the node has answered, or until the possible request was undone.
    let Ok(unanswered) = session.claims.clone().try_acquire_owned() else {
        let _ = votes.send(Vote::Unknown(Error::definite(session.config.no_reply().kind().clone()))).await;
        let _ = freed.send(Ok(false)).await;
        return;
    };
    let mut unanswered = Some(unanswered);
    let mut path = None;
    let fate = {
        let attended = async {
            let reply = set(&session, &claim, &mut path, || claim.lease).await;
            if reply.is_ok() || path.is_none() {
                unanswered = None;
            }
            // The count may have ended without this vote.
            let reply = reply.map_err(|error| explained_alone(&rights::REDLOCK, &claim.lock, error));
            let _ = votes.send(vote(reply)).await;
            while let Some(until) = again.recv().await {
                // This vote is not counted: the next renewal sees if the node has the lock.
                let _ = set(&session, &claim, &mut path, || until - env.boottime()).await;
            }
            std::future::pending().await
        };
        tokio::select! {
            biased;
            fate = attended => fate,
            fate = word.told() => fate,
        }
    };
    if fate == Fate::Left {
        return;
    }
    let Some(path) = path else {
        // Nothing was sent, so there is nothing to free.
        let _ = freed.send(Ok(false)).await;
        return;
    };
    let _under_way = session.ctx.work.begin();
    let limit = env.now() + claim.lease + session.config.response_timeout;
    let done = match within(&*env, limit, pin!(free(&session, &claim, path, &word.trouble))).await {
        Some(done) => done,
        None => Err(word.trouble.overdue(session.config.response_limit())),
    };
    drop(unanswered);
    let _ = freed.send(done).await;
}

/// Sets one node, if no owner has it, for the time that `left` returns when the request is sent.
/// `path` is set as soon as anything may have been sent.
async fn set(
    session: &Session,
    claim: &Claim,
    path: &mut Option<RequestPath>,
    left: impl Fn() -> Duration + Send,
) -> Result<Value> {
    let slot = claim.lock.slot();
    // Taking a path on a new connection ends the old one, as in `free`.
    let path = path.insert(session.router.path(slot).await?);
    let lease = left();
    if millis(lease) == 0 {
        return Ok(Value::Nil);
    }
    session.router.once(slot, path, &Request::Question(&claim.set(lease))).await
}

fn vote(reply: Result<Value>) -> Vote {
    match reply {
        Ok(Value::Okay) => Vote::Yes,
        Ok(Value::Nil) => Vote::No,
        Ok(other) => Vote::Unknown(Error::unexpected(&other)),
        Err(error) => Vote::Unknown(error),
    }
}

/// Retries until the node answers. The caller stops it once the lease has ended.
async fn free(session: &Session, claim: &Claim, mut path: RequestPath, trouble: &Trouble) -> Result<bool> {
    let (env, slot) = (session.env(), claim.lock.slot());
    let call = claim.release();
    let mut repeats = 0;
    loop {
        match free_once(session, claim, &mut path, &call).await {
            Ok(Value::Int(freed)) => return Ok(freed == 1),
            Ok(other) => return Err(Error::unexpected(&other)),
            Err(error) if error.is_final() => return Err(error),
            Err(error) => trouble.failed(&error),
        }
        pause(env, session.config.retry_delay(env, repeats)).await;
        repeats += 1;
        // Taking a path on a new connection ends the old one, so no request in transit there
        // arrives after this release.
        if let Ok(next) = session.router.path(slot).await {
            path = next;
        }
    }
}

/// Frees one node by a command, or by the script `call` where the command does not exist.
///
/// There is no such command for an extension: `SET` with `IFEQ` would shorten a longer lease, and
/// does not distinguish a node that has lost the lock.
async fn free_once(session: &Session, claim: &Claim, path: &mut RequestPath, call: &Call) -> Result<Value> {
    let slot = claim.lock.slot();
    if path.connection.may_compare() {
        let command = claim.release_by_command();
        match session.router.once(slot, path, &Request::Question(&command)).await {
            // The user may have the rights that the script needs.
            Err(error) if error.is_unknown_command() || error.is_server("NOPERM") => {
                path.connection.cannot_compare();
            }
            // As in the script: a key of another kind belongs to another owner.
            Err(error) if error.is_server("WRONGTYPE") => return Ok(Value::Int(0)),
            done => return done,
        }
    }
    session.router.once(slot, path, &Request::Unconfirmed(call)).await
}

/// Asks one node for an extension. A node that has lost the lock says no. If a majority has
/// `granted` the extension, the lock is set `again` on that node.
pub(super) async fn extend(
    session: Arc<Session>,
    claim: Claim,
    lease: Duration,
    votes: mpsc::Sender<Vote>,
    granted: oneshot::Receiver<Boottime>,
    again: mpsc::Sender<Boottime>,
) {
    let call = EXTEND.call([&*claim.lock]).arg(&claim.value).arg(millis(lease));
    let asked = async {
        let mut path = session.router.path_of(&call).await?;
        session.router.once(call.slot(), &mut path, &Request::Unconfirmed(&call)).await
    };
    // An answer that takes longer than the requested lease is worthless.
    let limit = session.env().now() + lease;
    let reply = within(session.env(), limit, pin!(asked)).await;
    let is_missing = matches!(reply, Some(Ok(Value::Int(-1))));
    let vote = match reply {
        Some(Ok(Value::Int(1))) => Vote::Yes,
        Some(Ok(Value::Int(_))) => Vote::No,
        Some(Ok(other)) => Vote::Unknown(Error::unexpected(&other)),
        Some(Err(error)) => Vote::Unknown(error),
        None => Vote::Unknown(session.config.no_reply()),
    };
    // The count may have ended without this vote.
    let _ = votes.send(vote).await;
    if is_missing && let Ok(until) = granted.await {
        // If the channel is full, the node is already about to be set again.
        let _ = again.try_send(until);
    }
}
