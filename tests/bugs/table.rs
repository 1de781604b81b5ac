//! The table of the ruler: for each mistake, the runs until a hunt and a storm find it.

use std::thread::available_parallelism;

use lockstorm::file::scenario::word;

use crate::{
    list::{BUGS, Bug},
    ruler::Ruled,
    subtle::SUBTLE,
};

/// The faults of one run of a dense storm, for each fault of a hunt.
const DENSE: u32 = 4;

/// The numbers of runs until a mistake was found; `None` if it was not.
struct Row {
    hunt: Option<u64>,
    storm: Option<u64>,
    dense: Option<u64>,
}

impl Row {
    /// Returns how many times fewer runs the hunt took than the better storm; `None` if neither
    /// found anything. A side that found nothing counts with the budget, so the number is a bound.
    fn times(&self, budget: u64) -> Option<f64> {
        let storm = [self.storm, self.dense].into_iter().flatten().min();
        (self.hunt.is_some() || storm.is_some())
            .then(|| storm.unwrap_or(budget) as f64 / self.hunt.unwrap_or(budget) as f64)
    }

    /// Returns the number of times as the table has it.
    fn factor(&self, budget: u64) -> String {
        let bound = match (self.hunt, self.storm.or(self.dense)) {
            (Some(_), None) => "> ",
            (None, Some(_)) => "< ",
            _ => "",
        };
        self.times(budget).map_or("–".to_owned(), |times| format!("{bound}{times:.1}"))
    }
}

/// Prints the table of all mistakes whose names contain the filter.
pub(crate) fn print(budget: u64, filter: Option<&str>) {
    let jobs = available_parallelism().map_or(1, usize::from);
    println!("| mistake | checker | faults | kinds | hunt | storm | dense storm | times fewer |");
    println!("| --- | --- | ---: | --- | ---: | ---: | ---: | ---: |");
    let (mut rows, mut without) = (Vec::new(), Vec::new());
    for (bug, case) in BUGS.iter().chain(SUBTLE) {
        let name = bug.broken.name();
        if filter.is_some_and(|filter| !name.contains(filter)) {
            continue;
        }
        let title = format!("{name} ({})", bug.checker());
        match Ruled::of(bug, case) {
            None => without.push(title),
            Some(ruled) => rows.push(row(ruled, bug, budget, jobs)),
        }
    }
    println!("\nmedian: {:.1} times fewer runs, of {} mistakes", median(&rows, budget), rows.len());
    let count = |by_hunt: bool, by_storm: bool| {
        let is_meant =
            |row: &&Row| (row.hunt.is_some(), row.storm.or(row.dense).is_some()) == (by_hunt, by_storm);
        rows.iter().filter(is_meant).count()
    };
    println!("found by the hunt alone: {}", count(true, false));
    println!("found by a storm alone: {}", count(false, true));
    println!("found by neither: {}", count(false, false));
    println!("left out, as they need no fault or show only in a measure: {}", without.join(", "));
}

fn row(mut ruled: Ruled, bug: &Bug, budget: u64, jobs: usize) -> Row {
    let hunted = ruled.hunt(budget, jobs);
    let faults = ruled.faults();
    let hunt = hunted.found().map(|_| hunted.runs);
    let [storm, dense] = [faults, faults * DENSE].map(|faults| ruled.storm(faults, budget, jobs));
    let row = Row { hunt, storm, dense };
    let runs = |runs: Option<u64>| runs.map_or(format!("not in {budget}"), |runs| runs.to_string());
    let kinds: Vec<String> = ruled.kinds().iter().map(word).collect();
    println!(
        "| {} | {} | {faults} | {} | {} | {} | {} | {} |",
        bug.broken.name(),
        bug.checker(),
        kinds.join(", "),
        runs(hunt),
        runs(storm),
        runs(dense),
        row.factor(budget)
    );
    row
}

fn median(rows: &[Row], budget: u64) -> f64 {
    let mut times: Vec<f64> = rows.iter().filter_map(|row| row.times(budget)).collect();
    times.sort_by(f64::total_cmp);
    match times.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => times[count / 2],
        count => f64::midpoint(times[count / 2 - 1], times[count / 2]),
    }
}
