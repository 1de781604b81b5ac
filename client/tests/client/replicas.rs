//! A replicated set: finding the master, waiting for replicas, following a failover.

use std::time::Duration;

use lockstorm_client::{Builder, Client, ErrorKind, ReplicaWait};
use redis::Value;

use crate::support::{RedisServer, eventually};

struct Set {
    master: RedisServer,
    replica: RedisServer,
}

impl Set {
    async fn start() -> Option<Self> {
        let master = RedisServer::start()?;
        let replica = RedisServer::start_with(&["--replicaof", &format!("127.0.0.1 {}", master.port())])?;
        eventually("the replica is in step", async || {
            master.command(&["WAIT", "1", "100"]).await == Value::Int(1)
        })
        .await;
        Some(Self { master, replica })
    }

    /// The replica comes first, so that the order of the endpoints does not help.
    fn client(&self) -> Builder {
        Client::builder()
            .endpoint(self.replica.url())
            .endpoint(self.master.url())
            .response_timeout(Duration::from_secs(1))
            .retry_delay(Duration::from_millis(50), Duration::from_millis(100))
    }
}

#[tokio::test]
async fn the_master_is_found_and_followed() {
    let Some(mut set) = Set::start().await else { return };
    let client = set.client().replica_wait(ReplicaWait::All).connect().await.unwrap();
    let guard = client.lock("stock").acquire().await.unwrap();
    // The replica confirmed it before it was granted.
    assert_eq!(set.replica.command(&["EXISTS", "stock"]).await, Value::Int(1));
    set.master.crash();
    set.replica.command(&["REPLICAOF", "NO", "ONE"]).await;

    let survivor = set.client().connect().await.unwrap();
    assert!(survivor.lock("stock").try_acquire().await.unwrap().is_none(), "the lock survived");
    // The promoted server has no replica, and the configuration requires one.
    let error = guard.release().await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NotReplicated { acked: 0, needed: 1 }), "{error}");
    let guard = survivor.lock("stock").acquire().await.unwrap();
    guard.release().await.unwrap();
}

/// A demoted master refuses to write; the client looks for the new one.
#[tokio::test]
async fn a_demoted_master_is_left() {
    let Some(set) = Set::start().await else { return };
    let client = set.client().connect().await.unwrap();
    let guard = client.lock("stock").acquire().await.unwrap();
    eventually("the replica has the lock", async || {
        set.replica.command(&["EXISTS", "stock"]).await == Value::Int(1)
    })
    .await;
    set.replica.command(&["REPLICAOF", "NO", "ONE"]).await;
    set.master.command(&["REPLICAOF", "127.0.0.1", &set.replica.port().to_string()]).await;
    guard.release().await.unwrap();
    assert_eq!(set.replica.command(&["EXISTS", "stock"]).await, Value::Int(0));
}

/// A grant that the replicas do not confirm is taken back, because a failover might lose it.
#[tokio::test]
async fn an_unconfirmed_grant_is_taken_back() {
    let Some(set) = Set::start().await else { return };
    let client = set
        .client()
        .replica_wait(ReplicaWait::Majority)
        .replica_timeout(Duration::from_millis(100))
        .retry_attempts(1)
        .connect()
        .await
        .unwrap();
    set.replica.signal("STOP");
    let error = client.lock("stock").try_acquire().await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NotReplicated { acked: 0, needed: 1 }), "{error}");
    assert_eq!(set.master.command(&["EXISTS", "stock"]).await, Value::Int(0));
    set.replica.signal("CONT");
}
