//! A server behind a Unix socket.

use std::time::Duration;

use crate::support::{RedisServer, eventually, soon};
use lockstorm_client::{Client, ErrorKind};

/// The path of a socket; dropping it deletes the file, which a killed server leaves.
struct Socket(String);

impl Socket {
    /// A path with a space, which becomes part of the address of the server's connections.
    fn new(of: &str) -> Socket {
        let name = format!("lockstorm {} {of}.sock", std::process::id());
        Socket(std::env::temp_dir().join(name).display().to_string())
    }

    fn url(&self) -> String {
        format!("redis+unix://{}", self.0.replace(' ', "%20"))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Without a server the file does not exist.
        let _ = std::fs::remove_file(&self.0);
    }
}

#[tokio::test]
async fn a_lock_on_a_unix_socket_is_waited_for_and_renewed() {
    let socket = Socket::new("lock");
    let Some(server) = RedisServer::start_with(&["--unixsocket", &socket.0]) else { return };
    server.command(&["ACL", "SETUSER", "clerk", "on", ">secret", "~*", "&*", "+@all"]).await;
    let client = || {
        let url = format!("{}?user=clerk&pass=secret&db=3", socket.url());
        Client::builder().endpoint(url).watchdog_timeout(Duration::from_millis(1500)).connect()
    };
    let (mine, other) = (client().await.unwrap(), client().await.unwrap());
    let guard = mine.lock("stock").acquire().await.unwrap();
    assert!(other.lock("stock").try_acquire_for(Duration::from_secs(3)).await.unwrap().is_none());
    assert!(guard.is_valid());
    assert_eq!(server.command(&["EXISTS", "stock"]).await, redis::Value::Int(0), "in its database");
    let (waited, released) =
        futures_util::future::join(other.lock("stock").acquire().into_future(), guard.release()).await;
    released.unwrap();
    waited.unwrap().release().await.unwrap();
}

/// All connections of a Unix socket have the same address, the socket's path. The ID distinguishes
/// them: the abandoned connection is ended, and no other.
#[tokio::test]
async fn a_connection_of_a_unix_socket_is_fenced() {
    let socket = Socket::new("fence");
    let Some(server) = RedisServer::start_with(&["--unixsocket", &socket.0]) else { return };
    let client = Client::builder()
        .endpoint(socket.url())
        .response_timeout(Duration::from_millis(500))
        .retry_delay(Duration::from_millis(50), Duration::from_millis(100))
        .connect()
        .await
        .unwrap();
    let bystander = Client::connect(&socket.url()).await.unwrap();
    bystander.lock("other").acquire().await.unwrap().release().await.unwrap();
    let ids = async || -> Vec<String> {
        let list: String = redis::from_redis_value(server.command(&["CLIENT", "LIST"]).await).unwrap();
        // Valkey writes the address with brackets.
        let ours = list.lines().filter(|line| line.contains(&socket.0));
        ours.map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    };
    let before = ids().await;
    assert_eq!(before.len(), 2);
    // Writes wait for longer than a reply may take.
    server.command(&["CLIENT", "PAUSE", "60000", "WRITE"]).await;
    let error = client.lock("stock").try_acquire().await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::ResponseTimeout(_)), "{error}");
    server.command(&["CLIENT", "UNPAUSE"]).await;
    let guard = soon("it is free", client.lock("stock").acquire().into_future()).await.unwrap();
    eventually("the old one is gone", async || !ids().await.contains(&before[0])).await;
    assert!(ids().await.contains(&before[1]), "the other client's stays");
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_socket_that_is_not_there_cannot_be_reached() {
    let error = Client::connect(&Socket::new("none").url()).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Connect { .. }), "{error}");
    assert!(error.is_definite() && error.to_string().contains("none.sock"), "{error}");
}
