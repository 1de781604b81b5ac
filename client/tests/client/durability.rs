//! Waiting for disks: what is granted, what is refused, and what is taken back, on each generation
//! of servers.

use std::time::Duration;

use lockstorm_client::{Builder, Client, Durability, ErrorKind, ReplicaWait};
use lockstorm_sim::TestServer;
use lockstorm_sim::config::Config;
use lockstorm_sim::generation::{Feature, Generation};
use redis::Value;

use crate::commands::commands;
use crate::support::program::Program;
use crate::support::{RedisServer, command, eventually, free_port};

/// A folder for the files of one server.
struct Folder(String);

impl Folder {
    fn new() -> Self {
        let number = free_port();
        let path = std::env::temp_dir().join(format!("lockstorm-disk-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for temporary files");
        Self(path.to_str().expect("a plain name").to_owned())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A server of a generation, simulated or real.
enum Server {
    Simulated(TestServer),
    Real { server: RedisServer, _folder: Folder },
}

impl Server {
    /// Starts the simulated server, and the real one if `LOCKSTORM_SERVERS` names a folder.
    async fn of(generation: Generation, options: &[(&str, &str)]) -> Vec<(String, Self)> {
        let builder = TestServer::builder().config(Config::of(generation));
        let builder = options.iter().fold(builder, |builder, (name, value)| builder.option(name, value));
        let simulated = Self::Simulated(builder.start().await.expect("a free port"));
        let mut all = vec![(format!("{generation}, simulated"), simulated)];
        if let Some(program) = Program::real(generation) {
            let folder = Folder::new();
            let mut words = vec!["--dir".to_owned(), folder.0.clone()];
            words.extend(options.iter().flat_map(|(name, value)| [format!("--{name}"), (*value).to_owned()]));
            let server = RedisServer::start_on(&program, |_| words.clone()).expect("it is present");
            all.push((program.to_string(), Self::Real { server, _folder: folder }));
        }
        all
    }

    fn url(&self) -> String {
        match self {
            Self::Simulated(server) => server.url(),
            Self::Real { server, .. } => server.url(),
        }
    }
}

fn client(url: &str) -> Builder {
    let client = Client::builder().endpoint(url).durability(Durability::Master);
    client.retry_attempts(0).retry_delay(Duration::from_millis(50), Duration::from_millis(100))
}

const SYNCED: &[(&str, &str)] = &[("appendonly", "yes"), ("appendfsync", "always")];

/// Every kind of change is followed by its WAITAOF, also where the script must be sent again with
/// its text.
#[tokio::test]
async fn a_change_is_granted_when_it_is_on_disk() {
    for generation in Generation::ALL.into_iter().filter(|one| one.has(Feature::SyncedOffsets)) {
        for (name, server) in Server::of(generation, SYNCED).await {
            let url = server.url();
            let client = client(&url).connect().await.unwrap_or_else(|error| panic!("{name}: {error}"));
            let lock = client.lock("stock");
            let once = async || lock.acquire().await.unwrap().release().await.unwrap();
            once().await;
            let sent = commands(&url, async || once().await).await;
            assert_eq!(sent, ["evalsha", "waitaof", "evalsha", "waitaof"], "{name}");
            command(&url, "SCRIPT FLUSH").await;
            let sent = commands(&url, async || once().await).await;
            let acquired = ["evalsha", "waitaof", "eval", "waitaof"];
            assert_eq!(sent, [acquired, acquired].concat(), "{name}");
            let guard = client.lock("extended").acquire().lease(Duration::from_secs(30)).await.unwrap();
            guard.extend(Duration::from_secs(60)).await.unwrap_or_else(|error| panic!("{name}: {error}"));
            guard.release().await.unwrap();
        }
    }
}

/// Without WAITAOF or without an append-only file nothing is taken, and the error names the reason.
#[tokio::test]
async fn a_server_that_cannot_sync_is_refused_by_name() {
    for generation in Generation::ALL {
        let reason = match generation.has(Feature::SyncedOffsets) {
            true => "its `appendonly` is `no`",
            false => "it has no WAITAOF",
        };
        for (name, server) in Server::of(generation, &[]).await {
            let error = client(&server.url()).connect().await.unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::NoAppendOnlyFile { .. }), "{name}: {error}");
            let client = client(&server.url()).build().unwrap();
            let error = client.lock("stock").acquire().await.unwrap_err();
            assert!(error.is_definite() && error.to_string().contains(reason), "{name}: {error}");
            assert_eq!(command(&server.url(), "DBSIZE").await, Value::Int(0), "{name}");
        }
    }
}

/// With `appendfsync no` no server ever confirms a sync.
#[tokio::test]
async fn a_grant_that_is_not_on_disk_is_taken_back() {
    let options = [("appendonly", "yes"), ("appendfsync", "no")];
    for generation in Generation::ALL.into_iter().filter(|one| one.has(Feature::SyncedOffsets)) {
        for (name, server) in Server::of(generation, &options).await {
            let url = server.url();
            let client = client(&url).durability_timeout(Duration::from_millis(200)).connect().await.unwrap();
            let error = client.lock("stock").try_acquire().await.unwrap_err();
            let is_unsynced =
                matches!(error.kind(), ErrorKind::NotSynced { master: false, replicas: 0, needed: 0 });
            assert!(is_unsynced && error.is_definite() && error.is_transient(), "{name}: {error}");
            assert_eq!(command(&url, "EXISTS stock").await, Value::Int(0), "{name}");
        }
    }
}

/// The file is switched off during a hold: the release is obeyed, and its error says that it is not
/// on disk.
#[tokio::test]
async fn a_release_is_sent_whatever_the_disk_does() {
    for generation in Generation::ALL.into_iter().filter(|one| one.has(Feature::SyncedOffsets)) {
        for (name, server) in Server::of(generation, SYNCED).await {
            let url = server.url();
            let client = client(&url).connect().await.unwrap();
            let (first, second) =
                (client.lock("first").acquire().await, client.lock("second").acquire().await);
            command(&url, "CONFIG SET appendonly no").await;
            for guard in [first.unwrap(), second.unwrap()] {
                let error = guard.release().await.unwrap_err();
                let is_named = matches!(error.kind(), ErrorKind::NoAppendOnlyFile { .. });
                assert!(is_named && !error.is_definite(), "{name}: {error}");
            }
            assert_eq!(command(&url, "EXISTS first second").await, Value::Int(0), "{name}");
        }
    }
}

/// With [`Durability::All`] the replica must have synced the grant; one without a file never does.
#[tokio::test]
async fn replicas_sync_as_well_if_all_must() {
    for generation in Generation::ALL.into_iter().filter(|one| one.has(Feature::SyncedOffsets)) {
        let Some(program) = Program::real(generation) else { continue };
        let (one, two) = (Folder::new(), Folder::new());
        let start = |folder: &Folder, more: &[&str]| {
            let options = ["--dir", &folder.0, "--appendonly", "yes", "--appendfsync", "always"];
            let words: Vec<String> = options.iter().chain(more).map(ToString::to_string).collect();
            RedisServer::start_on(&program, |_| words.clone()).expect("it is present")
        };
        let master = start(&one, &[]);
        let replica = start(&two, &["--replicaof", &format!("127.0.0.1 {}", master.port())]);
        // A replica rewrites its file after the first synchronization, and syncs nothing before.
        eventually("the replica syncs", async || {
            master.command(&["SET", "probe", "1"]).await;
            master.command(&["WAITAOF", "1", "1", "100"]).await
                == Value::Array(vec![Value::Int(1), Value::Int(1)])
        })
        .await;
        // A replica may tell of what it has synced only once a second.
        let connect = async |durability| {
            let both = client(&replica.url()).endpoint(master.url()).durability(durability);
            let both = both.replica_wait(ReplicaWait::All).durability_timeout(Duration::from_secs(3));
            both.connect().await.unwrap_or_else(|error| panic!("{program}: {error}"))
        };
        let (all, on_master) = (connect(Durability::All).await, connect(Durability::Master).await);
        for client in [&all, &on_master] {
            client.lock("stock").acquire().await.unwrap().release().await.unwrap();
        }
        replica.command(&["CONFIG", "SET", "appendonly", "no"]).await;
        on_master.lock("stock").acquire().await.unwrap().release().await.unwrap();
        let error = all.lock("stock").try_acquire().await.unwrap_err();
        let is_unsynced = matches!(error.kind(), ErrorKind::NotSynced { replicas: 0, needed: 1, .. });
        assert!(is_unsynced, "{program}: {error}");
        assert_eq!(master.command(&["EXISTS", "stock"]).await, Value::Int(0), "{program}");
    }
}
