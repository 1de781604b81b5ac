//! The nodes of a live group: they come and go, and a replica takes a master's place.

use std::rc::Rc;

use super::{engine::Audit, findings::Change, follow, locks::Lock, names::date};

/// The most changes that are kept.
const CHANGES_MAX: usize = 10_000;

impl Audit {
    /// Records a change of a node.
    pub fn changed(&mut self, node: usize, at_us: i64, what: impl Into<String>) {
        let Some(name) = self.nodes.get(node).map(|node| node.name.clone()) else { return };
        if self.changes.len() < CHANGES_MAX {
            self.changes.push(Change { at: date(at_us), node: name, what: what.into() });
        }
    }

    /// Begins a gap in a node's commands: any hold may end within it.
    pub fn gap(&mut self, node: usize) {
        let Some(node) = self.nodes.get_mut(node) else { return };
        node.open = None;
        node.gap_us = None;
        node.doubt();
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
        let (left, right) = self.nodes.split_at_mut(old.max(new));
        let (old, new) =
            if old < new { (&mut left[old], &mut right[0]) } else { (&mut right[0], &mut left[new]) };
        // Holds from an earlier time as a master are outdated.
        new.objects.doubt();
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
                let Some(held) = old.shadow.held(*db, key, now_ms) else { continue };
                let is_hash = old.shadow.is_hash(*db, key);
                new.shadow.free(at_us, *db, key);
                new.shadow.take(at_us, *db, key, &held, is_hash);
                hold.moved = Some(master.clone());
                let to = new.locks.entry(*db).or_default();
                let to = to.entry(key.clone()).or_insert_with(|| Lock::new(at_us));
                to.last_us = at_us;
                to.library = to.library.or(lock.library);
                to.is_proven |= lock.is_lock();
                to.hold = Some(hold);
            }
        }
        new.sweep();
    }
}
