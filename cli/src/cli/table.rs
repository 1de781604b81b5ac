//! The option that has every run written into a table.

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

/// The runs in a file.
#[derive(Debug, Clone, Args)]
pub(super) struct Results {
    /// Write a row for every run, with what was swept, drawn from the seed, found and measured: as
    /// Parquet, unless lockstorm is built without it, or as CSV
    #[arg(long, value_name = "FILE.parquet|FILE.csv", conflicts_with = "real")]
    results: Option<Target>,
}

/// A file, and what it is written as.
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

    /// Creates the file.
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
    /// Opens the file, if one was asked for: before anything runs, so that no run is lost to a path
    /// that cannot be written.
    pub(super) fn open<'a>(&'a self, trial: &'a Runner<'a>) -> Result<Option<Written<'a>>> {
        self.results.as_ref().map(|target| Written::open(target, Table::of(trial))).transpose()
    }
}

/// A table that is being written.
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

    /// Writes the row of one more run.
    pub(super) fn add(&mut self, judged: &Judged) -> Result<()> {
        self.runs += 1;
        written(self.path, self.rows.add(self.table.row(judged)))
    }

    /// Writes what is left, and says what is in the file.
    pub(super) fn finish(self) -> Result<()> {
        written(self.path, self.rows.finish())?;
        errln!("{} has {} runs in {} columns", self.path.display(), self.runs, self.table.columns().len());
        Ok(())
    }
}

fn written<T>(path: &Path, result: io::Result<T>) -> Result<T> {
    result.into_diagnostic().wrap_err_with(|| format!("{} cannot be written", path.display()))
}
