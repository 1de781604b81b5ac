//! A history without the events of lockstorm's own client. That client only serves the question of
//! `progress`; its actions are no evidence of how the clients on trial share a lock.

use std::borrow::Cow;

use super::{Event, EventKind, History, Host, HostKind, Owner};

impl History {
    /// Returns the host of lockstorm's own client, if the header lists one.
    pub fn probe(&self) -> Option<Host> {
        self.header.hosts_of(HostKind::Probe).next()
    }

    /// Returns the history without the calls, grants, holds, queue places, commands and remaining
    /// keys of lockstorm's own client. Effects of that client on the holds of other owners stay.
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

    /// Removes lockstorm's own client if it never asked for a lock. Its host must be the last.
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

/// Returns true if the event of another host concerns the probe alone.
fn is_about(event: &Event, probe: Host, is_its: &impl Fn(Owner) -> bool) -> bool {
    match &event.kind {
        EventKind::Passed { by, .. } => by.client == probe,
        kind => kind.owner().is_some_and(is_its),
    }
}
