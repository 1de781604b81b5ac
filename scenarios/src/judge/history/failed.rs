//! The calls of a run that failed, counted by operation, error and client.
//!
//! An error is not a verdict: a checker that finds nothing wrong may have seen nothing but errors.
//! So a report lists the failed calls, whatever the verdicts.

use std::collections::{BTreeMap, BTreeSet};

use lockstorm_world::time::True;
use serde::{Deserialize, Serialize};

use super::{Call, EventKind, History, Host, Outcome, id::nanos};

/// The operation of a call, without its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallKind {
    /// To acquire a lock: [`Call::Acquire`].
    Acquire,
    /// To release a hold: [`Call::Release`].
    Release,
    /// To set a new lease: [`Call::Extend`].
    Extend,
    /// To set the count of an open latch: [`Call::Set`].
    Set,
    /// To count a latch down: [`Call::CountDown`].
    CountDown,
    /// To wait until a latch opens: [`Call::Await`].
    Await,
    /// To delete a latch: [`Call::Delete`].
    Delete,
    /// To take permits of a rate limiter: [`Call::Take`].
    Take,
}

impl CallKind {
    /// Returns the noun for the operation in singular and plural.
    pub fn nouns(self) -> [&'static str; 2] {
        match self {
            Self::Acquire => ["acquisition", "acquisitions"],
            Self::Release => ["release", "releases"],
            Self::Extend => ["extension", "extensions"],
            Self::Set => ["setting of a latch", "settings of a latch"],
            Self::CountDown => ["count-down", "count-downs"],
            Self::Await => ["wait for a latch", "waits for a latch"],
            Self::Delete => ["deletion of a latch", "deletions of a latch"],
            Self::Take => ["request for permits", "requests for permits"],
        }
    }
}

impl Call {
    /// Returns the operation without its arguments.
    pub fn kind(&self) -> CallKind {
        match self {
            Self::Acquire { .. } => CallKind::Acquire,
            Self::Release => CallKind::Release,
            Self::Extend { .. } => CallKind::Extend,
            Self::Set => CallKind::Set,
            Self::CountDown => CallKind::CountDown,
            Self::Await { .. } => CallKind::Await,
            Self::Delete => CallKind::Delete,
            Self::Take { .. } => CallKind::Take,
        }
    }
}

/// Calls of one client for one operation that failed with errors of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedCalls {
    /// The client's name.
    pub client: Box<str>,
    /// The operation that all these calls asked for.
    pub call: CallKind,
    /// The number of calls that failed so, at least 1.
    pub count: u64,
    /// The instant at which the first of them returned, in nanoseconds of true time.
    #[serde(with = "nanos")]
    pub first_at: True,
    /// The error of the first call.
    pub text: Box<str>,
}

impl FailedCalls {
    /// Returns the error with the parts that differ from call to call (numbers, durations,
    /// addresses, ids) replaced, so that errors of one kind are equal.
    pub fn kind(&self) -> String {
        kind_of(&self.text)
    }

    /// Describes the first call, such as `acquisition by c1: no reply within 3s`.
    pub fn first_in_words(&self) -> String {
        let [one, _] = self.call.nouns();
        format!("{one} by {}: {}", self.client, self.text)
    }
}

impl History {
    /// Returns the failed calls, by operation and kind of error in the order of the first of each,
    /// and within these by client. Calls of lockstorm's own client are left out: `progress` reports
    /// them.
    pub fn failed_calls(&self) -> Vec<FailedCalls> {
        let probe = self.probe();
        let failures = || {
            self.events.iter().filter_map(|event| match &event.kind {
                EventKind::Return { op, outcome: Outcome::Failed { message, .. } }
                    if Some(event.host) != probe =>
                {
                    Some((event, *op, message))
                }
                _ => None,
            })
        };
        let ops: BTreeSet<_> = failures().map(|(_, op, _)| op).collect();
        if ops.is_empty() {
            return Vec::new();
        }
        let calls = self.events.iter().filter_map(|event| match &event.kind {
            EventKind::Invoke { op, call, .. } if ops.contains(op) => Some((*op, call.kind())),
            _ => None,
        });
        let calls: BTreeMap<_, CallKind> = calls.collect();
        let mut kinds: BTreeMap<(CallKind, String), usize> = BTreeMap::new();
        let mut found: BTreeMap<(usize, Host), FailedCalls> = BTreeMap::new();
        for (event, op, text) in failures() {
            let Some(call) = calls.get(&op).copied() else { continue };
            let next = kinds.len();
            let number = *kinds.entry((call, kind_of(text))).or_insert(next);
            let first = || FailedCalls {
                client: self.host_name(event.host).into(),
                call,
                count: 0,
                first_at: event.at,
                text: text.clone(),
            };
            found.entry((number, event.host)).or_insert_with(first).count += 1;
        }
        found.into_values().collect()
    }
}

/// Replaces each word of an error that contains a digit with `#`.
fn kind_of(text: &str) -> String {
    let is_of_word = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut kind = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = is_of_word(first);
        let end = rest.find(|c| is_of_word(c) != is_word).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        kind.push_str(if is_word && part.contains(|c: char| c.is_ascii_digit()) { "#" } else { part });
        rest = after;
    }
    kind
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::history::{Wait, story::Story};

    fn failed(message: &str) -> Outcome {
        Outcome::Failed { definite: false, message: message.into() }
    }

    #[test]
    fn errors_that_differ_in_numbers_names_and_times_alone_are_of_one_kind() {
        for (one, other, alike) in [
            ("no reply within 3s", "no reply within 99.998ms", true),
            ("cannot connect to m1:6379: refused", "cannot connect to m2:6380: refused", true),
            ("`a` is not held by 0f3c-91aa:1", "`a` is not held by bbcd-0a17:12", true),
            ("the server refused: OOM no memory", "the server refused: NOPERM no rights", false),
            ("1 of 2 nodes", "1 of some nodes", false),
            ("", "", true),
        ] {
            assert_eq!(kind_of(one) == kind_of(other), alike, "{one:?} and {other:?}");
        }
        assert_eq!(kind_of("EVALSHA at n1:6379 took 1.5s (twice)"), "EVALSHA at #:# took # (twice)");
    }

    #[test]
    fn failed_calls_are_counted_by_what_was_asked_the_error_and_the_client() {
        let take = Call::Take { permits: 1, wait: Wait::No };
        let story = Story::one_node().at(1).asks("c1").at(2).asks("c2").at(3);
        let story = story.returns("c1", failed("no reply within 3s")).at(4).returns("c2", failed("OOM"));
        let story = story.at(5).asks("c1").at(6).returns("c1", failed("no reply within 2s"));
        let story = story.at(7).asks("c2").at(8).returns("c2", failed("no reply within 1s"));
        let story = story.at(9).calls("c1", Call::Release).at(10).returns("c1", failed("OOM"));
        let story = story.at(11).calls("c1", take).at(12).returns("c1", Outcome::Refused);
        let history = story.at(13).asks("c3").ends(100);
        let counted: Vec<_> = history
            .failed_calls()
            .into_iter()
            .map(|one| {
                (one.client.to_string(), one.call, one.count, one.first_at.as_millis(), one.text.to_string())
            })
            .collect();
        let row =
            |client: &str, call, count, at, text: &str| (client.to_owned(), call, count, at, text.to_owned());
        assert_eq!(
            counted,
            [
                row("c1", CallKind::Acquire, 2, 3, "no reply within 3s"),
                row("c2", CallKind::Acquire, 1, 8, "no reply within 1s"),
                row("c2", CallKind::Acquire, 1, 4, "OOM"),
                row("c1", CallKind::Release, 1, 10, "OOM"),
            ]
        );
        assert_eq!(Story::one_node().at(1).locks("c1", "m", 100).ends(200).failed_calls(), []);
    }
}
