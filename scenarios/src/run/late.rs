//! Faults that a run gets while it happens, instead of from its plan.
//!
//! A run with such faults equals the run of a plan that has had them from the beginning. Before a
//! fault begins, only the director knows of it: it has a timer for the start, and no host, link or
//! stream of random numbers depends on that timer. So it makes no difference when the director gets
//! the fault, as long as the fault has not begun. The same is true of the end of a fault.

use std::{
    cell::RefCell,
    future::poll_fn,
    task::{Poll, Waker},
};

use lockstorm_world::{HostCtx, time::True};

use crate::file::plan::Occurrence;

/// The most faults that are added to a run.
pub(super) const LATE_MAX: u64 = 2;

/// A change of the faults of a run.
#[derive(Debug, Clone)]
pub(super) enum Change {
    /// A further fault begins. It stays in force until its end is added.
    Begin(Box<Occurrence>),
    /// A fault ends. The number counts the faults that were added.
    End(usize),
}

/// The faults added to a run while it happens.
#[derive(Debug, Default)]
pub(super) struct Late(RefCell<Inbox>);

#[derive(Debug, Default)]
struct Inbox {
    /// The task of the director.
    director: Option<(HostCtx, Waker)>,
    /// The changes that the director has not read.
    unread: Vec<(True, Change)>,
}

impl Late {
    /// Adds a change at a later instant, and wakes the director then.
    pub(super) fn add(&self, at: True, change: Change) {
        let mut inbox = self.0.borrow_mut();
        inbox.unread.push((at, change));
        if let Some((ctx, waker)) = &inbox.director {
            ctx.wake_at(at, waker.clone());
        }
    }

    /// Takes the changes that the director has not read.
    pub(super) fn take(&self) -> Vec<(True, Change)> {
        std::mem::take(&mut self.0.borrow_mut().unread)
    }

    /// Resolves when an unread change is due. The director calls it from its one task.
    pub(super) async fn is_due(&self, ctx: &HostCtx) {
        poll_fn(|cx| {
            let mut inbox = self.0.borrow_mut();
            let now = ctx.moment().0;
            if inbox.unread.iter().any(|(at, _)| *at <= now) {
                return Poll::Ready(());
            }
            inbox.director = Some((ctx.clone(), cx.waker().clone()));
            Poll::Pending
        })
        .await;
    }
}
