//! `lockstorm why`: finds the causes of a violation.

use clap::Args;
use miette::{IntoDiagnostic, Result};

use super::{
    Exit,
    options::{one_case, violated_checker},
    out::outln,
};
use crate::study::cause::Inquiry;

/// Find the causes of a violation: run the case without each fault, clock error and delay, and
/// report which of them the violation needs
#[derive(Debug, Args)]
pub(super) struct Why {
    /// Case to explain, as printed with a failing verdict: FILE#VARIANT@SEED
    #[arg(value_name = "CASE")]
    token: String,
    /// Checker whose violation to explain [default: the first unexpected violation, or else the
    /// first violation]
    #[arg(long, value_name = "NAME")]
    checker: Option<String>,
    /// Print the causes as JSON
    #[arg(long)]
    json: bool,
}

impl Why {
    pub(super) fn run(self) -> Result<Exit> {
        let one = one_case(&self.token)?;
        let judged = one.judged();
        let Some(checker) = violated_checker(self.checker.as_deref(), &judged, one.variant())? else {
            outln!("{}: nothing is violated, so there is no cause to look for", self.token);
            return Ok(Exit::Unexpected);
        };
        let inquiry = Inquiry { seed: one.case.seed, engine: one.engine, checker };
        let Some(causes) = inquiry.of(&one.variant().scenario) else {
            outln!("{}: {} is not violated, so there is no cause to look for", self.token, checker.name);
            return Ok(Exit::Unexpected);
        };
        if self.json {
            outln!("{}", serde_json::to_string(&causes).into_diagnostic()?);
            return Ok(Exit::Expected);
        }
        let violated = judged.finding(checker.name).map_or("", |finding| finding.verdict.sentence());
        outln!("{}: {} violated: {violated}", self.token, checker.name);
        for line in causes.why.lines() {
            outln!("  {line}");
        }
        outln!("({} runs)", causes.why.runs);
        Ok(Exit::Expected)
    }
}
