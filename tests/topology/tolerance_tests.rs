//! Tests that the tolerance reports exactly the values outside of it.

use libtest_mimic::Failed;

use crate::{
    row::{Differs, Expect, Moment::At, ROW, Row, see},
    tolerance::{Span, Table, compare},
};

const TIME: Expect = Expect::Takes("it", At(0), At(0), 0, 9_000);
const TIMES: Expect = Expect::Count(see("it"), 0, 9);

/// A reason for a difference of 500 ms.
const KNOWN: &[Differs] = &[Differs("it, ms", 500, "because")];

const EXACT: Span = Span { median: 2_000, least: 1_990, most: 2_020 };
const SPREAD: Span = Span { median: 2_000, least: 1_000, most: 2_500 };

pub(crate) fn all() -> impl Iterator<Item = (&'static str, fn() -> Result<(), Failed>)> {
    let all: [(_, fn() -> _); 4] = [
        ("tolerance::medians", medians),
        ("tolerance::tables", tables),
        ("tolerance::simulated_runs", simulated_runs),
        ("tolerance::fresh_medians", fresh_medians),
    ];
    all.into_iter()
}

fn at(median: i64) -> Span {
    Span { median, least: median, most: median }
}

fn medians() -> Result<(), Failed> {
    let plain = Row { expect: &[TIME, TIMES], ..ROW };
    let known = Row { differs: KNOWN, ..plain };
    let cases = [
        // The tolerance is 150 ms and a third of the range of 30: 160.
        (plain, TIME, Some(EXACT), Some(at(2_160)), ""),
        (plain, TIME, Some(EXACT), Some(at(2_161)), "off by 161, which no reason is given for"),
        (plain, TIME, Some(EXACT), Some(at(1_839)), "off by 161, which no reason is given for"),
        // 150 ms and a third of the range of 1,500: 650.
        (plain, TIME, Some(SPREAD), Some(at(2_650)), ""),
        (plain, TIME, Some(SPREAD), Some(at(2_651)), "off by 651, which no reason is given for"),
        (known, TIME, Some(EXACT), Some(at(2_500)), ""),
        (known, TIME, Some(EXACT), Some(at(2_501)), "off by 501, and the reason is for 500"),
        (known, TIME, Some(EXACT), Some(at(2_100)), "it has a reason for a difference that there is not"),
        // A reason for one expectation does not count for another.
        (known, TIMES, Some(at(3)), Some(at(4)), "off by 1, which no reason is given for"),
        (plain, TIMES, Some(Span { median: 3, least: 0, most: 4 }), Some(at(0)), ""),
        (plain, TIMES, Some(Span { median: 3, least: 1, most: 4 }), Some(at(0)), "off by 3, which no reason"),
        (plain, TIMES, Some(at(50)), Some(at(55)), ""),
        (plain, TIMES, Some(at(50)), Some(at(56)), "off by 6, which no reason is given for"),
        (plain, TIME, Some(EXACT), None, "measured on one side only"),
        (plain, TIME, None, Some(EXACT), "measured on one side only"),
        (plain, TIME, None, None, "not measured"),
    ];
    for (row, expect, real, simulated, wrong) in cases {
        let found = compare(&row, &expect, real, simulated);
        let is_so = match (&found, wrong) {
            (None, "") => true,
            (Some(found), wrong) => !wrong.is_empty() && found.contains(wrong),
            (None, _) => false,
        };
        if !is_so {
            return Err(format!("{real:?} and {simulated:?}: {found:?}, not {wrong:?}").into());
        }
    }
    Ok(())
}

const PRINTED: &str = "
| row | what | real: median [least..most] | simulated | expected |
| --- | --- | --- | --- | --- |
| **T1** | it happens | 10 runs | 40 runs | |
| | it, ms | 2000 [1990..2020] | 2100 [2000..2200] | 0..9000 |
| | *A note.* | | | |
";

fn tables() -> Result<(), Failed> {
    let row = Row { id: "T1", about: "it happens", expect: &[TIME], ..ROW };
    let other = Row { id: "T2", ..row };
    let cases = [
        (PRINTED.to_owned(), vec![row], ""),
        (
            PRINTED.replace("2100 [", "2400 ["),
            vec![row],
            "T1: it, ms: real 2000 [1990..2020], simulated 2400 ",
        ),
        (
            PRINTED.replace("2100 [2000..2200]", "–"),
            vec![row],
            "T1: it, ms: it was measured on one side only",
        ),
        (PRINTED.to_owned(), vec![row, other], "T2 is not in the table"),
        (PRINTED.to_owned(), vec![], "there is no row T1"),
        (PRINTED.replace("it, ms", "that, ms"), vec![row], "T1: the table does not have it, ms"),
        (PRINTED.to_owned(), vec![Row { expect: &[], ..row }], "T1 has no it, ms"),
        (PRINTED.to_owned(), vec![Row { about: "that", ..row }], "T1 is about something else"),
        (PRINTED.replace("0..9000", "0..8000"), vec![row], "T1: it, ms is expected otherwise"),
        (PRINTED.repeat(2), vec![row], "T1 is in the table twice"),
        (
            PRINTED.to_owned(),
            vec![Row { differs: &[Differs("that, ms", 1, "because")], ..row }],
            "a reason why that, ms differs, which is not measured",
        ),
    ];
    for (text, rows, wrong) in cases {
        let found = Table::parse(&text).check(rows.iter()).join("\n");
        if found.is_empty() != wrong.is_empty() || !found.contains(wrong) {
            return Err(format!("{found:?}, not {wrong:?}").into());
        }
    }
    Ok(())
}

fn simulated_runs() -> Result<(), Failed> {
    let row = Row { id: "T1", about: "it happens", expect: &[TIME], ..ROW };
    let table = Table::parse(PRINTED);
    if table.real(&row, &TIME) != Some(EXACT) || table.runs(&row) != Some("10 runs") {
        return Err("the table is read otherwise".into());
    }
    // The printed range is 2,000 to 2,200, so 150 ms and a third of 200 are allowed beyond it: 217.
    table.holds(&row, &TIME, &[1_783, 2_417])?;
    match table.holds(&row, &TIME, &[2_418]) {
        Err(_) => Ok(()),
        Ok(()) => Err("a run out of the range is not found".into()),
    }
}

fn fresh_medians() -> Result<(), Failed> {
    let plain = Row { id: "T1", about: "it happens", expect: &[TIME], ..ROW };
    let known = Row { differs: KNOWN, ..plain };
    let table = Table::parse(PRINTED);
    let cases = [
        // Few values: 150 ms and half of the range of 30, so 165. The printed range of 2,000 to
        // 2,200 would allow each value.
        (plain, vec![2_165; 4], ""),
        (plain, vec![2_166; 4], "off by 166, not up to 165"),
        (plain, vec![1_800, 1_834, 1_834, 9_000], "off by 166, not up to 165"),
        // Ten values: 150 ms and a third of 30, so 160.
        (plain, vec![2_160; 10], ""),
        (plain, vec![2_161; 10], "off by 161, not up to 160"),
        (known, vec![2_500; 4], ""),
        (known, vec![2_501; 4], "off by 501, not up to 500"),
        (plain, vec![2_500; 3], ""),
    ];
    for (row, values, wrong) in cases {
        let found = table.is_near(&row, &TIME, values.clone()).err().unwrap_or_default();
        if found.is_empty() != wrong.is_empty() || !found.contains(wrong) {
            return Err(format!("{values:?}: {found:?}, not {wrong:?}").into());
        }
    }
    Ok(())
}
