//! Redis Sentinel: watches masters, agrees with others that one is down, votes for who replaces it,
//! and reconfigures.
//!
//! A [`Sentinel`] is the state of one such process and what happens to it; it owns no socket, clock
//! or file. The server in Sentinel mode ([`Server::sentinel`](crate::server::Server::sentinel))
//! gives it the time and what its connections bring, and carries out what is in its [`Outbox`]. The
//! names are those of Redis; times are milliseconds of the wall clock, by which a real Sentinel
//! compares, while its timer runs by the monotonic clock.

mod connect;
mod down;
mod failover;
mod file;
mod hello;
mod info;
mod instance;
mod link;
mod master;
mod outbox;
mod peers;
mod reconfigure;
mod settings;
mod show;
mod state;
mod tick;
mod vote;

pub use failover::Refusal;
pub use file::{Mistake, OPTIONS, Scope, check_option, users_of, without_directives};
pub use instance::Address;
pub use outbox::{Outbox, Telling};
pub use settings::{MasterSettings, Settings, Times};
pub use show::{NAME_UNKNOWN, Wanted};
pub use state::Sentinel;
pub use vote::Opinion;

/// The channel of hello messages.
pub const HELLO: &str = "__sentinel__:hello";
