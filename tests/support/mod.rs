//! Helpers that several suites share.

pub mod redis;
