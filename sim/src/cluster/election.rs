//! Elections: a replica asks the masters for votes, and takes over from its master with the votes
//! of a majority.

use super::{
    Around, Cluster,
    message::{Header, Kind, Marks},
    node::{Flags, Key},
    outbox::Want,
};
use crate::env::Env;

/// Milliseconds that a replica waits for the news of the failure to spread. A random time of less
/// than the same length is added.
const DELAY_MS: i64 = 500;

/// Milliseconds added for each other replica with more data.
const DELAY_PER_RANK_MS: i64 = 1000;

/// Milliseconds between PINGs of a master to its replicas: a silence of that length is normal.
const REPLICATION_PING_MS: i64 = 10_000;

/// The current or the last election of this replica. Times are milliseconds of the wall clock, 0
/// for never.
#[derive(Debug, Default)]
pub(super) struct Election {
    /// The time of the request for votes.
    pub(super) at: i64,
    pub(super) votes: usize,
    /// True once votes have been requested.
    pub(super) asked: bool,
    /// Number of other replicas with more data.
    pub(super) rank: i64,
    pub(super) epoch: u64,
}

impl Cluster {
    /// Advances the election of this replica, if its master has failed or a manual failover may
    /// start.
    pub(super) fn run_election(&mut self, env: &mut Env, around: &mut Around<'_>) {
        let now = around.now;
        let manual = self.manual.ends_at != 0 && self.manual.may_start;
        let Some(master) = self.myself().master.filter(|_| self.myself().is_replica()) else { return };
        let stands = self.known(master).has_failed() && !around.config.cluster.replica_no_failover;
        if !(stands || manual) || self.known(master).slots.is_empty() || self.is_too_old(around, manual) {
            return;
        }
        let timeout = (2 * around.node_timeout()).max(2000);
        let age = now - self.election.at;
        if age > 2 * timeout {
            self.election = Election { epoch: self.election.epoch, ..Election::default() };
            self.election.rank = self.rank(around, master);
            self.election.at = now
                + DELAY_MS
                + env.random_below(DELAY_MS as usize) as i64
                + DELAY_PER_RANK_MS * self.election.rank;
            if self.manual.ends_at != 0 {
                (self.election.at, self.election.rank) = (now, 0);
                self.election_due = true;
            }
            let (delay, rank, offset) = (self.election.at - now, self.election.rank, around.offset());
            self.log(format!(
                "Start of election delayed for {delay} milliseconds (rank #{rank}, offset {offset})."
            ));
            return self.broadcast_pong(env, around, true);
        }
        if !self.election.asked && self.manual.ends_at == 0 {
            let added = self.rank(around, master) - self.election.rank;
            if added > 0 {
                self.election.at += added * DELAY_PER_RANK_MS;
                self.election.rank += added;
            }
        }
        if now < self.election.at || age > timeout {
            return;
        }
        if !self.election.asked {
            self.current_epoch = self.current_epoch.saturating_add(1);
            self.election.epoch = self.current_epoch;
            self.log(format!("Starting a failover election for epoch {}.", self.current_epoch));
            self.tell("election", self.current_epoch.to_string());
            self.ask_for_votes(around);
            self.election.asked = true;
            return self.changed();
        }
        if self.election.votes >= self.quorum() {
            self.log("Failover election won: I'm the new master.");
            let epoch = self.election.epoch;
            self.tell("elected", epoch.to_string());
            let myself = self.myself_mut();
            myself.config_epoch = myself.config_epoch.max(epoch);
            self.replace_master(env, around);
        }
    }

    /// Returns true if this replica has heard nothing from its master for so long that its data is
    /// too old to take over.
    fn is_too_old(&self, around: &Around<'_>, manual: bool) -> bool {
        let factor = around.config.cluster.replica_validity_factor;
        if manual || factor == 0 {
            return false;
        }
        let now_secs = around.now.div_euclid(1000);
        let since = around.link.map_or(now_secs, |link| match link.is_up() {
            true => link.last_io_secs,
            // A replica that never had a link has no data.
            false => link.down_since.unwrap_or(0),
        });
        let mut age = now_secs.saturating_sub(since).saturating_mul(1000);
        if age > around.node_timeout() {
            age -= around.node_timeout();
        }
        age > REPLICATION_PING_MS.saturating_add(around.node_timeout().saturating_mul(factor))
    }

    /// Counts the other replicas of the master that have more of its data. Failed ones count as
    /// well.
    fn rank(&self, around: &Around<'_>, master: Key) -> i64 {
        let (me, mine) = (self.me, around.offset());
        let ahead = self.replicas_of(master).filter(|key| {
            let node = self.known(*key);
            *key != me && !node.is(Flags::NO_FAILOVER) && node.offset > mine
        });
        ahead.count() as i64
    }

    /// Takes over all slots of the master.
    pub(super) fn replace_master(&mut self, env: &mut Env, around: &mut Around<'_>) {
        let Some(old) = self.myself().master.filter(|_| self.myself().is_replica()) else { return };
        self.make_master(self.me);
        self.out.wants.push(Want::Lead);
        let taken = self.known(old).slots.clone();
        for slot in taken.iter() {
            self.unbind(slot);
            self.bind(slot, self.me);
        }
        self.tell_slots(&taken, self.me);
        self.evaluate(around);
        self.out.unsaved = true;
        self.broadcast_pong(env, around, false);
        self.reset_manual_failover();
    }

    /// Votes for a replica, if the epochs, the failure of its master and earlier votes allow it.
    pub(super) fn vote(&mut self, around: &Around<'_>, for_node: Key, request: &Header) {
        let myself = self.myself();
        let Some(master) = self.known(for_node).master.filter(|_| !self.known(for_node).is_master()) else {
            return;
        };
        let is_down = self.known(master).has_failed() || request.marks.contains(Marks::FORCE);
        if !myself.votes()
            || request.current_epoch < self.current_epoch
            || self.last_vote_epoch == self.current_epoch
            || !is_down
            || around.now - self.known(master).voted_at < 2 * around.node_timeout()
        {
            return;
        }
        // A newer master must not own any of the requested slots.
        let newer = |slot: u16| {
            let epoch = self.owner(slot).map_or(0, |owner| self.known(owner).config_epoch);
            !self.is_free(slot) && epoch > request.config_epoch
        };
        if request.slots.iter().any(newer) {
            return;
        }
        self.known_mut(master).voted_at = around.now;
        self.last_vote_epoch = self.current_epoch;
        self.out.unsaved = true;
        self.send_bare(around, for_node, Kind::AuthAck);
        let (id, epoch) = (self.known(for_node).id, self.current_epoch);
        self.log(format!("Failover auth granted to {id} for epoch {epoch}"));
        self.tell("vote", format!("{} {epoch}", self.known(for_node).address));
    }

    /// Counts a vote for this replica.
    pub(super) fn take_vote(&mut self, of: Key, header: &Header) {
        if self.known(of).votes() && header.current_epoch >= self.election.epoch {
            self.election.votes += 1;
            self.election_due = true;
        }
    }
}
