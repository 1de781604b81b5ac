//! Converts the production client's events about its holds to events of the history.

use lockstorm_client::{LossCause, Observer, WokenBy};
use lockstorm_world::{
    ClockId,
    time::{Boottime, Monotonic},
};

use super::{HistoryWriter, Line, beliefs::Belief};
use crate::judge::history::{Deadline, LockKind, Mode, Owner, Reason, Wake};

/// The number of digits of a permit's ID.
const PERMIT_ID: usize = 32;

/// The deadline of a hold without an end.
const NEVER: Boottime = Boottime::from_nanos(i64::MAX);

impl HistoryWriter {
    /// Records the start or the renewal of a hold of the production client.
    fn holds(&self, (owner, mode): (Owner, Mode), number: u64, until: Boottime, token: Option<u64>) {
        let belief = self.shared.get().beliefs.hold((self.lock, owner, mode), number, until);
        self.believes_in_holds((owner, mode), belief, token);
    }

    /// Records the end of a hold.
    fn let_go(&self, (owner, mode): (Owner, Mode), number: u64, why: Reason) {
        let left = self.shared.get().beliefs.let_go((self.lock, owner, mode), number);
        match left {
            Err(_) => {}
            Ok(None) => self.disbelieves(owner, why, mode),
            Ok(left) => self.believes_in_holds((owner, mode), left, None),
        }
    }

    fn believes_in_holds(&self, (owner, mode): (Owner, Mode), belief: Option<Belief>, token: Option<u64>) {
        let Some(Belief { until, count }) = belief else { return };
        let until = match self.clock {
            // A hold without an end.
            _ if until == NEVER => None,
            ClockId::Monotonic => Some(Deadline::from(Monotonic::from_nanos(until.as_nanos()))),
            _ => Some(Deadline::from(until)),
        };
        self.believes(owner, until, token, count, mode);
    }
}

impl Observer for HistoryWriter {
    fn observe(&self, event: &lockstorm_client::Event<'_>) {
        let Some(lock) = self.shared.get().history.header.lock(event.lock) else { return };
        let about = self.about(lock);
        // The owner of permits that were acquired together is the concatenation of their IDs. Each
        // of them is a separate hold.
        let kind = self.shared.get().history.lock(lock).kind;
        let digits = if matches!(kind, LockKind::Permits { .. }) { PERMIT_ID } else { usize::MAX };
        for name in event.owner.as_bytes().chunks(digits) {
            about.client_says(&String::from_utf8_lossy(name), event.kind);
        }
    }
}

impl HistoryWriter {
    /// Records an event of the client about the owner of this name.
    fn client_says(&self, name: &str, kind: lockstorm_client::EventKind<'_>) {
        use lockstorm_client::EventKind as Said;
        let owner = self.owner_named(name);
        let mode = match (self.mode_named(name), kind) {
            (Mode::Exclusive, _) => Mode::Exclusive,
            (mode, Said::Acquired { hold, .. }) => {
                self.shared.get().modes.acquired((self.lock, owner), (self.host, hold), mode)
            }
            (mode, Said::Renewed { hold, .. } | Said::Lost { hold, .. } | Said::Releasing { hold }) => {
                self.shared.get().modes.of_hold((self.host, hold)).unwrap_or(mode)
            }
            (mode, _) => mode,
        };
        let hold_of = (owner, mode);
        // A client has one observer for all its lines of work.
        let line = self.shared.get().names.line_of(self.host, owner);
        let about = self.on(line.unwrap_or(Line::FIRST));
        let boottime = |deadline: lockstorm_client::Boottime| {
            i64::try_from(deadline.0.as_nanos()).map_or(NEVER, Boottime::from_nanos)
        };
        match kind {
            Said::Acquired { hold, deadline, token, .. } => {
                about.holds(hold_of, hold, boottime(deadline), token);
            }
            Said::Renewed { hold, deadline } => about.holds(hold_of, hold, boottime(deadline), None),
            Said::Lost { hold, why: LossCause::Expired } => about.let_go(hold_of, hold, Reason::Expired),
            Said::Lost { hold, .. } => about.let_go(hold_of, hold, Reason::Lost),
            Said::Releasing { hold } => about.let_go(hold_of, hold, Reason::Released),
            Said::Waiting { .. } => about.waits(owner),
            Said::Woken { by: WokenBy::Message } => about.woken(owner, Wake::Message),
            Said::Woken { by: WokenBy::Timer } => about.woken(owner, Wake::Timer),
            _ => {}
        }
    }
}
