//! Several nodes in one process: replication between them, and what of them outlives a crash.

mod durability;
mod functions;
mod migration;
mod replication;
mod switch;
