//! Commands about a cluster. A node without a cluster replies with an error.

mod asking;
#[expect(clippy::module_inception, reason = "the command CLUSTER has the name of its group")]
mod cluster;
mod cluster_addslots;
mod cluster_addslotsrange;
mod cluster_bumpepoch;
mod cluster_cancelslotmigrations;
mod cluster_count_failure_reports;
mod cluster_countkeysinslot;
mod cluster_delslots;
mod cluster_delslotsrange;
mod cluster_failover;
mod cluster_flushslots;
mod cluster_forget;
mod cluster_getkeysinslot;
mod cluster_getslotmigrations;
mod cluster_help;
mod cluster_info;
mod cluster_keyslot;
mod cluster_links;
mod cluster_meet;
mod cluster_migrateslots;
mod cluster_myid;
mod cluster_myshardid;
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
mod cluster_syncslots;
mod readonly;
mod readwrite;

use bytes::Bytes;

use super::{Ctx, Error, Spec, integer};
use crate::{
    cluster::{Around, Cluster, SLOTS},
    env::Env,
    resp::Reply,
};

/// The commands of the group, sorted by name.
pub(super) const ALL: &[&Spec] = &[&asking::SPEC, &cluster::SPEC, &readonly::SPEC, &readwrite::SPEC];

/// Runs `work` on the cluster, and then performs the actions that the cluster requests.
fn with<T>(
    ctx: &mut Ctx<'_>,
    work: impl FnOnce(&mut Cluster, &mut Env, &mut Around<'_>) -> T,
) -> Result<T, Error> {
    let done = ctx.node.with_cluster(ctx.env, work);
    let done = done.ok_or(Error::NO_CLUSTER)?;
    ctx.node.carry_out_for_cluster(ctx.env, ctx.effects);
    Ok(done)
}

/// Does the same for a command that replies with OK or an error.
fn act(
    ctx: &mut Ctx<'_>,
    work: impl FnOnce(&mut Cluster, &mut Env, &mut Around<'_>) -> Result<(), String>,
) -> Result<Reply, Error> {
    match with(ctx, work)? {
        Ok(()) => Ok(Reply::OK),
        Err(why) => Err(Error(format!("ERR {why}").into())),
    }
}

/// Parses a slot number.
fn slot_of(word: &Bytes) -> Result<u16, Error> {
    let slot = integer(word).ok().and_then(|slot| u16::try_from(slot).ok()).filter(|slot| *slot < SLOTS);
    slot.ok_or(Error::of("ERR Invalid or out of range slot"))
}

/// Parses ranges of slots, each a first and a last one.
fn slots_of_ranges(words: &[Bytes], command: &str) -> Result<Vec<u16>, Error> {
    if !words.len().is_multiple_of(2) {
        return Err(Error::arity(command));
    }
    let mut slots = Vec::new();
    for pair in words.chunks(2) {
        let (first, last) = (slot_of(&pair[0])?, slot_of(&pair[1])?);
        if first > last {
            let text = format!("ERR start slot number {first} is greater than end slot number {last}");
            return Err(Error(text.into()));
        }
        // A longer list names a slot twice, which is an error anyway: stop collecting.
        if slots.len() <= usize::from(SLOTS) {
            slots.extend(first..=last);
        }
    }
    Ok(slots)
}
