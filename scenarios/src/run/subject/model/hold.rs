//! A lock that a model believes it holds, and the watchdog that renews it.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Duration,
};

use lockstorm_client::Env;
use redis::Value;
use tokio::sync::Notify;

use super::{commands::granted, lock::Shared, wire::Failed};
use crate::{
    file::scenario::traits::{Key, Release, Renewal},
    judge::history::{Deadline, Mode, Owner, Reason},
    run::subject::{Ask, Failure, Held, Local},
};

/// A lock that the model believes it holds.
pub(super) struct Hold {
    shared: Rc<Shared>,
    token: String,
    fence: Option<u64>,
    mode: Mode,
    lease: Duration,
    until: Cell<Option<i64>>,
    over: Cell<bool>,
    ended: Notify,
    renewal: RefCell<Option<tokio::task::AbortHandle>>,
}

impl Hold {
    /// Begins the model's belief that it holds the lock, and records it.
    pub(super) fn begin(
        shared: &Rc<Shared>,
        token: String,
        fence: Option<u64>,
        ask: Ask,
        lease: Duration,
        until: Option<i64>,
    ) -> Rc<Hold> {
        let hold = Rc::new(Hold {
            shared: shared.clone(),
            token,
            fence,
            mode: ask.mode,
            lease,
            until: Cell::new(until),
            over: Cell::default(),
            ended: Notify::new(),
            renewal: RefCell::default(),
        });
        shared.holds.set(shared.holds.get() + 1);
        hold.tell();
        if ask.lease.is_none() && shared.traits.renewal != Renewal::Never {
            let task = tokio::task::spawn_local(renew(hold.clone()));
            shared.renewals.borrow_mut().push(task.abort_handle());
            hold.renewal.replace(Some(task.abort_handle()));
        }
        hold
    }

    /// Records the model's current belief.
    fn tell(&self) {
        // All levels of a counting lock belong to one owner. Of any other lock each hold has an
        // owner of its own.
        let count = if self.shared.traits.key == Key::Count { self.shared.holds.get() } else { 1 };
        self.shared.history.believes(self.owner(), self.deadline(), self.fence, count, self.mode);
    }

    fn owner(&self) -> Owner {
        self.shared.history.holder(&self.token)
    }

    fn deadline(&self) -> Option<Deadline> {
        self.until.get().map(|until| self.shared.traits.clock.deadline(until))
    }

    fn end(&self, why: Reason) {
        if !self.over.replace(true) {
            let left = self.shared.holds.get().saturating_sub(1);
            self.shared.holds.set(left);
            if left == 0 || self.shared.traits.key != Key::Count {
                self.shared.history.disbelieves(self.owner(), why, self.mode);
            }
            self.ended.notify_waiters();
        }
    }
}

impl Hold {
    /// Sends the release to the nodes. Returns the failure of the first node that has not answered,
    /// or has answered with an error.
    async fn ask_release(&self) -> Option<Failed> {
        let shared = &self.shared;
        if shared.traits.release == Release::GetThenDelete {
            match shared.wires[0].ask(&shared.commands.look(), shared.timeout).await {
                Ok(Value::BulkString(token)) if token == self.token.as_bytes() => {}
                Ok(_) => return None,
                Err(failed) => return Some(failed),
            }
        }
        let answers = shared.ask_all(&shared.commands.release(&self.token, self.mode)).await;
        answers.into_iter().find_map(Result::err)
    }
}

impl Shared {
    /// Returns true if this answer means that the lease was renewed.
    fn renews(&self, answer: &Value) -> bool {
        granted(answer).is_some() || self.traits.renewal == Renewal::AnyAnswer
    }

    /// Returns true if this answer to the watchdog means that the lease was renewed or, for a
    /// watchdog that only looks, that the owner still holds the lock.
    fn extended(&self, answer: &Value, token: &str) -> bool {
        match (self.traits.renewal, answer) {
            (Renewal::Looks, Value::BulkString(found)) => found == token.as_bytes(),
            _ => self.renews(answer),
        }
    }
}

/// The watchdog of one hold.
async fn renew(hold: Rc<Hold>) {
    let shared = &hold.shared;
    loop {
        shared.env.sleep_until(shared.env.now() + hold.lease / 3).await;
        if hold.over.get() && shared.traits.cancels {
            return;
        }
        let asked_at = shared.traits.clock.now(&shared.env);
        let asked = match shared.traits.renewal {
            Renewal::Looks => shared.commands.look(),
            _ => shared.commands.renew(&hold.token, hold.lease, hold.mode, &shared.time()),
        };
        let answers = shared.ask_all(&asked).await;
        let said = |yes: bool| {
            answers.iter().flatten().filter(|answer| shared.extended(answer, &hold.token) == yes).count()
        };
        let (renewed, refused) = (said(true), said(false));
        let quorum = shared.quorum();
        match shared.traits.renewal {
            // The model believes that it holds the lock as long as any node renews.
            Renewal::EachNode | Renewal::Anybody | Renewal::Recreate if renewed > 0 => {}
            Renewal::UntilFailure if renewed < quorum => return,
            _ if renewed >= quorum => {}
            // Too many nodes have refused: the silent ones cannot make a quorum.
            _ if shared.wires.len() - refused < quorum => return hold.end(Reason::Lost),
            _ => continue,
        }
        if hold.until.get().is_some() && shared.traits.renewal != Renewal::Looks {
            hold.until.set(Some(asked_at.saturating_add(shared.length(hold.lease))));
        }
        if !hold.over.get() {
            hold.tell();
        }
    }
}

impl Held for Hold {
    fn release(&self) -> Local<'_, Result<(), Failure>> {
        Box::pin(async move {
            if let Some(renewal) = self.renewal.take().filter(|_| self.shared.traits.cancels) {
                renewal.abort();
            }
            if self.shared.traits.renewal == Renewal::UntilAnyRelease {
                self.shared.renewals.take().iter().for_each(tokio::task::AbortHandle::abort);
            }
            self.end(Reason::Released);
            let Some(failed) = self.ask_release().await else { return Ok(()) };
            if self.shared.wires.len() > 1 {
                return Ok(());
            }
            if failed.replied {
                return Err(Failure::from(failed));
            }
            // The next attempt must not wait for a reply on this silent connection.
            self.shared.wires.iter().for_each(|wire| wire.hang_up());
            if self.shared.traits.resend_release && self.ask_release().await.is_none() {
                return Ok(());
            }
            Err(Failure::from(failed))
        })
    }

    fn extend(&self, lease: Duration) -> Local<'_, Result<(), Failure>> {
        Box::pin(async move {
            let shared = &self.shared;
            let asked_at = shared.traits.clock.now(&shared.env);
            let renew = shared.commands.renew(&self.token, lease, self.mode, &shared.time());
            let answers = shared.ask_all(&renew).await;
            let extended = answers.iter().flatten().filter(|answer| shared.renews(answer)).count();
            if extended < shared.quorum() {
                return Err(Failure { definite: false, message: format!("{extended} nodes extended") });
            }
            if self.until.get().is_some() {
                self.until.set(Some(asked_at.saturating_add(shared.length(lease))));
            }
            self.tell();
            Ok(())
        })
    }

    fn is_held(&self) -> bool {
        let now = self.shared.traits.clock.now(&self.shared.env);
        !self.over.get() && self.until.get().is_none_or(|until| now < until)
    }

    fn lost(&self) -> Local<'_, ()> {
        Box::pin(async move {
            while self.is_held() {
                let Some(until) = self.until.get() else {
                    self.ended.notified().await;
                    continue;
                };
                let left = u64::try_from(until - self.shared.traits.clock.now(&self.shared.env)).unwrap_or(0);
                tokio::select! {
                    biased;
                    () = self.ended.notified() => {}
                    () = self.shared.env.sleep_until(self.shared.env.now() + Duration::from_nanos(left.max(1))) => {}
                }
            }
        })
    }

    fn owner(&self) -> Option<String> {
        Some(self.token.clone())
    }

    fn token(&self) -> Option<u64> {
        self.fence
    }
}
