//! The evenness of grants to clients that always want the same lock, on a real server.

use std::time::Duration;

use lockstorm_client::Client;

use crate::support::{RedisServer, soon, task};

#[expect(clippy::disallowed_methods, reason = "holds and pauses in real time")]
async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Five clients and 150 grants. Regression: a server publishes to its subscribers in one order; of
/// clients that all ask immediately two had nearly all the grants, and two had none.
#[tokio::test]
async fn no_client_starves_because_others_are_told_first() {
    const CLIENTS: usize = 5;
    const GRANTS: usize = 150;
    let Some(server) = RedisServer::start() else { return };
    let granted = std::sync::Arc::new(std::sync::Mutex::new([0; CLIENTS]));
    let mut contenders = Vec::new();
    for number in 0..CLIENTS {
        let (client, granted) = (Client::connect(&server.url()).await.unwrap(), granted.clone());
        contenders.push(task(async move {
            loop {
                let guard = client.lock("stock").acquire().await.unwrap();
                {
                    let mut granted = granted.lock().unwrap();
                    if granted.iter().sum::<usize>() >= GRANTS {
                        return;
                    }
                    granted[number] += 1;
                }
                pass(Duration::from_millis(5)).await;
                guard.release().await.unwrap();
                pass(Duration::from_millis(1)).await;
            }
        }));
    }
    for contender in contenders {
        soon("all are done", contender).await.unwrap();
    }
    let granted = *granted.lock().unwrap();
    let least = granted.iter().min().unwrap();
    assert!(*least >= GRANTS / CLIENTS / 3, "{granted:?}");
}
