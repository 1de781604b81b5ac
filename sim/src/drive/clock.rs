//! A manual clock, which moves only when a client advances it.

use std::{
    cell::{Cell, RefCell},
    future::{Future, poll_fn},
    rc::Rc,
    task::{Poll, Waker},
};

use crate::time::{Monotonic, Wall};

/// The two clocks of a host whose time moves only by command (`lockstorm serve --clock manual`).
/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct ManualClock(Rc<Shared>);

#[derive(Debug)]
struct Shared {
    now: Cell<(Wall, Monotonic)>,
    sleepers: RefCell<Vec<Waker>>,
}

impl ManualClock {
    /// Creates a clock whose wall clock shows `wall`.
    pub fn new(wall: Wall) -> ManualClock {
        let now = Cell::new((wall, Monotonic::ZERO));
        ManualClock(Rc::new(Shared { now, sleepers: RefCell::default() }))
    }

    /// Returns the reading of the wall clock, which moves together with the monotonic clock.
    pub fn wall(&self) -> Wall {
        self.0.now.get().0
    }

    /// Returns the reading of the monotonic clock, which begins at zero.
    pub fn monotonic(&self) -> Monotonic {
        self.0.now.get().1
    }

    /// Moves both clocks forward until the monotonic one shows `at`, unless it is past that
    /// already.
    pub fn move_to(&self, at: Monotonic) {
        let (wall, monotonic) = self.0.now.get();
        self.0.now.set((wall + at.since(monotonic), monotonic.max(at)));
        self.0.sleepers.take().into_iter().for_each(Waker::wake);
    }

    /// Resolves when the monotonic clock shows `at`.
    pub fn sleep_until(&self, at: Monotonic) -> impl Future<Output = ()> + 'static {
        let clock = self.clone();
        poll_fn(move |cx| {
            if clock.monotonic() >= at {
                return Poll::Ready(());
            }
            let mut sleepers = clock.0.sleepers.borrow_mut();
            // A task that is polled again for another reason is already in the list.
            if !sleepers.iter().any(|sleeper| sleeper.will_wake(cx.waker())) {
                sleepers.push(cx.waker().clone());
            }
            Poll::Pending
        })
    }
}
