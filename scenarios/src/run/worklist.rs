//! Processes items on several threads. The results do not depend on the number of threads.

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    panic::resume_unwind,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

/// The most threads. More would only wait for each other.
const JOBS_MAX: usize = 1024;

/// Processes each item on `jobs` threads, and returns the results in the order of the items. They
/// end with the first one in that order whose work returned `Break`: items before it are finished,
/// and results after it are dropped.
pub fn work_through<I: Sync, R: Send>(
    items: &[I],
    jobs: usize,
    work: impl Fn(&I) -> ControlFlow<R, R> + Sync,
) -> Vec<R> {
    let mut results = Vec::with_capacity(items.len());
    work_in_order(items, jobs, work, |result| {
        results.push(result);
        ControlFlow::Continue(())
    });
    results
}

/// Processes each item like [`work_through`], and passes each result to `take` once all earlier
/// ones were passed. Only results that wait for an earlier one are kept. No work begins after
/// `take` returns `Break`.
pub(crate) fn work_in_order<I: Sync, R: Send>(
    items: &[I],
    jobs: usize,
    work: impl Fn(&I) -> ControlFlow<R, R> + Sync,
    take: impl FnMut(R) -> ControlFlow<()> + Send,
) {
    let (next, last) = (AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
    let taken = Mutex::new(Taken { waiting: BTreeMap::new(), next: 0, is_over: false, take });
    let worker = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at).filter(|_| at < last.load(Ordering::Relaxed)) else { return };
            let result = work(item);
            if result.is_break() {
                last.fetch_min(at, Ordering::Relaxed);
            }
            if taken.lock().expect("nobody panics while results are taken").add(at, result).is_break() {
                last.store(0, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        let jobs = jobs.min(JOBS_MAX).clamp(1, items.len().max(1));
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(worker)).collect();
        // The scope waits for the work of its threads, not for their ends. A process that forks
        // next must have one thread.
        for worker in workers {
            worker.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
    });
}

/// Puts results in order.
struct Taken<R, T> {
    /// The results that wait for an earlier one, by index.
    waiting: BTreeMap<usize, ControlFlow<R, R>>,
    /// The index of the next result to pass on.
    next: usize,
    is_over: bool,
    take: T,
}

impl<R, T: FnMut(R) -> ControlFlow<()>> Taken<R, T> {
    /// Passes on the results that are in order now. Returns `Break` after the last one.
    fn add(&mut self, at: usize, result: ControlFlow<R, R>) -> ControlFlow<()> {
        self.waiting.insert(at, result);
        while let Some(result) = self.waiting.remove(&self.next).filter(|_| !self.is_over) {
            self.next += 1;
            let (result, is_last) = match result {
                ControlFlow::Continue(result) => (result, false),
                ControlFlow::Break(result) => (result, true),
            };
            self.is_over = (self.take)(result).is_break() || is_last;
        }
        if self.is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_and_end_at_the_first_break_on_any_number_of_threads() {
        let items: Vec<u32> = (0..500).collect();
        // The first of several breaks takes the longest, so that other threads reach the later ones
        // before it.
        let work = |item: &u32| {
            let rounds = if *item == 200 { 2_000_000 } else { 100 };
            let spent = (0..rounds).fold(0_u64, |sum, round| std::hint::black_box(sum ^ round));
            std::hint::black_box(spent);
            if *item >= 200 && item.is_multiple_of(10) {
                ControlFlow::Break(*item)
            } else {
                ControlFlow::Continue(*item)
            }
        };
        for jobs in [0, 1, 4, 1000] {
            assert_eq!(work_through(&items, jobs, work), (0..=200).collect::<Vec<u32>>(), "{jobs} threads");
            let all = work_through(&items, jobs, |item| ControlFlow::Continue(*item));
            assert_eq!(all, items, "{jobs} threads");
        }
        assert!(work_through(&[], 4, work).is_empty());
    }
    #[test]
    fn a_result_is_taken_when_those_before_it_have_been_and_none_after_a_break() {
        let items: Vec<u32> = (0..500).collect();
        for jobs in [1, 4] {
            let mut taken = Vec::new();
            let begun = AtomicUsize::new(0);
            let work = |item: &u32| {
                begun.fetch_add(1, Ordering::Relaxed);
                ControlFlow::Continue(*item)
            };
            work_in_order(&items, jobs, work, |item| {
                taken.push(item);
                if item == 20 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            assert_eq!(taken, (0..=20).collect::<Vec<u32>>(), "{jobs} threads");
            // With one thread no work begins after the break. With several, some may have begun
            // before it.
            assert!(jobs > 1 || begun.into_inner() == 21);
        }
    }
}
