//! The number of commands that a lock costs.

use futures_util::StreamExt;
use lockstorm_client::{Client, Handle, Object};
use lockstorm_sim::TestServer;
use redis::Value;

use crate::support::{RedisServer, soon};

/// The commands that a server reads while `work` runs, from MONITOR, without those of scripts.
pub(crate) async fn commands(url: &str, work: impl AsyncFnOnce()) -> Vec<String> {
    let server = redis::Client::open(url).unwrap();
    let monitor = server.get_async_monitor().await.unwrap();
    let mut seen = monitor.into_on_message::<String>();
    let mut marker = server.get_multiplexed_async_connection().await.unwrap();
    work().await;
    redis::cmd("ECHO").arg("the end").query_async::<String>(&mut marker).await.unwrap();
    let mut commands = Vec::new();
    loop {
        let line = soon("the server shows what it reads", seen.next()).await.unwrap();
        // `1339518083.107412 [0 127.0.0.1:60866] "keys" "*"`; commands of scripts have `lua` in
        // place of the address.
        let (whence, command) = line.split_once("] ").unwrap();
        let name = command.split(' ').next().unwrap().trim_matches('"').to_ascii_lowercase();
        match name.as_str() {
            "echo" => return commands,
            _ if whence.ends_with(" lua") => {}
            // The marker's connection sends its handshake.
            "hello" | "client" => {}
            _ => commands.push(name),
        }
    }
}

/// Acquires and releases `lock` three times, once the server knows the scripts.
async fn costs_two_commands<O: Object>(url: &str, lock: Handle<O>) {
    let once = async || lock.acquire().await.unwrap().release().await.unwrap();
    once().await;
    let sent = commands(url, async || {
        for _ in 0..3 {
            once().await;
        }
    });
    assert_eq!(sent.await, ["evalsha"; 6], "{lock:?} on {url}");
}

async fn latches(url: &str) -> usize {
    let mut connection = redis::Client::open(url).unwrap().get_multiplexed_async_connection().await.unwrap();
    let keys: Value =
        redis::cmd("KEYS").arg("redisson_unlock_latch*").query_async(&mut connection).await.unwrap();
    let Value::Array(keys) = keys else { panic!("a list of keys: {keys:?}") };
    keys.len()
}

/// Regression: each release cost a third command, a DEL for its latch.
#[tokio::test]
async fn an_uncontended_acquire_and_release_are_two_commands() {
    let simulated = TestServer::start().await.unwrap();
    let real = RedisServer::start();
    for url in [Some(simulated.url()), real.as_ref().map(RedisServer::url)].into_iter().flatten() {
        let client = Client::connect(&url).await.unwrap();
        costs_two_commands(&url, client.lock("plain")).await;
        costs_two_commands(&url, client.fair_lock("fair")).await;
        costs_two_commands(&url, client.fenced_lock("fenced")).await;
        costs_two_commands(&url, client.faster_multi_lock("group", ["a", "b", "c"])).await;
        // Only the latch of the last release remains; closing the client deletes it.
        assert_eq!(latches(&url).await, 1, "on {url}");
        client.close().await.unwrap();
        assert_eq!(latches(&url).await, 0, "on {url}");
    }
}
