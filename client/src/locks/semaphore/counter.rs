//! The number of permits of a semaphore, and what is done to it without a guard.

use std::pin::pin;
use std::sync::Arc;

use redis::{Cmd, Value};

use super::{ADD, Change, SET};
use crate::config::{PERMIT_MEMORY, millis};
use crate::env::within;
use crate::error::{Error, ErrorKind, Result};
use crate::keeper::{Patience, run_with_spent};
use crate::key::Key;
use crate::lock::check_name;
use crate::owner;
use crate::route::{Confirm, Router};
use crate::script::Call;
use crate::session::Session;
use crate::task::answer_of;
use crate::wire::unlock_latch;

/// The number of permits that are left, by the name of the semaphore.
#[derive(Clone)]
pub(crate) struct Counter {
    pub(crate) session: Arc<Session>,
    pub(crate) key: Key,
    /// The application gave a name, and its name mapper left something of it.
    is_named: bool,
}

impl Counter {
    pub(crate) fn new(session: Arc<Session>, name: &str) -> Self {
        let key = session.key(name);
        let is_named = check_name(name, &key).is_ok();
        Self { session, key, is_named }
    }

    pub(crate) fn router(&self) -> Result<&Router> {
        check_name(if self.is_named { &self.key } else { "" }, &self.key)?;
        Ok(&self.session.router)
    }

    /// How many permits are left; negative when more are out than there are.
    pub(crate) async fn left(&self) -> Result<i64> {
        let reply = self.ask(redis::cmd("GET").arg(&*self.key)).await?;
        let text = match &reply {
            Value::Nil => "0",
            Value::BulkString(text) => std::str::from_utf8(text).unwrap_or_default(),
            _ => "",
        };
        text.parse().map_err(|_| Error::unexpected(&reply))
    }

    pub(crate) async fn ask(&self, question: &Cmd) -> Result<Value> {
        self.router()?.ask(self.key.slot(), question).await
    }

    /// Sets the number of permits if there is none yet.
    pub(crate) async fn set(&self, permits: u32) -> Result<bool> {
        let reply = self.change(move |change, publish| change.call(&SET, publish).arg(permits)).await?;
        Ok(read_count(&reply)? == 1)
    }

    pub(crate) async fn add(&self, permits: i64) -> Result<()> {
        let reply = self.change(move |change, publish| change.call(&ADD, publish).arg(permits)).await?;
        read_count(&reply).map(drop)
    }

    /// Makes a change, which `write` puts into words with the command that publishes: once, however often it is sent. It is
    /// seen through in the background when the caller is gone, or its time is over.
    pub(crate) async fn change(
        &self,
        write: impl Fn(&Change<'_>, &str) -> Call + Send + Sync + 'static,
    ) -> Result<Value> {
        self.router()?;
        let (session, key) = (self.session.clone(), self.key.clone());
        let (env, time) = (session.ctx.env.clone(), session.config.call_timeout);
        let work = session.ctx.work.clone();
        if work.is_closing() {
            return Err(Error::definite(ErrorKind::Closed));
        }
        let under_way = work.begin();
        let limit = env.now() + time;
        let changed = answer_of(&*env, |answer| async move {
            // The caller may be gone.
            let _ = answer.send(run_once(&session, &key, write).await);
            drop(under_way);
        });
        let changed = within(&*env, limit, pin!(changed)).await;
        changed.unwrap_or_else(|| Err(Error::indefinite(ErrorKind::ResponseTimeout(time))))
    }
}

async fn run_once(
    session: &Session,
    key: &Key,
    write: impl Fn(&Change<'_>, &str) -> Call + Send + Sync,
) -> Result<Value> {
    // What is published how depends on what the servers are.
    session.router.made_ready().await?;
    let request = owner::request_id(session.env());
    let slot = session.router.together(key.slot());
    let memory_ms = millis(PERMIT_MEMORY);
    let call = |spent: &[String]| {
        let change = Change { key, request: &request, spent, memory_ms };
        write(&change, session.router.publish())
    };
    let patience = Patience::AsLongAsRemembered;
    let (reply, is_final) = run_with_spent(session, slot, patience, Confirm::AsConfigured, call).await?;
    if is_final {
        session.latches.add(slot, unlock_latch(key, &request), session.env().now(), PERMIT_MEMORY);
    }
    Ok(reply)
}

/// The number that a script replies.
pub(crate) fn read_count(reply: &Value) -> Result<i64> {
    if let Value::Int(count) = reply { Ok(*count) } else { Err(Error::unexpected(reply)) }
}
