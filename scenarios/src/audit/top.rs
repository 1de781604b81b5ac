//! The present state of the locks during an audit: a table of those that need attention, the events
//! since the last look, and totals.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use super::{
    capture::Times,
    engine::{Audit, standing},
    findings::{Finding, Kind},
    locks::{Figures, Lock, TENTHS},
    names::length,
    node::{Node, Used},
    summary::{LockRow, Quantiles, aligned, lasted},
};
use crate::judge::checker::evidence::words::shortened;

/// A hold without an expiry for this long needs attention.
const NO_EXPIRY_US: i64 = 1_000_000;

/// A renewed hold needs attention when less than this part of its lease is left.
const DUE: i64 = 5;

/// The most characters of a lock's name in a live table.
const NAME_MAX: usize = 48;

/// The fewest of them in a narrow terminal.
const NAME_MIN: usize = 12;

/// The most characters of a holder in a live table.
const HOLDER_MAX: usize = 24;

/// A lock in a live table.
#[derive(Debug, Clone)]
pub struct TopRow {
    /// The figures.
    pub row: LockRow,
    /// The time since the grant in microseconds; `None` without a holder.
    pub held_us: Option<i64>,
    /// The number of findings about the lock.
    pub findings: u64,
    /// The reason to look at the lock; `None` if there is none.
    pub attention: Option<String>,
}

/// The sums of all locks of all nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// The findings and notices by kind.
    pub findings: BTreeMap<Kind, u64>,
    /// The number of commands that were read.
    pub commands: u64,
    /// The number of locks that are followed.
    pub locks: u64,
    /// The number of locks with a holder.
    pub held: u64,
    /// The number of waiting clients.
    pub waiters: u64,
    /// The number of grants.
    pub grants: u64,
    /// The number of refused requests.
    pub refusals: u64,
    /// The number of renewals.
    pub renewals: u64,
    /// The number of releases by owners.
    pub releases: u64,
    /// The number of leases that ended.
    pub expiries: u64,
    /// Renewals by the tenth of the lease that had passed; the last number is of those after it.
    pub lateness: [u64; TENTHS],
    /// The sum of the shares that had passed, in percent of a lease.
    pub passed_percent: u64,
}

/// The events that were already returned.
#[derive(Debug, Default)]
pub struct Seen {
    changes: usize,
    findings: usize,
    /// Findings that a later command may withdraw, and notices that may become findings.
    open: Vec<usize>,
}

/// A bounded number of locks that keep their places until they are dropped.
#[derive(Debug)]
pub struct Chosen {
    most: usize,
    places: BTreeSet<Spot>,
}

/// The number of a node, the number of a database, and a key.
type Spot = (usize, u32, Box<[u8]>);

impl Chosen {
    /// Returns an empty choice of at most this number of locks.
    pub fn new(most: usize) -> Chosen {
        Chosen { most, places: BTreeSet::new() }
    }
}

/// The need for attention: the least value comes first.
type Rank<'a> = (Reverse<u64>, bool, bool, Reverse<usize>, bool, Reverse<u64>, &'a str, u32, &'a [u8]);

impl Audit {
    /// Returns the locks that need attention most, at most a number of them. First come those with
    /// findings, then holds without an expiry, late renewals, waiters, holders, and requests.
    ///
    /// `present` has the present time of each node's server in microseconds since 1970. A node
    /// without one is shown at the time of its last command.
    pub fn top(&self, most: usize, present: &[Option<i64>]) -> Vec<TopRow> {
        let mut found: BTreeMap<(&str, u32, &[u8]), u64> = BTreeMap::new();
        for finding in self.findings.list.iter().filter(|finding| self.is_certain(finding)) {
            *found.entry((&*finding.node, finding.db, &*finding.key)).or_default() += 1;
        }
        let findings =
            |node: &Node, db: u32, key: &[u8]| found.get(&(&*node.name, db, key)).copied().unwrap_or(0);
        let mut ranked: Vec<(Rank<'_>, i64, &Node, Used<'_>)> = Vec::new();
        for (at, node) in self.nodes.iter().enumerate() {
            let now_us = self.present_us(at, present);
            for (db, key, used) in node.used() {
                let lock = used.lock();
                let rank = (
                    Reverse(findings(node, db, key)),
                    !lacks_expiry(lock, now_us),
                    !is_due(lock, now_us),
                    Reverse(used.waiters(now_us)),
                    !used.is_held(now_us),
                    Reverse(lock.figures.grants + lock.figures.refusals),
                    &*node.name,
                    db,
                    key,
                );
                ranked.push((rank, now_us, node, used));
            }
        }
        // Of very many locks only a few are shown.
        if (1..ranked.len()).contains(&most) {
            ranked.select_nth_unstable_by(most - 1, |one, other| one.0.cmp(&other.0));
        }
        ranked.truncate(most);
        ranked.sort_by(|one, other| one.0.cmp(&other.0));
        let row = |(rank, now_us, node, used): (Rank<'_>, i64, &Node, Used<'_>)| {
            let (Reverse(findings), has_expiry, is_in_time, .., db, key) = rank;
            let attention = match (findings, has_expiry, is_in_time) {
                (1, ..) => Some("1 finding".to_owned()),
                (2.., ..) => Some(format!("{findings} findings")),
                (0, false, _) => Some("no expiry".to_owned()),
                (0, true, false) => Some("renewal is late".to_owned()),
                (0, true, true) => None,
            };
            let held = used.lock().hold.as_ref();
            let held = held.filter(|hold| used.is_held(now_us) && hold.since_us > 0);
            TopRow {
                row: self.row(node, db, key, used, now_us),
                held_us: held.map(|hold| now_us - hold.since_us),
                findings,
                attention,
            }
        };
        ranked.into_iter().map(row).collect()
    }

    /// Returns the sums of all locks, with `present` as in [`Audit::top`].
    pub fn totals(&self, present: &[Option<i64>]) -> Totals {
        let mut totals = Totals { findings: self.findings.beyond_of.clone(), ..Totals::default() };
        for finding in &self.findings.list {
            if !finding.kind.is_finding() || self.is_certain(finding) {
                *totals.findings.entry(finding.kind).or_default() += 1;
            }
        }
        for (at, node) in self.nodes.iter().enumerate() {
            let now_us = self.present_us(at, present);
            totals.commands += node.commands;
            totals.add(&node.dropped.1);
            totals.add(&node.objects.dropped.1);
            for (_, _, used) in node.used() {
                let lock = used.lock();
                totals.add(&lock.figures);
                totals.locks += 1;
                totals.held += u64::from(used.is_held(now_us));
                totals.waiters += used.waiters(now_us) as u64;
                // The next command on the lock would count it.
                let is_over = lock.hold.is_some() && !used.is_held(node.now_us);
                let is_moved = lock.hold.as_ref().is_some_and(|hold| hold.moved.is_some());
                totals.expiries += u64::from(is_over && !is_moved && node.times == Times::Exact);
            }
        }
        totals
    }

    /// Returns the rows of the chosen locks, and chooses the busiest others while there is room.
    pub fn rows_of(&self, chosen: &mut Chosen, present: &[Option<i64>]) -> Vec<LockRow> {
        let lock_at = |at: usize, db: u32, key: &[u8]| {
            let node = self.nodes.get(at)?;
            Some((node, node.used_at(db, key)?))
        };
        chosen.places.retain(|(at, db, key)| lock_at(*at, *db, key).is_some());
        let room = chosen.most - chosen.places.len();
        if room > 0 {
            let mut others: Vec<(Reverse<u64>, Spot)> = Vec::new();
            for (at, node) in self.nodes.iter().enumerate() {
                for (db, key, used) in node.used() {
                    let figures = &used.lock().figures;
                    let place = (at, db, Box::from(key));
                    if !chosen.places.contains(&place) {
                        others.push((Reverse(figures.grants + figures.refusals), place));
                    }
                }
            }
            others.sort();
            chosen.places.extend(others.into_iter().take(room).map(|(_, place)| place));
        }
        let row = |(at, db, key): &Spot| {
            let (node, used) = lock_at(*at, *db, key)?;
            Some(self.row(node, *db, key, used, self.present_us(*at, present)))
        };
        chosen.places.iter().filter_map(row).collect()
    }

    /// Returns the changes of nodes and the findings since the last call, a line each. Call it
    /// before [`Audit::finish`], which withdraws findings about keys that are no locks. Until a
    /// command proves that a key is a lock, its findings are not returned.
    pub fn events(&self, seen: &mut Seen) -> Vec<String> {
        let changes = self.changes.get(seen.changes..).unwrap_or_default();
        let mut lines: Vec<String> =
            changes.iter().map(|change| format!("{} {} {}", change.at, change.node, change.what)).collect();
        seen.changes = self.changes.len();
        let mut open = std::mem::take(&mut seen.open);
        open.extend(seen.findings..self.findings.list.len());
        seen.findings = self.findings.list.len();
        let mut found: Vec<&Finding> = Vec::new();
        for at in open {
            let Some(finding) = self.findings.list.get(at) else { continue };
            if self.is_certain(finding) {
                found.push(finding);
            } else if finding.kind.is_finding() || finding.has_moved {
                seen.open.push(at);
            }
        }
        found.sort_by_key(|finding| finding.at_us);
        let has_nodes = self.nodes.len() > 1;
        lines.extend(found.into_iter().map(|finding| {
            let Finding { kind, node, db, lock, owner, at, says, .. } = finding;
            let db = if *db == 0 { String::new() } else { format!(" (db {db})") };
            let node = if has_nodes { format!(" on {node}") } else { String::new() };
            format!("{at} {}: {lock}{db}{node}, owner {owner}: {says}", kind.title())
        }));
        lines
    }

    /// Returns true for a finding that no later command withdraws.
    fn is_certain(&self, finding: &Finding) -> bool {
        finding.kind.is_finding() && finding.by_use(standing(&self.nodes, finding)) == Some(finding.kind)
    }

    fn present_us(&self, at: usize, present: &[Option<i64>]) -> i64 {
        let last_us = self.nodes.get(at).map_or(0, |node| node.now_us);
        present.get(at).copied().flatten().map_or(last_us, |us| us.max(last_us))
    }
}

impl Totals {
    fn add(&mut self, figures: &Figures) {
        self.grants += figures.grants;
        self.refusals += figures.refusals;
        self.renewals += figures.renewals;
        self.releases += figures.releases;
        self.expiries += figures.expiries;
        self.lateness.iter_mut().zip(figures.lateness).for_each(|(sum, count)| *sum += count);
        self.passed_percent = self.passed_percent.saturating_add(figures.passed_percent);
    }

    /// Returns the number of findings, without notices.
    pub fn count(&self) -> u64 {
        self.findings.iter().filter(|(kind, _)| kind.is_finding()).map(|(_, count)| count).sum()
    }
}

/// Returns true for a hold that would stay if its holder died.
fn lacks_expiry(lock: &Lock, now_us: i64) -> bool {
    lock.hold.as_ref().is_some_and(|hold| {
        hold.expires_ms.is_none() && hold.is_sure && now_us - hold.since_us >= NO_EXPIRY_US
    })
}

/// Returns true for a hold that its owner renewed before and should have renewed again.
fn is_due(lock: &Lock, now_us: i64) -> bool {
    let is_held = Used::Plain(lock).is_held(now_us);
    let Some(hold) = lock.hold.as_ref().filter(|hold| hold.renewed > 0 && is_held) else {
        return false;
    };
    let (Some(lease_ms), Some(expires_ms)) = (hold.lease_ms, hold.expires_ms) else { return false };
    expires_ms.saturating_sub(now_us.div_euclid(1_000)) < lease_ms / DUE
}

/// Returns rows as the lines of a table that is at most this number of characters wide. The first
/// line has the names of the columns.
pub fn table(rows: &[TopRow], width: usize) -> Vec<String> {
    let head = [
        "lock",
        "holder",
        "held",
        "left",
        "renewed",
        "waiters",
        "/min",
        "wait p50",
        "p99",
        "hold p50",
        "p99",
        "attention",
    ];
    let dash = || "-".to_owned();
    let has_nodes = rows.iter().any(|one| one.row.node != rows[0].row.node);
    let mut cells = vec![head.map(str::to_owned)];
    for TopRow { row, held_us, attention, .. } in rows {
        let time = |quantiles: Option<Quantiles>, of: fn(&Quantiles) -> u64| {
            quantiles.map_or_else(dash, |one| lasted(of(&one)))
        };
        let db = if row.db == 0 { String::new() } else { format!(" (db {})", row.db) };
        let node = if has_nodes { format!("{} ", row.node) } else { String::new() };
        cells.push([
            shortened(&format!("{node}{}{db}", row.lock), NAME_MAX),
            row.holder.as_deref().map_or_else(dash, |holder| shortened(holder, HOLDER_MAX)),
            held_us.map_or_else(dash, length),
            row.left_ms.map_or_else(dash, |ms| length(ms.saturating_mul(1_000))),
            row.renewed.to_string(),
            row.waiters.to_string(),
            row.per_minute.map_or_else(dash, |rate| rate.to_string()),
            time(row.waits, |one| one.p50_us),
            time(row.waits, |one| one.p99_us),
            time(row.holds, |one| one.p50_us),
            time(row.holds, |one| one.p99_us),
            attention.clone().unwrap_or_default(),
        ]);
    }
    let lines = aligned(&cells);
    let widest = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    if widest <= width {
        return lines;
    }
    // Names are cut first, and then the columns at the right.
    let names = cells.iter().map(|row| row[0].chars().count()).max().unwrap_or(0);
    let room = names.saturating_sub(widest - width).max(NAME_MIN);
    cells.iter_mut().for_each(|row| row[0] = shortened(&row[0], room));
    aligned(&cells).iter().map(|line| shortened(line, width)).collect()
}
