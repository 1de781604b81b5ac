//! The words of L1 where no promise was made or none overlapped.

use super::overlap::apart;
use crate::judge::checker::{
    evidence::{Evidence, words},
    questions::l1_server::{Because, NoPromise},
    wording::Reason,
};

impl Reason for Because {
    fn sentence(&self, evidence: &Evidence<'_>) -> String {
        match self {
            Self::NoPromise(none) => none.sentence(evidence),
            Self::Promises(promises) => apart(promises, "promise", String::new),
        }
    }
}

impl Reason for NoPromise {
    fn sentence(&self, evidence: &Evidence<'_>) -> String {
        let times = words::many(self.granted, "time");
        match (self.granted, self.lasting) {
            (0, _) => evidence.no_owner("No server ever granted the lock."),
            (_, 0) if self.alone => {
                format!("Servers granted the lock {times}, each time with a lease of no length.")
            }
            (_, 0) => format!(
                "Servers granted the lock {times}, each time with a lease of which the allowance for drift leaves nothing."
            ),
            _ if self.alone => {
                format!("Servers granted the lock {times}, and each grant was released at once.")
            }
            _ => {
                format!(
                    "Servers granted the lock {times}, but never so many at one instant as a quorum needs."
                )
            }
        }
    }
}
