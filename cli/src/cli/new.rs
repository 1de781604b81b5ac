//! `lockstorm new`: a scenario to begin with.

use std::{
    fs::OpenOptions,
    io::Write,
    path::{Component, Path, PathBuf},
};

use clap::Args;
use miette::{IntoDiagnostic, Result, WrapErr, bail};

use super::{Exit, out::outln};

/// Write a scenario to begin with, which runs as it is
#[derive(Debug, Args)]
pub(super) struct New {
    /// The name of the scenario; the file is called by it, with `.toml`
    name: String,
}

const TEMPLATE: &str = include_str!("new.toml");

impl New {
    pub(super) fn run(self) -> Result<Exit> {
        // A file beside the others: neither nameless nor hidden, nor anywhere else.
        let mut parts = Path::new(&self.name).components();
        let is_name = matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None));
        if !is_name || self.name.starts_with('.') || self.name.ends_with('/') {
            bail!("{:?} is no name of a scenario: give a plain one, such as `failover`", self.name);
        }
        let mut path = PathBuf::from(&self.name);
        if path.extension().is_none_or(|extension| extension != "toml") {
            path.as_mut_os_string().push(".toml");
        }
        // Never over something that is there: it may be an evening's work.
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let mut file = match file {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                bail!("{} is there already: choose another name", path.display())
            }
            file => {
                file.into_diagnostic().wrap_err_with(|| format!("{} cannot be written", path.display()))?
            }
        };
        file.write_all(TEMPLATE.as_bytes()).into_diagnostic()?;
        outln!("{} is written. Try it:\n\n    lockstorm run {}", path.display(), path.display());
        Ok(Exit::Expected)
    }
}
