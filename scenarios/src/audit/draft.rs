//! A scenario file in parts, for incidents: clients, faults and comments as lines of text.

use std::time::Duration;

use super::names::length;
use crate::units::Span;

/// The time of the holder's grant in the scenario.
pub(super) const BEGIN_US: i64 = 1_000_000;

/// The latency of each message, in words. MONITOR has the times of the server.
pub(super) const LATENCY: &str = "100us";

/// The time that a client needs between its grant and its next request.
pub(super) const STEP_US: i64 = 10_000;

/// A client or a fault: its name, a comment, and its steps or lines.
pub(super) type Part = (&'static str, String, Vec<String>);

/// A scenario in parts.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) checker: &'static str,
    /// The assumptions, in sentences.
    pub(super) assumed: Vec<String>,
    pub(super) server: Option<&'static str>,
    /// Set for a master with a replica, which every client but the holder asks.
    pub(super) has_replica: bool,
    /// Set if the clients write to a resource.
    pub(super) writes: bool,
    pub(super) latency: &'static str,
    pub(super) lock: Vec<String>,
    pub(super) clients: Vec<Part>,
    pub(super) faults: Vec<Part>,
    pub(super) run: Vec<String>,
}

impl Draft {
    /// Returns the file without its head.
    pub(super) fn body(&self) -> String {
        let mut lines = Vec::new();
        let server = self.server.map(|server| format!("server = \"{server}\"\n")).unwrap_or_default();
        if self.has_replica {
            // The replica is to be synchronized before the first grant.
            let config = "config = { repl-diskless-sync-delay = \"0\" }\n";
            lines.push(format!("[node.redis]\n{server}{config}"));
            lines.push(format!("[node.replica]\n{server}replica_of = \"redis\"\n"));
        } else {
            lines.push(format!("[node.redis]\n{server}"));
        }
        lines.push(format!("[network]\nlatency = \"{}\"\n", self.latency));
        if self.writes {
            lines.push("[resource]\n".to_owned());
        }
        lines.push(format!("[lock]\n{}\n", self.lock.join("\n")));
        for (name, about, steps) in &self.clients {
            let steps: String = steps.iter().map(|step| format!("    {step},\n")).collect();
            let asks = if self.has_replica && *name != "holder" { "nodes = [\"replica\"]\n" } else { "" };
            lines.push(format!("{}\n[client.{name}]\n{asks}steps = [\n{steps}]\n", comment(about)));
        }
        for (name, about, keys) in &self.faults {
            lines.push(format!("{}\n[fault.{name}]\n{}\n", comment(about), keys.join("\n")));
        }
        lines.push(format!("[run]\n{}\n", self.run.join("\n")));
        lines.push(format!("[expect]\n{} = \"violated\"\n", self.checker));
        lines.join("\n")
    }
}

/// Returns the fault that stops the holder from its grant for a time.
pub(super) fn pause(us: i64) -> Part {
    let about = format!("The holder was silent for {}.", length(us));
    let lines = [
        "pause = \"holder\"".to_owned(),
        "on = { client = \"holder\", event = \"acquired\" }".to_owned(),
        format!("for = \"{}\"", span(us)),
    ];
    ("stopped", about, lines.to_vec())
}

/// Returns the lines of a fault that gives the node a command.
pub(super) fn command(us: i64, words: &[&str]) -> Vec<String> {
    let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    vec![
        format!("command = {{ node = \"redis\", run = [{}] }}", words.join(", ")),
        format!("at = \"{}\"", span(BEGIN_US.saturating_add(us))),
    ]
}

/// Returns the step of a client that asks until it is granted the lock, from a time on.
pub(super) fn poll(us: i64, lease_ms: Option<i64>) -> String {
    let at = span(BEGIN_US.saturating_add(us));
    let lease = lease_ms.map(|ms| format!(", lease = \"{}\"", span(ms.saturating_mul(1_000))));
    format!("{{ at = \"{at}\", poll = {{ every = \"1ms\"{} }} }}", lease.unwrap_or_default())
}

pub(super) fn span(us: i64) -> Span {
    Span(Duration::from_micros(u64::try_from(us).unwrap_or(0)))
}

/// Returns a line of comment, without the characters that a file refuses.
pub(super) fn comment(text: &str) -> String {
    let plain: String = text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    format!("# {plain}")
}
