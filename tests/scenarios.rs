//! Every stock scenario is a test: with each of its own seeds, each of its variants ends as the
//! file expects, and its run equals the one recorded in `fingerprints.txt`, perhaps on another
//! machine.
//!
//! `LOCKSTORM_SEEDS=0..1000 cargo test --test scenarios -- storm` tries other seeds. After an
//! intended change of runs, or of their records or reports, write the file again: `lockstorm twice
//! --print > new && grep @ new > tests/fingerprints.txt`.

use std::{env, fmt::Write};

use libtest_mimic::{Arguments, Failed, Trial};
use lockstorm::{
    file::{
        library::{self, Stock},
        scenario::parse,
    },
    run::runner::{Judged, Runner},
};

/// A line for each stock run; see [`Runner::line`].
const FINGERPRINTS: &str = include_str!("fingerprints.txt");

fn main() {
    let tests = library::ALL.iter().map(|stock| Trial::test(stock.path, || check(stock)));
    let of_none = Trial::test("fingerprints_are_of_stock_files", || {
        let is_of_one = |line: &&str| library::ALL.iter().any(|stock| is_of(line, stock.path));
        match FINGERPRINTS.lines().find(|line| !is_of_one(line)) {
            None => Ok(()),
            Some(line) => Err(format!("tests/fingerprints.txt has a line of no stock file: {line}").into()),
        }
    });
    libtest_mimic::run(&Arguments::from_args(), tests.chain([of_none]).collect()).exit();
}

fn check(stock: &Stock) -> Result<(), Failed> {
    let judged = lockstorm::scenario(stock.path).keep_report_digest(true).try_check();
    let judged = judged.map_err(|failed| failed.to_string())?;
    if ["LOCKSTORM_SEED", "LOCKSTORM_SEEDS"].into_iter().any(|other| env::var_os(other).is_some()) {
        return Ok(());
    }
    let now = lines(stock, &judged);
    let then: Vec<&str> = FINGERPRINTS.lines().filter(|line| is_of(line, stock.path)).collect();
    let mut differences = String::new();
    for line in then.iter().filter(|line| !now.iter().any(|now| now == *line)) {
        writeln!(differences, "- {line}")?;
    }
    for line in now.iter().filter(|line| !then.contains(&line.as_str())) {
        writeln!(differences, "+ {line}")?;
    }
    if differences.is_empty() {
        return Ok(());
    }
    let why = "tests/fingerprints.txt has other runs. The first number is that of what happened, the second that of what is recorded and \
               reported of it. Where neither the program nor the scenario has changed, nothing else can be trusted until they are the same";
    Err(format!("{why}:\n{differences}").into())
}

fn lines(stock: &Stock, judged: &[Judged]) -> Vec<String> {
    let sources = [parse(stock.path, stock.text).expect("it has been run")];
    let runner = Runner::new(&sources);
    judged.iter().map(|one| runner.line(one)).collect()
}

/// Returns true if a line is about a file, or one of its variants.
fn is_of(line: &str, file: &str) -> bool {
    let token = line.rsplit(' ').next().unwrap_or_default();
    token.strip_prefix(file).is_some_and(|rest| rest.starts_with(['@', '#']))
}
