//! Leaves the queues of fair locks: gives up the places of waiters that no longer wait, in batches.
//!
//! A script that removes waiters walks the queue once, for any number of them. Each lock has at
//! most one such script under way. Waiters that leave during that time go together into the next
//! script. A failed script is retried.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;

use crate::attempt::{Abandon, Leave};
use crate::config::{Config, millis};
use crate::env::{Env, Monotonic, pause};
use crate::key::Key;
use crate::mutex::locked;
use crate::route::Router;
use crate::work::{Token, Work};

/// The maximum number of waiters that one script removes, so that it does not keep a server busy
/// for long.
const AT_ONCE: usize = 200;

/// The maximum number of queues that are left in parallel.
const WORKERS: usize = 16;

/// The maximum number of places that a client remembers to give up. Further places end with their
/// deadlines.
const MOST: usize = 50_000;

/// The waiters of one client that have left but still have places.
pub(crate) struct QueueLeave {
    env: Arc<dyn Env>,
    config: Arc<Config>,
    router: Arc<Router>,
    work: Arc<Work>,
    state: Mutex<State>,
    /// Notified when a script has ended.
    settled: Notify,
}

#[derive(Default)]
struct State {
    /// The waiting departures of each lock.
    lines: BTreeMap<Key, Line>,
    /// The lock that was served last. The one after it is next, so that none waits forever.
    last: Option<Key>,
    workers: usize,
    /// The number of departures waiting in all lines.
    waiting: usize,
}

/// The waiters that leave one queue.
struct Line {
    abandon: Abandon,
    /// The departures that wait for a script, by owner.
    waiting: BTreeMap<String, Place>,
    /// The owners that the script under way removes.
    sent: BTreeSet<String>,
}

#[derive(Clone, Copy)]
struct Place {
    /// The `wait_ms` of the waiter's requests.
    wait_ms: u64,
    /// The time by which the place has practically ended in any case.
    over: Monotonic,
}

/// The waiters that one script removes.
struct Batch {
    abandon: Abandon,
    lock: Key,
    waiters: Vec<(String, Place)>,
}

impl QueueLeave {
    pub(crate) fn new(
        env: Arc<dyn Env>,
        config: Arc<Config>,
        router: Arc<Router>,
        work: Arc<Work>,
    ) -> Arc<Self> {
        Arc::new(Self { env, config, router, work, state: Mutex::default(), settled: Notify::new() })
    }

    /// Gives up the place of `owner`, whose requests had `wait_ms`. The work is done in the
    /// background.
    pub(crate) fn leave(self: &Arc<Self>, abandon: Abandon, lock: &Key, owner: &str, wait_ms: u64) {
        let counts_for = self.config.fair_wait_timeout.max(Duration::from_millis(wait_ms));
        let over = self.env.now() + counts_for + self.config.watchdog_timeout;
        let first = {
            let mut state = locked(&self.state);
            if state.waiting >= MOST {
                return;
            }
            let line = state.lines.entry(lock.clone()).or_insert_with(|| Line {
                abandon,
                waiting: BTreeMap::new(),
                sent: BTreeSet::new(),
            });
            let is_new = line.waiting.insert(owner.to_owned(), Place { wait_ms, over }).is_none();
            state.waiting += usize::from(is_new);
            let first = state.workers < WORKERS.min(state.lines.len());
            state.workers += usize::from(first);
            first
        };
        if first {
            self.env.spawn(Box::pin(self.clone().serve(self.work.begin())));
        }
    }

    /// Completes when no departure of `owner` is pending, for an owner that asks again. If its
    /// departure was not sent yet, it is cancelled and the owner keeps its place.
    pub(crate) async fn stay(&self, lock: &Key, owner: &str) {
        loop {
            // Register for the notification before checking, or an end in between is lost.
            let mut settled = std::pin::pin!(self.settled.notified());
            settled.as_mut().enable();
            {
                let mut state = locked(&self.state);
                let Some(line) = state.lines.get_mut(lock) else { return };
                let stays = line.waiting.remove(owner).is_some();
                let is_leaving = line.sent.contains(owner);
                state.waiting -= usize::from(stays);
                if !is_leaving {
                    return;
                }
            }
            settled.await;
        }
    }

    /// Returns the number of places that still have to be given up.
    pub(crate) fn left(&self) -> usize {
        let state = locked(&self.state);
        state.waiting + state.lines.values().map(|line| line.sent.len()).sum::<usize>()
    }

    /// Sends one script after the other until no departures remain.
    async fn serve(self: Arc<Self>, _under_way: Token) {
        let mut failures = 0;
        while let Some(Batch { abandon, lock, waiters }) = self.next() {
            let leaving: Vec<_> =
                waiters.iter().map(|(owner, place)| (owner.as_str(), place.wait_ms)).collect();
            let now_ms = millis(self.env.wall().0);
            let publish = self.router.publish();
            let leave = Leave { key: &lock, waiters: &leaving, now_ms, publish };
            // No replica needs to confirm that a waiter has left.
            let error = self.router.run_unconfirmed(&abandon(&leave)).await.err();
            let fails = error.is_some_and(|error| !error.is_final());
            if fails {
                // Keep the batch during the pause, so that other workers do not send the same in
                // vain.
                pause(&*self.env, self.config.retry_delay(&*self.env, failures)).await;
            }
            failures = if fails { failures + 1 } else { 0 };
            self.settle(&lock, if fails { waiters } else { Vec::new() });
        }
    }

    /// Returns the next batch. `None` if there is none, which ends the worker.
    fn next(&self) -> Option<Batch> {
        let now = self.env.now();
        let mut state = locked(&self.state);
        let State { lines, last, waiting, workers } = &mut *state;
        loop {
            let behind = last.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
            let mut in_turn = lines.range((behind, Bound::Unbounded)).chain(lines.iter());
            let next = in_turn.find_map(|(lock, line)| line.sent.is_empty().then(|| lock.clone()));
            let Some(lock) = next else {
                *workers -= 1;
                return None;
            };
            *last = Some(lock.clone());
            let line = lines.get_mut(&lock)?;
            let mut waiters = Vec::new();
            while waiters.len() < AT_ONCE
                && let Some((owner, place)) = line.waiting.pop_first()
            {
                *waiting -= 1;
                if place.over > now {
                    waiters.push((owner, place));
                }
            }
            if waiters.is_empty() {
                lines.remove(&lock);
                continue;
            }
            line.sent = waiters.iter().map(|(owner, _)| owner.clone()).collect();
            return Some(Batch { abandon: line.abandon, lock, waiters });
        }
    }

    /// Records that the script has ended; the waiters in `again` are still in the queue.
    fn settle(&self, lock: &Key, again: Vec<(String, Place)>) {
        {
            let mut state = locked(&self.state);
            let State { lines, waiting, .. } = &mut *state;
            if let Some(line) = lines.get_mut(lock) {
                line.sent.clear();
                let before = line.waiting.len();
                for (owner, place) in again {
                    line.waiting.entry(owner).or_insert(place);
                }
                *waiting += line.waiting.len() - before;
                if line.waiting.is_empty() {
                    lines.remove(lock);
                }
            }
        }
        self.settled.notify_waiters();
    }
}
