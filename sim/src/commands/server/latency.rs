//! LATENCY subcommand ...: latency events. Without timing of commands there are none.

use crate::commands::{Flags, Group, Keys, Spec, help};

pub(super) const SPEC: Spec = Spec {
    name: "latency",
    group: Group::Server,
    since: "2.8.13",
    summary: "Looks into latencies.",
    arity: -2,
    flags: Flags::empty(),
    keys: Keys::None,
    subcommands: &[
        &super::latency_doctor::SPEC,
        &super::latency_graph::SPEC,
        &super::latency_help::SPEC,
        &super::latency_histogram::SPEC,
        &super::latency_history::SPEC,
        &super::latency_latest::SPEC,
        &super::latency_reset::SPEC,
    ],
    run: help::container,
};
