//! The pause before a request is retried. It ends early when another server can take the request.

use std::time::Duration;

use super::moves::Position;
use super::redirect::{Remedy, remedy};
use super::{NodeId, Router};
use crate::error::Error;
use crate::wire::Slot;

/// The maximum number of times that one request is sent again only because its server was replaced.
const MOVES: u32 = 16;

/// The number of times that a request was sent again.
#[derive(Default)]
pub(crate) struct Repeats {
    /// Retries at the server that had failed.
    number: u32,
    moves: u32,
}

impl Repeats {
    /// Returns the number of retries, not counting those at another server.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Counts a retry at the server that had failed.
    pub(crate) fn add_one(&mut self) {
        self.number = self.number.saturating_add(1);
    }
}

/// The destination of a request when it began.
pub(crate) struct Destination {
    slot: Slot,
    node: NodeId,
    layout: Position,
}

impl Router {
    /// Returns the present destination of requests for keys of `slot`.
    pub(crate) fn destination(&self, slot: Slot) -> Destination {
        // Take the position first, so that a change in between is noticed.
        let layout = self.layout();
        Destination { slot, node: self.node_id(slot), layout }
    }

    /// Completes after `delay`, or as soon as another server than in `from` is the destination.
    /// `error` is the outcome of the request. During the pause the route watches for a new master.
    ///
    /// The delay keeps callers from hammering a server that refuses them. A new server has not
    /// refused yet, so no delay is needed.
    pub(crate) async fn pause(
        &self,
        from: &Destination,
        error: &Error,
        delay: Duration,
        repeats: &mut Repeats,
    ) {
        let _looking = self.route.awaited();
        let ended = self.env.sleep_until(self.env.now() + delay);
        let elsewhere = async {
            loop {
                let layout = self.layout();
                if self.is_elsewhere(from, error) {
                    return;
                }
                layout.left().await;
            }
        };
        tokio::select! {
            biased;
            () = elsewhere, if repeats.moves < MOVES => repeats.moves += 1,
            () = ended => repeats.add_one(),
        }
    }

    fn is_elsewhere(&self, from: &Destination, error: &Error) -> bool {
        // A node that fails because other nodes are missing may succeed after the replacement of
        // any of them. Other errors concern only the node of the slot.
        let by_slot = self.route.divides() && remedy(error) != Remedy::Look;
        if by_slot { self.node_id(from.slot) != from.node } else { from.layout.is_left() }
    }
}
