//! The masters of a deployment, as `Builder::deployment` lists them before and after a failover.

use lockstorm_client::Deployment;

use crate::deployment::{Cluster, MASTER, Watched};
use crate::support::eventually;
use crate::support::program::Program;

/// Returns the ports of the masters; none while no process names them.
async fn ports(deployment: &Deployment) -> Vec<u16> {
    let masters = deployment.masters().await.unwrap_or_default();
    let port = |name: String| name.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    masters.iter().filter_map(|master| port(master.name())).collect()
}

#[tokio::test]
async fn the_sentinels_name_the_master_of_now() {
    let Some(watched) = Watched::start_on(&Program::Installed, &[]).await else { return };
    let old = watched.nodes[0].port();
    let deployment = watched.client().deployment().unwrap();
    assert!(deployment.fails_over());
    assert_eq!(ports(&deployment).await, [old]);
    watched.sentinels[0].command(&["SENTINEL", "FAILOVER", MASTER]).await;
    eventually("another is master", async || watched.master_by(0).await != old).await;
    let new = watched.master_by(0).await;
    eventually("it is named", async || ports(&deployment).await == [new]).await;
    let master = deployment.masters().await.unwrap().remove(0);
    assert!(master.login().await.unwrap().is_empty() && master.slots().is_empty());
    master.dial().await.unwrap();
}

#[tokio::test]
async fn a_cluster_names_its_masters_with_their_slots() {
    let Some(cluster) = Cluster::start_on(&Program::Installed, &[]).await else { return };
    let deployment = cluster.client().deployment().unwrap();
    let masters = deployment.masters().await.unwrap();
    let count: usize = masters.iter().flat_map(|master| master.slots()).map(ExactSizeIterator::len).sum();
    assert_eq!((masters.len(), count), (3, 16_384), "{masters:?}");
    let (master, replica) = cluster.home("stock");
    let (old, new) = (cluster.nodes[master].port(), cluster.nodes[replica].port());
    assert!(ports(&deployment).await.contains(&old));
    cluster.nodes[replica].command(&["CLUSTER", "FAILOVER"]).await;
    eventually("the replica is named", async || {
        let named = ports(&deployment).await;
        named.contains(&new) && !named.contains(&old) && named.len() == 3
    })
    .await;
}
