//! The server: events in, actions out. It owns no socket, clock, thread or task.
//!
//! ```text
//! bytes -> resp -> frame -> gate -> command(Ctx) -> keyspace
//!                              |-> reply   -> resp -> bytes
//!                              '-> Effects -> settle -> replication stream, pub/sub, WATCH, woken waiters
//! ```

mod blocking;
mod busy;
mod connection;
mod cron;
mod durable;
mod evict;
mod evict_clients;
mod execute;
mod feed;
mod finish;
mod follow;
mod gate;
mod hand_over;
mod loading;
mod migrate;
mod own_pushes;
mod pause;
mod peers;
mod saving;
mod settle;
mod shutdown;
mod start;
mod step;

pub use start::StartError;
pub use step::Server;
