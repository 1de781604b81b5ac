//! A Redis 7 in memory, sans-IO, and the virtual world it lives in.

pub mod time;
