//! The faults in a world: nodes and clients that crash or stand still, clocks that jump, failovers.

use std::collections::BTreeMap;

use lockstorm::judge::history::{
    Clock, ClockId, EventKind, GainCause, Host, Life, Lock, LossCause, Owner, Role, Segment, Serving,
};
use lockstorm_world::time::Wall;

use super::{Key, LEASES, Node, Wants, World, one_of};

impl World {
    /// A node crashes, or comes back: with its disk, without it, or with the disk's state at its
    /// last grant.
    pub(super) fn crashes_node(&mut self, node: usize, how: u8) {
        let host = self.nodes[node];
        if !self.state[node].down {
            self.state[node].down = true;
            self.tell(host, EventKind::Life { life: Life::Crashed });
            return;
        }
        self.state[node].down = false;
        self.tell(host, EventKind::Life { life: Life::Started });
        if how.is_multiple_of(2) {
            let locks: Vec<Lock> = self.state[node].keys.keys().copied().collect();
            for lock in locks {
                self.loses(node, lock, LossCause::Crash);
                self.queue(node, lock, Vec::clear);
            }
        } else if how % 4 == 3 {
            let had = self.state[node].keys.clone();
            self.comes_back_with(node, &had, self.state[node].stored.clone(), GainCause::Restart);
        }
        // A node reports its losses of a crash before it reports its role.
        if self.masters[0] == node || self.deposed == Some(node) {
            self.serves(node, Serving::Whole);
        }
    }

    /// A node has the `stored` keys of its group, after it `had` others: reports the lost and the
    /// returned holds.
    fn comes_back_with(
        &mut self,
        node: usize,
        had: &BTreeMap<Lock, Key>,
        stored: BTreeMap<Lock, Key>,
        how: GainCause,
    ) {
        let (host, now) = (self.nodes[node], self.wall_ms(node, self.now));
        let lasts = |key: &Key| key.expires_ms.is_none_or(|at| at > now);
        let stored: BTreeMap<Lock, Key> = stored.into_iter().filter(|(_, key)| lasts(key)).collect();
        let loss = match how {
            GainCause::Restart => LossCause::Crash,
            GainCause::Failover => LossCause::Failover,
        };
        for (lock, key) in had {
            let is_kept =
                |owner: &&Owner| stored.get(lock).is_some_and(|key| key.holders.contains_key(owner));
            for owner in key.holders.keys().filter(|owner| !is_kept(owner)) {
                let mode = self.mode(*lock, *owner);
                self.tell(host, EventKind::Vanished { lock: *lock, owner: *owner, how: loss, mode });
            }
        }
        for (lock, key) in &stored {
            let before = had.get(lock);
            let ends_later = before.is_none_or(|before| {
                before.expires_ms.is_some_and(|end| key.expires_ms.is_none_or(|at| at > end))
            });
            for (owner, count) in &key.holders {
                let (lock, owner, count, mode) = (*lock, *owner, *count, self.mode(*lock, *owner));
                let counted = before.and_then(|key| key.holders.get(&owner));
                if counted == Some(&count) && !ends_later {
                    continue;
                }
                let lease_ms = key.expires_ms.map(|at| (at - now) as u64);
                let until = key.expires_ms.map(Wall::from_millis);
                self.tell(host, EventKind::Regained { lock, owner, lease_ms, until, count, how, mode });
            }
        }
        self.state[node].keys = stored;
    }

    /// An owner has a lock and gives it back, and the granting node crashes right away. The node
    /// comes back with the hold; its owner learns of it, or asks for the lock again.
    pub(super) fn returns_released(&mut self, owner: Owner, lock: Lock, how: u8, much: u8) {
        let node = self.master(0, self.history.client_of(owner));
        if self.state[node].down {
            return;
        }
        self.calls(owner, lock, Wants::Acquire(one_of(LEASES, much)), 0);
        self.calls(owner, lock, Wants::Release, 0);
        self.crashes_node(node, how);
        self.passes(one_of(super::STEPS, how));
        self.crashes_node(node, 3);
        match how % 3 {
            0 => self.is_told(lock, node),
            1 => self.renews(owner, lock, one_of(LEASES, much), 0),
            _ => self.calls(owner, lock, Wants::Acquire(one_of(LEASES, how)), 0),
        }
    }

    /// An owner that has a hold on a node asks the node and believes the reply.
    pub(super) fn is_told(&mut self, lock: Lock, node: usize) {
        let Some(key) = self.state[node].keys.get(&lock).filter(|_| !self.state[node].down) else { return };
        let Some((owner, count)) = key.holders.iter().next().map(|(owner, count)| (*owner, *count)) else {
            return;
        };
        let left = key.expires_ms.map(|at| (at - self.wall_ms(node, self.now)).max(0) as u64);
        if self.able(self.history.client_of(owner)) {
            self.believes(owner, lock, left, self.now, None, count);
        }
    }

    /// A client crashes, or comes back without any memory.
    pub(super) fn crashes_client(&mut self, client: Host) {
        if self.down.contains(&client) {
            self.down.retain(|host| *host != client);
            self.still.retain(|host| *host != client);
            self.tell(client, EventKind::Life { life: Life::Started });
            // A started process is another owner than the one that crashed.
            for number in 0..self.owners.len() {
                if self.history.client_of(self.owners[number]) == client {
                    let name =
                        format!("another {}", self.history.owners[self.owners[number].0 as usize].name);
                    self.owners[number] = self.history.owner(&name, client);
                }
            }
            return;
        }
        self.down.push(client);
        self.still.push(client);
        self.tell(client, EventKind::Life { life: Life::Crashed });
        let gone: Vec<Owner> =
            self.owners.iter().filter(|owner| self.history.client_of(**owner) == client).copied().collect();
        for owner in gone {
            self.calls.remove(&owner);
            self.tokens.remove(&owner);
        }
    }

    pub(super) fn stands_still(&mut self, host: Host, how: u8) {
        if self.down.contains(&host) {
            return;
        }
        let life = if self.able(host) {
            self.still.push(host);
            one_of(&[Life::Paused, Life::Suspended], how)
        } else {
            self.still.retain(|other| *other != host);
            Life::Resumed
        };
        self.tell(host, EventKind::Life { life });
    }

    /// A wall clock jumps, or all clocks of a host change their rate.
    pub(super) fn changes_clock(&mut self, host: Host, how: u8, much: u8) {
        let clock = self.history.clock(host);
        let mut readings = ClockId::ALL.map(|clock_id| clock.reading(clock_id, self.now));
        let mut segments = clock.segments().to_vec();
        let rates = segments.last().expect("never none").rates;
        segments.retain(|segment| segment.from < self.now);
        let rates = match how % 4 {
            3 => [one_of(&[1_000_000_000, 1_100_000_000, 900_000_000], much); 3],
            2 => [rates[0], one_of(&[0, rates[2]], much), rates[2]],
            _ => {
                readings[0] += one_of(&[2_000, 400, -400, -20_000, 40_000], much) * 1_000_000;
                rates
            }
        };
        segments.push(Segment { from: self.now, readings, rates });
        self.history.clocks[usize::from(host.0)] = Clock::try_from(segments).expect("in order");
    }

    /// A node of a cluster that is up reports its relation to the slots of all locks. The cluster
    /// is always healthy: only impossible histories have closed nodes and moving slots.
    pub(super) fn serves(&mut self, node: usize, how: Serving) {
        if self.in_cluster && !self.state[node].down {
            for lock in Vec::from_iter(self.history.header.locks()) {
                self.tell(self.nodes[node], EventKind::Serves { lock, how });
            }
        }
    }

    /// Another node of the first group takes over, with the keys that it has of the master (present
    /// ones, or those at the master's last grant) or without any. The old master learns of it
    /// immediately, or serves some of the clients until the next failover.
    pub(super) fn fails_over(&mut self, how: u8) {
        if self.nodes.len() != 2 {
            return;
        }
        if let Some(old) = self.deposed.take() {
            self.steps_down(old);
            return;
        }
        let (old, new) = (self.masters[0], 1 - self.masters[0]);
        self.masters[0] = new;
        let new_host = self.nodes[new];
        let Node { keys: held, stored, queues, counts, token, .. } = self.state[old].clone();
        if how / 2 % 2 == 1 {
            self.deposed = Some(old);
        } else {
            self.steps_down(old);
        }
        self.tell(new_host, EventKind::Became { role: Role::Master });
        self.serves(new, Serving::Whole);
        if !how.is_multiple_of(2) {
            self.state[new].counts = counts.clone();
        }
        for lock in counts.into_keys() {
            let left = self.state[new].counts.get(&lock).copied().unwrap_or(0);
            self.tell(new_host, EventKind::Counted { lock, left });
        }
        if how.is_multiple_of(2) {
            for (lock, key) in held {
                for owner in key.holders.into_keys() {
                    let (how, mode) = (LossCause::Failover, self.mode(lock, owner));
                    self.tell(new_host, EventKind::Vanished { lock, owner, how, mode });
                }
            }
        } else if how % 8 == 5 {
            self.comes_back_with(new, &held, stored, GainCause::Failover);
            (self.state[new].queues, self.state[new].token) = (queues, token);
        } else {
            (self.state[new].keys, self.state[new].queues) = (held, queues);
            self.state[new].token = token;
        }
    }

    /// A master becomes a replica and loses its own state.
    fn steps_down(&mut self, old: usize) {
        let Node { keys, queues, counts, .. } = &mut self.state[old];
        keys.clear();
        queues.clear();
        counts.clear();
        self.tell(self.nodes[old], EventKind::Became { role: Role::Replica });
        self.serves(old, Serving::Elsewhere);
    }
}
