//! `lockstorm run --real` and `lockstorm trial`: runs with real servers, in real time.

use std::{
    ops::{ControlFlow, Range},
    rc::Rc,
    time::Duration,
};

use lockstorm_world::TraceRetention;
use miette::{Result, bail};

use super::{
    Exit,
    out::{errln, outln},
    progress::Progress,
    results::{Output, Print},
};
use lockstorm::{
    file::{peer::Peer, scenario::Source, server::Servers},
    judge::history::Ended,
    report::chains,
    run::real,
    run::{
        runner::{Case, Runner, judge},
        worklist::work_through,
    },
};

/// Runs scenarios on each of the real servers, `jobs` at a time. A peer, if there is one, replaces
/// the clients' software. If some runs are impossible, `skip` leaves them out; without it nothing
/// is run. A run that must be given up ends the command, or is undecided if there is a peer.
pub(super) fn run(
    sources: &[Source],
    (peer, jobs): (Option<&Peer>, usize),
    servers: &[Servers],
    seeds: Option<Range<u64>>,
    skip: bool,
    verbose: bool,
    output: &Output,
) -> Result<Exit> {
    if output.asks_why() {
        bail!(
            "--why repeats runs without their faults, but a run in real time cannot be repeated: leave out --why"
        );
    }
    if output.asks_for_monitor() {
        bail!("--monitor writes the commands of simulated nodes: leave out --monitor");
    }
    if servers.len() > 1 && output.writes_files() {
        bail!("--report and --history are about one run: expected one --server, got {}", servers.len());
    }
    let trials: Vec<Runner<'_>> = servers
        .iter()
        .map(|servers| {
            // Real time is expensive: run one seed of each variant by default.
            let trial = Runner::new(sources).seeds(seeds.clone().unwrap_or(0..1)).servers(servers);
            match peer {
                None => trial,
                Some(peer) => trial.peer(peer),
            }
        })
        .collect();
    // Refuse before anything runs, whatever the server.
    let mut possible = Vec::new();
    let mut refused = Vec::new();
    for (trial, servers) in trials.iter().zip(servers) {
        let (mut cases, mut takes) = (Vec::new(), Duration::ZERO);
        for case in trial.cases() {
            let plan = trial.plan(case);
            let problems = real::impossible(&plan);
            if problems.is_empty() {
                takes += plan.length();
                cases.push(case);
            } else {
                let (token, on) = (trial.token(case), servers.default());
                refused.push(format!("{token} on {on}: {}", problems.join(", ")));
            }
        }
        possible.push((cases, takes));
    }
    if !refused.is_empty() && !skip {
        let list = refused.join("\n  ");
        bail!("these runs are not supported:\n  {list}\n--skip-unsupported leaves them out");
    }
    refused.iter().for_each(|line| errln!("skipped {line}"));
    let mut exit = Exit::Expected;
    for ((trial, servers), (cases, takes)) in trials.iter().zip(servers).zip(possible) {
        errln!("{} runs in real time on {}, {} s", cases.len(), servers.default(), takes.as_secs());
        if trials.len() > 1 && !output.is_json() {
            outln!("on {}:", servers.default());
        }
        exit = exit.max(run_on(trial, &cases, (peer, jobs), verbose, output)?);
    }
    Ok(exit)
}

/// Runs the cases on one set of real servers.
fn run_on(
    trial: &Runner<'_>,
    cases: &[Case],
    (peer, jobs): (Option<&Peer>, usize),
    verbose: bool,
    output: &Output,
) -> Result<Exit> {
    let progress = Progress::new(cases.len());
    let ran = work_through(cases, jobs, |&case| {
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
        bail!("interrupted: all servers are stopped");
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
    let print = Print { verbose, chosen: false };
    let mut gathered = output.gathered(print);
    for (judged, _) in &ran {
        output.add(trial, &mut gathered, judged.clone())?;
    }
    let outcome = |case| {
        let (_, outcome) =
            ran.iter().find(|(judged, _)| judged.case == case).expect("every case has been run");
        Rc::clone(outcome)
    };
    output.report(trial, &gathered, &gathered.tallies(trial), &speed, print, outcome)
}
