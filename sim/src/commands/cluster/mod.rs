//! Commands about a cluster. A node here is never in one, and says so as a server does that runs without.

mod asking;
#[expect(clippy::module_inception, reason = "the command CLUSTER has the name of its group")]
mod cluster;
mod cluster_addslots;
mod cluster_addslotsrange;
mod cluster_bumpepoch;
mod cluster_count_failure_reports;
mod cluster_countkeysinslot;
mod cluster_delslots;
mod cluster_delslotsrange;
mod cluster_failover;
mod cluster_flushslots;
mod cluster_forget;
mod cluster_getkeysinslot;
mod cluster_help;
mod cluster_info;
mod cluster_keyslot;
mod cluster_links;
mod cluster_meet;
mod cluster_myid;
mod cluster_nodes;
mod cluster_replicas;
mod cluster_replicate;
mod cluster_reset;
mod cluster_saveconfig;
mod cluster_set_config_epoch;
mod cluster_setslot;
mod cluster_shards;
mod cluster_slaves;
mod cluster_slots;
mod readonly;
mod readwrite;

use bytes::Bytes;

use super::{Ctx, Error, Spec};
use crate::resp::Reply;

/// The group, sorted by name.
pub(super) const ALL: &[&Spec] = &[&asking::SPEC, &cluster::SPEC, &readonly::SPEC, &readwrite::SPEC];

/// The `run` of every command of the group.
fn disabled(_: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    Err(Error::of("ERR This instance has cluster support disabled"))
}
