//! PUBSUB subcommand ...: the channels and patterns with subscribers.

use crate::commands::{Flags, Group, Keys, Spec, help};

pub(super) const SPEC: Spec = Spec {
    name: "pubsub",
    group: Group::Pubsub,
    since: "2.8.0",
    summary: "Looks into the subscriptions.",
    arity: -2,
    flags: Flags::empty(),
    keys: Keys::None,
    subcommands: &[
        &super::pubsub_channels::SPEC,
        &super::pubsub_help::SPEC,
        &super::pubsub_numpat::SPEC,
        &super::pubsub_numsub::SPEC,
        &super::pubsub_shardchannels::SPEC,
        &super::pubsub_shardnumsub::SPEC,
    ],
    run: help::container,
};
