//! `lockstorm run`: runs scenarios with many seeds, and judges the runs.

use std::{ops::ControlFlow, rc::Rc};

use clap::Args;
use miette::Result;

use super::{
    Exit,
    options::{Files, Jobs, ONE_ENGINE, RealServers, Seeds, virtual_engines},
    picture::Picture,
    progress::Progress,
    results::{Output, Print},
    table::{Results, Written},
};
use lockstorm::run::{
    Engine,
    runner::{Runner, Stop},
};

/// Run scenarios and check their expectations
#[derive(Debug, Args)]
#[command(
    mut_arg("seeds", |seeds| seeds.help(
        "Range of seeds, excluding B [default: 0..run.seeds, as set in the file; with --real 0..1]"
    )),
    mut_arg("jobs", |jobs| jobs.help(
        "Number of runs at a time [default: number of processors; with --real always 1]"
    )),
    mut_arg("servers", |servers| servers.requires("real"))
)]
pub(super) struct Run {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    seeds: Seeds,
    #[command(flatten)]
    jobs: Jobs,
    /// Engine that advances virtual time
    #[arg(long, value_parser = virtual_engines(), default_value = Engine::Event.name())]
    #[arg(hide = ONE_ENGINE, hide_short_help = true)]
    engine: Engine,
    /// Run the nodes as private server processes, in real time; a crash is SIGKILL, a pause
    /// is SIGSTOP, and a proxy between the hosts cuts, delays and drops; nodes have the clock of
    /// the machine
    #[arg(long, conflicts_with_all = ["engine", "until_violation"])]
    real: bool,
    #[command(flatten)]
    servers: RealServers,
    /// Skip runs that are impossible with real servers, instead of failing
    #[arg(long, requires = "real")]
    skip_unsupported: bool,
    /// Stop at the first violation, expected or not, and print it
    #[arg(long)]
    until_violation: bool,
    /// Skip the remaining seeds of a variant or sweep point once its runs decide the shares in
    /// [expect]; checked after 64, 128, 256, .. seeds
    #[arg(long, conflicts_with_all = ["real", "until_violation"])]
    stop_early: bool,
    /// Print every run, including those that are as expected, with its failed calls and the whole
    /// chain of events of a violation
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
                &self.servers.find()?,
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
        let print = Print { verbose: self.verbose, chosen: self.until_violation };
        let (mut gathered, mut written) = (self.output.gathered(print), Ok(()));
        let mut take = |one| {
            written = table.as_mut().map_or(Ok(()), |table| table.add(&one));
            if written.is_ok() {
                written = self.output.add(&trial, &mut gathered, one);
            }
            if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        // A run that is alone is printed whole: its outcome is kept, so that it runs once.
        let mut alone = None;
        if let [case] = trial.cases()[..] {
            let outcome = Rc::new(trial.outcome(case, self.output.retention()));
            let one = trial.judge(case, &outcome);
            progress.step(one.simulated);
            let _ = take(one);
            alone = Some(outcome);
        } else {
            trial.each(&|judged| progress.step(judged.simulated), &mut take);
        }
        let speed = progress.finish();
        written?;
        table.map_or(Ok(()), Written::finish)?;
        let tallies = gathered.tallies(&trial);
        let outcome = |case| match &alone {
            Some(outcome) => Rc::clone(outcome),
            None => Rc::new(trial.outcome(case, self.output.retention())),
        };
        let exit = self.output.report(&trial, &gathered, &tallies, &speed, print, outcome)?;
        // Draw last: if a picture fails, everything else is printed and written already.
        self.picture.draw(&trial, &tallies)?;
        let runs = gathered.runs();
        self.picture.draw_holds(&trial, gathered.holds, runs)?;
        Ok(exit)
    }
}
