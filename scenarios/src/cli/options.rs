//! Options that several subcommands share.

use std::{ops::Range, path::PathBuf};

use clap::{Args, ValueEnum};
use miette::{IntoDiagnostic, Result, WrapErr, bail};

use crate::{
    library,
    run::Engine,
    scenario::{Source, load, parse},
};

/// Which seeds.
#[derive(Debug, Clone, Args)]
pub(super) struct Seeds {
    /// One seed
    #[arg(long, value_name = "N", conflicts_with = "seeds", env = "LOCKSTORM_SEED")]
    seed: Option<u64>,
    /// A range of seeds, the last one not included
    #[arg(long, value_name = "A..B", value_parser = range, env = "LOCKSTORM_SEEDS")]
    seeds: Option<Range<u64>>,
}

impl Seeds {
    /// The seeds that were asked for, if any were.
    pub(super) fn given(&self) -> Option<Range<u64>> {
        self.seed.map(|seed| seed..seed.saturating_add(1)).or_else(|| self.seeds.clone())
    }
}

/// Reads `A..B`.
pub(super) fn range(text: &str) -> Result<Range<u64>, String> {
    let form = "expected a range of seeds, such as 0..1000";
    let (from, to) = text.split_once("..").ok_or(form)?;
    let number = |text: &str| text.trim().replace('_', "").parse::<u64>().map_err(|_| form.to_owned());
    let (from, to) = (number(from)?, number(to)?);
    if from >= to {
        return Err(format!("{text} is an empty range: the last seed is not included"));
    }
    Ok(from..to)
}

/// How many threads.
#[derive(Debug, Clone, Args)]
pub(super) struct Jobs {
    /// How many seeds at a time; as many as there are processors if left out
    #[arg(long, value_name = "N", env = "LOCKSTORM_JOBS")]
    jobs: Option<usize>,
}

impl Jobs {
    pub(super) fn count(&self) -> usize {
        self.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).max(1)
    }
}

/// What moves time on, as the command line has it.
#[derive(Debug, Clone, Copy, ValueEnum, Default)]
pub(super) enum EngineName {
    /// lockstorm's own timeline, which jumps from event to event
    #[default]
    Event,
}

impl From<EngineName> for Engine {
    fn from(name: EngineName) -> Engine {
        match name {
            EngineName::Event => Engine::Event,
        }
    }
}

/// The scenarios of files and folders; what is not on the disk is looked for among the stock scenarios.
pub(super) fn sources(paths: &[PathBuf]) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for path in paths {
        if path.is_dir() {
            let mut files = Vec::new();
            collect(path, &mut files)?;
            if files.is_empty() {
                bail!("{} has no scenario in it: expected files that end in .toml", path.display());
            }
            files.sort();
            for file in files {
                sources.push(load(&file).map_err(|error| *error)?);
            }
        } else if !path.exists()
            && let Some(stock) = path.to_str().and_then(library::find)
        {
            sources.push(parse(stock.path, stock.text).map_err(|error| *error)?);
        } else {
            sources.push(load(path).map_err(|error| *error)?);
        }
    }
    Ok(sources)
}

/// Every scenario file in a folder and the folders in it.
fn collect(folder: &std::path::Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(folder).into_diagnostic();
    for entry in entries.wrap_err_with(|| format!("{} cannot be read", folder.display()))? {
        let path = entry.into_diagnostic()?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    Ok(())
}
