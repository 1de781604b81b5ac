//! Manual failover (CLUSTER FAILOVER): a replica takes over from a working master. No write is lost
//! if the master takes part.

use super::{
    Around, Cluster,
    message::Kind,
    node::{Flags, Key},
    outbox::Want,
};
use crate::{env::Env, event::ConnId};

/// The manual failover of a replica, or of its master.
#[derive(Debug, Default)]
pub(super) struct ManualFailover {
    /// Milliseconds of the wall clock at which it is given up; 0 while none runs.
    pub(super) ends_at: i64,
    /// On the master: the replica that takes over.
    pub(super) replica: Option<Key>,
    /// On the replica: the offset at which the master's stream ends.
    pub(super) master_offset: Option<u64>,
    /// On the replica: true once it has the master's whole stream, and from the start with FORCE.
    pub(super) may_start: bool,
}

/// The option of CLUSTER FAILOVER.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    /// No option: the master takes part.
    None,
    /// FORCE: the master does not take part; a majority of masters votes.
    Master,
    /// TAKEOVER: no node is asked.
    All,
}

impl Cluster {
    /// CLUSTER FAILOVER.
    ///
    /// # Errors
    /// Returns the reason if this node is a master, its master is unknown, or its master is down
    /// and `force` is [`Force::None`].
    pub fn fail_over(&mut self, env: &mut Env, around: &mut Around<'_>, force: Force) -> Result<(), String> {
        if self.myself().is_master() {
            return Err("You should send CLUSTER FAILOVER to a replica".into());
        }
        let Some(master) = self.myself().master else {
            return Err("I'm a replica but my master is unknown to me".into());
        };
        let is_down = self.known(master).has_failed() || self.known(master).link.is_none();
        if is_down && force == Force::None {
            return Err("Master is down or failed, please use CLUSTER FAILOVER FORCE".into());
        }
        self.reset_manual_failover();
        self.manual.ends_at = around.now + around.manual_failover_timeout();
        match force {
            Force::None => {
                self.log("Manual failover user request accepted.");
                self.send_bare(around, master, Kind::ManualFailover);
            }
            Force::Master => {
                self.log("Forced failover user request accepted.");
                self.manual.may_start = true;
            }
            Force::All => {
                self.log("Taking over the master (user request).");
                self.tell_of("takeover", master);
                self.bump_epoch();
                self.replace_master(env, around);
            }
        }
        Ok(())
    }

    /// Handles a replica's request for a manual failover: this master holds back writes, so that
    /// the replica can catch up and take over.
    pub(super) fn begin_hand_over(&mut self, env: &mut Env, around: &Around<'_>, conn: ConnId, replica: Key) {
        if self.known(replica).master != Some(self.me) {
            return;
        }
        self.reset_manual_failover();
        self.manual.ends_at = around.now + around.manual_failover_timeout();
        self.manual.replica = Some(replica);
        self.out.wants.push(Want::Pause(around.hand_over_pause_ms()));
        self.log(format!("Manual failover requested by replica {}.", self.known(replica).id));
        // This ping carries the offset at which the stream ends.
        self.ping_on(env, around, conn, Kind::Ping);
    }

    /// Ends a manual failover, completed or given up, and lets writes continue.
    pub(super) fn reset_manual_failover(&mut self) {
        if std::mem::take(&mut self.manual).replica.is_some() {
            self.out.wants.push(Want::Unpause);
        }
    }

    pub(super) fn end_late_manual_failover(&mut self, around: &Around<'_>) {
        if self.manual.ends_at != 0 && self.manual.ends_at < around.now {
            self.log("Manual failover timed out.");
            self.reset_manual_failover();
        }
    }

    /// Lets the election start once the replica has its master's whole stream.
    pub(super) fn run_manual_failover(&mut self, around: &Around<'_>) {
        if self.manual.ends_at == 0 || self.manual.may_start {
            return;
        }
        if self.manual.master_offset.is_some_and(|offset| offset == around.offset()) {
            self.manual.may_start = true;
            self.log("All master replication stream processed, manual failover can start.");
        }
    }

    /// Returns true while the replica knows where its master's stream ends but has not reached that
    /// offset.
    pub(super) fn awaits_stream(&self) -> bool {
        self.manual.ends_at != 0 && !self.manual.may_start && self.manual.master_offset.is_some()
    }

    /// Returns true for the replica that takes over from this master. It is pinged at every tick,
    /// so that it learns where the stream ends.
    pub(super) fn hands_over_to(&self, key: Key) -> bool {
        self.manual.ends_at != 0 && self.manual.replica == Some(key) && !self.myself().is(Flags::REPLICA)
    }
}
