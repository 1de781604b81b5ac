//! The events of locks, for metrics and recorders.

#[cfg(any(feature = "metrics", feature = "tracing"))]
mod by_hold;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "tracing")]
mod tracing;

use std::sync::Arc;
use std::time::Duration;

use crate::env::Boottime;
use crate::error::Error;
#[cfg(feature = "metrics")]
pub use metrics::MetricsObserver;
#[cfg(feature = "tracing")]
pub use tracing::TracingObserver;

/// Receives the events of a client's locks: for metrics in production, and for a client's beliefs
/// in a simulation.
///
/// It is called synchronously from the task in which the event happens, so it must be quick and
/// must not block.
pub trait Observer: Send + Sync + 'static {
    /// Handles an event of `event.lock`.
    fn observe(&self, event: &Event<'_>);
}

/// One event of one lock and owner, borrowed for the length of the call.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// The lock's key in Redis.
    pub lock: &'a str,
    /// The owner field in Redis: `<client id>:<owner id>`, or the random value of a Redlock.
    pub owner: &'a str,
    /// The time of the event by this client's clock.
    pub at: Boottime,
    /// The event's own data, such as its hold and its deadline.
    pub kind: EventKind<'a>,
}

/// The data of an [`Event`]. New kinds may be added in any release.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum EventKind<'a> {
    /// The client begins an attempt to acquire the lock. The attempt sends no request if the caller
    /// gives up before its turn, or if no server can be reached.
    Attempt,
    /// The lock is held from now until `deadline`.
    Acquired {
        /// Distinguishes the holds of one client, also nested ones of one owner.
        hold: u64,
        /// The lease that was set in Redis.
        lease: Duration,
        /// The time until which the client may believe that it holds the lock, unless it is
        /// renewed.
        deadline: Boottime,
        /// The fencing token, if the lock has one.
        token: Option<u64>,
    },
    /// An acquisition, with all its attempts and waits, has ended. A Redlock does not emit this
    /// event, because each of its attempts has an owner of its own.
    Finished {
        /// Granted, taken by another owner until the caller's time was over, or failed.
        outcome: Outcome<'a>,
        /// The time since the caller asked for the lock.
        waited: Duration,
    },
    /// The lease was extended.
    Renewed {
        /// The hold that was renewed, as in its [`EventKind::Acquired`].
        hold: u64,
        /// The new end of the client's belief.
        deadline: Boottime,
    },
    /// A renewal failed; it is retried while the lease lasts.
    RenewFailed {
        /// The hold that was not renewed.
        hold: u64,
        /// The error of this attempt; a later attempt may succeed.
        error: &'a Error,
    },
    /// The client knows that it no longer holds the lock.
    Lost {
        /// The hold that is lost, as in its [`EventKind::Acquired`].
        hold: u64,
        /// The end of the lease, or the servers' answers.
        why: LossCause,
    },
    /// The release of the hold begins: the client no longer believes that it holds the lock.
    Releasing {
        /// The hold whose release begins.
        hold: u64,
    },
    /// The hold was released, or its release failed.
    Released {
        /// The hold whose release ended.
        hold: u64,
        /// The error of the release; `None` if it succeeded.
        error: Option<&'a Error>,
    },
    /// Another owner has the lock. The waiter sleeps for at most this time.
    Waiting {
        /// The longest sleep; `None` if only a message ends it.
        at_most: Option<Duration>,
    },
    /// The waiter's sleep ended; it asks for the lock again.
    Woken {
        /// The reason for which the sleep ended.
        by: WokenBy,
    },
}

/// The outcome of an acquisition after all its attempts and waits.
#[derive(Debug, Clone, Copy)]
pub enum Outcome<'a> {
    /// The lock was granted; an [`EventKind::Acquired`] came before.
    Granted,
    /// Another owner has the lock, and the caller waits no longer.
    Taken,
    /// The acquisition failed with this error.
    Failed(&'a Error),
}

/// The reason for which a client concludes that it lost a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossCause {
    /// The lease, less the margin for drift, has run out by this client's clock.
    Expired,
    /// The server says that the owner does not hold the lock.
    NotHeld,
    /// Fewer than a quorum of the nodes of a Redlock could be extended in time.
    NoQuorum,
}

/// The reason for which a waiter's sleep ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WokenBy {
    /// A release was announced, or the client subscribed again and may have missed one.
    Message,
    /// The time of the sleep is over: the holder's lease may have run out.
    Timer,
}

/// Forwards the events to any number of observers.
#[derive(Clone, Default)]
pub(crate) struct Observers(Vec<Arc<dyn Observer>>);

impl Observers {
    pub(crate) fn add(&mut self, observer: Arc<dyn Observer>) {
        self.0.push(observer);
    }
}

impl Observer for Observers {
    fn observe(&self, event: &Event<'_>) {
        for observer in &self.0 {
            observer.observe(event);
        }
    }
}

/// Events as `tracing` and `metrics` receive them, for a lock that is acquired, lost and released,
/// and for a wait that ends without the lock.
#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use lockstorm_sim::TestServer;

    use crate::client::{Builder, Client};
    use crate::mutex::locked;

    /// Acquires and releases one lock, loses another that a second client deletes, and fails to get
    /// a third that is held.
    async fn play(settings: Builder) {
        let server = TestServer::start().await.unwrap();
        let client = settings
            .endpoint(server.url())
            .client_id("c1")
            .watchdog_timeout(Duration::from_millis(300))
            .connect()
            .await
            .unwrap();
        let guard = client.fenced_lock("stock").acquire().await.unwrap();
        let limit = Duration::from_millis(20);
        assert!(client.lock("stock").try_acquire_for(limit).await.unwrap().is_none());
        guard.release().await.unwrap();

        let guard = client.lock("order:17").acquire().await.unwrap();
        assert!(client.lock("order:17").force_release().await.unwrap());
        guard.lost().await;
        assert!(guard.release().await.is_err(), "it is not held any more");
        client.close().await.unwrap();
    }

    #[cfg(feature = "metrics")]
    mod of_metrics {
        use metrics::{
            Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
            SharedString, Unit,
        };

        use super::*;
        use crate::observer::MetricsObserver;

        /// The sums of counters, and the number of values in each histogram, by name and labels.
        #[derive(Clone, Default)]
        struct Recorded {
            values: Arc<Mutex<BTreeMap<String, f64>>>,
            units: Arc<Mutex<BTreeMap<String, Unit>>>,
            about: Arc<Mutex<BTreeMap<String, String>>>,
        }

        struct Series(String, Recorded);

        impl Series {
            fn add(&self, value: f64) {
                *locked(&self.1.values).entry(self.0.clone()).or_default() += value;
            }
        }

        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        impl CounterFn for Series {
            fn increment(&self, value: u64) {
                self.add(value as f64);
            }
            fn absolute(&self, value: u64) {
                self.add(value as f64);
            }
        }

        impl GaugeFn for Series {
            fn increment(&self, value: f64) {
                self.add(value);
            }
            fn decrement(&self, value: f64) {
                self.add(-value);
            }
            fn set(&self, value: f64) {
                locked(&self.1.values).insert(self.0.clone(), value);
            }
        }

        impl HistogramFn for Series {
            fn record(&self, value: f64) {
                assert!((0.0..60.0).contains(&value), "{}: {value} s", self.0);
                self.add(1.0);
            }
        }

        impl Recorded {
            fn series(&self, key: &Key) -> Arc<Series> {
                let labels = key.labels().map(|label| format!(" {}={}", label.key(), label.value()));
                Arc::new(Series(format!("{}{}", key.name(), labels.collect::<String>()), self.clone()))
            }

            fn describe(&self, key: &KeyName, unit: Option<Unit>, about: &SharedString) {
                locked(&self.units).insert(key.as_str().to_owned(), unit.expect("each has one"));
                locked(&self.about).insert(key.as_str().to_owned(), about.to_string());
            }
        }

        impl Recorder for Recorded {
            fn describe_counter(&self, key: KeyName, unit: Option<Unit>, about: SharedString) {
                self.describe(&key, unit, &about);
            }
            fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, about: SharedString) {
                self.describe(&key, unit, &about);
            }
            fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, about: SharedString) {
                self.describe(&key, unit, &about);
            }
            fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
                Counter::from_arc(self.series(key))
            }
            fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
                Gauge::from_arc(self.series(key))
            }
            fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
                Histogram::from_arc(self.series(key))
            }
        }

        #[tokio::test]
        async fn each_event_is_counted_under_its_documented_name() {
            let recorded = Recorded::default();
            let _here = metrics::set_default_local_recorder(&recorded);
            let observer =
                MetricsObserver::new().lock_label(|lock| lock.split(':').next().unwrap_or(lock).to_owned());
            play(Client::builder().observer(Arc::new(observer))).await;
            let values = locked(&recorded.values).clone();
            for (series, value) in [
                ("lockstorm_attempts lock=order", 1.0),
                ("lockstorm_acquisitions lock=stock outcome=granted", 1.0),
                ("lockstorm_acquisitions lock=stock outcome=taken", 1.0),
                ("lockstorm_acquisitions lock=order outcome=granted", 1.0),
                ("lockstorm_wait_seconds lock=stock outcome=taken", 1.0),
                // Both holds have ended.
                ("lockstorm_holds lock=stock", 0.0),
                ("lockstorm_holds lock=order", 0.0),
                // The lost hold is released after its end, and counts once.
                ("lockstorm_hold_seconds lock=stock", 1.0),
                ("lockstorm_hold_seconds lock=order", 1.0),
                ("lockstorm_losses lock=order cause=not_held", 1.0),
                ("lockstorm_releases lock=stock outcome=ok", 1.0),
                ("lockstorm_releases lock=order outcome=failed", 1.0),
            ] {
                assert_eq!(values.get(series), Some(&value), "{series}: {values:#?}");
            }
            let units = locked(&recorded.units).clone();
            for series in values.keys() {
                let name = series.split(' ').next().unwrap_or(series);
                let unit = if name.ends_with("_seconds") { Unit::Seconds } else { Unit::Count };
                assert_eq!(units.get(name), Some(&unit), "{name}");
            }
        }

        /// Regression: the description of the metric was "requests for locks that were sent".
        #[tokio::test]
        async fn an_attempt_that_sends_no_request_is_counted() {
            let recorded = Recorded::default();
            let _here = metrics::set_default_local_recorder(&recorded);
            let builder = Client::builder().endpoint("redis://127.0.0.1:1").retry_attempts(0);
            let client = builder.observer(Arc::new(MetricsObserver::new())).build().unwrap();
            client.lock("stock").try_acquire().await.unwrap_err();
            let values = locked(&recorded.values).clone();
            for series in ["lockstorm_attempts", "lockstorm_acquisitions outcome=failed"] {
                assert_eq!(values.get(series), Some(&1.0), "{series}: {values:#?}");
            }
            let about = locked(&recorded.about).clone();
            assert_eq!(about["lockstorm_attempts"], "attempts to acquire locks, with retries");
        }
    }

    #[cfg(feature = "tracing")]
    mod of_tracing {
        use std::sync::atomic::{AtomicU64, Ordering};

        use tracing::field::{Field, Visit};
        use tracing::span::{Attributes, Id, Record};
        use tracing::{Metadata, Subscriber};
        use tracing_core::span::Current;

        use super::*;
        use crate::observer::TracingObserver;

        /// The recorded lines: the path of spans, the level, the message, and the cause of a loss.
        #[derive(Clone, Default)]
        struct Recorded {
            /// The spans by their ids, with their paths.
            spans: Arc<Mutex<BTreeMap<u64, (String, &'static Metadata<'static>)>>>,
            entered: Arc<Mutex<Vec<u64>>>,
            next: Arc<AtomicU64>,
            lines: Arc<Mutex<Vec<String>>>,
        }

        #[derive(Default)]
        struct Fields(BTreeMap<&'static str, String>);

        impl Visit for Fields {
            fn record_str(&mut self, field: &Field, value: &str) {
                self.0.insert(field.name(), value.to_owned());
            }

            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                self.0.insert(field.name(), format!("{value:?}"));
            }
        }

        impl Recorded {
            fn path(&self) -> Option<String> {
                locked(&self.entered).last().map(|id| locked(&self.spans)[id].0.clone())
            }
        }

        impl Subscriber for Recorded {
            fn current_span(&self) -> Current {
                let Some(id) = locked(&self.entered).last().copied() else { return Current::none() };
                Current::new(Id::from_u64(id), locked(&self.spans)[&id].1)
            }

            fn enabled(&self, metadata: &Metadata<'_>) -> bool {
                metadata.target() == "lockstorm_client" || metadata.target() == "caller"
            }

            fn new_span(&self, attributes: &Attributes<'_>) -> Id {
                let mut fields = Fields::default();
                attributes.record(&mut fields);
                let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
                let name = attributes.metadata().name();
                let own = match fields.0.get("lock") {
                    Some(lock) => format!("{name}({lock})"),
                    None => name.to_owned(),
                };
                let path = self.path().map_or(own.clone(), |parent| format!("{parent}/{own}"));
                locked(&self.spans).insert(id, (path, attributes.metadata()));
                Id::from_u64(id)
            }

            fn record(&self, _: &Id, _: &Record<'_>) {}

            fn record_follows_from(&self, _: &Id, _: &Id) {}

            fn event(&self, event: &tracing::Event<'_>) {
                let mut fields = Fields::default();
                event.record(&mut fields);
                let (level, message) = (event.metadata().level(), &fields.0["message"]);
                let mut line = format!("{} {level} {message}", self.path().unwrap_or_default());
                if let Some(cause) = fields.0.get("cause") {
                    line += &format!(" {cause}");
                }
                locked(&self.lines).push(line);
            }

            fn enter(&self, span: &Id) {
                locked(&self.entered).push(span.into_u64());
            }

            fn exit(&self, _: &Id) {
                locked(&self.entered).pop();
            }
        }

        #[tokio::test]
        async fn a_hold_is_a_span_of_its_caller_and_ends_with_the_hold() {
            let recorded = Recorded::default();
            let _here = tracing::subscriber::set_default(recorded.clone());
            let caller = tracing::info_span!(target: "caller", "restock");
            let observer = Arc::new(TracingObserver::default());
            tracing::Instrument::instrument(play(Client::builder().observer(observer.clone())), caller).await;
            let lines = locked(&recorded.lines).clone();
            let mut rest = lines.iter();
            for line in [
                "restock TRACE attempt",
                "restock/hold(stock) DEBUG acquired",
                "restock TRACE attempt",
                "restock/hold(stock) TRACE releasing",
                "restock TRACE attempt",
                "restock/hold(order:17) DEBUG acquired",
                "restock/hold(order:17) WARN lost NotHeld",
            ] {
                assert!(rest.any(|found| found == line), "{line}, in this order: {lines:#?}");
            }
            // These events come from tasks that their callers have left, at any time.
            for line in ["restock DEBUG not acquired", " DEBUG released", " WARN release failed"] {
                assert!(lines.iter().any(|found| found.ends_with(line)), "{line}: {lines:#?}");
            }
            assert_eq!(
                format!("{observer:?}"),
                format!("{:?}", TracingObserver::default()),
                "no span is left"
            );
        }
    }
}
