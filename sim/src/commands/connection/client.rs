//! CLIENT subcommand ...: inspects and controls this connection and others.

use crate::commands::{Flags, Group, Keys, Spec, help};

pub(super) const SPEC: Spec = Spec {
    name: "client",
    group: Group::Connection,
    since: "2.4.0",
    summary: "Commands about client connections.",
    arity: -2,
    flags: Flags::empty(),
    keys: Keys::None,
    subcommands: &[
        &super::client_caching::SPEC,
        &super::client_capa::SPEC,
        &super::client_getname::SPEC,
        &super::client_getredir::SPEC,
        &super::client_help::SPEC,
        &super::client_id::SPEC,
        &super::client_import_source::SPEC,
        &super::client_info::SPEC,
        &super::client_kill::SPEC,
        &super::client_list::SPEC,
        &super::client_no_evict::SPEC,
        &super::client_no_touch::SPEC,
        &super::client_pause::SPEC,
        &super::client_reply::SPEC,
        &super::client_setinfo::SPEC,
        &super::client_setname::SPEC,
        &super::client_tracking::SPEC,
        &super::client_trackinginfo::SPEC,
        &super::client_unblock::SPEC,
        &super::client_unpause::SPEC,
    ],
    run: help::container,
};
