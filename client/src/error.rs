//! What can go wrong, and whether the lock may have changed all the same.

use std::sync::Arc;
use std::time::Duration;

use crate::refusal;

/// The result of this crate's operations.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation failed.
///
/// The question that matters to a lock is [`Error::is_definite`]: may the operation have taken
/// effect although it failed? A reply that was lost says nothing about what the server did.
///
/// Its [source](std::error::Error::source) is
///
/// * of a connection that could not be made, the [`std::io::Error`];
/// * of one that broke, the [`redis::RedisError`];
/// * of a missing master or quorum, the [`Error`] of one of the servers;
/// * of several locks, the [`Error`] of the first that failed.
#[derive(Debug, Clone)]
pub struct Error {
    kind: ErrorKind,
    definite: bool,
    /// Requests take another way from now on.
    redirected: bool,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.kind.fmt(f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// The kinds of [`Error`].
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The configuration cannot work: an address that does not parse, a list without members, a
    /// lease of zero.
    #[error("bad configuration: {0}")]
    Config(String),
    /// No connection could be made.
    #[error("cannot connect to {endpoint}: {reason}")]
    Connect {
        /// `host:port`.
        endpoint: String,
        /// What the operating system or the server said.
        reason: String,
    },
    /// Client and server do not accept each other's certificates, or do not both speak TLS.
    #[error("no TLS connection to {endpoint}: {reason}")]
    Tls {
        /// `host:port`.
        endpoint: String,
        /// What this side found, or the other one said.
        reason: String,
    },
    /// None of the endpoints says that it is a master.
    #[error("no master among {endpoints}: {reason}")]
    NoMaster {
        /// The endpoints that were asked.
        endpoints: String,
        /// What the last of them said.
        reason: String,
    },
    /// None of the Sentinels can be asked.
    #[error("no Sentinel of {endpoints} can be asked for {master}: {reason}")]
    NoSentinel {
        /// The Sentinels that were tried.
        endpoints: String,
        /// What they are to be asked for.
        master: String,
        /// What came of one of them.
        reason: String,
    },
    /// The Sentinels that answer watch no master of this name.
    #[error("none of the Sentinels {endpoints} knows a master called {master}")]
    UnknownMaster {
        /// The Sentinels that answered.
        endpoints: String,
        /// What they were asked for.
        master: String,
    },
    /// The server answered with an error.
    #[error("the server refused: {code} {message}")]
    Server {
        /// The first word of the error reply, such as `WRONGTYPE`.
        code: String,
        /// The rest of it.
        message: String,
    },
    /// The connection ended while a reply was awaited, or the client ended it because another
    /// server has become the master.
    #[error("the connection ended before the reply came: {0}")]
    Disconnected(String),
    /// The reply came from a server that another one has replaced meanwhile. What it says may be
    /// lost, and it does nothing more.
    #[error("{endpoint} is no master any more")]
    Replaced {
        /// `host:port`.
        endpoint: String,
    },
    /// No reply within the response time-out, or within the time of the whole call.
    #[error("no reply within {0:?}")]
    ResponseTimeout(Duration),
    /// The subscription that a waiter needs was not confirmed in time.
    #[error("the subscription was not confirmed within {0:?}")]
    SubscribeTimeout(Duration),
    /// Fewer replicas than asked for have acknowledged the change.
    #[error("{acked} replicas acknowledged the change, {needed} were needed")]
    NotReplicated {
        /// Acknowledgements that came within the replica time-out.
        acked: usize,
        /// Acknowledgements that the configuration asks for.
        needed: usize,
    },
    /// Too few nodes of a Redlock gave an answer to decide anything.
    #[error("{answered} nodes answered, {quorum} are a quorum: {reason}")]
    NoQuorum {
        /// Nodes that granted or refused within the node time-out.
        answered: usize,
        /// Nodes that make a majority.
        quorum: usize,
        /// What one of the others said.
        reason: String,
    },
    /// The owner does not hold the lock (any more).
    #[error("{lock} is not held by {owner}")]
    NotHeld {
        /// The lock's key.
        lock: String,
        /// The owner field.
        owner: String,
    },
    /// An operation on all locks of a [`MultiLock`](crate::MultiLock) has failed for some of them.
    /// For the others it succeeded.
    #[error("{} of {of} locks failed: {}", failed.len(), failed.iter().map(|(key, error)| format!("{key}: {error}"))
        .collect::<Vec<_>>().join("; "))]
    Members {
        /// The key of each for which it failed, with its error.
        failed: Vec<(String, Error)>,
        /// How many locks there are.
        of: usize,
    },
    /// The owner holds the lock already, and it is one that does not nest.
    #[error("the owner holds the lock already, and it does not nest")]
    AlreadyHeld,
    /// The lock was released, but the server refused to publish that: waiters find out by
    /// themselves.
    #[error("the lock was released, but its waiters could not be notified: {reason}")]
    NotPublished {
        /// What the server said.
        reason: String,
    },
    /// No rate was set for the rate limiter, or it has expired.
    #[error("{limiter} has no rate")]
    NoRate {
        /// The limiter's key.
        limiter: String,
    },
    /// A rate limiter never grants more permits at once than its rate.
    #[error("{limiter} never grants {permits} permits at once: its rate is lower")]
    OverRate {
        /// The limiter's key.
        limiter: String,
        /// The permits that were asked for.
        permits: u32,
    },
    /// The reply is none that the script can give.
    #[error("unexpected reply: {0}")]
    UnexpectedReply(String),
    /// The client [is closed](crate::Client::close), and takes no new work.
    #[error("the client is closed")]
    Closed,
    /// The task that did the work was dropped: the runtime on which the client was built has shut
    /// down.
    #[error("the runtime on which the client was built has shut down, and the work with it")]
    Shutdown,
    /// The task that did the work panicked, which is how an [`Observer`](crate::Observer) that
    /// panics ends.
    #[error("the work panicked, in an observer or in the client: {0}")]
    Panicked(String),
}

impl Error {
    /// The kind, for matching.
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// True when the lock certainly did not change; false when the operation may have taken effect.
    ///
    /// An acquire that fails indefinitely never leaves a lock that is renewed: the client finds out
    /// in the background whether it was granted, and gives it back.
    pub fn is_definite(&self) -> bool {
        self.definite
    }

    /// True when the same operation may succeed a little later: the server is loading, failing
    /// over, busy, out of memory or unable to write. The documentation of the crate [has the
    /// refusals that pass](crate#what-servers-refuse).
    pub fn is_transient(&self) -> bool {
        if self.redirected {
            return true;
        }
        match &self.kind {
            ErrorKind::Connect { .. }
            | ErrorKind::NoMaster { .. }
            | ErrorKind::NoSentinel { .. }
            | ErrorKind::Replaced { .. }
            | ErrorKind::NotReplicated { .. }
            | ErrorKind::NoQuorum { .. } => true,
            ErrorKind::Server { code, .. } => refusal::passes(code),
            // A lost reply can be retried only if the command is known not to have run.
            ErrorKind::Disconnected(_) | ErrorKind::ResponseTimeout(_) => self.definite,
            _ => false,
        }
    }

    /// True when nothing was done, and to repeat the operation does not help: a wrong password, a
    /// command that is forbidden.
    pub(crate) fn is_final(&self) -> bool {
        self.definite && !self.is_transient()
    }

    /// True when the server may yet obey what was sent.
    pub(crate) fn is_lost_reply(&self) -> bool {
        !self.definite && matches!(self.kind, ErrorKind::Disconnected(_) | ErrorKind::ResponseTimeout(_))
    }

    /// True when no server has said anything.
    pub(crate) fn is_silence(&self) -> bool {
        matches!(self.kind, ErrorKind::Disconnected(_) | ErrorKind::ResponseTimeout(_))
    }

    pub(crate) fn is_server(&self, wanted: &str) -> bool {
        matches!(&self.kind, ErrorKind::Server { code, .. } if code == wanted)
    }

    pub(crate) fn definite(kind: ErrorKind) -> Self {
        Self { kind, definite: true, redirected: false, source: None }
    }

    pub(crate) fn indefinite(kind: ErrorKind) -> Self {
        Self { kind, definite: false, redirected: false, source: None }
    }

    /// Too few nodes of a Redlock that answered, and what one of the others said.
    pub(crate) fn no_quorum(answered: usize, quorum: usize, failure: Option<&Self>) -> Self {
        let reason = failure.map_or_else(|| "no answer in time".to_owned(), ToString::to_string);
        let error = Self::indefinite(ErrorKind::NoQuorum { answered, quorum, reason });
        match failure {
            Some(failure) => error.caused_by(failure.clone()),
            None => error,
        }
    }

    /// What came of an operation on each of several locks, by their keys. Definite when each of the
    /// errors is.
    pub(crate) fn of_members<'a>(outcomes: impl IntoIterator<Item = (&'a str, Result<()>)>) -> Result<()> {
        let (mut failed, mut of, mut definite) = (Vec::new(), 0, true);
        for (key, outcome) in outcomes {
            of += 1;
            if let Err(error) = outcome {
                definite &= error.definite;
                failed.push((key.to_owned(), error));
            }
        }
        if failed.is_empty() {
            return Ok(());
        }
        let first = failed[0].1.clone();
        let error =
            Self { kind: ErrorKind::Members { failed, of }, definite, redirected: false, source: None };
        Err(error.caused_by(first))
    }

    /// The same, of an operation that may have taken effect.
    pub(crate) fn made_indefinite(self) -> Self {
        Self { definite: false, ..self }
    }

    /// The same, of an operation that may have taken effect if `other` may.
    pub(crate) fn made_as_definite_as(self, other: &Self) -> Self {
        Self { definite: other.definite, ..self }
    }

    /// The same, of an operation that may succeed when it is sent again, because requests take
    /// another way now.
    pub(crate) fn made_transient(self) -> Self {
        Self { redirected: true, ..self }
    }

    pub(crate) fn caused_by(self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self { source: Some(Arc::new(source)), ..self }
    }

    /// As [`Error::caused_by`], of an error of the application's own code.
    pub(crate) fn caused_by_any(self, source: Box<dyn std::error::Error + Send + Sync>) -> Self {
        Self { source: Some(source.into()), ..self }
    }

    /// The same refusal, with a word on what it is about.
    pub(crate) fn explained(mut self, what: &str) -> Self {
        if let ErrorKind::Server { message: text, .. } | ErrorKind::NotPublished { reason: text } =
            &mut self.kind
        {
            *text = format!("{text} ({what})");
        }
        self
    }

    /// The same, of an operation that changed nothing or was undone.
    pub(crate) fn made_definite(self) -> Self {
        Self { definite: true, ..self }
    }

    pub(crate) fn config(what: impl Into<String>) -> Self {
        Self::definite(ErrorKind::Config(what.into()))
    }

    pub(crate) fn unexpected(reply: &redis::Value) -> Self {
        Self::indefinite(ErrorKind::UnexpectedReply(format!("{reply:?}")))
    }

    pub(crate) fn shutdown() -> Self {
        Self::indefinite(ErrorKind::Shutdown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_of_several_locks_is_made_as_definite_as_the_least_definite_of_them() {
        type Outcome = fn() -> Result<()>;
        let done: Outcome = || Ok(());
        let definite: Outcome = || Err(Error::config("refused"));
        let indefinite: Outcome = || Err(Error::shutdown());
        for (outcomes, is_definite) in [
            ([definite, done], true),
            ([definite, definite], true),
            ([definite, indefinite], false),
            ([indefinite, definite], false),
            ([done, indefinite], false),
        ] {
            let outcomes = outcomes.iter().map(|outcome| ("stock", outcome()));
            assert_eq!(Error::of_members(outcomes).unwrap_err().is_definite(), is_definite);
        }
        assert!(Error::of_members([("stock", done()), ("till", done())]).is_ok());
    }
}
