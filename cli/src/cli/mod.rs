//! The command line: one file per subcommand.
//!
//! To add one, write `cli/<name>.rs` with its arguments and its `run`, and add a variant to
//! `Command`.

#![deny(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "`println!` and `eprintln!` panic when a pipe is closed; see `out`"
)]

mod audit;
mod boundary;
mod campaign;
mod check;
mod claims;
mod conditions;
mod exit;
mod gathered;
mod hunt;
mod hunted;
mod interrupts;
mod list;
mod match_rate;
mod measures;
mod new;
mod options;
mod out;
mod pages;
mod picture;
mod progress;
mod real;
mod replay;
mod results;
mod run;
mod schema;
mod scoreboard;
mod sensitivity;
mod serve;
mod shrink;
mod table;
mod trial;
mod twice;
mod why;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub(crate) use exit::Exit;

/// Put Redis locks on trial: run them under injected faults, and judge in which sense they are safe
#[derive(Debug, Parser)]
#[command(name = "lockstorm", version, about, max_term_width = 100, after_help = exit::HELP)]
struct Lockstorm {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Claims(claims::Claims),
    Run(run::Run),
    Replay(replay::Replay),
    Shrink(shrink::Shrink),
    Why(why::Why),
    Boundary(boundary::Boundary),
    Hunt(hunt::Hunt),
    Trial(trial::Trial),
    Scoreboard(scoreboard::Scoreboard),
    Campaign(campaign::Campaign),
    Sensitivity(sensitivity::Sensitivity),
    Twice(twice::Twice),
    Check(check::Check),
    Audit(audit::Audit),
    List(list::List),
    Schema(schema::Schema),
    New(new::New),
    Serve(serve::Serve),
}

/// Parses the command line of this process, and runs its subcommand.
pub(crate) fn main() -> ExitCode {
    let parsed = match Lockstorm::try_parse() {
        Ok(parsed) => parsed,
        Err(error) => {
            // `--help` and `--version` arrive as errors, too. They end with 0.
            let asked_for = !error.use_stderr();
            let _ = error.print();
            return if asked_for { ExitCode::SUCCESS } else { Exit::Usage.into() };
        }
    };
    let outcome = match parsed.command {
        Command::Claims(claims) => claims.run(),
        Command::Run(run) => run.run(),
        Command::Replay(replay) => replay.run(),
        Command::Shrink(shrink) => shrink.run(),
        Command::Why(why) => why.run(),
        Command::Boundary(boundary) => boundary.run(),
        Command::Hunt(hunt) => hunt.run(),
        Command::Trial(trial) => trial.run(),
        Command::Scoreboard(scoreboard) => scoreboard.run(),
        Command::Campaign(campaign) => campaign.run(),
        Command::Sensitivity(sensitivity) => sensitivity.run(),
        Command::Twice(twice) => twice.run(),
        Command::Check(check) => check.run(),
        Command::Audit(audit) => audit.run(),
        Command::List(list) => list.run(),
        Command::Schema(schema) => schema.run(),
        Command::New(new) => new.run(),
        Command::Serve(serve) => serve.run(),
    };
    match outcome {
        Ok(exit) => exit.into(),
        Err(report) => {
            out::errln!("{report:?}");
            Exit::Usage.into()
        }
    }
}
