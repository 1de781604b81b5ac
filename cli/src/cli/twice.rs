//! `lockstorm twice`: tests that the same scenario and seed give the same bytes.

use std::path::PathBuf;

use clap::Args;
use lockstorm_world::{TraceRetention, first_divergence};
use miette::Result;

use super::{
    Exit,
    options::{Jobs, Seeds, sources},
    out::outln,
    progress::Progress,
};
use lockstorm::{
    file::{
        library,
        scenario::{Source, parse},
    },
    run::Engine,
    run::runner::Runner,
};

/// Run each scenario twice with the same seeds, and compare the runs event by event
#[derive(Debug, Args)]
pub(super) struct Twice {
    /// Scenario files or folders [default: all stock scenarios]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    seeds: Seeds,
    #[command(flatten)]
    jobs: Jobs,
    /// Print the first 16 digits of each run's fingerprint and report digest, for comparison with
    /// another process, machine or version
    #[arg(long)]
    print: bool,
}

impl Twice {
    pub(super) fn run(self) -> Result<Exit> {
        let sources = if self.paths.is_empty() { stock()? } else { sources(&self.paths)? };
        let trial = Runner::new(&sources)
            .seeds(self.seeds.given())
            .jobs(self.jobs.count())
            .engine(Engine::Event)
            .keep_report_digest(true);
        let total = trial.cases().len();
        let progress = Progress::new(2 * total);
        let first = trial.run(&|judged| progress.step(judged.simulated));
        let second = trial.run(&|judged| progress.step(judged.simulated));
        let speed = progress.finish();
        let mut different = 0;
        for (first, second) in first.iter().zip(&second) {
            if self.print {
                outln!("{}", trial.line(first));
            }
            if first.report_digest == second.report_digest {
                continue;
            }
            different += 1;
            outln!("DIFFERENT {}", trial.token(first.case));
            outln!("  first  {}\n  second {}", trial.line(first), trial.line(second));
            if first.fingerprint == second.fingerprint {
                outln!("  the events are the same, but were recorded or judged differently");
                continue;
            }
            let records = [(); 2].map(|()| trial.outcome(first.case, TraceRetention::All).records);
            match first_divergence(&records[0], &records[1]) {
                Some(divergence) => outln!("{divergence}"),
                None => outln!("  a third and a fourth run did not differ from each other"),
            }
        }
        if different > 0 {
            outln!(
                "{different} of {total} runs were not the same twice: do not trust any other result until they are"
            );
            return Ok(Exit::Unexpected);
        }
        outln!("{total} runs, each the same twice ({speed})");
        Ok(Exit::Expected)
    }
}

/// Loads all stock scenarios.
pub(super) fn stock() -> Result<Vec<Source>> {
    let parsed =
        library::ALL.iter().map(|stock| parse(stock.path, stock.text).map_err(|error| (*error).into()));
    parsed.collect()
}
