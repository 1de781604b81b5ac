//! A history without what the laboratory's own client did: its question is that of `progress`, and
//! what it did to ask it is no evidence of how the clients on trial share a lock.

use std::borrow::Cow;

use super::{Event, EventKind, History, Host, HostKind, Owner};

impl History {
    /// The host of the laboratory's own client, if it did anything.
    pub fn probe(&self) -> Option<Host> {
        self.header.hosts_of(HostKind::Probe).next()
    }

    /// The same without what the laboratory's own client did and was given: without its calls, its
    /// holds, its places in queues, its commands and what it left behind. What became of other
    /// owners' holds by it stays.
    #[must_use]
    pub fn without_probe(&self) -> Cow<'_, History> {
        let Some(probe) = self.probe() else { return Cow::Borrowed(self) };
        let is_its = |owner: Owner| self.client_of(owner) == probe;
        let mut history = self.clone();
        history.events.retain(|event| event.host != probe && !is_about(event, probe, &is_its));
        for event in &mut history.events {
            if let EventKind::Queue { waiters, .. } = &mut event.kind
                && waiters.iter().any(|waiter| is_its(*waiter))
            {
                *waiters = waiters.iter().copied().filter(|waiter| !is_its(*waiter)).collect();
            }
        }
        history.commands.retain(|command| command.client != probe);
        history.keys_left.retain(|key| !key.owner.is_some_and(&is_its));
        Cow::Owned(history)
    }

    /// Leaves the laboratory's own client out where it had nothing to ask. Its host is the last.
    pub(crate) fn leave_out_idle_probe(&mut self) {
        let Some(probe) = self.probe().filter(|probe| usize::from(probe.0) + 1 == self.header.hosts.len())
        else {
            return;
        };
        if !self.owners.iter().any(|owner| owner.client == probe) {
            self.header.hosts.pop();
            self.clocks.pop();
            self.events.retain(|event| event.host != probe);
        }
    }
}

/// Whether what happened on another host is about the probe alone.
fn is_about(event: &Event, probe: Host, is_its: &impl Fn(Owner) -> bool) -> bool {
    match &event.kind {
        EventKind::Passed { by, .. } => by.client == probe,
        kind => kind.owner().is_some_and(is_its),
    }
}
