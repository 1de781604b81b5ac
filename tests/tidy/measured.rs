//! Checks that stock scenarios cite real groups of servers as `sim/TOPOLOGY.md` has them.
//!
//! A comment cites a line of that table as `(T4, promotion: 3635 [3196..4109])`: the row, the line
//! without its unit, and the measurement on real processes in milliseconds, with `; ` between
//! several. A row without lines is cited as `(T60: 10 runs)`. So a new measurement fails here for
//! each file that cites the old one, and no figure outlives its run.

use std::collections::BTreeMap;

use lockstorm::file::library;

/// Folders in which each claim cites a real group.
const GROUPS: &[&str] = &["cluster/", "sentinel/"];

/// The folder of trials, whose claims have names like rows of the table.
const TRIALS: &str = "trial/";

/// The real side of the table by row and line; for a row without lines, the number of runs.
type Real = BTreeMap<(String, String), String>;

fn real(table: &str) -> Real {
    let mut all = Real::new();
    let mut row = String::new();
    for line in table.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, id, what, measured, ..] = cells[..] else { continue };
        if let Some(id) = id.strip_prefix("**").and_then(|id| id.strip_suffix("**")) {
            row = id.to_owned();
            all.insert((row.clone(), String::new()), measured.to_owned());
        } else if id.is_empty() && !measured.is_empty() {
            // A row with lines is cited by its lines only.
            all.remove(&(row.clone(), String::new()));
            let name = what.trim_end_matches(", ms").trim_end_matches(", times");
            all.insert((row.clone(), name.to_owned()), measured.to_owned());
        }
    }
    all
}

/// The comments of a file; adjacent comment lines become one line.
fn comments(text: &str) -> String {
    let mut all = String::new();
    for line in text.lines() {
        match line.trim_start().strip_prefix('#') {
            Some(comment) => {
                all.push(' ');
                all.push_str(comment.trim());
            }
            None => all.push('\n'),
        }
    }
    all
}

/// The citations in these comments, and the rest of their text.
fn cited(comments: &str) -> (Vec<&str>, String) {
    let (mut items, mut others) = (Vec::new(), String::new());
    let mut rest = comments;
    while let Some((before, after)) = rest.split_once('(') {
        others.push_str(before);
        others.push(' ');
        let inner = after.split_once(')').filter(|(inner, _)| {
            !inner.contains('\n') && inner.split([',', ':', ';']).next().is_some_and(is_row)
        });
        rest = match inner {
            Some((inner, after)) => {
                items.extend(inner.split("; "));
                after
            }
            None => after,
        };
    }
    others.push_str(rest);
    (items, others)
}

/// Returns true for the name of a row: `T4`, `T4a`.
fn is_row(word: &str) -> bool {
    let number =
        word.strip_prefix('T').map(|id| id.strip_suffix(|c: char| c.is_ascii_lowercase()).unwrap_or(id));
    number.is_some_and(|number| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()))
}

/// The errors in a file's citations.
fn wrong(text: &str, real: &Real) -> Vec<String> {
    let comments = comments(text);
    let (items, others) = cited(&comments);
    let of_item = |item: &&str| {
        let Some((what, value)) = item.split_once(": ") else {
            return Some(format!("cites {item} without a value"));
        };
        let (row, line) = what.split_once(", ").unwrap_or((what, ""));
        match real.get(&(row.to_owned(), line.to_owned())) {
            Some(found) if found == value => None,
            Some(found) => Some(format!("cites {item}, and real is {found}")),
            None if line.is_empty() => {
                Some(format!("cites {what} as a row without lines, and there is none"))
            }
            None => Some(format!("cites {what}, which the table does not have")),
        }
    };
    let mut wrong: Vec<String> = items.iter().filter_map(of_item).collect();
    let words = others.split(|c: char| !c.is_ascii_alphanumeric());
    wrong.extend(words.filter(|word| is_row(word)).map(|row| format!("names {row} outside of a citation")));
    wrong
}

#[test]
fn what_is_said_of_real_groups_is_what_was_measured() {
    let table = std::fs::read_to_string("sim/TOPOLOGY.md").expect("the table of groups");
    let real = real(&table);
    assert!(real.len() > 200, "the table is read otherwise: {} lines", real.len());
    let mut failed = Vec::new();
    for stock in library::ALL.iter().filter(|stock| !stock.path.starts_with(TRIALS)) {
        failed.extend(wrong(stock.text, &real).into_iter().map(|wrong| format!("{} {wrong}", stock.path)));
        let comments = comments(stock.text);
        let is_of_group = GROUPS.iter().any(|folder| stock.path.starts_with(folder));
        if is_of_group && cited(&comments).0.is_empty() {
            failed.push(format!("{} has nothing of a real group beside it", stock.path));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn a_figure_that_was_not_measured_is_found() {
    const TABLE: &str = "
| row | what | real: median [least..most] | simulated | expected |
| --- | --- | --- | --- | --- |
| **T4** | the master stands still | 10 runs | 40 runs | |
| | first `+sdown`, ms | 2423 [2062..2987] | 2460 [2044..2961] | 1900..3250 |
| | promotion, ms | 3635 [3196..4109] | 3604 [2568..4151] | 2200..5500 |
| | *A note.* | | | |
| **T60** | a slot moves | 10 runs | 10 runs | |
";
    const CASES: &[(&str, &[&str])] = &[
        ("# Real ones (T4, promotion: 3635 [3196..4109]) take as long.", &[]),
        ("# Real ones (T4, first `+sdown`: 2423 [2062..2987]; T4,\n# promotion: 3635 [3196..4109]) do.", &[]),
        ("# (T60: 10 runs)", &[]),
        // The number of runs of a row with lines proves nothing.
        ("# (T4: 10 runs)", &["cites T4 as a row without lines, and there is none"]),
        // Other brackets, and values of keys, are no citations.
        (
            "# It distrusts its clock (TILT), twice (T0 is not said).\nkey = \"T4\"",
            &["names T0 outside of a citation"],
        ),
        (
            "# (T4, promotion: 3635 [3196..4110])",
            &["cites T4, promotion: 3635 [3196..4110], and real is 3635 [3196..4109]"],
        ),
        ("# (T4, demotion: 3635 [3196..4109])", &["cites T4, demotion, which the table does not have"]),
        ("# (T5, promotion: 3635 [3196..4109])", &["cites T5, promotion, which the table does not have"]),
        ("# (T4a, promotion: 3635 [3196..4109])", &["cites T4a, promotion, which the table does not have"]),
        ("# (T4)", &["cites T4 without a value"]),
        ("# (T4, promotion)", &["cites T4, promotion without a value"]),
        ("# As T4 has it.", &["names T4 outside of a citation"]),
        // A citation must be in adjacent comment lines.
        ("# (T4, promotion:\nkey = 1\n# 3635 [3196..4109])", &["names T4 outside of a citation"]),
    ];
    let real = real(TABLE);
    for (text, expected) in CASES {
        assert_eq!(wrong(text, &real), *expected, "{text}");
    }
}

/// Without its day and its command, a figure cannot be measured again for comparison.
#[test]
fn each_table_of_benchmarks_has_its_day_and_its_command() {
    let text = include_str!("../../BENCHMARKS.md");
    // Each attempt in this section was a change measured on its own.
    let sections = text.split("\n## ").skip(1).filter(|section| !section.starts_with("What was tried"));
    let wrong: Vec<&str> = sections
        .filter(|section| section.contains("\n| "))
        .filter(|section| !(has_day(section) && section.contains("\n```\n")))
        .map(|section| section.lines().next().unwrap_or_default())
        .collect();
    assert!(wrong.is_empty(), "without a day or a command: {wrong:?}");
}

/// Returns true if a text contains a date such as 2026-11-22.
fn has_day(text: &str) -> bool {
    text.as_bytes().windows(10).any(|day| {
        day.iter().enumerate().all(|(at, byte)| match at {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        })
    })
}
