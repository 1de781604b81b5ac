//! The actions and beliefs of one line of work of a client.

use std::time::Duration;

use lockstorm_world::{ClockId, HostCtx};

use super::{Line, Shared, beliefs::Entry};
use crate::{
    file::fault::Happening,
    judge::history::{Call, Deadline, EventKind, Host, Lock, Mode, Op, Outcome, Owner, Reason, Wait, Wake},
    units::millis,
};

/// Records the actions of one line of work with one lock, and its beliefs.
#[derive(Debug, Clone)]
pub(crate) struct HistoryWriter {
    pub(super) shared: Shared,
    ctx: HostCtx,
    pub(super) host: Host,
    line: Line,
    pub(super) lock: Lock,
    /// The clock of the client's deadlines.
    pub(super) clock: ClockId,
}

impl HistoryWriter {
    /// Creates a writer for the first line of work of the client on this host, and the first lock
    /// on trial.
    pub(crate) fn new(shared: Shared, ctx: HostCtx, host: Host) -> HistoryWriter {
        HistoryWriter { shared, ctx, host, line: Line::FIRST, lock: Lock(0), clock: ClockId::Boottime }
    }

    /// Returns a writer for this lock.
    #[must_use]
    pub(crate) fn about(&self, lock: Lock) -> HistoryWriter {
        HistoryWriter { lock, ..self.clone() }
    }

    /// Returns a writer for another line of work.
    #[must_use]
    pub(crate) fn on(&self, line: Line) -> HistoryWriter {
        HistoryWriter { line, ..self.clone() }
    }

    /// Returns a writer for a client whose deadlines are readings of this clock.
    #[must_use]
    pub(crate) fn counting_by(self, clock: ClockId) -> HistoryWriter {
        HistoryWriter { clock, ..self }
    }

    /// The line of work.
    pub(crate) fn line(&self) -> Line {
        self.line
    }

    /// Returns the client's name in Redis: its host's name, from the second start on followed by a
    /// dot and the number of the start. A restarted client is another client, like a process with a
    /// new UUID.
    pub(crate) fn client_id(&self) -> String {
        match self.ctx.incarnation() {
            0 => self.ctx.name().to_owned(),
            again => format!("{}.{}", self.ctx.name(), again + 1),
        }
    }

    /// Begins a new owner for this line of work, named in the production client's form, and returns
    /// it.
    pub(crate) fn owner(&self) -> Owner {
        let name = self.line.owner_of(&self.client_id());
        let mut recorder = self.shared.get();
        let owner = recorder.history.owner(&name, self.host);
        recorder.names.begin(self.host, self.line, &name, owner);
        if self.line == Line::FIRST {
            recorder.beliefs.started(self.host);
        }
        owner
    }

    /// Returns the owner for whom this line of work writes to a resource without naming one. That
    /// is its owner that most recently began to believe that it holds the lock, among those that
    /// still do; else the last one that did; else `otherwise`.
    pub(crate) fn writer(&self, otherwise: Owner) -> Owner {
        self.shared.get().beliefs.latest(self.lock, self.host, self.line).unwrap_or(otherwise)
    }

    /// Returns the owner for a name in Redis that this client has chosen.
    pub(crate) fn owner_named(&self, name: &str) -> Owner {
        let mut recorder = self.shared.get();
        let (name, _) = recorder.history.lock(self.lock).kind.named(name);
        recorder.owner_named(self.lock, name, self.host)
    }

    /// Returns the mode in which an owner holds the lock under this name.
    pub(crate) fn mode_named(&self, name: &str) -> Mode {
        self.shared.get().history.lock(self.lock).kind.named(name).1
    }

    /// Returns the owner that holds the lock under this name for this line of work. That is the
    /// line itself, even if another line writes the same name; with a quorum it is the attempt.
    pub(crate) fn holder(&self, name: &str) -> Owner {
        let recorder = self.shared.get();
        let line =
            recorder.names.current(self.host, self.line).filter(|_| !recorder.names_are_owners(self.lock));
        drop(recorder);
        line.unwrap_or_else(|| self.owner_named(name))
    }

    /// Returns the current owner of this line of work. Begins its first owner if it has none.
    pub(crate) fn line_owner(&self) -> Owner {
        let current = self.shared.get().names.current(self.host, self.line);
        current.unwrap_or_else(|| self.owner())
    }

    /// Records that this line of work makes its next requests under this name.
    pub(crate) fn asks_as(&self, name: &str) {
        let mut recorder = self.shared.get();
        if let Some(owner) = recorder.names.current(self.host, self.line) {
            recorder.names.write(self.host, name, owner);
        }
    }

    /// Records the mode of the owner's next request for the lock, for names in a key that do not
    /// show the mode.
    pub(crate) fn asks_in(&self, owner: Owner, mode: Mode) {
        self.shared.get().modes.asks(self.lock, owner, mode);
    }

    /// Records that a connection from this port of the host belongs to this line of work alone.
    pub(crate) fn connected(&self, port: u16) {
        self.shared.get().names.connect(self.host, self.line, port);
    }

    /// Records the application's call, and returns its number.
    pub(crate) fn invoked(&self, owner: Owner, call: Call) -> Op {
        let op = {
            let mut recorder = self.shared.get();
            recorder.ops += 1;
            Op(recorder.ops)
        };
        let happening = match call {
            Call::Acquire { .. } => Some(Happening::Asked),
            Call::Release => Some(Happening::Releasing),
            Call::Extend { .. }
            | Call::Set
            | Call::CountDown
            | Call::Await { .. }
            | Call::Delete
            | Call::Take { .. } => None,
        };
        self.record(EventKind::Invoke { op, lock: self.lock, owner, call }, happening);
        op
    }

    /// Records the return of a call.
    pub(crate) fn returned(&self, op: Op, call: Call, outcome: Outcome) {
        let happening = match (call, &outcome) {
            (Call::Acquire { .. }, Outcome::Ok) => Some(Happening::Acquired),
            (Call::Acquire { .. }, Outcome::Refused) => Some(Happening::Refused),
            (Call::Release, Outcome::Ok) => Some(Happening::Released),
            _ => None,
        };
        self.record(EventKind::Return { op, outcome }, happening);
    }

    /// Records the owner's belief that it holds the lock, until its clock shows `until` or it
    /// learns otherwise.
    pub(crate) fn believes(
        &self,
        owner: Owner,
        until: Option<Deadline>,
        token: Option<u64>,
        count: u32,
        mode: Mode,
    ) {
        let again = self.shared.get().beliefs.believes(self.entry(owner), mode);
        let what = EventKind::Believes { lock: self.lock, owner, until, token, count, mode };
        self.record(what, again.then_some(Happening::Renewed));
    }

    /// Records that the owner knows it no longer holds the lock in this mode.
    pub(crate) fn disbelieves(&self, owner: Owner, why: Reason, mode: Mode) {
        self.shared.get().beliefs.disbelieves(self.lock, owner, mode);
        let happening = (why != Reason::Released).then_some(Happening::Lost);
        self.record(EventKind::Disbelieves { lock: self.lock, owner, why, mode }, happening);
    }

    /// Records that the owner's line of work has ended without releasing the lock.
    pub(crate) fn abandoned(&self, owner: Owner) {
        self.record(EventKind::Abandoned { lock: self.lock, owner }, None);
    }

    /// Records that the owner knows it no longer holds the lock in any mode.
    pub(crate) fn disbelieves_all(&self, owner: Owner, why: Reason) {
        let modes = self.shared.get().beliefs.modes(self.lock, owner);
        modes.into_iter().for_each(|mode| self.disbelieves(owner, why, mode));
    }

    /// Records that the owner was refused and waits.
    pub(crate) fn waits(&self, owner: Owner) {
        self.shared.get().beliefs.waits(self.entry(owner));
        self.record(EventKind::Waiting { lock: self.lock, owner }, Some(Happening::Waiting));
    }

    /// Records that the owner stopped waiting in order to try again.
    pub(crate) fn woken(&self, owner: Owner, by: Wake) {
        self.record(EventKind::Woken { lock: self.lock, owner, by }, None);
    }

    /// Removes the owner from the waiters. Records no event.
    pub(crate) fn gave_up(&self, owner: Owner) {
        self.shared.get().beliefs.gave_up(self.lock, owner);
    }

    fn entry(&self, owner: Owner) -> Entry {
        Entry { lock: self.lock, owner, client: self.host, line: self.line }
    }

    fn record(&self, what: EventKind, happening: Option<Happening>) {
        self.ctx.observe("client", format!("{what:?}"));
        let happening = happening.map(|happening| (self.lock, happening));
        self.shared.record(self.ctx.moment().0, self.host, what, happening);
    }

    /// Converts an application's wait to the form of the history. `None` is a wait without a limit.
    pub(crate) fn wait(wait: Option<Duration>) -> Wait {
        match wait {
            None => Wait::Unbounded,
            Some(Duration::ZERO) => Wait::No,
            Some(wait) => Wait::Ms(millis(wait)),
        }
    }
}
