//! `lockstorm replay`: runs one case again, and prints all about it.

use clap::Args;
use lockstorm_world::{Event, TraceRetention};
use miette::Result;

use super::{
    Exit,
    options::one_case,
    out::out,
    results::{Output, exit_of},
};
use lockstorm::{file::plan::Plan, run::runner::judge};

/// Run one case again and print everything about it
#[derive(Debug, Args)]
#[command(
    mut_arg("report", |report| report.help("Write an HTML page about the run")),
    mut_arg("history", |history| history.help("Write the history of the run, for `lockstorm check`")),
    mut_arg("monitor", |monitor| monitor.help(
        "Write the commands of the nodes into a folder, for `lockstorm audit`: one file NODE.monitor \
         for each node, as `redis-cli monitor` writes it"
    )),
    mut_arg("json", |json| json.help("Print the result as JSON")),
    mut_arg("why", |why| why.help("Print the causes of a violation, as `lockstorm why` does"))
)]
pub(super) struct Replay {
    /// Case to replay, as printed with a failing verdict: FILE#VARIANT@SEED
    #[arg(value_name = "CASE")]
    token: String,
    /// Print the plan before the run: hosts, clocks, steps and faults with the values drawn from
    /// the seed
    #[arg(long)]
    plan: bool,
    /// Print every event: the bytes that nodes receive and send, changes of state, and faults
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
        // Ignore the expected shares: one run decides none.
        Ok(exit_of([&judged], &[]))
    }
}
