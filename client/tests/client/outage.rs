//! Servers that are down, hang or refuse: an error in time, with the words of the server.

use std::error::Error as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockstorm_client::{Builder, Client, Error, ErrorKind, Event, EventKind, Observer, Redlock};
use lockstorm_sim::TestServer;

use crate::support::{Attempts, Flow, Proxy, RedisServer, command, free_port};

/// The time that a busy machine may add to the limit of a call.
const LATE: Duration = Duration::from_secs(1);

#[expect(clippy::disallowed_methods, reason = "a limit for a test, in real time")]
async fn in_time<T>(what: &str, given: Duration, work: impl Future<Output = T>) -> T {
    let begun = Instant::now();
    let done = work.await;
    let took = begun.elapsed();
    assert!(took < given + LATE, "{what} took {took:?}");
    done
}

fn server_code(error: &Error) -> &str {
    match error.kind() {
        ErrorKind::Server { code, .. } => code,
        _ => panic!("not the server's words: {error}"),
    }
}

/// Regression: an outage returned `None`, which means that another owner has the lock.
#[tokio::test]
async fn an_outage_looked_like_contention() {
    let Some(mut server) = RedisServer::start() else { return };
    let proxy = Proxy::to(&server).await;
    let wait = Duration::from_millis(200);
    let client = Client::connect(&proxy.url()).await.unwrap();
    let direct = Client::connect(&server.url()).await.unwrap();
    let held = direct.lock("held").acquire().await.unwrap();
    assert!(client.lock("held").try_acquire_for(wait).await.unwrap().is_none(), "this is contention");
    drop(held);

    proxy.replies(Flow::Swallow);
    let asked = client.lock("stock").try_acquire_for(wait).into_future();
    let error = in_time("a server that hangs", wait, asked).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::ResponseTimeout(_)), "{error}");
    assert!(!error.is_definite(), "the request may have been granted");

    server.crash();
    let unconnected = Client::builder().endpoint(server.url()).build().unwrap();
    let asked = unconnected.lock("stock").try_acquire_for(wait).into_future();
    let error = in_time("a server that is down", wait, asked).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Connect { .. }), "{error}");
    let source = error.source().expect("what the operating system said").downcast_ref::<std::io::Error>();
    assert_eq!(source.unwrap().kind(), std::io::ErrorKind::ConnectionRefused);

    let nodes = [unconnected, Client::builder().endpoint("redis://127.0.0.1:1").build().unwrap()];
    let lock = Redlock::builder(nodes).build("stock").unwrap();
    let asked = lock.try_acquire_for(wait).into_future();
    let error = in_time("nodes that are down", wait, asked).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NoQuorum { answered: 0, .. }), "{error}");
    assert!(error.is_transient(), "each may come back: {error}");
    let source = error.source().expect("what a node said").downcast_ref::<Error>();
    assert!(matches!(source.unwrap().kind(), ErrorKind::Connect { .. }), "{source:?}");
}

/// Regression: each call waited for all its repeats, and each repeat for all its timeouts:
/// `try_acquire` took 55 s, and `release` 49 s.
#[tokio::test]
async fn a_server_that_hangs_kept_callers_for_55_s() {
    let Some(server) = RedisServer::start() else { return };
    let proxy = Proxy::to(&server).await;
    let time = Duration::from_millis(500);
    let client = Client::builder().endpoint(proxy.url()).call_timeout(time).connect().await.unwrap();
    let lock = client.lock("stock");
    let (first, second) = (lock.acquire().await.unwrap(), client.lock("other").acquire().await.unwrap());
    proxy.requests(Flow::Hold);
    let timed_out = |what: &str, error: Error| {
        let is_it = matches!(error.kind(), ErrorKind::ResponseTimeout(after) if *after == time);
        assert!(is_it && !error.is_definite(), "{what}: {error}");
    };
    timed_out("acquire", in_time("acquire", time, lock.acquire().into_future()).await.unwrap_err());
    timed_out(
        "try_acquire",
        in_time("try_acquire", time, lock.try_acquire().into_future()).await.unwrap_err(),
    );
    timed_out("extend", in_time("extend", time, second.extend(Duration::from_secs(60))).await.unwrap_err());
    timed_out("is_locked", in_time("is_locked", time, lock.is_locked()).await.unwrap_err());
    timed_out("force_release", in_time("force_release", time, lock.force_release()).await.unwrap_err());
    timed_out("release", in_time("release", time, first.release()).await.unwrap_err());
}

/// Regression: a wrong password counted as a passing error, and the server's words were not shown.
#[tokio::test]
async fn a_wrong_password_was_tried_again() {
    let Some(server) = RedisServer::start() else { return };
    server.command(&["CONFIG", "SET", "requirepass", "right"]).await;
    let simulated = TestServer::start().await.unwrap();
    let open = redis::Client::open(simulated.url()).unwrap();
    let mut open = open.get_multiplexed_async_connection().await.unwrap();
    let () = redis::cmd("CONFIG").arg(&["SET", "requirepass", "right"]).query_async(&mut open).await.unwrap();
    // Two of the three nodes of this Redlock refuse the login, and no server listens at the third.
    for (login, code) in [(":wrong@", "WRONGPASS"), ("", "NOAUTH")] {
        let urls = [server.url(), simulated.url(), "redis://127.0.0.1:1".to_owned()];
        let logins = urls.map(|url| url.replace("redis://", &format!("redis://{login}")));
        let nodes = logins.map(|url| Client::builder().endpoint(url).build().unwrap());
        let error = Redlock::builder(nodes).build("stock").unwrap().acquire().await.unwrap_err();
        assert_eq!(server_code(&error), code, "{error}");
        assert!(error.is_definite() && !error.is_transient(), "{error}");
    }
    for url in [server.url(), simulated.url()] {
        for (login, code) in [(":wrong@", "WRONGPASS"), ("nobody:right@", "WRONGPASS"), ("", "NOAUTH")] {
            let attempts = Arc::new(Attempts::default());
            let url = url.replace("redis://", &format!("redis://{login}"));
            let client = Client::builder().endpoint(&url).observer(attempts.clone()).build().unwrap();
            let error = client.lock("stock").acquire().await.unwrap_err();
            assert_eq!(server_code(&error), code, "{url}: {error}");
            assert!(error.is_definite() && !error.is_transient(), "{url}: {error}");
            assert_eq!(attempts.count(), 1, "{url}");
            // A replicated set: one server is down and the other refuses.
            let set = Client::builder().endpoint("redis://127.0.0.1:1").endpoint(&url);
            assert_eq!(server_code(&set.connect().await.unwrap_err()), code, "{url}");
        }
        let right = url.replace("redis://", "redis://:right@");
        Client::connect(&right)
            .await
            .unwrap()
            .lock("stock")
            .acquire()
            .await
            .unwrap()
            .release()
            .await
            .unwrap();
    }
}

/// Regression: the silence of a node erased the error of the one before it, and the caller read "no
/// answer in time".
#[tokio::test]
async fn a_silent_node_hid_the_error_of_another() {
    // Connections to them are made, and get no reply.
    let listeners = [(); 2].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let [silent, silent_too] =
        listeners.each_ref().map(|node| format!("redis://{}", node.local_addr().unwrap()));
    let down = format!("redis://127.0.0.1:{}", free_port());
    let refusing = TestServer::start().await.unwrap();
    command(&refusing.url(), "CONFIG SET requirepass right").await;
    for (mut urls, reason) in [
        ([down.clone(), silent.clone(), silent_too], "cannot connect"),
        ([refusing.url(), down, silent], "NOAUTH"),
    ] {
        for _ in 0..urls.len() {
            urls.rotate_left(1);
            let nodes = urls.iter().map(|url| Client::builder().endpoint(url).build().unwrap());
            let builder = Redlock::builder(nodes).node_timeout(Duration::from_millis(500));
            let error = builder.build("stock").unwrap().is_locked().await.unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::NoQuorum { answered: 0, quorum: 2, .. }), "{error}");
            assert!(error.to_string().contains(reason), "{urls:?}: {error}");
            let source = error.source().expect("the error of a node").downcast_ref::<Error>();
            assert!(source.unwrap().to_string().contains(reason), "{urls:?}: {source:?}");
        }
    }
}

/// Regression: the error that the server sends before it closes the connection was ignored.
#[tokio::test]
async fn too_many_clients_was_a_broken_pipe() {
    let Some(server) = RedisServer::start_with(&["--maxclients", "1"]) else { return };
    let held = Client::connect(&server.url()).await.unwrap();
    // The moment at which the connection breaks depends on timing.
    for _ in 0..50 {
        let error = Client::connect(&server.url()).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Connect { .. }) && error.is_transient(), "{error}");
        assert!(error.to_string().contains("ERR max number of clients reached"), "{error}");
    }
    drop(held);
}

struct Grumpy;

impl Observer for Grumpy {
    fn observe(&self, event: &Event<'_>) {
        assert!(!matches!(event.kind, EventKind::Attempt), "I do not like it");
    }
}

/// Regression: both returned "the client is shutting down".
#[tokio::test]
async fn a_panicking_observer_and_a_lost_runtime_were_a_shutdown() {
    let server = TestServer::start().await.unwrap();
    let client = Client::builder().endpoint(server.url()).observer(Arc::new(Grumpy)).build().unwrap();
    let error = client.lock("stock").acquire().await.unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Panicked(text) if text.contains("I do not like it")),
        "{error}"
    );

    let url = server.url();
    let elsewhere = std::thread::spawn(move || {
        let other = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        other.block_on(async { Client::builder().endpoint(url).build().unwrap() })
    });
    let client = elsewhere.join().unwrap();
    let error = client.lock("stock").acquire().await.unwrap_err();
    assert!(error.to_string().contains("runtime on which the client was built has shut down"), "{error}");
}

/// Regression: both were accepted, although neither makes sense.
#[tokio::test]
async fn a_lock_without_a_name_and_a_majority_of_one_were_accepted() {
    let config = |error: Error, words: &str| {
        assert!(matches!(error.kind(), ErrorKind::Config(_)), "{error}");
        assert!(error.is_definite() && error.to_string().contains(words), "{error}");
    };
    let server = TestServer::start().await.unwrap();
    let client = || Client::builder().endpoint(server.url()).build().unwrap();
    let named = Client::builder().endpoint(server.url()).name_prefix("app:").build().unwrap();
    for lock in [client().lock(""), client().fair_lock(""), named.lock("")] {
        config(lock.acquire().await.unwrap_err(), "name of the lock is empty");
        config(lock.is_locked().await.unwrap_err(), "name of the lock is empty");
        config(lock.force_release().await.unwrap_err(), "name of the lock is empty");
    }
    config(client().fenced_lock("").acquire().await.unwrap_err(), "name of the lock is empty");
    config(client().fenced_lock("").last_token().await.unwrap_err(), "name of the lock is empty");
    config(Redlock::builder([client()]).build("").unwrap_err(), "name of the lock is empty");
    config(Redlock::builder([client(), client()]).build("stock").unwrap_err(), "must be independent");
}

#[tokio::test]
async fn masters_that_are_no_relatives_were_taken_for_a_set() {
    let (Some(one), Some(other)) = (RedisServer::start(), RedisServer::start()) else { return };
    let set = |urls: [String; 2]| -> Builder { urls.into_iter().fold(Client::builder(), Builder::endpoint) };
    let error = set([one.url(), other.url()]).connect().await.unwrap_err();
    assert!(error.to_string().contains("are both masters"), "{error}");
    let alias = one.url().replace("127.0.0.1", "localhost");
    let error = set([one.url(), alias]).connect().await.unwrap_err();
    assert!(error.to_string().contains("are the same server"), "{error}");
    let error = set([one.url(), one.url()]).connect().await.unwrap_err();
    assert!(error.to_string().contains("is named twice"), "{error}");
}
