//! A sans-IO Redis 8.2 in memory, which runs behind sockets or on hosts of a
//! [world](lockstorm_world).
//!
//! The modules in reading order; each imports only those listed before it:
//!
//! | module | what is there |
//! | --- | --- |
//! | [`generation`] | the servers that a node can imitate, and the features in which they differ |
//! | [`blob`] | the bytes of values and replies |
//! | [`glob`] | patterns |
//! | [`log`] | the lines that a node logs |
//! | [`resp`] | bytes to commands, replies to bytes |
//! | [`event`] | the events of a server and the actions it requests: its whole interface to its driver |
//! | [`mod@env`] | the clocks, the PRNG and the files of a step of the server |
//! | [`acl`] | users and their permissions |
//! | [`keyspace`] | the data: keys, their values of each type, their expiries |
//! | [`config`] | the configuration, the options of CONFIG, the configuration file |
//! | [`effect`] | the effects of commands, reported rather than acted on |
//! | [`script`] | Lua |
//! | [`replication`] | the state of master and replica: backlog, links, offsets |
//! | [`sentinel`] | Sentinel: watching masters, agreeing, voting, failing over |
//! | [`cluster`] | Redis Cluster: slots, the bus, elections, moving slots |
//! | [`durability`] | snapshots and the append-only file |
//! | [`node`] | the whole state of one node: data, clients, counters |
//! | [`commands`] | one file per command |
//! | [`server`] | one step, from an event to its actions |
//! | [`drive`] | a server behind sockets: of the real network, of a `turmoil` simulation, or of a host of the world |
//!
//! [`time`] is that of the world: the clocks of a host.

pub mod generation;

pub mod blob;

pub mod glob;

pub mod log;

pub mod resp;

pub mod event;

pub mod env;

pub mod acl;

pub mod keyspace;

pub mod config;

pub mod effect;

pub mod script;

pub mod replication;

pub mod sentinel;

pub mod cluster;

pub mod durability;

pub mod node;

pub mod commands;

pub mod server;

pub mod drive;

pub use drive::TestServer;
pub use lockstorm_world::time;
