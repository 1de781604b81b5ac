//! A Redis 7 in memory, sans-IO, and the virtual world it lives in.
//!
//! The modules in reading order; each imports only those listed before it:
//!
//! - [`blob`]: bytes; [`time`], [`event`], [`mod@env`]: what a node is told and what it asks for;
//! - [`resp`]: bytes to commands, replies to bytes; [`glob`]: patterns; [`mod@log`]: lines for whoever operates a node;
//! - [`keyspace`], [`acl`], [`config`], [`effect`], [`options`], [`config_file`], [`pubsub`], [`tracking`], [`reply_room`],
//!   [`session`], [`sessions`], [`waiting`], [`slowlog`], [`latency`], [`stats`], [`script`], [`replication`], [`durability`],
//!   [`freeing`], [`migration`], [`node`]:
//!   what a node knows, and what outlives it;
//! - [`commands`]: one file per command;
//! - [`server`]: one step, from an event to its actions;
//! - [`world`]: hosts, clocks and links, and a timeline that jumps from event to event;
//! - [`drive`]: a server behind sockets: of the world, of `turmoil`, of the real network.

/// The version of Redis that this one answers as.
pub const VERSION: &str = "7.0.15";

pub mod blob;
pub mod time;

pub mod glob;
pub mod log;
pub mod resp;

pub mod acl;

pub mod event;

pub mod env;

pub mod keyspace;

pub mod config;

pub mod pubsub;

pub mod tracking;

pub mod effect;

pub mod options;

pub mod config_file;

pub mod reply_room;
pub mod session;
pub mod sessions;

pub mod waiting;

pub mod slowlog;
pub mod latency;

pub mod rates;
pub mod stats;

pub mod script;

pub mod replication;

pub mod durability;

pub mod freeing;

pub mod migration;

pub mod node;
mod caching;
pub mod expiry;
mod footprint;
mod listeners;
mod sending;
mod watches;

pub mod commands;

pub mod server;

pub mod drive;

pub mod world;

pub use drive::TestServer;
