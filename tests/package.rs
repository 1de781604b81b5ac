//! Helpers that the suites under `tests/` and `benches/` share. All code under test is in the three
//! crates.

pub mod support;
