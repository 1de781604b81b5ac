//! The modes in which holds are held whose names in Redis do not tell it: of locks of different
//! kinds under one name.

use std::collections::BTreeMap;

use crate::judge::history::{Host, Lock, Mode, Owner};

/// What was asked for, and what came of it.
#[derive(Debug, Default)]
pub(super) struct Modes {
    /// How each owner has asked for each such lock last.
    asked: BTreeMap<(Lock, Owner), Mode>,
    /// The mode of each hold, by the client and the number that the client gives it.
    held: BTreeMap<(Host, u64), Mode>,
}

impl Modes {
    /// An owner is about to ask for a lock.
    pub(super) fn asks(&mut self, lock: Lock, owner: Owner, mode: Mode) {
        self.asked.insert((lock, owner), mode);
    }

    /// The mode of a hold that was acquired: as it was asked for, or as its name says.
    pub(super) fn acquired(&mut self, of: (Lock, Owner), hold: (Host, u64), named: Mode) -> Mode {
        let Some(mode) = self.asked.get(&of).copied() else { return named };
        self.held.insert(hold, mode);
        mode
    }

    /// The mode of a hold that was acquired before, where its name does not say it.
    pub(super) fn of_hold(&self, hold: (Host, u64)) -> Option<Mode> {
        self.held.get(&hold).copied()
    }
}
