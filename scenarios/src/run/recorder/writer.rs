//! What one line of work of a client does and believes.

use std::time::Duration;

use lockstorm_sim::world::{ClockId, HostCtx};

use super::{Line, Shared, beliefs::Entry};
use crate::{
    file::fault::Happening,
    judge::history::{Call, Deadline, EventKind, Host, Lock, Mode, Op, Outcome, Owner, Reason, Wait, Wake},
    units::millis,
};

/// Writes down what one line of work of a client does with one lock, and what it believes.
#[derive(Debug, Clone)]
pub struct HistoryWriter {
    pub(super) shared: Shared,
    ctx: HostCtx,
    pub(super) host: Host,
    line: Line,
    pub(super) lock: Lock,
    /// The clock that the client's deadlines are readings of.
    pub(super) clock: ClockId,
}

impl HistoryWriter {
    /// For the first line of work of the client on this host, about the first lock on trial.
    pub fn new(shared: Shared, ctx: HostCtx, host: Host) -> HistoryWriter {
        HistoryWriter { shared, ctx, host, line: Line::FIRST, lock: Lock(0), clock: ClockId::Boottime }
    }

    /// A writer for this lock.
    #[must_use]
    pub fn about(&self, lock: Lock) -> HistoryWriter {
        HistoryWriter { lock, ..self.clone() }
    }

    /// A writer for another line of work.
    #[must_use]
    pub fn on(&self, line: Line) -> HistoryWriter {
        HistoryWriter { line, ..self.clone() }
    }

    /// A writer for a client whose deadlines are readings of this clock.
    #[must_use]
    pub fn counting_by(self, clock: ClockId) -> HistoryWriter {
        HistoryWriter { clock, ..self }
    }

    /// The line of work.
    pub fn line(&self) -> Line {
        self.line
    }

    /// What the client calls itself in Redis: its host's name, and how often it was started where
    /// that is more than once. A restarted client is another one, as a process with a fresh UUID
    /// is.
    pub fn client_id(&self) -> String {
        match self.ctx.incarnation() {
            0 => self.ctx.name().to_owned(),
            again => format!("{}.{}", self.ctx.name(), again + 1),
        }
    }

    /// The owner that this line of work is from now on, called as the production client calls it.
    pub fn owner(&self) -> Owner {
        let name = self.line.owner_of(&self.client_id());
        let mut recorder = self.shared.get();
        let owner = recorder.history.owner(&name, self.host);
        recorder.names.begin(self.host, self.line, &name, owner);
        if self.line == Line::FIRST {
            recorder.beliefs.started(self.host);
        }
        owner
    }

    /// The owner for which this line of work writes to a resource when it does not say for which:
    /// of its owners the one that came last to believe that it holds the lock, of those that still
    /// do; failing that, the last one that did; failing that, this one.
    pub fn writer(&self, otherwise: Owner) -> Owner {
        self.shared.get().beliefs.latest(self.lock, self.host, self.line).unwrap_or(otherwise)
    }

    /// The owner that a name in Redis stands for, which this client has chosen.
    pub fn owner_named(&self, name: &str) -> Owner {
        let mut recorder = self.shared.get();
        let (name, _) = recorder.history.lock(self.lock).kind.named(name);
        recorder.owner_named(self.lock, name, self.host)
    }

    /// The mode in which an owner holds the lock under this name.
    pub fn mode_named(&self, name: &str) -> Mode {
        self.shared.get().history.lock(self.lock).kind.named(name).1
    }

    /// The owner that holds the lock under this name for this line of work: the line itself,
    /// whichever other line writes the same name; of a quorum, the attempt.
    pub fn holder(&self, name: &str) -> Owner {
        let recorder = self.shared.get();
        let line =
            recorder.names.current(self.host, self.line).filter(|_| !recorder.names_are_owners(self.lock));
        drop(recorder);
        line.unwrap_or_else(|| self.owner_named(name))
    }

    /// The owner that this line of work is at present; its first one before it has begun.
    pub(crate) fn line_owner(&self) -> Owner {
        let current = self.shared.get().names.current(self.host, self.line);
        current.unwrap_or_else(|| self.owner())
    }

    /// This line of work is about to ask under this name.
    pub fn asks_as(&self, name: &str) {
        let mut recorder = self.shared.get();
        if let Some(owner) = recorder.names.current(self.host, self.line) {
            recorder.names.write(self.host, name, owner);
        }
    }

    /// The owner is about to ask for the lock, to hold it in this mode; said where a name in its
    /// key does not tell how it is held.
    pub fn asks_in(&self, owner: Owner, mode: Mode) {
        self.shared.get().modes.asks(self.lock, owner, mode);
    }

    /// This line of work has a connection to itself, from this port of its host.
    pub fn connected(&self, port: u16) {
        self.shared.get().names.connect(self.host, self.line, port);
    }

    /// The application called.
    pub fn invoked(&self, owner: Owner, call: Call) -> Op {
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

    /// The call came back.
    pub fn returned(&self, op: Op, call: Call, outcome: Outcome) {
        let happening = match (call, &outcome) {
            (Call::Acquire { .. }, Outcome::Ok) => Some(Happening::Acquired),
            (Call::Acquire { .. }, Outcome::Refused) => Some(Happening::Refused),
            (Call::Release, Outcome::Ok) => Some(Happening::Released),
            _ => None,
        };
        self.record(EventKind::Return { op, outcome }, happening);
    }

    /// From now on the owner believes that it holds the lock, until its clock shows `until` or it
    /// learns otherwise.
    pub fn believes(
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

    /// From now on the owner knows that it does not hold the lock in this mode.
    pub fn disbelieves(&self, owner: Owner, why: Reason, mode: Mode) {
        self.shared.get().beliefs.disbelieves(self.lock, owner, mode);
        let happening = (why != Reason::Released).then_some(Happening::Lost);
        self.record(EventKind::Disbelieves { lock: self.lock, owner, why, mode }, happening);
    }

    /// The owner's line of work has ended, and has not given the lock back.
    pub(crate) fn abandoned(&self, owner: Owner) {
        self.record(EventKind::Abandoned { lock: self.lock, owner }, None);
    }

    /// From now on the owner knows that it does not hold the lock in any mode.
    pub fn disbelieves_all(&self, owner: Owner, why: Reason) {
        let modes = self.shared.get().beliefs.modes(self.lock, owner);
        modes.into_iter().for_each(|mode| self.disbelieves(owner, why, mode));
    }

    /// The owner was refused and waits.
    pub fn waits(&self, owner: Owner) {
        self.shared.get().beliefs.waits(self.entry(owner));
        self.record(EventKind::Waiting { lock: self.lock, owner }, Some(Happening::Waiting));
    }

    /// The owner stopped waiting in order to try again.
    pub fn woken(&self, owner: Owner, by: Wake) {
        self.record(EventKind::Woken { lock: self.lock, owner, by }, None);
    }

    /// The owner has given up waiting.
    pub fn gave_up(&self, owner: Owner) {
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

    /// How an application's wait is written down.
    pub fn wait(wait: Option<Duration>) -> Wait {
        match wait {
            None => Wait::Unbounded,
            Some(Duration::ZERO) => Wait::No,
            Some(wait) => Wait::Ms(millis(wait)),
        }
    }
}
