//! A hand-over that was asked for (FAILOVER): this master takes the place of one of its replicas, and that one its place.

use crate::time::Monotonic;

/// A hand-over under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failover {
    /// The replica to hand over to, host and port; `None` for the first one that has the whole stream.
    pub target: Option<(String, u16)>,
    /// Until when the replica may take to catch up; `None` for as long as it likes.
    pub deadline: Option<Monotonic>,
    /// Whether it is handed over to when the time is up, whatever it lacks.
    pub force: bool,
    /// This node is a replica already, and has yet to be accepted by the new master.
    pub in_progress: bool,
}

impl Failover {
    /// The state as INFO names it.
    pub fn state(failover: Option<&Failover>) -> &'static str {
        match failover {
            None => "no-failover",
            Some(failover) if failover.in_progress => "failover-in-progress",
            Some(_) => "waiting-for-sync",
        }
    }
}
