//! Items worked through on several threads. The results do not depend on how many there are.

use std::{
    ops::ControlFlow,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

/// The most threads: beyond it they only wait for each other.
const JOBS_MAX: usize = 1024;

/// Does the work of each item, on so many threads, and returns the results in the order of the items. They end with the first one in
/// that order whose work says `Break`: items before it are finished, and results after it are dropped.
pub(crate) fn work_through<I: Sync, R: Send>(
    items: &[I],
    jobs: usize,
    work: impl Fn(&I) -> ControlFlow<R, R> + Sync,
) -> Vec<R> {
    let (next, last) = (AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
    let results: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::with_capacity(items.len()));
    let worker = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at).filter(|_| at < last.load(Ordering::Relaxed)) else { return };
            let result = match work(item) {
                ControlFlow::Continue(result) => result,
                ControlFlow::Break(result) => {
                    last.fetch_min(at, Ordering::Relaxed);
                    result
                }
            };
            results.lock().expect("nobody panics while adding").push((at, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(JOBS_MAX).clamp(1, items.len().max(1)) {
            scope.spawn(worker);
        }
    });
    let (mut results, last) = (results.into_inner().expect("every thread is done"), last.into_inner());
    results.retain(|(at, _)| *at <= last);
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_and_end_at_the_first_break_on_any_number_of_threads() {
        let items: Vec<u32> = (0..500).collect();
        // The first of several breaks takes the longest, so that other threads come to the later ones before it.
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
}
