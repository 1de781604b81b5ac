//! The server: events in, actions out. It owns no socket, clock, thread or task.
//!
//! ```text
//! bytes -> resp -> frame -> gate -> command(Ctx) -> keyspace
//!                              |-> reply   -> resp -> bytes
//!                              '-> Effects -> settle -> replication stream, pub/sub, WATCH, woken waiters
//! ```

mod aof;
mod cluster;
mod blocking;
mod connection;
mod cron;
mod evict;
mod evict_clients;
mod execute;
mod failover;
mod finish;
mod gate;
mod loading;
mod long_script;
mod master;
mod migrate;
mod own_pushes;
mod pause;
mod rdb_save;
mod replica;
mod replication_cron;
mod sentinel;
mod settle;
mod shutdown;
mod slot_migration;
mod start;
mod step;

pub use start::StartError;
pub use step::Server;
