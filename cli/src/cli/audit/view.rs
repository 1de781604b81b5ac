//! The output of a live audit while it runs: on a terminal a table of the locks with the events
//! above it, otherwise only the events.

use std::io::{IsTerminal, stderr};
#[cfg(feature = "metrics")]
use std::net::SocketAddr;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use lockstorm::audit::{Audit, Seen, table};
use miette::Result;
use rustix::termios::tcgetwinsize;

use super::line::Line;
#[cfg(feature = "metrics")]
use super::metrics::Metrics;
use crate::cli::out::errln;

/// The size of a terminal that does not report its own: lines and columns.
const SIZE: (u16, u16) = (24, 80);

/// The lines besides those of locks: the totals, the names of the columns, and the cursor's own.
const OTHER_LINES: usize = 3;

/// The options of a live audit's output.
#[derive(Debug, Args)]
// clap names a group of options after the structure, and another structure has this name.
#[group(skip)]
pub(super) struct Options {
    /// While servers are audited, print only findings and changes of nodes, and no table of the
    /// locks, also on a terminal
    #[arg(long)]
    no_top: bool,
    /// Serve metrics for Prometheus at http://ADDR:PORT/metrics while servers are audited
    #[cfg(feature = "metrics")]
    #[arg(long, value_name = "ADDR:PORT")]
    metrics: Option<SocketAddr>,
    /// Add metrics of each lock with its key as a label, for at most 100 locks
    #[cfg(feature = "metrics")]
    #[arg(long, requires = "metrics")]
    metrics_by_lock: bool,
}

#[cfg(feature = "metrics")]
impl Options {
    /// Returns true with `--metrics`.
    pub(super) fn serves_metrics(&self) -> bool {
        self.metrics.is_some()
    }
}

/// The output. Dropping it removes the table from the terminal.
pub(super) struct View {
    screen: Option<ProgressBar>,
    seen: Seen,
    #[cfg(feature = "metrics")]
    metrics: Option<Metrics>,
}

impl Drop for View {
    fn drop(&mut self) {
        if let Some(screen) = &self.screen {
            screen.finish_and_clear();
        }
    }
}

impl View {
    /// Prepares the output. Call it on a tokio runtime.
    pub(super) fn new(options: &Options) -> Result<View> {
        #[cfg(feature = "metrics")]
        let metrics = match options.metrics {
            Some(address) => {
                let metrics = Metrics::serve(address, options.metrics_by_lock)?;
                errln!("metrics are at http://{}/metrics", metrics.address);
                Some(metrics)
            }
            None => None,
        };
        let screen = (!options.no_top && stderr().is_terminal()).then(|| {
            let style = ProgressStyle::with_template("{msg}");
            let screen = ProgressBar::new_spinner();
            screen.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            screen
        });
        Ok(View {
            screen,
            seen: Seen::default(),
            #[cfg(feature = "metrics")]
            metrics,
        })
    }

    /// Prints the events since the last call, and shows the present state.
    pub(super) fn show(&mut self, audit: &Audit, nodes: &[Line]) {
        for line in audit.events(&mut self.seen) {
            match &self.screen {
                Some(screen) => screen.println(line),
                None => errln!("{line}"),
            }
        }
        let mut present = vec![None; nodes.iter().map(|node| node.number + 1).max().unwrap_or(0)];
        nodes.iter().for_each(|node| present[node.number] = node.present_us);
        if let Some(screen) = &self.screen {
            let (height, width) = size();
            screen.set_message(lines(audit, nodes, &present, height, width).join("\n"));
        }
        #[cfg(feature = "metrics")]
        if let Some(metrics) = &mut self.metrics {
            metrics.update(audit, nodes, &present);
        }
    }
}

/// Returns the height and the width of the terminal.
fn size() -> (usize, usize) {
    let (height, width) = tcgetwinsize(stderr()).map_or((0, 0), |size| (size.ws_row, size.ws_col));
    let or = |size: u16, other: u16| usize::from(if size == 0 { other } else { size });
    (or(height, SIZE.0), or(width, SIZE.1))
}

/// Returns the totals and the table in as many lines as the terminal has room for.
fn lines(audit: &Audit, nodes: &[Line], present: &[Option<i64>], height: usize, width: usize) -> Vec<String> {
    let totals = audit.totals(present);
    let followed = nodes.iter().filter(|node| node.is_open).count();
    let lag_ms = nodes.iter().filter(|node| node.is_open).map(|node| node.lag_us / 1_000).max().unwrap_or(0);
    let mut head = format!(
        "nodes: {followed} of {}, {lag_ms} ms behind; commands: {}; locks: {}, held: {}, waiters: {}, findings: {}",
        nodes.len(),
        totals.commands,
        totals.locks,
        totals.held,
        totals.waiters,
        totals.count()
    );
    let room = height.saturating_sub(OTHER_LINES).max(1);
    let hidden = usize::try_from(totals.locks).unwrap_or(usize::MAX).saturating_sub(room);
    if hidden > 0 {
        head.push_str(&format!("; not shown: {hidden}"));
    }
    let mut lines = vec![head.chars().take(width).collect()];
    let rows = audit.top(room, present);
    if !rows.is_empty() {
        lines.extend(table(&rows, width));
    }
    lines
}
