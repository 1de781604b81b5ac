//! `lockstorm replay`: one case again, closely looked at.

use std::{
    io::{BufWriter, Write, stdout},
    path::PathBuf,
};

use clap::Args;
use lockstorm_sim::world::Keep;
use miette::{Result, miette};

use super::{
    Exit,
    options::sources,
    run::{Output, exit_of, show},
};
use crate::{
    plan::Plan,
    trial::{Case, Trial, judge, parse_token},
};

/// Run one case again, and show everything about it
#[derive(Debug, Args)]
pub(super) struct Replay {
    /// What a red verdict ends in: file#variant@seed
    token: String,
    /// Print what was drawn from the seed before the run
    #[arg(long)]
    plan: bool,
    /// Print every event: what nodes read and wrote, what changed, what went wrong
    #[arg(long)]
    trace: bool,
    #[command(flatten)]
    output: Output,
}

impl Replay {
    pub(super) fn run(self) -> Result<Exit> {
        let (file, variant, seed, engine) = parse_token(&self.token).map_err(|error| miette!("{error}"))?;
        let sources = sources(&[PathBuf::from(&file)])?;
        let variants = &sources[0].variants;
        let at = variants.iter().position(|one| one.name == variant).ok_or_else(|| {
            let known: Vec<&str> = variants.iter().map(|one| one.name.as_str()).collect();
            miette!("{file} has no variant {variant:?}; it has: {}", known.join(", "))
        })?;
        let trial = Trial {
            sources: &sources,
            seeds: Some(seed..seed.saturating_add(1)),
            jobs: 1,
            engine,
            until_unexpected: false,
            until_violation: false,
        };
        let case = Case { source: 0, variant: at, seed };
        if self.plan {
            print!("{}", Plan::draw(&variants[at].scenario, seed));
        }
        let outcome = trial.outcome(case, if self.trace { Keep::Events } else { Keep::Nothing });
        if self.trace {
            let mut out = BufWriter::new(stdout().lock());
            for record in &outcome.records {
                // Whoever reads through `head` has seen enough.
                if writeln!(out, "{record}").is_err() {
                    return Ok(Exit::Expected);
                }
            }
        }
        let judged = judge(&variants[at], case, &outcome);
        show(&trial, &judged, &outcome, true);
        self.output.write(&trial, &judged, &outcome)?;
        Ok(exit_of(&[judged]))
    }
}
