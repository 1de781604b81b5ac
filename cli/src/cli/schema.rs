//! `lockstorm schema`: the scenario format for editors.

use clap::Args;
use lockstorm::file::scenario;
use miette::Result;

use super::{Exit, out::outln};

/// Print the JSON Schema of scenario files, for editors that complete and check TOML
#[derive(Debug, Args)]
pub(super) struct Schema {}

impl Schema {
    pub(super) fn run(self) -> Result<Exit> {
        outln!("{}", scenario::json_schema());
        Ok(Exit::Expected)
    }
}
