//! `lockstorm claims`: decides well-known claims about Redis locks.

use std::{ops::ControlFlow, path::PathBuf, slice::from_ref};

use clap::{Args, builder::PossibleValuesParser};
use lockstorm_sim::generation::Generation;
use lockstorm_world::TraceRetention;
use miette::{IntoDiagnostic, Result, miette};
use serde::Serialize;

use super::{
    Exit,
    boundary::{self, Claimed, at_each_point, search_of},
    conditions::has_share,
    hunted,
    match_rate::AT_ONCE,
    measures::claimed_measures,
    options::{Jobs, ONE_ENGINE, RealServers, virtual_engines},
    out::{errln, outln},
    pages::Pages,
    progress::Progress,
    results::{exit_of, measured, show},
    twice::stock,
};
use lockstorm::{
    file::scenario::{Claim, Source, nearest},
    judge::verdict::Match,
    report::FormulaRow,
    run::Engine,
    run::{
        runner::{Judged, Runner},
        tally::{Tally, tally},
        worklist::work_through,
    },
};

/// Decide well-known claims about Redis locks, and report which came out as stated
#[derive(Debug, Args)]
#[command(mut_arg("jobs", |jobs| jobs.help(format!(
    "Number of runs at a time [default: number of processors; with --real {AT_ONCE}]"
))), mut_arg("servers", |servers| servers.requires("real")))]
pub(super) struct Claims {
    /// Claims to decide, such as S4 or r2 [default: all]
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    jobs: Jobs,
    /// Engine that advances virtual time
    #[arg(long, value_parser = virtual_engines(), default_value = Engine::Event.name())]
    #[arg(hide = ONE_ENGINE, hide_short_help = true)]
    engine: Engine,
    /// Run each claim once on private server processes, in real time, and report how many runs
    /// agree with the simulation
    #[arg(long, conflicts_with_all = ["engine", "verbose"])]
    real: bool,
    #[command(flatten)]
    servers: RealServers,
    /// Generation of servers for the nodes whose files name none, or `all`; with several, the
    /// claims are decided on each, and a table follows [default: redis-8.2]
    #[arg(long = "as", value_name = "SERVER", value_parser = generations())]
    #[arg(conflicts_with_all = ["real", "report"])]
    generations: Vec<String>,
    /// Hunt for a violation in each variant of the claims, as `lockstorm hunt` does, in place of
    /// the faults of its file; and report which results are not as `[claim.hunted]` states
    #[arg(long, conflicts_with_all = ["real", "engine", "verbose", "generations", "report"])]
    hunt: bool,
    /// Maximum number of runs of each hunt [default: as the file states, or 500]
    #[arg(long, value_name = "RUNS", requires = "hunt", value_parser = clap::value_parser!(u64).range(1..))]
    budget: Option<u64>,
    /// Write a folder of HTML pages: an index of the claims with their verdicts and boundaries, a
    /// page of one run per variant, and the scenario files
    #[arg(long, value_name = "DIR", conflicts_with = "real")]
    report: Option<PathBuf>,
    /// Print the results as JSON, one line per claim with its runs, measures and boundaries
    #[arg(long, conflicts_with_all = ["real", "verbose"])]
    json: bool,
    /// Print one run of each variant in full: each owner of the lock with the end of its hold, and
    /// the chain of events of each violation
    #[arg(long, short)]
    verbose: bool,
}

impl Claims {
    pub(super) fn run(self) -> Result<Exit> {
        let sources = self.chosen(stock()?)?;
        if self.real {
            return super::match_rate::run(&sources, self.jobs.given(), &self.servers.find()?);
        }
        if self.hunt {
            return hunted::run(&sources, &self.jobs, self.budget, self.json);
        }
        let mut worst = Exit::Expected;
        let mut table = Vec::new();
        for generation in self.generations() {
            let (stated, others) = on_generation(&sources, generation)?;
            if let Some(generation) = generation {
                errln!("{generation}");
            }
            let (exit, otherwise) = self.decide(&stated, generation)?;
            worst = worst.max(exit);
            table.push((generation, stated.len(), otherwise, others));
        }
        if table.len() > 1 {
            errln!("generation   as stated  otherwise");
            for (generation, stated, otherwise, others) in table {
                let generation = generation.unwrap_or_default();
                let is_stated = stated - otherwise.len();
                let not_stated = if others.is_empty() {
                    String::new()
                } else {
                    format!("; their files do not state: {}", others.join(" "))
                };
                errln!("{generation:11}  {is_stated:9}  {}{not_stated}", otherwise.join(" "));
            }
        }
        Ok(worst)
    }

    /// Returns the generations on which the claims are decided; `None` for those of the files.
    fn generations(&self) -> Vec<Option<&'static str>> {
        let all = Generation::ALL.map(Generation::name).into_iter();
        let is_wanted = |name: &&str| self.generations.iter().any(|wanted| wanted == name || wanted == "all");
        let wanted: Vec<Option<&str>> = all.filter(is_wanted).map(Some).collect();
        if wanted.is_empty() { vec![None] } else { wanted }
    }

    /// Decides the claims. Returns the worst result, and the claims that did not come out as
    /// stated.
    fn decide(&self, sources: &[Source], generation: Option<&str>) -> Result<(Exit, Vec<String>)> {
        let mut pages = self.report.as_deref().map(Pages::create).transpose()?;
        let trial =
            Runner::new(sources).jobs(self.jobs.count()).engine(self.engine).keep_holds(pages.is_some());
        let progress = Progress::new(trial.cases().len());
        let judged = trial.run(&|judged| progress.step(judged.simulated));
        let speed = progress.finish();
        let tallies = tally(&trial, &judged);
        // Search many boundaries at a time: most have one seed, which keeps only one processor
        // busy.
        let all: Vec<&Source> = sources.iter().collect();
        let boundaries = work_through(&all, self.jobs.count(), |&source| {
            let found = self.boundaries(source);
            if found.is_ok() { ControlFlow::Continue(found) } else { ControlFlow::Break(found) }
        });
        let boundaries = boundaries.into_iter().collect::<Result<Vec<_>>>()?;
        let (mut otherwise, mut worst) = (Vec::new(), Exit::Expected);
        for (at, (source, boundaries)) in sources.iter().zip(&boundaries).enumerate() {
            let of: Vec<Judged> = judged.iter().filter(|one| one.case.source == at).cloned().collect();
            let tallies: Vec<Tally<'_>> =
                tallies.iter().filter(|tally| tally.source == at).cloned().collect();
            let exit = boundaries.iter().map(Claimed::exit).fold(exit_of(&of, &tallies), Exit::max);
            if exit != Exit::Expected {
                otherwise.extend(source.claim().map(|claim| claim.id.clone()));
            }
            worst = worst.max(exit);
            let measures = claimed_measures(&trial, &of);
            if self.json {
                let of = (&of[..], &tallies[..], generation);
                outln!("{}", json(&trial, source, of, (&measures, boundaries), exit)?);
            } else {
                self.print(&trial, source, &of, &tallies, exit);
                for row in &measures {
                    outln!("       {}", row.heading);
                    row.lines.iter().for_each(|line| outln!("         {line}"));
                }
                for found in boundaries {
                    outln!("       boundary{}", found.heading());
                    for line in found.lines() {
                        outln!("         {line}");
                    }
                }
            }
            if let Some(pages) = &mut pages {
                pages.add(&trial, source, &of, &tallies, (measures, boundaries), exit)?;
            }
        }
        let as_claimed = sources.len() - otherwise.len();
        let on = generation.map_or(String::new(), |generation| format!(" on {generation}"));
        let summary = format!("{as_claimed} of {} claims came out as stated{on} ({speed})", sources.len());
        if self.json {
            errln!("{summary}");
        } else {
            outln!("{summary}");
        }
        pages.map_or(Ok(()), Pages::finish)?;
        Ok((worst, otherwise))
    }

    /// Searches the boundary of each variant that claims one.
    fn boundaries<'a>(&self, source: &'a Source) -> Result<Vec<Claimed<'a>>> {
        let mut all = Vec::new();
        for variant in source.conditions() {
            let Some(written) = &variant.scenario.boundary else { continue };
            for search in at_each_point(search_of(source, variant, written, self.engine)?)? {
                let found = search.of(0..variant.scenario.run.seeds, 1, &|_| {});
                let found = found.map_err(|error| *error)?;
                all.push(Claimed::of(search, found));
            }
        }
        Ok(all)
    }

    /// Returns the requested claims in the order of their numbers.
    fn chosen(&self, sources: Vec<Source>) -> Result<Vec<Source>> {
        let mut claims: Vec<(String, Source)> =
            sources.into_iter().filter_map(|source| Some((source.claim()?.id.clone(), source))).collect();
        claims.sort_by_key(|(id, _)| order(id));
        for wanted in &self.ids {
            if !claims.iter().any(|(id, _)| id.eq_ignore_ascii_case(wanted)) {
                let near = nearest(wanted, claims.iter().map(|(id, _)| id.as_str()));
                let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
                return Err(miette!(
                    "there is no claim {wanted}{near} (`lockstorm list scenarios` lists all)"
                ));
            }
        }
        let wanted =
            |id: &str| self.ids.is_empty() || self.ids.iter().any(|wanted| wanted.eq_ignore_ascii_case(id));
        Ok(claims.into_iter().filter(|(id, _)| wanted(id)).map(|(_, source)| source).collect())
    }

    fn print(&self, trial: &Runner<'_>, source: &Source, of: &[Judged], tallies: &[Tally<'_>], exit: Exit) {
        let Some(claim) = source.claim() else { return };
        let words = |judged: &Judged| -> Vec<&str> {
            measured(trial, from_ref(judged), tallies).into_iter().map(|(_, word, _)| word).collect()
        };
        let word = match exit {
            Exit::Expected => "as stated",
            Exit::Undecided => "UNDECIDED",
            _ => "NOT AS STATED",
        };
        outln!("{:4} {word}: {} ({})", claim.id, claim.says, claim.by);
        for alike in of.chunk_by(|one, other| {
            one.case.variant == other.case.variant
                && one.verdict() == Match::AsExpected
                && other.verdict() == Match::AsExpected
                && words(one) == words(other)
        }) {
            let one = &alike[0];
            let variant = trial.variant(one.case);
            let name = variant.title();
            let seeds = match alike.len() {
                1 => String::new(),
                seeds if has_share(variant) => format!(", with {seeds} seeds"),
                seeds => format!(", with each of {seeds} seeds"),
            };
            if one.verdict() == Match::AsExpected {
                outln!("       {name}{seeds}: {}", came_out(trial, alike, tallies));
            }
            if self.verbose || one.verdict() != Match::AsExpected {
                let outcome = trial.outcome(one.case, TraceRetention::Nothing);
                show(trial, one, Some(&outcome), self.verbose, None);
            }
        }
        if let Some(finding) = source.finding() {
            outln!("       found: {}", finding.trim());
        }
        if let Some(why) = &claim.no_boundary {
            outln!("       no boundary: {}", why.trim());
        }
        if !claim.generations.is_empty() {
            outln!("       on: {}", claim.generations.join(", "));
        }
    }
}

/// Gives nodes that name no server one of this generation. Returns the claims that state a result
/// on it, and the IDs of the others.
fn on_generation(sources: &[Source], generation: Option<&str>) -> Result<(Vec<Source>, Vec<String>)> {
    let Some(generation) = generation else { return Ok((sources.to_vec(), Vec::new())) };
    let server = format!("run.server={generation}").parse().map_err(|error: String| miette!(error))?;
    let (mut stated, mut others) = (Vec::new(), Vec::new());
    for source in sources {
        match source.claim().filter(|claim| !claim.is_stated_for(generation)) {
            Some(claim) => others.push(claim.id.clone()),
            None => stated.push(source.with(from_ref(&server)).map_err(|error| *error)?),
        }
    }
    Ok((stated, others))
}

/// Parses the name of a generation, or `all`.
fn generations() -> PossibleValuesParser {
    PossibleValuesParser::new(Generation::ALL.map(Generation::name).into_iter().chain(["all"]))
}

/// Formats a claim as a line of JSON.
fn json(
    trial: &Runner<'_>,
    source: &Source,
    (of, tallies, generation): (&[Judged], &[Tally<'_>], Option<&str>),
    (measures, boundaries): (&[FormulaRow], &[Claimed<'_>]),
    exit: Exit,
) -> Result<String> {
    #[derive(Serialize)]
    struct Line<'a> {
        #[serde(flatten)]
        claim: Option<&'a Claim>,
        file: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        generation: Option<&'a str>,
        as_stated: bool,
        runs: Vec<Run>,
        measures: Vec<&'a str>,
        boundaries: Vec<boundary::Line<'a>>,
    }
    #[derive(Serialize)]
    struct Run {
        case: String,
        verdict: Match,
        found: Vec<Found>,
    }
    #[derive(Serialize)]
    struct Found {
        checker: String,
        verdict: &'static str,
        #[serde(skip_serializing_if = "String::is_empty")]
        measured: String,
    }
    let run = |judged: &Judged| {
        let found = measured(trial, from_ref(judged), tallies).into_iter();
        let found = found.map(|(checker, verdict, measured)| Found { checker, verdict, measured }).collect();
        Run { case: trial.token(judged.case), verdict: judged.verdict(), found }
    };
    let measures = measures.iter().flat_map(|row| [&row.heading].into_iter().chain(&row.lines));
    let line = Line {
        claim: source.claim(),
        file: &source.file,
        generation,
        as_stated: exit == Exit::Expected,
        runs: of.iter().map(run).collect(),
        measures: measures.map(String::as_str).collect(),
        boundaries: boundaries.iter().map(Claimed::json).collect(),
    };
    serde_json::to_string(&line).into_diagnostic()
}

/// Formats the findings that a claim is about in one line.
fn came_out(trial: &Runner<'_>, alike: &[Judged], tallies: &[Tally<'_>]) -> String {
    let found = measured(trial, alike, tallies).into_iter().map(|(checker, word, measured)| {
        if measured.is_empty() {
            format!("{checker} {word}")
        } else {
            format!("{checker} {word} ({measured})")
        }
    });
    found.collect::<Vec<_>>().join(", ")
}

/// Returns the sort key of a claim: single instances before Redlock before the rest, and S2 before
/// S11.
pub(super) fn order(id: &str) -> (usize, u64, String) {
    let letters: String = id.chars().take_while(|c| c.is_ascii_alphabetic()).collect();
    let number: String =
        id.chars().skip_while(|c| c.is_ascii_alphabetic()).take_while(char::is_ascii_digit).collect();
    let group =
        ["S", "R", "W", "P", "F", "T"].iter().position(|group| *group == letters).unwrap_or(usize::MAX);
    (group, number.parse().unwrap_or(u64::MAX), id.to_owned())
}
