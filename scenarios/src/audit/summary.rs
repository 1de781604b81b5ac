//! The outcome of an audit, as text, as JSON and as a page.

use std::fmt::Write;

use serde::Serialize;

use super::{
    capture::{Problems, Times},
    engine::{Audit, UnknownScript},
    findings::{Change, Finding, Kind, Unseen},
    locks::{Figures, Lock, TENTHS},
    names::{date, key, length},
    node::{Node, Used},
    tally::Durations,
};
use crate::judge::history::History;

/// A node in an audit.
#[derive(Debug, Clone, Serialize)]
pub struct NodeRow {
    /// The name.
    pub name: String,
    /// The number of commands that were read.
    pub commands: u64,
    /// The time of the first command in UTC; `None` without commands.
    pub from: Option<String>,
    /// The time of the last command in UTC.
    pub until: Option<String>,
    /// The time between them in microseconds.
    pub lasted_us: i64,
    /// The exactness of its times.
    pub times: Times,
    /// True if keyspace events were counted, and no commands.
    pub by_events: bool,
    /// The number of idle locks that were dropped to bound the memory.
    pub dropped_locks: u64,
}

/// Percentiles of durations in microseconds, exact to 3 %.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Quantiles {
    /// The number of durations.
    pub count: u64,
    /// The median.
    pub p50_us: u64,
    /// The 99th percentile.
    pub p99_us: u64,
    /// The longest duration.
    pub longest_us: u64,
}

impl Quantiles {
    fn of(durations: &Durations) -> Option<Quantiles> {
        Some(Quantiles {
            count: durations.count(),
            p50_us: durations.percentile_us(50)?,
            p99_us: durations.percentile_us(99)?,
            longest_us: durations.longest_us()?,
        })
    }
}

/// A lock in an audit.
#[derive(Debug, Clone, Serialize)]
pub struct LockRow {
    /// The name of the node.
    pub node: String,
    /// The number of the database.
    pub db: u32,
    /// The key.
    pub lock: String,
    /// The kind: `lock`, `read-write lock`, `semaphore` or `latch`.
    pub kind: &'static str,
    /// The library, if its commands identify it.
    pub library: Option<&'static str>,
    /// The present holder, as its hash unless revealed.
    pub holder: Option<String>,
    /// The address of the connection that acquired it.
    pub client: Option<String>,
    /// The time of the grant in UTC.
    pub since: Option<String>,
    /// The remaining lease in milliseconds; `None` without a holder or without an expiry.
    pub left_ms: Option<i64>,
    /// The number of renewals of the present hold.
    pub renewed: u64,
    /// The number of waiting clients.
    pub waiters: usize,
    /// The number of grants.
    pub grants: u64,
    /// Grants per minute since the first use; `None` if the times are unknown.
    pub per_minute: Option<f64>,
    /// The number of refused requests.
    pub refusals: u64,
    /// The number of renewals.
    pub renewals: u64,
    /// The number of releases by the owner.
    pub releases: u64,
    /// The number of these that did not compare a token.
    pub unchecked_releases: u64,
    /// The number of leases that ended.
    pub expiries: u64,
    /// The number of holds that ended in another way.
    pub broken: u64,
    /// The number of grants without an expiry.
    pub without_expiry: u64,
    /// The durations of holds.
    pub holds: Option<Quantiles>,
    /// The durations from the first request to the grant.
    pub waits: Option<Quantiles>,
    /// Renewals by the tenth of the lease that had passed; the last number is of those after it.
    pub lateness: [u64; TENTHS],
}

impl LockRow {
    /// Returns the library, and the kind if it is no ordinary lock.
    pub(super) fn origin(&self) -> String {
        match (self.library, self.kind) {
            (library, "lock") => library.unwrap_or("-").to_owned(),
            (library, kind) => {
                format!("{}{kind}", library.map(|name| format!("{name} ")).unwrap_or_default())
            }
        }
    }
}

/// The outcome of an audit.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// The nodes.
    pub nodes: Vec<NodeRow>,
    /// The comings and goings of a live group's nodes.
    pub changes: Vec<Change>,
    /// The parts of nodes that the audit had no right to see.
    pub unseen: Vec<Unseen>,
    /// The findings, by time.
    pub findings: Vec<Finding>,
    /// Observations that are no proof of a fault, by time.
    pub notices: Vec<Finding>,
    /// The number of findings beyond those listed.
    pub more_findings: u64,
    /// The locks, those with the most requests first.
    pub locks: Vec<LockRow>,
    /// Scripts that changed locks and named no owner.
    pub unknown_scripts: Vec<UnknownScript>,
    /// Lines and files that could not be read.
    pub problems: Problems,
}

impl Audit {
    /// Returns the outcome up to now. Call [`Audit::finish`] first if no more lines follow.
    pub fn summary(&self) -> Summary {
        let nodes = self.nodes.iter().map(|node| NodeRow {
            name: node.name.clone(),
            commands: node.commands,
            from: node.first_us.map(date),
            until: node.first_us.map(|_| date(node.now_us)),
            lasted_us: node.first_us.map_or(0, |first| node.now_us - first),
            times: node.times,
            by_events: node.is_gentle,
            dropped_locks: node.dropped.0 + node.objects.dropped.0,
        });
        let mut locks: Vec<LockRow> = Vec::new();
        for node in &self.nodes {
            locks.extend(node.used().map(|(db, name, used)| self.row(node, db, name, used, node.now_us)));
        }
        locks.sort_by(|one, other| {
            let busy = |row: &LockRow| std::cmp::Reverse(row.grants + row.refusals);
            (busy(one), &one.node, one.db, &one.lock).cmp(&(busy(other), &other.node, other.db, &other.lock))
        });
        let mut all = self.findings.list.clone();
        all.sort_by_key(|finding| finding.at_us);
        let (findings, notices) = all.into_iter().partition(|finding| finding.kind.is_finding());
        Summary {
            nodes: nodes.collect(),
            changes: self.changes.clone(),
            unseen: self.unseen.clone(),
            findings,
            notices,
            more_findings: self.findings.beyond,
            locks,
            unknown_scripts: self.unknown.values().cloned().collect(),
            problems: self.problems.clone(),
        }
    }

    /// Returns the history of the locks; `None` if the settings did not ask for it.
    pub fn history(&self) -> Option<History> {
        let first_us = self.nodes.iter().filter_map(|node| node.first_us).min().unwrap_or(0);
        let end_us = self.nodes.iter().map(|node| node.now_us).max().unwrap_or(0);
        self.past.as_ref().map(|past| past.history(self.findings.names, first_us, end_us))
    }

    /// Returns the row of a lock at a time of its node's server.
    pub(super) fn row(&self, node: &Node, db: u32, name: &[u8], used: Used<'_>, now_us: i64) -> LockRow {
        let row = self.plain_row(node, db, name, used.lock(), now_us);
        let Used::Object(object) = used else { return row };
        let (holder, expires_ms) = match used.is_held(now_us) {
            true => object.holder(self.findings.names),
            false => (None, None),
        };
        let left_ms = expires_ms.map(|at| at.saturating_sub(now_us.div_euclid(1_000)));
        LockRow { kind: object.kind(), holder, left_ms, waiters: used.waiters(now_us), ..row }
    }

    /// Returns the row of a lock with one holder.
    fn plain_row(&self, node: &Node, db: u32, name: &[u8], lock: &Lock, now_us: i64) -> LockRow {
        let is_timed = node.times != Times::Unknown;
        let now_ms = now_us.div_euclid(1_000);
        let hold = lock.hold.as_ref().filter(|hold| hold.expires_ms.is_none_or(|at| at >= now_ms));
        let Figures { grants, refusals, renewals, releases, expiries, broken, without_expiry, .. } =
            lock.figures;
        let minutes = ((now_us - lock.first_us).max(1_000_000)) as f64 / 60e6;
        LockRow {
            node: node.name.clone(),
            db,
            lock: key(name),
            kind: "lock",
            library: lock.library,
            holder: hold.map(|hold| self.findings.names.value(&hold.owner)),
            client: hold.map(|hold| hold.grant.client.to_string()).filter(|client| !client.is_empty()),
            since: hold.filter(|hold| hold.since_us > 0).map(|hold| date(hold.since_us)),
            left_ms: hold
                .and_then(|hold| hold.expires_ms)
                .filter(|_| is_timed)
                .map(|at| at.saturating_sub(now_ms)),
            renewed: hold.map_or(0, |hold| hold.renewed),
            waiters: lock.waiters(now_us),
            grants,
            per_minute: is_timed.then(|| (grants as f64 / minutes * 10.0).round() / 10.0),
            refusals,
            renewals,
            releases,
            unchecked_releases: lock.figures.unchecked,
            expiries,
            broken,
            without_expiry,
            holds: Quantiles::of(&lock.figures.holds).filter(|_| is_timed),
            waits: Quantiles::of(&lock.figures.waits).filter(|_| node.times == Times::Exact),
            lateness: lock.figures.lateness,
        }
    }
}

/// The hint for an append-only file in which no lock is found.
const NAME_THEM: &str = "An append-only file has neither NX nor scripts, so a lock with a token looks like a cache: \
                         name locks by --lock PATTERN.";

/// The limits of an audit by keyspace events.
pub(super) const BY_EVENTS: &str = "Keyspace events name neither senders nor values: a DEL by hand looks like a release, and \
     requests that were refused, waiters and holders that came back late are not seen.";

/// The most rows of a list in text.
const ROWS_MAX: usize = 20;

impl Summary {
    /// Returns true if a finding makes the audit fail.
    pub fn has_findings(&self) -> bool {
        !self.findings.is_empty() || self.more_findings > 0
    }

    /// Returns true if the audit saw at least one lock.
    pub fn has_locks(&self) -> bool {
        !self.locks.is_empty() || self.nodes.iter().any(|node| node.dropped_locks > 0)
    }

    /// Returns the outcome in words.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, to: &mut String) -> std::fmt::Result {
        for node in &self.nodes {
            let (Some(from), Some(until)) = (&node.from, &node.until) else {
                match (node.times, node.commands) {
                    (Times::Unknown, 1..) => writeln!(
                        to,
                        "{}: {} commands of an append-only file without timestamps: their times are \
                         unknown, and findings that need them are not made",
                        node.name, node.commands
                    )?,
                    _ => writeln!(to, "{}: no commands", node.name)?,
                }
                continue;
            };
            let lasted = length(node.lasted_us);
            writeln!(
                to,
                "{}: {} {} in {lasted}, from {from} to {until} UTC",
                node.name,
                node.commands,
                if node.by_events { "keyspace events" } else { "commands" }
            )?;
            if node.times == Times::Seconds {
                writeln!(to, "{}: an append-only file, whose times are exact to the second", node.name)?;
            }
        }
        for Change { at, node, what } in self.changes.iter().take(ROWS_MAX) {
            writeln!(to, "{at} {node} {what}")?;
        }
        if self.changes.len() > ROWS_MAX {
            writeln!(to, "and {} more changes of nodes", self.changes.len() - ROWS_MAX)?;
        }
        for problem in self.problems.first.iter().take(ROWS_MAX) {
            writeln!(to, "{problem}")?;
        }
        let hidden = self.problems.count.saturating_sub(ROWS_MAX as u64);
        if hidden > 0 {
            writeln!(to, "and {hidden} more bad places")?;
        }
        self.write_findings(to)?;
        if !self.has_locks() && self.nodes.iter().any(|node| node.times != Times::Exact) {
            writeln!(to, "\n{NAME_THEM}")?;
        }
        self.write_locks(to)?;
        self.write_lateness(to)?;
        if self.nodes.iter().any(|node| node.by_events) {
            writeln!(to, "\n{BY_EVENTS}")?;
        }
        for Unseen { node, lacks, refusal, what } in self.unseen.iter().take(ROWS_MAX) {
            let words = format!("{node} was not seen whole: the audit lacks {lacks} ({refusal}), so {what}");
            writeln!(to, "\n{}", wrapped(&words, ""))?;
        }
        if self.unseen.len() > ROWS_MAX {
            writeln!(to, "and {} more rights are missing", self.unseen.len() - ROWS_MAX)?;
        }
        for script in &self.unknown_scripts {
            let UnknownScript { script, calls, keys, commands, .. } = script;
            let keys = keys.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            let commands = commands.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            writeln!(
                to,
                "\nscript {script} changed {keys} without an owner's name: {commands} ({calls} calls)"
            )?;
        }
        Ok(())
    }

    fn write_findings(&self, to: &mut String) -> std::fmt::Result {
        match self.findings.len() as u64 + self.more_findings {
            0 => writeln!(to, "\nno findings")?,
            1 => writeln!(to, "\n1 finding")?,
            count => writeln!(to, "\n{count} findings")?,
        }
        let has_nodes = self.nodes.len() > 1;
        for finding in self.findings.iter().take(ROWS_MAX) {
            write_finding(to, finding, has_nodes)?;
        }
        if self.findings.len() > ROWS_MAX {
            writeln!(to, "\n  and {} more (--json lists them)", self.findings.len() - ROWS_MAX)?;
        }
        write_help(to, &self.findings)?;
        if !self.notices.is_empty() {
            let words = if self.notices.len() == 1 { "notice, which proves" } else { "notices, which prove" };
            writeln!(to, "\n{} {words} no fault", self.notices.len())?;
            for notice in self.notices.iter().take(ROWS_MAX) {
                let Finding { at, lock, kind, says, times, .. } = notice;
                let times = if *times > 1 { format!(" ({times} times)") } else { String::new() };
                let words = format!("{at} {lock}: {}: {says}{times}", kind.title());
                writeln!(to, "  {}", wrapped(&words, "    "))?;
            }
            if self.notices.len() > ROWS_MAX {
                writeln!(to, "  and {} more", self.notices.len() - ROWS_MAX)?;
            }
            write_help(to, &self.notices)?;
        }
        Ok(())
    }

    fn write_locks(&self, to: &mut String) -> std::fmt::Result {
        if !self.has_locks() {
            return writeln!(to, "\nno locks");
        }
        let head = [
            "lock", "library", "holder", "left", "waiters", "grants", "/min", "refused", "renewed",
            "expired", "hold p50", "p99", "wait p50", "p99",
        ];
        let mut rows = vec![head.map(str::to_owned)];
        for row in self.locks.iter().take(ROWS_MAX) {
            let time = |quantiles: Option<Quantiles>, of: fn(&Quantiles) -> u64| {
                quantiles.map_or_else(|| "-".to_owned(), |one| lasted(of(&one)))
            };
            let db = if row.db == 0 { String::new() } else { format!(" (db {})", row.db) };
            let node = if self.nodes.len() > 1 { format!("{} ", row.node) } else { String::new() };
            rows.push([
                format!("{node}{}{db}", row.lock),
                row.origin(),
                row.holder.clone().unwrap_or_else(|| "-".to_owned()),
                row.left_ms.map_or_else(|| "-".to_owned(), |ms| length(ms.saturating_mul(1_000))),
                row.waiters.to_string(),
                row.grants.to_string(),
                row.per_minute.map_or_else(|| "-".to_owned(), |rate| rate.to_string()),
                row.refusals.to_string(),
                row.renewals.to_string(),
                row.expiries.to_string(),
                time(row.holds, |one| one.p50_us),
                time(row.holds, |one| one.p99_us),
                time(row.waits, |one| one.p50_us),
                time(row.waits, |one| one.p99_us),
            ]);
        }
        writeln!(to)?;
        for line in aligned(&rows) {
            writeln!(to, "{line}")?;
        }
        if self.locks.len() > ROWS_MAX {
            writeln!(to, "and {} more locks", self.locks.len() - ROWS_MAX)?;
        }
        Ok(())
    }

    /// Writes the renewals of all locks by the share of the lease that had passed.
    fn write_lateness(&self, to: &mut String) -> std::fmt::Result {
        let mut sums = [0_u64; TENTHS];
        for row in &self.locks {
            sums.iter_mut().zip(row.lateness).for_each(|(sum, count)| *sum += count);
        }
        let most = sums.iter().copied().max().filter(|most| *most > 0);
        let Some(most) = most else { return Ok(()) };
        writeln!(to, "\nrenewals by the share of the lease that had passed")?;
        for (at, count) in sums.iter().enumerate().filter(|(_, count)| **count > 0) {
            let bar = "#".repeat(usize::try_from((count * 40).div_ceil(most)).unwrap_or(40));
            let share = if at + 1 == TENTHS {
                "     over".to_owned()
            } else {
                format!("{:3}-{:3} %", at * 10, at * 10 + 10)
            };
            writeln!(to, "  {share} {count:8} {bar}")?;
        }
        Ok(())
    }
}

/// Returns rows as lines whose cells are as wide as the widest of their column.
pub(super) fn aligned<const N: usize>(rows: &[[String; N]]) -> Vec<String> {
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// Returns a duration of a percentile in words.
pub(super) fn lasted(us: u64) -> String {
    length(i64::try_from(us).unwrap_or(i64::MAX))
}

/// The columns of sentences.
const WIDTH: usize = 100;

/// Returns words in lines, of which those after the first have an indent. The first one has one as
/// well, which the caller writes.
fn wrapped(words: &str, indent: &str) -> String {
    let (mut text, mut column) = (String::new(), indent.len());
    for word in words.split(' ') {
        let width = word.chars().count();
        if column + 1 + width > WIDTH && column > indent.len() {
            text.push('\n');
            text.push_str(indent);
            column = indent.len();
        } else if !text.is_empty() {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += width;
    }
    text
}

/// Writes the advice against each kind once.
fn write_help(to: &mut String, findings: &[Finding]) -> std::fmt::Result {
    let mut kinds: Vec<Kind> = findings.iter().map(|finding| finding.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    for kind in kinds {
        writeln!(to, "\n  {}", wrapped(&format!("{}: {}", kind.title(), kind.help()), "  "))?;
        if let Some(claim) = kind.claim() {
            writeln!(to, "  Try it: lockstorm claims {claim}")?;
        }
    }
    Ok(())
}

fn write_finding(to: &mut String, finding: &Finding, has_nodes: bool) -> std::fmt::Result {
    let Finding { kind, node, db, lock, owner, says, times, evidence, .. } = finding;
    let db = if *db == 0 { String::new() } else { format!(" (db {db})") };
    let node = if has_nodes { format!(" on {node}") } else { String::new() };
    let times = if *times > 1 { format!(" ({times} times)") } else { String::new() };
    writeln!(to, "\n  {}: {lock}{db}{node}, owner {owner}{times}", kind.title())?;
    writeln!(to, "    {}", wrapped(says, "    "))?;
    for one in evidence {
        let unit = one.unit.name();
        let client = if one.client.is_empty() { String::new() } else { format!("{} ", one.client) };
        writeln!(to, "    {} {unit} {} {client}{}: {}", one.at, one.line, one.role, one.command)?;
    }
    Ok(())
}
