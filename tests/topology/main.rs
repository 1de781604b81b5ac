//! The behaviours of a group that fails over, as rows of a table: each row is played on simulated
//! hosts in virtual time, and on real processes. `sim/TOPOLOGY.md` has the measurements.
//!
//! `cargo test -p lockstorm-lab --test topology` plays all rows on simulated hosts, and a few on
//! real ones. `.. --test topology -- --real 10 [T3 ..]` plays each row ten times on real processes,
//! and prints the table; `-- --simulated` measures only the simulated side again and prints
//! `sim/TOPOLOGY.md`. An ordinary run also holds the table to its tolerance ([`tolerance`]), and
//! the simulated runs to the table.
//! runs to the table.

mod client;
mod clock;
mod cluster;
mod real;
mod relay;
mod row;
mod rows;
mod seen;
mod simulated;
mod table;
mod tolerance;
mod tolerance_tests;

use libtest_mimic::{Failed, Trial};
use lockstorm_lab::support::{
    arguments,
    redis::{Availability, availability},
};

use row::Row;
use tolerance::Table;

/// Short rows that an ordinary run plays on real processes as well.
const ALSO_REAL: &[&str] = &["T3", "T10", "T12", "T29a", "T42", "T54"];

/// Milliseconds by which a real process may miss a bound, because other tests keep the machine
/// busy.
const SLACK: i64 = 400;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(at) = words.iter().position(|word| word == "--real") {
        let runs = words.get(at + 1).and_then(|runs| runs.parse().ok());
        let Some(runs) = runs else {
            eprintln!("--real takes a number of runs, and may be followed by the names of rows");
            std::process::exit(2);
        };
        let wrong = table::print(runs, &words[at + 2..]);
        std::process::exit(i32::from(wrong));
    }
    if words.iter().any(|word| word == "--simulated") {
        std::process::exit(i32::from(table::print_again(TABLE)));
    }
    let mut trials: Vec<Trial> = Vec::new();
    for row in rows::all() {
        trials.push(Trial::test(format!("simulated::{}", row.id), || simulate(row)));
    }
    trials.push(Trial::test("simulated::T15_T16", elections));
    trials.push(Trial::test("simulated::T43_in_a_hundred_runs", better_replicas));
    trials.push(Trial::test("table::is_within_its_tolerance", tolerance_of_the_table));
    trials.extend(tolerance_tests::all().map(|(name, test)| Trial::test(name, test)));
    match availability() {
        Availability::Present => {
            for row in rows::all().filter(|row| ALSO_REAL.contains(&row.id)) {
                trials.push(Trial::test(format!("real::{}", row.id), || play_for_real(row)));
            }
        }
        Availability::Absent(why) => eprintln!("{why}"),
        Availability::Missing(why) => {
            trials.push(Trial::test("redis_server_is_there", move || Err(Failed::from(why))));
        }
    }
    libtest_mimic::run(&arguments(), trials).exit();
}

/// The measurements of real processes, and of simulated ones at the time of printing.
const TABLE: &str = include_str!("../../sim/TOPOLOGY.md");

fn tolerance_of_the_table() -> Result<(), Failed> {
    let wrong = Table::parse(TABLE).check(rows::all());
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

fn simulate(row: &Row) -> Result<(), Failed> {
    let table = Table::parse(TABLE);
    let mut measured = vec![Vec::new(); row.expect.len()];
    for run in 0..row.seeds {
        let seen = simulated::play(row, run);
        let mut verdict = seen::judge(row, &seen, 0);
        for (at, values) in &verdict.measured {
            verdict.wrong.extend(table.holds(row, &row.expect[*at], values).err());
            measured[*at].extend(values);
        }
        if !verdict.wrong.is_empty() {
            let (wrong, told) = (verdict.wrong.join("\n"), seen::told(&seen));
            return Err(format!("{} ({}), seed {run}: {wrong}\n{told}", row.id, row.about).into());
        }
    }
    let far = row
        .expect
        .iter()
        .zip(measured)
        .filter_map(|(expect, values)| table.is_near(row, expect, values).err());
    let far: Vec<String> = far.collect();
    if far.is_empty() {
        Ok(())
    } else {
        Err(format!("{} ({}): {}", row.id, row.about, far.join("\n")).into())
    }
}

/// T15 and T16: candidates at the same time take votes from each other, so that perhaps none is
/// elected; and one epoch never has two leaders.
fn elections() -> Result<(), Failed> {
    const RUNS: u64 = 200;
    let row = rows::all().find(|row| row.id == "T3").expect("it is there");
    let row = Row { lasts: 6_000, ..*row };
    let mut failed = 0;
    for run in 0..RUNS {
        let seen = simulated::play(&row, run);
        let elected = seen.iter().filter(|seen| seen.event == "+elected-leader").count();
        if elected > 1 {
            return Err(format!("seed {run}: {elected} leaders\n{}", seen::told(&seen)).into());
        }
        failed += usize::from(elected == 0);
    }
    println!("{failed} of {RUNS} first elections failed");
    // Less than 5 % of the elections fail.
    if failed * 20 < RUNS as usize {
        Ok(())
    } else {
        Err(format!("{failed} of {RUNS} elections failed").into())
    }
}

/// T43: of two replicas the one with more data is promoted.
fn better_replicas() -> Result<(), Failed> {
    const RUNS: u64 = 100;
    let row = rows::all().find(|row| row.id == "T43").expect("it is there");
    let by = |run: u64, name: &str| {
        simulated::play(row, run).iter().any(|seen| seen.event == "master" && seen.message == name)
    };
    let better = (0..RUNS).filter(|run| by(*run, "a")).count();
    println!("in {better} of {RUNS} runs the better one is promoted");
    // The better replica must win more than 95 % of the runs.
    if better * 20 > RUNS as usize * 19 { Ok(()) } else { Err(format!("in {better} of {RUNS} runs").into()) }
}

fn play_for_real(row: &Row) -> Result<(), Failed> {
    // Votes may be split, and other tests may keep the machine busy. A fourth failure is no chance
    // any more.
    let first = u64::from(std::process::id() % 10);
    let mut why = String::new();
    for run in first..first + 4 {
        let seen = real::play(row, run)?;
        let verdict = seen::judge(row, &seen, SLACK);
        if verdict.wrong.is_empty() {
            return Ok(());
        }
        why = format!("{} ({}): {}\n{}", row.id, row.about, verdict.wrong.join("\n"), seen::told(&seen));
    }
    Err(why.into())
}
