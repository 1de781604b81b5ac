//! Epochs and votes: at most one leader for each epoch and master.

use std::collections::BTreeMap;

use super::{Address, Sentinel, instance::Flags, master::Master};
use crate::env::Env;

/// A Sentinel's reply to IS-MASTER-DOWN-BY-ADDR: its view of the master, and its vote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opinion {
    /// True if the master is down in this Sentinel's own view.
    pub down: bool,
    /// The candidate that it voted for; `None` if no vote was requested, or it has not voted since
    /// its start.
    pub leader: Option<String>,
    /// The epoch of the vote; 0 if the master is unknown.
    pub leader_epoch: u64,
}

impl Sentinel {
    /// Answers another Sentinel's question about the master at an address, and votes if `candidate`
    /// is not `*`.
    pub fn opinion(&mut self, env: &mut Env, at: &Address, epoch: u64, candidate: &str) -> Opinion {
        let name = self.masters.values().find(|master| master.own.address == *at);
        let Some(mut master) =
            name.map(|master| master.name.clone()).and_then(|name| self.masters.remove(&name))
        else {
            return Opinion { down: false, leader: None, leader_epoch: 0 };
        };
        let down = self.tilt_since.is_none() && master.own.is(Flags::S_DOWN);
        let (leader, leader_epoch) = match candidate {
            "*" => (None, 0),
            candidate => self.vote(env, &mut master, epoch, candidate),
        };
        self.masters.insert(master.name.clone(), master);
        Opinion { down, leader, leader_epoch }
    }

    /// Votes for the first candidate that asks in an epoch, even if the master is up. Returns this
    /// Sentinel's last vote, which may be an older one for another candidate.
    fn vote(
        &mut self,
        env: &mut Env,
        master: &mut Master,
        epoch: u64,
        candidate: &str,
    ) -> (Option<String>, u64) {
        if epoch > self.current_epoch {
            self.current_epoch = epoch;
            self.save();
            self.tell("+new-epoch", epoch.to_string());
        }
        if master.leader_epoch < epoch && self.current_epoch <= epoch {
            master.leader = Some(candidate.to_owned());
            master.leader_epoch = self.current_epoch;
            self.save();
            self.tell("+vote-for-leader", format!("{candidate} {}", master.leader_epoch));
            if candidate != self.my_id {
                // Leave the failover to the other candidate for a while.
                master.failover_start = env.wall.as_millis() + env.random_below(1_000) as i64;
            }
        }
        (master.leader.clone(), master.leader_epoch)
    }

    /// Counts the votes of an epoch, this Sentinel's own included, and returns the leader if one
    /// has enough.
    pub(super) fn elect(&mut self, env: &mut Env, master: &mut Master, epoch: u64) -> Option<String> {
        let voters = master.sentinels.len() + 1;
        let mut votes: BTreeMap<String, usize> = BTreeMap::new();
        for peer in master.sentinels.values() {
            if let Some(leader) = &peer.peer.leader
                && peer.peer.leader_epoch == self.current_epoch
            {
                *votes.entry(leader.clone()).or_default() += 1;
            }
        }
        let most = |votes: &BTreeMap<String, usize>| {
            let mut best: Option<(String, usize)> = None;
            for (leader, count) in votes {
                if best.as_ref().is_none_or(|(_, most)| count > most) {
                    best = Some((leader.clone(), *count));
                }
            }
            best
        };
        let favourite = most(&votes).map_or_else(|| self.my_id.clone(), |(leader, _)| leader);
        let (mine, voted_in) = self.vote(env, master, epoch, &favourite);
        if let Some(mine) = mine.filter(|_| voted_in == epoch) {
            *votes.entry(mine).or_default() += 1;
        }
        let (leader, count) = most(&votes)?;
        let enough = count > voters / 2 && count >= master.settings.quorum as usize;
        enough.then_some(leader)
    }
}
