//! A file accepts the same values of a quantity as the production client.

use std::time::Duration;

use lockstorm::file::scenario::parse;
use lockstorm_client::{
    BoxFuture, Builder, Client, Error, ErrorKind, PermitId, RateMode,
    limits::{self, Limits},
};

use super::{GOOD, check, with};

/// A file and the client's call with the same value: both accept it or neither.
struct Limited<T> {
    limits: Limits<T>,
    /// A file that is good except perhaps for the value.
    file: fn(T) -> String,
    /// The client's call with the value.
    client: fn(Client, T) -> BoxFuture<'static, Result<(), Error>>,
}

/// Checks that both accept the values within the limits, and neither accepts those beyond. There is
/// no server: an accepted value fails to connect.
async fn file_and_client_agree<T: Copy + PartialOrd + std::fmt::Debug>(row: &Limited<T>, values: &[T]) {
    for value in values {
        let taken = row.limits.takes(*value);
        let text = (row.file)(*value);
        let parsed = parse("my.toml", &text);
        assert_eq!(parsed.is_ok(), taken, "{text}: {:?}", parsed.err());
        let builder = Client::builder().endpoint("redis://127.0.0.1:1").retry_attempts(0);
        let client = builder.call_timeout(Duration::from_millis(10)).build().expect("it connects later");
        let answer = (row.client)(client, *value).await;
        let refused = answer
            .is_err_and(|error| matches!(error.kind(), ErrorKind::Config(_) | ErrorKind::OverRate { .. }));
        assert_eq!(refused, !taken, "{} of {value:?}", row.limits.what);
    }
}

/// Regression: a file accepted a lease of 100000 h, and each call of its run failed. Files have the
/// client's limits.
#[tokio::test]
async fn a_file_takes_what_the_client_takes() {
    fn built(client: impl FnOnce(Builder) -> Builder) -> BoxFuture<'static, Result<(), Error>> {
        let built = client(Client::builder().endpoint("redis://127.0.0.1:1")).build().map(drop);
        Box::pin(std::future::ready(built))
    }
    fn with_lock(keys: &str) -> String {
        GOOD.replace("[expect]", &format!("[lock]\n{keys}\n[expect]"))
    }
    fn span(length: Duration) -> String {
        format!("\"{}ns\"", length.as_nanos())
    }
    let lengths: [Limited<Duration>; 6] = [
        Limited {
            limits: limits::LEASE,
            file: |lease| with_lock(&format!("lease = {}", span(lease))),
            client: |client, lease| {
                Box::pin(async move { client.lock("l").try_acquire().lease(lease).await.map(drop) })
            },
        },
        Limited {
            limits: limits::LEASE,
            file: |lease| GOOD.replace("acquire = {}", &format!("acquire = {{ lease = {} }}", span(lease))),
            client: |client, lease| {
                Box::pin(async move { client.fair_lock("l").acquire().lease(lease).await.map(drop) })
            },
        },
        Limited {
            limits: limits::LEASE,
            file: |lease| {
                GOOD.replace(
                    "{ release",
                    &format!("{{ extend = {{ lease = {} }} }}, {{ release", span(lease)),
                )
            },
            client: |client, lease| {
                let permit: PermitId = "0123456789abcdef0123456789abcdef".parse().expect("an id");
                Box::pin(
                    async move { client.permit_semaphore("l").update_lease(permit, lease).await.map(drop) },
                )
            },
        },
        Limited {
            limits: limits::WATCHDOG_TIMEOUT,
            file: |lease| with_lock(&format!("watchdog = {}", span(lease))),
            client: |_, lease| built(|builder| builder.watchdog_timeout(lease)),
        },
        Limited {
            limits: limits::RESPONSE_TIMEOUT,
            file: |limit| with_lock(&format!("response_timeout = {}", span(limit))),
            client: |_, limit| built(|builder| builder.response_timeout(limit)),
        },
        Limited {
            limits: limits::RATE_INTERVAL,
            file: |window| of_rate(&format!("window = {}", span(window)), 1),
            client: |client, window| {
                let limiter = client.rate_limiter("l");
                Box::pin(async move { limiter.set_rate(RateMode::Overall, 1, window).await })
            },
        },
    ];
    let nano = Duration::from_nanos(1);
    for row in &lengths {
        let Limits { least, most, .. } = row.limits;
        file_and_client_agree(row, &[Duration::ZERO, least - nano, least, most, most + nano]).await;
    }
    let numbers: [Limited<u32>; 4] = [
        Limited {
            limits: limits::RATE,
            file: |rate| of_rate(&format!("permits = {rate}"), 1),
            client: |client, rate| {
                let limiter = client.rate_limiter("l");
                Box::pin(
                    async move { limiter.set_rate(RateMode::Overall, rate, Duration::from_secs(1)).await },
                )
            },
        },
        Limited {
            limits: limits::RATE,
            file: |permits| of_rate(&format!("permits = {}", i32::MAX), permits),
            client: |client, permits| {
                Box::pin(async move { client.rate_limiter("l").try_acquire(permits).await.map(drop) })
            },
        },
        Limited {
            limits: limits::PERMITS_WITH_IDS,
            file: |permits| of_semaphore("permit-semaphore", permits),
            client: |client, permits| {
                Box::pin(async move { client.permit_semaphore("l").try_acquire(permits).await.map(drop) })
            },
        },
        Limited {
            limits: limits::LATCH_COUNT,
            file: |count| {
                format!(
                    "[node.m]\n[lock]\nkind = \"latch\"\ncount = {count}\n[client.c]\nsteps = [{{ set = {{}} }}]\n"
                )
            },
            client: |client, count| Box::pin(async move { client.latch("l").try_set(count).await.map(drop) }),
        },
    ];
    for row in &numbers {
        let Limits { least, most, .. } = row.limits;
        let beyond = most.checked_add(1);
        let values: Vec<u32> = [0, least, most].into_iter().chain(beyond).collect();
        file_and_client_agree(row, &values).await;
    }
    let permits: Limited<u32> = Limited {
        limits: limits::PERMITS,
        file: |permits| of_semaphore("semaphore", permits),
        client: |client, permits| {
            Box::pin(async move { client.semaphore("l").try_acquire(permits).await.map(drop) })
        },
    };
    // A file accepts no more together, because a run follows each permit by itself.
    file_and_client_agree(&permits, &[0, 1, 10_000]).await;
    assert!(parse("my.toml", &of_semaphore("semaphore", 10_001)).is_err());
    let names: Limited<usize> = Limited {
        limits: limits::NAME_LENGTH,
        file: |length| with_lock(&format!("name = {:?}", "x".repeat(length))),
        client: |client, length| {
            let lock = client.lock(&"x".repeat(length));
            Box::pin(async move { lock.try_acquire().await.map(drop) })
        },
    };
    file_and_client_agree(&names, &[0, 1, 1_000]).await;
}

fn of_rate(keys: &str, taken: u32) -> String {
    format!(
        "[node.m]\n[lock]\nkind = \"rate\"\n{keys}\n[client.c]\nsteps = [{{ take = {{ permits = {taken} }} }}]\n"
    )
}

fn of_semaphore(kind: &str, taken: u32) -> String {
    format!(
        "[node.m]\n[lock]\nkind = \"{kind}\"\npermits = 1000000\n[client.c]\n\
         steps = [{{ acquire = {{ permits = {taken} }} }}, {{ release = {{}} }}]\n"
    )
}

/// A model may have longer times than the client, whose limit is ten years.
#[test]
fn the_limits_of_the_client_are_no_limits_of_models() {
    let of_model =
        GOOD.replace("[expect]", "[lock]\nsubject = \"token-lock\"\nlease = \"100000h\"\n[expect]");
    parse("my.toml", &of_model).expect("no mistake");
    check(&of_model.replace("\"100000h\"", "«\"9ms\"»"), "give at least 10ms");
    with("[expect]", "[lock]\nlease = «\"100000h\"»\n[expect]", "too long: give at most 87600h");
    with("[expect]", "[lock.«\"\"»]\n[expect]", "takes no lock without a name");
}
