//! Runs scenarios: every variant with every seed, on several threads, and judges the results
//! against the expected verdicts.
//!
//! Each seed runs on a single thread, and many seeds run in parallel. So the results do not depend
//! on the number of threads: they are in the order of variants and seeds.

use std::{
    collections::BTreeMap,
    ops::{ControlFlow, Range},
    str::FromStr,
};

use lockstorm_world::TraceRetention;

use crate::{
    file::{
        peer::Peer,
        plan::Plan,
        scenario::{Compared, SEEDS_MAX, Scenario, Source, Variant},
        server::Servers,
    },
    judge::{
        checker::{self, Checker, Evidence, Hold},
        digest::sha256,
        history::{FailedCalls, History},
        verdict::{Count, Finding, Match, Verdict},
    },
    report::{self, Entry, Link, Report},
    run::worklist::{work_in_order, work_through},
    run::{Captures, Engine, Outcome, monitored, run},
};

/// The scenarios and seeds to run, and the options.
#[derive(Debug, Clone)]
#[must_use = "nothing runs until `run` or `outcome`"]
pub struct Runner<'a> {
    sources: &'a [Source],
    seeds: Option<Range<u64>>,
    positions: Option<Range<u64>>,
    jobs: usize,
    engine: Engine,
    peer: Option<&'a Peer>,
    servers: Option<&'a Servers>,
    stop: Stop,
    keeps_holds: bool,
    keeps_chains: bool,
    keeps_report_digest: bool,
}

/// The condition under which a runner stops before its last case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stop {
    /// Run all cases.
    #[default]
    Never,
    /// Stop at the first result that is not as expected.
    AtUnexpected,
    /// Stop at the first violation, expected or not.
    AtViolation,
    /// Stop each variant separately, as soon as its seeds so far decide every share that it
    /// expects; see [`Share::is_decided_early`].
    ///
    /// [`Share::is_decided_early`]: crate::judge::verdict::Share::is_decided_early
    WhenDecided,
}

/// The number of seeds of a variant before the first test if they decide its shares. The number
/// doubles before each further test, because frequent tests let chance decide more often.
const FIRST_LOOK: usize = 64;

impl Stop {
    fn is_at(self, judged: &Judged) -> bool {
        match self {
            Stop::Never | Stop::WhenDecided => false,
            Stop::AtUnexpected => matches!(judged.verdict(), Match::Otherwise(_)),
            Stop::AtViolation => judged.violated(),
        }
    }
}

impl<'a> Runner<'a> {
    /// Creates a runner with the default options: each scenario's own number of seeds from 0, one
    /// thread, the event engine, and no early stop.
    pub fn new(sources: &'a [Source]) -> Runner<'a> {
        let (seeds, positions, peer, servers) = (None, None, None, None);
        let (engine, stop) = (Engine::Event, Stop::Never);
        let (keeps_holds, keeps_chains, keeps_report_digest) = (false, false, false);
        Runner {
            sources,
            seeds,
            positions,
            jobs: 1,
            engine,
            peer,
            servers,
            stop,
            keeps_holds,
            keeps_chains,
            keeps_report_digest,
        }
    }

    /// Sets the seeds of every scenario. Without a range each scenario has its own number of seeds
    /// from 0.
    pub fn seeds(self, seeds: impl Into<Option<Range<u64>>>) -> Runner<'a> {
        Runner { seeds: seeds.into(), ..self }
    }

    /// Restricts the run to the cases whose indices, in the order of all cases, are in this range.
    pub fn positions(self, positions: Range<u64>) -> Runner<'a> {
        Runner { positions: Some(positions), ..self }
    }

    /// Sets the number of threads. 0 is the same as 1.
    pub fn jobs(self, jobs: usize) -> Runner<'a> {
        Runner { jobs, ..self }
    }

    /// Sets the engine that advances the time.
    pub fn engine(self, engine: Engine) -> Runner<'a> {
        Runner { engine, ..self }
    }

    /// Returns the engine, or `None` for real time, in which no run can be reproduced.
    pub fn virtual_engine(&self) -> Option<Engine> {
        Some(self.engine).filter(|engine| *engine != Engine::Real)
    }

    /// Replaces the clients' software by a lock library, and runs in real time.
    pub fn peer(self, peer: &'a Peer) -> Runner<'a> {
        Runner { peer: Some(peer), engine: Engine::Real, ..self }
    }

    /// Sets the real servers of the nodes, and runs in real time.
    pub fn servers(self, servers: &'a Servers) -> Runner<'a> {
        Runner { servers: Some(servers), engine: Engine::Real, ..self }
    }

    /// If true, the results have the [holds](Judged::holds) of each case.
    pub fn keep_holds(self, keeps_holds: bool) -> Runner<'a> {
        Runner { keeps_holds, ..self }
    }

    /// If true, the results have the [chains](Judged::chains) of each case.
    pub fn keep_chains(self, keeps_chains: bool) -> Runner<'a> {
        Runner { keeps_chains, ..self }
    }

    /// If true, the results have the [report digest](Judged::report_digest) of each case.
    pub fn keep_report_digest(self, keeps_report_digest: bool) -> Runner<'a> {
        Runner { keeps_report_digest, ..self }
    }

    /// Sets the condition for an early stop.
    pub fn stop(self, stop: Stop) -> Runner<'a> {
        Runner { stop, ..self }
    }
}

/// One variant of one scenario with one seed: a single run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    /// The index of the scenario file in [`Runner::sources`].
    pub source: usize,
    /// The index of the variant in its source.
    pub variant: usize,
    /// The seed from which the run draws everything that the file leaves open.
    pub seed: u64,
}

impl Case {
    /// Returns true if only the seeds of the two cases may differ.
    pub fn shares_variant(&self, other: &Case) -> bool {
        (self.source, self.variant) == (other.source, other.variant)
    }
}

/// The result of one case.
#[derive(Debug, Clone)]
pub struct Judged {
    /// The variant and the seed of the run.
    pub case: Case,
    /// The real servers of the nodes, as [`Header::servers`] names them. Empty for simulated nodes.
    ///
    /// [`Header::servers`]: crate::judge::history::Header::servers
    pub servers: String,
    /// The findings, one for each checker.
    pub findings: Vec<Finding>,
    /// For each checker with an expectation, the comparison with it.
    pub matches: Vec<(String, Match)>,
    /// Each measure that has a formula for comparison. Empty for a run in real time, because
    /// formulas do not model real times.
    pub compared: Vec<Compared>,
    /// The SHA-256 of the trace.
    pub fingerprint: String,
    /// The SHA-256 of the history and the report. It changes with the fingerprint, and also if the
    /// same run is recorded, judged or explained differently. Empty unless the runner
    /// [keeps](Runner::keep_report_digest) it.
    pub report_digest: String,
    /// The true time that passed, in seconds.
    pub simulated: f64,
    /// The calls that returned an error, counted by client, operation and error.
    pub failed: Vec<FailedCalls>,
    /// The duration of each hold. Empty unless the runner [keeps](Runner::keep_holds) it.
    pub holds: Vec<Hold>,
    /// The chain of events behind each violation, by checker. Empty unless the runner
    /// [keeps](Runner::keep_chains) it.
    pub chains: BTreeMap<&'static str, Vec<Link>>,
}

impl Judged {
    /// Combines the comparisons of all checkers: the first contradiction, else the first undecided
    /// one, else `AsExpected`.
    pub fn verdict(&self) -> Match {
        if self.matches.is_empty() {
            return Match::Undecided("the scenario expects nothing: add an [expect]".to_owned());
        }
        let mut verdict = Match::AsExpected;
        for (_, one) in &self.matches {
            match one {
                Match::Otherwise(_) => return one.clone(),
                Match::Undecided(_) if verdict == Match::AsExpected => verdict = one.clone(),
                _ => {}
            }
        }
        verdict
    }

    /// Returns the finding of the checker with this name; `None` if there is no such checker.
    pub fn finding(&self, checker: &str) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.checker == checker)
    }

    fn violated(&self) -> bool {
        self.findings.iter().any(|finding| finding.verdict.witness().is_some())
    }
}

/// Judges a history against the expected verdicts. Checkers without an expectation also run, for
/// the report.
pub fn judge(variant: &Variant, case: Case, outcome: &Outcome) -> Judged {
    let findings = checker::check(&outcome.history);
    let expected = &variant.scenario.expect;
    let compared =
        if outcome.history.header.is_real() { Vec::new() } else { variant.scenario.compared(&findings) };
    let matches = findings.iter().filter_map(|finding| {
        let matched = match expected.get(finding.checker)?.matches(finding) {
            Match::AsExpected => {
                let mut of_checker = compared.iter().filter(|one| one.checker == finding.checker);
                let off = of_checker.find_map(Compared::otherwise);
                off.map_or(Match::AsExpected, Match::Otherwise)
            }
            otherwise => otherwise,
        };
        Some((finding.checker.to_owned(), matched))
    });
    let matches = matches.collect();
    let simulated = outcome.history.header.end.as_nanos() as f64 / 1e9;
    let fingerprint = outcome.fingerprint.clone();
    let failed = outcome.history.failed_calls();
    let servers = outcome.history.header.servers();
    let (report_digest, holds, chains) = Default::default();
    Judged {
        case,
        servers,
        findings,
        matches,
        compared,
        fingerprint,
        report_digest,
        simulated,
        failed,
        holds,
        chains,
    }
}

impl Runner<'_> {
    /// Returns every case, in order.
    pub fn cases(&self) -> Vec<Case> {
        let (mut cases, mut before) = (Vec::new(), 0_u64);
        let wanted = self.positions.clone().unwrap_or(0..u64::MAX);
        for (source, of) in self.sources.iter().enumerate() {
            for (variant, of) in of.variants.iter().enumerate() {
                let seeds = self.seeds_of(of);
                let count = seeds.end - seeds.start;
                let skipped = wanted.start.saturating_sub(before).min(count);
                let end = wanted.end.saturating_sub(before).min(count);
                let seeds = seeds.start + skipped..seeds.start + end;
                cases.extend(seeds.map(|seed| Case { source, variant, seed }));
                before = before.saturating_add(count);
            }
        }
        cases
    }

    /// Returns the seeds for a variant.
    pub fn seeds_of(&self, variant: &Variant) -> Range<u64> {
        self.seeds.clone().unwrap_or(0..variant.scenario.run.seeds)
    }

    /// Returns the condition under which the runner stops before its last case.
    pub fn stops(&self) -> Stop {
        self.stop
    }

    /// Returns the scenario files, in the order of the results.
    pub fn sources(&self) -> &[Source] {
        self.sources
    }

    /// Returns the variant of a case. Panics if an index of the case is out of range.
    pub fn variant(&self, case: Case) -> &Variant {
        &self.sources[case.source].variants[case.variant]
    }

    /// Draws the plan of a case.
    pub fn plan(&self, case: Case) -> Plan {
        let plan = Plan::draw(&self.variant(case).scenario, case.seed);
        let plan = match self.peer {
            None => plan,
            Some(peer) => plan.with_peer(peer),
        };
        match self.servers {
            None => plan,
            Some(servers) => plan.with_servers(servers),
        }
    }

    /// Returns the findings of a case, each with the expectation for its checker.
    pub fn entries(&self, judged: &Judged) -> Vec<Entry> {
        let expected = &self.variant(judged.case).scenario.expect;
        let mut entries = report::entries(judged.findings.clone(), |checker| expected.get(checker).cloned());
        for entry in &mut entries {
            let of_checker = || judged.compared.iter().filter(|one| one.checker == entry.finding.checker);
            (entry.formulas, entry.off) =
                (of_checker().map(ToString::to_string).collect(), of_checker().find_map(Compared::otherwise));
        }
        entries
    }

    /// Returns the name of a case: file, variant, seed, and the engine if it is not the default.
    pub fn token(&self, case: Case) -> String {
        name(&self.sources[case.source], self.variant(case), case.seed, self.engine)
    }

    /// Returns the name of a variant's runs under one condition: [`Runner::token`] without the
    /// seed.
    pub fn condition(&self, source: usize, variant: &Variant) -> String {
        condition(&self.sources[source], variant)
    }

    /// Formats a run as one short line for comparison: the first 16 digits of its fingerprint and
    /// of its [report digest](Judged::report_digest), and its token.
    ///
    /// # Panics
    /// Panics if the runner did not [keep](Runner::keep_report_digest) the report digest.
    pub fn line(&self, judged: &Judged) -> String {
        let token = self.token(judged.case);
        format!("{} {} {token}", &judged.fingerprint[..16], &judged.report_digest[..16])
    }

    /// Returns the command that runs a case again. `lockstorm replay` detects if the file has
    /// changed since.
    pub fn again(&self, case: Case) -> String {
        let Some(peer) = self.peer else {
            return format!("lockstorm replay '{}~{}'", self.token(case), self.sources[case.source].digest);
        };
        let variant = &self.variant(case).name;
        let of = if variant.is_empty() { String::new() } else { format!("#{variant}") };
        let (file, seed) = (&self.sources[case.source].file, case.seed);
        let on = self.servers.map_or_else(String::new, |servers| {
            let program = &servers.default().program;
            // A command for this folder works in another clone, too.
            let here = std::env::current_dir().ok().and_then(|folder| program.strip_prefix(folder).ok());
            format!(" --server '{}'", here.unwrap_or(program).display())
        });
        format!("lockstorm trial --peer {:?} '{file}{of}' --seed {seed}{on}", peer.command)
    }

    /// Runs one case. The header of its history includes the drawn values, for readers of its file.
    pub fn outcome(&self, case: Case, keep: TraceRetention) -> Outcome {
        let plan = self.plan(case);
        let mut outcome = self.outcome_of(&plan, case, keep);
        outcome.history.header.drawn = plan.drawn().into_iter().map(Into::into).collect();
        outcome
    }

    /// Runs one case again in virtual time, and returns the commands of its nodes as MONITOR shows
    /// them.
    pub fn captures(&self, case: Case) -> Captures {
        monitored(&self.plan(case), &self.token(case), self.engine, TraceRetention::Nothing).1
    }

    fn outcome_of(&self, plan: &Plan, case: Case, keep: TraceRetention) -> Outcome {
        let mut outcome = run(plan, &self.token(case), self.engine, keep);
        outcome.history.header.replay = self.again(case).into();
        outcome
    }

    /// Runs every case, and calls `told` for each as soon as it is judged, in no particular order.
    /// The results are in order, and end with the one that stopped the runner, if any.
    pub fn run(&self, told: &(dyn Fn(&Judged) + Sync)) -> Vec<Judged> {
        let mut results = Vec::new();
        self.each(told, &mut |judged| {
            results.push(judged);
            ControlFlow::Continue(())
        });
        results
    }

    /// Runs every case like [`Runner::run`], and passes each result to `take` once all earlier ones
    /// were passed. Only results that wait for an earlier one are kept in memory. No case begins
    /// after `take` returns `Break`. With [`Stop::WhenDecided`] all results are passed at the end.
    pub fn each(
        &self,
        told: &(dyn Fn(&Judged) + Sync),
        take: &mut (dyn FnMut(Judged) -> ControlFlow<()> + Send),
    ) {
        let cases = self.cases();
        if self.stop == Stop::WhenDecided {
            let _ = self.in_rounds(&cases, told).into_iter().try_for_each(take);
        } else {
            work_in_order(&cases, self.jobs, |case| self.judged(case, told), take);
        }
    }

    fn in_rounds(&self, cases: &[Case], told: &(dyn Fn(&Judged) + Sync)) -> Vec<Judged> {
        // Each entry has the remaining cases of a variant, and the results of the others. Variants
        // wait for each other between two rounds, so that the omitted cases do not depend on the
        // number of threads.
        let mut variants: Vec<(&[Case], Vec<Judged>)> =
            cases.chunk_by(Case::shares_variant).map(|cases| (cases, Vec::new())).collect();
        for look in std::iter::successors(Some(FIRST_LOOK), |look| Some(look.saturating_mul(2))) {
            let mut round = Vec::new();
            let taken: Vec<usize> = variants
                .iter_mut()
                .map(|(left, judged)| {
                    let (now, later) = left.split_at(left.len().min(look - judged.len()));
                    (*left, _) = (later, round.extend_from_slice(now));
                    now.len()
                })
                .collect();
            if round.is_empty() {
                break;
            }
            let results = work_through(&round, self.jobs, |case| self.judged(case, told));
            let mut results = results.into_iter();
            for ((left, judged), taken) in variants.iter_mut().zip(taken) {
                judged.extend(results.by_ref().take(taken));
                if self.is_decided(judged) {
                    *left = &[];
                }
            }
        }
        variants.into_iter().flat_map(|(_, judged)| judged).collect()
    }

    /// Returns true if the results of one variant decide every share that it expects, and it
    /// expects at least one.
    fn is_decided(&self, judged: &[Judged]) -> bool {
        let Some(first) = judged.first() else { return false };
        let expect = &self.variant(first.case).scenario.expect;
        let shares = expect.iter().filter_map(|(checker, expected)| {
            let violated = Count::of(judged.iter().filter_map(|one| one.finding(checker)));
            expected.share_of(violated).map(|(share, count)| share.is_decided_early(count))
        });
        let decided: Vec<bool> = shares.collect();
        !decided.is_empty() && decided.iter().all(|decided| *decided)
    }

    /// Judges the outcome of a case, with the holds and chains that the runner is to keep.
    pub fn judge(&self, case: Case, outcome: &Outcome) -> Judged {
        let mut one = judge(self.variant(case), case, outcome);
        if self.keeps_holds {
            one.holds = checker::holds(&Evidence::of(&outcome.history));
        }
        if self.keeps_chains {
            one.chains = report::chains(&outcome.history, &one.findings);
        }
        one
    }

    fn judged(&self, case: &Case, told: &(dyn Fn(&Judged) + Sync)) -> ControlFlow<Judged, Judged> {
        let outcome = self.outcome_of(&self.plan(*case), *case, TraceRetention::Nothing);
        let mut one = self.judge(*case, &outcome);
        if self.keeps_report_digest {
            one.report_digest = self.report_digest(outcome.history, &one);
        }
        told(&one);
        if self.stop.is_at(&one) { ControlFlow::Break(one) } else { ControlFlow::Continue(one) }
    }

    /// See [`Judged::report_digest`].
    fn report_digest(&self, mut history: History, judged: &Judged) -> String {
        // Exclude the scenario's description and the replay command, which contains the digest of
        // the file's text: both may change without a change of the run.
        (history.header.replay, history.header.about) = Default::default();
        let report = Report { history: &history, entries: &self.entries(judged), records: &[] }.json();
        let mut written = Vec::new();
        history.write(&mut written).expect("memory can be written to");
        serde_json::to_writer(&mut written, &report).expect("a value of JSON");
        sha256(written)
    }
}

/// Runs a scenario outside of a trial, and returns the verdict of one checker.
pub fn verdict(scenario: &Scenario, seed: u64, engine: Engine, checker: &Checker) -> Verdict {
    verdict_of_plan(&Plan::draw(scenario, seed), engine, checker)
}

/// Like [`verdict`], for an existing plan.
pub fn verdict_of_plan(plan: &Plan, engine: Engine, checker: &Checker) -> Verdict {
    let outcome = run(plan, "scenario", engine, TraceRetention::Nothing);
    checker.ask(&Evidence::of(&outcome.history)).verdict
}

/// Returns the name of a case: `file#variant@seed`, with the engine if it is not the default.
fn name(source: &Source, variant: &Variant, seed: u64, engine: Engine) -> String {
    let engine = if engine == Engine::Event { String::new() } else { format!("+{}", engine.name()) };
    format!("{}@{seed}{engine}", condition(source, variant))
}

fn condition(source: &Source, variant: &Variant) -> String {
    let variant = if variant.name.is_empty() { String::new() } else { format!("#{}", variant.name) };
    format!("{}{variant}", source.file)
}

/// A parsed token: the name of a case, and optionally the digest of its file's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The path of the scenario file, on disk or among the stock scenarios.
    pub file: String,
    /// The variant. Empty for a file without variants.
    pub variant: String,
    /// The seed of the run.
    pub seed: u64,
    /// The engine that advances the time.
    pub engine: Engine,
    /// The digest of the file's text when the token was printed; see [`Source::digest`].
    pub digest: Option<String>,
}

impl FromStr for Token {
    type Err = String;

    fn from_str(token: &str) -> Result<Token, String> {
        let form = "expected file#variant@seed, such as single/async_failover.toml#lag-of-8ms@7";
        let is_digest = |text: &str| text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let (case, digest) = match token.rsplit_once('~') {
            Some((case, digest)) if is_digest(digest) => (case, Some(digest.to_owned())),
            _ => (token, None),
        };
        let named = case.rsplit_once('+').and_then(|(case, name)| Some((case, Engine::named(name)?)));
        let (case, engine) = named.unwrap_or((case, Engine::Event));
        let (case, seed) = case.rsplit_once('@').ok_or(form)?;
        let seed = seed.parse().map_err(|_| format!("{seed:?} is no seed; {form}"))?;
        let (file, variant) = case.split_once('#').unwrap_or((case, ""));
        Ok(Token { file: file.to_owned(), variant: variant.to_owned(), seed, engine, digest })
    }
}

/// Parses a range of seeds, `A..B`, without the last one. Limits the range, so that the results fit
/// into memory.
///
/// # Errors
/// A message about the invalid range.
pub fn parse_seeds(text: &str) -> Result<Range<u64>, String> {
    let seeds = parse_any_seeds(text)?;
    if seeds.end - seeds.start > SEEDS_MAX {
        return Err(format!(
            "{text} is more than {SEEDS_MAX} seeds: their results would not fit into memory (`lockstorm campaign` runs more)"
        ));
    }
    Ok(seeds)
}

/// Parses a range of seeds, `A..B`, without the last one.
///
/// # Errors
/// A message about the invalid range.
pub fn parse_any_seeds(text: &str) -> Result<Range<u64>, String> {
    let form = "expected a range of seeds, such as 0..1000";
    let (from, to) = text.split_once("..").ok_or(form)?;
    let number = |text: &str| text.trim().replace('_', "").parse::<u64>().map_err(|_| form.to_owned());
    let (from, to) = (number(from)?, number(to)?);
    if from >= to {
        return Err(format!("{text} is an empty range: the last seed is not included"));
    }
    Ok(from..to)
}
