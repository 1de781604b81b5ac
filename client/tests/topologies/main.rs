//! Every object of the client on every topology, and holds during the loss of a master.

mod deployment;
mod failover;
mod loading;
mod masters;
mod objects;
mod sentinels;
mod slots;
#[path = "../support/mod.rs"]
mod support;
