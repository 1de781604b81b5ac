//! `lockstorm check`: judging a history that was recorded before.

use std::{
    fs::File,
    io::{BufReader, IsTerminal, stdout},
    path::PathBuf,
};

use clap::Args;
use miette::{IntoDiagnostic, Result, WrapErr};

use super::{
    Exit,
    out::{out, outln},
};
use crate::{
    checker,
    history::History,
    report::{Report, entries},
};

/// Judge a history that `run --history` has written
#[derive(Debug, Args)]
pub(super) struct Check {
    /// The history
    history: PathBuf,
    /// Print what was found as JSON
    #[arg(long)]
    json: bool,
}

impl Check {
    pub(super) fn run(self) -> Result<Exit> {
        let name = self.history.display();
        let file =
            File::open(&self.history).into_diagnostic().wrap_err_with(|| format!("{name} cannot be read"))?;
        let history = History::read(BufReader::new(file)).into_diagnostic();
        let history = history.wrap_err_with(|| format!("{name} is no history"))?;
        let findings = checker::check(&history);
        if self.json {
            outln!("{}", serde_json::to_string_pretty(&findings).into_diagnostic()?);
        } else {
            let entries = entries(findings.clone(), |_| None);
            out!("{}", Report { history: &history, entries: &entries }.text(stdout().is_terminal()));
        }
        let violated = findings.iter().any(|finding| finding.verdict.witness().is_some());
        Ok(if violated { Exit::Unexpected } else { Exit::Expected })
    }
}
