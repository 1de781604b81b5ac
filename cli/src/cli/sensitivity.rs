//! `lockstorm sensitivity`: finds the drawn values that separate violated runs from held ones.

use std::path::PathBuf;

use clap::Args;
use miette::{IntoDiagnostic, Result};
use serde::Serialize;

use super::{
    Exit,
    options::{Jobs, ONE_ENGINE, Seeds, checker_named, sources, virtual_engines},
    out::outln,
    progress::Progress,
};
use crate::study::sensitivity::{Separator, separators};
use lockstorm::{
    judge::{
        checker::{Checker, many},
        verdict::{CONFIDENCE, Count, Verdict},
    },
    run::Engine,
    run::runner::{Judged, Runner},
};

/// Find the values drawn from the seed that distinguish runs with a violation from runs without
#[derive(Debug, Args)]
pub(super) struct Sensitivity {
    /// Scenario files or folders, on disk or among the stock scenarios (`lockstorm list
    /// scenarios`); FILE#VARIANT selects one variant
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Checker whose verdict to explain [default: every checker that is violated in some runs and
    /// holds in others]
    #[arg(long, value_name = "NAME")]
    checker: Option<String>,
    #[command(flatten)]
    seeds: Seeds,
    #[command(flatten)]
    jobs: Jobs,
    /// Engine that advances virtual time
    #[arg(long, value_parser = virtual_engines(), default_value = Engine::Event.name())]
    #[arg(hide = ONE_ENGINE, hide_short_help = true)]
    engine: Engine,
    /// Print the results as JSON, one line per variant or sweep point and checker
    #[arg(long)]
    json: bool,
}

/// The result for one checker under one condition.
#[derive(Debug, Serialize)]
struct Found<'a> {
    case: String,
    checker: &'a str,
    violated: Count,
    /// The number of drawn values that were examined.
    drawn: usize,
    separators: Vec<Separator>,
}

impl Sensitivity {
    pub(super) fn run(self) -> Result<Exit> {
        let checkers: Vec<&Checker> = match &self.checker {
            Some(name) => vec![checker_named(name)?],
            None => lockstorm::judge::checker::LIST.iter().collect(),
        };
        let sources = sources(&self.paths)?;
        let trial =
            Runner::new(&sources).seeds(self.seeds.given()).jobs(self.jobs.count()).engine(self.engine);
        let progress = Progress::new(trial.cases().len());
        let judged = trial.run(&|judged| progress.step(judged.simulated));
        progress.finish();
        let mut separated = false;
        let mut alike = Vec::new();
        for runs in judged.chunk_by(|one, other| one.case.shares_variant(&other.case)) {
            let all: Vec<_> =
                checkers.iter().filter_map(|checker| self.asked(&trial, runs, checker)).collect();
            if all.is_empty() {
                alike.push(are_alike(&trial, runs));
            }
            for found in all {
                separated |= !found.separators.is_empty();
                if self.json {
                    outln!("{}", serde_json::to_string(&found).into_diagnostic()?);
                } else {
                    print(&found);
                }
            }
        }
        if !self.json {
            alike.iter().for_each(|words| outln!("{words}"));
        }
        Ok(if separated { Exit::Expected } else { Exit::Undecided })
    }

    /// Examines one checker. Returns `None` if the command names no checker and all runs agree.
    fn asked<'a>(&self, trial: &Runner<'_>, runs: &[Judged], checker: &'a Checker) -> Option<Found<'a>> {
        let violated = Count::of(runs.iter().filter_map(|run| run.finding(checker.name)));
        if self.checker.is_none() && (violated.yes == 0 || violated.no == 0) {
            return None;
        }
        let decided = runs.iter().filter_map(|run| {
            let violated = match run.finding(checker.name)?.verdict {
                Verdict::Violated { .. } => true,
                Verdict::Holds { .. } => false,
                Verdict::Undecided { .. } => return None,
            };
            Some((trial.plan(run.case).drawn_by_all_occurrences(), violated))
        });
        let decided: Vec<_> = decided.collect();
        let case = trial.condition(runs[0].case.source, trial.variant(runs[0].case));
        let drawn = decided.first().map_or(0, |(drawn, _)| drawn.len());
        Some(Found { case, checker: checker.name, violated, drawn, separators: separators(&decided) })
    }
}

/// Says that nothing can separate these runs, because no checker is violated in some of them and
/// holds in others.
fn are_alike(trial: &Runner<'_>, runs: &[Judged]) -> String {
    let case = trial.condition(runs[0].case.source, trial.variant(runs[0].case));
    let is_violated = |run: &Judged, name| {
        run.finding(name).is_some_and(|finding| matches!(finding.verdict, Verdict::Violated { .. }))
    };
    let names = lockstorm::judge::checker::LIST.iter().map(|checker| checker.name);
    let violated: Vec<&str> = names.filter(|name| runs.iter().any(|run| is_violated(run, name))).collect();
    let violated = if violated.is_empty() { "none".to_owned() } else { violated.join(", ") };
    let runs = many(runs.len(), "run");
    format!(
        "{case}: nothing to separate, no checker was violated in some of {runs} and held in others; violated: {violated}"
    )
}

fn print(found: &Found<'_>) {
    let Found { case, checker, violated, drawn, separators } = found;
    outln!("{case}: {checker} violated in {} of {} runs", violated.yes, violated.yes + violated.no);
    let width = separators.iter().map(|one| one.path.len()).max().unwrap_or(0);
    for Separator { path, bits, parts, .. } in separators {
        let parts = parts.iter().map(|part| {
            let of = part.violated;
            format!("{}: {} of {} ({})", part.of, of.yes, of.runs(), of.interval(CONFIDENCE))
        });
        outln!("  {path:width$}  {bits:.3} bits  {}", parts.collect::<Vec<_>>().join(", "));
    }
    match (drawn, separators.len()) {
        (0, _) => outln!("  nothing is drawn from the seed: give a key a range, such as \"1s..5s\""),
        (_, 0) => {
            outln!(
                "  none of {drawn} drawn values separates them better than chance; more seeds may help, or the cause"
            );
            outln!(
                "  is a value that workloads draw during the run, such as how long they hold the lock: not examined"
            );
        }
        (drawn, found) if found < *drawn => outln!("  no better than chance: {} more", drawn - found),
        _ => {}
    }
}
