//! Prints the measurements of real processes beside those of simulated ones.

use std::{collections::BTreeMap, sync::mpsc, thread};

use crate::{
    row::{Differs, Row},
    rows, seen, simulated,
    tolerance::{self, Span, Table},
};

/// Rigs of real processes that run at the same time; each mostly waits.
const AT_A_TIME: usize = 10;

/// Runs on simulated hosts for each seed of an ordinary run.
const TIMES: u64 = 10;

/// The least number of runs on simulated hosts.
const AT_LEAST: u64 = 20;

/// The measurement of each expectation; `None` for one that measures nothing.
fn spans(row: &Row, runs: &[seen::Verdict]) -> Vec<Option<Span>> {
    let of = |at: usize| {
        let values = runs.iter().flat_map(|run| run.measured.iter().filter(move |(of, _)| *of == at));
        Span::of(values.flat_map(|(_, values)| values.clone()).collect())
    };
    (0..row.expect.len()).map(of).collect()
}

fn words(span: Option<Span>) -> String {
    span.map_or_else(|| "–".into(), |span| span.to_string())
}

/// Plays the rows of these names (all, if `names` is empty) on real processes and on simulated
/// hosts, and prints their table. Returns true if a result was unexpected, or a simulated one
/// further from the real one than allowed.
pub(crate) fn print(runs: u64, names: &[String]) -> bool {
    let chosen = |row: &&Row| names.is_empty() || names.iter().any(|name| name == row.id);
    println!(
        "| row | what | real: median [least..most] | simulated | expected |\n| --- | --- | --- | --- | --- |"
    );
    let mut wrong = Vec::new();
    for row in rows::all().filter(chosen) {
        let (real, split) = real(row, runs);
        let told = match split {
            0 => format!("{} runs", real.len()),
            _ => format!("{} runs, and {split} with split votes", real.len()),
        };
        let of_real = real.iter().flat_map(|verdict| &verdict.wrong);
        wrong.extend(of_real.map(|wrong| format!("{} real: {wrong}", row.id)));
        let (text, others) = text(row, &told, &spans(row, &real), &simulated(row));
        print!("{text}");
        wrong.extend(others);
    }
    tell(&wrong)
}

/// Prints a text with tables again, with a new measurement of the simulated side; returns like
/// [`print`].
pub(crate) fn print_again(printed: &str) -> bool {
    let table = Table::parse(printed);
    let known: Vec<&Row> = rows::all().filter(|row| table.runs(row).is_some()).collect();
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for worker in 0..workers {
            let (sender, known, table) = (sender.clone(), &known, &table);
            scope.spawn(move || {
                for row in known.iter().skip(worker).step_by(workers) {
                    let reals: Vec<_> = row.expect.iter().map(|expect| table.real(row, expect)).collect();
                    let runs = table.runs(row).unwrap_or_default();
                    let _ = sender.send((row.id, text(row, runs, &reals, &simulated(row))));
                }
            });
        }
    });
    drop(sender);
    let texts: BTreeMap<&str, (String, Vec<String>)> = receiver.into_iter().collect();
    let mut is_replaced = false;
    for line in printed.lines() {
        let text = line.strip_prefix("| **").and_then(|line| texts.get(line.split("**").next()?));
        is_replaced = text.is_some() || (is_replaced && line.starts_with("| | "));
        match text {
            Some((text, _)) => print!("{text}"),
            None if is_replaced => {}
            None => println!("{line}"),
        }
    }
    tell(&texts.into_values().flat_map(|(_, wrong)| wrong).collect::<Vec<_>>())
}

fn tell(wrong: &[String]) -> bool {
    wrong.iter().for_each(|wrong| eprintln!("{wrong}"));
    !wrong.is_empty()
}

fn simulated(row: &Row) -> Vec<seen::Verdict> {
    let runs = (row.seeds * TIMES).max(AT_LEAST);
    (0..runs).map(|run| seen::judge(row, &simulated::play(row, run), 0)).collect()
}

/// A row of the table, and its errors.
fn text(row: &Row, runs: &str, reals: &[Option<Span>], simulated: &[seen::Verdict]) -> (String, Vec<String>) {
    let of_simulated = simulated.iter().flat_map(|verdict| &verdict.wrong);
    let mut wrong: Vec<String> = of_simulated.map(|wrong| format!("{} simulated: {wrong}", row.id)).collect();
    let mut text = format!("| **{}** | {} | {runs} | {} runs | |\n", row.id, row.about, simulated.len());
    for (expect, (real, simulated)) in row.expect.iter().zip(reals.iter().zip(spans(row, simulated))) {
        let (Some(what), Some((least, most))) = (expect.label(), expect.bounds()) else { continue };
        let (told, simulated_told) = (words(*real), words(simulated));
        text += &format!("| | {what} | {told} | {simulated_told} | {least}..{most} |\n");
        let compared = tolerance::compare(row, expect, *real, simulated);
        wrong.extend(compared.map(|why| format!("{}: {why}", row.id)));
    }
    if !row.note.is_empty() {
        text += &format!("| | *{}* | | | |\n", row.note);
    }
    for Differs(what, _, why) in row.differs {
        text += &format!("| | *{what}: {why}* | | | |\n");
    }
    (text, wrong)
}

/// Plays a row `runs` times on real processes. Returns the verdicts, and the number of runs in
/// which votes were split.
fn real(row: &'static Row, runs: u64) -> (Vec<seen::Verdict>, usize) {
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for worker in 0..AT_A_TIME as u64 {
            let sender = sender.clone();
            scope.spawn(move || {
                for run in (worker..runs).step_by(AT_A_TIME) {
                    let verdict = match crate::real::play(row, run) {
                        Ok(seen) if seen::is_split(row, &seen) => None,
                        Ok(seen) => {
                            let verdict = seen::judge(row, &seen, crate::SLACK);
                            if !verdict.wrong.is_empty() && std::env::var_os("LOCKSTORM_TOLD").is_some() {
                                eprintln!("{} run {run}:\n{}", row.id, seen::told(&seen));
                            }
                            Some(verdict)
                        }
                        Err(why) => Some(seen::Verdict { measured: Vec::new(), wrong: vec![why] }),
                    };
                    let _ = sender.send(verdict);
                }
            });
        }
        drop(sender);
        let all: Vec<Option<seen::Verdict>> = receiver.into_iter().collect();
        let split = all.iter().filter(|verdict| verdict.is_none()).count();
        (all.into_iter().flatten().collect(), split)
    })
}
