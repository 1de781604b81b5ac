//! `lockstorm run`: scenarios with seeds, judged.

use std::{
    fs,
    io::{IsTerminal, stdout},
    path::PathBuf,
};

use clap::Args;
use lockstorm_sim::world::TraceRetention;
use miette::{IntoDiagnostic, Result, WrapErr};
use serde::Serialize;

use super::{
    Exit,
    options::{Jobs, Seeds, sources, virtual_engines},
    out::{errln, out, outln},
    progress::Progress,
};
use crate::{
    plan::Plan,
    report::Report,
    run::{Engine, Outcome},
    runner::{Judged, Runner, Stop},
    verdict::{Finding, Match},
};

/// Run scenarios, and judge what happened against what they expect
#[derive(Debug, Args)]
pub(super) struct Run {
    /// Scenario files and folders of them, on the disk or among the stock scenarios (`lockstorm list scenarios`)
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    seeds: Seeds,
    #[command(flatten)]
    jobs: Jobs,
    /// What moves time on
    #[arg(long, value_parser = virtual_engines(), default_value = Engine::Event.name())]
    engine: Engine,
    /// Use private real `redis-server` processes for nodes, in real time: crashes are SIGKILL, pauses SIGSTOP, and clocks,
    /// links and messages are left alone
    #[arg(long, conflicts_with_all = ["engine", "until_violation"])]
    real: bool,
    /// Leave out what cannot be done to real servers, instead of refusing to run
    #[arg(long, requires = "real")]
    skip_unsupported: bool,
    /// Stop at the first violation, expected or not, and show it
    #[arg(long)]
    until_violation: bool,
    /// Say of every run what came out, not only of those that are not as expected
    #[arg(long, short)]
    verbose: bool,
    #[command(flatten)]
    output: Output,
}

/// Where results go besides the terminal.
#[derive(Debug, Clone, Args)]
pub(super) struct Output {
    /// Write a page about the run that matters most
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Write the history of the run that matters most, for `lockstorm check`: the first one that is not as expected, or else the
    /// first violation, or else the first
    #[arg(long, value_name = "FILE.jsonl")]
    history: Option<PathBuf>,
    /// Print the results as JSON, one line per run
    #[arg(long)]
    pub(super) json: bool,
}

impl Run {
    pub(super) fn run(self) -> Result<Exit> {
        let sources = sources(&self.paths)?;
        if self.real {
            let seeds = self.seeds.given();
            return super::real::run(&sources, seeds, self.skip_unsupported, self.verbose, &self.output);
        }
        let trial = Runner::new(&sources)
            .seeds(self.seeds.given())
            .jobs(self.jobs.count())
            .engine(self.engine)
            .stop(if self.until_violation { Stop::AtViolation } else { Stop::Never });
        let progress = Progress::new(trial.cases().len());
        let judged = trial.run(&|judged| progress.step(judged.simulated));
        let speed = progress.finish();
        let chosen = most_telling(&judged);
        for one in &judged {
            let expected = one.verdict() == Match::AsExpected;
            if self.output.json {
                outln!("{}", json(&trial, one)?);
            } else if !expected || self.verbose || judged.len() == 1 {
                let whole = judged.len() == 1 || !expected;
                let outcome = whole.then(|| trial.outcome(one.case, TraceRetention::Nothing));
                show(&trial, one, outcome.as_ref());
            }
        }
        if let Some(chosen) = chosen {
            let outcome = trial.outcome(chosen.case, TraceRetention::Nothing);
            // What was not as expected is shown already, and so is what there is only one of.
            let shown = self.verbose || judged.len() == 1 || chosen.verdict() != Match::AsExpected;
            if self.until_violation && !self.output.json && !shown {
                show(&trial, chosen, Some(&outcome));
            }
            self.output.write(&trial, chosen, &outcome)?;
        }
        if !self.output.json {
            outln!("{}", summary(&judged, &speed));
        }
        Ok(exit_of(&judged))
    }
}

/// The run that a person would want to see.
pub(super) fn most_telling(judged: &[Judged]) -> Option<&Judged> {
    let unexpected = judged.iter().find(|one| matches!(one.verdict(), Match::Otherwise(_)));
    let undecided = judged.iter().find(|one| matches!(one.verdict(), Match::Undecided(_)));
    let violated =
        judged.iter().find(|one| one.findings.iter().any(|finding| finding.verdict.witness().is_some()));
    unexpected.or(undecided).or(violated).or(judged.first())
}

/// What the worst of the runs means for the exit status.
pub(super) fn exit_of(judged: &[Judged]) -> Exit {
    let exits = judged.iter().map(|one| match one.verdict() {
        Match::AsExpected => Exit::Expected,
        Match::Undecided(_) => Exit::Undecided,
        Match::Otherwise(_) => Exit::Unexpected,
    });
    exits.max().unwrap_or(Exit::Expected)
}

/// Prints what came out of one run; with everything that was found, and the witness, where the outcome is given.
pub(super) fn show(trial: &Runner<'_>, judged: &Judged, outcome: Option<&Outcome>) {
    let word = match judged.verdict() {
        Match::AsExpected => "as expected",
        Match::Undecided(_) => "UNDECIDED",
        Match::Otherwise(_) => "NOT AS EXPECTED",
    };
    outln!("{}: {word}", trial.token(judged.case));
    if let Some(outcome) = outcome {
        let entries = trial.entries(judged);
        out!("{}", Report { history: &outcome.history, entries: &entries }.text(stdout().is_terminal()));
    }
}

pub(super) fn summary(judged: &[Judged], speed: &str) -> String {
    let count = |exit: Exit| judged.iter().filter(|one| exit_of(std::slice::from_ref(*one)) == exit).count();
    format!(
        "{} as expected, {} not, {} undecided ({speed})",
        count(Exit::Expected),
        count(Exit::Unexpected),
        count(Exit::Undecided)
    )
}

/// One line of JSON about one run.
pub(super) fn json(trial: &Runner<'_>, judged: &Judged) -> Result<String> {
    #[derive(Serialize)]
    struct Line<'a> {
        case: String,
        verdict: Match,
        expected: std::collections::BTreeMap<&'a str, &'a Match>,
        findings: &'a [Finding],
        fingerprint: &'a str,
        simulated_seconds: f64,
        plan: Vec<String>,
    }
    let plan = Plan::draw(&trial.variant(judged.case).scenario, judged.case.seed).to_string();
    let line = Line {
        case: trial.token(judged.case),
        verdict: judged.verdict(),
        expected: judged.matches.iter().map(|(checker, one)| (checker.as_str(), one)).collect(),
        findings: &judged.findings,
        fingerprint: &judged.fingerprint,
        simulated_seconds: judged.simulated,
        plan: plan.lines().map(|line| line.trim_end().to_owned()).collect(),
    };
    serde_json::to_string(&line).into_diagnostic()
}

impl Output {
    /// Writes the files that were asked for, about one case.
    pub(super) fn write(&self, trial: &Runner<'_>, judged: &Judged, outcome: &Outcome) -> Result<()> {
        let failed = |path: &PathBuf| format!("{} cannot be written", path.display());
        if let Some(path) = &self.report {
            let entries = trial.entries(judged);
            let page = Report { history: &outcome.history, entries: &entries }.html();
            fs::write(path, page).into_diagnostic().wrap_err_with(|| failed(path))?;
            errln!("{} shows {}", path.display(), trial.token(judged.case));
        }
        if let Some(path) = &self.history {
            let file = fs::File::create(path).into_diagnostic().wrap_err_with(|| failed(path))?;
            let written = outcome.history.write(std::io::BufWriter::new(file));
            written.into_diagnostic().wrap_err_with(|| failed(path))?;
        }
        Ok(())
    }
}
