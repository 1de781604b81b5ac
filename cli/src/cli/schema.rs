//! `lockstorm schema`: prints the scenario format for editors.

use clap::Args;
use lockstorm::file::scenario;
use miette::Result;

use super::{Exit, out::outln};

/// Print the JSON Schema of scenario files, for completion and checks in editors
#[derive(Debug, Args)]
pub(super) struct Schema {}

impl Schema {
    pub(super) fn run(self) -> Result<Exit> {
        outln!("{}", scenario::json_schema());
        Ok(Exit::Expected)
    }
}
