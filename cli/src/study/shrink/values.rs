//! Simplifies values whose exact size a violation does not need. Ranges become the drawn value,
//! numbers become rounder, and then smaller.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::{Proposal, to_table};
use lockstorm::{
    file::{
        plan::Plan,
        scenario::{Scenario, Source, parse},
    },
    units::Span,
};

/// The groups whose values are made rounder. With true, they are also made smaller.
///
/// Latencies, and the values that define the lock, are only rounded. With a lease as short as the
/// latency to the node, another violation would replace the original one: the lease ends before its
/// grant arrives.
const GROUPS: [(&str, bool); 7] = [
    ("fault", true),
    ("client", true),
    ("node", false),
    ("sentinel", false),
    ("lock", false),
    ("link", false),
    ("network", false),
];

/// `hosts` and `clients` propose the sizes of groups.
const COUNT: &str = "count";

/// The smallest proposed time, in nanoseconds. A finer one is not easier to read.
const TIME_MIN: u64 = 1_000_000;

/// The most digits of a proposed number.
const DIGITS_MAX: u32 = 3;

/// Proposes a simpler value for each value that may have one.
pub(super) fn simpler(scenario: &Scenario, seed: u64) -> Vec<Proposal> {
    // The same scenario was written as TOML before, so this does not fail.
    let Ok(whole) = to_table(scenario) else { return Vec::new() };
    let drawn: BTreeMap<String, String> =
        Plan::draw(scenario, seed).drawn().into_iter().map(|drawn| (drawn.path, drawn.text)).collect();
    let mut proposals = Vec::new();
    for (group, smaller) in GROUPS {
        let Some(value) = whole.get(group) else { continue };
        let mut found = Vec::new();
        leaves(value, &mut vec![group.to_owned()], &mut found);
        for (path, value) in found {
            let name = path.join(".");
            // A clock error is a fault of its host.
            let is_host = ["node", "sentinel"].contains(&group);
            let smaller = smaller || (is_host && path.get(2).is_some_and(|key| key == "clock"));
            for other in others(value, drawn.get(&name).map(String::as_str), smaller) {
                let words = format!("with {name} = {other} instead of {value}");
                let mut changed = whole.clone();
                put(&mut changed, &path, other);
                // Convert to text and parse it again, because names contain their position in the
                // file.
                let text = toml::to_string(&changed).unwrap_or_default();
                if let Ok(Source { variants, .. }) = parse("shrinking", &text) {
                    proposals.extend(variants.into_iter().map(|variant| (words.clone(), variant.scenario)));
                }
            }
        }
    }
    proposals
}

/// Collects the values below one, each with its path. List items are numbered from 0.
pub(crate) fn leaves<'a>(
    value: &'a Value,
    path: &mut Vec<String>,
    found: &mut Vec<(Vec<String>, &'a Value)>,
) {
    let mut below = |key: String, value: &'a Value| {
        path.push(key);
        leaves(value, path, found);
        path.pop();
    };
    match value {
        Value::Table(table) => table.iter().for_each(|(key, value)| below(key.clone(), value)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, value)| below(at.to_string(), value));
        }
        Value::Integer(_) if path.last().is_some_and(|key| key == COUNT) => {}
        value => found.push((path.clone(), value)),
    }
}

pub(crate) fn put(table: &mut Table, path: &[String], value: Value) {
    let (first, rest) = path.split_first().expect("a value is below a table");
    let mut at = table.get_mut(first);
    for key in rest {
        at = match at {
            Some(Value::Table(table)) => table.get_mut(key),
            Some(Value::Array(items)) => key.parse::<usize>().ok().and_then(|at| items.get_mut(at)),
            _ => None,
        };
    }
    *at.expect("the path is that of a value") = value;
}

/// Returns candidates that could replace a value.
fn others(value: &Value, drawn: Option<&str>, smaller: bool) -> Vec<Value> {
    match value {
        Value::Integer(number @ 2..) => {
            let mut all = if smaller { vec![1, number / 2, number - 1] } else { Vec::new() };
            all.dedup();
            all.into_iter().map(Value::Integer).collect()
        }
        Value::String(text) => match (text.split_once(".."), drawn) {
            (Some(_), Some(drawn)) => vec![Value::String(drawn.to_owned())],
            // A range that is drawn repeatedly during the run.
            (Some((low, _)), None) => vec![Value::String(low.to_owned())],
            (None, _) => rounder(text, smaller).into_iter().map(Value::String).collect(),
        },
        _ => Vec::new(),
    }
}

/// Returns rounder versions of a number with a unit: with fewer digits or, for a single digit and
/// if `smaller`, smaller ones.
fn rounder(text: &str, smaller: bool) -> Vec<String> {
    let (sign, unsigned) = match text.as_bytes().first() {
        Some(b'+' | b'-') => text.split_at(1),
        _ => ("", text),
    };
    let (number, least, write): (u64, u64, &dyn Fn(u64) -> String) =
        if let Some(number) = unsigned.strip_suffix('%') {
            let Some(millionths) = millionths(number) else { return Vec::new() };
            (millionths, 1_000_000, &|millionths| format!("{}%", millionths as f64 / 1e6))
        } else if let Ok(Span(time)) = unsigned.parse() {
            let Ok(nanos) = u64::try_from(time.as_nanos()) else { return Vec::new() };
            (nanos, TIME_MIN, &|nanos| Span(std::time::Duration::from_nanos(nanos)).to_string())
        } else {
            return Vec::new();
        };
    let all = rounder_numbers(number, if smaller { Some(least) } else { None });
    all.into_iter().map(|number| format!("{sign}{}", write(number))).collect()
}

/// Parses a number with up to six decimal places as millionths.
fn millionths(number: &str) -> Option<u64> {
    let number: f64 = number.parse().ok()?;
    let millionths = (number * 1e6).round();
    // Below 2^53 they are exact, and a share is at most a few hundred percent.
    (0.0..9e15).contains(&millionths).then_some(millionths as u64)
}

/// Returns neighbours of a number with fewer digits, the roundest first. A number with a single
/// digit is followed by smaller ones in the steps 5, 2 and 1, down to `least`. Repeated use
/// terminates: first the digits become fewer, and then the number smaller.
fn rounder_numbers(number: u64, least: Option<u64>) -> Vec<u64> {
    let Some(zeros) = (0..20).rev().find(|zeros| number.is_multiple_of(10_u64.pow(*zeros))) else {
        return Vec::new();
    };
    if number == 0 {
        return Vec::new();
    }
    let (magnitude, mut all) = (number.ilog10(), Vec::new());
    for digits in 1..=DIGITS_MAX.min(magnitude - zeros) {
        let unit = 10_u64.pow(magnitude + 1 - digits);
        let below = number / unit * unit;
        all.extend([Some(below), below.checked_add(unit)].into_iter().flatten());
    }
    if let (true, Some(least)) = (magnitude == zeros, least) {
        let unit = 10_u64.pow(magnitude);
        let next = match number / unit {
            1 => number / 2,
            2 => unit,
            3..=5 => 2 * unit,
            _ => 5 * unit,
        };
        let much_smaller = (number / 10).max(least);
        all.extend([much_smaller, next].into_iter().filter(|smaller| (least..number).contains(smaller)));
    }
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_get_rounder_and_then_smaller() {
        for (text, smaller, others) in [
            // The order goes from about 2 s to finer digits.
            ("2.137s", true, &["2s", "3s", "2.1s", "2.2s", "2.13s", "2.14s"][..]),
            ("30s", true, &["3s", "20s"]),
            ("30s", false, &[]),
            ("+31.5s", true, &["+30s", "+40s", "+31s", "+32s"]),
            ("-1s", true, &["-100ms", "-500ms"]),
            ("2ms", true, &["1ms"]),
            ("1ms", true, &[]),
            ("0ms", true, &[]),
            ("12.5%", false, &["10%", "20%", "12%", "13%"]),
            ("300ppm", true, &[]),
            ("acquired", true, &[]),
        ] {
            assert_eq!(rounder(text, smaller), others, "{text}");
        }
    }

    #[test]
    fn whatever_is_taken_of_rounder_numbers_there_is_an_end() {
        for number in [1, 9, 10, 99, 2_137_000_000, u64::MAX] {
            for pick in 0..6 {
                let mut left = number;
                for step in 0.. {
                    assert!(step < 100, "{number}: {left}");
                    let all = rounder_numbers(left, Some(1));
                    let Some(next) = all.get(pick.min(all.len().saturating_sub(1))) else { break };
                    left = *next;
                }
                assert!(left <= 1, "{number} ends as {left}");
            }
        }
    }

    #[test]
    fn ranges_become_what_was_drawn_and_counts_small() {
        let text = |text: &str| Value::String(text.to_owned());
        assert_eq!(others(&text("1s..3s"), Some("2.137s"), true), [text("2.137s")]);
        assert_eq!(others(&text("1s..3s"), None, true), [text("1s")]);
        let numbers = |all: &[i64]| all.iter().copied().map(Value::Integer).collect::<Vec<_>>();
        assert_eq!(others(&Value::Integer(8), None, true), numbers(&[1, 4, 7]));
        assert_eq!(others(&Value::Integer(2), None, true), numbers(&[1]));
        assert!(others(&Value::Integer(1), None, true).is_empty());
    }
}
