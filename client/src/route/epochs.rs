//! Which of several configurations of a deployment is the newest.
//!
//! Sentinels and nodes of a cluster that are cut off from the others go on telling what they knew.
//! Every change of a master has a higher epoch than the one before, so that a client that has been
//! told the newer one can tell.

use std::time::Duration;

use crate::env::Monotonic;

/// How long all that can be asked must know an older configuration until it is believed: the
/// deployment was set up anew, or the only one that knew the newer one is gone for good.
const DOUBT: Duration = Duration::from_secs(30);

/// The newest epoch that this client was told.
#[derive(Default)]
pub(super) struct Epochs {
    newest: u64,
    /// Since when a majority knows an older one.
    doubted_since: Option<Monotonic>,
}

impl Epochs {
    /// Whether to believe a configuration of `epoch`, the newest one of those that answer at `now`.
    /// `by_most` when they are a majority: in a partition it is on their side that a newer one
    /// would be made.
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

    /// The newest epoch that was believed.
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    /// Whether those that were asked last know an older one.
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
            // One that was cut off.
            (3, 3, false, false),
            (100, 3, false, false),
            // The others may hear of the newer one yet.
            (101, 3, true, false),
            (130, 3, true, false),
            // The majority was not there all the time.
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
