//! Computes the number of replicas that must confirm a change.

use redis::Value;

use super::connection::Connection;
use crate::config::ReplicaWait;
use crate::error::{Error, Result};

/// Asks for the number of replicas connected to a master. `None` if the server is a replica itself.
pub(crate) async fn connected_replicas(connection: &Connection) -> Result<Option<usize>> {
    let reply = connection.call(&redis::cmd("ROLE")).await?;
    let Value::Array(parts) = &reply else { return Err(Error::unexpected(&reply)) };
    match parts.as_slice() {
        [Value::BulkString(role), _, Value::Array(replicas), ..] if role == b"master" => {
            Ok(Some(replicas.len()))
        }
        [Value::BulkString(_), ..] => Ok(None),
        _ => Err(Error::unexpected(&reply)),
    }
}

/// Returns the number of acknowledgements that `wait` requires, given the `configured` and the
/// `connected` number of replicas.
pub(crate) fn needed(wait: ReplicaWait, configured: usize, connected: usize) -> usize {
    // A configured replica that is gone still counts: it may come back and be promoted.
    let replicas = configured.max(connected);
    match wait {
        ReplicaWait::None => 0,
        ReplicaWait::Synced => connected.min(1),
        // The master is one of the majority of `replicas + 1` nodes.
        ReplicaWait::Majority => replicas.div_ceil(2),
        ReplicaWait::All => replicas,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements_needed() {
        for (wait, configured, connected, expected) in [
            (ReplicaWait::None, 2, 2, 0),
            (ReplicaWait::Synced, 2, 2, 1),
            // Redisson continues without replicas when none is connected.
            (ReplicaWait::Synced, 2, 0, 0),
            // 3 nodes: the master and one more; 4 nodes: the master and two more.
            (ReplicaWait::Majority, 2, 2, 1),
            (ReplicaWait::Majority, 3, 1, 2),
            (ReplicaWait::All, 2, 0, 2),
            (ReplicaWait::All, 0, 3, 3),
        ] {
            assert_eq!(needed(wait, configured, connected), expected, "{wait:?} {configured} {connected}");
        }
    }
}
