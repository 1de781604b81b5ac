//! The route to the master of a replicated set, found by asking all servers for their roles.

use std::pin::pin;
use std::sync::{Arc, Mutex};

use futures_util::future::{BoxFuture, select_ok};

use super::connection::Connection;
use super::replicas::connected_replicas;
use super::{NodeId, Route, same_set};
use crate::endpoint::Endpoint;
use crate::env::{Env, Monotonic, within};
use crate::error::{Error, ErrorKind, Result};
use crate::mutex::locked;
use crate::wire::Slot;

/// Several servers: one is the master of the others and has all keys.
pub(super) struct ReplicaSet {
    env: Arc<dyn Env>,
    endpoints: Vec<Endpoint>,
}

impl ReplicaSet {
    pub(super) fn new(env: Arc<dyn Env>, endpoints: Vec<Endpoint>) -> Self {
        Self { env, endpoints }
    }
}

impl Route for ReplicaSet {
    fn node(&self, _slot: Slot) -> NodeId {
        NodeId::ONLY
    }

    fn dial(&self, _node: NodeId, limit: Monotonic) -> BoxFuture<'_, Result<Arc<Connection>>> {
        Box::pin(find_master(&self.env, &self.endpoints, limit))
    }

    fn replicas(&self, _node: NodeId) -> usize {
        self.endpoints.len() - 1
    }

    fn check(&self, limit: Monotonic) -> BoxFuture<'_, Result<()>> {
        Box::pin(same_set::check(&self.env, &self.endpoints, limit))
    }
}

/// Connects to the first endpoint that reports to be a master. All are asked in parallel, so that
/// those that are down cost no time.
async fn find_master(
    env: &Arc<dyn Env>,
    endpoints: &[Endpoint],
    limit: Monotonic,
) -> Result<Arc<Connection>> {
    // A refused login is reported even if other servers fail later in another way.
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
            let told = within(&**env, limit, pin!(connected_replicas(&connection))).await;
            match told {
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
