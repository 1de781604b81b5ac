//! Users and passwords, also changing ones.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockstorm_client::{Builder, Client, Credentials, ErrorKind};
use redis::{ConnectionInfo, RedisConnectionInfo};

use crate::support::{RedisServer, command, eventually, on_each_server, soon};

async fn set_password(url: &str, password: &str) {
    command(url, &format!("ACL SETUSER clerk on resetpass >{password} ~* &* +@all")).await;
}

/// The source of an application's password. Like a cache, it returns the old password once before
/// it learns the new one.
#[derive(Default)]
struct Vault {
    stale: Mutex<Option<String>>,
    password: Mutex<String>,
    asked: AtomicUsize,
}

impl Vault {
    fn learns(&self, password: &str) {
        let before = std::mem::replace(&mut *self.password.lock().unwrap(), password.to_owned());
        *self.stale.lock().unwrap() = Some(before);
    }

    fn tells(&self) -> Credentials {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let stale = self.stale.lock().unwrap().take();
        Credentials::new("clerk", stale.unwrap_or_else(|| self.password.lock().unwrap().clone()))
    }

    fn client(self: &Arc<Self>, url: &str) -> Builder {
        let vault = self.clone();
        Client::builder().endpoint(url).credentials(move || {
            let credentials = vault.tells();
            async { Ok(credentials) }
        })
    }
}

#[tokio::test]
async fn a_password_that_changes_is_asked_for_at_each_connection() {
    on_each_server(async |url| {
        set_password(url, "first").await;
        let vault = Arc::new(Vault::default());
        *vault.password.lock().unwrap() = "first".to_owned();
        let client = vault.client(url).connect().await.unwrap();
        assert_eq!(vault.asked.load(Ordering::SeqCst), 1);
        let guard = client.lock("stock").acquire().await.unwrap();

        set_password(url, "second").await;
        vault.learns("second");
        // Open connections stay open; the next one is refused with the first password, and asks
        // again.
        command(url, "CLIENT KILL USER clerk").await;
        guard.release().await.unwrap();
        assert_eq!(vault.asked.load(Ordering::SeqCst), 3);

        // A waiter's second connection logs in as well.
        let guard = client.lock("stock").acquire().await.unwrap();
        let waiting = client.lock("stock").acquire().into_future();
        let release = async {
            eventually("it listens", async || {
                let listed: String =
                    redis::from_redis_value(command(url, "CLIENT LIST TYPE pubsub").await).unwrap();
                listed.contains("user=clerk")
            })
            .await;
            guard.release().await.unwrap();
        };
        let (waited, ()) = futures_util::future::join(soon("it is released", waiting), release).await;
        waited.unwrap().release().await.unwrap();
        assert_eq!(vault.asked.load(Ordering::SeqCst), 4);
    })
    .await;
}

#[tokio::test]
async fn a_password_that_stays_wrong_is_refused_after_two_questions() {
    on_each_server(async |url| {
        set_password(url, "right").await;
        let vault = Arc::new(Vault::default());
        let client = vault.client(url).build().unwrap();
        let error = client.lock("stock").acquire().await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Server { code, .. } if code == "WRONGPASS"), "{error}");
        assert!(error.is_definite() && !error.is_transient());
        assert_eq!(vault.asked.load(Ordering::SeqCst), 2);
    })
    .await;
}

#[tokio::test]
async fn a_server_that_is_not_there_asks_the_provider_once() {
    let vault = Arc::new(Vault::default());
    let error = vault.client("redis://127.0.0.1:1").connect().await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Connect { .. }), "{error}");
    assert_eq!(vault.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_provider_that_fails_or_is_silent_is_a_server_that_cannot_be_reached() {
    let of =
        |builder: Builder| builder.endpoint("redis://127.0.0.1:1").connect_timeout(Duration::from_millis(50));
    let failing = of(Client::builder().credentials(|| async { Err("the vault is sealed".into()) }));
    let silent = of(Client::builder().credentials(std::future::pending));
    for (builder, reason) in [(failing, "no credentials: the vault is sealed"), (silent, "timed out")] {
        let error = builder.connect().await.unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Connect { .. }) && error.to_string().contains(reason),
            "{error}"
        );
        assert!(error.is_definite() && error.is_transient(), "{error}");
    }
}

#[tokio::test]
async fn a_password_in_the_address_and_a_provider_are_one_too_many() {
    for address in ["redis://:secret@127.0.0.1", "redis+unix:///run/redis.sock?user=clerk"] {
        let builder = Client::builder().endpoint(address);
        let error = builder.credentials(|| async { Ok(Credentials::password("other")) }).build().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Config(_)), "{error}");
        assert!(error.to_string().contains("provider of credentials"), "{error}");
    }
}

#[tokio::test]
async fn a_connection_info_says_where_and_who() {
    on_each_server(async |url| {
        set_password(url, "secret").await;
        let info: ConnectionInfo = url.parse().unwrap();
        let login = RedisConnectionInfo::default().set_username("clerk").set_password("secret").set_db(3);
        let client = Client::connect(info.set_redis_settings(login)).await.unwrap();
        let guard = client.lock("stock").acquire().await.unwrap();
        assert_eq!(command(url, "EXISTS stock").await, redis::Value::Int(0), "in its database");
        assert_eq!(command(&format!("{url}/3"), "EXISTS stock").await, redis::Value::Int(1));
        guard.release().await.unwrap();
    })
    .await;
}

/// A server, or a proxy before it, that does not report the ID of a connection: locks work there,
/// although a silent connection cannot be fenced. Only a client that had to be refused is an error.
#[tokio::test]
async fn a_server_that_names_no_connection_is_used_all_the_same() {
    let Some(server) = RedisServer::start_with(&["--rename-command", "CLIENT", ""]) else { return };
    let client = Client::connect(&server.url()).await.unwrap();
    client.lock("stock").acquire().await.unwrap().release().await.unwrap();
}
