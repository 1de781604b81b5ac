//! A peer of `lockstorm trial` with rslock, a Redlock of Rust. Its own retries are off: lockstorm
//! asks again.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rslock::{Lock, LockError, LockManager};
use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[derive(Default)]
struct Peer {
    locks: Mutex<BTreeMap<String, (LockManager, String)>>,
    holds: Mutex<BTreeMap<u64, (LockManager, Lock)>>,
}

fn say(message: &Value) {
    let mut out = std::io::stdout().lock();
    // If the reader is gone, the input ends as well.
    let _ = writeln!(out, "{message}").and_then(|()| out.flush());
}

/// The end, in milliseconds since the Unix epoch, of a lock that is valid for `validity`
/// milliseconds.
fn until_ms(validity: usize) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or_default() + validity as u64
}

impl Peer {
    async fn answer(&self, asked: &Value) -> Result<Value, Failure> {
        let number = |name: &str| asked[name].as_u64();
        Ok(match asked["type"].as_str().unwrap_or_default() {
            "init" => {
                for lock in asked["locks"].as_array().ok_or("no locks")? {
                    let nodes = lock["nodes"].as_array().ok_or("no nodes")?;
                    let urls = nodes.iter().map(|node| format!("redis://{}", node.as_str().unwrap_or_default()));
                    let mut manager = LockManager::new(urls.collect::<Vec<_>>());
                    manager.set_retry(1, Duration::ZERO);
                    let of = |name: &str| lock[name].as_str().unwrap_or_default().to_owned();
                    self.locks.lock().unwrap().insert(of("lock"), (manager, of("name")));
                }
                json!({ "type": "ready" })
            }
            "acquire" => {
                let name = asked["lock"].as_str().ok_or("no lock")?;
                let (manager, name) = self.locks.lock().unwrap().get(name).cloned().ok_or("no such lock")?;
                let lease = Duration::from_millis(number("lease_ms").ok_or("no lease")?);
                let lock = match manager.lock(name.as_bytes(), lease).await {
                    Ok(lock) => lock,
                    Err(LockError::Unavailable) => return Ok(json!({ "type": "refused" })),
                    Err(error) => return Err(error.to_string().into()),
                };
                let said = json!({
                    "type": "granted", "owner": String::from_utf8_lossy(&lock.val), "until_ms": until_ms(lock.validity_time),
                });
                self.holds.lock().unwrap().insert(number("id").ok_or("no id")?, (manager, lock));
                said
            }
            "release" => {
                let hold = self.holds.lock().unwrap().remove(&number("hold").ok_or("no hold")?);
                let (manager, lock) = hold.ok_or("no such hold")?;
                manager.unlock(&lock).await;
                json!({ "type": "released" })
            }
            "extend" => {
                let hold = number("hold").ok_or("no hold")?;
                let lease = Duration::from_millis(number("lease_ms").ok_or("no lease")?);
                let (manager, lock) = self.holds.lock().unwrap().remove(&hold).ok_or("no such hold")?;
                let extended = manager.extend(&lock, lease).await;
                let (said, lock) = match extended {
                    Ok(longer) => {
                        (Ok(json!({ "type": "extended", "until_ms": until_ms(longer.validity_time) })), longer)
                    }
                    Err(error) => (Err(error.to_string().into()), lock),
                };
                self.holds.lock().unwrap().insert(hold, (manager, lock));
                return said;
            }
            other => return Err(format!("no request of type {other}").into()),
        })
    }

    async fn obey(&self, asked: Value) {
        let said = self.answer(&asked).await;
        let mut said = said.unwrap_or_else(|error| json!({ "type": "error", "text": error.to_string() }));
        said["id"] = asked["id"].clone();
        say(&said);
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    say(&json!({
        "type": "hello", "protocol": 1, "library": "rslock", "version": "0.10", "driver": "redis-rs 1.8.1",
        "can": ["extend", "quorum"],
    }));
    let (line, mut lines) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for read in std::io::stdin().lock().lines().map_while(Result::ok) {
            if line.send(read).is_err() {
                return;
            }
        }
    });
    let peer = Arc::new(Peer::default());
    while let Some(line) = lines.recv().await {
        let asked = serde_json::from_str(&line)?;
        let peer = peer.clone();
        tokio::spawn(async move { peer.obey(asked).await });
    }
    Ok(())
}
