//! What outlives a node: snapshots and the append-only file, and what of them a crash leaves.

pub mod rdb;
