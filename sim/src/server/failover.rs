//! FAILOVER on the old master: waits for a replica that has caught up, then follows it.
//!
//! Writes wait during the failover (`Node::pause`). The replica becomes a master when the old
//! master asks it for the stream with PSYNC FAILOVER.

use super::Server;
use crate::{env::Env, log::Level, node::Node, replication::ReplicaLink, time::Monotonic};

impl Node {
    /// Aborts a failover. A node that already follows the new master becomes a master again, under
    /// a new id.
    pub fn abort_failover(&mut self, env: &mut Env) {
        let Some(failover) = self.replication.failover.take() else { return };
        if failover.in_progress {
            self.config.replication.replicaof = None;
            self.replication.promote(env.random_id(), env.wall.as_secs());
        }
    }

    /// Returns the replica with this address, if it is attached.
    pub fn replica_at(&self, host: &str, port: u16) -> Option<&ReplicaLink> {
        let known = self.replication.attached();
        let mut at = known.filter(|(conn, replica)| {
            replica.port == port && self.replica_address(**conn).eq_ignore_ascii_case(host)
        });
        at.next().map(|(_, replica)| replica)
    }
}

impl Server {
    /// Continues a failover that waits for a replica.
    pub(super) fn run_failover(&mut self, env: &mut Env) {
        let Some(failover) = self.node.replication.failover.clone().filter(|failover| !failover.in_progress)
        else {
            return;
        };
        let late = failover.deadline.is_some_and(|deadline| env.monotonic >= deadline);
        if late && !failover.force {
            env.log(Level::Notice, || "Failover time out exceeded, aborting: no replica caught up".into());
            return self.node.abort_failover(env);
        }
        if late {
            env.log(Level::Notice, || "Failover time out exceeded, failing over.".into());
        }
        let offset = self.node.replication.history.offset;
        let has_all = |replica: &ReplicaLink| replica.acked == offset;
        let chosen = match failover.target {
            Some((host, port)) => {
                let caught_up = self.node.replica_at(&host, port).is_some_and(has_all);
                (late || caught_up).then_some((host, port))
            }
            None => {
                let mut caught_up = self.node.replication.attached().filter(|(_, replica)| has_all(replica));
                caught_up.next().map(|(conn, replica)| (self.node.replica_address(*conn), replica.port))
            }
        };
        let Some((host, port)) = chosen else { return };
        // The acknowledgement that ends the failover may also be the one that a client waits for.
        self.wake_waiting_for_replicas(env);
        env.log(Level::Notice, || format!("Failing over to {host}:{port}"));
        let backlog_size = self.node.config.replication.backlog_size;
        self.node.config.replication.replicaof = Some((host.clone(), port));
        self.node.replication.follow(host, port, backlog_size, env.wall.as_secs());
        if let Some(failover) = &mut self.node.replication.failover {
            failover.in_progress = true;
        }
    }

    /// Returns the deadline of the wait for a replica, if a failover waits for one.
    pub(super) fn failover_due(&self) -> Option<Monotonic> {
        let failover = self.node.replication.failover.as_ref();
        failover.filter(|failover| !failover.in_progress)?.deadline
    }
}
