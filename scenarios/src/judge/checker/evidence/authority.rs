//! The masters of a lock among the nodes of its group, over time.

use lockstorm_world::time::True;

use crate::judge::history::{EventKind, History, Host, Life, Lock, Role};

/// A period in which a node of a lock's group was up and a master of the lock, and in a cluster
/// served the lock's slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::judge::checker) struct Service {
    pub(in crate::judge::checker) node: Host,
    /// The number of the event that made the node a master; `None` for a master from the beginning.
    /// A node that comes back from a crash as the master it was has not been promoted again.
    pub(in crate::judge::checker) promoted: Option<usize>,
    /// The number of the event with which the period began; `None` for the beginning of the run.
    pub(in crate::judge::checker) from: Option<usize>,
    /// The number of the event with which the period ended; `None` for the end of the run.
    pub(in crate::judge::checker) until: Option<usize>,
}

impl Service {
    pub(in crate::judge::checker) fn is_on(&self, number: usize) -> bool {
        self.from.is_none_or(|from| from <= number) && self.until.is_none_or(|until| until > number)
    }

    pub(in crate::judge::checker) fn begin(&self, history: &History) -> True {
        self.from.map_or(True::ZERO, |from| history.events[from].at)
    }

    pub(in crate::judge::checker) fn end(&self, history: &History) -> True {
        self.until.map_or(history.header.end, |until| history.events[until].at)
    }
}

/// Returns true if one group of several nodes decides the lock; one of them at a time should be its
/// master.
pub(in crate::judge::checker) fn is_replicated(history: &History, lock: Lock) -> bool {
    matches!(&history.lock(lock).authority.groups[..], [nodes] if nodes.len() > 1)
}

/// Returns the periods in which nodes were masters of a lock that [is replicated](is_replicated). A
/// node that never records its role is a master from the beginning, except in a cluster.
pub(in crate::judge::checker) fn services(history: &History, lock: Lock) -> Vec<Service> {
    let [nodes] = &history.lock(lock).authority.groups[..] else { return Vec::new() };
    let in_cluster = history.is_in_cluster(lock);
    nodes.iter().flat_map(|node| services_of(history, lock, *node, in_cluster)).collect()
}

fn services_of(history: &History, lock: Lock, node: Host, in_cluster: bool) -> Vec<Service> {
    let mut services = Vec::new();
    let (mut up, mut is_master, mut answers, mut promoted) = (true, !in_cluster, !in_cluster, None);
    let mut current = is_master.then_some(Service { node, promoted, from: None, until: None });
    for (number, event) in history.events.iter().enumerate().filter(|(_, event)| event.host == node) {
        let was_master = is_master;
        match event.kind {
            EventKind::Serves { lock: of, how } if of == lock => {
                (is_master, answers) = (how.is_master(), how.answers());
            }
            EventKind::Became { role } if !in_cluster => {
                is_master = role == Role::Master;
                answers = is_master;
            }
            EventKind::Life { life: Life::Crashed } => {
                up = false;
                // A node of a cluster records its role again when it comes back.
                (is_master, answers) = (is_master && !in_cluster, answers && !in_cluster);
            }
            EventKind::Life { life: Life::Started } => up = true,
            _ => continue,
        }
        if is_master && !was_master {
            promoted = Some(number);
        }
        let is_on = up && answers;
        if !is_on && let Some(service) = current.take() {
            services.push(Service { until: Some(number), ..service });
        } else if is_on && current.is_none() {
            current = Some(Service { node, promoted, from: Some(number), until: None });
        }
    }
    services.extend(current);
    services
}

/// A period in which two nodes were masters of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::judge::checker) struct TwoMasters {
    pub(in crate::judge::checker) from: True,
    pub(in crate::judge::checker) until: True,
    /// True if the period ended before the run did.
    pub(in crate::judge::checker) is_over: bool,
    pub(in crate::judge::checker) nodes: [Host; 2],
}

/// Returns the periods in which a replicated lock had two masters.
pub(in crate::judge::checker) fn two_masters(history: &History, lock: Lock) -> Vec<TwoMasters> {
    if !is_replicated(history, lock) {
        return Vec::new();
    }
    let services = services(history, lock);
    let mut all = Vec::new();
    for (at, one) in services.iter().enumerate() {
        for other in services.iter().skip(at + 1).filter(|other| other.node != one.node) {
            let from = one.begin(history).max(other.begin(history));
            let until = one.end(history).min(other.end(history));
            if from < until {
                let is_over = one.until.or(other.until).is_some();
                all.push(TwoMasters { from, until, is_over, nodes: [one.node, other.node] });
            }
        }
    }
    all
}

/// Returns the last period between `from` and `until` in which a replicated lock had two masters.
pub(in crate::judge::checker) fn last_two_masters(
    history: &History,
    lock: Lock,
    from: True,
    until: True,
) -> Option<TwoMasters> {
    let meanwhile = |two: &TwoMasters| two.from <= until && two.until >= from;
    two_masters(history, lock).into_iter().filter(meanwhile).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{
        checker::{Evidence, wording::overlap::two_masters_in_words},
        history::{LockKind, Serving, story::Story},
    };

    #[test]
    fn two_masters_of_a_slot_are_told_with_their_time() {
        let serves = |how| EventKind::Serves { lock: Lock(0), how };
        let story = || Story::failover(LockKind::Exclusive).at(0).tell("m", serves(Serving::Whole));
        let told = |story: Story, from, until| {
            two_masters_in_words(
                &story.ends(9_000),
                Lock(0),
                True::from_millis(from),
                True::from_millis(until),
            )
        };
        let one =
            story().at(1_000).tell("m", serves(Serving::Closed)).at(1_000).tell("r", serves(Serving::Whole));
        assert_eq!(told(one, 0, 5_000), None);
        let two = || story().at(1_000).tell("r", serves(Serving::Whole));
        let sentence =
            |end: &str| Some(format!("From 1.000 s {end} two masters answered for its slot, m and r."));
        assert_eq!(told(two(), 0, 5_000), sentence("on"));
        let closed = || two().at(3_000).tell("m", serves(Serving::Closed));
        assert_eq!(told(closed(), 0, 5_000), sentence("to 3.000 s"));
        assert_eq!(told(closed(), 3_001, 5_000), None);
        assert_eq!(told(closed(), 0, 999), None);
        let crashed = two().at(2_000).tell("m", EventKind::Life { life: Life::Crashed });
        assert_eq!(told(crashed, 0, 5_000), sentence("to 2.000 s"));
    }

    /// A node is a master from the beginning unless it records another role, and again when it
    /// comes back after a crash.
    #[test]
    fn two_masters_of_a_group_are_told_as_those_of_a_slot() {
        let group = || Story::failover(LockKind::Exclusive).became("r", Role::Replica);
        let promoted = || group().at(1_000).became("r", Role::Master);
        let told = |story: Story| {
            two_masters_in_words(
                &story.ends(9_000),
                Lock(0),
                True::from_millis(500),
                True::from_millis(5_000),
            )
        };
        let sentence = |time: &str| Some(format!("From {time} there were two masters, m and r."));
        assert_eq!(told(group()), None);
        assert_eq!(told(promoted()), sentence("1.000 s on"));
        let demoted = || promoted().at(2_000).became("m", Role::Replica);
        assert_eq!(told(demoted()), sentence("1.000 s to 2.000 s"));
        let history = demoted().ends(9_000);
        let shown = Evidence::of(&history).two_masters(Lock(0));
        assert_eq!(shown, [(True::from_millis(1_000), True::from_millis(2_000))]);
        let crashed = || promoted().at(2_000).life("m", Life::Crashed);
        assert_eq!(told(crashed()), sentence("1.000 s to 2.000 s"));
        assert_eq!(told(crashed().at(3_000).life("m", Life::Started)), sentence("3.000 s on"));
        // A replica that comes back after a crash is still a replica.
        let replica = group().at(1_000).life("r", Life::Crashed).at(2_000).life("r", Life::Started);
        assert_eq!(told(replica), None);
        // In a majority each node is a master, but none decides alone.
        let majority = Story::quorum().ends(9_000);
        assert_eq!(two_masters_in_words(&majority, Lock(0), True::ZERO, True::from_millis(5_000)), None);
    }
}
