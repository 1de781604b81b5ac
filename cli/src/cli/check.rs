//! `lockstorm check`: judges a recorded history.

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

/// Judge a recorded history by the expectations of its scenario
#[derive(Debug, Args)]
pub(super) struct Check {
    /// History file, as written by `run --history`
    #[arg(value_name = "FILE.jsonl")]
    history: PathBuf,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

impl Check {
    pub(super) fn run(self) -> Result<Exit> {
        let name = self.history.display();
        let file =
            File::open(&self.history).into_diagnostic().wrap_err_with(|| format!("{name} cannot be read"))?;
        let history = History::read(BufReader::new(file)).into_diagnostic();
        let history = history.wrap_err_with(|| format!("{name} is not a history"))?;
        let findings = checker::check(&history);
        let entries = own_entries(&history, findings.clone());
        let entries = entries.map_err(|mistake| miette!("{name} is not a history: {mistake}"))?;
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

/// Returns the exit status for a history without expectations: every decided checker must hold.
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
