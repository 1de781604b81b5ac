//! The number of permits of a semaphore, and the changes to it that involve no guard.

use std::pin::pin;
use std::sync::Arc;

use redis::{Cmd, Value};

use super::{ADD, Change, SET};
use crate::config::{PERMIT_MEMORY, PERMIT_PATIENCE, millis};
use crate::env::within;
use crate::error::{Error, ErrorKind, Result};
use crate::explain::explained;
use crate::keeper::run_with_spent;
use crate::key::Key;
use crate::lock::check_name;
use crate::owner;
use crate::rights::Rights;
use crate::route::{Confirm, OnFailure, Persistence, Router};
use crate::script::Call;
use crate::session::Session;
use crate::task::answer_of;
use crate::wire::unlock_latch;
use crate::work::Trouble;

/// The number of available permits of a named semaphore.
#[derive(Clone)]
pub(crate) struct Counter {
    pub(crate) session: Arc<Session>,
    pub(crate) key: Key,
    rights: &'static Rights,
    /// False if the application gave an empty name or its name mapper returned one.
    is_named: bool,
}

impl Counter {
    pub(crate) fn new(session: Arc<Session>, rights: &'static Rights, name: &str) -> Self {
        let key = session.key(name);
        let is_named = check_name(name, &key).is_ok();
        Self { session, key, rights, is_named }
    }

    pub(crate) fn router(&self) -> Result<&Router> {
        check_name(if self.is_named { &self.key } else { "" }, &self.key)?;
        Ok(&self.session.router)
    }

    /// Returns the number of available permits; negative if more are held than exist.
    pub(crate) async fn left(&self) -> Result<i64> {
        self.left_noting(&|_| ()).await
    }

    /// As [`Counter::left`]; reports each failed attempt to `failed`.
    pub(crate) async fn left_noting(&self, failed: OnFailure<'_>) -> Result<i64> {
        let mut question = redis::cmd("GET");
        let question = question.arg(&*self.key);
        let asked = self.router()?.ask_noting(self.key.slot(), question, failed).await;
        let reply = self.or_explained(asked).await?;
        let text = match &reply {
            Value::Nil => "0",
            Value::BulkString(text) => std::str::from_utf8(text).unwrap_or_default(),
            _ => "",
        };
        text.parse().map_err(|_| Error::unexpected(&reply))
    }

    pub(crate) async fn ask(&self, question: &Cmd) -> Result<Value> {
        let asked = self.router()?.ask(self.key.slot(), question).await;
        self.or_explained(asked).await
    }

    /// Runs a script that may run twice without harm.
    pub(crate) async fn run_repeatable(&self, call: &Call) -> Result<Value> {
        match self.router()?.run_repeatable(call).await {
            Err(error) => Err(self.explained(&call.keys(), error).await),
            done => done,
        }
    }

    /// Adds the missing right to `error`, a refusal of a request with these keys, if the user lacks
    /// one.
    pub(crate) async fn explained(&self, keys: &[String], error: Error) -> Error {
        Box::pin(explained(&self.session, self.rights, &self.key, keys, error)).await
    }

    /// Passes the outcome of a query about the key itself through, with an error explained.
    async fn or_explained(&self, asked: Result<Value>) -> Result<Value> {
        match asked {
            Err(error) => Err(self.explained(&[self.key.to_string()], error).await),
            asked => asked,
        }
    }

    /// Sets the number of permits if none is set yet. Returns true if it was set.
    pub(crate) async fn set(&self, permits: u32) -> Result<bool> {
        let reply = self.change(move |change, publish| change.call(&SET, publish).arg(permits)).await?;
        Ok(read_count(&reply)? == 1)
    }

    pub(crate) async fn add(&self, permits: i64) -> Result<()> {
        let reply = self.change(move |change, publish| change.call(&ADD, publish).arg(permits)).await?;
        read_count(&reply).map(drop)
    }

    /// Makes a change exactly once, however often the request is sent. `write` writes the call,
    /// given the change and the publish command. If the caller is gone or its time is over, the
    /// change is completed in the background.
    pub(crate) async fn change(
        &self,
        write: impl Fn(&Change<'_>, &str) -> Call + Send + Sync + 'static,
    ) -> Result<Value> {
        self.router()?;
        let (session, key, rights) = (self.session.clone(), self.key.clone(), self.rights);
        let (env, time) = (session.ctx.env.clone(), session.config.call_timeout);
        let work = session.ctx.work.clone();
        if work.is_closing() {
            return Err(Error::definite(ErrorKind::Closed));
        }
        let under_way = work.begin();
        let limit = env.now() + time;
        let trouble = Arc::new(Trouble::default());
        let noted = trouble.clone();
        let changed = answer_of(&*env, |answer| async move {
            // The caller may be gone.
            let _ = answer.send(run_once(&session, &key, rights, &noted, write).await);
            drop(under_way);
        });
        let changed = within(&*env, limit, pin!(changed)).await;
        changed.unwrap_or_else(|| Err(trouble.overdue(time)))
    }
}

async fn run_once(
    session: &Session,
    key: &Key,
    rights: &Rights,
    trouble: &Trouble,
    write: impl Fn(&Change<'_>, &str) -> Call + Send + Sync,
) -> Result<Value> {
    // The publish command depends on the servers, so find out first what they are.
    session.router.made_ready().await?;
    let request = owner::request_id(session.env());
    let slot = session.router.together(key.slot());
    let memory_ms = millis(PERMIT_MEMORY);
    let call = |spent: &[String]| {
        let change = Change { key, request: &request, spent, memory_ms };
        write(&change, session.router.publish())
    };
    let failed = |error: &Error| trouble.failed(error);
    let until = session.env().boottime() + PERMIT_PATIENCE;
    let persistence = Persistence { until, is_unlimited: true, memory: PERMIT_MEMORY, failed: &failed };
    let done = run_with_spent(session, slot, Confirm::AsConfigured, &persistence, call).await;
    let done = match done {
        Ok(done) => done,
        Err(error) => {
            let written = call(&[]);
            return Err(Box::pin(explained(session, rights, key, &written.keys(), error)).await);
        }
    };
    if done.is_final {
        session.latches.add(slot, unlock_latch(key, &request), session.env().now(), PERMIT_MEMORY);
    }
    Ok(done.reply)
}

/// Reads an integer reply.
pub(crate) fn read_count(reply: &Value) -> Result<i64> {
    if let Value::Int(count) = reply { Ok(*count) } else { Err(Error::unexpected(reply)) }
}
