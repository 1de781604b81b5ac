//! The part of a long chain that a terminal shows.

use std::{cmp::Reverse, collections::VecDeque};

use super::Link;

/// The most links of a chain that is shown whole.
const WHOLE_MAX: usize = 12;

/// The most faults of a longer chain that are shown, and the most events.
const FAULTS_MAX: usize = 6;
const EVENTS_MAX: usize = 6;

/// Returns the indexes of the links to show, in order: the confirmed faults, or else the faults
/// nearest to the end, with those that are `aside` last; and the nearest events. A storm has dozens
/// of faults in force between two events, and few of them contribute to the result.
pub(super) fn nearest(links: &[Link], confirmed: &[usize], aside: impl Fn(usize) -> bool) -> Vec<usize> {
    if links.len() <= WHOLE_MAX {
        return (0..links.len()).collect();
    }
    let distances = distances(links);
    let mut places: Vec<usize> = (0..links.len()).collect();
    // Of two links at the same distance, the later one comes first.
    let is_aside = |place: usize| links[place].fault.is_some_and(&aside);
    places.sort_by_key(|place| (is_aside(*place), distances[*place], Reverse(*place)));
    let (faults, events): (Vec<usize>, Vec<usize>) =
        places.into_iter().partition(|place| links[*place].fault.is_some());
    let is_confirmed = |place: &usize| links[*place].fault.is_some_and(|fault| confirmed.contains(&fault));
    let is_any = faults.iter().any(is_confirmed);
    let faults = faults.into_iter().filter(|place| !is_any || is_confirmed(place)).take(FAULTS_MAX);
    let mut shown: Vec<usize> = faults.chain(events.into_iter().take(EVENTS_MAX)).collect();
    shown.sort_unstable();
    shown
}

/// Returns the distance of each link from the end: the number of steps to a link that caused no
/// other.
fn distances(links: &[Link]) -> Vec<usize> {
    let mut distances = vec![usize::MAX; links.len()];
    let is_cause = |place: usize| links.iter().any(|link| link.after.contains(&place));
    let mut todo: VecDeque<(usize, usize)> =
        (0..links.len()).filter(|place| !is_cause(*place)).map(|place| (place, 0)).collect();
    while let Some((place, distance)) = todo.pop_front() {
        if distances[place] == usize::MAX {
            distances[place] = distance;
            todo.extend(links[place].after.iter().map(|cause| (*cause, distance + 1)));
        }
    }
    distances
}

#[cfg(test)]
mod tests {
    use lockstorm_world::time::True;

    use super::*;

    /// Returns events, each caused by the one before it and by the given number of faults.
    fn chain(faults_of_events: &[usize]) -> Vec<Link> {
        let mut links: Vec<Link> = Vec::new();
        let (mut last, mut faults) = (None, 0);
        let link = |place: usize, fault, after| Link {
            at: True::from_millis(i64::try_from(place).expect("few")),
            host: None,
            fault,
            words: String::new(),
            after,
        };
        for count in faults_of_events {
            let begin = links.len();
            for place in begin..begin + count {
                links.push(link(place, Some(faults), Vec::new()));
                faults += 1;
            }
            let after = (begin..links.len()).chain(last).collect();
            last = Some(links.len());
            links.push(link(links.len(), None, after));
        }
        links
    }

    #[test]
    fn a_short_chain_is_whole() {
        let links = chain(&[2, 4, 3]);
        assert_eq!(nearest(&links, &[], |_| false), (0..12).collect::<Vec<_>>());
    }

    #[test]
    fn of_a_long_chain_the_nearest_links_are_shown() {
        let links = chain(&[9, 4, 3]);
        // All three events, the three faults of the last one, and the latest three faults of the
        // one before.
        assert_eq!(nearest(&links, &[], |_| false), [9, 11, 12, 13, 14, 15, 16, 17, 18]);
        // Faults of others come last.
        let done_to_others = |fault: usize| fault >= 10;
        assert_eq!(nearest(&links, &[], done_to_others), [4, 5, 6, 7, 8, 9, 10, 14, 18]);
        let events = chain(&[0; 20]);
        assert_eq!(nearest(&events, &[], |_| false), [14, 15, 16, 17, 18, 19]);
    }

    #[test]
    fn of_faults_that_are_confirmed_the_others_are_left_out() {
        let links = chain(&[9, 4, 3]);
        assert_eq!(nearest(&links, &[0, 15, 99], |_| false), [0, 9, 14, 17, 18]);
        assert_eq!(nearest(&links, &[99], |_| false), nearest(&links, &[], |_| false));
    }
}
