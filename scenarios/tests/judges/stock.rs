//! Runs of stock scenarios for inspection: every variant with the first [`SEEDS`] of its own seeds,
//! or with the seeds in `LOCKSTORM_SEEDS`.

use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

use lockstorm::{
    file::{
        library,
        scenario::{Source, parse},
    },
    run::Engine,
    run::runner::{Case, Runner, parse_seeds},
};

/// Some variants have 60 seeds, of which most runs are alike to a judge. They would take two fifths
/// of the time.
const SEEDS: u64 = 3;

/// Runs `look` on every run, on all processors. Returns the findings in the order of the runs, and
/// the number of runs.
pub(crate) fn look_at_each<T: Send>(look: impl Fn(&Runner<'_>, Case) -> Vec<T> + Sync) -> (Vec<T>, usize) {
    let parsed =
        library::ALL.iter().map(|stock| parse(stock.path, stock.text).expect("stock scenarios are valid"));
    let sources: Vec<Source> = parsed.collect();
    let asked = std::env::var("LOCKSTORM_SEEDS").ok().map(|seeds| parse_seeds(&seeds).expect("a range"));
    let trial = Runner::new(&sources).seeds(asked.clone()).engine(Engine::Event);
    let mut cases = trial.cases();
    cases.retain(|case| asked.is_some() || case.seed < SEEDS);
    let next = AtomicUsize::new(0);
    let found: Mutex<Vec<(usize, T)>> = Mutex::default();
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(case) = cases.get(number) else { return };
            let told = look(&trial, *case).into_iter().map(|told| (number, told));
            found.lock().expect("no thread panics").extend(told);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let mut found = found.into_inner().expect("every thread is done");
    found.sort_by_key(|(number, _)| *number);
    (found.into_iter().map(|(_, told)| told).collect(), cases.len())
}
