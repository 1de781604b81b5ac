//! Audits of simulated runs. MONITOR's view of a run, audited, must agree with the world's own
//! recorder, which sees the keys of the nodes.
//!
//! The two are compared hold by hold, on each node by itself. They must agree in this sense:
//!
//! * **No false alarm.** Each finding names a hold, by the command that granted it. The recorder
//!   must have the same hold, granted at the same time, with the fate of the first table.
//! * **Nothing is missed.** Each hold that the recorder saw broken by a command (second table) must
//!   have a finding, or a notice if the command is how a library releases.
//!
//! | finding | fate of the hold in the history | checkers that it concerns |
//! | --- | --- | --- |
//! | granted twice | `vanished` by expiry, and then `granted` to another owner | `l2`, `l3` |
//! | expired under its holder | `vanished` by expiry | `l2`, `l3` |
//! | released by another client | `released` or `vanished` by a DEL of another party | `owner-safety`, `l1` |
//! | extended by another client | `extended` by another party | `owner-safety` |
//! | overwritten | `vanished` by another party's SET | `owner-safety`, `l1` |
//! | deleted by hand | `vanished` by another party's DEL | `owner-safety`, `l1` |
//! | flushed | `vanished` by FLUSHALL or FLUSHDB | `l1` |
//! | no expiry | `granted` without a lease, and held for a second | `progress` |
//! | one name, two hosts | none: each owner has one client | |
//! | lost in a failover | none: a capture of one node shows no failover | |
//!
//! | in the history | must be found, except |
//! | --- | --- |
//! | `released`, `extended`, `vanished` by another party | by an owner of the same client, whose commands come from one address |
//! | `vanished` by FLUSHALL or FLUSHDB | |
//! | both | of a hold that may have been refused for all that the capture shows: granted within its lease of the capture's beginning or of a restart, or just after another lease |
//!
//! A stream does not answer the rest. `l1` is about promises, of which a restart or a failover may
//! forget one: MONITOR shows neither. `l2` and `l3` are about beliefs and effects of clients: a
//! client that comes back to renew or release shows a belief, and one that never does shows none.
//! `progress`, `fairness` and `waiting` need the calls of clients. So these are counted and not
//! compared.
//!
//! Covered are the stock scenarios of plain locks whose nodes have no replicas, Redlocks included,
//! except those in which all owners share one name.
//!
//! `LOCKSTORM_AUDITED=10000` runs so many seeds of each storm instead of a few.

mod holds;

use std::{
    collections::BTreeMap,
    fmt::{self, Write},
    ops::ControlFlow,
};

use lockstorm::{
    audit::{Audit, Settings, Summary, capture::Capture},
    file::{
        library,
        plan::Plan,
        scenario::{Lock, LockKind, Source, traits::Token},
    },
    judge::{checker, verdict::Verdict},
    run::{
        self, Captures, Engine,
        runner::{Case, Runner},
        worklist::work_through,
    },
};
use lockstorm_world::TraceRetention;

/// The seeds of each storm that an ordinary run of the test takes.
const SEEDS: u64 = 8;

/// The disagreements that are printed.
const SHOWN: usize = 20;

/// The storms of plain locks on one node or on independent nodes.
const STORMS: [&str; 7] = [
    "storm/lease.toml",
    "storm/nested_holds.toml",
    "storm/redlock.toml",
    "storm/spin.toml",
    "storm/string.toml",
    "storm/two_locks.toml",
    "storm/watchdog.toml",
];

/// The comparison of one run or of many.
#[derive(Debug, Default)]
struct Agreement {
    runs: u64,
    /// Findings that the history confirms, by kind.
    confirmed: BTreeMap<String, u64>,
    /// Broken holds, and those of them that have a finding or a notice.
    broken: u64,
    found: u64,
    /// Broken holds that a stream cannot show.
    beyond: u64,
    /// Runs that the recorder's history violates, by checker, and those of them with a finding.
    violated: BTreeMap<&'static str, (u64, u64)>,
    /// Sentences about false alarms and missed events.
    wrong: Vec<String>,
}

impl Agreement {
    fn add(&mut self, other: Agreement) {
        self.runs += other.runs;
        self.broken += other.broken;
        self.found += other.found;
        self.beyond += other.beyond;
        self.wrong.extend(other.wrong);
        other
            .confirmed
            .into_iter()
            .for_each(|(kind, count)| *self.confirmed.entry(kind).or_default() += count);
        for (checker, (runs, with)) in other.violated {
            let own = self.violated.entry(checker).or_default();
            *own = (own.0 + runs, own.1 + with);
        }
    }
}

impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Agreement { runs, broken, found, beyond, .. } = self;
        let confirmed: u64 = self.confirmed.values().sum();
        writeln!(
            f,
            "{runs} runs: {confirmed} findings are in the history, {} disagreements",
            self.wrong.len()
        )?;
        self.confirmed.iter().try_for_each(|(kind, count)| writeln!(f, "  {count:>6} {kind}"))?;
        writeln!(f, "{found} of {broken} broken holds were found; no stream shows {beyond} more")?;
        for (checker, (runs, with)) in &self.violated {
            writeln!(f, "  {with} of {runs} runs that violate {checker} have findings")?;
        }
        self.wrong.iter().take(SHOWN).try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// Returns true if the locks are plain, their owners have names of their own, and no node has a
/// replica.
fn is_covered(plan: &Plan) -> bool {
    let scenario = &plan.scenario;
    let is_plain = |kind: LockKind| {
        use LockKind::{Fenced, NonReentrant, Plain, Redlock, Spin, String};
        matches!(kind, Fenced | NonReentrant | Plain | Redlock | Spin | String)
    };
    let is_alone = scenario.node.values().all(|node| node.replica_of.is_none());
    let mut locks = scenario.lock.values();
    let is_told_apart = |lock: &Lock| lock.traits.token != Some(Token::Shared);
    is_alone && !scenario.is_cluster() && locks.all(|lock| is_plain(lock.kind) && is_told_apart(lock))
}

fn audit(captures: &Captures) -> Summary {
    let mut audit = Audit::new(Settings { reveal: true, ..Settings::default() });
    let all = captures.iter().map(|(node, text)| Capture::new(node, text.as_bytes())).collect();
    audit.read(all, || true).expect("it is in memory");
    audit.finish();
    audit.summary()
}

/// Runs a case and compares. `None` if it is not covered.
fn compared(trial: &Runner<'_>, case: Case) -> Option<Agreement> {
    let (plan, name) = (trial.plan(case), trial.token(case));
    if !is_covered(&plan) {
        return None;
    }
    let (outcome, captures) = run::monitored(&plan, &name, Engine::Event, TraceRetention::Nothing);
    let history = outcome.history;
    let summary = audit(&captures);
    let mut agreement = Agreement { runs: 1, ..Agreement::default() };
    let mut holds = holds::of(&history, &captures);
    for finding in &summary.findings {
        match holds.confirm(finding) {
            Some(Ok(())) => *agreement.confirmed.entry(finding.kind.title().to_owned()).or_default() += 1,
            Some(Err(why)) => agreement.wrong.push(format!("{name}: false alarm: {why}")),
            None => {}
        }
    }
    summary.notices.iter().for_each(|notice| holds.notice(notice));
    for hold in holds.broken() {
        if hold.is_beyond {
            agreement.beyond += 1;
            continue;
        }
        agreement.broken += 1;
        if hold.is_found {
            agreement.found += 1;
        } else {
            agreement.wrong.push(format!("{name}: missed: {hold}"));
        }
    }
    for finding in checker::check(&history) {
        if ["l1", "l2", "l3", "owner-safety"].contains(&finding.checker)
            && matches!(finding.verdict, Verdict::Violated { .. })
        {
            let with = u64::from(!summary.findings.is_empty());
            agreement.violated.insert(finding.checker, (1, with));
        }
    }
    Some(agreement)
}

fn compare_all(sources: &[Source], seeds: u64) -> Agreement {
    let trial = Runner::new(sources).seeds(0..seeds);
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let results = work_through(&trial.cases(), jobs, |case| ControlFlow::Continue(compared(&trial, *case)));
    let mut all = Agreement::default();
    results.into_iter().flatten().for_each(|one| all.add(one));
    all
}

fn check(what: &str, agreement: &Agreement) {
    let mut text = String::new();
    write!(text, "{what}: {agreement}").expect("it is text");
    println!("{text}");
    assert!(agreement.runs > 0, "{what}: nothing was compared");
    assert!(agreement.wrong.is_empty(), "{text}");
}

#[test]
fn stock_scenarios() {
    let load =
        |stock: &library::Stock| library::load(stock.path.as_ref()).unwrap_or_else(|error| panic!("{error}"));
    let sources: Vec<Source> =
        library::ALL.iter().filter(|stock| !stock.path.starts_with("storm/")).map(load).collect();
    let agreement = compare_all(&sources, 1);
    check("stock scenarios", &agreement);
    assert!(agreement.confirmed.len() >= 4, "most kinds of findings occur: {agreement}");
}

#[test]
fn storms() {
    let seeds = std::env::var("LOCKSTORM_AUDITED").ok().map(|text| text.parse().expect("a number of seeds"));
    let load = |path: &str| library::load(path.as_ref()).unwrap_or_else(|error| panic!("{error}"));
    let sources: Vec<Source> = STORMS.into_iter().map(load).collect();
    let agreement = compare_all(&sources, seeds.unwrap_or(SEEDS));
    check("storms", &agreement);
}
