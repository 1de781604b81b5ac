//! The errors of operations, each with a flag for the case that the lock may have changed.

use std::sync::Arc;
use std::time::Duration;

use crate::refusal;

/// The result of this crate's operations.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error of an operation.
///
/// [`Error::is_definite`] answers the question that matters for a lock: may the operation have
/// taken effect although it failed? A lost reply says nothing about what the server did.
///
/// The [source](std::error::Error::source) depends on the kind:
///
/// * of a connection that could not be made: the [`std::io::Error`];
/// * of a connection that broke: the [`redis::RedisError`];
/// * of a missing master or quorum: the [`Error`] of one of the servers;
/// * of an operation on several locks: the [`Error`] of the first that failed.
#[derive(Debug, Clone)]
pub struct Error {
    kind: ErrorKind,
    definite: bool,
    /// Set if the route has changed since, so that the same request may succeed when sent again.
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

/// The reason for an [`Error`], for matching. New kinds may be added in any release.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The configuration is invalid: an address that does not parse, a list without members, a
    /// lease of zero.
    #[error("bad configuration: {0}")]
    Config(String),
    /// No connection could be made.
    #[error("cannot connect to {endpoint}: {reason}")]
    Connect {
        /// `host:port`.
        endpoint: String,
        /// The message of the operating system or the server.
        reason: String,
    },
    /// Client and server do not accept each other's certificates, or one of them does not use TLS.
    #[error("no TLS connection to {endpoint}: {reason}")]
    Tls {
        /// `host:port`.
        endpoint: String,
        /// The reason that this side found or the other side sent.
        reason: String,
    },
    /// None of the endpoints reports to be a master.
    #[error("no master among {endpoints}: {reason}")]
    NoMaster {
        /// The endpoints that were asked.
        endpoints: String,
        /// The last failure of one of them.
        reason: String,
    },
    /// None of the Sentinels answers.
    #[error("no Sentinel of {endpoints} can be asked for {master}: {reason}")]
    NoSentinel {
        /// The Sentinels that were tried.
        endpoints: String,
        /// The name of the master that they were to be asked for.
        master: String,
        /// The failure of one of them.
        reason: String,
    },
    /// The Sentinels that answer watch no master of this name.
    #[error("none of the Sentinels {endpoints} knows a master called {master}")]
    UnknownMaster {
        /// The Sentinels that answered.
        endpoints: String,
        /// The name of the master that they were asked for.
        master: String,
    },
    /// The server replied with an error, such as `OOM` or `READONLY`.
    #[error("the server refused: {code} {message}")]
    Server {
        /// The first word of the error reply, such as `WRONGTYPE`.
        code: String,
        /// The rest of the error reply.
        message: String,
    },
    /// The connection ended before the reply came, or the client closed it because another server
    /// has become the master.
    #[error("the connection ended before the reply came: {0}")]
    Disconnected(String),
    /// The reply came from a server that has since been replaced as master. The change that it
    /// reports may be lost. The request is finished and has no further effect.
    #[error("{endpoint} is no master any more")]
    Replaced {
        /// `host:port`.
        endpoint: String,
    },
    /// No reply came within the response timeout, or within the time of the whole call.
    #[error("no reply within {0:?}")]
    ResponseTimeout(Duration),
    /// The subscription that a waiter needs was not confirmed in time.
    #[error("the subscription was not confirmed within {0:?}")]
    SubscribeTimeout(Duration),
    /// Fewer replicas than required have acknowledged the change.
    #[error("{acked} replicas acknowledged the change, {needed} were needed")]
    NotReplicated {
        /// The number of acknowledgements within the replica timeout.
        acked: usize,
        /// The number of acknowledgements that the configuration requires.
        needed: usize,
    },
    /// Fewer disks than required have the change, within the
    /// [durability timeout](crate::Builder::durability_timeout).
    #[error("the change is on the disks of {}{replicas} replicas; the master and {needed} replicas were needed",
        if *master { "the master and " } else { "" })]
    NotSynced {
        /// True if the master has synced the change.
        master: bool,
        /// The number of replicas that have synced it.
        replicas: usize,
        /// The number of replicas that the configuration requires.
        needed: usize,
    },
    /// The server cannot confirm that a change is on its disk, as [`Durability`](crate::Durability)
    /// requires: it has no `WAITAOF` or no append-only file.
    #[error("{endpoint} cannot sync changes: {reason}")]
    NoAppendOnlyFile {
        /// `host:port`.
        endpoint: String,
        /// The thing that is missing, or the server's refusal.
        reason: String,
    },
    /// Too few nodes of a Redlock answered to reach a decision.
    #[error("{answered} nodes answered, {quorum} are a quorum: {reason}")]
    NoQuorum {
        /// The number of nodes that granted or refused within the node timeout.
        answered: usize,
        /// The number of nodes that make a majority.
        quorum: usize,
        /// The failure of one of the other nodes.
        reason: String,
    },
    /// The owner does not, or no longer, hold the lock.
    #[error("{lock} is not held by {owner}")]
    NotHeld {
        /// The lock's key in Redis.
        lock: String,
        /// The owner field in Redis: `<client id>:<owner id>`, or the random value of a Redlock.
        owner: String,
    },
    /// An operation on all locks of a [`MultiLock`](crate::MultiLock) failed for some of them. It
    /// succeeded for the others.
    #[error("{} of {of} locks failed: {}", failed.len(), failed.iter().map(|(key, error)| format!("{key}: {error}"))
        .collect::<Vec<_>>().join("; "))]
    Members {
        /// The keys of the locks for which it failed, each with its error.
        failed: Vec<(String, Error)>,
        /// The number of all locks.
        of: usize,
    },
    /// The owner already holds the lock, which is of a kind that does not nest.
    #[error("the owner holds the lock already, and it does not nest")]
    AlreadyHeld,
    /// The lock was released, but the server refused to publish the release. Waiters notice only
    /// when they next ask.
    #[error("the lock was released, but its waiters could not be notified: {reason}")]
    NotPublished {
        /// The server's refusal.
        reason: String,
    },
    /// The rate limiter has no rate: none was set, or it has expired.
    #[error("{limiter} has no rate")]
    NoRate {
        /// The limiter's key.
        limiter: String,
    },
    /// One request asked for more permits than the rate of the limiter, which never grants that.
    #[error("{limiter} never grants {permits} permits at once: its rate is lower")]
    OverRate {
        /// The limiter's key.
        limiter: String,
        /// The number of permits that were requested.
        permits: u32,
    },
    /// The reply is not one that the command or script can return.
    #[error("unexpected reply: {0}")]
    UnexpectedReply(String),
    /// The client [is closed](crate::Client::close) and accepts no new work.
    #[error("the client is closed")]
    Closed,
    /// The task that did the work was dropped, because the runtime on which the client was built
    /// has shut down.
    #[error("the runtime on which the client was built has shut down, and the work with it")]
    Shutdown,
    /// The task that did the work panicked. A panic in an [`Observer`](crate::Observer) ends this
    /// way.
    #[error("the work panicked, in an observer or in the client: {0}")]
    Panicked(String),
}

impl Error {
    /// Returns the reason for the error, for matching. [`Error::is_definite`] says if the lock may
    /// have changed.
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// Returns true if the lock certainly did not change; false if the operation may have taken
    /// effect.
    ///
    /// An acquisition that fails indefinitely never leaves a lock that is renewed: the client finds
    /// out in the background if it was granted, and releases it.
    pub fn is_definite(&self) -> bool {
        self.definite
    }

    /// Returns true if the same operation may succeed a little later: the server is loading,
    /// failing over, busy, out of memory or unable to write. The crate documentation [lists the
    /// transient refusals](crate#what-servers-refuse).
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
            | ErrorKind::NotSynced { .. }
            | ErrorKind::NoQuorum { .. } => true,
            ErrorKind::Server { code, .. } => refusal::passes(code),
            // After a lost reply, retry only if the command certainly did not run.
            ErrorKind::Disconnected(_) | ErrorKind::ResponseTimeout(_) => self.definite,
            _ => false,
        }
    }

    /// Returns true if nothing was changed and retrying does not help: a wrong password, a
    /// forbidden command.
    pub(crate) fn is_final(&self) -> bool {
        self.definite && !self.is_transient()
    }

    /// Returns true if the server may still execute the request that was sent.
    pub(crate) fn is_lost_reply(&self) -> bool {
        !self.definite && matches!(self.kind, ErrorKind::Disconnected(_) | ErrorKind::ResponseTimeout(_))
    }

    /// Returns true if the error says only that replies are missing, of a server or of the nodes of
    /// a Redlock.
    pub(crate) fn is_silence(&self) -> bool {
        match self.kind {
            ErrorKind::Disconnected(_) | ErrorKind::ResponseTimeout(_) => true,
            ErrorKind::NoQuorum { .. } => {
                let of_node = self.source.as_ref().and_then(|source| source.downcast_ref::<Self>());
                of_node.is_none_or(Self::is_silence)
            }
            _ => false,
        }
    }

    pub(crate) fn is_server(&self, wanted: &str) -> bool {
        matches!(&self.kind, ErrorKind::Server { code, .. } if code == wanted)
    }

    /// Returns true if the server does not know the command that it was sent.
    pub(crate) fn is_unknown_command(&self) -> bool {
        matches!(&self.kind, ErrorKind::Server { code, message } if code == "ERR" && message.starts_with("unknown command"))
    }

    pub(crate) fn definite(kind: ErrorKind) -> Self {
        Self { kind, definite: true, redirected: false, source: None }
    }

    pub(crate) fn indefinite(kind: ErrorKind) -> Self {
        Self { kind, definite: false, redirected: false, source: None }
    }

    /// Makes the error of a Redlock without enough answers; `failure` is the error of one of the
    /// other nodes.
    pub(crate) fn no_quorum(answered: usize, quorum: usize, failure: Option<&Self>) -> Self {
        let reason = failure.map_or_else(|| "no answer in time".to_owned(), ToString::to_string);
        let error = Self::indefinite(ErrorKind::NoQuorum { answered, quorum, reason });
        match failure {
            Some(failure) => error.caused_by(failure.clone()),
            None => error,
        }
    }

    /// Combines the outcomes of an operation on several locks, given by key. The error is definite
    /// if each of the errors is.
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

    /// Marks the operation as one that may have taken effect.
    pub(crate) fn made_indefinite(self) -> Self {
        Self { definite: false, ..self }
    }

    /// Makes the error as definite as `other`.
    pub(crate) fn made_as_definite_as(self, other: &Self) -> Self {
        Self { definite: other.definite, ..self }
    }

    /// Marks the error as transient: requests take another route now, so the same request may
    /// succeed when sent again.
    pub(crate) fn made_transient(self) -> Self {
        Self { redirected: true, ..self }
    }

    pub(crate) fn caused_by(self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self { source: Some(Arc::new(source)), ..self }
    }

    /// As [`Error::caused_by`], for an error of the application's own code.
    pub(crate) fn caused_by_any(self, source: Box<dyn std::error::Error + Send + Sync>) -> Self {
        Self { source: Some(source.into()), ..self }
    }

    /// Appends the explanation `what` to the message of a refusal.
    pub(crate) fn explained(mut self, what: &str) -> Self {
        if let ErrorKind::Server { message: text, .. } | ErrorKind::NotPublished { reason: text } =
            &mut self.kind
        {
            *text = format!("{text} ({what})");
        }
        self
    }

    /// Marks the operation as one that changed nothing or was undone.
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
    fn a_quorum_that_is_missed_for_want_of_replies_is_silence() {
        let lost = Error::indefinite(ErrorKind::Disconnected("reset".into()));
        let (code, message) = ("LOADING".to_owned(), "Redis is loading".to_owned());
        let refused = Error::definite(ErrorKind::Server { code, message });
        for (failure, is_silence) in [(None, true), (Some(&lost), true), (Some(&refused), false)] {
            assert_eq!(Error::no_quorum(1, 2, failure).is_silence(), is_silence, "{failure:?}");
        }
    }

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
