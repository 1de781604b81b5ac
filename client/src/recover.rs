//! A request whose reply may be lost, and what became of it. Knows no lock.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Fuse};
use redis::{Cmd, Value};

use crate::env::{Boottime, Monotonic, within};
use crate::error::{Error, Result};
use crate::hold::Told;
use crate::mutex::locked;
use crate::route::{Lane, Node, OnFailure, Repeats, Request};
use crate::script::Call;
use crate::session::Session;
use crate::wait::Caller;
use crate::wire::Slot;

/// A reply that may still come; pending forever once it has failed.
type Reply = Fuse<BoxFuture<'static, Result<Replied>>>;

/// A request under way.
pub(crate) struct Pending {
    /// Where it was sent last.
    lane: Arc<Mutex<Lane>>,
    reply: Reply,
}

/// A reply and who confirmed it.
pub(crate) struct Replied {
    pub(crate) value: Value,
    /// How many replicas acknowledged, and how many had to.
    pub(crate) acked: usize,
    pub(crate) needed: usize,
    /// The node that replied.
    pub(crate) node: Arc<Node>,
}

/// What became of a request without a reply.
pub(crate) enum Recovered<F> {
    /// The reply came late.
    Replied(Replied),
    /// It was obeyed, by the answers to questions that were asked from this moment on.
    Obeyed(F, Boottime),
    /// It was not obeyed, and never will be.
    Never,
    /// It may have been obeyed, or may yet be, on a server that lets us end no connection.
    Unknown,
    /// It may have been obeyed: the server refuses to be asked, or its answers tell nothing, and
    /// asking again would not help.
    Untold {
        /// It will not be obeyed any more.
        is_fenced: bool,
    },
}

/// How to find out whether a request was obeyed.
pub(crate) struct Probe<R> {
    pub(crate) slot: Slot,
    /// Questions that change nothing.
    pub(crate) questions: Vec<Cmd>,
    /// Reads the answers to questions that were asked from this moment on. After an error asking
    /// again would not help.
    pub(crate) read: R,
}

impl Pending {
    /// Sends `call`, followed by a wait for so many of its replicas, and again where nodes say that
    /// it belongs.
    pub(crate) fn send(session: &Session, lane: Lane, call: Call, wait: Option<(Cmd, usize)>) -> Self {
        let (at, router) = (Arc::new(Mutex::new(lane.clone())), session.router.clone());
        let last = at.clone();
        let reply = async move {
            let (mut lane, mut wait, mut trail) = (lane, wait, router.trail(call.slot()));
            loop {
                let error = match lane.run(&call, wait.as_ref().map(|(wait, _)| wait)).await {
                    Ok((value, acked)) => {
                        let needed = wait.map_or(0, |(_, needed)| needed);
                        return Ok(Replied { value, acked, needed, node: lane.node });
                    }
                    Err(error) => error,
                };
                Box::pin(router.follow(&mut lane, &mut trail, error)).await?;
                *locked(&last) = lane.clone();
                wait = lane.replica_wait().await.map_err(Error::made_definite)?;
            }
        };
        Self { lane: at, reply: reply.boxed().fuse() }
    }

    /// The reply. After an indefinite error [`Pending::recover`] goes on.
    pub(crate) async fn reply(&mut self) -> Result<Replied> {
        let node = locked(&self.lane).node.clone();
        let replied = node.reply_in_time(|| locked(&self.lane).replaced(), &mut self.reply).await;
        let lane = locked(&self.lane).clone();
        lane.verified(replied)
    }

    /// The reply did not come, which is `error`: finds out what became of the request. The caller
    /// gets the error after a while. What the request set, if it was obeyed, ends by itself after
    /// `lease`.
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
        // The last word of the servers is what the caller gets at the end of its time.
        let failed = |error: &Error| progress.failed(&error.clone().made_indefinite());
        let mut found =
            within(session.env(), until, pin!(self.find_out(session, &probe, Some(clear), &failed))).await;
        if found.is_none() {
            caller.answer(Err(progress.last_failure().unwrap_or_else(|| error.clone())));
            // What was set before the connection was given up has ended by then.
            let limit = session.env().now() + lease + session.config.response_timeout;
            found = within(session.env(), limit, pin!(self.find_out(session, &probe, None, &|_| ()))).await;
        }
        let is_fenced = locked(&self.lane).connection.is_fenced() || !error.is_lost_reply();
        match found {
            // Asking again is safe now: the first request cannot happen any more.
            Some(Recovered::Unknown) if is_fenced => Recovered::Never,
            Some(Recovered::Untold { .. }) => Recovered::Untold { is_fenced },
            Some(found) => found,
            None => Recovered::Unknown,
        }
    }

    /// Waits for the late reply, and meanwhile tries to ask on a new connection; until `clear`
    /// again for answers that tell nothing yet: all else that the owner asks for waits, too.
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
                let outlook = session.router.outlook(probe.slot);
                let error = match ask_on_new_connection(session, probe, clear).await {
                    Ok(recovered) => return recovered,
                    Err(error) => error,
                };
                failed(&error);
                let delay = session.config.retry_delay(session.env(), repeats.number());
                session.router.pause(&outlook, &error, delay, &mut repeats).await;
            }
        };
        tokio::select! {
            biased;
            Ok(replied) = &mut self.reply => Recovered::Replied(replied),
            recovered = asked => recovered,
        }
    }
}

/// Asks on a connection before which the old one was ended. An error is one that may pass.
async fn ask_on_new_connection<F, R>(
    session: &Session,
    probe: &Probe<R>,
    clear: Option<Monotonic>,
) -> Result<Recovered<F>>
where
    R: Fn(&[Value], Boottime) -> Result<Told<F>>,
{
    let mut lane = session.router.lane(probe.slot).await?;
    let sent = session.env().boottime();
    let mut answers = Vec::new();
    for question in &probe.questions {
        match session.router.once(probe.slot, &mut lane, &Request::Question(question)).await {
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
