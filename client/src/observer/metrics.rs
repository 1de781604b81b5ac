//! Reports the events of locks as metrics, through the facade `metrics`.

use metrics::{Label, SharedString, Unit};

use super::by_hold::ByHold;
use super::{Event, EventKind, LossCause, Observer, Outcome, WokenBy};
use crate::env::Boottime;

/// Makes the label of a lock from its key.
type LabelOf = Box<dyn Fn(&str) -> String + Send + Sync>;

/// Counts and measures the events of locks, with the recorder that is installed in the facade
/// `metrics`. Pass it to [`Builder::observer`](crate::Builder::observer). Needs the feature
/// `metrics`.
///
/// | metric | kind | unit | labels | meaning |
/// | --- | --- | --- | --- | --- |
/// | `lockstorm_attempts` | counter | count | | attempts to acquire locks, with retries |
/// | `lockstorm_acquisitions` | counter | count | `outcome`: `granted`, `taken`, `failed` | acquisitions that have ended |
/// | `lockstorm_wait_seconds` | histogram | seconds | `outcome` | the time that acquisitions took |
/// | `lockstorm_wakeups` | counter | count | `by`: `message`, `timer` | ended sleeps of waiters |
/// | `lockstorm_holds` | gauge | count | | locks that the client believes it holds |
/// | `lockstorm_hold_seconds` | histogram | seconds | | the time for which the client believed it held a lock |
/// | `lockstorm_renewals` | counter | count | `outcome`: `ok`, `failed` | renewals of leases |
/// | `lockstorm_losses` | counter | count | `cause`: `expired`, `not_held`, `no_quorum` | holds that ended without a release |
/// | `lockstorm_releases` | counter | count | `outcome`: `ok`, `failed` | releases |
///
/// An attempt counts from its beginning, also if it sends no request because no server can be
/// reached. Acquisitions of a Redlock are not counted in `lockstorm_acquisitions`; its holds are
/// counted in `lockstorm_holds`. By default the key of a lock is no label, because there may be any
/// number of keys.
///
/// ```
/// # use std::sync::Arc;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> lockstorm_client::Result<()> {
/// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
/// # let url = server.url();
/// use lockstorm_client::{Client, MetricsObserver};
/// // `order:17` and `order:18` are one series, as are all locks of each other kind of thing.
/// let observer = MetricsObserver::new().lock_label(|lock| lock.split(':').next().unwrap_or(lock).to_owned());
/// let client = Client::builder().endpoint(url).observer(Arc::new(observer)).connect().await?;
/// # client.lock("stock").acquire().await?.release().await?;
/// # Ok(()) }
/// ```
#[derive(Default)]
pub struct MetricsObserver {
    label: Option<LabelOf>,
    /// The time of each hold's grant.
    holds: ByHold<Boottime>,
}

impl MetricsObserver {
    /// Makes an observer without labels for locks. Describes the metrics and their units to the
    /// recorder.
    pub fn new() -> Self {
        for (name, about) in [
            ("lockstorm_attempts", "attempts to acquire locks, with retries"),
            ("lockstorm_acquisitions", "acquisitions that have ended"),
            ("lockstorm_wakeups", "what ended the sleep of waiters"),
            ("lockstorm_renewals", "renewals of leases"),
            ("lockstorm_losses", "holds that ended without a release"),
            ("lockstorm_releases", "releases of holds"),
        ] {
            metrics::describe_counter!(name, Unit::Count, about);
        }
        metrics::describe_gauge!("lockstorm_holds", Unit::Count, "locks that the client believes it holds");
        metrics::describe_histogram!("lockstorm_wait_seconds", Unit::Seconds, "how long acquisitions took");
        metrics::describe_histogram!("lockstorm_hold_seconds", Unit::Seconds, "how long locks were held");
        Self::default()
    }

    /// Adds a label `lock` to each metric. `label` makes its value from the lock's key; it should
    /// return few distinct values.
    #[must_use]
    pub fn lock_label(mut self, label: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        self.label = Some(Box::new(label));
        self
    }

    fn labels(&self, event: &Event<'_>, own: Option<(&'static str, &'static str)>) -> Vec<Label> {
        let lock = self.label.as_ref().map(|label| Label::new("lock", SharedString::from(label(event.lock))));
        let own = own.map(|(name, value)| Label::from_static_parts(name, value));
        lock.into_iter().chain(own).collect()
    }

    fn count(&self, event: &Event<'_>, name: &'static str, own: Option<(&'static str, &'static str)>) {
        metrics::counter!(name, self.labels(event, own)).increment(1);
    }

    /// Records the end of the belief in a hold.
    fn end(&self, event: &Event<'_>, hold: u64) {
        // A lost hold is released later; its end was recorded at the loss.
        let Some(since) = self.holds.remove(event.owner, hold) else { return };
        metrics::gauge!("lockstorm_holds", self.labels(event, None)).decrement(1);
        metrics::histogram!("lockstorm_hold_seconds", self.labels(event, None)).record(event.at - since);
    }
}

impl std::fmt::Debug for MetricsObserver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MetricsObserver").finish_non_exhaustive()
    }
}

impl Observer for MetricsObserver {
    fn observe(&self, event: &Event<'_>) {
        let outcome = |ok| Some(("outcome", if ok { "ok" } else { "failed" }));
        match event.kind {
            EventKind::Attempt => self.count(event, "lockstorm_attempts", None),
            EventKind::Waiting { .. } => {}
            EventKind::Woken { by } => {
                let by = match by {
                    WokenBy::Message => "message",
                    WokenBy::Timer => "timer",
                };
                self.count(event, "lockstorm_wakeups", Some(("by", by)));
            }
            EventKind::Acquired { hold, .. } => {
                self.holds.insert(event.owner, hold, event.at);
                metrics::gauge!("lockstorm_holds", self.labels(event, None)).increment(1);
            }
            EventKind::Finished { outcome, waited } => {
                let outcome = match outcome {
                    Outcome::Granted => "granted",
                    Outcome::Taken => "taken",
                    Outcome::Failed(_) => "failed",
                };
                let own = Some(("outcome", outcome));
                self.count(event, "lockstorm_acquisitions", own);
                metrics::histogram!("lockstorm_wait_seconds", self.labels(event, own)).record(waited);
            }
            EventKind::Renewed { .. } => self.count(event, "lockstorm_renewals", outcome(true)),
            EventKind::RenewFailed { .. } => self.count(event, "lockstorm_renewals", outcome(false)),
            EventKind::Lost { hold, why } => {
                let cause = match why {
                    LossCause::Expired => "expired",
                    LossCause::NotHeld => "not_held",
                    LossCause::NoQuorum => "no_quorum",
                };
                self.count(event, "lockstorm_losses", Some(("cause", cause)));
                self.end(event, hold);
            }
            EventKind::Releasing { hold } => self.end(event, hold),
            EventKind::Released { error, .. } => {
                self.count(event, "lockstorm_releases", outcome(error.is_none()));
            }
        }
    }
}
