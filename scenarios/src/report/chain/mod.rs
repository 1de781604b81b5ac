//! The causal chain of a violation in lines: true time, host, words.

mod short;

use lockstorm_world::time::True;
use serde::Serialize;

use super::timeline::sentence;
use crate::judge::{
    checker::evidence::{
        chain::{self, What},
        words,
    },
    history::{History, Host, HostKind},
    verdict::Witness,
};

/// A link of the chain that led to a violation: an event, a fault, or a wrong clock, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Link {
    /// The time of an event, or of the start of a fault, in nanoseconds of true time.
    #[serde(serialize_with = "crate::judge::verdict::nanos")]
    pub at: True,
    /// The host of an event or a clock; `None` for a fault, which may be on several hosts.
    pub host: Option<Box<str>>,
    /// The index of a fault among all of the history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<usize>,
    /// The event, the fault or the wrong clock in a sentence.
    pub words: String,
    /// The links that caused this link, as indexes into the list.
    pub after: Vec<usize>,
}

/// Returns the chain of a witness, from the beginning to the end.
pub(super) fn lines(history: &History, witness: &Witness) -> Vec<Link> {
    let in_words = |link: chain::Link| {
        let (host, fault, words) = match link.what {
            What::Fault(number) => (None, Some(number), words::fault(&history.faults[number])),
            What::Clock(shown) => (Some(shown.host), None, words::shown(history, &shown)),
            What::Event(number) => {
                let event = &history.events[number];
                (Some(event.host), None, sentence(history, event))
            }
        };
        let host = host.map(|host| history.host_name(host).into());
        Link { at: link.at, host, fault, words, after: link.after }
    };
    chain::of_witness(history, witness).into_iter().map(in_words).collect()
}

/// The part of the chain of a violation that a text shows.
#[derive(Debug, Clone, Copy)]
pub enum ChainShown<'a> {
    /// All links, however many there are.
    Whole,
    /// The links of a long chain that are nearest to its end, and the number of the others.
    Nearest {
        /// The checker whose violation has known causes; other checkers have no confirmed faults.
        checker: &'a str,
        /// The faults among the causes, as indexes into the faults of the history. If the chain has
        /// any of them, no other faults are shown.
        confirmed: &'a [usize],
    },
}

/// Returns the lines of a chain for a terminal.
pub(super) fn shown(
    history: &History,
    (of, witness): (&str, &Witness),
    lines: &[Link],
    how: ChainShown<'_>,
) -> Vec<String> {
    let ChainShown::Nearest { checker, confirmed } = how else { return text(lines) };
    let confirmed = if checker == of { confirmed } else { &[] };
    let own: Vec<Host> = witness.owners.iter().map(|owner| history.client_of(*owner)).collect();
    // A fault of clients that the violation is not about seldom contributes to it.
    let aside = |fault: usize| {
        let targets = &history.faults[fault].targets;
        let is_client = |host: &&Host| history.header.hosts_of(HostKind::Client).any(|of| of == **host);
        let mut clients = targets.iter().filter(is_client).peekable();
        clients.peek().is_some() && !own.is_empty() && !clients.any(|client| own.contains(client))
    };
    let places = short::nearest(lines, confirmed, aside);
    let nearest: Vec<Link> = places.iter().map(|place| lines[*place].clone()).collect();
    let mut shown = text(&nearest);
    let left_out = lines.len() - places.len();
    if left_out > 0 {
        shown.push(format!("{:>12}  and {left_out} more: -v shows them", "..."));
    }
    shown
}

/// Returns the lines aligned, with faults marked as in a timeline.
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
