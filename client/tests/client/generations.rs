//! Properties that differ between generations of servers: scripts that are evicted, commands that
//! compare.

use std::time::Duration;

use lockstorm_client::{Client, Redlock, ReplicaWait};
use lockstorm_sim::TestServer;
use lockstorm_sim::config::Config;
use lockstorm_sim::generation::{Feature, Generation};
use redis::Value;

use crate::commands::commands;
use crate::support::program::Program;
use crate::support::{RedisServer, command, eventually};

/// More than the 500 scripts that newer servers keep.
const SCRIPTS: usize = 600;

/// Runs that many scripts that no client of ours has.
async fn fill(url: &str) {
    let client = redis::Client::open(url).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    for number in 0..SCRIPTS {
        let mut eval = redis::cmd("EVAL");
        eval.arg(format!("return {number}")).arg(0);
        let reply: usize = eval.query_async(&mut connection).await.unwrap();
        assert_eq!(reply, number);
    }
}

/// The number of scripts that the server did not know.
async fn unknown(url: &str) -> usize {
    let stats: String = redis::from_redis_value(command(url, "INFO errorstats").await).unwrap();
    let count = stats.lines().find_map(|line| line.strip_prefix("errorstat_NOSCRIPT:count="));
    count.map_or(0, |count| count.trim().parse().unwrap())
}

/// Acquires, renews and releases after the server has evicted all scripts of the client. With
/// replicas each script is followed by a WAIT, in one pipeline.
async fn outlives_an_eviction(name: &str, url: &str, is_evicted: bool, wait: ReplicaWait) {
    let watchdog = Duration::from_millis(600);
    let builder = Client::builder().endpoint(url).replica_wait(wait).watchdog_timeout(watchdog);
    let client = builder.connect().await.unwrap();
    let (lock, fair) = (client.lock("stock"), client.fair_lock("queue"));
    for round in 0..2 {
        let before = unknown(url).await;
        let guard = lock.acquire().await.unwrap();
        fill(url).await;
        let inner = fair.acquire().await.unwrap_or_else(|error| panic!("{name}: {error}"));
        // Held for longer than its lease: the renewal's script is evicted, too.
        assert!(lock.try_acquire_for(3 * watchdog).await.unwrap().is_none(), "{name}");
        fill(url).await;
        assert!(guard.is_valid(), "{name}: {guard:?}");
        inner.release().await.unwrap_or_else(|error| panic!("{name}: {error}"));
        guard.release().await.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(command(url, "EXISTS stock queue").await, Value::Int(0), "{name}");
        fill(url).await;
        lock.acquire().await.unwrap().release().await.unwrap();
        let evicted = unknown(url).await - before;
        match is_evicted {
            true => assert!(evicted >= 2, "{name}: {evicted}"),
            // In the first round the server learns the scripts.
            false => assert!(round == 0 || evicted == 0, "{name}: {evicted}"),
        }
    }
}

#[tokio::test]
async fn a_client_outlives_the_eviction_of_its_scripts() {
    for generation in Generation::ALL {
        let is_evicted = generation.has(Feature::ScriptEviction);
        let simulated = TestServer::builder().config(Config::of(generation)).start().await.unwrap();
        let name = format!("{generation}, simulated");
        outlives_an_eviction(&name, &simulated.url(), is_evicted, ReplicaWait::None).await;
        let Some(program) = Program::real(generation) else { continue };
        let start = |options: &[&str]| {
            let words: Vec<String> = options.iter().map(ToString::to_string).collect();
            RedisServer::start_on(&program, |_| words.clone()).expect("it is present")
        };
        let real = start(&[]);
        outlives_an_eviction(&program.to_string(), &real.url(), is_evicted, ReplicaWait::None).await;
        let _replica = start(&["--replicaof", &format!("127.0.0.1 {}", real.port())]);
        eventually("the replica is in step", async || {
            real.command(&["WAIT", "1", "100"]).await == Value::Int(1)
        })
        .await;
        outlives_an_eviction(&program.to_string(), &real.url(), is_evicted, ReplicaWait::Synced).await;
    }
}

/// A Redlock frees its nodes by DELIFEQ where a real server has it, and by a script elsewhere. A
/// server that has no DELIFEQ is asked once.
#[tokio::test]
async fn a_redlock_is_freed_by_a_comparing_command() {
    for generation in Generation::ALL {
        let Some(program) = Program::real(generation) else { continue };
        let server = RedisServer::start_on(&program, |_| Vec::new()).expect("it is present");
        let url = server.url();
        let client = Client::connect(url.as_str()).await.unwrap();
        let lock = Redlock::builder([client]).node_timeout(Duration::from_secs(2)).build("stock").unwrap();
        let once = async || lock.acquire().await.unwrap().release().await.unwrap();
        once().await;
        let sent = commands(&url, async || once().await).await;
        let free = if generation == Generation::Valkey91 { "delifeq" } else { "evalsha" };
        assert_eq!(sent, ["set", free], "{program}");
        // A key that has become another kind of object is left alone.
        let guard = lock.acquire().await.unwrap();
        server.command(&["DEL", "stock"]).await;
        server.command(&["HSET", "stock", "field", "1"]).await;
        assert!(guard.release().await.unwrap_err().is_definite(), "{program}");
        assert_eq!(server.command(&["HLEN", "stock"]).await, Value::Int(1), "{program}");
    }
}
