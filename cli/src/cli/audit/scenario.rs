//! Writes a finding of an audit as a scenario.

use std::path::PathBuf;

use clap::Args;
use lockstorm::{
    audit::{Audit, Incident},
    file::scenario::parse,
    run::Engine,
};
use miette::{IntoDiagnostic, Result, miette};

use crate::{
    cli::{
        Exit,
        options::{refuse_existing, write_file},
        out::outln,
    },
    study::shrink::Shrink,
};

/// The options of the scenario of a finding.
#[derive(Debug, Args)]
// clap names a group of options after the structure, and another structure has this name.
#[group(skip)]
pub(super) struct Options {
    /// Write the smallest scenario that shows the first finding in the simulated world. The exit
    /// status is then 0 if it does, 1 without such a finding, and 2 if an assumption is missing
    #[arg(long, value_name = "FILE.toml")]
    scenario: Option<PathBuf>,
    /// Take this finding for --scenario, from 1 in the order of the findings [default: 1]
    #[arg(long, value_name = "N", requires = "scenario", value_parser = clap::value_parser!(u32).range(1..))]
    finding: Option<u32>,
    /// Overwrite the file of --scenario
    #[arg(long, requires = "scenario")]
    force: bool,
}

impl Options {
    /// Checks the file before the audit begins, which may take long.
    pub(super) fn check(&self) -> Result<()> {
        refuse_existing(self.scenario.as_deref(), self.force)
    }

    /// Writes the scenario. Returns `None` if none is wanted.
    pub(super) fn write(&self, audit: &Audit) -> Result<Option<Exit>> {
        let Some(path) = &self.scenario else { return Ok(None) };
        let number = self.finding.unwrap_or(1);
        let index = usize::try_from(number - 1).unwrap_or(usize::MAX);
        let name = path.display();
        let Some(incident) = audit.incident(index) else {
            outln!("\nthere is no finding {number}, so {name} is not written");
            return Ok(Some(Exit::Unexpected));
        };
        write_file(path, shrunk(&incident)?)?;
        Ok(Some(match (&incident.missing, incident.checker) {
            (None, Some(checker)) => {
                outln!(
                    "\n{name} shows finding {number}: {} is violated. Try it:\n\n    lockstorm run {name}",
                    checker.name
                );
                Exit::Expected
            }
            (missing, _) => {
                let why = missing.as_ref().map(|missing| format!("{}: {missing}", missing.name()));
                outln!(
                    "\n{name} does not show finding {number}. Missing assumption: {}",
                    why.unwrap_or_default()
                );
                Exit::Undecided
            }
        }))
    }
}

/// Returns the file without the parts that the violation does not need. All times stay as measured.
fn shrunk(incident: &Incident) -> Result<String> {
    let (None, Some(checker)) = (&incident.missing, incident.checker) else {
        return Ok(incident.text.clone());
    };
    let source = parse("incident.toml", &incident.text).into_diagnostic()?;
    let variant = source.variants.first().ok_or_else(|| miette!("the scenario has no variant"))?;
    let shrink = Shrink { seed: incident.seed(), engine: Engine::Event, checker };
    let parts = shrink.parts_of(&variant.scenario, &incident.text).into_diagnostic()?;
    Ok(parts.map_or_else(|| incident.text.clone(), |parts| parts.text))
}
