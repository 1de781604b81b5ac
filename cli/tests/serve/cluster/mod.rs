//! Nodes in cluster mode behind real ports: those of Redis and those of lockstorm, in any mixture,
//! and the tools of Redis for them.

mod atomic;
mod failover;
pub(crate) mod rig;
mod start;
mod tools;
mod transcripts;

use std::process::Command;

/// Returns true if a `redis-server` of the simulated version is installed, with its tools.
fn redis_is_there() -> bool {
    let version = Command::new("redis-server").arg("--version").output();
    version.is_ok_and(|version| String::from_utf8_lossy(&version.stdout).contains("v=7.0."))
}
