//! Decides which of several configurations of a deployment is the newest.
//!
//! Sentinels and cluster nodes that are cut off from the others keep reporting an old
//! configuration. Each change of a master raises the epoch, so a client that has seen the newer
//! epoch recognizes the old report.

use std::time::Duration;

use crate::env::Monotonic;

/// The time for which a majority must report an older configuration until it is believed. The
/// deployment was then set up again, or the only node with the newer configuration is gone for
/// good.
const DOUBT: Duration = Duration::from_secs(30);

/// The newest epoch that this client has accepted.
#[derive(Default)]
pub(super) struct Epochs {
    newest: u64,
    /// The time since which a majority reports an older epoch.
    doubted_since: Option<Monotonic>,
}

impl Epochs {
    /// Decides if a configuration of `epoch` is believed: the newest epoch among those that answer
    /// at `now`. `by_most` is true if a majority has answered: in a partition, a newer
    /// configuration would be made on the majority's side.
    pub(super) fn believe(&mut self, epoch: u64, by_most: bool, now: Monotonic) -> bool {
        if epoch < self.newest {
            if !by_most {
                self.doubted_since = None;
                return false;
            }
            let since = *self.doubted_since.get_or_insert(now);
            if now - since < DOUBT {
                return false;
            }
        }
        self.newest = epoch;
        self.doubted_since = None;
        true
    }

    /// Returns the newest epoch that was believed.
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    /// Returns true if a majority reported an older epoch last time.
    pub(super) fn are_doubted(&self) -> bool {
        self.doubted_since.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_configuration_is_believed_when_a_majority_has_it_for_long() {
        let mut epochs = Epochs::default();
        for (secs, epoch, by_most, believed) in [
            (0, 3, false, true),
            (1, 4, true, true),
            (2, 4, false, true),
            // A node that was cut off.
            (3, 3, false, false),
            (100, 3, false, false),
            // The others may still learn of the newer configuration.
            (101, 3, true, false),
            (130, 3, true, false),
            // The older reports were not from a majority all the time, so the time starts again.
            (131, 3, false, false),
            (132, 3, true, false),
            (161, 3, true, false),
            (162, 3, true, true),
            (163, 3, false, true),
        ] {
            let now = Monotonic(Duration::from_secs(secs));
            assert_eq!(epochs.believe(epoch, by_most, now), believed, "at {secs} s: {epoch}");
        }
        assert_eq!(epochs.newest(), 3);
    }
}
