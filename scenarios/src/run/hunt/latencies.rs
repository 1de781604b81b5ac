//! The latencies of links, within which messages change their order.

use std::collections::BTreeMap;

use lockstorm_world::time::True;

use super::moments::Message;
use crate::{
    file::plan::Plan,
    units::{Draw, Span, UpTo},
};

/// The latencies of all links of a plan.
#[derive(Debug)]
pub(super) struct Latencies {
    network: Draw<Span>,
    /// The links that differ, by sender and receiver.
    links: BTreeMap<(String, String), Draw<Span>>,
}

impl Latencies {
    pub(super) fn of(plan: &Plan) -> Latencies {
        let links = plan.links.iter().map(|link| ((link.from.clone(), link.to.clone()), link.latency));
        Latencies { network: plan.scenario.network.latency, links: links.collect() }
    }

    /// Returns the latest arrival of a message that no other packet of its link holds up. Without a
    /// limit it is the longest latency of its link, or twice the latency if that is fixed.
    pub(super) fn latest_arrival(&self, message: &Message<'_>, limit: Option<UpTo>) -> True {
        if let Some(UpTo(Span(limit))) = limit {
            return message.arrival.drawn + limit;
        }
        let link = (message.from.to_owned(), message.to.to_owned());
        match self.links.get(&link).unwrap_or(&self.network) {
            Draw::Fixed(Span(latency)) => message.sent + 2 * *latency,
            Draw::Range(_, Span(longest)) => message.sent + *longest,
        }
    }
}
