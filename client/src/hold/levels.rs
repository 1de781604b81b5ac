//! Compares the level count in Redis with the levels that the client knows, to decide if a request
//! without a reply was executed.

use std::time::Duration;

/// The number of levels that Redis counts for an owner at one part of a key, as far as the client
/// knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Levels {
    /// The number that the server must have.
    pub(crate) least: usize,
    /// The same plus those that have ended by the client's clock but that the server may still
    /// have. The server's lease begins when it gets the request; the client's begins when it sends
    /// it.
    pub(crate) most: usize,
}

impl Levels {
    /// Decides by the `count` that followed if a request for one more level was executed. `None` if
    /// the difference to `least` may be a level that has ended.
    fn have_grown(self, count: u64) -> Option<bool> {
        match count {
            _ if count <= self.least as u64 => Some(false),
            _ if count > self.most as u64 => Some(true),
            _ => None,
        }
    }
}

/// The conclusion about a request without a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told<F> {
    Obeyed(F),
    NotObeyed,
    /// Undecided so far. Later answers may decide, once the old levels are gone.
    Unclear,
}

impl<F> Told<F> {
    pub(crate) fn map<G>(self, found: impl FnOnce(F) -> G) -> Told<G> {
        match self {
            Self::Obeyed(what) => Told::Obeyed(found(what)),
            Self::NotObeyed => Told::NotObeyed,
            Self::Unclear => Told::Unclear,
        }
    }
}

/// The client's knowledge of an owner's levels when it probes a request for one more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    /// The levels before the request, at each part that was requested.
    pub(crate) levels: Vec<Levels>,
    /// The longest time for which the ended levels may remain, from the queries on.
    pub(crate) old_left: Duration,
    /// The shortest time for which the requested level would remain, from the answers on.
    pub(crate) new_left: Duration,
}

impl Known {
    /// Decides by the counts at each part and, if these do not decide, by the rest of the lease.
    /// `None` if the number of parts differs.
    pub(crate) fn told(&self, counts: &[u64], left: Duration) -> Option<Told<Duration>> {
        if counts.len() != self.levels.len() {
            return None;
        }
        let grown: Vec<_> =
            self.levels.iter().zip(counts).map(|(levels, count)| levels.have_grown(*count)).collect();
        // Either all parts are granted or none.
        Some(if grown.contains(&Some(false)) {
            Told::NotObeyed
        } else if grown.contains(&Some(true)) || left > self.old_left {
            Told::Obeyed(left)
        } else if left < self.new_left {
            Told::NotObeyed
        } else {
            Told::Unclear
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn what_a_count_tells() {
        let (obeyed, not, unclear) = (Some(true), Some(false), None);
        // The expected result for each count from 0 on.
        for (least, most, told) in [
            (0, 0, &[not, obeyed, obeyed][..]),
            (1, 1, &[not, not, obeyed]),
            (0, 1, &[not, unclear, obeyed]),
            (0, 2, &[not, unclear, unclear, obeyed]),
            (1, 2, &[not, not, unclear, obeyed]),
        ] {
            for (count, told) in told.iter().enumerate() {
                assert_eq!(
                    Levels { least, most }.have_grown(count as u64),
                    *told,
                    "{least}..{most}: {count}"
                );
            }
        }
    }

    #[test]
    fn where_the_counts_do_not_tell_the_rest_of_the_lease_may() {
        let levels = |most| Levels { least: 0, most };
        let obeyed = |ms| Told::Obeyed(MS(ms));
        // The ended level remains for at most 500 ms, the requested one for at least 900 ms.
        for (name, most, counts, left, told) in [
            ("shorter than a new one", &[1][..], &[1][..], 400, Told::NotObeyed),
            ("longer than an old one", &[1], &[1], 900, obeyed(900)),
            ("gone between the questions", &[1], &[1], 0, Told::NotObeyed),
            ("one part tells that it was", &[1, 0], &[1, 1], 400, obeyed(400)),
            ("one part tells that it was not", &[1, 0], &[1, 0], 900, Told::NotObeyed),
            ("a part is neither", &[1, 1], &[1, 1], 900, obeyed(900)),
        ] {
            let levels = most.iter().copied().map(levels).collect();
            let known = Known { levels, old_left: MS(500), new_left: MS(900) };
            assert_eq!(known.told(counts, MS(left)), Some(told), "{name}");
        }
    }

    /// As long as the old key may still exist, the reply does not show if the key is old or new.
    /// Later the key must be new.
    #[test]
    fn neither_may_tell_yet() {
        let known = |old_left, new_left| Known {
            levels: vec![Levels { least: 0, most: 1 }],
            old_left: MS(old_left),
            new_left: MS(new_left),
        };
        for left in [300, 500] {
            assert_eq!(known(500, 300).told(&[1], MS(left)), Some(Told::Unclear), "{left}");
        }
        assert_eq!(known(0, 0).told(&[1], MS(1)), Some(Told::Obeyed(MS(1))));
    }

    #[test]
    fn counts_of_other_parts_tell_nothing() {
        let known = Known { levels: Vec::new(), old_left: MS(0), new_left: MS(0) };
        assert_eq!(known.told(&[1], MS(1)), None);
    }
}
