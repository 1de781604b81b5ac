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

/// What led to a violation: an event, a fault, or a clock that was wrong, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Link {
    /// When it happened, or when a fault began, in nanoseconds of true time.
    #[serde(serialize_with = "crate::verdict::nanos")]
    pub at: True,
    /// Where it happened; `None` of a fault, which may be on several hosts.
    pub host: Option<Box<str>>,
    /// The place of a fault among all of the history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<usize>,
    /// What happened.
    pub words: String,
    /// What it came of: places in the list.
    pub after: Vec<usize>,
}

/// The chain of a witness, from the beginning to the end.
pub(super) fn lines(history: &History, witness: &Witness) -> Vec<Link> {
    let in_words = |link: chain::Link| {
        let (host, fault, words) = match link.what {
            What::Fault(number) => (None, Some(number), words::fault(&history.faults[number])),
            What::Clock(shown) => (Some(shown.host), None, words::shown(history, &shown)),
            What::Event(number) => {
                let event = &history.events[number];
                (Some(event.host), None, sentence(history, event).unwrap_or_default())
            }
        };
        let host = host.map(|host| history.host_name(host).into());
        Link { at: link.at, host, fault, words, after: link.after }
    };
    chain::of_witness(history, witness).into_iter().map(in_words).collect()
}

/// The lines below each other, faults marked as in a timeline.
pub(super) fn text(lines: &[Link]) -> Vec<String> {
    let host = |line: &Link| line.host.clone().unwrap_or_else(|| "~".into());
    let width = lines.iter().map(|line| host(line).chars().count()).max().unwrap_or(0);
    let one =
        |line: &Link| format!("{:>12}  {:<width$}  {}", words::instant(line.at), host(line), line.words);
    lines.iter().map(one).collect()
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod violations;
