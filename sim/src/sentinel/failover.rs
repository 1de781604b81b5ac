//! Failover: from the agreement that a master is down to the announcement of the next master.

use std::cmp::Reverse;

use super::{
    Address, Sentinel,
    instance::{Flags, Who},
    master::{Master, Stage},
};
use crate::env::Env;

/// The reason why SENTINEL FAILOVER begins no failover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// No master of this name is watched.
    Unknown,
    /// A failover is in progress.
    InProgress,
    /// No replica is fit to be promoted.
    NoGoodReplica,
    /// The failover is to be coordinated, and the master has no command FAILOVER.
    NoGoodMaster,
}

/// The forms of SENTINEL FAILOVER.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByHand {
    /// The Sentinel promotes a replica, and asks neither other Sentinels nor the master.
    Forced,
    /// The same from Valkey 9.0 on: the master counts as SDOWN up to the next tick.
    ForcedAsDown,
    /// A majority of the Sentinels votes, and the master hands its role over to the replica.
    Coordinated,
}

/// The shortest time in milliseconds in which a master is asked to hand its role over.
const HAND_OVER_MIN: i64 = 1_000;

impl Sentinel {
    pub(super) fn starts_failover(&self, now: i64, master: &Master) -> bool {
        master.own.is(Flags::O_DOWN)
            && !master.own.is(Flags::FAILOVER_IN_PROGRESS)
            && now - master.failover_start >= master.settings.failover_timeout * 2
    }

    pub(super) fn start_failover(&mut self, env: &mut Env, now: i64, master: &mut Master) {
        master.own.flags.insert(Flags::FAILOVER_IN_PROGRESS);
        self.current_epoch += 1;
        master.failover_epoch = self.current_epoch;
        self.save();
        self.tell("+new-epoch", self.current_epoch.to_string());
        self.tell_of("+try-failover", master, &Who::Master);
        master.failover_start = now + env.random_below(1_000) as i64;
        master.go_to(Stage::WaitStart, now);
    }

    /// SENTINEL FAILOVER: begins a failover of a master that need not be down.
    ///
    /// # Errors
    /// If the master is unknown, cannot hand its role over as requested, is in a failover, or has
    /// no replica that is fit.
    pub fn force_failover(&mut self, env: &mut Env, name: &str, form: ByHand) -> Result<(), Refusal> {
        let now = env.wall.as_millis();
        let Some(mut master) = self.masters.remove(name) else { return Err(Refusal::Unknown) };
        let is_coordinated = form == ByHand::Coordinated;
        let refusal = if is_coordinated && !master.hands_over {
            Some(Refusal::NoGoodMaster)
        } else if master.own.is(Flags::FAILOVER_IN_PROGRESS) {
            Some(Refusal::InProgress)
        } else {
            self.select(now, &master).is_none().then_some(Refusal::NoGoodReplica)
        };
        if refusal.is_none() {
            self.start_failover(env, now, &mut master);
            let flag = if is_coordinated { Flags::COORDINATED_FAILOVER } else { Flags::FORCE_FAILOVER };
            master.own.flags.insert(flag);
            if form != ByHand::Forced && !master.own.is(Flags::S_DOWN) {
                master.own.flags.insert(Flags::S_DOWN);
                master.own.s_down_since = now;
            }
            if is_coordinated {
                // Others are asked for their votes only about a master that is SDOWN.
                self.ask_others(now, &mut master, true);
            }
        }
        self.masters.insert(name.to_owned(), master);
        refusal.map_or(Ok(()), Err)
    }

    /// Takes one step of the failover that is in progress, if any.
    pub(super) fn run_failover(&mut self, env: &mut Env, now: i64, master: &mut Master) {
        if !master.own.is(Flags::FAILOVER_IN_PROGRESS) {
            return;
        }
        match master.stage {
            Stage::WaitStart => self.await_start(env, now, master),
            Stage::SelectSlave => self.choose(now, master),
            Stage::SendSlaveofNoOne if master.own.is(Flags::COORDINATED_FAILOVER) => {
                self.hand_over(now, master);
            }
            Stage::SendSlaveofNoOne => self.promote(now, master),
            Stage::WaitPromotion if now - master.stage_since > master.settings.failover_timeout => {
                self.abort(now, master, "-failover-abort-slave-timeout");
            }
            Stage::ReconfSlaves => self.reconfigure_next(now, master),
            Stage::None | Stage::WaitPromotion | Stage::UpdateConfig => {}
        }
    }

    fn await_start(&mut self, env: &mut Env, now: i64, master: &mut Master) {
        let epoch = master.failover_epoch;
        let leads = self.elect(env, master, epoch).is_some_and(|leader| leader == self.my_id);
        if leads || master.own.is(Flags::FORCE_FAILOVER) {
            self.tell_of("+elected-leader", master, &Who::Master);
            if self.crash_after_election {
                self.out.crash();
            }
            master.go_to(Stage::SelectSlave, now);
            self.tell_of("+failover-state-select-slave", master, &Who::Master);
        } else if now - master.failover_start
            > self.settings.times.election.min(master.settings.failover_timeout)
        {
            self.abort(now, master, "-failover-abort-not-elected");
        }
    }

    fn choose(&mut self, now: i64, master: &mut Master) {
        let Some(address) = self.select(now, master) else {
            return self.abort(now, master, "-failover-abort-no-good-slave");
        };
        let chosen = Who::Replica(address.clone());
        self.tell_of("+selected-slave", master, &chosen);
        if let Some(replica) = master.instance_mut(&chosen) {
            replica.flags.insert(Flags::PROMOTED);
        }
        master.promoted = Some(address);
        master.go_to(Stage::SendSlaveofNoOne, now);
        self.tell_of("+failover-state-send-slaveof-noone", master, &chosen);
    }

    /// Selects the replica to promote among those in a good state: by priority, then by offset,
    /// then by id.
    fn select(&self, now: i64, master: &Master) -> Option<Address> {
        let times = &self.settings.times;
        let down = master.own.is(Flags::S_DOWN);
        let down_time = if down { now - master.own.s_down_since } else { 0 };
        let link_down_max = down_time + master.settings.down_after * 10;
        let info_age_max = if down { times.ping * 5 } else { times.info * 3 };
        let good = master.replicas.values().filter(|replica| {
            !replica.is(Flags::S_DOWN | Flags::O_DOWN)
                && replica.is_connected()
                && replica.link.as_ref().is_some_and(|link| now - link.last_avail <= times.ping * 5)
                && replica.replica.priority != 0
                && now - replica.info_refresh <= info_age_max
                && replica.replica.link_down_time <= link_down_max
        });
        let best = good.min_by_key(|replica| {
            let facts = &replica.replica;
            (facts.priority, Reverse(facts.offset), replica.run_id.is_empty(), &replica.run_id)
        });
        best.map(|replica| replica.address.clone())
    }

    fn promote(&mut self, now: i64, master: &mut Master) {
        let Some(address) = master.promoted.clone() else { return };
        let chosen = Who::Replica(address);
        if master.promoted().is_none_or(|replica| !replica.is_connected()) {
            if now - master.stage_since > master.settings.failover_timeout {
                self.abort(now, master, "-failover-abort-slave-timeout");
            }
            return;
        }
        if self.send_slaveof(master, &chosen, None) {
            self.tell_of("+failover-state-wait-promotion", master, &chosen);
            master.go_to(Stage::WaitPromotion, now);
        }
    }

    /// Asks the master to hand its role over to the chosen replica in the time that is left.
    fn hand_over(&mut self, now: i64, master: &mut Master) {
        let Some(address) = master.promoted.clone() else { return };
        let left = master.settings.failover_timeout - (now - master.stage_since);
        if left < HAND_OVER_MIN {
            return self.abort(now, master, "-failover-abort-master-timeout");
        }
        if master.own.is_connected() && self.send_failover(master, &address, left) {
            self.tell_of("+failover-state-wait-promotion", master, &Who::Replica(address));
            master.go_to(Stage::WaitPromotion, now);
        }
    }

    /// Handles the report of the chosen replica that it is a master.
    pub(super) fn promoted(&mut self, now: i64, master: &mut Master, who: &Who) {
        master.config_epoch = master.failover_epoch;
        master.go_to(Stage::ReconfSlaves, now);
        self.save();
        self.tell_of("+promoted-slave", master, who);
        if self.crash_after_promotion {
            self.out.crash();
        }
        self.tell_of("+failover-state-reconf-slaves", master, &Who::Master);
        if master.own.is(Flags::COORDINATED_FAILOVER) {
            self.send_unpause(master, who);
            self.send_unpause(master, &Who::Master);
        }
        self.hasten_hellos(master);
    }

    /// Makes the other replicas follow the new master, only a few at a time, because each may lack
    /// its data while it synchronizes.
    fn reconfigure_next(&mut self, now: i64, master: &mut Master) {
        let Some(to) = master.promoted.clone() else { return };
        let under_way = Flags::RECONF_SENT | Flags::RECONF_INPROG;
        let mut busy = master.replicas.values().filter(|replica| replica.is(under_way)).count();
        for address in master.replicas.keys().cloned().collect::<Vec<_>>() {
            if busy >= master.settings.parallel_syncs as usize {
                break;
            }
            let who = Who::Replica(address);
            let Some(replica) = master.instance_mut(&who) else { continue };
            if replica.is(Flags::PROMOTED | Flags::RECONF_DONE) {
                continue;
            }
            if replica.is(Flags::RECONF_SENT)
                && now - replica.replica.reconf_sent_time > self.settings.times.reconf
            {
                replica.flags.remove(Flags::RECONF_SENT);
                replica.flags.insert(Flags::RECONF_DONE);
                // It counts as done, and SLAVEOF is sent once more below.
                self.tell_of("-slave-reconf-sent-timeout", master, &who);
            }
            let Some(replica) = master.instance(&who) else { continue };
            if replica.is(under_way) || !replica.is_connected() {
                continue;
            }
            if self.send_slaveof(master, &who, Some(&to)) {
                self.note_sent(now, master, &who, "+slave-reconf-sent");
                busy += 1;
            }
        }
        self.end_if_done(now, master, &to);
    }

    fn note_sent(&mut self, now: i64, master: &mut Master, who: &Who, event: &'static str) {
        if let Some(replica) = master.instance_mut(who) {
            replica.flags.insert(Flags::RECONF_SENT);
            replica.replica.reconf_sent_time = now;
        }
        self.tell_of(event, master, who);
    }

    fn end_if_done(&mut self, now: i64, master: &mut Master, to: &Address) {
        if master.promoted().is_none_or(|replica| replica.is(Flags::S_DOWN)) {
            return;
        }
        let settled = Flags::PROMOTED | Flags::RECONF_DONE | Flags::S_DOWN;
        let done = master.replicas.values().all(|replica| replica.is(settled));
        let late = now - master.stage_since > master.settings.failover_timeout;
        if !done && !late {
            return;
        }
        if late {
            self.tell_of("+failover-end-for-timeout", master, &Who::Master);
        }
        self.tell_of("+failover-end", master, &Who::Master);
        master.go_to(Stage::UpdateConfig, now);
        if late {
            let left = Flags::PROMOTED | Flags::RECONF_DONE | Flags::RECONF_SENT;
            for address in master.replicas.keys().cloned().collect::<Vec<_>>() {
                let who = Who::Replica(address);
                let reachable =
                    master.instance(&who).is_some_and(|replica| !replica.is(left) && replica.is_connected());
                if reachable && self.send_slaveof(master, &who, Some(to)) {
                    self.note_sent(now, master, &who, "+slave-reconf-sent-be");
                }
            }
        }
    }

    fn abort(&mut self, now: i64, master: &mut Master, event: &'static str) {
        self.tell_of(event, master, &Who::Master);
        let over = Flags::FAILOVER_IN_PROGRESS | Flags::FORCE_FAILOVER | Flags::COORDINATED_FAILOVER;
        master.own.flags.remove(over);
        master.go_to(Stage::None, now);
        if let Some(promoted) = master.promoted.take()
            && let Some(replica) = master.replicas.get_mut(&promoted)
        {
            replica.flags.remove(Flags::PROMOTED);
        }
    }
}
