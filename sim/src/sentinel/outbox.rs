//! The effects that a Sentinel requests from its server.

use crate::event::Action;

/// An event for subscribers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Telling {
    /// The name of the event, which is the channel.
    pub event: &'static str,
    /// The text for the subscribers, such as `master m 10.0.0.1 6379`.
    pub message: String,
}

/// The effects of a step, to be carried out in the order of the fields: the state is on the disk
/// before anyone sees an event.
#[derive(Debug, Default)]
pub struct Outbox {
    /// True if the configuration file must be written.
    pub unsaved: bool,
    /// The events, in order.
    pub tellings: Vec<Telling>,
    /// Bytes to send, addresses to dial and connections to close, in order.
    pub actions: Vec<Action>,
    /// Set if SENTINEL SIMULATE-FAILURE ends the process in this step: the number of events that
    /// are still published. The actions are lost.
    pub crashes_after: Option<usize>,
}

impl Outbox {
    /// Ends the process after the events so far.
    pub(super) fn crash(&mut self) {
        self.crashes_after.get_or_insert(self.tellings.len());
    }
}
