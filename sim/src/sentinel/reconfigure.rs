//! Makes instances follow a master, and moves a master's record to another address.

use std::collections::BTreeMap;

use super::{
    Address, Sentinel,
    instance::{Flags, Instance, Kind, Role, Who},
    link::{Asked, Link},
    master::{Master, Stage},
};

/// The commands that save an instance's new role and disconnect its clients.
const REWRITE_AND_KILL: [&[&str]; 3] =
    [&["CONFIG", "REWRITE"], &["CLIENT", "KILL", "TYPE", "normal"], &["CLIENT", "KILL", "TYPE", "pubsub"]];

impl Sentinel {
    /// Makes an instance follow `to`, or be a master if `to` is `None`. Disconnects its clients, so
    /// that they notice the change. Returns true if everything could be sent.
    pub(super) fn send_slaveof(&mut self, master: &mut Master, who: &Who, to: Option<&Address>) -> bool {
        let (host, port) = to.map_or(("NO".into(), "ONE".into()), |to| (to.ip.clone(), to.port.to_string()));
        let [rewrite, kill, kill_subscribers] = REWRITE_AND_KILL;
        self.send_transaction(master, who, &[&["SLAVEOF", &host, &port], rewrite, kill, kill_subscribers])
    }

    /// Makes the master hold back writes for `ms` milliseconds and hand its role over to `to`
    /// within that time. Returns true if everything could be sent.
    pub(super) fn send_failover(&mut self, master: &mut Master, to: &Address, ms: i64) -> bool {
        let (port, ms) = (to.port.to_string(), ms.to_string());
        let pause: &[&str] = &["CLIENT", "PAUSE", &ms, "WRITE"];
        let failover: &[&str] = &["FAILOVER", "TO", &to.ip, &port, "TIMEOUT", &ms];
        self.send_transaction(master, &Who::Master, &[pause, failover])
    }

    /// Ends the pause of an instance that has exchanged its role. Disconnects its clients, also
    /// those whose writes it holds back.
    pub(super) fn send_unpause(&mut self, master: &mut Master, who: &Who) -> bool {
        let [rewrite, kill, kill_subscribers] = REWRITE_AND_KILL;
        self.send_transaction(master, who, &[rewrite, kill, kill_subscribers, &["CLIENT", "UNPAUSE"]])
    }

    /// Sends commands between MULTI and EXEC; returns true if all could be sent.
    fn send_transaction(&mut self, master: &mut Master, who: &Who, commands: &[&[&str]]) -> bool {
        let (multi, exec): (&[&str], &[&str]) = (&["MULTI"], &["EXEC"]);
        let mut all = [multi].into_iter().chain(commands.iter().copied()).chain([exec]);
        all.all(|words| self.ask(master, who, words, Asked::Nothing))
    }

    pub(super) fn tell_switch(&mut self, master: &Master, to: &Address) {
        let Address { ip, port } = &master.own.address;
        self.tell("+switch-master", format!("{} {ip} {port} {} {}", master.name, to.ip, to.port));
    }

    /// Ends the failover that this Sentinel led.
    pub(super) fn switch_to_promoted(&mut self, now: i64, master: &mut Master) {
        let to = master.promoted.clone().unwrap_or_else(|| master.own.address.clone());
        self.tell_switch(master, &to);
        self.switch(now, master, to);
    }

    /// Moves a master's record to another address; the old address becomes that of a replica.
    pub(super) fn switch(&mut self, now: i64, master: &mut Master, to: Address) {
        let old = master.own.address.clone();
        let addresses = master.replicas.keys().cloned().chain([old]);
        let mut addresses: Vec<Address> = addresses.filter(|address| *address != to).collect();
        addresses.sort();
        addresses.dedup();
        self.reset_record(now, master);
        master.own.address = to;
        (master.own.s_down_since, master.own.o_down_since) = (0, 0);
        for address in addresses {
            master.replicas.insert(address.clone(), Instance::new(Kind::Replica, address.clone(), now));
            self.tell_of("+slave", master, &Who::Replica(address));
        }
        self.save();
    }

    /// Resets the record of a master, except its address, its epochs and the other Sentinels.
    fn reset_record(&mut self, now: i64, master: &mut Master) {
        let replicas: BTreeMap<Address, Instance> = std::mem::take(&mut master.replicas);
        for replica in replicas.values() {
            replica.conns().for_each(|conn| self.hang_up(conn));
        }
        self.close_link(master, &Who::Master);
        master.leader = None;
        (master.stage, master.stage_since, master.failover_start) = (Stage::None, 0, 0);
        master.promoted = None;
        let own = &mut master.own;
        own.flags = Flags::empty();
        own.run_id.clear();
        own.replica.master = None;
        // Keep the time of the last dial: the next master has to wait a PING period, as a dead one
        // does.
        let dialed = own.link.as_ref().map_or(0, |link| link.dialed);
        own.link = Some(Link { dialed, ..Link::new(now) });
        (own.role_reported, own.role_reported_time) = (Role::Master, now);
    }

    /// SENTINEL RESET: resets the record, and forgets the other Sentinels as well.
    pub(super) fn reset(&mut self, now: i64, master: &mut Master) {
        self.reset_record(now, master);
        for id in std::mem::take(&mut master.sentinels).into_keys() {
            self.leave(&master.name, &id);
        }
        self.tell_of("+reset-master", master, &Who::Master);
    }
}
