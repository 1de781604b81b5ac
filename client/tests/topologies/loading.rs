//! Nodes that restart with a file: they refuse requests with LOADING until it is read, and clients
//! wait for them.

use std::time::Duration;

use lockstorm_client::{Builder, ErrorKind};
use redis::Value;

use crate::deployment::{Cluster, patient};
use crate::support::{RedisServer, soon};

/// Longer than a crash and the loading of a file.
const LONG: Duration = Duration::from_secs(60);

/// One millisecond for each of a node's 5,000 keys. The node handles its clients after each
/// kilobyte.
const SLOWLY: &[&str] = &["--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024"];

/// Crashes a node with a file of its data, and starts it again; it loads for five seconds.
async fn comes_back(node: &mut RedisServer) {
    node.command(&["DEBUG", "POPULATE", "5000"]).await;
    node.command(&["SAVE"]).await;
    node.crash();
    node.restart_with(SLOWLY);
    assert!(is_loading(node).await, "it reads its file");
}

async fn is_loading(node: &RedisServer) -> bool {
    let told: String = redis::from_redis_value(node.command(&["INFO", "persistence"]).await).unwrap();
    told.contains("loading:1")
}

/// Clients without repeats get one of these codes, and the error shows that the lock has not
/// changed. The others find the hold that the file has, with old and new connections.
async fn is_waited_for(clients: impl Fn() -> Builder, node: &mut RedisServer, codes: &[&str]) {
    let hasty = clients().retry_attempts(0).connect().await.unwrap();
    let (mine, other) = (clients().connect().await.unwrap(), clients().connect().await.unwrap());
    let guard = mine.lock("stock").acquire().lease(LONG).await.unwrap();
    for client in [&hasty, &other] {
        assert!(client.lock("stock").try_acquire().await.unwrap().is_none());
    }

    comes_back(node).await;
    // The check for the lock is refused as well.
    let before = node.refusals("LOADING").await;
    let error = soon("it is refused", async {
        loop {
            // The first error comes from the connection that the crash broke.
            match hasty.lock("stock").try_acquire().await {
                Err(error) if matches!(error.kind(), ErrorKind::Server { .. }) => return error,
                Err(_) => {}
                Ok(got) => panic!("it has read its file: {got:?}"),
            }
        }
    })
    .await;
    assert!(codes.iter().any(|code| error.to_string().contains(code)), "{error}");
    assert!(error.is_definite() && error.is_transient(), "{error}");
    let late = soon("it connects", async { clients().connect().await }).await.unwrap();
    for (whose, client) in [("from before", &other), ("from now", &late)] {
        let got = soon("it is waited for", async { client.lock("stock").try_acquire().await }).await;
        assert!(got.unwrap().is_none(), "{whose}");
        assert!(!is_loading(node).await, "{whose}");
    }
    assert!(node.refusals("LOADING").await > before);
    guard.release().await.unwrap();
    assert_eq!(node.command(&["EXISTS", "stock"]).await, Value::Int(0));
}

#[tokio::test]
async fn a_server_that_loads_is_waited_for() {
    let Some(mut server) = RedisServer::start() else { return };
    let url = server.url();
    is_waited_for(|| patient().endpoint(&url), &mut server, &["LOADING"]).await;
}

/// It keeps its slots, because no other node has missed it for long enough. In its own view the
/// cluster is down until it hears from the others.
#[tokio::test]
async fn a_master_of_a_cluster_that_loads_is_waited_for() {
    let Some(mut cluster) = Cluster::start().await else { return };
    for node in &cluster.nodes {
        node.command(&["CONFIG", "SET", "cluster-node-timeout", "15000"]).await;
    }
    let (url, (master, _)) = (cluster.url(), cluster.home("stock"));
    let node = &mut cluster.nodes[master];
    is_waited_for(|| patient().endpoint(&url), node, &["LOADING", "CLUSTERDOWN"]).await;
}
