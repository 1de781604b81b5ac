//! The option that has every run written into a table.

use std::{
    fs::File,
    io::BufWriter,
    path::{Path, PathBuf},
    str::FromStr,
};

use clap::Args;
use miette::{IntoDiagnostic, Result, WrapErr};

use super::out::errln;
use crate::{
    runner::{Judged, Runner},
    table::Table,
};

/// The runs in a file.
#[derive(Debug, Clone, Args)]
pub(super) struct Results {
    /// Write a row for every run, with what was swept, drawn from the seed, found and measured: as CSV, or as Parquet where
    /// lockstorm is built with it (`--features parquet`)
    #[arg(long, value_name = "FILE.csv|FILE.parquet", conflicts_with = "real")]
    results: Option<Target>,
}

/// A file, and what it is written as.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    Csv(PathBuf),
    #[cfg(feature = "parquet")]
    Parquet(PathBuf),
}

impl FromStr for Target {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Target, &'static str> {
        let path = PathBuf::from(text);
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("csv") => Ok(Target::Csv(path)),
            #[cfg(feature = "parquet")]
            Some("parquet") => Ok(Target::Parquet(path)),
            #[cfg(not(feature = "parquet"))]
            Some("parquet") => Err("this lockstorm is built without Parquet: write FILE.csv instead"),
            _ => Err("expected a file that ends in .csv or .parquet"),
        }
    }
}

impl Results {
    /// Writes the table, if one was asked for.
    pub(super) fn write(&self, trial: &Runner<'_>, judged: &[Judged]) -> Result<()> {
        let Some(target) = &self.results else { return Ok(()) };
        let table = Table::of(trial, judged);
        let path = match target {
            Target::Csv(path) => {
                written(path, create(path).and_then(|file| table.csv(file).into_diagnostic()))?
            }
            #[cfg(feature = "parquet")]
            Target::Parquet(path) => {
                written(path, create(path).and_then(|file| table.parquet(file).into_diagnostic()))?
            }
        };
        errln!("{} has {} runs in {} columns", path.display(), judged.len(), table.columns().len());
        Ok(())
    }
}

fn create(path: &Path) -> Result<BufWriter<File>> {
    File::create(path).map(BufWriter::new).into_diagnostic()
}

fn written(path: &Path, result: Result<()>) -> Result<&Path> {
    result.wrap_err_with(|| format!("{} cannot be written", path.display()))?;
    Ok(path)
}
