//! Helpers that several suites share.

pub mod programs;
pub mod redis;

use libtest_mimic::Arguments;

/// Reads the arguments of a suite. As for other tests, `RUST_TEST_THREADS` is the number of threads
/// if the arguments name none.
pub fn arguments() -> Arguments {
    let mut arguments = Arguments::from_args();
    let threads = || std::env::var("RUST_TEST_THREADS").ok()?.parse().ok();
    arguments.test_threads = arguments.test_threads.or_else(threads);
    arguments
}
