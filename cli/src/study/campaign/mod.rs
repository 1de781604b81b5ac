//! A campaign in one folder: many seeds, divided into shards on which any number of processes and
//! machines work.
//!
//! The folder has `plan.json`, a copy of each scenario file in `files/`, and the table of each
//! finished shard in `shards/`. A shard is a pure function of the plan and its number, so its
//! result does not depend on who works on it, when, or how often.

#[cfg(feature = "s3")]
mod bucket;
mod engine;
mod merge;
#[cfg(test)]
mod tests;
mod work;

use std::{
    fs,
    io::{self, Read, Seek, Write},
    ops::Range,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

#[cfg(feature = "s3")]
pub(crate) use bucket::{Address, Bucket};
pub(crate) use engine::quoted;
pub(crate) use engine::{Files, Image, kubernetes, slurm};
pub(crate) use work::Worked;

use lockstorm::{
    file::scenario::{ScenarioError, Source, parse},
    judge::digest::{hex, sha256},
    run::runner::Runner,
};

/// The most runs of a shard. A killed worker loses no more than these.
pub(crate) const RUNS_OF_A_SHARD_MAX: u64 = 100_000;

/// The most shards. Each is a file of one folder.
pub(crate) const SHARDS_MAX: u64 = 1_000_000;

/// The entries of a campaign's folder.
const PLAN: &str = "plan.json";
const FILES: &str = "files";
const SHARDS: &str = "shards";

/// A campaign in a folder.
#[derive(Debug)]
pub(crate) struct Campaign {
    folder: PathBuf,
    plan: Plan,
}

/// The content of `plan.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Plan {
    /// The version of lockstorm that planned it. `build` is the SHA-256 of its executable: two
    /// builds may run a seed differently.
    lockstorm: String,
    build: String,
    /// The first seed, and the first seed after the last.
    seeds: [u64; 2],
    runs_of_a_shard: u64,
    files: Vec<File>,
    /// The number of runs: each variant of each file with each seed.
    runs: u64,
}

/// A scenario file of a campaign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// The name at the time of planning. The names of runs contain it.
    name: String,
    /// The digest of its text, in hexadecimal digits.
    sha256: String,
}

/// An error of a campaign.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CampaignError {
    #[error("{} {what}: {error}", path.display())]
    Io { path: PathBuf, what: &'static str, error: io::Error },
    #[error("{} is a campaign already, or has other files: expected a folder that is new or empty", .0.display())]
    Exists(PathBuf),
    #[error(
        "{0} is a campaign of other files, seeds or shards: give a folder that is new or empty, \
         or resume it with `lockstorm campaign run {0}`"
    )]
    Other(String),
    #[error("{} is not the plan of a campaign: {error}", path.display())]
    NoPlan { path: PathBuf, error: String },
    #[error(
        "{runs} runs in shards of {of_a_shard} are more than {SHARDS_MAX} shards: give --shard-runs a larger number"
    )]
    TooMany { runs: u64, of_a_shard: u64 },
    #[error("a shard of {0} runs: expected from 1 to {RUNS_OF_A_SHARD_MAX}")]
    ShardOf(u64),
    #[error(
        "the campaign was planned by lockstorm {planned} and this is {running}: \
         use the executable that planned it, or plan it again in a new folder"
    )]
    OtherBuild { planned: String, running: String },
    #[error("{} has changed since the campaign was planned: expected SHA-256 {expected}, found {found}", path.display())]
    Changed { path: PathBuf, expected: String, found: String },
    #[cfg(feature = "s3")]
    #[error("{what}: {error}")]
    Bucket { what: String, error: String },
    #[error(transparent)]
    Scenario(Box<ScenarioError>),
    #[error("there is no shard {shard}: the campaign has {shards}, from 0 to {}", shards - 1)]
    NoShard { shard: u64, shards: u64 },
    #[error("{missing} of {shards} shards are missing: {which}; `lockstorm campaign work` runs them")]
    Missing { missing: usize, shards: u64, which: String },
    #[error("{} is not the table of its shard: {why}; delete it, and run the shard again", path.display())]
    Torn { path: PathBuf, why: String },
    #[error(
        "{} differs from what this process found for the same shard: \
         a run is not the same twice, or one of the two was changed", .0.display()
    )]
    Differs(PathBuf),
}

/// The progress of a campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Status {
    /// The number of shards.
    pub(crate) shards: u64,
    /// The unfinished shards, in order.
    pub(crate) missing: Vec<u64>,
    /// The number of partial files, of workers that are running or were killed.
    pub(crate) unfinished: usize,
}

impl Status {
    /// Returns the missing shards in a few words: `3, 7 to 20`.
    pub(crate) fn missing(&self) -> String {
        let mut ranges = Vec::new();
        for range in self.missing.chunk_by(|one, next| one + 1 == *next) {
            ranges.push(match range {
                [one] => one.to_string(),
                [from, .., to] => format!("{from} to {to}"),
                [] => continue,
            });
        }
        if ranges.len() > 12 {
            let more = ranges.len() - 12;
            ranges.truncate(12);
            return format!("{}, and {more} more ranges", ranges.join(", "));
        }
        ranges.join(", ")
    }
}

impl Plan {
    /// Creates a plan by this version and build of lockstorm.
    fn new(
        (lockstorm, build): (String, String),
        sources: &[Source],
        seeds: Range<u64>,
        runs_of_a_shard: u64,
    ) -> Result<Plan, CampaignError> {
        if !(1..=RUNS_OF_A_SHARD_MAX).contains(&runs_of_a_shard) {
            return Err(CampaignError::ShardOf(runs_of_a_shard));
        }
        let variants: u64 = sources.iter().map(|source| source.variants.len() as u64).sum();
        let runs = (seeds.end - seeds.start).saturating_mul(variants);
        if runs.div_ceil(runs_of_a_shard) > SHARDS_MAX {
            return Err(CampaignError::TooMany { runs, of_a_shard: runs_of_a_shard });
        }
        let files =
            sources.iter().map(|source| File { name: source.file.clone(), sha256: sha256(&source.text) });
        Ok(Plan {
            lockstorm,
            build,
            seeds: [seeds.start, seeds.end],
            runs_of_a_shard,
            files: files.collect(),
            runs,
        })
    }
}

impl Campaign {
    /// Plans a campaign: writes the plan and copies of the files into a new or empty folder.
    ///
    /// # Errors
    /// Fails if the folder is not empty or cannot be written, or there would be too many shards.
    pub(crate) fn plan(
        folder: &Path,
        sources: &[Source],
        seeds: Range<u64>,
        runs_of_a_shard: u64,
    ) -> Result<Campaign, CampaignError> {
        let by = (env!("CARGO_PKG_VERSION").to_owned(), build()?);
        let plan = Plan::new(by, sources, seeds, runs_of_a_shard)?;
        let campaign = Campaign { folder: folder.to_owned(), plan };
        fs::create_dir_all(folder).map_err(cannot("cannot be made", folder))?;
        if fs::read_dir(folder).map_err(cannot("cannot be read", folder))?.next().is_some() {
            return Err(CampaignError::Exists(folder.to_owned()));
        }
        for made in [campaign.copies(), campaign.shards_folder()] {
            fs::create_dir(&made).map_err(cannot("cannot be made", &made))?;
        }
        for (at, source) in sources.iter().enumerate() {
            let path = campaign.copy(at);
            fs::write(&path, &source.text).map_err(cannot("cannot be written", &path))?;
        }
        // Write the plan last and atomically: a folder without a plan is no campaign.
        let text = serde_json::to_string_pretty(&campaign.plan).expect("a plan is made of texts and numbers");
        let mut part = Part::create(&campaign.folder, PLAN)?;
        let written = writeln!(part.file, "{text}");
        part.put(written, &campaign.folder.join(PLAN))?;
        Ok(campaign)
    }

    /// Opens the campaign in a folder.
    ///
    /// # Errors
    /// Fails if the folder has no valid plan.
    pub(crate) fn open(folder: &Path) -> Result<Campaign, CampaignError> {
        let path = folder.join(PLAN);
        let text = fs::read_to_string(&path).map_err(cannot("cannot be read", &path))?;
        let no_plan = |error: String| CampaignError::NoPlan { path: path.clone(), error };
        let plan: Plan = serde_json::from_str(&text).map_err(|error| no_plan(error.to_string()))?;
        let [from, to] = plan.seeds;
        if from >= to || !(1..=RUNS_OF_A_SHARD_MAX).contains(&plan.runs_of_a_shard) || plan.runs == 0 {
            return Err(no_plan("it has no seeds, or shards of no runs".to_owned()));
        }
        if plan.runs.div_ceil(plan.runs_of_a_shard) > SHARDS_MAX {
            return Err(CampaignError::TooMany { runs: plan.runs, of_a_shard: plan.runs_of_a_shard });
        }
        Ok(Campaign { folder: folder.to_owned(), plan })
    }

    /// Returns true if the campaign has these scenarios, seeds and shards. Ignores the build that
    /// planned it.
    ///
    /// # Errors
    /// Fails like [`Campaign::plan`] for invalid seeds and shards.
    pub(crate) fn is_of(
        &self,
        sources: &[Source],
        seeds: Range<u64>,
        runs_of_a_shard: u64,
    ) -> Result<bool, CampaignError> {
        let by = (self.plan.lockstorm.clone(), self.plan.build.clone());
        Ok(self.plan == Plan::new(by, sources, seeds, runs_of_a_shard)?)
    }

    /// The number of runs.
    pub(crate) fn runs(&self) -> u64 {
        self.plan.runs
    }

    /// The number of shards.
    pub(crate) fn shards(&self) -> u64 {
        self.plan.runs.div_ceil(self.plan.runs_of_a_shard)
    }

    /// The seeds of each variant.
    pub(crate) fn seeds(&self) -> Range<u64> {
        self.plan.seeds[0]..self.plan.seeds[1]
    }

    /// Reads the scenarios from the copies in the folder.
    ///
    /// # Errors
    /// Fails if another executable planned the campaign, or a copy has changed since.
    pub(crate) fn sources(&self) -> Result<Vec<Source>, CampaignError> {
        let described = |version: &str, build: &str| {
            format!("{version} (build {})", build.chars().take(12).collect::<String>())
        };
        let (version, build) = (env!("CARGO_PKG_VERSION"), build()?);
        if (&*self.plan.lockstorm, &self.plan.build) != (version, &build) {
            return Err(CampaignError::OtherBuild {
                planned: described(&self.plan.lockstorm, &self.plan.build),
                running: described(version, &build),
            });
        }
        let mut sources = Vec::new();
        for (at, file) in self.plan.files.iter().enumerate() {
            let path = self.copy(at);
            let text = fs::read(&path).map_err(cannot("cannot be read", &path))?;
            let (expected, found) = (file.sha256.clone(), sha256(&text));
            if expected != found {
                return Err(CampaignError::Changed { path, expected, found });
            }
            let text = String::from_utf8_lossy(&text);
            sources.push(parse(&file.name, &text).map_err(CampaignError::Scenario)?);
        }
        let variants: u64 = sources.iter().map(|source| source.variants.len() as u64).sum();
        let runs = (self.plan.seeds[1] - self.plan.seeds[0]).saturating_mul(variants);
        if runs != self.plan.runs {
            let error = format!("it says {} runs, and its files and seeds make {runs}", self.plan.runs);
            return Err(CampaignError::NoPlan { path: self.folder.join(PLAN), error });
        }
        Ok(sources)
    }

    /// Returns the progress.
    ///
    /// # Errors
    /// Fails if the folder cannot be read.
    pub(crate) fn status(&self) -> Result<Status, CampaignError> {
        let folder = self.shards_folder();
        let cannot_read = cannot("cannot be read", &folder);
        let entries = fs::read_dir(&folder).map_err(&cannot_read)?;
        let names: Vec<_> = entries
            .map(|entry| entry.map(|entry| entry.file_name()))
            .collect::<Result<_, _>>()
            .map_err(&cannot_read)?;
        Ok(self.status_of(names.iter().filter_map(|name| name.to_str())))
    }

    /// Derives the progress from the names of the files of shards.
    fn status_of<'a>(&self, names: impl Iterator<Item = &'a str>) -> Status {
        let (mut is_done, mut unfinished) = (vec![false; self.shards() as usize], 0);
        for name in names {
            let number = name.strip_suffix(".csv").and_then(|number| number.parse::<usize>().ok());
            match number.and_then(|number| is_done.get_mut(number)) {
                Some(done) => *done = true,
                None => unfinished += usize::from(name.ends_with(".part")),
            }
        }
        let missing = (0..).zip(&is_done).filter(|(_, done)| !**done).map(|(shard, _)| shard);
        Status { shards: self.shards(), missing: missing.collect(), unfinished }
    }

    /// Checks that every shard is finished.
    ///
    /// # Errors
    /// Lists the missing shards.
    pub(crate) fn is_whole(&self) -> Result<(), CampaignError> {
        let status = self.status()?;
        if status.missing.is_empty() {
            return Ok(());
        }
        let (missing, shards) = (status.missing.len(), status.shards);
        Err(CampaignError::Missing { missing, shards, which: status.missing() })
    }

    /// Returns the range of a shard's runs in the order of all runs.
    fn positions(&self, shard: u64) -> Result<Range<u64>, CampaignError> {
        let shards = self.shards();
        if shard >= shards {
            return Err(CampaignError::NoShard { shard, shards });
        }
        let from = shard * self.plan.runs_of_a_shard;
        Ok(from..(from + self.plan.runs_of_a_shard).min(self.plan.runs))
    }

    /// Returns a runner for the runs of all shards.
    pub(crate) fn trial<'a>(&self, sources: &'a [Source]) -> Runner<'a> {
        Runner::new(sources).seeds(self.seeds())
    }

    fn copies(&self) -> PathBuf {
        self.folder.join(FILES)
    }

    fn copy(&self, at: usize) -> PathBuf {
        self.copies().join(copy_name(at))
    }

    fn shards_folder(&self) -> PathBuf {
        self.folder.join(SHARDS)
    }

    fn shard_file(&self, shard: u64) -> PathBuf {
        self.shards_folder().join(shard_name(shard))
    }
}

fn copy_name(at: usize) -> String {
    format!("{at:04}.toml")
}

fn shard_name(shard: u64) -> String {
    format!("{shard:06}.csv")
}

fn cannot<'a>(what: &'static str, path: &'a Path) -> impl Fn(io::Error) -> CampaignError + 'a {
    move |error| CampaignError::Io { path: path.to_owned(), what, error }
}

/// Returns the SHA-256 of this process's executable.
fn build() -> Result<String, CampaignError> {
    let unknown = PathBuf::from("the executable of this process");
    let path = std::env::current_exe().map_err(cannot("cannot be found", &unknown))?;
    let mut file = fs::File::open(&path).map_err(cannot("cannot be read", &path))?;
    let mut digest = Sha256::new();
    let mut block = vec![0; 1 << 16];
    loop {
        match io::Read::read(&mut file, &mut block).map_err(cannot("cannot be read", &path))? {
            0 => break,
            read => digest.update(&block[..read]),
        }
    }
    Ok(hex(digest.finalize()))
}

/// A file under a temporary name that no other process has, until it is complete.
struct Part {
    path: PathBuf,
    file: io::BufWriter<fs::File>,
}

impl Part {
    fn create(folder: &Path, name: &str) -> Result<Part, CampaignError> {
        let mut number = 0_u64;
        loop {
            // Creating a new file succeeds for only one process, also among machines that share a
            // folder.
            let path = folder.join(format!("{name}.{number}.part"));
            match fs::File::create_new(&path) {
                Ok(file) => return Ok(Part { path, file: io::BufWriter::new(file) }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(cannot("cannot be written", &path)(error)),
            }
        }
    }

    /// Gives the complete file its final path, or removes it if writing it has failed. If the path
    /// exists already, the two files must be equal.
    fn put(mut self, written: io::Result<()>, to: &Path) -> Result<(), CampaignError> {
        let written = written.and_then(|()| self.file.flush()).and_then(|()| self.file.get_ref().sync_all());
        let put = written.and_then(|()| match publish(&self.path, to) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.is_equal(to),
            // The worker that finished the same file first has removed the temporary name.
            Err(error) if error.kind() == io::ErrorKind::NotFound && to.exists() => self.is_equal(to),
            Err(error) => Err(error),
        });
        let _ = fs::remove_file(&self.path);
        match put {
            Ok(true) => Ok(()),
            Ok(false) => Err(CampaignError::Differs(to.to_owned())),
            Err(error) => Err(cannot("cannot be written", to)(error)),
        }
    }

    /// Compares the content with that of another file. Reads the open file, because its name may be
    /// gone.
    fn is_equal(&mut self, other: &Path) -> io::Result<bool> {
        let (file, mut content) = (self.file.get_mut(), Vec::new());
        file.rewind()?;
        file.read_to_end(&mut content)?;
        Ok(content == fs::read(other)?)
    }
}

/// Gives the file `from` the name `to` as well. Fails if `to` exists: of several processes that
/// publish one name, also on several machines, only one succeeds.
fn publish(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Err(error) if !matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound) => {
            // Some file systems have no hard links. A rename is atomic there too, but it replaces
            // the file of a process that publishes between the check and the rename.
            if to.exists() { Err(io::ErrorKind::AlreadyExists.into()) } else { fs::rename(from, to) }
        }
        linked => linked,
    }
}
