//! Handles the INFO replies of masters and replicas.

use super::{
    Address, Sentinel,
    instance::{Flags, Instance, Kind, Role, Who},
    master::{Master, OTHERS_MAX, Stage},
};

/// The fields of INFO that a Sentinel uses.
#[derive(Debug, Default)]
struct Facts {
    run_id: Option<String>,
    role: Option<Role>,
    replicas: Vec<Address>,
    master_host: Option<String>,
    master_port: Option<u16>,
    link_up: Option<bool>,
    link_down_secs: Option<i64>,
    priority: Option<i64>,
    offset: Option<u64>,
    announced: Option<bool>,
    hands_over: bool,
}

impl Facts {
    fn of(text: &str) -> Facts {
        let mut facts = Facts::default();
        for line in text.lines() {
            let Some((key, value)) = line.trim_end().split_once(':') else { continue };
            match key {
                "run_id" if value.len() == 40 => facts.run_id = Some(value.into()),
                "role" => {
                    facts.role = match value {
                        "master" => Some(Role::Master),
                        "slave" => Some(Role::Slave),
                        _ => None,
                    };
                }
                "master_host" => facts.master_host = Some(value.into()),
                "master_port" => facts.master_port = value.parse().ok(),
                "master_link_status" => facts.link_up = Some(value == "up"),
                "master_link_down_since_seconds" => facts.link_down_secs = value.parse().ok(),
                "slave_priority" => facts.priority = value.parse().ok(),
                "slave_repl_offset" => facts.offset = value.parse().ok(),
                "master_failover_state" => facts.hands_over = true,
                "replica_announced" => facts.announced = Some(value != "0"),
                _ if key
                    .strip_prefix("slave")
                    .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) =>
                {
                    let field = |name: &str| {
                        value.split(',').find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
                    };
                    let port = field("port").and_then(|port| port.parse().ok()).filter(|port| *port != 0);
                    if let Some((ip, port)) = field("ip").zip(port) {
                        facts.replicas.push(Address::new(ip, port));
                    }
                }
                _ => {}
            }
        }
        facts
    }
}

impl Sentinel {
    /// Updates the records from an INFO reply of a master or replica.
    pub(super) fn take_info(&mut self, now: i64, master: &mut Master, who: &Who, text: String) {
        let facts = Facts::of(&text);
        let reboot_counts = master.settings.reboot_down_after > 0;
        let Some(instance) = master.instance_mut(who) else { return };
        instance.info = Some(text);
        if let Some(run_id) = &facts.run_id {
            let restarted = !instance.run_id.is_empty() && instance.run_id != *run_id;
            instance.run_id.clone_from(run_id);
            if restarted {
                if reboot_counts && instance.kind == Kind::Master {
                    instance.flags.insert(Flags::MASTER_REBOOT);
                    instance.reboot_since = now;
                }
                self.tell_of("+reboot", master, who);
            }
        }
        if *who == Who::Master {
            master.hands_over |= facts.hands_over;
            self.discover(now, master, &facts.replicas);
        }
        let Some(instance) = master.instance_mut(who) else { return };
        let role = facts.role.unwrap_or(instance.role_reported);
        note_replica(instance, &facts, role, now);
        instance.info_refresh = now;
        if role != instance.role_reported {
            instance.role_reported = role;
            instance.role_reported_time = now;
            if role == Role::Slave {
                instance.replica.conf_change_time = now;
            }
            let fits = (instance.kind == Kind::Master) == (role == Role::Master);
            let message = format!("{} new reported role is {}", master.named(who), role.name());
            self.tell(if fits { "+role-change" } else { "-role-change" }, message);
        }
        if self.tilt_since.is_none() && matches!(who, Who::Replica(_)) {
            match role {
                Role::Master => self.replica_is_master(now, master, who),
                Role::Slave => self.replica_follows(now, master, who),
            }
        }
    }

    /// Records the new replicas that a master reports.
    fn discover(&mut self, now: i64, master: &mut Master, replicas: &[Address]) {
        for address in replicas {
            if !master.replicas.contains_key(address) && master.replicas.len() < OTHERS_MAX {
                let replica = Instance::new(Kind::Replica, address.clone(), now);
                master.replicas.insert(address.clone(), replica);
                self.tell_of("+slave", master, &Who::Replica(address.clone()));
                self.save();
            }
        }
    }

    /// Handles a replica that reports itself a master: it was promoted, or must be corrected.
    fn replica_is_master(&mut self, now: i64, master: &mut Master, who: &Who) {
        let times = self.settings.times;
        let sane = master.looks_sane(now, &times);
        let awaited = master.own.is(Flags::FAILOVER_IN_PROGRESS) && master.stage == Stage::WaitPromotion;
        let Some(replica) = master.instance(who) else { return };
        if replica.is(Flags::PROMOTED) && awaited {
            return self.promoted(now, master, who);
        }
        // A hello with the new configuration may be on its way: wait for it.
        let patience = times.publish * 4;
        if !replica.is(Flags::PROMOTED)
            && sane
            && replica.had_no_down_for(now, patience)
            && now - replica.role_reported_time > patience
        {
            let to = master.own.address.clone();
            if self.send_slaveof(master, who, Some(&to)) {
                self.tell_of("+convert-to-slave", master, who);
            }
        }
    }

    /// Handles a replica's report of its master: corrects a wrong master, or advances the replica's
    /// reconfiguration in a failover.
    fn replica_follows(&mut self, now: i64, master: &mut Master, who: &Who) {
        let timeout = master.settings.failover_timeout;
        let sane = master.looks_sane(now, &self.settings.times);
        let (to, promoted) = (master.own.address.clone(), master.promoted.clone());
        let Some(replica) = master.instance(who) else { return };
        if replica.replica.master.as_ref() != Some(&to)
            && sane
            && replica.had_no_down_for(now, timeout)
            && now - replica.replica.conf_change_time > timeout
            && self.send_slaveof(master, who, Some(&to))
        {
            self.tell_of("+fix-slave-config", master, who);
        }
        let Some(replica) = master.instance_mut(who) else { return };
        if replica.is(Flags::RECONF_SENT) && promoted.is_some() && replica.replica.master == promoted {
            replica.flags.remove(Flags::RECONF_SENT);
            replica.flags.insert(Flags::RECONF_INPROG);
            self.tell_of("+slave-reconf-inprog", master, who);
        }
        let Some(replica) = master.instance_mut(who) else { return };
        if replica.is(Flags::RECONF_INPROG) && replica.replica.link_up {
            replica.flags.remove(Flags::RECONF_INPROG);
            replica.flags.insert(Flags::RECONF_DONE);
            self.tell_of("+slave-reconf-done", master, who);
        }
    }
}

/// Copies the replication fields of INFO into a record.
fn note_replica(instance: &mut Instance, facts: &Facts, role: Role, now: i64) {
    let replica = &mut instance.replica;
    replica.link_down_time = facts.link_down_secs.map_or(0, |secs| secs.saturating_mul(1_000));
    if role == Role::Slave {
        let follows = facts.master_host.clone().zip(facts.master_port);
        let follows = follows.map(|(host, port)| Address::new(host, port));
        if follows.is_some() && follows != replica.master {
            replica.master = follows;
            replica.conf_change_time = now;
        }
        replica.link_up = facts.link_up.unwrap_or(replica.link_up);
        replica.priority = facts.priority.unwrap_or(replica.priority);
        replica.offset = facts.offset.unwrap_or(replica.offset);
        replica.announced = facts.announced.unwrap_or(replica.announced);
    }
}
