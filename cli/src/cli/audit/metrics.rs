//! The option `--metrics`: figures of a live audit for Prometheus, in its text format OpenMetrics.

use std::{
    collections::BTreeSet,
    convert::Infallible,
    fmt,
    future::Future,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{ALLOW, CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use lockstorm::audit::{Audit, Chosen, LockRow, Totals, findings::Kind};
use miette::{IntoDiagnostic, Result, WrapErr};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet, text::encode},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::{Registry, Unit},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::line::Line;

/// The beginning of all names.
const PREFIX: &str = "lockstorm_audit";

/// The most locks with metrics of their own.
const LOCKS_MAX: usize = 100;

/// The most connections at a time; others wait.
const CONNECTIONS_MAX: usize = 16;

/// The longest time for a request and its answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The pause after a connection that could not be accepted, as when there are too many files.
const PAUSE: Duration = Duration::from_millis(100);

/// The most bytes of a request's head.
const HEAD_MAX: usize = 16 << 10;

/// The format of the answer.
const FORMAT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The metrics, and the server that answers requests for them until this is dropped.
pub(super) struct Metrics {
    /// The address at which the server listens.
    pub(super) address: SocketAddr,
    figures: Arc<Shared>,
    chosen: Option<Chosen>,
    server: JoinHandle<()>,
}

impl Drop for Metrics {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Metrics {
    /// Begins to serve at an address. Call it on a tokio runtime.
    pub(super) fn serve(address: SocketAddr, by_lock: bool) -> Result<Metrics> {
        let failed = || format!("metrics cannot be served at {address}");
        let listener = std::net::TcpListener::bind(address).into_diagnostic().wrap_err_with(failed)?;
        listener.set_nonblocking(true).into_diagnostic().wrap_err_with(failed)?;
        let listener = TcpListener::from_std(listener).into_diagnostic().wrap_err_with(failed)?;
        let address = listener.local_addr().into_diagnostic().wrap_err_with(failed)?;
        let figures = Arc::new(Shared::default());
        let server = spawn(serve(listener, Arc::clone(&figures)));
        Ok(Metrics { address, figures, chosen: by_lock.then(|| Chosen::new(LOCKS_MAX)), server })
    }

    /// Takes the present figures of an audit.
    pub(super) fn update(&mut self, audit: &Audit, nodes: &[Line], present: &[Option<i64>]) {
        let totals = audit.totals(present);
        let locks = self.chosen.as_mut().map(|chosen| audit.rows_of(chosen, present)).unwrap_or_default();
        let node = |node: &Line| NodeFigures {
            name: node.name.clone(),
            is_open: node.is_open,
            lag_us: node.lag_us,
            read_bytes: node.read_bytes,
        };
        let nodes = nodes.iter().map(node).collect();
        let mut figures = self.figures.0.lock().expect("no thread panics while it has them");
        let totals = risen(totals, &figures.totals);
        *figures = Figures { totals, nodes, locks };
    }
}

/// Returns totals whose counts are not less than before. A finding may be withdrawn, and a key turn
/// out to be no lock, but a counter that falls means a new process to Prometheus.
fn risen(now: Totals, before: &Totals) -> Totals {
    let mut risen = now;
    for (kind, count) in &before.findings {
        let now = risen.findings.entry(*kind).or_default();
        *now = (*now).max(*count);
    }
    let counts = [
        (&mut risen.commands, before.commands),
        (&mut risen.grants, before.grants),
        (&mut risen.refusals, before.refusals),
        (&mut risen.renewals, before.renewals),
        (&mut risen.releases, before.releases),
        (&mut risen.expiries, before.expiries),
        (&mut risen.passed_percent, before.passed_percent),
    ];
    counts.into_iter().for_each(|(now, before)| *now = (*now).max(before));
    risen.lateness.iter_mut().zip(before.lateness).for_each(|(now, before)| *now = (*now).max(before));
    risen
}

/// The figures of a node.
#[derive(Debug, Default)]
struct NodeFigures {
    name: String,
    is_open: bool,
    lag_us: i64,
    read_bytes: u64,
}

/// The figures of an audit at one time.
#[derive(Debug, Default)]
struct Figures {
    totals: Totals,
    nodes: Vec<NodeFigures>,
    locks: Vec<LockRow>,
}

/// The figures between the audit and the server.
#[derive(Debug, Default)]
struct Shared(Mutex<Figures>);

impl Collector for Shared {
    fn encode(&self, mut to: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.lock().expect("no thread panics while it has them").encode(&mut to)
    }
}

/// Names and values of labels.
type Labels = Vec<(&'static str, String)>;

impl Figures {
    fn encode(&self, to: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Figures { totals, nodes, locks } = self;
        let kinds = |are_findings: bool| {
            let kinds = Kind::ALL.into_iter().filter(move |kind| kind.is_finding() == are_findings);
            let count = |kind: Kind| totals.findings.get(&kind).copied().unwrap_or(0);
            kinds.map(move |kind| (vec![("kind", kind.name().to_owned())], count(kind)))
        };
        counters(to, "findings", "Findings by kind", None, kinds(true))?;
        counters(to, "notices", "Observations that prove no fault, by kind", None, kinds(false))?;
        gauge(to, "locks", "Locks that are followed", totals.locks)?;
        gauge(to, "held_locks", "Locks with a holder", totals.held)?;
        gauge(to, "waiters", "Clients that wait for a lock", totals.waiters)?;
        counter(to, "grants", "Granted requests", totals.grants)?;
        counter(to, "refusals", "Refused requests", totals.refusals)?;
        counter(to, "renewals", "Renewed leases", totals.renewals)?;
        counter(to, "releases", "Releases by owners", totals.releases)?;
        counter(to, "expiries", "Leases that ended", totals.expiries)?;
        self.encode_renewals(to)?;
        counter(to, "commands", "Commands of all nodes", totals.commands)?;
        let node = |node: &NodeFigures| vec![("node", node.name.clone())];
        let open = nodes.iter().map(|one| (node(one), f64::from(u8::from(one.is_open))));
        gauges(to, "monitored", "1 while the commands of the node arrive", None, open)?;
        let lag = nodes.iter().map(|one| (node(one), one.lag_us as f64 / 1e6));
        let help = "Time by which the last command was read later than the fastest one";
        gauges(to, "lag", help, Some(&Unit::Seconds), lag)?;
        let read = nodes.iter().map(|one| (node(one), one.read_bytes));
        counters(to, "read", "Bytes that the node has sent", Some(&Unit::Bytes), read)?;
        if locks.is_empty() { Ok(()) } else { self.encode_locks(to) }
    }

    /// Encodes the renewals by the share of the lease that had passed.
    fn encode_renewals(&self, to: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Totals { lateness, passed_percent, .. } = &self.totals;
        let end = |tenth: usize| match tenth < lateness.len() {
            true => tenth as f64 / 10.0,
            false => f64::INFINITY,
        };
        let buckets: Vec<(f64, u64)> = (1..).map(end).zip(lateness.iter().copied()).collect();
        let unit = Unit::Other("ratio".to_owned());
        let help = "Share of the lease that had passed at a renewal";
        let mut metric = to.encode_descriptor("renewal_lease", help, Some(&unit), MetricType::Histogram)?;
        let sum = *passed_percent as f64 / 100.0;
        metric.encode_histogram::<NoLabelSet>(sum, lateness.iter().sum(), &buckets, None)
    }

    fn encode_locks(&self, to: &mut DescriptorEncoder<'_>) -> fmt::Result {
        // Long keys are shortened, so that two may look alike. One series must have one value.
        let mut seen = BTreeSet::new();
        let rows: Vec<&LockRow> =
            self.locks.iter().filter(|row| seen.insert((&row.node, row.db, &row.lock))).collect();
        let labels = |row: &LockRow| -> Labels {
            vec![("node", row.node.clone()), ("db", row.db.to_string()), ("lock", row.lock.clone())]
        };
        let held = rows.iter().map(|row| (labels(row), f64::from(u8::from(row.holder.is_some()))));
        gauges(to, "lock_held", "1 while the lock has a holder", None, held)?;
        let waiters = rows.iter().map(|row| (labels(row), row.waiters as f64));
        gauges(to, "lock_waiters", "Clients that wait for the lock", None, waiters)?;
        let of = |count: fn(&LockRow) -> u64| rows.iter().map(move |row| (labels(row), count(row)));
        counters(to, "lock_grants", "Granted requests of the lock", None, of(|row| row.grants))?;
        counters(to, "lock_refusals", "Refused requests of the lock", None, of(|row| row.refusals))?;
        counters(to, "lock_renewals", "Renewed leases of the lock", None, of(|row| row.renewals))?;
        counters(to, "lock_expiries", "Leases of the lock that ended", None, of(|row| row.expiries))
    }
}

fn counter(to: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    ConstCounter::new(value).encode(to.encode_descriptor(name, help, None, MetricType::Counter)?)
}

fn gauge(to: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    ConstGauge::new(value).encode(to.encode_descriptor(name, help, None, MetricType::Gauge)?)
}

fn counters(
    to: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    values: impl Iterator<Item = (Labels, u64)>,
) -> fmt::Result {
    let metric = to.encode_descriptor(name, help, unit, MetricType::Counter)?;
    family(metric, values.map(|(labels, value)| (labels, ConstCounter::new(value))))
}

fn gauges(
    to: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    values: impl Iterator<Item = (Labels, f64)>,
) -> fmt::Result {
    let metric = to.encode_descriptor(name, help, unit, MetricType::Gauge)?;
    family(metric, values.map(|(labels, value)| (labels, ConstGauge::new(value))))
}

/// Encodes a metric that has a value for each set of labels.
fn family(
    mut to: MetricEncoder<'_>,
    values: impl Iterator<Item = (Labels, impl EncodeMetric)>,
) -> fmt::Result {
    for (labels, value) in values {
        value.encode(to.encode_family(&labels)?)?;
    }
    Ok(())
}

/// Returns the figures as text.
fn text(figures: &Arc<Shared>) -> std::result::Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register_collector(Box::new(Arc::clone(figures)));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

#[expect(clippy::disallowed_methods, reason = "a server of metrics has ambient tasks")]
fn spawn(task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    tokio::spawn(task)
}

#[expect(clippy::disallowed_methods, reason = "scrapers come in real time")]
async fn serve(listener: TcpListener, figures: Arc<Shared>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        let figures = Arc::clone(&figures);
        spawn(async move {
            // A client that is too slow, or no client at all, gets no answer.
            let _ = timeout(PATIENCE, answer(stream, figures)).await;
            drop(permit);
        });
    }
}

/// Answers one request.
async fn answer(stream: TcpStream, figures: Arc<Shared>) -> hyper::Result<()> {
    let service = service_fn(move |request: Request<Incoming>| {
        let response = respond(&request, &figures);
        async move { Ok::<_, Infallible>(response) }
    });
    let mut connection = http1::Builder::new();
    connection.keep_alive(false).max_buf_size(HEAD_MAX).header_read_timeout(None::<Duration>);
    connection.serve_connection(TokioIo::new(stream), service).await
}

fn respond<B>(request: &Request<B>, figures: &Arc<Shared>) -> Response<String> {
    let plain = |status: StatusCode, text: &str| {
        let mut response = Response::new(text.to_owned());
        *response.status_mut() = status;
        response
    };
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    if request.uri().path() != "/metrics" {
        return plain(StatusCode::NOT_FOUND, "metrics are at /metrics\n");
    }
    let Ok(text) = text(figures) else {
        return plain(StatusCode::INTERNAL_SERVER_ERROR, "the metrics cannot be encoded\n");
    };
    let mut response = plain(StatusCode::OK, &text);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(FORMAT));
    response
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
