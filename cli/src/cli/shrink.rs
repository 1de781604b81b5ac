//! `lockstorm shrink`: reduces a scenario to the parts that its violation needs.

use std::path::PathBuf;

use clap::Args;
use miette::{IntoDiagnostic, Result};

use super::{
    Exit,
    options::{one_case, refuse_existing, violated_checker, write_file},
    out::{errln, out, outln},
};
use crate::study::shrink::Shrink as Shrinking;

/// Remove from a violated case all that its violation does not need, and print the rest as a
/// scenario
#[derive(Debug, Args)]
pub(super) struct Shrink {
    /// Case to shrink, as printed with a failing verdict: FILE#VARIANT@SEED
    #[arg(value_name = "CASE")]
    token: String,
    /// Checker that must stay violated [default: the first unexpected violation, or else the first
    /// violation]
    #[arg(long, value_name = "NAME")]
    checker: Option<String>,
    /// Write the scenario to this file instead of standard output
    #[arg(long, short, value_name = "FILE.toml")]
    output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long, requires = "output")]
    force: bool,
}

impl Shrink {
    pub(super) fn run(self) -> Result<Exit> {
        refuse_existing(self.output.as_deref(), self.force)?;
        let one = one_case(&self.token)?;
        let judged = one.judged();
        let Some(checker) = violated_checker(self.checker.as_deref(), &judged, one.variant())? else {
            outln!("{}: nothing is violated, so there is nothing to shrink", self.token);
            return Ok(Exit::Unexpected);
        };
        let shrink = Shrinking { seed: one.case.seed, engine: one.engine, checker };
        let text = &one.source().text;
        let shrunk = shrink.of(&one.variant().scenario, text, &mut |change| errln!("{change}"));
        let Some(shrunk) = shrunk.into_diagnostic()? else {
            outln!("{}: {} is not violated, so there is nothing to shrink", self.token, checker.name);
            return Ok(Exit::Unexpected);
        };
        let text = &shrunk.text;
        let head = format!(
            "# {} reduced to what still violates {} with seed {}: {} changes, {} runs.\n",
            self.token,
            checker.name,
            one.case.seed,
            shrunk.changes.len(),
            shrunk.runs
        );
        let Some(path) = &self.output else {
            out!("{head}{text}");
            return Ok(Exit::Expected);
        };
        write_file(path, format!("{head}{text}"))?;
        outln!(
            "{} is written. Try it:\n\n    lockstorm run {} --seed {}",
            path.display(),
            path.display(),
            one.case.seed
        );
        Ok(Exit::Expected)
    }
}
