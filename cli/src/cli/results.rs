//! The printed results of runs, and the files about one of them.

use std::{
    cell::OnceCell,
    fs,
    io::{IsTerminal, stdout},
    path::PathBuf,
    rc::Rc,
};

use clap::Args;
use lockstorm_world::TraceRetention;
use miette::{IntoDiagnostic, Result, WrapErr};
use serde::Serialize;

use super::{
    Exit, conditions,
    gathered::Gathered,
    options::violation,
    out::{errln, out, outln},
    picture::survival,
};
use crate::study::{
    cause::{self, Inquiry},
    plot::{self, Plot},
};
use lockstorm::{
    file::scenario::{Compared, Coordinate},
    judge::{
        checker::Hold,
        history::{Drawn, FailedCalls},
        verdict::{Finding, Match, Quantity},
    },
    report::{self, Besides, Causes, ChainShown, Link, Picture, Report, failed_calls},
    run::Outcome,
    run::{
        runner::{Case, Judged, Runner},
        tally::Tally,
    },
};

/// Outputs besides the text on the terminal.
#[derive(Debug, Clone, Args)]
pub(super) struct Output {
    /// Write an HTML page about one run: the first unexpected one; if there is none, the first
    /// undecided one, then the first violated one, then the first run
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Write the history of the run that --report chooses, for `lockstorm check`
    #[arg(long, value_name = "FILE.jsonl")]
    history: Option<PathBuf>,
    /// Write the commands of the nodes of the run that --report chooses into a folder, for
    /// `lockstorm audit`: one file NODE.monitor for each node, as `redis-cli monitor` writes it; in
    /// virtual time only
    #[arg(long, value_name = "FOLDER")]
    monitor: Option<PathBuf>,
    /// Print the results as JSON, one line per run; a sweep or an expected share adds one line per
    /// sweep point and checker
    #[arg(long)]
    json: bool,
    /// Print the causes of each printed violation, as `lockstorm why` does; in virtual time only
    #[arg(long)]
    why: bool,
}

/// The fewest holds for a picture of their survival.
const HOLDS_MIN: usize = 5;

/// The runs to print besides those that are not as expected.
#[derive(Debug, Clone, Copy)]
pub(super) struct Print {
    /// Print all.
    pub(super) verbose: bool,
    /// Print the run that matters most.
    pub(super) chosen: bool,
}

impl Output {
    /// Returns what keeps the runs until they are reported.
    pub(super) fn gathered(&self, print: Print) -> Gathered {
        Gathered::new(if self.json { self.why } else { print.verbose })
    }

    /// Adds a run. With `--json`, prints it at once, unless its causes are to be searched.
    pub(super) fn add(&self, trial: &Runner<'_>, gathered: &mut Gathered, judged: Judged) -> Result<()> {
        if self.json && !self.why {
            outln!("{}", json(trial, &judged, None)?);
        }
        gathered.add(judged);
        Ok(())
    }

    /// Prints the results of the runs, writes the files about the run that matters most, and
    /// returns the exit status. `outcome` provides the outcome of a case.
    pub(super) fn report(
        &self,
        trial: &Runner<'_>,
        gathered: &Gathered,
        tallies: &[Tally<'_>],
        speed: &str,
        print: Print,
        outcome: impl Fn(Case) -> Rc<Outcome>,
    ) -> Result<Exit> {
        let chosen = gathered.chosen().map(|chosen| CausesOf::new(trial, chosen));
        let is_alone = gathered.runs() == 1;
        // The chosen run is repeated at most once, and only if something asks for its history.
        let repeated = OnceCell::new();
        let outcome = |case: Case| match &chosen {
            Some(chosen) if chosen.judged.case == case => Rc::clone(repeated.get_or_init(|| outcome(case))),
            _ => outcome(case),
        };
        let shown = match &chosen {
            Some(causes) if is_alone => std::slice::from_ref(causes.judged),
            _ => &gathered.kept[..],
        };
        for one in shown {
            let another = CausesOf::new(trial, one);
            let causes = chosen.as_ref().filter(|chosen| chosen.judged.case == one.case).unwrap_or(&another);
            if self.json && self.why {
                outln!("{}", json(trial, one, self.causes(causes))?);
            } else if !self.json {
                let whole = is_alone || one.verdict() != Match::AsExpected;
                let outcome = whole.then(|| outcome(one.case));
                show(trial, one, outcome.as_deref(), print.verbose, self.causes(causes));
            }
        }
        if let Some(causes) = &chosen {
            let chosen = causes.judged;
            if print.chosen && !self.json && shown.iter().all(|one| one.case != chosen.case) {
                show(trial, chosen, Some(&outcome(chosen.case)), print.verbose, self.causes(causes));
            }
            let pictures = if self.report.is_some() {
                pictures(trial, chosen, (gathered.holds.clone(), gathered.runs()), tallies)
            } else {
                Vec::new()
            };
            if self.writes_files() || self.asks_for_monitor() {
                self.write(causes, &outcome(chosen.case), &pictures)?;
            }
        }
        if !self.json {
            let found = trial.sources().iter().filter(|_| print.verbose);
            for (source, finding) in found.filter_map(|source| Some((source, source.finding()?))) {
                outln!("{} found: {}", source.file, finding.trim());
            }
            if conditions::are_worth_counting(trial) {
                conditions::print(trial, tallies);
            }
            // A printed run has its failed calls with it.
            if let Some(line) = gathered.failed.line().filter(|_| !is_alone) {
                outln!("{line}");
            }
            outln!("{}", summary(gathered, tallies, speed));
        } else if conditions::are_worth_counting(trial) {
            conditions::print_json(trial, tallies)?;
        }
        Ok(gathered.worst().max(exit_of([], tallies)))
    }

    /// Prints one run with all findings, or as a line of JSON, and writes the files about it.
    pub(super) fn one(&self, trial: &Runner<'_>, judged: &Judged, outcome: &Outcome) -> Result<()> {
        let causes = CausesOf::new(trial, judged);
        if self.json {
            let chains = report::chains(&outcome.history, &judged.findings);
            outln!("{}", json(trial, &Judged { chains, ..judged.clone() }, self.causes(&causes))?);
        } else {
            show(trial, judged, Some(outcome), true, self.causes(&causes));
        }
        self.write(&causes, outcome, &[])
    }

    /// Returns true with `--json`.
    pub(super) fn is_json(&self) -> bool {
        self.json
    }

    /// Returns true with `--monitor`.
    pub(super) fn asks_for_monitor(&self) -> bool {
        self.monitor.is_some()
    }

    /// Returns true with `--report` or `--history`.
    pub(super) fn writes_files(&self) -> bool {
        self.report.is_some() || self.history.is_some()
    }

    /// Returns true with `--why`.
    pub(super) fn asks_why(&self) -> bool {
        self.why
    }

    /// Returns the causes of a violation with `--why`, or else `None`.
    fn causes<'a>(&self, of: &'a CausesOf<'_>) -> Option<&'a cause::Causes> {
        self.why.then(|| of.get()).flatten()
    }

    /// Returns true with `--report`: the page shows the survival of the holds of all runs.
    pub(super) fn shows_holds(&self) -> bool {
        self.report.is_some()
    }

    /// Returns true with `--json`, which prints the chain of events of each violation.
    pub(super) fn shows_chains(&self) -> bool {
        self.json
    }

    /// Returns the part of a run's trace that the requested files need.
    pub(super) fn retention(&self) -> TraceRetention {
        // The page draws messages.
        if self.report.is_some() { TraceRetention::All } else { TraceRetention::Nothing }
    }

    /// Writes the requested files about one case.
    fn write(&self, causes: &CausesOf<'_>, outcome: &Outcome, pictures: &[Picture]) -> Result<()> {
        let failed = |path: &PathBuf| format!("{} cannot be written", path.display());
        if let Some(path) = &self.report {
            fs::write(path, page_of(causes, outcome, pictures))
                .into_diagnostic()
                .wrap_err_with(|| failed(path))?;
            errln!("{} shows {}", path.display(), causes.trial.token(causes.judged.case));
        }
        if let Some(path) = &self.history {
            let file = fs::File::create(path).into_diagnostic().wrap_err_with(|| failed(path))?;
            let written = outcome.history.write(std::io::BufWriter::new(file));
            written.into_diagnostic().wrap_err_with(|| failed(path))?;
        }
        if let Some(folder) = &self.monitor {
            fs::create_dir_all(folder).into_diagnostic().wrap_err_with(|| failed(folder))?;
            for (node, lines) in causes.trial.captures(causes.judged.case) {
                let path = folder.join(format!("{node}.monitor"));
                fs::write(&path, lines).into_diagnostic().wrap_err_with(|| failed(&path))?;
            }
        }
        Ok(())
    }
}

/// The causes of a run's most important violation. The search takes many runs, so it happens only
/// once, at the first use.
pub(super) struct CausesOf<'a> {
    trial: &'a Runner<'a>,
    judged: &'a Judged,
    found: OnceCell<Option<cause::Causes>>,
}

impl<'a> CausesOf<'a> {
    pub(super) fn new(trial: &'a Runner<'a>, judged: &'a Judged) -> Self {
        Self { trial, judged, found: OnceCell::new() }
    }

    /// Returns `None` if nothing is violated, or if the run was in real time and cannot be
    /// repeated.
    fn get(&self) -> Option<&cause::Causes> {
        let look = || {
            let variant = self.trial.variant(self.judged.case);
            let engine = self.trial.virtual_engine()?;
            let checker = violation(self.judged, variant)?;
            Inquiry { seed: self.judged.case.seed, engine, checker }.of(&variant.scenario)
        };
        self.found.get_or_init(look).as_ref()
    }
}

/// Returns the page of one run, whose whole trace must be kept. If the run is violated and can be
/// repeated, this also searches its causes.
pub(super) fn page_of(causes: &CausesOf<'_>, outcome: &Outcome, pictures: &[Picture]) -> String {
    let (trial, judged) = (causes.trial, causes.judged);
    let entries = trial.entries(judged);
    let report = Report { history: &outcome.history, entries: &entries, records: &outcome.records };
    let plan = trial.plan(judged.case).to_string();
    let causes = causes.get().map(|found| Causes { checker: found.checker, lines: found.why.lines() });
    report.html(Besides { plan: &plan, causes: causes.as_ref(), pictures })
}

/// Draws the pictures of all runs for the page of one: the sweep with its run as a point, and the
/// survival of the holds.
pub(super) fn pictures(
    trial: &Runner<'_>,
    chosen: &Judged,
    (holds, runs): (Vec<Hold>, usize),
    tallies: &[Tally<'_>],
) -> Vec<Picture> {
    let file = &trial.sources()[chosen.case.source].file;
    let variant = trial.variant(chosen.case);
    let points: Vec<Tally<'_>> = tallies
        .iter()
        .filter(|tally| tally.source == chosen.case.source && tally.variant.of == variant.of)
        .cloned()
        .collect();
    // Without a sweep, or with more than two axes, there is no such picture.
    let sweep = plot::checker(&points).and_then(|checker| Plot::of(file, &points, checker).ok());
    let survival = survival(holds, runs, file, HOLDS_MIN);
    let titled = |title: &str, svg: String| Picture { title: title.to_owned(), svg };
    let sweep = sweep.map(|plot| titled("The sweep that this run is a point of", plot.svg()));
    sweep.into_iter().chain(survival.map(|svg| titled("How long holds survived in all runs", svg))).collect()
}

/// Returns the exit status of the worst run or expected share.
pub(super) fn exit_of<'a>(
    judged: impl IntoIterator<Item = &'a Judged>,
    tallies: impl IntoIterator<Item = &'a Tally<'a>>,
) -> Exit {
    let runs = judged.into_iter().map(|one| Exit::of(&one.verdict()));
    let shares = tallies.into_iter().map(|tally| Exit::of(&tally.verdict()));
    runs.chain(shares).max().unwrap_or(Exit::Expected)
}

/// Returns the findings that a file expects, in runs of one condition with the same verdicts: the
/// checker, the verdict, and the range of each bounded measure over these runs. For an expected
/// share, the counts of all runs under the condition take the place of the measures.
///
/// # Panics
/// If there is no run.
pub(super) fn measured(
    trial: &Runner<'_>,
    alike: &[Judged],
    tallies: &[Tally<'_>],
) -> Vec<(String, &'static str, String)> {
    let one = &alike[0];
    let variant = trial.variant(one.case);
    let tally = tallies.iter().find(|tally| std::ptr::eq(tally.variant, variant));
    let found = variant.scenario.expect.iter().filter_map(|(checker, expected)| {
        let row = tally.and_then(|tally| tally.rows.iter().find(|row| row.checker == *checker));
        if let Some(row) = row.filter(|row| row.share.is_some()) {
            let (word, counted) = conditions::share(row);
            return Some((checker.clone(), word, counted));
        }
        let finding = one.finding(checker)?;
        let measured = expected.measures.keys().filter_map(|name| {
            let of_run = |judged: &Judged| judged.finding(checker)?.measure(name);
            let by_size = |one: &Quantity, other: &Quantity| one.total_cmp(other);
            let least = alike.iter().filter_map(of_run).min_by(by_size)?.to_string();
            let most = alike.iter().filter_map(of_run).max_by(by_size)?.to_string();
            let name = name.replace('_', " ");
            Some(if least == most { format!("{name} {least}") } else { format!("{name} {least} to {most}") })
        });
        let measured: Vec<String> = measured.collect();
        Some((checker.clone(), finding.verdict.word(), measured.join(", ")))
    });
    found.collect()
}

/// Prints the result of one run. With its outcome, also prints all findings with their witnesses,
/// and with its causes, also these.
pub(super) fn show(
    trial: &Runner<'_>,
    judged: &Judged,
    outcome: Option<&Outcome>,
    verbose: bool,
    causes: Option<&cause::Causes>,
) {
    let word = match judged.verdict() {
        Match::AsExpected => "as expected",
        Match::Undecided(_) => "UNDECIDED",
        Match::Otherwise(_) => "NOT AS EXPECTED",
    };
    outln!("{}: {word}", trial.token(judged.case));
    if let Some(outcome) = outcome {
        let entries = trial.entries(judged);
        let report = Report { history: &outcome.history, entries: &entries, records: &[] };
        let confirmed = causes.map_or_else(Vec::new, |causes| causes.why.confirmed(&outcome.history.faults));
        let checker = causes.map_or("", |causes| causes.checker);
        let nearest = ChainShown::Nearest { checker, confirmed: &confirmed };
        let chain = if verbose { ChainShown::Whole } else { nearest };
        out!("{}", report.text(stdout().is_terminal(), chain));
    } else {
        for line in failed_calls(&judged.failed) {
            outln!("  {line}");
        }
    }
    if let Some(causes) = causes {
        outln!("  why {} was violated:", causes.checker);
        for line in causes.why.lines() {
            outln!("    {line}");
        }
    }
}

fn summary(gathered: &Gathered, tallies: &[Tally<'_>], speed: &str) -> String {
    format!(
        "{} as expected, {} not, {} undecided{} ({speed})",
        gathered.count(Exit::Expected),
        gathered.count(Exit::Unexpected),
        gathered.count(Exit::Undecided),
        conditions::shares(tallies)
    )
}

/// Formats a run as a line of JSON.
fn json<'a>(trial: &Runner<'_>, judged: &'a Judged, why: Option<&cause::Causes>) -> Result<String> {
    #[derive(Serialize)]
    struct Line<'a> {
        case: String,
        /// The real servers, as in a report.
        #[serde(skip_serializing_if = "str::is_empty")]
        servers: &'a str,
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        point: &'a [Coordinate],
        verdict: Match,
        expected: std::collections::BTreeMap<&'a str, &'a Match>,
        findings: Vec<Found<'a>>,
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        failed_calls: &'a [FailedCalls],
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        measures: &'a [Compared],
        fingerprint: &'a str,
        simulated_seconds: f64,
        /// As in the header of a history.
        drawn: Vec<Drawn>,
        plan: Vec<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<&'a cause::Causes>,
    }
    #[derive(Serialize)]
    struct Found<'a> {
        #[serde(flatten)]
        finding: &'a Finding,
        #[serde(skip_serializing_if = "Option::is_none")]
        chain: Option<&'a Vec<Link>>,
    }
    let found = |finding: &'a Finding| Found { finding, chain: judged.chains.get(finding.checker) };
    let plan = trial.plan(judged.case);
    let drawn = plan.drawn().into_iter().map(Into::into).collect();
    let plan = plan.to_string();
    let line = Line {
        case: trial.token(judged.case),
        servers: &judged.servers,
        point: &trial.variant(judged.case).point,
        verdict: judged.verdict(),
        expected: judged.matches.iter().map(|(checker, one)| (checker.as_str(), one)).collect(),
        findings: judged.findings.iter().map(found).collect(),
        failed_calls: &judged.failed,
        measures: &judged.compared,
        fingerprint: &judged.fingerprint,
        simulated_seconds: judged.simulated,
        drawn,
        plan: plan.lines().map(|line| line.trim_end().to_owned()).collect(),
        why,
    };
    serde_json::to_string(&line).into_diagnostic()
}
