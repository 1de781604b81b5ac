//! Redlock: the same key on independent masters, granted once a majority of them has granted it.

use super::Object;
use crate::judge::history::{self, Authority, Drift, Host};

#[derive(Debug)]
pub(super) struct Redlock;

impl Object for Redlock {
    fn promises(&self) -> history::LockKind {
        history::LockKind::Exclusive
    }

    fn needs_quorum(&self) -> bool {
        true
    }

    fn authority(&self, groups: Vec<Vec<Host>>) -> Authority {
        Authority { quorum: groups.len() / 2 + 1, groups, drift: Drift::REDLOCK }
    }
}
