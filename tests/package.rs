//! The package of the suites (`tests/`) and benches (`benches/`) over all three crates. It has no code of its own.
