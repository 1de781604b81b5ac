//! Runs a scenario in a test: `lockstorm::scenario("file.toml").seeds(0..200).check()`.

use std::{
    ffi::OsString,
    fmt, fs,
    ops::Range,
    path::{Path, PathBuf},
};

use lockstorm_world::TraceRetention;

use crate::{
    file::{
        library,
        scenario::{Scenario, ScenarioError, Source, nearest},
    },
    judge::verdict::Match,
    report::{Besides, ChainShown, Report},
    run::{Engine, Outcome},
    run::{
        code::Code,
        hunt::{self, Hunted, Search},
        runner::{Judged, Runner, Stop, parse_seeds},
        tally::tally,
    },
};

/// A scenario, the seeds to run it with, and the handling of unexpected results.
///
/// The environment variables `LOCKSTORM_SEED=7` and `LOCKSTORM_SEEDS=0..1000` override the seeds,
/// and `LOCKSTORM_JOBS` sets the number of parallel seeds, so that `cargo test` has the same
/// options as the command line.
///
/// ```
/// lockstorm::scenario("single/wall_clock_step.toml").seeds(0..2).check();
/// ```
#[derive(Debug)]
#[must_use = "nothing runs until `check` or `outcome`"]
pub struct Experiment {
    source: Result<Source, Failed>,
    /// True if the command line can run it as well.
    in_file: bool,
    variant: Option<String>,
    seeds: Option<Range<u64>>,
    jobs: Option<usize>,
    engine: Engine,
    report_dir: Option<PathBuf>,
    keeps_report_digest: bool,
}

/// An experiment that had an unexpected result, or could not begin.
///
/// `{:?}` shows the same readable text as `{}`, because a test that returns this error prints it
/// with `{:?}`.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Failed {
    /// The file is not a scenario.
    #[error("{}", located(.0))]
    File(Box<ScenarioError>),
    /// The request is invalid.
    #[error("{0}")]
    Usage(String),
    /// The share of violated runs is not the expected one, or the number of runs does not decide
    /// it.
    #[error("{0}")]
    Share(String),
    /// A search for a violation did not end as expected, or did not decide the question.
    #[error("{0}")]
    Hunt(String),
    /// A result was not as expected, or could not be decided.
    #[error("{report}")]
    Verdict {
        /// A description of the run. Its last line is the command that replays it.
        report: String,
        /// The findings of the checkers.
        judged: Box<Judged>,
    },
}

impl fmt::Debug for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

fn located(error: &ScenarioError) -> String {
    let help = error.help().map_or(String::new(), |help| format!("\nhelp: {help}"));
    format!("{error}{help}")
}

/// Loads the scenario in a file. The path is relative to the current folder, which `cargo test`
/// sets to that of the package. A path that does not exist may name a stock scenario (`lockstorm
/// list scenarios`).
///
/// [`Experiment::check`] reports a mistake in the file.
pub fn scenario(path: impl AsRef<Path>) -> Experiment {
    Experiment::new(library::load(path.as_ref()).map_err(Failed::File), true)
}

/// Creates an experiment with the scenario of a builder.
///
/// ```
/// use lockstorm::{file::scenario::{Acquire, Release, Scenario}, units::Span, judge::verdict::Expectation};
/// let steps = vec![Acquire::default().into(), Release::default().into()];
/// let scenario = Scenario::builder("two clients take turns")
///     .node("redis", Default::default())
///     .script("c1", steps.clone())
///     .script("c2", steps)
///     .lasting(Span::secs(5), Span::secs(0))
///     .expect("l1", Expectation::holds())
///     .build();
/// lockstorm::experiment(scenario).seeds(0..3).check();
/// ```
pub fn experiment(scenario: Scenario) -> Experiment {
    let name = match scenario.about.lines().next() {
        Some(about) if !about.is_empty() => about.to_owned(),
        _ => "scenario".to_owned(),
    };
    Experiment::new(Source::of(&name, scenario).map_err(Failed::File), false)
}

impl Experiment {
    fn new(source: Result<Source, Failed>, in_file: bool) -> Experiment {
        let (variant, seeds, jobs, report_dir) = (None, None, None, None);
        let (engine, keeps_report_digest) = (Engine::Event, false);
        Experiment { source, in_file, variant, seeds, jobs, engine, report_dir, keeps_report_digest }
    }

    /// Sets the seeds. By default the scenario's own number from 0.
    pub fn seeds(self, seeds: Range<u64>) -> Experiment {
        Experiment { seeds: Some(seeds), ..self }
    }

    /// Runs only this variant of the file. By default all of them.
    pub fn variant(self, name: impl Into<String>) -> Experiment {
        Experiment { variant: Some(name.into()), ..self }
    }

    /// Sets the engine that advances the time.
    pub fn engine(self, engine: Engine) -> Experiment {
        Experiment { engine, ..self }
    }

    /// Sets the number of seeds that run in parallel. By default the number of processors.
    pub fn jobs(self, jobs: usize) -> Experiment {
        Experiment { jobs: Some(jobs), ..self }
    }

    /// Sets the folder for the page about an unexpected result, `<scenario>.html`.
    pub fn report_dir(self, folder: impl Into<PathBuf>) -> Experiment {
        Experiment { report_dir: Some(folder.into()), ..self }
    }

    /// If true, the results have the [report digest](Judged::report_digest) of each run.
    pub fn keep_report_digest(self, keeps_report_digest: bool) -> Experiment {
        Experiment { keeps_report_digest, ..self }
    }

    /// Replaces the steps of a client of the scenario by code; see [`Code`].
    pub fn client_code(mut self, client: &str, code: impl Into<Code>) -> Experiment {
        let code = code.into();
        self.in_file = false;
        let Ok(source) = &mut self.source else { return self };
        for variant in &mut source.variants {
            let Some(client) = variant.scenario.client.get_mut(client) else {
                let known = variant.scenario.client.keys().map(String::as_str);
                let near =
                    nearest(client, known).map_or(String::new(), |near| format!("; did you mean {near}?"));
                let message = format!("{} has no client {client:?}{near}", source.file);
                self.source = Err(Failed::Usage(message));
                return self;
            };
            (client.steps, client.workload, client.code) = (Vec::new(), None, Some(code.clone()));
            client.line.clear();
        }
        self
    }

    /// Searches for the faults that violate the scenario; see [`Hunting`].
    pub fn hunt(self) -> Hunting {
        Hunting { experiment: self, faults: None, budget: hunt::BUDGET }
    }

    /// Runs every seed and compares the results with the expectations of the scenario.
    ///
    /// # Panics
    /// Panics with the report of the first unexpected or undecided result, which ends with the
    /// command that replays it. Panics also if the file is not a scenario.
    pub fn check(self) {
        if let Err(failed) = self.try_check() {
            panic!("{failed}");
        }
    }

    /// Like [`Experiment::check`], for a test that returns a result or inspects the findings.
    ///
    /// # Errors
    /// The first unexpected or undecided result, or the reason why the experiment could not begin.
    pub fn try_check(self) -> Result<Vec<Judged>, Failed> {
        let seeds = self.wanted_seeds()?;
        let jobs = self.wanted_jobs()?;
        let source = self.chosen()?;
        if let Some(variant) = source.variants.iter().find(|variant| variant.scenario.expect.is_empty()) {
            // A test that cannot fail proves nothing.
            let of =
                if variant.name.is_empty() { String::new() } else { format!(" (variant {})", variant.name) };
            return Err(Failed::Usage(format!("{}{of} expects nothing: add [expect]", source.file)));
        }
        let sources = [source];
        let trial = Runner::new(&sources)
            .seeds(seeds)
            .jobs(jobs)
            .engine(self.engine)
            .stop(Stop::AtUnexpected)
            .keep_report_digest(self.keeps_report_digest);
        let judged = trial.run(&|_| {});
        let bad = |wanted: fn(&Match) -> bool| judged.iter().find(|one| wanted(&one.verdict()));
        let first = bad(|verdict| matches!(verdict, Match::Otherwise(_)))
            .or_else(|| bad(|verdict| matches!(verdict, Match::Undecided(_))));
        if let Some(first) = first {
            return Err(self.failed(&trial, first));
        }
        for tally in tally(&trial, &judged) {
            if let Match::Otherwise(because) | Match::Undecided(because) = tally.verdict() {
                let of = if tally.variant.name.is_empty() {
                    String::new()
                } else {
                    format!("#{}", tally.variant.name)
                };
                return Err(Failed::Share(format!("{}{of}: {because}", sources[tally.source].file)));
            }
        }
        Ok(judged)
    }

    /// Runs one seed of one variant, the first or the chosen one, and returns the whole history.
    ///
    /// # Errors
    /// The reason why the experiment could not begin.
    pub fn outcome(self, seed: u64) -> Result<Outcome, Failed> {
        let sources = [self.chosen()?];
        let (engine, seeds) = (self.engine, Some(seed..seed.saturating_add(1)));
        let trial = Runner::new(&sources).seeds(seeds).engine(engine);
        let case = crate::run::runner::Case { source: 0, variant: 0, seed };
        Ok(trial.outcome(case, TraceRetention::Nothing))
    }

    /// Returns the source with the requested variants.
    fn chosen(&self) -> Result<Source, Failed> {
        let mut source = self.source.clone()?;
        let Some(wanted) = &self.variant else { return Ok(source) };
        let known: Vec<String> = source.variants.iter().map(|variant| variant.name.clone()).collect();
        source.variants.retain(|variant| variant.name == *wanted);
        if source.variants.is_empty() {
            let message = format!("{} has no variant {wanted:?}; it has: {}", source.file, known.join(", "));
            return Err(Failed::Usage(message));
        }
        Ok(source)
    }

    fn wanted_jobs(&self) -> Result<usize, Failed> {
        Ok(match number("LOCKSTORM_JOBS")?.or(self.jobs.map(|jobs| jobs as u64)) {
            Some(jobs) => usize::try_from(jobs).unwrap_or(usize::MAX),
            None => std::thread::available_parallelism().map_or(1, usize::from),
        })
    }

    fn wanted_seeds(&self) -> Result<Option<Range<u64>>, Failed> {
        if let Some(seed) = number("LOCKSTORM_SEED")? {
            return Ok(Some(seed..seed.saturating_add(1)));
        }
        match text("LOCKSTORM_SEEDS")? {
            None => Ok(self.seeds.clone()),
            Some(range) => parse_seeds(&range)
                .map(Some)
                .map_err(|error| Failed::Usage(format!("LOCKSTORM_SEEDS: {error}"))),
        }
    }

    fn failed(&self, trial: &Runner<'_>, judged: &Judged) -> Failed {
        let mut outcome = trial.outcome(judged.case, TraceRetention::Nothing);
        if !self.in_file {
            // The command line does not know the scenario. The thread's name is that of the test,
            // which does.
            let test = std::thread::current().name().unwrap_or("").to_owned();
            let again = format!("LOCKSTORM_SEED={} cargo test {test}", judged.case.seed);
            outcome.history.header.replay = again.trim_end().into();
        }
        let entries = trial.entries(judged);
        let report = Report { history: &outcome.history, entries: &entries, records: &[] };
        let mut text = String::new();
        if let Some(folder) = &self.report_dir {
            let plan = trial.plan(judged.case).to_string();
            let path = folder.join(format!("{}.html", file_name(&outcome.history.header.scenario)));
            let written = fs::create_dir_all(folder)
                .and_then(|()| fs::write(&path, report.html(Besides { plan: &plan, ..Besides::default() })));
            match written {
                Ok(()) => text.push_str(&format!("report: {}\n", path.display())),
                Err(error) => text.push_str(&format!("{} cannot be written: {error}\n", path.display())),
            }
        }
        text.push_str(report.text(false, ChainShown::Whole).trim_end());
        Failed::Verdict { report: text, judged: Box::new(judged.clone()) }
    }
}

/// A search for the faults that violate a scenario: those that its `[hunt]` allows, in place of the
/// faults of the file. It uses the first of the seeds.
///
/// ```
/// let file = lockstorm::scenario("single/wall_clock_step.toml");
/// file.variant("one-try-half-a-second-before-the-end").hunt().budget(2_000).check();
/// ```
#[derive(Debug)]
#[must_use = "nothing runs until `check`"]
pub struct Hunting {
    experiment: Experiment,
    faults: Option<u32>,
    budget: u64,
}

impl Hunting {
    /// Sets the most faults of one run: one or two. By default those of the file, or one.
    pub fn faults(self, faults: u32) -> Hunting {
        Hunting { faults: Some(faults), ..self }
    }

    /// Sets the most runs. By default [`hunt::BUDGET`].
    pub fn budget(self, budget: u64) -> Hunting {
        Hunting { budget, ..self }
    }

    /// Searches in every variant, and compares the results with the expectations of the scenario:
    /// if it expects that a checker holds, no placement may violate it, and if it expects a
    /// violation, the search must find one.
    ///
    /// # Panics
    /// Panics with the first result that is not as expected or undecided, and the faults of a
    /// violation. Panics also if the file is not a scenario.
    pub fn check(self) {
        if let Err(failed) = self.try_check() {
            panic!("{failed}");
        }
    }

    /// Like [`Hunting::check`], for a test that returns a result or inspects what was found.
    ///
    /// # Errors
    /// The first unexpected or undecided result, or the reason why the search could not begin.
    pub fn try_check(self) -> Result<Vec<Hunted>, Failed> {
        let seed = self.experiment.wanted_seeds()?.map_or(0, |seeds| seeds.start);
        let jobs = self.experiment.wanted_jobs()?;
        let source = self.experiment.chosen()?;
        let mut all = Vec::new();
        for variant in &source.variants {
            let search = Search::new(&variant.scenario, seed).jobs(jobs).budget(self.budget);
            let search = match self.faults {
                None => search,
                Some(faults) => search.faults(faults),
            };
            let hunted = search.run(&|_| {});
            if let Match::Otherwise(because) | Match::Undecided(because) = hunted.verdict(&variant.scenario) {
                let of = if variant.name.is_empty() { String::new() } else { format!("#{}", variant.name) };
                let placed = hunted.found().map(|found| &found.placed[..]).unwrap_or_default();
                let faults: String = placed.iter().map(|one| format!("\n  {one}")).collect();
                return Err(Failed::Hunt(format!("{}{of} with seed {seed}: {because}{faults}", source.file)));
            }
            all.push(hunted);
        }
        Ok(all)
    }
}

/// Converts a token to the name of a file.
fn file_name(token: &str) -> String {
    token.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.#@+".contains(c) { c } else { '_' }).collect()
}

fn text(variable: &str) -> Result<Option<String>, Failed> {
    let not_text = |_: OsString| Failed::Usage(format!("{variable} is not text"));
    std::env::var_os(variable).map(OsString::into_string).transpose().map_err(not_text)
}

fn number(variable: &str) -> Result<Option<u64>, Failed> {
    let Some(text) = text(variable)? else { return Ok(None) };
    let refused = |_| Failed::Usage(format!("{variable} is {text:?}; expected a number"));
    text.trim().parse().map(Some).map_err(refused)
}
