//! `lockstorm campaign`: runs more seeds than one process can, in a folder or a bucket on which
//! many processes and machines work.

mod place;

use std::{fs, ops::Range, path::PathBuf, str::FromStr};

use clap::{Args, Subcommand, ValueEnum};
use miette::{IntoDiagnostic, Result, WrapErr, bail};

use self::place::{Opened, Place};
use super::{
    Exit, conditions,
    options::{Jobs, sources},
    out::{errln, outln},
    progress::Progress,
    results::exit_of,
    table::Target,
};
use crate::study::{
    campaign::{self, CampaignError, Files, Image, Worked, quoted},
    table::Table,
};
use lockstorm::{judge::checker::many, run::runner::parse_any_seeds};

/// Run more seeds than one process can, in shards for any number of processes and machines
#[derive(Debug, Args)]
pub(super) struct Campaign {
    #[command(subcommand)]
    part: Part,
}

#[derive(Debug, Subcommand)]
enum Part {
    Plan(Plan),
    Work(Work),
    Status(Status),
    Merge(Merge),
    Run(Run),
}

/// The default number of runs per shard.
const SHARD_RUNS: u64 = 1000;

/// Create a campaign: its plan, and copies of the scenario files
#[derive(Debug, Args)]
struct Plan {
    /// Scenario files or folders, on disk or among the stock scenarios (`lockstorm list
    /// scenarios`); FILE#VARIANT selects one variant
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Seeds of each variant, excluding B
    #[arg(long, value_name = "A..B", value_parser = parse_any_seeds)]
    seeds: Range<u64>,
    /// Place of the campaign: a new or empty folder, or a prefix in a bucket (needs a build with
    /// the feature `s3`)
    #[arg(long, value_name = "DIR|s3://BUCKET/PREFIX")]
    out: Place,
    /// Number of runs per shard; a killed worker loses at most one shard
    #[arg(long, value_name = "N", default_value_t = SHARD_RUNS)]
    shard_runs: u64,
}

/// Run unfinished shards: all of them, a part of them, or one
#[derive(Debug, Args)]
struct Work {
    /// Folder of the campaign, or s3://BUCKET/PREFIX
    #[arg(value_name = "DIR")]
    folder: Place,
    /// Run only shard K
    #[arg(long, value_name = "K", conflicts_with = "part")]
    shard: Option<u64>,
    /// Run only shards I, I+N, I+2N, ..: the parts 0/4, 1/4, 2/4 and 3/4 are all shards
    #[arg(long, value_name = "I/N")]
    part: Option<Share>,
    #[command(flatten)]
    jobs: Jobs,
}

/// Report the number of finished shards, and the missing ones
#[derive(Debug, Args)]
struct Status {
    /// Folder of the campaign, or s3://BUCKET/PREFIX
    #[arg(value_name = "DIR")]
    folder: Place,
}

/// Merge the tables of all shards into the table that a single process would write, and judge the
/// runs
#[derive(Debug, Args)]
struct Merge {
    /// Folder of the campaign, or s3://BUCKET/PREFIX
    #[arg(value_name = "DIR")]
    folder: Place,
    /// Output table; Parquet needs a build with the feature `parquet` [default: DIR/results.csv;
    /// none for a bucket]
    #[arg(long, value_name = "FILE.parquet|FILE.csv")]
    results: Option<Target>,
}

/// Run all shards on this machine, or prepare a job for Slurm or Kubernetes
#[derive(Debug, Args)]
struct Run {
    /// Folder of the campaign, or s3://BUCKET/PREFIX
    #[arg(value_name = "DIR")]
    folder: Place,
    /// Plan a campaign of these scenarios first, as `campaign plan` does; resume it if it exists
    #[arg(requires = "seeds", value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Seeds of each variant, excluding B
    #[arg(long, value_name = "A..B", value_parser = parse_any_seeds, requires = "paths")]
    seeds: Option<Range<u64>>,
    /// Number of runs per shard
    #[arg(long, value_name = "N", default_value_t = SHARD_RUNS, requires = "paths")]
    shard_runs: u64,
    /// System that runs the shards
    #[arg(long, value_enum, default_value_t = Engine::Local)]
    engine: Engine,
    /// Number of Slurm tasks or Kubernetes pods that share the work
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    tasks: u64,
    /// Container image of the pods, with `lockstorm` on its PATH
    #[arg(long, value_name = "IMAGE", required_if_eq("engine", "kubernetes"))]
    image: Option<String>,
    /// PersistentVolumeClaim of a volume that all pods may write, with the campaign's folder as its
    /// root
    #[arg(long, value_name = "NAME")]
    claim: Option<String>,
    /// Kubernetes secret with the environment variables for access to the bucket
    #[arg(long, value_name = "NAME")]
    secret: Option<String>,
    #[command(flatten)]
    jobs: Jobs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Engine {
    /// Run the shards on this machine, and merge the tables of a folder
    Local,
    /// Write the script of a Slurm array job, for sbatch
    Slurm,
    /// Write the manifest of a Kubernetes Indexed Job, for kubectl
    Kubernetes,
}

/// A part of the shards: those whose number leaves `number` when divided by `of`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Share {
    number: u64,
    of: u64,
}

impl FromStr for Share {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Share, &'static str> {
        let numbers =
            text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((number, of)) if number < of => Ok(Share { number, of }),
            _ => Err("expected I/N with I from 0 to N - 1, such as 0/4"),
        }
    }
}

impl Campaign {
    pub(super) fn run(self) -> Result<Exit> {
        match self.part {
            Part::Plan(plan) => plan.run(),
            Part::Work(work) => work.run(),
            Part::Status(status) => status.run(),
            Part::Merge(merge) => merge.run(),
            Part::Run(run) => run.run(),
        }
    }
}

/// Converts an error for printing. An error in a scenario file keeps its position.
fn told<T>(result: Result<T, CampaignError>) -> Result<T> {
    match result {
        Err(CampaignError::Scenario(error)) => Err((*error).into()),
        other => other.into_diagnostic(),
    }
}

impl Plan {
    fn run(self) -> Result<Exit> {
        let sources = sources(&self.paths)?;
        let campaign = told(self.out.plan(&sources, self.seeds, self.shard_runs))?;
        let count = |number: u64, one| many(usize::try_from(number).unwrap_or(usize::MAX), one);
        let (runs, shards) = (count(campaign.runs(), "run"), count(campaign.shards(), "shard"));
        outln!("{}: {runs} in {shards}", self.out);
        Ok(Exit::Expected)
    }
}

impl Work {
    fn run(self) -> Result<Exit> {
        let opened = told(self.folder.open())?;
        let shards = opened.campaign.shards();
        let wanted: Vec<u64> = match (self.shard, self.part) {
            (Some(shard), _) => vec![shard],
            (None, Some(Share { number, of })) => (number..shards).step_by(of as usize).collect(),
            (None, None) => (0..shards).collect(),
        };
        work(&opened, &wanted, self.jobs.count())?;
        Ok(Exit::Expected)
    }
}

/// Runs the unfinished ones of these shards.
fn work(opened: &Opened, shards: &[u64], jobs: usize) -> Result<()> {
    let sources = told(opened.campaign.sources())?;
    let progress = Progress::new(usize::try_from(opened.campaign.runs()).unwrap_or(usize::MAX));
    let mut worked = 0_usize;
    for &shard in shards {
        let done = opened.work(&sources, shard, jobs, &|judged| progress.step(judged.simulated));
        worked += usize::from(told(done)? == Worked::Now);
    }
    let (before, speed) = (shards.len() - worked, progress.finish());
    errln!("{} finished now, {before} before ({speed})", many(worked, "shard"));
    Ok(())
}

impl Status {
    fn run(self) -> Result<Exit> {
        let opened = told(self.folder.open())?;
        let (status, campaign) = (told(opened.status())?, &opened.campaign);
        let done = status.shards - status.missing.len() as u64;
        outln!("{done} of {} shards of {} runs are finished", status.shards, campaign.runs());
        if status.unfinished > 0 {
            outln!("  {} more are being worked on, or their workers have ended", status.unfinished);
        }
        if status.missing.is_empty() {
            return Ok(Exit::Expected);
        }
        outln!("  missing: {}", status.missing());
        Ok(Exit::Undecided)
    }
}

impl Merge {
    fn run(self) -> Result<Exit> {
        let opened = told(self.folder.open())?;
        told(opened.gather())?;
        let default = self.folder.folder().map(|folder| Target::Csv(folder.join("results.csv")));
        let Some(target) = self.results.or(default) else {
            bail!("{} is not a folder: give the table a file with --results FILE.csv", self.folder);
        };
        merge(&opened.campaign, &target)
    }
}

/// Merges the tables, and prints the results like `lockstorm run`.
fn merge(campaign: &campaign::Campaign, target: &Target) -> Result<Exit> {
    let sources = told(campaign.sources())?;
    let trial = campaign.trial(&sources);
    told(campaign.is_whole())?;
    let mut rows = target.create(Table::of(&trial).columns())?;
    let merged = told(campaign.merge(&trial, target.path(), &mut rows))?;
    rows.finish()
        .into_diagnostic()
        .wrap_err_with(|| format!("{} cannot be written", target.path().display()))?;
    for one in &merged.unexpected {
        let word = if one.verdict == "undecided" { "UNDECIDED" } else { "NOT AS EXPECTED" };
        outln!("{}: {word}\n  {}", trial.token(one.case), trial.again(one.case));
    }
    let unnamed = merged.otherwise + merged.undecided - merged.unexpected.len() as u64;
    if unnamed > 0 {
        outln!("and {unnamed} more that are not as expected or undecided");
    }
    let tallies = merged.counter.tallies(&trial);
    if conditions::are_worth_counting(&trial) {
        conditions::print(&trial, &tallies);
    }
    errln!("{} has {} runs", target.path().display(), campaign.runs());
    let (otherwise, undecided) = (merged.otherwise, merged.undecided);
    let shares = conditions::shares(&tallies);
    outln!("{} as expected, {otherwise} not, {undecided} undecided{shares}", merged.as_expected);
    let runs = match (otherwise, undecided) {
        (0, 0) => Exit::Expected,
        (0, _) => Exit::Undecided,
        _ => Exit::Unexpected,
    };
    Ok(runs.max(exit_of([], &tallies)))
}

impl Run {
    fn run(self) -> Result<Exit> {
        let opened = match self.seeds.clone() {
            Some(seeds) => {
                let sources = sources(&self.paths)?;
                told(self.folder.plan_or_open(&sources, seeds, self.shard_runs))?
            }
            None => told(self.folder.open())?,
        };
        match self.engine {
            Engine::Local => {
                let shards: Vec<u64> = (0..opened.campaign.shards()).collect();
                work(&opened, &shards, self.jobs.count())?;
                let Some(folder) = self.folder.folder() else {
                    outln!(
                        "lockstorm campaign merge {} --results FILE.csv",
                        quoted(&self.folder.to_string())
                    );
                    return Ok(Exit::Expected);
                };
                merge(&opened.campaign, &Target::Csv(folder.join("results.csv")))
            }
            Engine::Slurm => {
                let program = std::env::current_exe().into_diagnostic()?;
                // The tasks log into the campaign's folder. With a bucket they log into the
                // directory in which the script is submitted.
                let place = self.whole()?;
                let logs = if self.folder.folder().is_some() { place.clone() } else { ".".to_owned() };
                if place.contains(['\n', '\r']) {
                    bail!("a script cannot contain the path {place:?}");
                }
                self.handed("slurm.sh", &campaign::slurm(&program, &place, &logs, self.tasks), "sbatch")
            }
            Engine::Kubernetes => {
                let image = self.image.clone().unwrap_or_default();
                let files = match (self.folder.folder(), self.claim.clone(), self.secret.clone()) {
                    (Some(_), Some(claim), _) => Files::Volume { claim },
                    (Some(_), None, _) => bail!("give the volume that contains the folder: --claim NAME"),
                    (None, _, secret) => Files::Bucket { place: self.folder.to_string(), secret },
                };
                let manifest = campaign::kubernetes(&Image { image, files }, self.tasks);
                let manifest = serde_json::to_string_pretty(&manifest).into_diagnostic()? + "\n";
                self.handed("kubernetes.json", &manifest, "kubectl create -f")
            }
        }
    }

    /// Returns the bucket, or the absolute path of the folder.
    fn whole(&self) -> Result<String> {
        let Some(folder) = self.folder.folder() else { return Ok(self.folder.to_string()) };
        let folder = fs::canonicalize(folder).into_diagnostic()?;
        let Some(text) = folder.to_str() else {
            bail!("a script cannot contain the path {}", folder.display())
        };
        Ok(text.to_owned())
    }

    /// Writes the input of an engine into the folder or, for a bucket, into the working directory.
    /// Prints the commands that follow.
    fn handed(&self, name: &str, text: &str, command: &str) -> Result<Exit> {
        let path = self.folder.folder().map_or_else(|| PathBuf::from(name), |folder| folder.join(name));
        fs::write(&path, text)
            .into_diagnostic()
            .wrap_err_with(|| format!("{} cannot be written", path.display()))?;
        let results = if self.folder.folder().is_some() { "" } else { " --results FILE.csv" };
        let (folder, path) = (quoted(&self.folder.to_string()), quoted(&path.display().to_string()));
        outln!(
            "{command} {path}\nlockstorm campaign status {folder}\nlockstorm campaign merge {folder}{results}"
        );
        Ok(Exit::Expected)
    }
}
