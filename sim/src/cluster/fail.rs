//! Decides which nodes are down, and whether the cluster is.

use super::{
    Around, Cluster,
    node::{Flags, Key},
    slot::SLOTS,
};

/// Milliseconds after its first evaluation in which a master does not answer for keys, so that
/// others can report that it was replaced.
const WRITABLE_DELAY_MS: i64 = 2000;

/// The bounds, in milliseconds, of the delay for which a master stays closed after it was in a
/// minority.
const REJOIN_DELAY_MS: (i64, i64) = (500, 5000);

impl Cluster {
    /// Counts the masters that reported a node down within the last two node timeouts.
    pub(super) fn count_reports(&mut self, around: &Around<'_>, key: Key) -> usize {
        let since = around.now - 2 * around.node_timeout();
        let reports = &mut self.known_mut(key).reports;
        reports.retain(|_, at| *at >= since);
        reports.len()
    }

    pub(super) fn quorum(&self) -> usize {
        self.size / 2 + 1
    }

    /// Marks a PFAIL node as FAIL if a majority of masters reports it down, and sends that to all
    /// nodes.
    pub(super) fn fail_by_majority(&mut self, around: &Around<'_>, key: Key) {
        if !self.known(key).is(Flags::PFAIL) || self.known(key).has_failed() {
            return;
        }
        let own = usize::from(self.myself().is_master());
        if self.count_reports(around, key) + own < self.quorum() {
            return;
        }
        self.log(format!("Marking node {} as failing (quorum reached).", self.known(key).id));
        self.mark_failed(around, key);
        self.broadcast_fail(around, key);
    }

    pub(super) fn mark_failed(&mut self, around: &Around<'_>, key: Key) {
        let node = self.known_mut(key);
        node.flags = (node.flags - Flags::PFAIL) | Flags::FAIL;
        node.failed_at = around.now;
        self.tell_of("fail", key);
        self.changed();
    }

    /// Clears FAIL of a node that answers again. A master with slots may have been replaced: it
    /// keeps FAIL for two node timeouts.
    pub(super) fn recover(&mut self, around: &Around<'_>, key: Key) {
        let node = self.known(key);
        let is_late = around.now - node.failed_at > 2 * around.node_timeout();
        if node.votes() && !is_late {
            return;
        }
        self.log(format!("Clear FAIL state for node {}: it is reachable again.", node.id));
        self.known_mut(key).flags -= Flags::FAIL;
        self.tell_of("recovered", key);
        self.changed();
    }

    /// Evaluates whether the cluster answers for keys in the view of this node.
    pub(super) fn evaluate(&mut self, around: &Around<'_>) {
        self.state_outdated = false;
        let now = around.now;
        let first = *self.first_evaluated.get_or_insert(now);
        if self.myself().is_master() && !self.is_ok && now - first < WRITABLE_DELAY_MS {
            self.state_outdated = true;
            return;
        }
        let mut is_ok = true;
        if around.config.cluster.require_full_coverage {
            let served = self.nodes.values().filter(|node| !node.has_failed()).map(|node| node.slots.len());
            is_ok = served.sum::<u16>() == SLOTS;
        }
        let voters = || self.nodes.values().filter(|node| node.votes());
        self.size = voters().count();
        let reachable = voters().filter(|node| !node.is(Flags::FAIL | Flags::PFAIL)).count();
        if reachable < self.quorum() {
            is_ok = false;
            self.minority_at = now;
        }
        if is_ok == self.is_ok {
            return;
        }
        let delay = around.node_timeout().clamp(REJOIN_DELAY_MS.0, REJOIN_DELAY_MS.1);
        if is_ok && self.myself().is_master() && now - self.minority_at < delay {
            return;
        }
        let state = if is_ok { "ok" } else { "fail" };
        self.log(format!("Cluster state changed: {state}"));
        self.tell("state", state);
        self.is_ok = is_ok;
    }
}
