//! The evenness of grants to clients that always want the same lock, on a real server.

use std::time::Duration;

use lockstorm_client::Client;

use crate::support::{RedisServer, soon, task};

#[expect(clippy::disallowed_methods, reason = "holds and pauses in real time")]
async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Three clients that want the lock again immediately. Regression: a client asked again before the
/// others had received the message of its release, and three grants of four went to the last owner.
#[tokio::test]
async fn a_client_that_has_just_released_does_not_overtake_those_that_wait() {
    const CLIENTS: usize = 3;
    const GRANTS: usize = 300;
    let Some(server) = RedisServer::start() else { return };
    let granted = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut contenders = Vec::new();
    for number in 0..CLIENTS {
        let (client, granted) = (Client::connect(&server.url()).await.unwrap(), granted.clone());
        contenders.push(task(async move {
            while granted.lock().unwrap().len() < GRANTS {
                let guard = client.lock("stock").acquire().await.unwrap();
                granted.lock().unwrap().push(number);
                pass(Duration::from_millis(1)).await;
                guard.release().await.unwrap();
            }
        }));
    }
    for contender in contenders {
        soon("all are done", contender).await.unwrap();
    }
    let granted = granted.lock().unwrap().clone();
    let again = granted.windows(2).filter(|two| two[0] == two[1]).count();
    assert!(again <= GRANTS / 20, "{again} of {} grants went to the last owner: {granted:?}", granted.len());
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
