//! Helpers of the suites.

pub mod redis;
