//! Compares checkers and references on runs of stock scenarios.

use std::collections::BTreeMap;

use lockstorm_world::TraceRetention;

use crate::{differences, stock, told};

#[test]
fn the_judges_agree_on_stock_runs() {
    let (found, runs) = stock::look_at_each(|trial, case| {
        let history = trial.outcome(case, TraceRetention::Nothing).history;
        let differ = differences(&history).into_iter();
        let told = differ.map(|(checker, difference)| {
            (checker, format!("{}\n{}", trial.token(case), told(&history, &[(checker, difference)])))
        });
        told.collect()
    });
    let mut of: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (checker, told) in found {
        of.entry(checker).or_default().push(told);
    }
    let mut text = String::new();
    for (checker, differ) in &of {
        let (number, first) = (differ.len(), &differ[0]);
        text.push_str(&format!("{checker}: the judges differ in {number} of {runs} runs; {first}\n"));
    }
    assert!(of.is_empty(), "{text}");
}
