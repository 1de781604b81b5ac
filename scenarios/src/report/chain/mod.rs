//! The causal chain of a violation in lines: true time, the host, the words.

use lockstorm_sim::time::True;
use serde::Serialize;

use super::timeline::sentence;
use crate::{
    checker::{
        chain::{self, What},
        words,
    },
    history::History,
    verdict::Witness,
};

/// One link in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Line {
    /// In nanoseconds of true time.
    #[serde(serialize_with = "crate::verdict::nanos")]
    pub(super) at: True,
    /// Where it happened; `None` of a fault, which may be on several hosts.
    pub(super) host: Option<Box<str>>,
    pub(super) words: String,
    /// What it came of: places in the list.
    pub(super) after: Vec<usize>,
}

/// The chain of a witness, from the beginning to the end.
pub(super) fn lines(history: &History, witness: &Witness) -> Vec<Line> {
    let in_words = |link: chain::Link| {
        let (host, words) = match link.what {
            What::Fault(number) => {
                let fault = &history.faults[number];
                (None, format!("{} {}", fault.words, words::span(fault)))
            }
            What::Clock(shown) => (Some(history.host_name(shown.host).into()), words::shown(history, &shown)),
            What::Event(number) => {
                let event = &history.events[number];
                let said = sentence(history, event).unwrap_or_default();
                (Some(history.host_name(event.host).into()), said)
            }
        };
        Line { at: link.at, host, words, after: link.after }
    };
    chain::of_witness(history, witness).into_iter().map(in_words).collect()
}

/// The lines below each other, faults marked as in a timeline.
pub(super) fn text(lines: &[Line]) -> Vec<String> {
    let host = |line: &Line| line.host.clone().unwrap_or_else(|| "~".into());
    let width = lines.iter().map(|line| host(line).chars().count()).max().unwrap_or(0);
    let one =
        |line: &Line| format!("{:>12}  {:<width$}  {}", words::instant(line.at), host(line), line.words);
    lines.iter().map(one).collect()
}

#[cfg(test)]
mod tests;
