//! Which clock a lease is measured by: the one that goes on while the machine is suspended.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockstorm_client::{Boottime, BoxFuture, BoxStream, Client, Env, LossCause, Monotonic, TokioEnv, Wall};

use crate::support::{RedisServer, soon};

const LEASE: Duration = Duration::from_secs(60);

/// The real world on a machine that can be said to have been suspended: then [`Env::boottime`] and [`Env::wall`] have
/// gone on and [`Env::now`] has not.
struct Laptop {
    real: TokioEnv,
    suspended: Mutex<Duration>,
}

impl Laptop {
    fn new() -> Arc<Self> {
        Arc::new(Self { real: TokioEnv::current().unwrap(), suspended: Mutex::default() })
    }

    fn suspend(&self, time: Duration) {
        *self.suspended.lock().unwrap() += time;
    }
}

impl Env for Laptop {
    fn now(&self) -> Monotonic {
        self.real.now()
    }
    fn boottime(&self) -> Boottime {
        self.real.boottime() + *self.suspended.lock().unwrap()
    }
    fn wall(&self) -> Wall {
        self.real.wall() + *self.suspended.lock().unwrap()
    }
    fn sleep_until(&self, deadline: Monotonic) -> BoxFuture<'static, ()> {
        self.real.sleep_until(deadline)
    }
    fn random(&self) -> u64 {
        self.real.random()
    }
    fn dial(&self, host: &str, port: u16) -> BoxFuture<'static, io::Result<BoxStream>> {
        self.real.dial(host, port)
    }
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.real.spawn(task);
    }
}

async fn client(server: &RedisServer, laptop: &Arc<Laptop>) -> Client {
    Client::builder().endpoint(server.url()).env(laptop.clone()).connect().await.unwrap()
}

#[tokio::test]
async fn a_lease_ends_during_suspend() {
    let Some(server) = RedisServer::start() else { return };
    let laptop = Laptop::new();
    let guard = client(&server, &laptop).await.lock("stock").acquire().lease(LEASE).await.unwrap();
    // 60 s less 1 % and 2 ms.
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

/// The watchdog does not bring a lock back that was lost by this client's clock, although the server still has it: the
/// application has been told.
#[tokio::test]
async fn a_lost_lock_is_not_renewed() {
    let Some(server) = RedisServer::start() else { return };
    let laptop = Laptop::new();
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
    // Free by itself after 2 s, without renewals.
    let other = Client::connect(&server.url()).await.unwrap();
    let again = other.lock("stock").try_acquire_for(Duration::from_secs(20)).await.unwrap();
    assert!(again.is_some());
    assert!(!guard.is_valid());
}
