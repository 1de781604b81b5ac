//! The route to the master of a replicated set, and how many of its replicas must confirm.

use std::sync::{Arc, Mutex};

use futures_util::future::{BoxFuture, select_ok};
use redis::Value;

use super::connection::Connection;
use crate::config::{Endpoint, ReplicaWait};
use crate::env::{Env, Monotonic};
use crate::error::{Error, ErrorKind, Result};
use crate::hold::locked;

/// A connection to the first endpoint that calls itself a master. All are asked at once, so that those that are down
/// cost no time.
pub(crate) async fn find_master(
    env: &Arc<dyn Env>,
    endpoints: &[Endpoint],
    limit: Monotonic,
) -> Result<Arc<Connection>> {
    // A login that a server refuses stays refused, whatever becomes of the others.
    let refusal = Mutex::new(None);
    let refusal_of = &refusal;
    let asked = endpoints.iter().map(|endpoint| {
        let refusal = refusal_of;
        let asking: BoxFuture<'_, Result<Arc<Connection>>> = Box::pin(async move {
            let connection = Connection::open(env, endpoint, None, limit).await.inspect_err(|error| {
                if !error.is_transient() {
                    *locked(refusal) = Some(error.clone());
                }
            })?;
            match crate::env::within(&**env, limit, connected_replicas(&connection)).await {
                Some(Ok(Some(_))) => Ok(connection),
                Some(Ok(None)) => Err(no_master(endpoints, &format!("{endpoint} is a replica"))),
                Some(Err(error)) => Err(no_master(endpoints, &format!("{endpoint}: {error}"))),
                None => Err(no_master(endpoints, &format!("{endpoint} does not answer"))),
            }
        });
        asking
    });
    let found = select_ok(asked).await.map(|(connection, _slower)| connection);
    found.map_err(|last| {
        let refusal = locked(&refusal).take();
        refusal.unwrap_or_else(|| no_master(endpoints, &last.to_string()).caused_by(last))
    })
}

fn no_master(endpoints: &[Endpoint], reason: &str) -> Error {
    let endpoints = endpoints.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    Error::definite(ErrorKind::NoMaster { endpoints, reason: reason.to_owned() })
}

/// The number of replicas connected to a master; `None` when the server is a replica itself.
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

/// How many acknowledgements `wait` asks for, with `configured` replicas in the configuration and `connected` now.
pub(crate) fn needed(wait: ReplicaWait, configured: usize, connected: usize) -> usize {
    // A replica that is configured but gone still counts: it may come back and be promoted.
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
            // Redisson goes on without replicas when none is connected.
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
