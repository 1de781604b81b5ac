//! The nodes of a live group: they come and go, and a replica takes a master's place.

use std::{collections::BTreeMap, rc::Rc};

use super::{
    capture::{From, Line},
    engine::Audit,
    findings::{Change, Failover, Unseen},
    follow,
    locks::{Figures, Lock},
    names::{date, key},
};

/// The most changes that are kept.
const CHANGES_MAX: usize = 10_000;

/// Returns true if a line of MONITOR has a command that this address sent. A replica's lines have
/// the commands of its master.
pub fn is_from(text: &[u8], address: &str) -> bool {
    Line::parse(text).is_ok_and(|line| line.from == From::Client(address.as_bytes()))
}

impl Audit {
    /// Returns the number of grants, renewals and ends of a node's locks.
    pub fn changes_of(&self, node: usize) -> u64 {
        let Some(node) = self.nodes.get(node) else { return 0 };
        let count = |lock: &Lock| {
            let Figures { grants, renewals, releases, broken, .. } = lock.figures;
            grants + renewals + releases + broken
        };
        let plain: u64 = node.locks.values().flat_map(BTreeMap::values).map(count).sum();
        plain + node.objects.all().map(|(_, _, object)| count(&object.lock)).sum::<u64>()
    }

    /// Records a change of a node.
    pub fn changed(&mut self, node: usize, at_us: i64, what: impl Into<String>) {
        let Some(name) = self.nodes.get(node).map(|node| node.name.clone()) else { return };
        if self.changes.len() < CHANGES_MAX {
            self.changes.push(Change { at: date(at_us), node: name, what: what.into() });
        }
    }

    /// Records that the audit lacks a right at a node, once for each right.
    pub fn lacks(&mut self, node: usize, right: &str, refusal: &str, what: &str) {
        let Some(node) = self.nodes.get(node).map(|node| node.name.clone()) else { return };
        let is_known = self.unseen.iter().any(|one| one.node == node && one.lacks == right);
        if !is_known && self.unseen.len() < CHANGES_MAX {
            let (lacks, what) = (right.to_owned(), what.to_owned());
            self.unseen.push(Unseen { node, lacks, refusal: key(refusal.as_bytes()), what });
        }
    }

    /// Begins a gap in a node's commands: any hold may end within it, and its clients may reconnect
    /// under other addresses. The node's next command makes its holds unsure. If the node is
    /// replaced instead, as after a crash, it had them until then.
    pub fn gap(&mut self, node: usize) {
        let Some(node) = self.nodes.get_mut(node) else { return };
        node.open = None;
        node.gap_us = None;
        node.has_gap = true;
        node.forget_waiters();
    }

    /// Returns the last failover to a node before a time.
    pub(super) fn failover_before(&self, node: &str, at_us: i64) -> Option<&Failover> {
        self.failovers.iter().rfind(|one| one.new == node && one.at_us <= at_us)
    }

    /// Records that node `new` took the place of the master `old`, and should have its holds.
    pub fn replaced(&mut self, old: usize, new: usize, at_us: i64) {
        if old == new || old.max(new) >= self.nodes.len() {
            return;
        }
        let master: Rc<str> = self.nodes[old].name.as_str().into();
        self.changed(new, at_us, format!("took the place of {master}"));
        if let Some(call) = self.nodes[old].open.take() {
            self.follow(old, call);
        }
        if self.failovers.len() < CHANGES_MAX {
            let (last_us, has_crashed) = (self.nodes[old].now_us, self.nodes[old].has_gap);
            let (old, new) = (master.clone(), self.nodes[new].name.clone());
            self.failovers.push(Failover { old, new, at_us, last_us, has_crashed });
        }
        let (left, right) = self.nodes.split_at_mut(old.max(new));
        let (old, new) =
            if old < new { (&mut left[old], &mut right[0]) } else { (&mut right[0], &mut left[new]) };
        // Holds from an earlier time as a master are outdated. Clients of a master that is gone
        // wait for its locks and latches no more, and have its permits no more. At the new master
        // they ask again.
        new.has_gap = false;
        new.objects.doubt();
        old.objects.doubt();
        new.forget_waiters();
        old.forget_waiters();
        for (db, locks) in &mut new.locks {
            for (key, lock) in locks.iter_mut().filter(|(_, lock)| lock.hold.is_some()) {
                lock.hold = None;
                new.shadow.free(at_us, *db, key);
            }
        }
        let now_ms = old.now_us.div_euclid(1_000);
        for (db, locks) in &mut old.locks {
            for (key, lock) in locks {
                follow::lapse(lock, now_ms);
                let Some(mut hold) = lock.hold.take() else { continue };
                // Without MONITOR there is no copy: reads show the keys of the new master.
                if !old.is_gentle {
                    let Some(held) = old.shadow.held(*db, key, now_ms) else { continue };
                    let is_hash = old.shadow.is_hash(*db, key);
                    new.shadow.free(at_us, *db, key);
                    new.shadow.take(at_us, *db, key, &held, is_hash);
                }
                hold.moved = Some(master.clone());
                let to = new.locks.entry(*db).or_default();
                let to = to.entry(key.clone()).or_insert_with(|| Lock::new(at_us));
                to.last_us = at_us;
                to.library = to.library.or(lock.library);
                to.is_proven |= lock.is_lock();
                to.hold = Some(hold);
            }
        }
        new.sweep(&mut self.findings);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::Settings;

    /// The first line is of a former master, a Redis 8.2 whose replica a Sentinel had promoted. The
    /// second is of that replica, before its promotion.
    #[test]
    fn a_former_master_runs_commands_of_clients_and_a_replica_those_of_its_master() {
        let served = br#"+1795990235.078811 [0 127.0.0.1:53274] "SET" "k" "v11" "NX" "PX" "100""#;
        let replicated = br#"+1795990224.054250 [0 127.0.0.1:21500] "SET" "k" "v0" "PXAT" "1795990224154""#;
        assert!(!is_from(served, "127.0.0.1:21500") && is_from(replicated, "127.0.0.1:21500"));
        assert!(!is_from(b"OK", "127.0.0.1:21500"));
        let mut audit = Audit::new(Settings::default());
        let (old, new) = (audit.node("127.0.0.1:21500"), audit.node("127.0.0.1:21501"));
        audit.replaced(old, new, 1_795_990_224_000_000);
        assert_eq!(audit.changes_of(old), 0);
        audit.take_text(old, 1, br#"1795990235.078811 [0 127.0.0.1:53274] "PING""#);
        assert_eq!(audit.changes_of(old), 0);
        audit.take_text(old, 2, br#"1795990235.078812 [0 127.0.0.1:53274] "SET" "k" "v" "NX" "PX" "100""#);
        assert_eq!((audit.changes_of(old), audit.changes_of(new), audit.changes_of(9)), (1, 0, 0));
    }

    /// A client that reconnects has another address, and would be counted twice.
    #[test]
    fn waiters_of_a_former_master_and_from_before_a_gap_are_forgotten() {
        let mut audit = Audit::new(Settings::default());
        let (old, new) = (audit.node("10.0.0.1:6379"), audit.node("10.0.0.2:6379"));
        let give = |audit: &mut Audit, node: usize, secs: u32, port: u32, command: &str| {
            let words: Vec<String> = command.split(' ').map(|word| format!("\"{word}\"")).collect();
            let line = format!("17000000{secs:02}.000000 [0 10.0.0.9:{port}] {}", words.join(" "));
            audit.take_text(node, 1, line.as_bytes());
        };
        let waiters = |audit: &Audit| audit.totals(&[]).waiters;
        give(&mut audit, old, 0, 1, "SET a one NX PX 30000");
        give(&mut audit, old, 1, 1, "DEL a");
        give(&mut audit, old, 2, 1, "SET a one NX PX 30000");
        for port in 2..5 {
            give(&mut audit, old, 3, port, &format!("SET a t{port} NX PX 30000"));
        }
        assert_eq!(waiters(&audit), 3);
        audit.gap(old);
        assert_eq!(waiters(&audit), 0);
        give(&mut audit, old, 4, 12, "SET a t2 NX PX 30000");
        assert_eq!(waiters(&audit), 1);
        audit.replaced(old, new, 1_700_000_005_000_000);
        assert_eq!(waiters(&audit), 0);
        for port in 20..22 {
            give(&mut audit, new, 6, port, &format!("SET a t{port} NX PX 30000"));
        }
        assert_eq!(waiters(&audit), 2);
    }
}
