//! Reports the events of locks as spans and events of the `tracing` crate.

use tracing::Span;

use super::by_hold::ByHold;
use super::{Event, EventKind, Observer, Outcome};

/// Reports the events of locks to the subscriber of the `tracing` crate. Pass it to
/// [`Builder::observer`](crate::Builder::observer). Needs the feature `tracing`.
///
/// Each hold is a span `hold` of the level `INFO`, from the grant until the lock is released or
/// lost. Its fields are `lock`, `owner`, `hold` (a number that distinguishes nested holds),
/// `lease_ms` (milliseconds) and, for locks that have one, `token`. Its parent is the span in which
/// the lock was requested. The target is `lockstorm_client`. The events are:
///
/// | event | level | in the span | its own fields |
/// | --- | --- | --- | --- |
/// | `attempt` | `TRACE` | of the caller | `lock`, `owner` |
/// | `waiting` | `DEBUG` | of the caller | `lock`, `owner`, `at_most_ms` (milliseconds) |
/// | `woken` | `TRACE` | of the caller | `lock`, `owner`, `by` |
/// | `acquired` | `DEBUG` | `hold` | |
/// | `not acquired` | `DEBUG` | of the caller | `lock`, `owner`, `waited_ms` (milliseconds), and `error` if it failed |
/// | `renewed` | `TRACE` | `hold` | |
/// | `renewal failed` | `WARN` | `hold` | `error` |
/// | `lost` | `WARN` | `hold` | `cause` |
/// | `releasing` | `TRACE` | `hold` | |
/// | `released` | `DEBUG` | | `lock`, `owner`, `hold` |
/// | `release failed` | `WARN` | | `lock`, `owner`, `hold`, `error` |
///
/// ```
/// # use std::sync::Arc;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> lockstorm_client::Result<()> {
/// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
/// # let url = server.url();
/// use lockstorm_client::{Client, TracingObserver};
/// let observer = Arc::new(TracingObserver::default());
/// let client = Client::builder().endpoint(url).observer(observer).connect().await?;
/// # client.lock("stock").acquire().await?.release().await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Default)]
pub struct TracingObserver {
    holds: ByHold<Span>,
}

impl TracingObserver {
    fn span(&self, owner: &str, hold: u64) -> Span {
        self.holds.get(owner, hold).unwrap_or_else(Span::none)
    }

    /// Takes out the span of a hold that ends.
    fn end(&self, owner: &str, hold: u64) -> Span {
        self.holds.remove(owner, hold).unwrap_or_else(Span::none)
    }
}

impl Observer for TracingObserver {
    fn observe(&self, event: &Event<'_>) {
        let Event { lock, owner, .. } = *event;
        match event.kind {
            EventKind::Attempt => tracing::trace!(target: TARGET, lock, owner, "attempt"),
            EventKind::Waiting { at_most } => {
                let at_most_ms = at_most.map(crate::config::millis);
                tracing::debug!(target: TARGET, lock, owner, at_most_ms, "waiting");
            }
            EventKind::Woken { by } => tracing::trace!(target: TARGET, lock, owner, ?by, "woken"),
            EventKind::Acquired { hold, lease, token, .. } => {
                let lease_ms = crate::config::millis(lease);
                let span = tracing::info_span!(target: TARGET, "hold", lock, owner, hold, lease_ms, token);
                span.in_scope(|| tracing::debug!(target: TARGET, "acquired"));
                self.holds.insert(owner, hold, span);
            }
            EventKind::Finished { outcome: Outcome::Granted, .. } => {}
            EventKind::Finished { outcome, waited } => {
                let waited_ms = crate::config::millis(waited);
                let error = if let Outcome::Failed(error) = outcome {
                    Some(tracing::field::display(error))
                } else {
                    None
                };
                tracing::debug!(target: TARGET, lock, owner, waited_ms, error, "not acquired");
            }
            EventKind::Renewed { hold, .. } => {
                self.span(owner, hold).in_scope(|| tracing::trace!(target: TARGET, "renewed"));
            }
            EventKind::RenewFailed { hold, error } => {
                self.span(owner, hold).in_scope(|| tracing::warn!(target: TARGET, %error, "renewal failed"));
            }
            EventKind::Lost { hold, why } => {
                self.end(owner, hold).in_scope(|| tracing::warn!(target: TARGET, cause = ?why, "lost"));
            }
            EventKind::Releasing { hold } => {
                self.end(owner, hold).in_scope(|| tracing::trace!(target: TARGET, "releasing"));
            }
            EventKind::Released { hold, error: None } => {
                tracing::debug!(target: TARGET, lock, owner, hold, "released");
            }
            EventKind::Released { hold, error: Some(error) } => {
                tracing::warn!(target: TARGET, lock, owner, hold, %error, "release failed");
            }
        }
    }
}

const TARGET: &str = "lockstorm_client";
