//! The masters of a deployment, for tools that open connections of their own.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::cluster::Cluster;
use super::connection::Connection;
use super::sentinel::SentinelSet;
use crate::address::Topology;
use crate::config::Config;
use crate::endpoint::Endpoint;
use crate::env::{BoxStream, Env};
use crate::error::Result;

/// The servers that an [`Address`](crate::Address) names, for a tool that speaks to each master
/// itself, such as a monitor. Made by [`Builder::deployment`](crate::Builder::deployment).
pub struct Deployment {
    env: Arc<dyn Env>,
    config: Arc<Config>,
    asked: Asked,
}

/// The servers that know the masters.
enum Asked {
    /// None: the endpoints are the masters.
    None,
    Sentinels(Arc<SentinelSet>),
    Cluster(Arc<Cluster>),
}

impl std::fmt::Debug for Deployment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deployment").field("endpoints", &self.config.endpoints.len()).finish_non_exhaustive()
    }
}

impl Deployment {
    pub(crate) fn new(env: Arc<dyn Env>, config: Arc<Config>) -> Self {
        let asked = match &config.topology {
            Topology::Set => Asked::None,
            Topology::Sentinel { master, nodes } => {
                Asked::Sentinels(SentinelSet::new(env.clone(), config.clone(), master, nodes))
            }
            Topology::Cluster => Asked::Cluster(Cluster::new(env.clone(), config.clone())),
        };
        Self { env, config, asked }
    }

    /// Returns true if the masters change: Sentinels or a cluster are asked for them.
    pub fn fails_over(&self) -> bool {
        !matches!(self.asked, Asked::None)
    }

    /// Returns the present masters: all endpoints, the master that the Sentinels name, or the nodes
    /// of a cluster that have slots.
    ///
    /// # Errors
    /// When no Sentinel or node of the cluster answers within a second, or they know no master.
    pub async fn masters(&self) -> Result<Vec<Master>> {
        let limit = self.env.now() + self.config.connect_timeout;
        let all = match &self.asked {
            Asked::None => self.config.endpoints.iter().map(|one| (one.clone(), Vec::new())).collect(),
            Asked::Sentinels(set) => vec![(set.master(limit).await?, Vec::new())],
            Asked::Cluster(cluster) => cluster.masters(limit).await?,
        };
        let master = |(endpoint, slots)| Master { env: self.env.clone(), endpoint, slots };
        Ok(all.into_iter().map(master).collect())
    }
}

/// A master of a [`Deployment`].
#[derive(Clone)]
pub struct Master {
    env: Arc<dyn Env>,
    endpoint: Endpoint,
    slots: Vec<RangeInclusive<u16>>,
}

impl std::fmt::Debug for Master {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Master").field("endpoint", &self.endpoint.to_string()).finish_non_exhaustive()
    }
}

impl Master {
    /// Returns `host:port`, or the path of a Unix socket.
    pub fn name(&self) -> String {
        self.endpoint.to_string()
    }

    /// Returns the slots of a node of a cluster; none for other servers.
    pub fn slots(&self) -> &[RangeInclusive<u16>] {
        &self.slots
    }

    /// Opens a connection, under TLS if the address asks for it. The caller limits the time, and
    /// logs in.
    ///
    /// # Errors
    /// When the server cannot be reached, or one side refuses the other's certificate.
    pub async fn dial(&self) -> Result<BoxStream> {
        Connection::dial(&self.env, &self.endpoint).await
    }

    /// Returns the words after AUTH: user and password, the password, or none.
    ///
    /// # Errors
    /// When the provider of credentials fails.
    pub async fn login(&self) -> Result<Vec<String>> {
        let login = self.endpoint.login().await?;
        let Some(password) = login.password() else { return Ok(Vec::new()) };
        Ok(login.username().into_iter().chain([password]).map(ToOwned::to_owned).collect())
    }
}
