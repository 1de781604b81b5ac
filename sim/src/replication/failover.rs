//! A coordinated failover (FAILOVER): this master and one of its replicas exchange roles.

use crate::time::Monotonic;

/// A failover in progress, begun by the command FAILOVER.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failover {
    /// The target replica, host and port; `None` for the first one that has the whole stream.
    pub target: Option<(String, u16)>,
    /// The deadline for the replica to catch up; `None` without a limit.
    pub deadline: Option<Monotonic>,
    /// FORCE: at the deadline the replica is promoted even if it has not caught up.
    pub force: bool,
    /// True once this node is a replica and waits for the new master to accept it.
    pub in_progress: bool,
}

impl Failover {
    /// The name of the state in INFO.
    pub fn state(failover: Option<&Failover>) -> &'static str {
        match failover {
            None => "no-failover",
            Some(failover) if failover.in_progress => "failover-in-progress",
            Some(_) => "waiting-for-sync",
        }
    }
}
