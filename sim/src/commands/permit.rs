//! Rules about the node's state for commands of clients and of scripts.

use super::{Error, Flags};
use crate::{generation::Feature, node::Node};

/// Checks that disk, replicas and role allow a client's write.
///
/// # Errors
/// MISCONF, NOREPLICAS or READONLY, in the order in which a server checks.
pub fn write(node: &Node) -> Result<(), Error> {
    disk(node)?;
    replicas(node)?;
    read_only_replica(node)
}

/// Checks the same for a write in a script. A server checks the role first there.
///
/// # Errors
/// READONLY, MISCONF, or from Redis 7.0 on NOREPLICAS.
pub fn write_in_script(node: &Node) -> Result<(), Error> {
    read_only_replica(node)?;
    disk(node)?;
    if node.config.generation.has(Feature::ScriptsNeedReplicas) { replicas(node) } else { Ok(()) }
}

/// Checks that the disk accepts writes.
///
/// # Errors
/// MISCONF after a failed save, unless `stop-writes-on-bgsave-error` is off, or after a failed
/// write to the AOF.
pub fn disk(node: &Node) -> Result<(), Error> {
    let stops =
        node.config.persistence.stop_writes_on_bgsave_error && !node.config.persistence.save.is_empty();
    if stops && node.persistence.save_failed {
        return Err(Error::MISCONF.worded(node.config.generation));
    }
    node.persistence.aof.failed.as_ref().map_or(Ok(()), |why| Err(Error::misconf_log(why)))
}

/// Checks that enough replicas are connected and close behind.
///
/// # Errors
/// NOREPLICAS.
pub fn replicas(node: &Node) -> Result<(), Error> {
    let wanted = node.config.replication.min_replicas_to_write;
    let asked = wanted > 0 && node.config.replication.min_replicas_max_lag > 0 && !node.is_replica();
    if asked && node.good_replicas() < wanted { Err(Error::NO_REPLICAS) } else { Ok(()) }
}

/// Checks that the node's role allows clients to write.
///
/// # Errors
/// READONLY on a replica, unless `replica-read-only` is off.
pub fn read_only_replica(node: &Node) -> Result<(), Error> {
    if node.is_replica() && node.config.replication.replica_read_only {
        Err(Error::READ_ONLY)
    } else {
        Ok(())
    }
}

/// Checks that a command with these flags may use stale data.
///
/// # Errors
/// MASTERDOWN on a replica cut off from its master, with `replica-serve-stale-data no`.
pub fn stale(node: &Node, flags: Flags) -> Result<(), Error> {
    let refused =
        node.is_stale() && !node.config.replication.replica_serve_stale_data && !flags.contains(Flags::STALE);
    if refused { Err(Error::MASTER_DOWN) } else { Ok(()) }
}
