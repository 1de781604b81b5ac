//! `lockstorm run --real` and `lockstorm trial`: the scenarios against real servers, each as long
//! as it takes.

use std::{
    ops::{ControlFlow, Range},
    rc::Rc,
    time::Duration,
};

use lockstorm_sim::world::TraceRetention;
use miette::{Result, bail, miette};

use super::{
    Exit, interrupts,
    out::errln,
    progress::Progress,
    results::{Output, Print},
};
use lockstorm::{
    file::scenario::Source,
    judge::history::Ended,
    report::chains,
    run::{Engine, real},
    run::{
        peer::Peer,
        runner::{Runner, judge},
        tally::tally,
        worklist::work_through,
    },
};

/// Runs what can be run on real servers, so many at a time, with a peer in the place of the
/// clients' software if there is one; `skip` leaves out what cannot, instead of refusing
/// everything. A run that must be given up ends everything; with a peer it is undecided.
pub(super) fn run(
    sources: &[Source],
    (peer, jobs): (Option<&Peer>, usize),
    seeds: Option<Range<u64>>,
    skip: bool,
    verbose: bool,
    output: &Output,
) -> Result<Exit> {
    if output.asks_why() {
        bail!("--why has a run again without each of its causes, and in real time no run can be had again");
    }
    real::available().map_err(|why| miette!("real time starts servers of its own: {why}"))?;
    interrupts::end_real_runs();
    // Real time is dear: one seed of each, unless asked for more.
    let trial = Runner::new(sources).seeds(seeds.unwrap_or(0..1)).engine(Engine::Real);
    let trial = match peer {
        None => trial,
        Some(peer) => trial.peer(peer),
    };
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
    let ran = work_through(&cases, jobs, |&case| {
        let outcome = trial.outcome(case, TraceRetention::Nothing);
        let mut judged = judge(trial.variant(case), case, &outcome);
        if output.shows_chains() {
            judged.chains = chains(&outcome.history, &judged.findings);
        }
        progress.step(judged.simulated);
        let given_up = peer.is_none() && outcome.history.header.ended != Ended::Complete;
        if real::interrupted() || given_up {
            ControlFlow::Break((judged, outcome))
        } else {
            ControlFlow::Continue((judged, outcome))
        }
    });
    if real::interrupted() {
        bail!("interrupted; the servers are gone");
    }
    let mut kept = Vec::new();
    for (judged, outcome) in ran {
        match &outcome.history.header.ended {
            Ended::Early(why) if peer.is_none() => bail!("{}: {why}", trial.token(judged.case)),
            Ended::Early(why) => errln!("{}: given up: {why}", trial.token(judged.case)),
            _ => {}
        }
        kept.push((judged, Rc::new(outcome)));
    }
    let ran = kept;
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
