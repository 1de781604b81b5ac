//! Decides whether an instance is down: in this Sentinel's own view (SDOWN), and by agreement
//! (ODOWN).

use super::{
    Sentinel,
    instance::{Flags, Kind, Role, Who},
    link::Asked,
    master::{Master, Stage},
};
use crate::resp::Reply;

impl Sentinel {
    pub(super) fn check_s_down(&mut self, now: i64, master: &mut Master, who: &Who) {
        self.recycle(now, master, who);
        let (down_after, reboot) = (master.settings.down_after, master.settings.reboot_down_after);
        let info_period = self.settings.times.info;
        let Some(link) = self.link(master, who) else { return };
        let silent = match (link.act_ping, link.disconnected) {
            (0, false) => 0,
            (0, true) => now - link.last_avail,
            (since, _) => now - since,
        };
        let Some(instance) = master.instance_mut(who) else { return };
        let is_down = silent > down_after
            || (instance.kind == Kind::Master
                && instance.role_reported == Role::Slave
                && now - instance.role_reported_time > down_after + info_period * 2)
            || (instance.is(Flags::MASTER_REBOOT) && now - instance.reboot_since > reboot);
        if is_down == instance.is(Flags::S_DOWN) {
            return;
        }
        instance.flags.set(Flags::S_DOWN, is_down);
        instance.flags.remove(Flags::SCRIPT_KILL_SENT);
        if is_down {
            instance.s_down_since = now;
        }
        self.tell_of(if is_down { "+sdown" } else { "-sdown" }, master, who);
    }

    /// Updates the ODOWN of a master. The agreement is a weak one: the others' answers may be some
    /// seconds old.
    pub(super) fn check_o_down(&mut self, now: i64, master: &mut Master) {
        let quorum = master.settings.quorum;
        let agree = master.sentinels.values().filter(|peer| peer.is(Flags::MASTER_DOWN)).count() as u32 + 1;
        let is_down = master.own.is(Flags::S_DOWN) && agree >= quorum;
        if is_down == master.own.is(Flags::O_DOWN) {
            return;
        }
        master.own.flags.set(Flags::O_DOWN, is_down);
        if is_down {
            master.own.o_down_since = now;
            let message = format!("{} #quorum {agree}/{quorum}", master.named(&Who::Master));
            self.tell("+odown", message);
        } else {
            self.tell_of("-odown", master, &Who::Master);
        }
    }

    /// Asks the other Sentinels whether they see the master down, and for their votes while a
    /// failover is in progress.
    pub(super) fn ask_others(&mut self, now: i64, master: &mut Master, forced: bool) {
        let period = self.settings.times.ask;
        let address = master.own.address.clone();
        let candidate = if master.stage > Stage::None { self.my_id.clone() } else { "*".into() };
        for id in master.sentinels.keys().cloned().collect::<Vec<_>>() {
            let Some(peer) = master.sentinels.get_mut(&id) else { continue };
            let age = now - peer.peer.last_master_down_reply;
            if age > period * 5 {
                peer.flags.remove(Flags::MASTER_DOWN);
                peer.peer.leader = None;
            }
            let pending_max = self.pending_max(master, &Who::Sentinel(id.clone()));
            let Some(link) = self.peers.get(&id) else { continue };
            if !master.own.is(Flags::S_DOWN)
                || link.disconnected
                || (!forced && age < period)
                || link.asked.len() >= pending_max
            {
                continue;
            }
            let (port, epoch) = (address.port.to_string(), self.current_epoch.to_string());
            let words = ["SENTINEL", "is-master-down-by-addr", &address.ip, &port, &epoch, &candidate];
            self.ask(master, &Who::Sentinel(id), &words, Asked::IsMasterDown);
        }
    }

    /// Records another Sentinel's answer.
    pub(super) fn take_opinion(now: i64, master: &mut Master, id: &str, reply: &Reply) {
        let Reply::Array(items) = reply else { return };
        let [Reply::Integer(down), Reply::Bulk(leader), Reply::Integer(epoch)] = &items[..] else { return };
        let Some(peer) = master.sentinels.get_mut(id) else { return };
        peer.peer.last_master_down_reply = now;
        peer.flags.set(Flags::MASTER_DOWN, *down == 1);
        if leader[..] != *b"*" {
            peer.peer.leader = Some(String::from_utf8_lossy(leader).into_owned());
            peer.peer.leader_epoch = u64::try_from(*epoch).unwrap_or(0);
        }
    }
}
