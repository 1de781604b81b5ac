//! `lockstorm run --real`: the scenarios against real servers, one after the other, each as long as it takes.

use std::{ops::Range, rc::Rc, time::Duration};

use lockstorm_sim::world::TraceRetention;
use miette::{Result, bail, miette};

use super::{
    Exit,
    out::errln,
    progress::Progress,
    results::{Output, Print},
};
use crate::{
    history::Ended,
    run::{Engine, real},
    runner::{Runner, judge},
    scenario::Source,
    tally::tally,
};

/// Runs what can be run on real servers; `skip` leaves out what cannot, instead of refusing everything.
pub(super) fn run(
    sources: &[Source],
    seeds: Option<Range<u64>>,
    skip: bool,
    verbose: bool,
    output: &Output,
) -> Result<Exit> {
    real::available().map_err(|why| miette!("--real starts servers of its own: {why}"))?;
    // Real time is dear: one seed of each, unless asked for more.
    let trial = Runner::new(sources).seeds(seeds.unwrap_or(0..1)).engine(Engine::Real);
    let (mut cases, mut refused, mut takes) = (Vec::new(), Vec::new(), Duration::ZERO);
    for case in trial.cases() {
        let plan = trial.plan(case);
        let problems = real::impossible(&plan);
        if problems.is_empty() {
            takes += plan.phases.ends.since(lockstorm_sim::time::True::ZERO);
            cases.push(case);
        } else {
            refused.push(format!("{}: {}", trial.token(case), problems.join(", ")));
        }
    }
    if !refused.is_empty() && !skip {
        let list = refused.join("\n  ");
        bail!("this cannot be done to real servers:\n  {list}\n--skip-unsupported leaves such scenarios out");
    }
    refused.iter().for_each(|line| errln!("skipped {line}"));
    errln!("{} runs in real time, {} s", cases.len(), takes.as_secs());
    let progress = Progress::new(cases.len());
    let mut ran = Vec::new();
    for case in cases {
        let outcome = trial.outcome(case, TraceRetention::Nothing);
        if real::interrupted() {
            bail!("interrupted; the servers are gone");
        }
        if let Ended::Early(why) = &outcome.history.header.ended {
            bail!("{}: {why}", trial.token(case));
        }
        let judged = judge(trial.variant(case), case, &outcome);
        progress.step(judged.simulated);
        ran.push((judged, Rc::new(outcome)));
    }
    let speed = progress.finish();
    let judged: Vec<_> = ran.iter().map(|(judged, _)| judged.clone()).collect();
    let outcome = |case| {
        let (_, outcome) =
            ran.iter().find(|(judged, _)| judged.case == case).expect("every case has been run");
        Rc::clone(outcome)
    };
    let tallies = tally(&trial, &judged);
    output.report(&trial, &judged, &tallies, &speed, Print { verbose, chosen: false }, outcome)
}
