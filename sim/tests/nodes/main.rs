//! Several nodes in one process: replication between them, and the state that survives a crash.

mod durability;
mod functions;
mod migration;
mod replication;
mod switch;
mod waitaof;
