//! The route to one server, and from there to its master if it has become a replica.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;

use super::connection::Connection;
use super::redirect::MasterAddress;
use super::{NodeId, Route};
use crate::config::Redirects;
use crate::endpoint::Endpoint;
use crate::env::{Env, Monotonic};
use crate::error::Result;
use crate::mutex::locked;
use crate::wire::Slot;

/// One server that has all keys.
pub(super) struct Single {
    env: Arc<dyn Env>,
    endpoint: Endpoint,
    redirects: Redirects,
    /// The master that `endpoint` or a later server has named, until it cannot be reached.
    followed: Mutex<Option<Endpoint>>,
}

impl Single {
    pub(super) fn new(env: Arc<dyn Env>, endpoint: Endpoint, redirects: Redirects) -> Self {
        Self { env, endpoint, redirects, followed: Mutex::default() }
    }

    async fn connect(&self, limit: Monotonic) -> Result<Arc<Connection>> {
        let followed = locked(&self.followed).clone();
        if let Some(master) = followed {
            let now = self.env.now();
            let opened = self.open(&master, now + (limit - now) / 2).await;
            if opened.is_ok() {
                return opened;
            }
            // Another master may have been named by now.
            let mut followed = locked(&self.followed);
            if followed.as_ref().is_some_and(|followed| followed.is_same_place(&master)) {
                *followed = None;
            }
        }
        self.open(&self.endpoint, limit).await
    }

    async fn open(&self, endpoint: &Endpoint, limit: Monotonic) -> Result<Arc<Connection>> {
        let connection = Connection::open(&self.env, endpoint, None, limit).await?;
        if self.follows_masters() {
            connection.ask_for_redirections(&self.env, limit).await?;
        }
        Ok(connection)
    }
}

impl Route for Single {
    fn node(&self, _slot: Slot) -> NodeId {
        NodeId::ONLY
    }

    fn dial(&self, _node: NodeId, limit: Monotonic) -> BoxFuture<'_, Result<Arc<Connection>>> {
        Box::pin(self.connect(limit))
    }

    fn follows_masters(&self) -> bool {
        self.redirects != Redirects::Never
    }

    fn follow_master(&self, named: &MasterAddress, replica: &Endpoint) -> bool {
        let MasterAddress { host, port } = named;
        let next = if self.endpoint.is_at(host, *port) {
            None
        } else if self.redirects.allow(host, *port, replica.host()) {
            let Ok(next) = self.endpoint.at(host, *port) else { return false };
            Some(next)
        } else {
            return false;
        };
        *locked(&self.followed) = next;
        true
    }
}
