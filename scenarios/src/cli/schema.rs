//! `lockstorm schema`: the scenario format for editors.

use clap::Args;
use miette::{IntoDiagnostic, Result};

use super::{Exit, out::outln};
use crate::scenario::Scenario;

/// Print the JSON Schema of scenario files, for editors that complete and check TOML
#[derive(Debug, Args)]
pub(super) struct Schema {}

impl Schema {
    pub(super) fn run(self) -> Result<Exit> {
        let schema = schemars::schema_for!(Scenario);
        outln!("{}", serde_json::to_string_pretty(&schema).into_diagnostic()?);
        Ok(Exit::Expected)
    }
}
