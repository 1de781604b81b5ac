//! Servers that answer every acquisition with an error: from the start, or after an operator's
//! command.

use std::time::Duration;

use lockstorm::judge::history::{EventKind, Host, Outcome, Owner};

use super::{Open, STEPS, World, one_of};

impl World {
    /// A fault hits a host. A command may make the servers refuse every acquisition, or end that.
    pub(super) fn is_disturbed(&mut self, target: Host, how: u8) {
        let words = one_of(&["a cut", "a pause", "a step", "a command"], how);
        let fault = self.history.fault_started(self.now, "", words, vec![target], how >= 128);
        if how % 16 >= 4 {
            self.history.fault_ended(fault, self.now + Duration::from_millis(700));
        }
        if words == "a command" {
            self.turns_away = !self.turns_away;
        }
    }

    /// An acquisition fails with an error, some time after it was made.
    pub(super) fn is_turned_away(&mut self, owner: Owner, much: u8) {
        self.passes(one_of(STEPS, much));
        let Some(Open { op, .. }) = self.calls.remove(&owner) else { return };
        let outcome = Outcome::Failed { definite: true, message: "OOM command not allowed".into() };
        self.tell(self.history.client_of(owner), EventKind::Return { op, outcome });
    }
}
