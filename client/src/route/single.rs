//! The route to one server.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::connection::Connection;
use super::{NodeId, Route};
use crate::endpoint::Endpoint;
use crate::env::{Env, Monotonic};
use crate::error::Result;
use crate::wire::Slot;

/// One server that has all keys.
pub(super) struct Single {
    env: Arc<dyn Env>,
    endpoint: Endpoint,
}

impl Single {
    pub(super) fn new(env: Arc<dyn Env>, endpoint: Endpoint) -> Self {
        Self { env, endpoint }
    }
}

impl Route for Single {
    fn node(&self, _slot: Slot) -> NodeId {
        NodeId::ONLY
    }

    fn dial(&self, _node: NodeId, limit: Monotonic) -> BoxFuture<'_, Result<Arc<Connection>>> {
        Box::pin(Connection::open(&self.env, &self.endpoint, None, limit))
    }
}
