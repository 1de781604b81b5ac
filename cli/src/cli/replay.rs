//! `lockstorm replay`: one case again, closely looked at.

use clap::Args;
use lockstorm_sim::world::{Event, TraceRetention};
use miette::Result;

use super::{
    Exit,
    options::one_case,
    out::out,
    results::{Output, exit_of},
};
use lockstorm::{file::plan::Plan, run::runner::judge};

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
        let one = one_case(&self.token)?;
        let trial = one.trial();
        if self.plan {
            out!("{}", Plan::draw(&one.variant().scenario, one.case.seed));
        }
        let retention = match self.output.retention() {
            TraceRetention::Nothing if self.trace => TraceRetention::Events,
            needed => needed,
        };
        let outcome = trial.outcome(one.case, retention);
        if self.trace {
            let events =
                outcome.records.iter().filter(|record| !matches!(record.event, Event::Packet { .. }));
            let trace: String = events.map(|record| format!("{record}\n")).collect();
            out!("{trace}");
        }
        let judged = judge(one.variant(), one.case, &outcome);
        self.output.one(&trial, &judged, &outcome)?;
        // A share is of many runs, and this is one.
        Ok(exit_of([&judged], &[]))
    }
}
