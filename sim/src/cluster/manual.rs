//! Manual failover (CLUSTER FAILOVER): a replica takes over from a master that is up, without the
//! loss of a write where the master takes part.

use super::{
    Around, Cluster,
    message::Kind,
    node::{Flags, Key},
    outbox::Want,
};
use crate::{env::Env, event::ConnId};

/// How long one may take.
const TIMEOUT_MS: i64 = 5000;

/// For how long the master holds back writes at most.
const PAUSE_MS: u64 = 10_000;

/// A manual failover, of the replica or of its master.
#[derive(Debug, Default)]
pub(super) struct ManualFailover {
    /// When it is given up; 0 if there is none.
    pub(super) ends_at: i64,
    /// On the master: the replica that takes over.
    pub(super) replica: Option<Key>,
    /// On the replica: where the stream of the master ends.
    pub(super) master_offset: Option<u64>,
    /// On the replica: it has all that the master has, or does not care.
    pub(super) may_start: bool,
}

/// The way of a manual failover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    /// The master takes part.
    None,
    /// It does not; a majority of masters votes.
    Master,
    /// No node is asked.
    All,
}

impl Cluster {
    /// CLUSTER FAILOVER.
    ///
    /// # Errors
    /// Why it cannot begin.
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
        self.manual.ends_at = around.now + TIMEOUT_MS;
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

    /// A replica asks this master to hold back writes, so that it can catch up and take over.
    pub(super) fn begin_hand_over(&mut self, env: &mut Env, around: &Around<'_>, conn: ConnId, replica: Key) {
        if self.known(replica).master != Some(self.me) {
            return;
        }
        self.reset_manual_failover();
        self.manual.ends_at = around.now + TIMEOUT_MS;
        self.manual.replica = Some(replica);
        self.out.wants.push(Want::Pause(PAUSE_MS));
        self.log(format!("Manual failover requested by replica {}.", self.known(replica).id));
        // It says where the stream ends.
        self.ping_on(env, around, conn, Kind::Ping);
    }

    /// Gives up a manual failover, or is done with it.
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

    /// Starts the election when the replica has all that its master has.
    pub(super) fn run_manual_failover(&mut self, around: &Around<'_>) {
        if self.manual.ends_at == 0 || self.manual.may_start {
            return;
        }
        if self.manual.master_offset.is_some_and(|offset| offset == around.offset()) {
            self.manual.may_start = true;
            self.log("All master replication stream processed, manual failover can start.");
        }
    }

    /// Whether the stream of the master is still to be caught up with.
    pub(super) fn awaits_stream(&self) -> bool {
        self.manual.ends_at != 0 && !self.manual.may_start && self.manual.master_offset.is_some()
    }

    /// Whether a replica is to be pinged at every tick, to know where the stream ends.
    pub(super) fn hands_over_to(&self, key: Key) -> bool {
        self.manual.ends_at != 0 && self.manual.replica == Some(key) && !self.myself().is(Flags::REPLICA)
    }
}
