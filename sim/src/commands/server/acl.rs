//! ACL subcommand ...: the users and their permissions.

use crate::commands::{Flags, Group, Keys, Spec, help};

pub(super) const SPEC: Spec = Spec {
    name: "acl",
    group: Group::Server,
    since: "6.0.0",
    summary: "Commands about users and their permissions.",
    arity: -2,
    flags: Flags::empty(),
    keys: Keys::None,
    subcommands: &[
        &super::acl_cat::SPEC,
        &super::acl_deluser::SPEC,
        &super::acl_dryrun::SPEC,
        &super::acl_genpass::SPEC,
        &super::acl_getuser::SPEC,
        &super::acl_help::SPEC,
        &super::acl_list::SPEC,
        &super::acl_load::SPEC,
        &super::acl_log::SPEC,
        &super::acl_save::SPEC,
        &super::acl_setuser::SPEC,
        &super::acl_users::SPEC,
        &super::acl_whoami::SPEC,
    ],
    run: help::container,
};
