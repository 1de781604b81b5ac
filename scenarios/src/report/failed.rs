//! The failed calls of a run, as text and as a table of the page.

use std::{cmp::Reverse, collections::BTreeMap, fmt::Write};

use super::escape::escape;
use crate::judge::{
    checker::evidence::words::{instant, shortened},
    history::{CallKind, FailedCalls},
};

/// The most lines about the failed calls of one run.
const LINES_MAX: usize = 6;

/// The most clients that a line names.
const CLIENTS_MAX: usize = 3;

/// The longest error that a line shows whole, in characters.
const TEXT_MAX: usize = 200;

/// Describes failed calls in lines, one for each kind of call with each kind of error: the clients,
/// the number of calls, and the first failure. Of many kinds, describes the most frequent ones and
/// counts the others.
pub fn failed_calls(failed: &[FailedCalls]) -> Vec<String> {
    let kinds = kinds(failed);
    let mut told: Vec<&Kind<'_>> = kinds.iter().collect();
    told.sort_by_key(|kind| Reverse(kind.count()));
    let others = told.split_off(told.len().min(LINES_MAX));
    told.sort_by_key(|kind| kind.first().first_at);
    let mut lines: Vec<String> = told.iter().map(|kind| kind.line()).collect();
    if !others.is_empty() {
        let calls: u64 = others.iter().map(|kind| kind.count()).sum();
        lines.push(format!("and {calls} more with {} other errors", others.len()));
    }
    lines
}

/// Counts the failed calls of runs that came out as expected.
#[derive(Debug, Clone, Copy, Default)]
pub struct FailedInRuns {
    runs: u64,
    with: u64,
    calls: u64,
}

impl FailedInRuns {
    /// Adds the failed calls of a run.
    pub fn add(&mut self, failed: &[FailedCalls]) {
        self.runs += 1;
        self.with += u64::from(!failed.is_empty());
        self.calls += failed.iter().map(|one| one.count).sum::<u64>();
    }

    /// Returns the counts in one line; `None` if no call failed.
    pub fn line(&self) -> Option<String> {
        let FailedInRuns { runs, with, calls } = *self;
        let calls = if calls == 1 { "1 call" } else { &format!("{calls} calls") };
        (with > 0).then(|| {
            format!("{calls} failed in {with} of {runs} runs that came out as expected: -v shows them")
        })
    }
}

/// Failed calls of any clients: one kind of call with one kind of error.
struct Kind<'a>(Vec<&'a FailedCalls>);

/// Groups calls by kind, in the order in which they are given.
fn kinds(failed: &[FailedCalls]) -> Vec<Kind<'_>> {
    let mut kinds: Vec<Kind<'_>> = Vec::new();
    let mut places: BTreeMap<(CallKind, String), usize> = BTreeMap::new();
    for one in failed {
        let place = *places.entry((one.call, one.kind())).or_insert(kinds.len());
        match kinds.get_mut(place) {
            Some(kind) => kind.0.push(one),
            None => kinds.push(Kind(vec![one])),
        }
    }
    kinds
}

impl Kind<'_> {
    fn count(&self) -> u64 {
        self.0.iter().map(|one| one.count).sum()
    }

    fn first(&self) -> &FailedCalls {
        self.0.iter().min_by_key(|one| one.first_at).expect("a kind has calls")
    }

    /// Returns `c1: 394 acquisitions`, or `c1 (3), c2 (1): 4 acquisitions`.
    fn who_and_what(&self) -> String {
        let count = self.count();
        let [one, many] = self.first().call.nouns();
        let noun = if count == 1 { one } else { many };
        let who = match &self.0[..] {
            [alone] => alone.client.to_string(),
            several => {
                let mut by_count: Vec<_> = several.iter().collect();
                by_count.sort_by_key(|one| Reverse(one.count));
                let named = by_count.iter().take(CLIENTS_MAX);
                let named: Vec<String> = named.map(|one| format!("{} ({})", one.client, one.count)).collect();
                match several.len().saturating_sub(CLIENTS_MAX) {
                    0 => named.join(", "),
                    1 => format!("{} and 1 other client", named.join(", ")),
                    others => format!("{} and {others} other clients", named.join(", ")),
                }
            }
        };
        format!("{who}: {count} {noun}")
    }

    fn line(&self) -> String {
        let first = self.first();
        let at = match (self.count(), &self.0[..]) {
            (1, _) => format!("at {}", instant(first.first_at)),
            (_, [_]) => format!("first at {}", instant(first.first_at)),
            _ => format!("first at {} by {}", instant(first.first_at), first.client),
        };
        format!("{} failed, {at}: {}", self.who_and_what(), in_line(&first.text))
    }
}

/// Puts an error on one line that fits into a report.
fn in_line(text: &str) -> String {
    shortened(&text.split_whitespace().collect::<Vec<_>>().join(" "), TEXT_MAX)
}

/// Returns the failed calls as a table of the page, with each client by itself; empty if no call
/// failed.
pub(super) fn html(failed: &[FailedCalls]) -> String {
    let mut page = String::new();
    if failed.is_empty() {
        return page;
    }
    page.push_str(
        "<h2>Calls that failed</h2>\n<table class=\"failed\"><tr><th>client</th><th>calls</th><th>first</th>\
         <th>error of the first</th></tr>\n",
    );
    for one in failed {
        let [singular, plural] = one.call.nouns();
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td>{} {}</td><td><a href=\"#t={}s\">{}</a></td><td>{}</td></tr>",
            escape(&one.client),
            one.count,
            if one.count == 1 { singular } else { plural },
            one.first_at.as_micros() as f64 / 1e6,
            instant(one.first_at),
            escape(&one.text)
        );
    }
    page.push_str("</table>\n");
    page
}

#[cfg(test)]
mod tests {
    use lockstorm_world::time::True;

    use super::*;

    fn failed(client: &str, call: CallKind, count: u64, at: i64, text: &str) -> FailedCalls {
        FailedCalls { client: client.into(), call, count, first_at: True::from_millis(at), text: text.into() }
    }

    #[test]
    fn calls_that_failed_alike_are_one_line() {
        let oom = "OOM command not allowed";
        assert_eq!(
            failed_calls(&[
                failed("c1", CallKind::Acquire, 394, 5_012, oom),
                failed("c2", CallKind::Release, 1, 6_000, "no\nreply"),
            ]),
            [
                "c1: 394 acquisitions failed, first at 5.012 s: OOM command not allowed",
                "c2: 1 release failed, at 6.000 s: no reply",
            ]
        );
        let many: Vec<_> = (1..=5)
            .map(|n| failed(&format!("c{n}"), CallKind::Acquire, u64::try_from(n).unwrap_or(0), 100 - n, oom))
            .collect();
        let line = "c5 (5), c4 (4), c3 (3) and 2 other clients: 15 acquisitions failed, first at 0.095 s by c5: OOM \
                    command not allowed";
        assert_eq!(failed_calls(&many), [line]);
    }

    #[test]
    fn of_many_errors_the_most_frequent_are_told_in_the_order_of_time() {
        let errors = ["a", "b", "c", "d", "e", "f", "g", "h"];
        let failed: Vec<_> = errors
            .iter()
            .zip(1_i64..)
            .map(|(text, n)| failed("c", CallKind::Acquire, n.unsigned_abs(), 1_000 * n, text))
            .collect();
        let lines = failed_calls(&failed);
        assert_eq!(lines[0], "c: 3 acquisitions failed, first at 3.000 s: c");
        assert_eq!(lines[6..], ["and 3 more with 2 other errors"]);
        let long = failed_calls(&[
            failed[0].clone(),
            FailedCalls { text: "x ".repeat(5_000).into(), ..failed[1].clone() },
        ]);
        assert!(long[1].ends_with("x…") || long[1].ends_with(" …"), "{}", long[1]);
        assert!(long.iter().all(|line| line.chars().count() < 300));
    }

    #[test]
    fn many_runs_are_told_in_one_line() {
        let some = [failed("c", CallKind::Acquire, 3, 1, "x")];
        let runs: [&[FailedCalls]; 3] = [&some, &[], &some];
        let mut in_runs = FailedInRuns::default();
        assert_eq!(in_runs.line(), None);
        in_runs.add(&[]);
        assert_eq!(in_runs.line(), None);
        runs[1..].iter().for_each(|failed| in_runs.add(failed));
        in_runs.add(runs[0]);
        assert_eq!(
            in_runs.line().as_deref(),
            Some("6 calls failed in 2 of 4 runs that came out as expected: -v shows them")
        );
    }
}
