//! Differential fuzzing: the simulator and a private `redis-server` get the same commands of
//! several clients, drawn from a seed, and must give the same replies and then have the same keys.
//!
//! A test run plays a few short seeds, and two on each other generation with an installed server.
//! The long one, with a progress bar, and `--as valkey-9.1` for another generation:
//!
//! ```text
//! cargo test --release -p lockstorm-sim --test differential -- --seeds 0..50 --commands 20000
//! ```
//!
//! A difference is shrunk and written as a transcript that can be moved to `tests/parity`. `--seeds
//! 17 --episode 4` plays one episode again.

mod clock;
mod dialect;
mod duel;
mod episode;
mod grammar;
mod long;
mod panics;
mod prng;
mod record;
mod rule;
#[path = "../parity/servers.rs"]
#[allow(dead_code, reason = "parity uses all of it")]
mod servers;
mod shrink;
mod steps;
mod vocabulary;
#[path = "../parity/wire.rs"]
mod wire;
mod words;

use libtest_mimic::{Arguments, Trial};
use lockstorm_lab::support::{
    programs::program_of,
    redis::{Availability, availability},
};
use lockstorm_sim::generation::Generation;
use servers::REFERENCE;

/// The seeds of a short run, and the least number of commands of each.
const SHORT: (std::ops::Range<u64>, u64) = (0..4, 3_000);

/// The seeds of other generations than the reference, and the least number of commands of each.
const SHORT_OF_OTHERS: (std::ops::Range<u64>, u64) = (0..2, 3_000);

fn main() {
    let mut arguments: Vec<String> = std::env::args().collect();
    let long = long::Options::take(&mut arguments);
    let has_reference = match availability() {
        Availability::Absent(notice) => {
            eprintln!("differential: {notice}");
            false
        }
        Availability::Missing(why) => {
            eprintln!("differential: {why}");
            std::process::exit(1);
        }
        Availability::Present => true,
    };
    let is_installed = |generation: Generation| match generation {
        REFERENCE => has_reference,
        _ => program_of(generation.name()).is_some(),
    };
    panics::keep();
    match long {
        Err(why) => {
            eprintln!("differential: {why}");
            std::process::exit(2);
        }
        Ok(Some(options)) if !is_installed(options.generation) => return,
        Ok(Some(options)) => std::process::exit(i32::from(!long::run(&options))),
        Ok(None) => {}
    }
    let installed = Generation::ALL.into_iter().filter(|generation| is_installed(*generation));
    let trials = installed.flat_map(|generation| {
        let (seeds, commands) = if generation == REFERENCE { SHORT } else { SHORT_OF_OTHERS };
        seeds.map(move |seed| {
            Trial::test(format!("{generation}::seed_{seed}"), move || {
                let mut found = None;
                let drawn = long::Drawn { generation, seed, only: None };
                long::seed(drawn, commands, &mut |_| {}, &mut |difference| {
                    found = Some(difference);
                    false
                });
                found.map_or(Ok(()), |difference| Err(difference.into()))
            })
        })
    });
    libtest_mimic::run(&Arguments::from_iter(arguments), trials.collect()).exit();
}
