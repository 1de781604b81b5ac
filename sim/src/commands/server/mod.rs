//! Commands about the server.

mod acl;
mod acl_cat;
mod acl_deluser;
mod acl_dryrun;
mod acl_genpass;
mod acl_getuser;
mod acl_help;
mod acl_list;
mod acl_load;
mod acl_log;
mod acl_save;
mod acl_setuser;
mod acl_users;
mod acl_whoami;
mod bgrewriteaof;
mod bgsave;
mod catalogue;
mod command;
mod command_count;
mod command_docs;
mod command_getkeys;
mod command_getkeysandflags;
mod command_help;
mod command_info;
mod command_list;
mod commandlog;
mod commandlog_get;
mod commandlog_help;
mod commandlog_len;
mod commandlog_reset;
mod config;
mod config_get;
mod config_help;
mod config_resetstat;
mod config_rewrite;
mod config_set;
mod dbsize;
mod debug_digest;
mod debug_protocol;
pub(crate) mod debug;
mod flushall;
mod flushdb;
mod info;
mod debug_structure;
mod lastsave;
mod latency;
mod latency_doctor;
mod latency_graph;
mod latency_help;
mod latency_histogram;
mod latency_history;
mod latency_latest;
mod latency_reset;
mod logs;
mod lolwut;
mod failover;
mod memory;
mod memory_doctor;
mod memory_help;
mod memory_malloc_stats;
mod memory_purge;
mod memory_stats;
mod memory_usage;
mod module;
mod module_help;
mod module_list;
mod module_load;
mod module_loadex;
mod module_unload;
pub(super) mod monitor;
mod lolwut_pictures;
mod psync;
mod replconf;
mod debug_reload;
mod replicaof;
mod restore_asking;
mod role;
mod save;
mod sections;
mod shutdown;
mod slaveof;
mod slowlog;
mod slowlog_get;
mod slowlog_help;
mod slowlog_len;
mod slowlog_reset;
mod swapdb;
mod sync;
mod time;

pub(super) use module_list::modules;

use super::Spec;
pub(super) use sections::print_sentinel;

/// The commands of the group, sorted by name.
pub(super) const ALL: &[&Spec] = &[
    &acl::SPEC,
    &bgrewriteaof::SPEC,
    &bgsave::SPEC,
    &command::SPEC,
    &commandlog::SPEC,
    &config::SPEC,
    &dbsize::SPEC,
    &debug::SPEC,
    &failover::SPEC,
    &flushall::SPEC,
    &flushdb::SPEC,
    &info::SPEC,
    &lastsave::SPEC,
    &latency::SPEC,
    &lolwut::SPEC,
    &memory::SPEC,
    &module::SPEC,
    &monitor::SPEC,
    &psync::SPEC,
    &replconf::SPEC,
    &replicaof::SPEC,
    &restore_asking::SPEC,
    &role::SPEC,
    &save::SPEC,
    &shutdown::SPEC,
    &slaveof::SPEC,
    &slowlog::SPEC,
    &swapdb::SPEC,
    &sync::SPEC,
    &time::SPEC,
];
