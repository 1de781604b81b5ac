//! The words of L2 where no belief overlapped.

use super::overlap::apart;
use crate::judge::checker::{evidence::Evidence, questions::l2_belief::Beliefs, wording::Reason};

impl Reason for Beliefs {
    fn sentence(&self, evidence: &Evidence<'_>) -> String {
        let nothing = || evidence.no_owner("No owner ever believed it held the lock.");
        apart(&self.0, "belief", nothing)
    }
}
