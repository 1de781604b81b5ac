//! Every object of the client on every topology, and holds that a master is lost under.

mod deployment;
mod failover;
mod loading;
mod objects;
mod sentinels;
mod slots;
#[path = "../support/mod.rs"]
mod support;
