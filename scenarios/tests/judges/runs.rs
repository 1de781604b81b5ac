//! The same comparison on runs of stock scenarios: every variant with the first of its own seeds, or with those of
//! `LOCKSTORM_SEEDS`.

use lockstorm::{
    library,
    run::Engine,
    runner::{Runner, parse_seeds},
    scenario::{Source, parse},
};
use lockstorm_sim::world::TraceRetention;
use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::{differences, told};

#[test]
fn the_judges_agree_on_stock_runs() {
    let parsed =
        library::ALL.iter().map(|stock| parse(stock.path, stock.text).expect("stock scenarios are valid"));
    let sources: Vec<Source> = parsed.collect();
    let seeds = std::env::var("LOCKSTORM_SEEDS").map_or(0..1, |seeds| parse_seeds(&seeds).expect("a range"));
    let trial = Runner::new(&sources).seeds(Some(seeds)).engine(Engine::Event);
    let cases = trial.cases();
    let next = AtomicUsize::new(0);
    let found: Mutex<BTreeMap<&'static str, Vec<(usize, String)>>> = Mutex::default();
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(case) = cases.get(number) else { return };
            let history = trial.outcome(*case, TraceRetention::Nothing).history;
            for (checker, difference) in differences(&history) {
                let told = format!("{}\n{}", trial.token(*case), told(&history, &[(checker, difference)]));
                found.lock().expect("no thread panics").entry(checker).or_default().push((number, told));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let found = found.into_inner().expect("every thread is done");
    let mut text = String::new();
    for (checker, differ) in &found {
        let (_, first) = differ.iter().min().expect("one at least");
        let (differ, all) = (differ.len(), cases.len());
        text.push_str(&format!("{checker}: the judges differ in {differ} of {all} runs; {first}\n"));
    }
    assert!(found.is_empty(), "{text}");
}
