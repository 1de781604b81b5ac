//! A server that has become a replica and names its master: the client follows where it may.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockstorm_client::{Builder, Client, ErrorKind, Redirects, Redlock};
use lockstorm_sim::TestServer;
use lockstorm_sim::generation::Generation;
use redis::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::support::program::Program;
use crate::support::{RedisServer, command, eventually, soon, task};

/// A replica that replies as Valkey 9.1.2 does to a client that understands redirections.
struct Replica {
    port: u16,
    /// The words of each command that it has read, without the arguments of scripts.
    read: Arc<Mutex<Vec<String>>>,
}

impl Replica {
    async fn bind() -> (TcpListener, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback port");
        let port = listener.local_addr().expect("a bound listener has an address").port();
        (listener, port)
    }

    /// Starts a replica of the master at this address.
    async fn of(master: &str) -> Self {
        let (listener, port) = Self::bind().await;
        Self::serve(listener, port, master)
    }

    fn serve(listener: TcpListener, port: u16, master: &str) -> Self {
        let read = Arc::new(Mutex::new(Vec::new()));
        let (master, all) = (master.to_owned(), read.clone());
        task(async move {
            while let Ok((stream, _)) = listener.accept().await {
                task(Self::reply(stream, master.clone(), all.clone()));
            }
        });
        Self { port, read }
    }

    async fn reply(stream: TcpStream, master: String, all: Arc<Mutex<Vec<String>>>) {
        let mut stream = BufReader::new(stream);
        while let Some(words) = next(&mut stream).await {
            let name = words[0].to_ascii_uppercase();
            let shown = if name.starts_with("EVAL") { name.clone() } else { words.join(" ") };
            all.lock().expect("no test panics with this held").push(shown);
            let reply = match (name.as_str(), words.get(1).map_or("", String::as_str)) {
                ("CLIENT", "INFO") => {
                    let line =
                        "id=7 addr=127.0.0.1:4711 laddr=127.0.0.1:6379 fd=8 name= flags=N capa= db=0\n";
                    format!("${}\r\n{line}\r\n", line.len())
                }
                ("CLIENT", "KILL") => ":0\r\n".to_owned(),
                ("CLIENT" | "AUTH" | "SELECT", _) => "+OK\r\n".to_owned(),
                ("EVAL" | "EVALSHA", _) => {
                    "-READONLY You can't write against a read only replica. script: on @user_script:1.\r\n"
                        .to_owned()
                }
                _ => format!("-REDIRECT {master}\r\n"),
            };
            if stream.get_mut().write_all(reply.as_bytes()).await.is_err() {
                return;
            }
        }
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    fn read(&self) -> Vec<String> {
        self.read.lock().expect("no test panics with this held").clone()
    }
}

/// Reads a command.
pub(crate) async fn next(stream: &mut BufReader<TcpStream>) -> Option<Vec<String>> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    let count: usize = line.trim_end().strip_prefix('*')?.parse().ok()?;
    let mut words = Vec::new();
    for _ in 0..count {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let length: usize = line.trim_end().strip_prefix('$')?.parse().ok()?;
        let mut word = vec![0; length + 2];
        stream.read_exact(&mut word).await.ok()?;
        word.truncate(length);
        words.push(String::from_utf8(word).ok()?);
    }
    (!words.is_empty()).then_some(words)
}

fn client(url: &str, redirects: Redirects) -> Builder {
    let client = Client::builder().endpoint(url).redirects(redirects).retry_attempts(0);
    client.retry_delay(Duration::from_millis(50), Duration::from_millis(100))
}

fn address(url: &str) -> &str {
    url.rsplit_once('@').map_or_else(|| url.strip_prefix("redis://").expect("a URL"), |(_, address)| address)
}

/// A script is refused without a word about the master; a plain command for its key asks for that.
/// The login goes along. Later requests go to the master at once.
#[tokio::test]
async fn a_client_follows_to_a_master_that_it_may_use() {
    let master = TestServer::builder().password("secret").start().await.unwrap();
    let address = address(&master.url()).to_owned();
    for redirects in [Redirects::Anywhere, Redirects::To(vec![address.clone()])] {
        let replica = Replica::of(&address).await;
        let url = replica.url().replace("redis://", "redis://:secret@");
        let client = client(&url, redirects).connect().await.unwrap();
        let guard = client.lock("stock").acquire().await.unwrap();
        assert_eq!(command(&master.url(), "EXISTS stock").await, Value::Int(1));
        guard.release().await.unwrap();
        client.lock("stock").acquire().await.unwrap().release().await.unwrap();
        let commands = ["AUTH secret", "CLIENT INFO", "CLIENT CAPA redirect", "EVALSHA", "GET stock"];
        assert_eq!(replica.read(), commands);
    }
}

/// Nothing is sent to a server that the application does not allow, and none is allowed by default.
#[tokio::test]
async fn a_client_does_not_follow_where_it_may_not() {
    for redirects in [Redirects::Never, Redirects::To(vec!["127.0.0.1:1".to_owned(), "10.0.0.1".to_owned()])]
    {
        let master = TestServer::start().await.unwrap();
        let replica = Replica::of(address(&master.url())).await;
        let client = client(&replica.url(), redirects).connect().await.unwrap();
        let error = client.lock("stock").try_acquire().await.unwrap_err();
        let is_readonly = matches!(error.kind(), ErrorKind::Server { code, .. } if code == "READONLY");
        assert!(is_readonly && error.is_definite() && error.is_transient(), "{error}");
        // Reading at a replica would show what its master no longer has.
        let error = client.lock("stock").is_locked().await.unwrap_err();
        let is_redirect = matches!(error.kind(), ErrorKind::Server { code, .. } if code == "REDIRECT");
        assert!(is_redirect && error.is_transient(), "{error}");
        let stats: String = redis::from_redis_value(command(&master.url(), "INFO stats").await).unwrap();
        // The only connection is the one that asks for these statistics.
        assert!(stats.contains("total_connections_received:1\r\n"), "{stats}");
    }
}

/// Two replicas that name each other, and one that names itself.
#[tokio::test]
async fn a_loop_of_replicas_is_left_at_once() {
    let ((one, first), (two, second)) = (Replica::bind().await, Replica::bind().await);
    let one = Replica::serve(one, first, &format!("127.0.0.1:{second}"));
    let two = Replica::serve(two, second, &format!("127.0.0.1:{first}"));
    let (own, port) = Replica::bind().await;
    let own = Replica::serve(own, port, &format!("127.0.0.1:{port}"));
    for (replica, most) in [(&one, 2), (&own, 1)] {
        let client = client(&replica.url(), Redirects::Anywhere).connect().await.unwrap();
        let error = soon("it ends", async { client.lock("stock").try_acquire().await }).await.unwrap_err();
        assert!(error.is_transient() && error.is_definite(), "{error}");
        let scripts = replica.read().iter().filter(|command| command.starts_with("EVAL")).count();
        assert!((1..=most).contains(&scripts), "{scripts} times");
    }
    assert!(two.read().iter().filter(|command| command.starts_with("EVAL")).count() <= 2);
}

/// The named master cannot be reached: the client returns to its endpoint, a few times for each
/// request.
#[tokio::test]
async fn a_client_returns_to_its_endpoint() {
    let (gone, port) = Replica::bind().await;
    drop(gone);
    let replica = Replica::of(&format!("127.0.0.1:{port}")).await;
    let client = client(&replica.url(), Redirects::Anywhere).connect().await.unwrap();
    for _ in 0..2 {
        let error = soon("it ends", async { client.lock("stock").try_acquire().await }).await.unwrap_err();
        assert!(error.is_transient() && error.is_definite(), "{error}");
    }
    let scripts = replica.read().iter().filter(|command| command.starts_with("EVAL")).count();
    assert!((2..=10).contains(&scripts), "{scripts} times");
}

/// Two servers of a Redlock could come to the same master, which would vote twice.
#[tokio::test]
async fn no_client_of_a_redlock_follows() {
    let server = TestServer::start().await.unwrap();
    let follower = client(&server.url(), Redirects::Anywhere).build().unwrap();
    let error = Redlock::builder([follower]).build("stock").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Config(_)), "{error}");
}

/// FAILOVER at a real Valkey: the hold, its waiter and later requests follow.
#[tokio::test]
async fn a_hold_follows_a_failover_of_a_real_valkey() {
    const LONG: Duration = Duration::from_secs(60);
    for generation in [Generation::Valkey81, Generation::Valkey91] {
        let Some(program) = Program::real(generation) else { continue };
        let start = |options: &[&str]| {
            let words: Vec<String> = options.iter().map(ToString::to_string).collect();
            RedisServer::start_on(&program, |_| words.clone()).expect("it is present")
        };
        let old = start(&[]);
        let new = start(&["--replicaof", &format!("127.0.0.1 {}", old.port())]);
        eventually("the replica is in step", async || {
            old.command(&["WAIT", "1", "100"]).await == Value::Int(1)
        })
        .await;
        let connect = async || {
            let client = Client::builder().endpoint(old.url()).redirects(Redirects::Anywhere);
            client.response_timeout(Duration::from_secs(10)).connect().await.unwrap()
        };
        let (mine, other) = (connect().await, connect().await);
        let guard = mine.lock("stock").acquire().lease(LONG).await.unwrap();
        let waiting = other.clone();
        let waiter = task(async move { waiting.lock("stock").acquire().lease(LONG).await });
        eventually("it waits", async || {
            let channels = old.command(&["PUBSUB", "CHANNELS"]).await;
            !matches!(channels, Value::Array(channels) if channels.is_empty())
        })
        .await;
        old.command(&["FAILOVER"]).await;
        eventually("it is the master", async || {
            format!("{:?}", new.command(&["ROLE"]).await).contains("master")
        })
        .await;
        soon("the release", guard.release()).await.unwrap_or_else(|error| panic!("{program}: {error}"));
        let next = soon("the waiter gets it", waiter).await.unwrap();
        let next = next.unwrap_or_else(|error| panic!("{program}: {error}"));
        assert_eq!(new.command(&["EXISTS", "stock"]).await, Value::Int(1), "{program}");
        next.release().await.unwrap();
        assert!(!mine.lock("stock").is_locked().await.unwrap(), "{program}");
    }
}
