//! Which node of a cluster answered for the slot of a lock, and when.

use lockstorm_sim::time::True;

use super::words;
use crate::history::{EventKind, History, Host, Life, Lock};

/// A node answered for the slot of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Service {
    node: Host,
    from: True,
    until: True,
}

/// When which node answered for the slot of a lock, in the order of the beginnings.
fn services(history: &History, lock: Lock) -> Vec<Service> {
    let mut services: Vec<Service> = Vec::new();
    // Not over before the run is.
    let open = True::MAX;
    for event in &history.events {
        let answers = match event.kind {
            EventKind::Serves { lock: of, how } if of == lock => how.answers(),
            EventKind::Life { life: Life::Crashed } => false,
            _ => continue,
        };
        let last = services.iter_mut().find(|service| service.node == event.host && service.until == open);
        match last {
            Some(service) if !answers => service.until = event.at,
            None if answers => services.push(Service { node: event.host, from: event.at, until: open }),
            _ => {}
        }
    }
    services
}

/// In a sentence, when two masters answered for the slot of a lock at once within a stretch of time: the last such time.
pub(super) fn two_masters(history: &History, lock: Lock, from: True, until: True) -> Option<String> {
    let services = services(history, lock);
    let mut both = Vec::new();
    for (at, one) in services.iter().enumerate() {
        for other in services.iter().skip(at + 1) {
            let (begin, end) = (one.from.max(other.from), one.until.min(other.until));
            if begin < end && begin <= until && end >= from {
                both.push((begin, end, one.node, other.node));
            }
        }
    }
    let (begin, end, one, other) = both.into_iter().max()?;
    let end = if end == True::MAX { "on".to_owned() } else { format!("to {}", words::instant(end)) };
    Some(format!(
        "From {} {end} two masters answered for its slot, {} and {}.",
        words::instant(begin),
        history.host_name(one),
        history.host_name(other)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{LockKind, Serving, story::Story};

    #[test]
    fn two_masters_of_a_slot_are_told_with_their_time() {
        let serves = |how| EventKind::Serves { lock: Lock(0), how };
        let story = || Story::failover(LockKind::Exclusive).at(0).tell("m", serves(Serving::Whole));
        let told = |story: Story, from, until| {
            two_masters(&story.ends(9_000), Lock(0), True::from_millis(from), True::from_millis(until))
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
}
