//! Calls under way take little memory, because there may be thousands of them.

use lockstorm_client::Client;

use crate::support::RedisServer;
use crate::support::world::World;

/// Regression: an acquisition took 17,600 bytes. Each function that received a future had room for
/// it twice, and rare cases had room in every acquisition.
#[tokio::test]
async fn an_acquisition_has_room_for_itself_once_and_for_nothing_rare() {
    let Some(server) = RedisServer::start() else { return };
    let world = World::new();
    let client = Client::builder().endpoint(server.url()).env(world.clone()).connect().await.unwrap();
    // Resets the count after the connection's own task, which exists once.
    world.largest_task();
    let guard = client.lock("stock").acquire().await.unwrap();
    let largest = world.largest_task();
    // The request takes some 1,500 of them, most of it in redis-rs.
    assert!((500..2500).contains(&largest), "{largest} bytes");
    guard.release().await.unwrap();
}
