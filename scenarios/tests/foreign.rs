//! A foreign client on a host of the world: it speaks to Redis over a socket, reports its beliefs,
//! and is judged.

use std::time::Duration;

use lockstorm::{
    file::scenario::Scenario,
    judge::{
        history::{EventKind, Outcome},
        verdict::Expectation,
    },
    run::code::{Belief, CodeHost},
    units::Span,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The text of an error of the foreign client.
#[derive(Debug, thiserror::Error)]
#[error("the server answered {0:?}")]
struct Refusal(String);

// ANCHOR: client
/// Sends one command to the node and returns its reply.
async fn ask(host: &CodeHost, command: &[&str]) -> Result<String, Refusal> {
    let lost = |error: std::io::Error| Refusal(error.to_string());
    let mut stream = host.env().dial("redis", 6379).await.map_err(lost)?;
    let words: String = command.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
    stream.write_all(format!("*{}\r\n{words}", command.len()).as_bytes()).await.map_err(lost)?;
    let mut reply = vec![0; 512];
    let read = stream.read(&mut reply).await.map_err(lost)?;
    Ok(String::from_utf8_lossy(&reply[..read]).trim_end().to_owned())
}

/// The duration of a grant on the server.
const LEASE: Duration = Duration::from_secs(1);

/// A lock of its own: SET NX PX with a random token. It relies on the lock for `believed` after its
/// request.
async fn foreign(host: CodeHost, believed: Duration) {
    let token = format!("{:016x}", host.env().random());
    host.asks_as(&token);
    for _ in 0..40 {
        let asked_at = host.env().boottime();
        let key = host.lock_name().to_owned();
        let set = async {
            let px = LEASE.as_millis().to_string();
            let reply = ask(&host, &["SET", &key, &token, "NX", "PX", &px]).await?;
            Ok::<bool, Refusal>(reply == "+OK")
        };
        if let Ok(true) = host.acquiring(Some(Duration::ZERO), set).await {
            let until = lockstorm_client::Boottime(asked_at.0 + believed);
            host.acquired(Belief::until(until));
            host.sleep(believed).await;
            host.lost();
        }
        host.sleep(Duration::from_millis(100)).await;
    }
}

// ANCHOR_END: client
// ANCHOR: scenario
fn scenario(believed: Duration) -> Scenario {
    let code = move |host: CodeHost| foreign(host, believed);
    Scenario::builder("two clients that are not ours")
        .node("redis", Default::default())
        .client_code("f1", code)
        .client_code("f2", code)
        .lasting(Span::secs(10), Span::secs(0))
        .expect("l1", Expectation::holds())
        .build()
}
// ANCHOR_END: scenario

fn verdict(scenario: Scenario, checker: &str) -> Vec<String> {
    let judged =
        lockstorm::experiment(scenario).seeds(0..5).try_check().unwrap_or_else(|failed| panic!("{failed}"));
    let word = |one: &lockstorm::run::runner::Judged| {
        one.finding(checker).expect("it is asked").verdict.word().to_owned()
    };
    judged.iter().map(word).collect()
}

#[test]
fn what_a_foreign_client_rightly_believes_passes() {
    assert_eq!(verdict(scenario(LEASE - Duration::from_millis(50)), "l2"), ["holds"; 5]);
}

#[test]
fn what_a_foreign_client_wrongly_believes_is_caught() {
    // Twice as long as the server grants it.
    assert_eq!(verdict(scenario(LEASE * 2), "l2"), ["violated"; 5]);
}

/// Takes the lock when it is free, relies on it for longer than the server's grant, and perhaps
/// reports in time that it no longer does.
async fn hopes(host: CodeHost, says_so: bool) {
    let token = format!("{:016x}", host.env().random());
    let (key, px) = (host.lock_name().to_owned(), LEASE.as_millis().to_string());
    for _ in 0..40 {
        let asked_at = host.env().boottime().0;
        let set =
            async { ask(&host, &["SET", &key, &token, "NX", "PX", &px]).await.map(|reply| reply == "+OK") };
        if let Ok(true) = host.acquiring(Some(Duration::ZERO), set).await {
            host.acquired(Belief::until(lockstorm_client::Boottime(asked_at + 10 * LEASE)));
            host.sleep(LEASE - Duration::from_millis(50)).await;
            if says_so {
                host.lost();
            }
        }
        host.sleep(Duration::from_millis(100)).await;
    }
}

#[test]
fn a_belief_ends_when_a_foreign_client_says_so() {
    for (says_so, word) in [(true, "holds"), (false, "violated")] {
        let code = move |host: CodeHost| hopes(host, says_so);
        let scenario = Scenario::builder("two clients that hope")
            .node("redis", Default::default())
            .client_code("f1", code)
            .client_code("f2", code)
            .lasting(Span::secs(10), Span::secs(0))
            .expect("l1", Expectation::holds())
            .build();
        assert_eq!(verdict(scenario, "l2"), [word; 5], "says so: {says_so}");
    }
}

/// Writes, and then holds the lock to the end of the run.
async fn writes_and_holds(host: CodeHost) {
    let token = format!("{:016x}", host.env().random());
    host.write(None).await;
    let key = host.lock_name().to_owned();
    let set = async { ask(&host, &["SET", &key, &token, "NX"]).await.map(|reply| reply == "+OK") };
    if let Ok(true) = host.acquiring(Some(Duration::ZERO), set).await {
        host.acquired(Belief::open_ended());
    }
    host.sleep(Duration::from_secs(60)).await;
}

/// A process does not have the beliefs of its predecessor.
#[test]
fn a_restarted_client_writes_for_its_own_owner() {
    let crash = toml::from_str("crash = \"c\"\nat = \"2s\"\nfor = \"1s\"").expect("a fault");
    let scenario = Scenario::builder("it is started again")
        .node("redis", Default::default())
        .client_code("c", writes_and_holds)
        .resource(Default::default())
        .fault("crash", crash)
        .lasting(Span::secs(5), Span::secs(0))
        .build();
    let outcome = lockstorm::experiment(scenario).outcome(0).unwrap_or_else(|failed| panic!("{failed}"));
    let history = &outcome.history;
    let believers = history.events.iter().filter(|event| matches!(event.kind, EventKind::Believes { .. }));
    assert_eq!(believers.count(), 1, "the second process finds it held");
    let writers = history.events.iter().filter_map(|event| match event.kind {
        EventKind::Write { owner, .. } => Some(&*history.owners[owner.0 as usize].name),
        _ => None,
    });
    assert_eq!(writers.collect::<Vec<_>>(), ["c:1", "c.2:1"]);
}

/// Asks with a command that no server knows.
async fn mistaken(host: CodeHost) {
    let asked = async {
        let reply = ask(&host, &["LOCK", host.lock_name()]).await?;
        if reply.starts_with('-') { Err(Refusal(reply)) } else { Ok(true) }
    };
    let refused = host.acquiring(None, asked).await;
    assert!(refused.is_err(), "the code gets its own error back");
}

#[test]
fn an_error_of_a_foreign_client_is_written_down_in_its_words() {
    let scenario = Scenario::builder("a client that is mistaken")
        .node("redis", Default::default())
        .client_code("f", mistaken)
        .lasting(Span::secs(1), Span::secs(0))
        .build();
    let outcome = lockstorm::experiment(scenario).outcome(0).unwrap_or_else(|failed| panic!("{failed}"));
    let failed = outcome.history.events.iter().find_map(|event| match &event.kind {
        EventKind::Return { outcome: Outcome::Failed { definite, message }, .. } => {
            Some((*definite, message))
        }
        _ => None,
    });
    let (definite, message) = failed.expect("the call failed");
    assert!(message.starts_with("the server answered \"-ERR unknown command 'LOCK'"), "{message}");
    assert!(!definite, "nothing is known of what the error means for the lock");
}

/// Two owners of one process, each with a lock of its own and one lock in common.
async fn two_owners(host: CodeHost) {
    let second = host.line(2);
    let client = host.client().build().expect("the scenario has a node");
    let stock = client.lock(host.of("stock").lock_name());
    let cash = client.lock(host.of("cash").lock_name());
    let first =
        host.of("stock").acquiring(None, stock.acquire().owner(lockstorm_client::OwnerId::new(1))).await;
    let held = first.expect("it is free");
    // Refused: another owner of the same process has it.
    let tried = stock.try_acquire().owner(lockstorm_client::OwnerId::new(2));
    let refused = second.of("stock").acquiring(Some(Duration::ZERO), tried).await;
    assert!(refused.expect("the server answers").is_none());
    let tried = cash.try_acquire().owner(lockstorm_client::OwnerId::new(2));
    let other = second.of("cash").acquiring(Some(Duration::ZERO), tried).await.expect("the server answers");
    second.of("cash").releasing(other.expect("it is free").release()).await.expect("it is held");
    host.of("stock").releasing(held.release()).await.expect("it is held");
}

#[test]
fn code_may_have_several_owners_and_locks() {
    let scenario = Scenario::builder("two owners, two locks")
        .node("redis", Default::default())
        .lock_named("stock", Default::default())
        .lock_named("cash", Default::default())
        .client_code("c", two_owners)
        .lasting(Span::secs(5), Span::secs(0))
        .expect("l1", Expectation::holds())
        .expect("l2", Expectation::holds())
        .expect("owner-safety", Expectation::holds())
        .build();
    let outcome =
        lockstorm::experiment(scenario.clone()).outcome(0).unwrap_or_else(|failed| panic!("{failed}"));
    let history = &outcome.history;
    let believed = history.events.iter().filter_map(|event| match event.kind {
        EventKind::Believes { lock, owner, .. } => {
            Some(format!("{} {}", history.lock(lock).name, history.owners[owner.0 as usize].name))
        }
        _ => None,
    });
    assert_eq!(believed.collect::<Vec<_>>(), ["stock c:1", "cash c:2"]);
    lockstorm::experiment(scenario).seeds(0..3).check();
}

// ANCHOR: redis-rs
/// The parameters of a client with redis-rs. Times are those of its own clock since the host
/// started.
#[derive(Clone, Copy)]
struct Plan {
    node: &'static str,
    /// It asks from then on, every 10 ms.
    from: Duration,
    /// It stops asking then.
    until: Duration,
    lease: Duration,
    /// The duration of its work under the lock.
    works: Duration,
    /// The script of its release.
    release: &'static str,
}

/// Deletes the key if it still has the token.
const RELEASE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

/// The lock of the Redis documentation, written with redis-rs. It relies on the lock until 100 ms
/// before the end of its lease.
async fn with_redis_rs(host: CodeHost, plan: Plan) {
    let stream = host.env().dial(plan.node, 6379).await.expect("the node is up");
    // redis-rs would measure its own timeout by the machine's clock, not by the host's.
    let config = redis::AsyncConnectionConfig::new().set_response_timeout(None);
    let login = redis::RedisConnectionInfo::default();
    let (mut redis, driver) = redis::aio::MultiplexedConnection::new_with_config(&login, stream, config)
        .await
        .expect("the node answers");
    host.env().spawn(Box::pin(driver));
    let (key, token) = (host.lock_name().to_owned(), format!("{:016x}", host.env().random()));
    host.asks_as(&token);
    host.sleep(plan.from.saturating_sub(host.env().boottime().0)).await;
    while host.env().boottime().0 < plan.until {
        let asked_at = host.env().boottime().0;
        let mut set = redis::cmd("SET");
        set.arg(&key).arg(&token).arg("NX").arg("PX").arg(plan.lease.as_millis() as u64);
        let set = async { set.query_async::<Option<String>>(&mut redis).await.map(|reply| reply.is_some()) };
        if let Ok(true) = host.acquiring(Some(Duration::ZERO), set).await {
            let until = asked_at + plan.lease - Duration::from_millis(100);
            host.acquired(Belief::until(lockstorm_client::Boottime(until)));
            host.sleep((asked_at + plan.works).saturating_sub(host.env().boottime().0)).await;
            host.released();
            let mut release = redis::cmd("EVAL");
            release.arg(plan.release).arg(1).arg(&key).arg(&token);
            // The next client does not need the result of the deletion.
            let released = async { release.query_async::<i64>(&mut redis).await.map(|_| ()) };
            let _ = host.releasing(released).await;
            return;
        }
        host.sleep(Duration::from_millis(10)).await;
    }
}
// ANCHOR_END: redis-rs

const MS: fn(u64) -> Duration = Duration::from_millis;

impl Plan {
    /// Asks the node from a millisecond on until it has the lock, for 30 s, and leaves it to the
    /// end of its lease.
    fn at(node: &'static str, from: u64) -> Plan {
        Plan {
            node,
            from: MS(from),
            until: MS(80_000),
            lease: MS(30_000),
            works: MS(80_000),
            release: RELEASE,
        }
    }
}

/// The claims about our own client and the models hold for redis-rs, too: the client is not the
/// cause.
#[test]
fn a_lock_with_redis_rs_is_on_trial_in_stock_claims() {
    for (file, variants, c1, c2) in [
        (
            "wall_clock_step",
            &["forward", "back", "monotonic-server"][..],
            Plan::at("m", 10_000),
            Plan::at("m", 11_001),
        ),
        (
            "async_failover",
            &["lag-of-50ms", "lag-of-8ms", "lag-of-10ms"],
            Plan::at("m", 10_000),
            Plan::at("r", 10_020),
        ),
        ("minority_master", &[""], Plan::at("m", 10_100), Plan::at("r", 17_010)),
        (
            "replica_clock_skew",
            &["replica-20s-ahead", "replica-20s-behind", "relative-times-to-live"],
            Plan::at("m", 10_000),
            Plan::at("r", 12_500),
        ),
    ] {
        for variant in variants {
            // ANCHOR: stock
            lockstorm::scenario(format!("single/{file}.toml"))
                .variant(*variant)
                .client_code("c1", move |host| with_redis_rs(host, c1))
                .client_code("c2", move |host| with_redis_rs(host, c2))
                .check();
            // ANCHOR_END: stock
        }
    }
}

/// Here the release is the mistake.
#[test]
fn a_release_with_redis_rs_that_compares_no_token_is_caught_in_a_stock_claim() {
    let del = "return redis.call('DEL', KEYS[1])";
    for (variant, release) in [("del", del), ("token", RELEASE)] {
        let plan = |from, until, works| {
            let (from, until, works) = (MS(from), MS(until), MS(works));
            move |host| with_redis_rs(host, Plan { node: "m", from, until, lease: MS(1_000), works, release })
        };
        lockstorm::scenario("single/del_without_token.toml")
            .variant(variant)
            .client_code("c1", plan(10_000, 10_005, 500))
            .client_code("c2", plan(11_005, 11_010, 900))
            .client_code("c3", plan(11_502, 11_507, 900))
            .check();
    }
}
