//! What the suites under `tests/` and `benches/` share. Everything they test lives in the three
//! crates.

pub mod support;
