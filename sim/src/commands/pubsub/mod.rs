//! Commands of publish/subscribe.

mod listing;
mod psubscribe;
mod publish;
#[expect(clippy::module_inception, reason = "the command PUBSUB has the name of its group")]
mod pubsub;
mod pubsub_channels;
mod pubsub_help;
mod pubsub_numpat;
mod pubsub_numsub;
mod pubsub_shardchannels;
mod pubsub_shardnumsub;
mod punsubscribe;
mod spublish;
mod ssubscribe;
mod subscribe;
mod subscribing;
mod sunsubscribe;
mod unsubscribe;

use super::Spec;

/// The group, sorted by name.
pub(super) const ALL: &[&Spec] = &[
    &psubscribe::SPEC,
    &publish::SPEC,
    &pubsub::SPEC,
    &punsubscribe::SPEC,
    &spublish::SPEC,
    &ssubscribe::SPEC,
    &subscribe::SPEC,
    &sunsubscribe::SPEC,
    &unsubscribe::SPEC,
];
