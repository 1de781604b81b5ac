//! The causal chain of a violation in lines: true time, the host, the words.

mod short;

use lockstorm_sim::time::True;
use serde::Serialize;

use super::timeline::sentence;
use crate::judge::{
    checker::{
        chain::{self, What},
        words,
    },
    history::{History, Host, HostKind},
    verdict::Witness,
};

/// What led to a violation: an event, a fault, or a clock that was wrong, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Link {
    /// When it happened, or when a fault began, in nanoseconds of true time.
    #[serde(serialize_with = "crate::judge::verdict::nanos")]
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

/// The part of the chain of a violation that a text has.
#[derive(Debug, Clone, Copy)]
pub enum ChainShown<'a> {
    /// All of it.
    Whole,
    /// The nearest links to the end of a long one, and the number of those that are left out.
    Nearest {
        /// Of whose violation the causes are known; of others none are.
        checker: &'a str,
        /// The faults among the causes, by their places among all of the history: of faults these
        /// alone are shown, if the chain has any of them.
        confirmed: &'a [usize],
    },
}

/// The lines of a chain as a terminal shows them.
pub(super) fn shown(
    history: &History,
    (of, witness): (&str, &Witness),
    lines: &[Link],
    how: ChainShown<'_>,
) -> Vec<String> {
    let ChainShown::Nearest { checker, confirmed } = how else { return text(lines) };
    let confirmed = if checker == of { confirmed } else { &[] };
    let own: Vec<Host> = witness.owners.iter().map(|owner| history.client_of(*owner)).collect();
    // What is done to clients that the violation is not about seldom has to do with it.
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
