//! What was measured, as a table: real processes beside simulated ones.

use std::{sync::mpsc, thread};

use crate::{
    row::{Expect, Row},
    rows, seen, simulated,
};

/// Rigs of real processes that run at a time; each mostly waits.
const AT_A_TIME: usize = 10;

/// Runs on simulated hosts for each seed of an ordinary run.
const TIMES: u64 = 10;

/// The middle one, the least and the most, for each expectation that measures something.
fn spans(row: &Row, runs: &[seen::Verdict]) -> Vec<Option<[i64; 3]>> {
    let of = |at: usize| {
        let values = runs.iter().flat_map(|run| run.measured.iter().filter(move |(of, _)| *of == at));
        let mut values: Vec<i64> = values.flat_map(|(_, values)| values.clone()).collect();
        values.sort_unstable();
        Some([*values.get(values.len() / 2)?, *values.first()?, *values.last()?])
    };
    (0..row.expect.len()).map(of).collect()
}

fn words(span: Option<[i64; 3]>) -> String {
    span.map_or_else(|| "–".into(), |[middle, least, most]| format!("{middle} [{least}..{most}]"))
}

/// Plays the rows of these names (all, if none is given) on real processes and on simulated hosts, and prints a table of them;
/// answers whether one came out otherwise than expected.
pub(crate) fn print(runs: u64, names: &[String]) -> bool {
    let chosen = |row: &&Row| names.is_empty() || names.iter().any(|name| name == row.id);
    let (mut any_wrong, mut notes) = (false, Vec::new());
    println!(
        "| row | what | real: median [least..most] | simulated | expected |\n| --- | --- | --- | --- | --- |"
    );
    for row in rows::all().filter(chosen) {
        let (real, split) = real(row, runs);
        let simulated: Vec<seen::Verdict> =
            (0..row.seeds * TIMES).map(|run| seen::judge(row, &simulated::play(row, run), 0)).collect();
        println!(
            "| **{}** | {} | {} | {} runs | |",
            row.id,
            row.about,
            match split {
                0 => format!("{} runs", real.len()),
                _ => format!("{} runs, and {split} with split votes", real.len()),
            },
            simulated.len()
        );
        let (reals, simulateds) = (spans(row, &real), spans(row, &simulated));
        for (expect, (real, simulated)) in row.expect.iter().zip(reals.into_iter().zip(simulateds)) {
            let (what, expected) = match expect {
                Expect::Takes(what, _, _, least, most) | Expect::Every(what, _, least, most) => {
                    (format!("{what}, ms"), format!("{least}..{most}"))
                }
                Expect::Count(sight, least, most) => {
                    let words = [sight.by, sight.about].into_iter().filter(|word| !word.is_empty());
                    let of: String = words.map(|word| format!(" {word}")).collect();
                    let from =
                        if sight.from > 0 { format!(" from {} ms on", sight.from) } else { String::new() };
                    (format!("`{}`{of}{from}, times", sight.event), format!("{least}..{most}"))
                }
                Expect::Never(_) | Expect::InOrder(..) | Expect::Answers(..) => continue,
            };
            println!("| | {what} | {} | {} | {expected} |", words(real), words(simulated));
        }
        if !row.note.is_empty() {
            println!("| | *{}* | | | |", row.note);
        }
        for (kind, verdicts) in [("real", &real), ("simulated", &simulated)] {
            for wrong in verdicts.iter().flat_map(|verdict| &verdict.wrong) {
                notes.push(format!("{} {kind}: {wrong}", row.id));
            }
        }
    }
    for note in &notes {
        any_wrong = true;
        eprintln!("{note}");
    }
    any_wrong
}

/// Plays a row so often on real processes. Runs in which votes were split are only counted.
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
