//! Groups of nodes on hosts of the world: Sentinels and clusters, their decisions and the times of
//! these.

mod cluster;
mod sentinel;
mod slot_migration;

use std::time::Duration;

use lockstorm_world::{
    Condition, Event, Latency, TraceRetention, Verb, World,
    time::{Monotonic, True},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const MS: fn(i64) -> True = True::from_millis;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Returns the observations of kind `wanted`, each with its true time in milliseconds.
fn observed(world: &World, wanted: &str) -> String {
    let lines: Vec<_> = world
        .records()
        .into_iter()
        .filter_map(|record| match record.event {
            Event::Observed { kind, detail } if kind == wanted => {
                Some(format!("{detail}@{}", record.at.as_millis()))
            }
            _ => None,
        })
        .collect();
    lines.join(" ")
}

/// Returns the verb of an order in words, such as `cut a b`.
fn verb(text: &str) -> Verb {
    let words: Vec<&str> = text.split(' ').collect();
    let name = |at: usize| words[at].to_owned();
    let down = || Condition::Down { host: name(1) };
    let paused = || Condition::Paused { host: name(1) };
    let cut = || Condition::Cut { from: name(1), to: name(2) };
    match words[0] {
        "pause" => paused().begin("it"),
        "resume" => paused().end("it"),
        "crash" => down().begin("it"),
        "up" => down().end("it"),
        "kill" => Verb::Kill { host: name(1) },
        "restart" => Verb::Restart { host: name(1) },
        "cut" => cut().begin("it"),
        "heal" => cut().end("it"),
        "step" => Verb::ClockStep { host: name(1), by_nanos: 3_600_000_000_000 },
        other => panic!("no verb {other}"),
    }
}
