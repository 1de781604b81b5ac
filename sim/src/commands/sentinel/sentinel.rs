//! SENTINEL: the container of the subcommands about masters.

use super::*;
use crate::commands::{Flags, Group, Keys, Spec, help};

pub(super) const SPEC: Spec = Spec {
    name: "sentinel",
    group: Group::Sentinel,
    since: "2.8.4",
    summary: "Shows and changes what a Sentinel watches.",
    arity: -2,
    flags: Flags::ADMIN,
    keys: Keys::None,
    subcommands: &[
        &sentinel_ckquorum::SPEC,
        &sentinel_config::SPEC,
        &sentinel_debug::SPEC,
        &sentinel_failover::SPEC,
        &sentinel_flushconfig::SPEC,
        &sentinel_get_master_addr_by_name::SPEC,
        &sentinel_help::SPEC,
        &sentinel_info_cache::SPEC,
        &sentinel_is_master_down_by_addr::SPEC,
        &sentinel_master::SPEC,
        &sentinel_masters::SPEC,
        &sentinel_monitor::SPEC,
        &sentinel_myid::SPEC,
        &sentinel_pending_scripts::SPEC,
        &sentinel_remove::SPEC,
        &sentinel_replicas::SPEC,
        &sentinel_reset::SPEC,
        &sentinel_sentinels::SPEC,
        &sentinel_set::SPEC,
        &sentinel_simulate_failure::SPEC,
        &sentinel_slaves::SPEC,
    ],
    run: help::container,
};
