//! The pause before a request is sent again, which ends early when another server can take it.

use std::time::Duration;

use super::moves::Position;
use super::redirect::{Remedy, remedy};
use super::{NodeId, Router};
use crate::error::Error;
use crate::wire::Slot;

/// How often one request is sent again for no other reason than that another server is the one to
/// ask.
const MOVES: u32 = 16;

/// How often a request was sent again.
#[derive(Default)]
pub(crate) struct Repeats {
    /// To the server that had failed.
    number: u32,
    moves: u32,
}

impl Repeats {
    /// How many there were, without those for another server.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// It is sent again, to the server that had failed.
    pub(crate) fn add_one(&mut self) {
        self.number = self.number.saturating_add(1);
    }
}

/// Where a request was to go when it began.
pub(crate) struct Outlook {
    slot: Slot,
    node: NodeId,
    layout: Position,
}

impl Router {
    /// Where a request for keys of `slot` is to go now.
    pub(crate) fn outlook(&self, slot: Slot) -> Outlook {
        // The position first: what changes in between is a change.
        let layout = self.layout();
        Outlook { slot, node: self.node_id(slot), layout }
    }

    /// Completes after `delay`, or when another server has become the one to ask since `from`,
    /// where `error` came of a request. The route looks out for such a server meanwhile.
    ///
    /// The pause is what keeps callers from asking a server again and again that refuses them.
    /// Another one has yet to be asked.
    pub(crate) async fn pause(&self, from: &Outlook, error: &Error, delay: Duration, repeats: &mut Repeats) {
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

    fn is_elsewhere(&self, from: &Outlook, error: &Error) -> bool {
        // What a node cannot do as long as other nodes are missing, it may be able to do when any
        // of them is replaced.
        let by_slot = self.route.divides() && remedy(error) != Remedy::Look;
        if by_slot { self.node_id(from.slot) != from.node } else { from.layout.is_left() }
    }
}
