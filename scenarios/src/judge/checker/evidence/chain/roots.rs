//! The roots of a chain: the events from which it is followed. They show what the owners of a
//! witness have and did at its instants.

use std::collections::BTreeSet;

use lockstorm_world::time::True;

use super::{Chain, ends, has};
use crate::judge::history::{Call, Event, EventKind, Host, HostKind, LockKind, Op, Outcome, Owner, Role};

/// The most grants of a rate limiter that a chain follows; the latest are kept.
const PASSED_MAX: usize = 6;

impl Chain<'_> {
    /// Returns the roots: the holds of these owners at `from` and their writes until `until`. For
    /// an owner without a hold it adds the hold that the owner waits for, and the faults and clocks
    /// that kept it waiting. For a witness that does not concern two holds at once it adds the
    /// events at its instants. A witness without owners concerns the owners that waited then, or
    /// those whose keys remained.
    pub(super) fn roots(&mut self, owners: &[Owner], from: True, until: True) -> Vec<usize> {
        let history = self.history;
        let end = history.events.partition_point(|event| event.at <= from);
        let late = history.events.partition_point(|event| event.at <= until);
        let found = if owners.is_empty() { self.concerned(end, from) } else { Vec::new() };
        let owners = if owners.is_empty() { &found[..] } else { owners };
        self.is_of_one = owners.len() == 1;
        let earliest = owners.iter().filter_map(|owner| self.call(end, *owner)).min().unwrap_or(0);
        // The chain leaves out the causes of the first hold.
        let granted =
            |owner: &Owner| self.last(end, |event| self.grants(event, *owner)).unwrap_or(usize::MAX);
        let first = owners.iter().min_by_key(|owner| granted(owner)).and_then(|owner| self.call(end, *owner));
        let (mut roots, mut have_nothing) = (Vec::new(), owners.is_empty());
        self.begin = first.unwrap_or(0);
        for owner in owners {
            let of_owner = self.of_owner(*owner, end, late, from);
            let acted = self.acted(*owner, end);
            let has = of_owner.iter().any(|root| acted.is_none_or(|acted| *root > acted));
            roots.extend(of_owner);
            if !has {
                let acted = self.acted(*owner, late);
                self.begin = self.begin.min(earliest);
                have_nothing = true;
                roots.extend(acted);
                roots.extend(self.lost_place(*owner, end));
                roots.extend(self.turned_away(*owner, late));
                self.kept_waiting(*owner, acted, from, until);
            }
        }
        if owners.len() < 2 || have_nothing {
            roots.extend(self.at_instants(owners, [from, until]));
            roots.extend(self.latest(end, late));
        }
        if have_nothing {
            self.find_faults_on_nodes(&roots, end, from, until);
        }
        if let [owner] = owners {
            roots.extend(self.carried_over(*owner, late));
            self.find_clock_of_lease(*owner, late, until);
        }
        roots
    }

    /// Returns an owner's latest belief or call, the grants since its call, the ends of its holds,
    /// and its last write.
    fn of_owner(&mut self, owner: Owner, end: usize, late: usize, from: True) -> Vec<usize> {
        let history = self.history;
        let of = |event: &Event| event.kind.lock() == Some(self.lock) && event.kind.owner() == Some(owner);
        let client = history.client_of(owner);
        let called = self.call(end, owner).unwrap_or(0);
        let belief = self.last(end, |event| of(event) && event.host == client);
        let mut roots: Vec<usize> = belief.into_iter().collect();
        for node in history.header.hosts_of(HostKind::Node) {
            let on = |event: &Event| of(event) && event.host == node;
            let granted = |event: &Event| on(event) && has(event);
            roots.extend(self.last(end, granted).filter(|at| *at > called));
            // A witness about one hold may concern its end, which comes after `from`.
            let end = if self.is_of_one { late } else { end };
            roots.extend(self.last(end, |event| on(event) && ends(event)).filter(|at| *at > self.begin));
        }
        let wrote = |event: &Event| of(event) && matches!(event.kind, EventKind::Write { .. });
        roots.extend(self.last(late, wrote).filter(|at| *at > called));
        // The owner's belief or request lasted until `from`, unless the owner had released the lock
        // or stopped believing.
        let is_over = |at: usize| {
            let kind = &history.events[at].kind;
            matches!(kind, EventKind::Disbelieves { .. } | EventKind::Invoke { call: Call::Release, .. })
        };
        if let Some(belief) = belief.filter(|belief| !is_over(*belief)) {
            self.find_faults(&[client], history.events[belief].at, from, belief);
            self.find_clock_of_belief(belief, from);
        }
        roots
    }

    /// Returns the promotion since the owner's last grant in the group of the granting node: the
    /// new master has the hold as far as it was replicated.
    fn carried_over(&self, owner: Owner, before: usize) -> Option<usize> {
        let authority = &self.history.lock(self.lock).authority;
        let granted = self.last(before, |event| self.grants(event, owner))?;
        let group = authority.group_of(self.history.events[granted].host);
        let promoted = |event: &Event| {
            event.kind == EventKind::Became { role: Role::Master } && authority.group_of(event.host) == group
        };
        self.last(before, promoted).filter(|promoted| *promoted > granted)
    }

    /// Returns the owner's last step towards a hold: a call, a wait or a wake-up.
    fn acted(&self, owner: Owner, before: usize) -> Option<usize> {
        let acts = |event: &Event| {
            let asks = match event.kind {
                EventKind::Invoke { call, .. } => !matches!(call, Call::Release | Call::Extend { .. }),
                EventKind::Waiting { .. } | EventKind::Woken { .. } => true,
                _ => false,
            };
            asks && self.is_about(event, owner)
        };
        self.last(before, acts)
    }

    /// Returns the latest error of the owner's calls about the lock, if no grant to the owner
    /// followed.
    fn turned_away(&self, owner: Owner, before: usize) -> Option<usize> {
        let events = &self.history.events;
        let granted = self.last(before, |event| self.grants(event, owner)).unwrap_or(0);
        let fails = |event: &Event| match &event.kind {
            EventKind::Return { op, outcome: Outcome::Failed { .. } } => {
                event.host == self.history.client_of(owner) && self.is_call(*op, &[owner])
            }
            _ => false,
        };
        events[granted..before].iter().rposition(fails).map(|at| granted + at)
    }

    /// Returns the event by which the owner lost the queue place that it had since its call: its
    /// node dropped it, or a node without it took over. `None` if the owner left the queue because
    /// its turn had come.
    fn lost_place(&self, owner: Owner, before: usize) -> Option<usize> {
        let events = &self.history.events;
        let had = |at: &usize| self.is_queue(&events[*at]) && self.waiters(*at).contains(&owner);
        let had = (0..before).rev().find(had).filter(|had| Some(*had) > self.call(before, owner))?;
        let lost = (had + 1..before).find(|at| self.is_queue(&events[*at]))?;
        (!events[had..=lost].iter().any(|event| self.grants(event, owner))).then_some(lost)
    }

    /// Adds the faults on the client of a waiting owner, on the clients that it waited for and on
    /// the lock's nodes, and the client's clock if it was wrong.
    fn kept_waiting(&mut self, owner: Owner, acted: Option<usize>, from: True, until: True) {
        let Some(acted) = acted else { return };
        let since = self.history.events[acted].at.min(from);
        let owners = self.waits_for(owner, from).chain([owner]);
        let mut hosts: Vec<Host> = owners.map(|owner| self.history.client_of(owner)).collect();
        hosts.extend(self.nodes());
        self.find_faults(&hosts, since, until, acted);
        // A request without a reply may be held up by a command such as CLIENT PAUSE.
        if !matches!(self.history.events[acted].kind, EventKind::Waiting { .. }) {
            let nodes: Vec<Host> = self.nodes().collect();
            self.find_commands_before(&nodes, until, acted);
        }
        self.find_clock_of_wait(owner, acted, until);
    }

    /// Returns the owners that an owner waits for at an instant: the head of the queue, for which a
    /// free lock is reserved, and the latest holder.
    fn waits_for(&self, owner: Owner, at: True) -> impl Iterator<Item = Owner> {
        let end = self.history.events.partition_point(|event| event.at <= at);
        let queue = self.last(end, |event| self.is_queue(event));
        let head = queue.and_then(|queue| self.waiters(queue).first().copied());
        let holder = self.in_the_way(end, owner).and_then(|grant| self.history.events[grant].kind.owner());
        head.into_iter().chain(holder).filter(move |other| *other != owner)
    }

    /// Adds the faults on the lock's nodes since the last root.
    fn find_faults_on_nodes(&mut self, roots: &[usize], end: usize, from: True, until: True) {
        let Some(last) = roots.iter().copied().filter(|root| *root < end).max() else { return };
        let nodes: Vec<Host> = self.nodes().collect();
        let since = self.history.events[last].at.min(from);
        self.find_faults(&nodes, since, until, last);
    }

    /// Returns the events about the lock at these instants that concern these owners or no owner.
    /// Without owners, events of all owners count.
    fn at_instants(&self, owners: &[Owner], instants: [True; 2]) -> Vec<usize> {
        let (events, lock) = (&self.history.events, self.lock);
        let about = |event: &Event| match event.kind.owner() {
            _ if event.kind.lock() != Some(lock) => {
                matches!(event.kind, EventKind::Return { op, .. } if self.is_call(op, owners))
            }
            Some(owner) => owners.contains(&owner) || owners.is_empty(),
            None => !matches!(event.kind, EventKind::Serves { .. }),
        };
        let mut found = BTreeSet::new();
        for at in instants {
            let places =
                events.partition_point(|event| event.at < at)..events.partition_point(|event| event.at <= at);
            found.extend(places.filter(|place| about(&events[*place])));
        }
        found.into_iter().collect()
    }

    fn is_call(&self, op: Op, owners: &[Owner]) -> bool {
        let call = |event: &Event| match event.kind {
            EventKind::Invoke { op: of, lock, owner, .. } => {
                of == op && lock == self.lock && owners.contains(&owner)
            }
            _ => false,
        };
        self.history.events.iter().any(call)
    }

    /// Returns the latest events that concern the lock as a whole: the end that freed it, the
    /// message, the count, the permits in one window.
    fn latest(&mut self, end: usize, late: usize) -> Vec<usize> {
        let events = &self.history.events;
        let of_lock = |event: &Event| event.kind.lock() == Some(self.lock);
        let mut found: Vec<usize> =
            self.last(end, |event| of_lock(event) && ends(event)).into_iter().collect();
        let published = |event: &Event| of_lock(event) && matches!(event.kind, EventKind::Published { .. });
        let freed = found.last().copied().unwrap_or(0);
        found.extend(self.last(late, published).filter(|at| *at >= freed));
        found.extend(
            self.last(late, |event| of_lock(event) && matches!(event.kind, EventKind::Counted { .. })),
        );
        if let LockKind::Rate { window_ms, .. } = self.history.lock(self.lock).kind {
            let passes =
                |at: &usize| of_lock(&events[*at]) && matches!(events[*at].kind, EventKind::Passed { .. });
            let passed: Vec<usize> = (0..end).rev().filter(passes).take(PASSED_MAX).collect();
            if let [newest, .., oldest] = passed[..] {
                self.find_clock_of_window(oldest, newest, window_ms);
            }
            found.extend(passed);
        }
        found
    }

    /// Returns the owner that a node granted the lock last, or came back with.
    fn holder(&self, before: usize, node: Host) -> Option<Owner> {
        let grants = |event: &Event| has(event) && event.host == node && event.kind.lock() == Some(self.lock);
        self.history.events[self.last(before, grants)?].kind.owner()
    }

    /// Returns the owners that a witness without owners concerns: those that waited at its instant,
    /// or those that left a key at the end.
    fn concerned(&self, end: usize, from: True) -> Vec<Owner> {
        let history = self.history;
        let mut waiting = BTreeSet::new();
        for event in history.events[..end].iter().filter(|event| event.kind.lock() == Some(self.lock)) {
            match event.kind {
                EventKind::Waiting { owner, .. } => _ = waiting.insert(owner),
                EventKind::Believes { owner, .. } | EventKind::Granted { owner, .. } => {
                    _ = waiting.remove(&owner)
                }
                _ => {}
            }
        }
        if from == history.header.end {
            let left = history.keys_left.iter().filter(|key| key.lock == self.lock);
            waiting = left.filter_map(|key| key.owner.or_else(|| self.holder(end, key.node))).collect();
        }
        waiting.into_iter().collect()
    }
}
