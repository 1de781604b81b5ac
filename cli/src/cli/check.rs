//! `lockstorm check`: judging a history that was recorded before.

use std::{
    fs::File,
    io::{BufReader, IsTerminal, stdout},
    path::PathBuf,
};

use clap::Args;
use miette::{IntoDiagnostic, Result, WrapErr, miette};

use super::{
    Exit,
    out::{out, outln},
};
use lockstorm::{
    judge::{
        checker,
        history::History,
        verdict::{Finding, Verdict},
    },
    report::{ChainShown, Report, Standing, own_entries},
};

/// Judge a history that `run --history` has written, by what its scenario expects
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
        let entries = own_entries(&history, findings.clone());
        let entries = entries.map_err(|mistake| miette!("{name} is no history: {mistake}"))?;
        let report = Report { history: &history, entries: &entries, records: &[] };
        if self.json {
            outln!("{}", serde_json::to_string_pretty(&report.json()).into_diagnostic()?);
        } else {
            out!("{}", report.text(stdout().is_terminal(), ChainShown::Whole));
        }
        Ok(match report.standing() {
            Standing::AsExpected => Exit::Expected,
            Standing::Otherwise => Exit::Unexpected,
            Standing::Undecided => Exit::Undecided,
            Standing::NothingExpected => unexpected(&findings),
        })
    }
}

/// Of a history that expects nothing everything is expected to hold, as far as it can be said.
fn unexpected(findings: &[Finding]) -> Exit {
    let any = |is: fn(&Verdict) -> bool| findings.iter().any(|finding| is(&finding.verdict));
    if any(|verdict| matches!(verdict, Verdict::Violated { .. })) {
        Exit::Unexpected
    } else if any(|verdict| matches!(verdict, Verdict::Holds { .. })) {
        Exit::Expected
    } else {
        Exit::Undecided
    }
}
