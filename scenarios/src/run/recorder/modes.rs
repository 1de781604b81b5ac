//! The modes of holds whose names in Redis do not show them: of locks of different kinds under one
//! name.

use std::collections::BTreeMap;

use crate::judge::history::{Host, Lock, Mode, Owner};

/// The requested modes, and the modes of the holds that were granted.
#[derive(Debug, Default)]
pub(super) struct Modes {
    /// The mode of each owner's latest request for each such lock.
    asked: BTreeMap<(Lock, Owner), Mode>,
    /// The mode of each hold, by the client and the client's number of the hold.
    held: BTreeMap<(Host, u64), Mode>,
}

impl Modes {
    /// Records an owner's request for a lock.
    pub(super) fn asks(&mut self, lock: Lock, owner: Owner, mode: Mode) {
        self.asked.insert((lock, owner), mode);
    }

    /// Returns the mode of a new hold: the requested one, or else the one that its name shows.
    pub(super) fn acquired(&mut self, of: (Lock, Owner), hold: (Host, u64), named: Mode) -> Mode {
        let Some(mode) = self.asked.get(&of).copied() else { return named };
        self.held.insert(hold, mode);
        mode
    }

    /// Returns the mode of an earlier hold, if its name does not show it.
    pub(super) fn of_hold(&self, hold: (Host, u64)) -> Option<Mode> {
        self.held.get(&hold).copied()
    }
}
