//! The words of `windows` where each double grant is explained.

use super::overlap::apart;
use crate::judge::checker::{
    evidence::{Evidence, words},
    questions::windows::Because,
    wording::Reason,
};

impl Reason for Because {
    fn sentence(&self, _evidence: &Evidence<'_>) -> String {
        match self {
            Self::Promises(promises) => apart(promises, "promise", || {
                "No lock that a group of several nodes decides was granted.".to_owned()
            }),
            Self::Explained { grants, windows } => {
                let parts = windows.iter();
                let parts: Vec<String> =
                    parts.map(|(name, count)| format!("{} {count}", name.replace('_', " "))).collect();
                format!("{}: {}.", words::many(*grants, "double grant"), parts.join(", "))
            }
        }
    }
}
