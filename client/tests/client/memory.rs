//! What is under way takes little memory, as there may be thousands of it.

use lockstorm_client::Client;

use crate::support::RedisServer;
use crate::support::world::World;

/// An acquisition took 17,600 bytes: each function that was handed a future had room for it twice,
/// and what almost never happens had room in every acquisition.
#[tokio::test]
async fn an_acquisition_has_room_for_itself_once_and_for_nothing_rare() {
    let Some(server) = RedisServer::start() else { return };
    let world = World::new();
    let client = Client::builder().endpoint(server.url()).env(world.clone()).connect().await.unwrap();
    // The connection's own task, which there is once.
    world.largest_task();
    let guard = client.lock("stock").acquire().await.unwrap();
    let largest = world.largest_task();
    // Some 1,500 are the request's, of which redis-rs has most.
    assert!((500..2500).contains(&largest), "{largest} bytes");
    guard.release().await.unwrap();
}
