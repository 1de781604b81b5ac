//! Passing refusals of every kind, for every object: the client repeats the request until they have
//! passed, and a caller whose time is over gets the refusal itself.

use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::BoxFuture;
use lockstorm_client::{Builder, Client, Guard, Handle, Object, RateMode, Redlock, Result};

use crate::support::{RedisServer, eventually, soon, task};

/// A refusal, and the commands that make a server begin and end it.
struct Refusing {
    code: &'static str,
    begin: &'static [&'static [&'static str]],
    end: &'static [&'static [&'static str]],
    /// True if releases work: they need no memory, so OOM does not refuse them.
    releases: bool,
}

const NOWHERE: &[&str] = &["REPLICAOF", "127.0.0.1", "1"];
const MASTER: &[&str] = &["REPLICAOF", "NO", "ONE"];

const REFUSALS: [Refusing; 5] = [
    Refusing {
        code: "OOM",
        begin: &[&["CONFIG", "SET", "maxmemory", "1"]],
        end: &[&["CONFIG", "SET", "maxmemory", "0"]],
        releases: true,
    },
    Refusing {
        code: "NOREPLICAS",
        begin: &[&["CONFIG", "SET", "min-replicas-to-write", "1"]],
        end: &[&["CONFIG", "SET", "min-replicas-to-write", "0"]],
        releases: false,
    },
    Refusing { code: "READONLY", begin: &[NOWHERE], end: &[MASTER], releases: false },
    Refusing {
        code: "MASTERDOWN",
        begin: &[&["CONFIG", "SET", "replica-serve-stale-data", "no"], NOWHERE],
        end: &[MASTER],
        releases: false,
    },
    // The server's snapshot file cannot replace a folder.
    Refusing {
        code: "MISCONF",
        begin: &[&["CONFIG", "SET", "save", "3600 1"], &["BGSAVE"]],
        end: &[&["CONFIG", "SET", "stop-writes-on-bgsave-error", "no"]],
        releases: false,
    },
];

/// A folder in place of a server's snapshot file.
struct Folder(PathBuf);

impl Folder {
    fn of(server: &RedisServer) -> Self {
        let path = std::env::temp_dir().join(format!("lockstorm-{}.rdb", server.port()));
        std::fs::create_dir(&path).expect("there is no such file");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The server may be gone, and its files with it.
        let _ = std::fs::remove_dir(&self.0);
    }
}

impl Refusing {
    async fn begin(&self, server: &RedisServer) {
        for command in self.begin {
            server.command(command).await;
        }
        let probe = ["SET", "probe", "1"];
        let before = server.refusals(self.code).await;
        eventually("it refuses", async || {
            // Only the server's count of the refusal matters.
            let _ = server.try_command(&probe).await;
            server.refusals(self.code).await > before
        })
        .await;
    }

    async fn end(&self, server: &RedisServer) {
        for command in self.end {
            server.command(command).await;
        }
    }
}

type Doing = BoxFuture<'static, Result<()>>;

/// One object: a call that releases its hold, and a call that acquires and releases another of its
/// kind.
struct One {
    object: &'static str,
    give_back: Option<Doing>,
    ask: Box<dyn Fn() -> Doing>,
}

fn one<O: Object>(object: &'static str, held: Guard<O::Got>, free: Handle<O>) -> One {
    let ask = move || -> Doing {
        let free = free.clone();
        Box::pin(async move { free.acquire().await?.release().await })
    };
    One { object, give_back: Some(Box::pin(held.release())), ask: Box::new(ask) }
}

/// All objects of a client, each with a hold.
async fn all(client: &Client, held: &str) -> Vec<One> {
    let lock =
        async |object, held: lockstorm_client::Lock, free| one(object, held.acquire().await.unwrap(), free);
    let (c, name) = (client, |kind: &str| format!("{held} {kind}"));
    let mut all = vec![
        lock("lock", c.lock(&name("lock")), c.lock("lock")).await,
        lock("fair", c.fair_lock(&name("fair")), c.fair_lock("fair")).await,
        lock("spin", c.spin_lock(&name("spin")), c.spin_lock("spin")).await,
        lock("string", c.string_lock(&name("string")), c.string_lock("string")).await,
        lock("read", c.rw_lock(&name("read")).read(), c.rw_lock("read").read()).await,
        lock("written", c.rw_lock(&name("written")).write(), c.rw_lock("written").write()).await,
        lock("non-reentrant", c.non_reentrant_lock(&name("alone")), c.non_reentrant_lock("alone")).await,
        lock("values", c.faster_multi_lock(&name("values"), ["a"]), c.faster_multi_lock("values", ["a"]))
            .await,
    ];
    all.push(one("fenced", c.fenced_lock(&name("fenced")).acquire().await.unwrap(), c.fenced_lock("fenced")));
    let majority = |name: &str| {
        let builder = Redlock::builder([client.clone()]).node_timeout(Duration::from_secs(2));
        builder.build(name).unwrap()
    };
    let held_by_majority = majority(&name("majority")).acquire().await.unwrap();
    all.push(one("Redlock", held_by_majority, majority("majority")));

    let seats = c.semaphore("seats");
    seats.set_permits(2).await.unwrap();
    let taken = seats.acquire(1).await.unwrap();
    all.push(One {
        object: "semaphore",
        give_back: Some(Box::pin(taken.release())),
        ask: Box::new(move || {
            let seats = seats.clone();
            Box::pin(async move { seats.acquire(1).await?.release().await })
        }),
    });
    let permits = c.permit_semaphore("permits");
    permits.set_permits(2).await.unwrap();
    let taken = permits.acquire(1).await.unwrap();
    all.push(One {
        object: "expirable semaphore",
        give_back: Some(Box::pin(taken.release())),
        ask: Box::new(move || {
            let permits = permits.clone();
            Box::pin(async move { permits.acquire(1).await?.release().await })
        }),
    });
    let latch = c.latch("latch");
    latch.try_set(1_000).await.unwrap();
    all.push(One {
        object: "latch",
        give_back: None,
        ask: Box::new(move || {
            let latch = latch.clone();
            Box::pin(async move { latch.count_down().await.map(drop) })
        }),
    });
    let rate = c.rate_limiter("rate");
    rate.set_rate(RateMode::Overall, 1_000, Duration::from_secs(1)).await.unwrap();
    all.push(One {
        object: "rate limiter",
        give_back: None,
        ask: Box::new(move || {
            let rate = rate.clone();
            Box::pin(async move { rate.acquire(1).await })
        }),
    });
    all
}

fn builder(server: &RedisServer) -> Builder {
    Client::builder()
        .endpoint(server.url())
        .retry_delay(Duration::from_millis(50), Duration::from_millis(100))
}

async fn each_refusal(play: impl AsyncFn(&RedisServer, &Refusing)) {
    for refusing in &REFUSALS {
        let Some(server) = RedisServer::start() else { return };
        let _folder = (refusing.code == "MISCONF").then(|| Folder::of(&server));
        play(&server, refusing).await;
    }
}

/// Regression: permits were lost for good under MISCONF, and acquisitions failed immediately under
/// OOM.
#[tokio::test]
async fn what_a_server_refused_for_a_while_is_done_when_that_has_passed() {
    each_refusal(async |server, refusing| {
        let client = builder(server).connect().await.unwrap();
        let objects = all(&client, "held").await;
        refusing.begin(server).await;
        let before = server.refusals(refusing.code).await;
        let mut tasks = Vec::new();
        for One { object, give_back, ask } in objects {
            tasks.push((object, "is taken", task(ask())));
            tasks.extend(give_back.map(|give_back| (object, "is given back", task(give_back))));
        }
        let most = before + 3 * tasks.len();
        eventually("all is repeated", async || server.refusals(refusing.code).await > most).await;
        refusing.end(server).await;
        for (object, what, task) in tasks {
            let done = soon(object, task).await.unwrap();
            done.unwrap_or_else(|error| panic!("{object} {what} after {}: {error}", refusing.code));
        }
    })
    .await;
}

/// Regression: a release under NOREPLICAS ended with "no reply within 10s", although the server had
/// replied each time.
#[tokio::test]
async fn the_refusal_is_the_error_of_who_has_no_more_time() {
    each_refusal(async |server, refusing| {
        let code = refusing.code;
        let hasty = builder(server).call_timeout(Duration::from_millis(400)).connect().await.unwrap();
        let objects = all(&hasty, "held").await;
        refusing.begin(server).await;
        let (mut asked, mut given_back) = (Vec::new(), Vec::new());
        for One { object, give_back, ask } in objects {
            asked.push((object, task(ask())));
            given_back.extend(give_back.map(|give_back| (object, task(give_back))));
        }
        for (object, asked) in asked {
            // The first command of some objects needs no memory, and the following ones are not
            // refused either.
            let Err(error) = soon(object, asked).await.unwrap() else {
                assert!(refusing.releases, "{object} under {code}");
                continue;
            };
            // The server refuses a plain SET, a write, with READONLY, and scripts with the other
            // code.
            let is_plain_write = ["Redlock", "string"].contains(&object) && code == "MASTERDOWN";
            let said = if is_plain_write { "READONLY" } else { code };
            assert!(error.to_string().contains(said), "{object} under {code}: {error}");
            assert!(error.is_transient(), "{object} under {code}: {error}");
        }
        for (object, given_back) in given_back {
            match soon(object, given_back).await.unwrap() {
                Ok(()) => assert!(refusing.releases, "{object} under {code}"),
                Err(error) => assert!(error.to_string().contains(code), "{object} under {code}: {error}"),
            }
        }
        refusing.end(server).await;
        // Holds that were not released in time are released in the background.
        let others = builder(server).connect().await.unwrap();
        for (object, again) in all_again(&others) {
            let done = soon(object, again).await;
            done.unwrap_or_else(|error| panic!("{object} after {code}: {error}"));
        }
    })
    .await;
}

/// Takes the lock of each object, which requires that its hold is released first: in less time than
/// a lease.
fn all_again(client: &Client) -> Vec<(&'static str, Doing)> {
    fn again<O: Object>(lock: Handle<O>) -> Doing {
        Box::pin(async move { lock.acquire().await?.release().await })
    }
    let c = client;
    let (seats, permits) = (c.semaphore("seats"), c.permit_semaphore("permits"));
    vec![
        ("lock", again(c.lock("held lock"))),
        ("fair", again(c.fair_lock("held fair"))),
        ("fenced", again(c.fenced_lock("held fenced"))),
        ("spin", again(c.spin_lock("held spin"))),
        ("string", again(c.string_lock("held string"))),
        ("read", again(c.rw_lock("held read").write())),
        ("written", again(c.rw_lock("held written").write())),
        ("non-reentrant", again(c.non_reentrant_lock("held alone"))),
        ("values", again(c.faster_multi_lock("held values", ["a"]))),
        ("Redlock", {
            let builder = Redlock::builder([client.clone()]).node_timeout(Duration::from_secs(2));
            again(builder.build("held majority").unwrap())
        }),
        ("semaphore", Box::pin(async move { seats.acquire(2).await?.release().await })),
        ("expirable semaphore", Box::pin(async move { permits.acquire(2).await?.release().await })),
    ]
}
