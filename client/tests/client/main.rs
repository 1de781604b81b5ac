//! Every object of the client on real servers and on simulated ones: `cargo test --test client
//! redlock::` runs the tests of one object. All are in one binary, because linking two dozen
//! binaries takes longer than most of them run.

mod clocks;
mod close;
mod commands;
mod connections;
mod durability;
mod fair_and_fenced;
mod fair_queue;
mod generations;
mod golden;
mod handing_over;
mod kinds;
mod last_refusal;
mod latch;
mod memory;
mod multi;
mod outage;
mod permit_semaphore;
mod rate_limiter;
mod read_write;
mod recovery;
mod redirects;
mod redlock;
mod reentrant;
mod refusals;
mod release;
mod renewal;
mod replicas;
mod rights;
mod semaphore;
mod spin_and_non_reentrant;
mod string;
mod turns;
#[path = "../support/mod.rs"]
mod support;
mod waiting;
