//! `lockstorm new`: creates a scenario file from a template.

use std::{
    fs::OpenOptions,
    io::Write,
    path::{Component, Path, PathBuf},
};

use clap::Args;
use miette::{IntoDiagnostic, Result, WrapErr, bail};

use super::{Exit, out::outln};

/// Create a scenario file from a template, ready to run
#[derive(Debug, Args)]
pub(super) struct New {
    /// Name of the scenario; the file is NAME.toml
    name: String,
}

const TEMPLATE: &str = include_str!("new.toml");

impl New {
    pub(super) fn run(self) -> Result<Exit> {
        // Accept only a plain file name in this folder: no path, no hidden file, no empty name.
        let mut parts = Path::new(&self.name).components();
        let is_name = matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None));
        if !is_name || self.name.starts_with('.') || self.name.ends_with('/') {
            bail!("{:?} is not a scenario name: give a plain one, such as `failover`", self.name);
        }
        let mut path = PathBuf::from(&self.name);
        if path.extension().is_none_or(|extension| extension != "toml") {
            path.as_mut_os_string().push(".toml");
        }
        // Never overwrite a file: it may be an evening's work.
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let mut file = match file {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                bail!("{} already exists: choose another name", path.display())
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
