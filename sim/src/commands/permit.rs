//! Rules about the state of the node that commands of clients and commands of scripts must both
//! pass.

use super::{Error, Flags};
use crate::node::Node;

/// Whether a write of a client may happen now, as far as the disk, the number of replicas and the
/// node's role are concerned.
///
/// # Errors
/// MISCONF, NOREPLICAS or READONLY, whichever a server finds first.
pub fn write(node: &Node) -> Result<(), Error> {
    disk(node)?;
    replicas(node)?;
    read_only_replica(node)
}

/// The same for a write that a script calls, where a server looks at its role first.
///
/// # Errors
/// READONLY, MISCONF or NOREPLICAS.
pub fn write_in_script(node: &Node) -> Result<(), Error> {
    read_only_replica(node)?;
    disk(node)?;
    replicas(node)
}

/// Whether the disk takes what is written.
///
/// # Errors
/// MISCONF after a failed save, unless `stop-writes-on-bgsave-error` is off, or after a failed
/// write to the append-only file.
pub fn disk(node: &Node) -> Result<(), Error> {
    let stops = node.config.stop_writes_on_bgsave_error && !node.config.save.is_empty();
    if stops && node.persistence.save_failed {
        return Err(Error::MISCONF);
    }
    node.persistence.aof.failed.as_ref().map_or(Ok(()), |why| Err(Error::misconf_log(why)))
}

/// Whether enough replicas follow closely.
///
/// # Errors
/// NOREPLICAS.
pub fn replicas(node: &Node) -> Result<(), Error> {
    let wanted = node.config.min_replicas_to_write;
    let asked = wanted > 0 && node.config.min_replicas_max_lag > 0 && !node.is_replica();
    if asked && node.good_replicas() < wanted { Err(Error::NO_REPLICAS) } else { Ok(()) }
}

/// Whether the node's role lets clients write.
///
/// # Errors
/// READONLY on a replica, unless `replica-read-only` is off.
pub fn read_only_replica(node: &Node) -> Result<(), Error> {
    if node.is_replica() && node.config.replica_read_only { Err(Error::READ_ONLY) } else { Ok(()) }
}

/// Whether a command with these flags may use the data as old as it may be.
///
/// # Errors
/// MASTERDOWN on a replica cut off from its master, with `replica-serve-stale-data no`.
pub fn stale(node: &Node, flags: Flags) -> Result<(), Error> {
    let refused = node.is_stale() && !node.config.replica_serve_stale_data && !flags.contains(Flags::STALE);
    if refused { Err(Error::MASTER_DOWN) } else { Ok(()) }
}
