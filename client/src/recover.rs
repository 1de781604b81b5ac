//! Finds out the outcome of a request whose reply may be lost. Knows no kind of lock.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Fuse};
use redis::{Cmd, Value};

use crate::endpoint::Endpoint;
use crate::env::{Boottime, Monotonic, within};
use crate::error::{Error, Result};
use crate::hold::Told;
use crate::mutex::locked;
use crate::route::{Confirmation, Node, OnFailure, Repeats, Request, RequestPath};
use crate::script::Call;
use crate::session::Session;
use crate::wait::Caller;
use crate::wire::Slot;

/// A reply that may still come. Pending forever once it has failed.
type Reply = Fuse<BoxFuture<'static, Result<Replied>>>;

/// A request under way.
pub(crate) struct Pending {
    /// The path on which the request was last sent.
    path: Arc<Mutex<RequestPath>>,
    reply: Reply,
}

/// A reply and its confirmation.
pub(crate) struct Replied {
    pub(crate) value: Value,
    /// The confirmation that a grant needs, and the server that was asked for it.
    confirmation: Option<Box<(Confirmation, Endpoint)>>,
    /// The replies to the commands of the confirmation.
    replies: Vec<Value>,
    /// The node that replied. Its connection is not kept: it may have been given up.
    node: Arc<Node>,
}

impl Replied {
    /// Checks that the change is confirmed.
    pub(crate) fn confirmed(&self) -> Result<()> {
        let Some((confirmation, endpoint)) = self.confirmation.as_deref() else { return Ok(()) };
        self.node.confirmed(endpoint, confirmation, &self.replies)
    }
}

/// The outcome of a request without a reply.
pub(crate) enum Recovered<F> {
    /// The reply came late.
    Replied(Replied),
    /// The request was executed, according to the answers to queries that were sent from this
    /// moment on.
    Obeyed(F, Boottime),
    /// The request was not executed, and never will be.
    Never,
    /// Unknown: the request may have been executed or may still be. The server does not let this
    /// user end connections.
    Unknown,
    /// Undecided: the request may have been executed. The server refuses the queries, or its
    /// answers do not decide, and further queries would not help.
    Untold {
        /// True if the request cannot be executed any more.
        is_fenced: bool,
    },
}

/// The queries that show if a request was executed.
pub(crate) struct Probe<R> {
    pub(crate) slot: Slot,
    /// Read-only commands.
    pub(crate) questions: Vec<Cmd>,
    /// Reads the answers to queries that were sent from the given moment on. After an error,
    /// further queries would not help.
    pub(crate) read: R,
}

impl Pending {
    /// Sends `call`, followed by the commands of its confirmation, and follows redirections.
    pub(crate) fn send(
        session: &Session,
        path: RequestPath,
        call: Call,
        confirmation: Option<Confirmation>,
    ) -> Self {
        let (at, router) = (Arc::new(Mutex::new(path.clone())), session.router.clone());
        let last = at.clone();
        let reply = async move {
            let (mut path, mut confirmation, mut trail) = (path, confirmation, router.trail(call.slot()));
            loop {
                let error = match path.run(&call, confirmation.as_ref()).await {
                    Ok((value, replies)) => {
                        let RequestPath { node, connection, .. } = path;
                        let confirmation =
                            confirmation.map(|one| Box::new((one, connection.endpoint.clone())));
                        return Ok(Replied { value, confirmation, replies, node });
                    }
                    Err(error) => error,
                };
                Box::pin(router.follow(&mut path, &mut trail, error, call.key())).await?;
                *locked(&last) = path.clone();
                confirmation = path.confirmation().await.map_err(Error::made_definite)?;
            }
        };
        Self { path: at, reply: reply.boxed().fuse() }
    }

    /// Returns the reply. After an indefinite error call [`Pending::recover`].
    pub(crate) async fn reply(&mut self) -> Result<Replied> {
        let node = locked(&self.path).node.clone();
        let replied = node.reply_in_time(|| locked(&self.path).replaced(), &mut self.reply).await;
        let path = locked(&self.path).clone();
        path.verified(replied)
    }

    /// Finds out the outcome after the request failed with `error`. If that takes long, the caller
    /// gets an error first. The effect of the request, if it was executed, expires after `lease`.
    pub(crate) async fn recover<T, F, R>(
        mut self,
        session: &Session,
        caller: &mut Caller<T>,
        error: &Error,
        lease: Duration,
        probe: Probe<R>,
    ) -> Recovered<F>
    where
        T: Send + 'static,
        R: Fn(&[Value], Boottime) -> Result<Told<F>>,
    {
        caller.progress.failed(error);
        let begun = session.env().now();
        let clear = begun + session.config.response_timeout;
        let until = caller.progress.waits_until(session.config.call_timeout).unwrap_or(clear).max(clear);
        let progress = caller.progress.clone();
        // The caller gets the last of these errors at the end of its time.
        let failed = |error: &Error| progress.failed(&error.clone().made_indefinite());
        let mut found =
            within(session.env(), until, pin!(self.find_out(session, &probe, Some(clear), &failed))).await;
        if found.is_some() {
            progress.heard(session.env().now() + session.config.repeat_limit());
        } else {
            caller.answer(Err(progress.last_failure().unwrap_or_else(|| error.clone())));
            // By this limit, anything that was set before the connection was given up has expired.
            let limit = session.env().now() + lease + session.config.response_timeout;
            found = within(session.env(), limit, pin!(self.find_out(session, &probe, None, &|_| ()))).await;
        }
        let is_fenced = locked(&self.path).connection.is_fenced() || !error.is_lost_reply();
        match found {
            // A new request is safe now: the first one cannot be executed any more.
            Some(Recovered::Unknown) if is_fenced => Recovered::Never,
            Some(Recovered::Untold { .. }) => Recovered::Untold { is_fenced },
            Some(found) => found,
            None => Recovered::Unknown,
        }
    }

    /// Waits for the late reply, and in parallel tries to query on a new connection. Undecided
    /// answers are queried again only until `clear`, because the owner's other requests have to
    /// wait.
    async fn find_out<F, R>(
        &mut self,
        session: &Session,
        probe: &Probe<R>,
        clear: Option<Monotonic>,
        failed: OnFailure<'_>,
    ) -> Recovered<F>
    where
        R: Fn(&[Value], Boottime) -> Result<Told<F>>,
    {
        let asked = async {
            let mut repeats = Repeats::default();
            loop {
                let destination = session.router.destination(probe.slot);
                let error = match ask_on_new_connection(session, probe, clear).await {
                    Ok(recovered) => return recovered,
                    Err(error) => error,
                };
                failed(&error);
                let delay = session.config.retry_delay(session.env(), repeats.number());
                session.router.pause(&destination, &error, delay, &mut repeats).await;
            }
        };
        tokio::select! {
            biased;
            Ok(replied) = &mut self.reply => Recovered::Replied(replied),
            recovered = asked => recovered,
        }
    }
}

/// Queries on a connection that was made after the old one was ended. An error is transient.
async fn ask_on_new_connection<F, R>(
    session: &Session,
    probe: &Probe<R>,
    clear: Option<Monotonic>,
) -> Result<Recovered<F>>
where
    R: Fn(&[Value], Boottime) -> Result<Told<F>>,
{
    let mut path = session.router.path(probe.slot).await?;
    let sent = session.env().boottime();
    let mut answers = Vec::new();
    for question in &probe.questions {
        match session.router.once(probe.slot, &mut path, &Request::Question(question)).await {
            Ok(answer) => answers.push(answer),
            Err(error) if error.is_final() => {
                return Ok(Recovered::Untold { is_fenced: false });
            }
            Err(error) => return Err(error),
        }
    }
    match (probe.read)(&answers, sent) {
        Ok(Told::Obeyed(found)) => Ok(Recovered::Obeyed(found, sent)),
        Ok(Told::NotObeyed) => Ok(Recovered::Unknown),
        Ok(Told::Unclear) if clear.is_some_and(|clear| session.env().now() < clear) => {
            Err(session.config.no_reply())
        }
        Ok(Told::Unclear) | Err(_) => Ok(Recovered::Untold { is_fenced: false }),
    }
}
