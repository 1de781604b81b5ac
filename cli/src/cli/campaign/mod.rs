//! `lockstorm campaign`: more seeds than one process runs, in a folder or a bucket that many
//! processes and machines work on.

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

/// Run more seeds than one process can, in shards that any number of processes and machines work on
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

/// How many runs a shard has if nothing else is asked for.
const SHARD_RUNS: u64 = 1000;

/// Make the folder of a campaign: the plan, and copies of the files
#[derive(Debug, Args)]
struct Plan {
    /// Scenario files and folders of them, on the disk or among the stock scenarios; of a file with
    /// variants one alone: FILE#VARIANT
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// The seeds of each variant, the last one not included
    #[arg(long, value_name = "A..B", value_parser = parse_any_seeds)]
    seeds: Range<u64>,
    /// The folder, which is new or empty; or a prefix in a bucket, where lockstorm is built with
    /// them (`--features s3`)
    #[arg(long, value_name = "DIR|s3://BUCKET/PREFIX")]
    out: Place,
    /// How many runs each shard has; what a worker that is killed loses of its work
    #[arg(long, value_name = "N", default_value_t = SHARD_RUNS)]
    shard_runs: u64,
}

/// Run shards that are not finished: one, a part of them, or all
#[derive(Debug, Args)]
struct Work {
    /// The folder, or s3://BUCKET/PREFIX
    #[arg(value_name = "DIR")]
    folder: Place,
    /// Only this shard
    #[arg(long, value_name = "K", conflicts_with = "part")]
    shard: Option<u64>,
    /// Only the shards whose number leaves I when divided by N: 0/4, 1/4, 2/4 and 3/4 are all
    #[arg(long, value_name = "I/N")]
    part: Option<Share>,
    #[command(flatten)]
    jobs: Jobs,
}

/// Say which shards are finished, and which are missing
#[derive(Debug, Args)]
struct Status {
    /// The folder, or s3://BUCKET/PREFIX
    #[arg(value_name = "DIR")]
    folder: Place,
}

/// Join the tables of all shards into the one that a single process writes, and judge the runs
#[derive(Debug, Args)]
struct Merge {
    /// The folder, or s3://BUCKET/PREFIX
    #[arg(value_name = "DIR")]
    folder: Place,
    /// Where to: as CSV, or as Parquet where lockstorm is built with it; `results.csv` in the
    /// folder if left out, which a bucket has not
    #[arg(long, value_name = "FILE.parquet|FILE.csv")]
    results: Option<Target>,
}

/// Have an engine run all shards, of a campaign that is planned, or of one that is planned first
#[derive(Debug, Args)]
struct Run {
    /// The folder, or s3://BUCKET/PREFIX
    #[arg(value_name = "DIR")]
    folder: Place,
    /// Plan the campaign first, of these scenarios, as `campaign plan` does; where it is there
    /// already it goes on
    #[arg(requires = "seeds")]
    paths: Vec<PathBuf>,
    /// The seeds of each variant, the last one not included
    #[arg(long, value_name = "A..B", value_parser = parse_any_seeds, requires = "paths")]
    seeds: Option<Range<u64>>,
    /// How many runs each shard has
    #[arg(long, value_name = "N", default_value_t = SHARD_RUNS, requires = "paths")]
    shard_runs: u64,
    /// What runs them
    #[arg(long, value_enum, default_value_t = Engine::Local)]
    engine: Engine,
    /// How many tasks of Slurm or pods of Kubernetes share the work
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    tasks: u64,
    /// The image of the pods, with `lockstorm` on its path
    #[arg(long, value_name = "IMAGE", required_if_eq("engine", "kubernetes"))]
    image: Option<String>,
    /// The claim of a volume that all pods may write, and that has the folder as its root
    #[arg(long, value_name = "NAME")]
    claim: Option<String>,
    /// The secret of Kubernetes whose keys are the variables of the environment by which pods reach
    /// the bucket
    #[arg(long, value_name = "NAME")]
    secret: Option<String>,
    #[command(flatten)]
    jobs: Jobs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Engine {
    /// The processors of this machine; the tables are joined in the end
    Local,
    /// Write the script of an array job for sbatch
    Slurm,
    /// Write the manifest of an Indexed Job for kubectl
    Kubernetes,
}

/// Which part of the shards.
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

/// As other errors are printed: those of a file with the place in it.
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

/// Runs those of these shards that are not finished.
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
            bail!("{} is no folder, so say where the table belongs: --results FILE.csv", self.folder);
        };
        merge(&opened.campaign, &target)
    }
}

/// Joins the tables, and prints what the runs came to as `lockstorm run` does.
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
                // The log of each task is beside the shards; a bucket has none, and it is where the
                // script is submitted.
                let place = self.whole()?;
                let logs = if self.folder.folder().is_some() { place.clone() } else { ".".to_owned() };
                if place.contains(['\n', '\r']) {
                    bail!("{place} cannot be written into a script");
                }
                self.handed("slurm.sh", &campaign::slurm(&program, &place, &logs, self.tasks), "sbatch")
            }
            Engine::Kubernetes => {
                let image = self.image.clone().unwrap_or_default();
                let files = match (self.folder.folder(), self.claim.clone(), self.secret.clone()) {
                    (Some(_), Some(claim), _) => Files::Volume { claim },
                    (Some(_), None, _) => bail!("a folder needs the volume that has it: --claim NAME"),
                    (None, _, secret) => Files::Bucket { place: self.folder.to_string(), secret },
                };
                let manifest = campaign::kubernetes(&Image { image, files }, self.tasks);
                let manifest = serde_json::to_string_pretty(&manifest).into_diagnostic()? + "\n";
                self.handed("kubernetes.json", &manifest, "kubectl create -f")
            }
        }
    }

    /// The place as any machine names it.
    fn whole(&self) -> Result<String> {
        let Some(folder) = self.folder.folder() else { return Ok(self.folder.to_string()) };
        let folder = fs::canonicalize(folder).into_diagnostic()?;
        let Some(text) = folder.to_str() else {
            bail!("{} cannot be written into a script", folder.display())
        };
        Ok(text.to_owned())
    }

    /// Writes what an engine is handed into the folder, or, for a bucket, into the working
    /// directory; and says how.
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
