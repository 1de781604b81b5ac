//! A lock library of any language, in a separate process.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    rc::{Rc, Weak},
    time::Duration,
};

use lockstorm_world::{HostCtx, time::Wall};
use tokio::sync::Notify;

use super::{Ask, Counting, Failure, Held, Local, Patience, Subject, SubjectContext, not_so};
use crate::{
    file::plan::LockEntry,
    judge::history::{Deadline, Lock, Mode, Owner, Reason},
    run::{
        peer::{Answer, Link, Refusal, Request, Unasked},
        recorder::{HistoryWriter, Line},
    },
    units::millis,
};

/// The pause between two requests to a library that does not wait.
const AGAIN: Duration = Duration::from_millis(50);

/// The locks of one peer, for its one line of work.
pub(crate) struct Library {
    ctx: HostCtx,
    link: Rc<Link>,
    waits: bool,
    /// The name of each lock in requests, and its number in the history.
    names: Vec<(String, Lock)>,
    history: HistoryWriter,
    holds: RefCell<BTreeMap<u64, Weak<Hold>>>,
}

impl Library {
    /// Creates the library at the other end of this link.
    pub(crate) fn new(context: &SubjectContext, link: Rc<Link>, waits: bool) -> Rc<Library> {
        let names = context.plan.locks.iter().map(|lock| (lock.name.clone(), lock.number)).collect();
        let (ctx, history) = (context.ctx.clone(), context.history.on(Line::FIRST));
        Rc::new(Library { ctx, link, waits, names, history, holds: RefCell::default() })
    }

    /// Processes an unrequested report of the library. Ignores a report about a lock that was
    /// released in the meantime.
    pub(crate) fn hears(&self, unasked: Unasked) {
        let (Unasked::Lost { hold } | Unasked::Renewed { hold, .. }) = unasked;
        let hold = self.holds.borrow().get(&hold).and_then(Weak::upgrade);
        let Some(hold) = hold.filter(|hold| !hold.over.get()) else { return };
        match unasked {
            Unasked::Lost { .. } => hold.end(Reason::Lost),
            Unasked::Renewed { until_ms, .. } => hold.is_renewed(until_ms),
        }
    }
}

/// The locks of a peer as an application sees them.
pub(crate) struct PeerSubject(pub(crate) Rc<Library>);

impl Subject for PeerSubject {
    fn warm_up(&self) -> Local<'static, ()> {
        // It connected before it got its first request.
        Box::pin(async {})
    }

    fn acquire(&self, ask: Ask) -> Local<'_, Result<Option<Rc<dyn Held>>, Failure>> {
        Box::pin(async move {
            let library = &self.0;
            let begun = library.ctx.moment().0;
            loop {
                let wait = if library.waits { ask.wait } else { Patience::None };
                if let Some(hold) = library.attempt(ask, wait).await? {
                    return Ok(Some(hold as Rc<dyn Held>));
                }
                let over = match ask.wait {
                    Patience::None => true,
                    Patience::For(wait) => library.ctx.moment().0.since(begun) >= wait,
                    Patience::Unbounded => false,
                };
                if library.waits || over {
                    return Ok(None);
                }
                library.ctx.wire_delay(AGAIN).await;
            }
        })
    }

    fn count(&self, _: LockEntry, _: Counting) -> Local<'_, Result<bool, Failure>> {
        Box::pin(async { Err(not_so("a peer has locks alone")) })
    }
}

impl Library {
    /// Sends one request for a lock.
    async fn attempt(self: &Rc<Self>, ask: Ask, wait: Patience) -> Result<Option<Rc<Hold>>, Failure> {
        let wait_ms = match wait {
            Patience::None => Some(0),
            Patience::For(wait) => Some(millis(wait)),
            Patience::Unbounded => None,
        };
        let (lock, number) = self.names[usize::from(ask.lock.0)].clone();
        let request = Request::Acquire { lock, wait_ms, lease_ms: ask.lease.map(millis) };
        let (id, answer) = self.link.ask(request).await;
        let Answer::Has { until_ms, token, owner: name } = answer.map_err(failure)? else { return Ok(None) };
        let history = self.history.about(number);
        let owner = match &name {
            Some(name) => {
                history.asks_as(name);
                history.holder(name)
            }
            None => history.line_owner(),
        };
        let hold = Rc::new(Hold {
            library: self.clone(),
            history,
            id,
            owner,
            name,
            token,
            mode: ask.mode,
            until: Cell::new(until_ms.map(reading)),
            over: Cell::default(),
            ended: Notify::new(),
        });
        self.holds.borrow_mut().insert(id, Rc::downgrade(&hold));
        hold.tell();
        Ok(Some(hold))
    }
}

/// A lock that the library reports as held.
struct Hold {
    library: Rc<Library>,
    history: HistoryWriter,
    id: u64,
    owner: Owner,
    name: Option<String>,
    token: Option<u64>,
    mode: Mode,
    /// The end of the hold according to the library.
    until: Cell<Option<Wall>>,
    over: Cell<bool>,
    ended: Notify,
}

impl Hold {
    /// Records the library's current belief.
    fn tell(&self) {
        let until = self.until.get().map(Deadline::from);
        self.history.believes(self.owner, until, self.token, 1, self.mode);
    }

    fn end(&self, why: Reason) {
        if !self.over.replace(true) {
            self.library.holds.borrow_mut().remove(&self.id);
            self.history.disbelieves(self.owner, why, self.mode);
            self.ended.notify_waiters();
        }
    }

    fn is_renewed(&self, until_ms: Option<i64>) {
        self.until.set(until_ms.map(reading));
        self.tell();
    }
}

impl Held for Hold {
    fn release(&self) -> Local<'_, Result<(), Failure>> {
        Box::pin(async move {
            self.end(Reason::Released);
            let (_, answer) = self.library.link.ask(Request::Release { hold: self.id }).await;
            answer.map(drop).map_err(failure)
        })
    }

    fn extend(&self, lease: Duration) -> Local<'_, Result<(), Failure>> {
        Box::pin(async move {
            let request = Request::Extend { hold: self.id, lease_ms: millis(lease) };
            let (_, answer) = self.library.link.ask(request).await;
            if let Answer::Has { until_ms, .. } = answer.map_err(failure)?
                && !self.over.get()
            {
                self.is_renewed(until_ms);
            }
            Ok(())
        })
    }

    fn is_held(&self) -> bool {
        !self.over.get() && self.until.get().is_none_or(|until| self.library.ctx.wall() < until)
    }

    fn lost(&self) -> Local<'_, ()> {
        Box::pin(async move {
            while self.is_held() {
                let Some(until) = self.until.get() else {
                    self.ended.notified().await;
                    continue;
                };
                let left = until.since(self.library.ctx.wall()).max(Duration::from_millis(1));
                tokio::select! {
                    biased;
                    () = self.ended.notified() => {}
                    () = self.library.ctx.wire_delay(left) => {}
                }
            }
        })
    }

    fn owner(&self) -> Option<String> {
        self.name.clone()
    }

    fn token(&self) -> Option<u64> {
        self.token
    }
}

/// Converts a wall clock time that a peer has reported, without a check.
fn reading(until_ms: i64) -> Wall {
    Wall::from_millis(until_ms)
}

fn failure(Refusal { text, definite }: Refusal) -> Failure {
    Failure { definite, message: text }
}
