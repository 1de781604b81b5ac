//! Wakes the world's loop.

use std::{
    sync::Mutex,
    task::{Context, Waker},
};

use crate::lock::lock;

/// Wakes the world's loop while it waits for tokio's clock.
#[derive(Debug, Default)]
pub(crate) struct LoopWaker(Mutex<Option<Waker>>);

impl LoopWaker {
    /// Registers the loop, which is about to wait.
    pub(crate) fn sleeps(&self, cx: &Context<'_>) {
        *lock(&self.0) = Some(cx.waker().clone());
    }

    /// Unregisters the loop, which has stopped waiting.
    pub(crate) fn is_awake(&self) {
        *lock(&self.0) = None;
    }

    /// Wakes the loop if it waits.
    pub(crate) fn wake(&self) {
        if let Some(waker) = lock(&self.0).take() {
            waker.wake();
        }
    }
}
