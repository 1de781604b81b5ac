//! What a Sentinel wants done.

use crate::event::Action;

/// An event of which subscribers are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Telling {
    /// Its name, which is the channel.
    pub event: &'static str,
    /// The message.
    pub message: String,
}

/// What a Sentinel wants done. To be carried out in the order of the fields: its state is on the
/// disk before anyone learns of it.
#[derive(Debug, Default)]
pub struct Outbox {
    /// The configuration file is to be written.
    pub unsaved: bool,
    /// The events, in order.
    pub tellings: Vec<Telling>,
    /// What to send, dial and close, in order.
    pub actions: Vec<Action>,
    /// The process is to end at once, as SENTINEL SIMULATE-FAILURE has asked for, after so many of
    /// the events; what it would have sent is lost.
    pub crashes_after: Option<usize>,
}

impl Outbox {
    /// The process ends here.
    pub(super) fn crash(&mut self) {
        self.crashes_after.get_or_insert(self.tellings.len());
    }
}
