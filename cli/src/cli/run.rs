//! `lockstorm run`: scenarios with seeds, judged.

use std::{ops::ControlFlow, rc::Rc};

use clap::Args;
use miette::Result;

use super::{
    Exit,
    options::{Files, Jobs, Seeds, virtual_engines},
    picture::Picture,
    progress::Progress,
    results::{Output, Print},
    table::{Results, Written},
};
use lockstorm::{
    run::Engine,
    run::{
        runner::{Runner, Stop},
        tally::tally,
    },
};

/// Run scenarios, and judge what happened against what they expect
#[derive(Debug, Args)]
pub(super) struct Run {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    seeds: Seeds,
    #[command(flatten)]
    jobs: Jobs,
    /// What moves time on
    #[arg(long, value_parser = virtual_engines(), default_value = Engine::Event.name())]
    engine: Engine,
    /// Use private real `redis-server` processes for nodes, in real time: crashes are SIGKILL,
    /// pauses SIGSTOP, and a proxy between the hosts cuts, delays and loses; the clocks of nodes
    /// are left alone
    #[arg(long, conflicts_with_all = ["engine", "until_violation"])]
    real: bool,
    /// Leave out what cannot be done to real servers, instead of refusing to run
    #[arg(long, requires = "real")]
    skip_unsupported: bool,
    /// Stop at the first violation, expected or not, and show it
    #[arg(long)]
    until_violation: bool,
    /// Leave out the rest of a variant's or a point's seeds as soon as those before it decide the
    /// shares in [expect]: after 64, 128, 256, .. seeds, with an interval 50 times as sure as asked
    /// for
    #[arg(long, conflicts_with_all = ["real", "until_violation"])]
    stop_early: bool,
    /// Say of every run what came out and which calls failed, not only of those that are not as
    /// expected, and show the chain of events of a violation whole
    #[arg(long, short)]
    verbose: bool,
    #[command(flatten)]
    picture: Picture,
    #[command(flatten)]
    results: Results,
    #[command(flatten)]
    output: Output,
}

impl Run {
    pub(super) fn run(self) -> Result<Exit> {
        let sources = self.files.sources()?;
        self.picture.check()?;
        if self.real {
            let seeds = self.seeds.given();
            return super::real::run(
                &sources,
                (None, 1),
                seeds,
                self.skip_unsupported,
                self.verbose,
                &self.output,
            );
        }
        let trial = Runner::new(&sources)
            .seeds(self.seeds.given())
            .jobs(self.jobs.count())
            .engine(self.engine)
            .keep_holds(self.picture.shows_holds() || self.output.shows_holds())
            .keep_chains(self.output.shows_chains())
            .stop(match (self.until_violation, self.stop_early) {
                (true, _) => Stop::AtViolation,
                (false, true) => Stop::WhenDecided,
                (false, false) => Stop::Never,
            });
        let mut table = self.results.open(&trial)?;
        let progress = Progress::new(trial.cases().len());
        let (mut judged, mut written) = (Vec::new(), Ok(()));
        trial.each(&|judged| progress.step(judged.simulated), &mut |one| {
            written = table.as_mut().map_or(Ok(()), |table| table.add(&one));
            judged.push(one);
            if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        let speed = progress.finish();
        written?;
        table.map_or(Ok(()), Written::finish)?;
        let tallies = tally(&trial, &judged);
        let print = Print { verbose: self.verbose, chosen: self.until_violation };
        let outcome = |case| Rc::new(trial.outcome(case, self.output.retention()));
        let exit = self.output.report(&trial, &judged, &tallies, &speed, print, outcome)?;
        // At last, so that a picture which cannot be drawn costs nothing else.
        self.picture.draw(&trial, &tallies)?;
        self.picture.draw_holds(&trial, &judged)?;
        Ok(exit)
    }
}
