//! Leases are measured by the clock that continues while the machine is suspended.

use std::sync::Arc;
use std::time::Duration;

use lockstorm_client::{Client, LossCause};

use crate::support::world::World;
use crate::support::{RedisServer, soon};

const LEASE: Duration = Duration::from_secs(60);

async fn client(server: &RedisServer, laptop: &Arc<World>) -> Client {
    Client::builder().endpoint(server.url()).env(laptop.clone()).connect().await.unwrap()
}

#[tokio::test]
async fn a_lease_ends_during_suspend() {
    let Some(server) = RedisServer::start() else { return };
    let laptop = World::new();
    let guard = client(&server, &laptop).await.lock("stock").acquire().lease(LEASE).await.unwrap();
    // 60 s less 1 % and 2 ms: 59,398 ms.
    assert!(guard.validity() <= Duration::from_millis(59_398));
    let lost = guard.lost();
    laptop.suspend(Duration::from_secs(30));
    assert!(guard.is_valid());
    assert!(guard.validity() <= Duration::from_millis(29_398));
    laptop.suspend(Duration::from_secs(30));
    assert_eq!(guard.validity(), Duration::ZERO);
    assert!(!guard.is_valid());
    // By the monotonic clock, which stood still, almost a minute is left.
    assert_eq!(soon("the loss is noticed", lost).await, LossCause::Expired);
    // The server, which was not suspended in this test, still has it.
    guard.release().await.unwrap();
}

/// The watchdog does not revive a lock that was lost by this client's clock, although the server
/// still has it: the application has been notified.
#[tokio::test]
async fn a_lost_lock_is_not_renewed() {
    let Some(server) = RedisServer::start() else { return };
    let laptop = World::new();
    let client = Client::builder()
        .endpoint(server.url())
        .env(laptop.clone())
        .watchdog_timeout(Duration::from_secs(2))
        .connect()
        .await
        .unwrap();
    let guard = client.lock("stock").acquire().await.unwrap();
    laptop.suspend(Duration::from_secs(2));
    assert_eq!(soon("the loss is noticed", guard.lost()).await, LossCause::Expired);
    // Without renewals it becomes free after 2 s.
    let other = Client::connect(&server.url()).await.unwrap();
    let again = other.lock("stock").try_acquire_for(Duration::from_secs(20)).await.unwrap();
    assert!(again.is_some());
    assert!(!guard.is_valid());
}
