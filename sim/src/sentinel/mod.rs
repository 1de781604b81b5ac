//! Redis Sentinel: watches masters, agrees with other Sentinels that one is down, votes for a
//! leader, and reconfigures the group.
//!
//! A [`Sentinel`] is the state of one such process and the rules that change it; it owns no socket,
//! clock or file. The server in Sentinel mode
//! ([`Server::sentinel`](crate::server::Server::sentinel)) passes in the time and the input of
//! connections, and carries out the effects in its [`Outbox`]. Names are those of Redis. Times are
//! milliseconds of the wall clock, because a real Sentinel compares by it, while its timer runs by
//! the monotonic clock.

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

pub use failover::{ByHand, Refusal};
pub use file::{Mistake, OPTIONS, Scope, check_option, users_of, without_directives};
pub use instance::Address;
pub use outbox::{Outbox, Telling};
pub use settings::{MasterSettings, Settings, Times};
pub use show::{NAME_UNKNOWN, Wanted};
pub use state::Sentinel;
pub use vote::Opinion;

/// The channel of hello messages.
pub const HELLO: &str = "__sentinel__:hello";
