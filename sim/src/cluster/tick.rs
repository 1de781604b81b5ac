//! The periodic work, and the work at the end of each step.

use super::{
    Around, Cluster,
    message::Kind,
    node::{Flags, Key},
    state::PERIOD,
};
use crate::env::Env;

/// Milliseconds for which a master must have been without working replicas before a replica of
/// another master migrates to it.
const MIGRATION_DELAY_MS: i64 = 5000;

/// Number of nodes drawn for the ping of each second.
const DRAWN: usize = 5;

impl Cluster {
    /// Records that options were set: at the end of the step, this node's own entry is updated from
    /// them.
    pub fn note_options_set(&mut self) {
        self.options_set = true;
    }

    /// Does the periodic work if it is due; returns true if it was.
    pub fn run_due(&mut self, env: &mut Env, around: &mut Around<'_>) -> bool {
        if env.monotonic < self.next_tick {
            return false;
        }
        self.next_tick = env.monotonic + PERIOD;
        self.tick(env, around);
        true
    }

    /// Does the work of the end of a step, before its replies leave.
    pub fn settle(&mut self, env: &mut Env, around: &mut Around<'_>) {
        if std::mem::take(&mut self.options_set) {
            self.note_own_options(around);
        }
        if self.awaits_stream() {
            self.run_manual_failover(around);
            self.election_due |= self.manual.may_start;
        }
        if std::mem::take(&mut self.election_due) {
            self.run_manual_failover(around);
            self.run_election(env, around);
        }
        self.run_jobs(env, around);
        if self.state_outdated {
            self.evaluate(around);
        }
    }

    fn tick(&mut self, env: &mut Env, around: &mut Around<'_>) {
        self.ticks += 1;
        self.note_own_options(around);
        self.limit_links(around);
        self.dial_missing(around);
        if self.ticks.is_multiple_of(10) {
            self.ping_drawn(env, around);
        }
        let mut newly_down = false;
        for key in self.keys() {
            newly_down |= self.watch(env, around, key);
        }
        self.start_replication(around);
        self.end_late_manual_failover(around);
        self.tick_jobs(env, around);
        if self.myself().is_replica() {
            self.run_manual_failover(around);
            self.run_election(env, around);
            if around.config.cluster.allow_replica_migration {
                self.migrate(around);
            }
        }
        if newly_down || !self.is_ok {
            self.evaluate(around);
        }
    }

    /// Updates this node's own entry from the options.
    pub(super) fn note_own_options(&mut self, around: &Around<'_>) {
        let announced = super::send::announced(around);
        let cluster = &around.config.cluster;
        let (ip, hostname) = (cluster.announce_ip.clone(), cluster.announce_hostname.clone());
        let myself = self.myself_mut();
        myself.flags.set(Flags::NO_FAILOVER, cluster.replica_no_failover);
        (myself.address.port, myself.address.bus_port) = (announced.port, announced.bus_port);
        if !ip.is_empty() {
            myself.address.ip = ip;
        }
        if myself.hostname != hostname {
            myself.hostname = hostname;
            self.out.unsaved = true;
        }
    }

    /// Counts the nodes that are PFAIL, removes those whose handshake took too long, and dials
    /// those without a connection.
    fn dial_missing(&mut self, around: &Around<'_>) {
        let limit = around.node_timeout().max(1000);
        self.down_nodes = 0;
        for key in self.keys() {
            let node = self.known(key);
            if node.is(Flags::MYSELF | Flags::NO_ADDRESS) {
                continue;
            }
            let is_late = node.is(Flags::HANDSHAKE) && around.now - node.created > limit;
            let (is_down, is_linked) = (node.is(Flags::PFAIL), node.link.is_some());
            self.down_nodes += usize::from(is_down);
            if is_late {
                self.remove(key);
            } else if !is_linked {
                self.dial(around, key);
            }
        }
    }

    /// Draws a few nodes, and pings the one whose last pong is oldest.
    fn ping_drawn(&mut self, env: &mut Env, around: &Around<'_>) {
        let mut oldest: Option<(i64, Key)> = None;
        for _ in 0..DRAWN {
            let (key, node) = self.draw(env);
            let is_asked = node.link.is_none() || node.ping_sent != 0;
            if is_asked || node.is(Flags::MYSELF | Flags::HANDSHAKE) {
                continue;
            }
            if oldest.is_none_or(|(pong, _)| pong > node.pong_received) {
                oldest = Some((node.pong_received, key));
            }
        }
        if let Some((_, key)) = oldest {
            self.ping(env, around, key, Kind::Ping);
        }
    }

    /// Pings a node that was silent for long, and marks it PFAIL after the node timeout. Returns
    /// true if it is newly PFAIL.
    fn watch(&mut self, env: &mut Env, around: &Around<'_>, key: Key) -> bool {
        let (now, timeout) = (around.now, around.node_timeout());
        let node = self.known(key);
        if node.is(Flags::MYSELF | Flags::NO_ADDRESS | Flags::HANDSHAKE) {
            return false;
        }
        let (asked, silent) = (now - node.ping_sent, now - node.data_received);
        // The connection itself may be broken: drop it once in each node timeout, to dial again.
        let is_old = node.link.as_ref().is_some_and(|link| now - link.created > timeout);
        if is_old && node.ping_sent != 0 && asked > timeout / 2 && silent > timeout / 2 {
            self.drop_link(key);
        }
        let node = self.known(key);
        let is_linked = node.link.is_some();
        let is_quiet = node.ping_sent == 0 && now - node.pong_received > timeout / 2;
        if is_linked && (is_quiet || self.hands_over_to(key)) {
            self.ping(env, around, key, Kind::Ping);
            return false;
        }
        let is_down = node.ping_sent != 0 && asked.min(silent) > timeout;
        if is_down && !node.is(Flags::PFAIL | Flags::FAIL) {
            let id = node.id;
            self.known_mut(key).flags |= Flags::PFAIL;
            self.log(format!("*** NODE {id} possibly failing"));
            self.tell_of("pfail", key);
            return true;
        }
        false
    }

    /// Starts the replication of a replica that has no link, once its master's address is known.
    fn start_replication(&mut self, around: &Around<'_>) {
        let Some(master) = self.myself().master.filter(|_| self.myself().is_replica()) else { return };
        let is_reachable = !self.known(master).is(Flags::NO_ADDRESS) && self.known(master).address.port != 0;
        if around.link.is_none() && is_reachable {
            self.replicate(master);
        }
    }

    fn working_replicas(&self, master: Key) -> usize {
        self.replicas_of(master).filter(|key| !self.known(*key).has_failed()).count()
    }

    /// Moves this replica to a master without working replicas, if its own master has several.
    fn migrate(&mut self, around: &Around<'_>) {
        let masters = |cluster: &Cluster| {
            let of = |(_, node): &(&Key, &super::node::Known)| {
                node.is_master()
                    && !node.is(Flags::FAIL | Flags::NO_ADDRESS | Flags::HANDSHAKE | Flags::MYSELF)
            };
            cluster.nodes.iter().filter(of).map(|(key, _)| *key).collect::<Vec<_>>()
        };
        let Some(mine) = self.myself().master else { return };
        let most = masters(self).into_iter().map(|key| self.working_replicas(key)).max().unwrap_or(0);
        let is_orphaned = |cluster: &Cluster, key: Key| {
            let node = cluster.known(key);
            node.votes()
                && node.is(Flags::MIGRATE_TO)
                && !node.has_failed()
                && cluster.working_replicas(key) == 0
        };
        let any = masters(self).into_iter().any(|key| is_orphaned(self, key));
        if !any || most < 2 || self.working_replicas(mine) != most || !self.is_ok {
            return;
        }
        let healthy = self.replicas_of(mine).filter(|key| !self.known(*key).is(Flags::FAIL | Flags::PFAIL));
        if healthy.count() as u64 <= around.config.cluster.migration_barrier {
            return;
        }
        let (mut target, mut candidate) = (None, self.me);
        for key in self.keys() {
            if is_orphaned(self, key) {
                target = target.or(Some(key));
                let node = self.known_mut(key);
                if node.orphaned_at == 0 {
                    node.orphaned_at = around.now;
                }
            } else {
                self.known_mut(key).orphaned_at = 0;
            }
            if self.known(key).is_master() && self.working_replicas(key) == most {
                let first = self.replicas_of(key).min_by_key(|replica| self.known(*replica).id);
                candidate = first
                    .filter(|first| self.known(*first).id < self.known(candidate).id)
                    .unwrap_or(candidate);
            }
        }
        let Some(target) = target.filter(|_| candidate == self.me) else { return };
        if around.now - self.known(target).orphaned_at > MIGRATION_DELAY_MS {
            self.log(format!("Migrating to orphaned master {}", self.known(target).id));
            self.follow(target);
        }
    }
}
