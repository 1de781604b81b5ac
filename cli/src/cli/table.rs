//! The option `--results`: a table with a row for every run.

use std::{
    fs::File,
    io::{self, BufWriter},
    path::{Path, PathBuf},
    str::FromStr,
};

use clap::Args;
use miette::{IntoDiagnostic, Result, WrapErr};

use super::out::errln;
use crate::study::table::{Column, Rows, Table};
use lockstorm::run::runner::{Judged, Runner};

/// The option `--results`.
#[derive(Debug, Clone, Args)]
pub(super) struct Results {
    /// Write a table with a row per run: its sweep point, drawn values, verdicts and measures;
    /// Parquet needs a build with the feature `parquet`
    #[arg(long, value_name = "FILE.parquet|FILE.csv", conflicts_with = "real")]
    results: Option<Target>,
}

/// A file and its format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
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

impl Target {
    pub(super) fn path(&self) -> &Path {
        match self {
            Target::Csv(path) => path,
            #[cfg(feature = "parquet")]
            Target::Parquet(path) => path,
        }
    }

    /// Creates the file, and writes the beginning of its format.
    pub(super) fn create(&self, columns: &[Column]) -> Result<Rows<BufWriter<File>>> {
        let create = |path| File::create(path).map(BufWriter::new);
        let rows = match self {
            Target::Csv(path) => create(path).and_then(|to| Rows::csv(columns, to)),
            #[cfg(feature = "parquet")]
            Target::Parquet(path) => create(path).and_then(|to| Rows::parquet(columns, to)),
        };
        written(self.path(), rows)
    }
}

impl Results {
    /// Opens the requested file, if any. Call this before the runs, so that a path that cannot be
    /// written fails first.
    pub(super) fn open<'a>(&'a self, trial: &'a Runner<'a>) -> Result<Option<Written<'a>>> {
        self.results.as_ref().map(|target| Written::open(target, Table::of(trial))).transpose()
    }
}

/// A table while it is written.
pub(super) struct Written<'a> {
    path: &'a Path,
    table: Table<'a>,
    rows: Rows<BufWriter<File>>,
    runs: u64,
}

impl<'a> Written<'a> {
    fn open(target: &'a Target, table: Table<'a>) -> Result<Written<'a>> {
        let rows = target.create(table.columns())?;
        Ok(Written { path: target.path(), table, rows, runs: 0 })
    }

    /// Writes the row of a run.
    pub(super) fn add(&mut self, judged: &Judged) -> Result<()> {
        self.runs += 1;
        written(self.path, self.rows.add(self.table.row(judged)))
    }

    /// Writes the remaining data, and reports the size of the table.
    pub(super) fn finish(self) -> Result<()> {
        written(self.path, self.rows.finish())?;
        errln!("{} has {} runs in {} columns", self.path.display(), self.runs, self.table.columns().len());
        Ok(())
    }
}

/// Adds the path to an error.
pub(super) fn written<T>(path: &Path, result: io::Result<T>) -> Result<T> {
    result.into_diagnostic().wrap_err_with(|| format!("{} cannot be written", path.display()))
}
