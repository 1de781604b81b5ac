//! The verdicts as JSON for other programs.

use serde::Serialize;

use super::{Entry, Report, chain};
use crate::judge::{
    history::{FailedCalls, Fault, Header, History},
    verdict::{Expectation, Finding, Match},
};

#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    finding: &'a Finding,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<&'a Expectation>,
    #[serde(flatten)]
    matched: Option<Match>,
    /// The chain of a violation, in the order of true time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    chain: Vec<chain::Link>,
}

#[derive(Serialize)]
struct Whole<'a> {
    scenario: &'a str,
    seed: u64,
    engine: &'a str,
    #[serde(skip_serializing_if = "String::is_empty")]
    servers: String,
    fingerprint: &'a str,
    replay: &'a str,
    faults: &'a [Fault],
    findings: Vec<Row<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failed_calls: Vec<FailedCalls>,
}

impl Report<'_> {
    /// Returns one JSON object: the run, its faults, every finding with its expectation, and the
    /// failed calls. Times are nanoseconds of true time; measured times are milliseconds.
    pub fn json(&self) -> serde_json::Value {
        let History { header: Header { scenario, seed, engine, fingerprint, replay, .. }, .. } = self.history;
        let servers = self.history.header.servers();
        let chain_of = |entry: &Entry| {
            entry
                .finding
                .verdict
                .witness()
                .map_or_else(Vec::new, |witness| chain::lines(self.history, witness))
        };
        let findings = self
            .entries
            .iter()
            .map(|entry| Row {
                finding: &entry.finding,
                expected: entry.expected.as_ref(),
                matched: entry.matched(),
                chain: chain_of(entry),
            })
            .collect();
        let faults = &self.history.faults;
        let failed_calls = self.history.failed_calls();
        let whole = Whole {
            scenario,
            seed: *seed,
            engine,
            servers,
            fingerprint,
            replay,
            faults,
            findings,
            failed_calls,
        };
        serde_json::to_value(whole).expect("plain data with text for keys")
    }
}
