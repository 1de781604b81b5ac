//! The subcommands of SENTINEL that show or change the state.

use super::{
    Address, Sentinel, file,
    instance::{Flags, Instance, Kind, Role, Who},
    link::Link,
    master::{Master, Stage},
};
use crate::{glob::matches, resp::Reply};

/// The error for a master that is not watched.
pub const NAME_UNKNOWN: &str = "ERR No such master with that name";

/// The instances of a master's group to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// The replicas that are announced.
    Replicas,
    /// The other Sentinels.
    Sentinels,
}

impl Sentinel {
    /// Returns the reply of SENTINEL MASTERS: a map for each monitored master.
    pub fn show_masters(&self, now: i64) -> Reply {
        self.masters.values().map(|master| self.map(master, &Who::Master, now)).collect::<Vec<_>>().into()
    }

    /// The map of a master; `None` if it is not watched.
    pub fn show_master(&self, name: &str, now: i64) -> Option<Reply> {
        Some(self.map(self.masters.get(name)?, &Who::Master, now))
    }

    /// The maps of the replicas or the other Sentinels of a master; `None` if it is not watched.
    pub fn show_others(&self, name: &str, wanted: Wanted, now: i64) -> Option<Reply> {
        let master = self.masters.get(name)?;
        let shown = master.everyone().into_iter().filter(|who| match (who, wanted) {
            (Who::Replica(_), Wanted::Replicas) => {
                master.instance(who).is_some_and(|replica| replica.replica.announced)
            }
            (Who::Sentinel(_), Wanted::Sentinels) => true,
            _ => false,
        });
        Some(shown.map(|who| self.map(master, &who, now)).collect::<Vec<_>>().into())
    }

    /// The master's address for clients; `None` if it is not watched.
    pub fn address_of(&self, name: &str) -> Option<&Address> {
        Some(self.masters.get(name)?.current_address())
    }

    /// Number of usable Sentinels of a master, this one included; true if these are fewer than the
    /// quorum; true if they are fewer than a majority. `None` if the master is not watched.
    pub fn quorum_of(&self, name: &str) -> Option<(usize, bool, bool)> {
        let master = self.masters.get(name)?;
        let (usable, voters) = (master.usable_sentinels(), master.sentinels.len() + 1);
        Some((usable, usable < master.settings.quorum as usize, usable < voters / 2 + 1))
    }

    /// Returns the lines of the section `sentinel` of INFO, without their line breaks.
    pub fn info_lines(&self, now: i64) -> Vec<String> {
        let tilt_secs = self.tilt_since.map_or(-1, |since| (now - since) / 1_000);
        let failures = u8::from(self.crash_after_election) | u8::from(self.crash_after_promotion) << 1;
        let mut lines = vec![
            format!("sentinel_masters:{}", self.masters.len()),
            format!("sentinel_tilt:{}", u8::from(self.tilt_since.is_some())),
            format!("sentinel_tilt_since_seconds:{tilt_secs}"),
            "sentinel_running_scripts:0".into(),
            "sentinel_scripts_queue_length:0".into(),
            format!("sentinel_simulate_failure_flags:{failures}"),
        ];
        for (at, (name, master)) in self.masters.iter().enumerate() {
            let status = match () {
                () if master.own.is(Flags::O_DOWN) => "odown",
                () if master.own.is(Flags::S_DOWN) => "sdown",
                () => "ok",
            };
            let (address, slaves) = (&master.own.address, master.replicas.len());
            let sentinels = master.sentinels.len() + 1;
            lines.push(format!(
                "master{at}:name={name},status={status},address={address},slaves={slaves},sentinels={sentinels}"
            ));
        }
        lines
    }

    /// The last INFO reply of each named master and of its replicas, with its age in milliseconds.
    pub fn info_cache(&self, names: &[&str], now: i64) -> Reply {
        let mut shown = Vec::new();
        for name in names {
            let Some(master) = self.masters.get(*name) else { continue };
            let instances = [&master.own].into_iter().chain(master.replicas.values());
            let entries = instances.map(|instance| {
                let age = if instance.info_refresh == 0 { 0 } else { now - instance.info_refresh };
                let info = instance.info.as_ref().map(Reply::bulk);
                Reply::Array(vec![Reply::Integer(age), info.unwrap_or(Reply::Null)])
            });
            shown.extend([Reply::bulk(name), Reply::Array(entries.collect())]);
        }
        shown.into()
    }

    /// SENTINEL MONITOR: begins to watch a master.
    ///
    /// # Errors
    /// If the host is invalid, or the name is watched already.
    pub fn watch(&mut self, name: &str, address: Address, quorum: u32, now: i64) -> Result<(), String> {
        self.monitor(name, address, quorum, now)?;
        self.save();
        self.tell_monitor(name);
        Ok(())
    }

    /// Stops watching a master; returns true if it was watched.
    pub fn unwatch(&mut self, name: &str) -> bool {
        let Some(mut master) = self.masters.remove(name) else { return false };
        self.tell_of("-monitor", &master, &Who::Master);
        for who in master.everyone() {
            match who {
                Who::Sentinel(id) => self.leave(name, &id),
                who => self.close_link(&mut master, &who),
            }
        }
        self.save();
        true
    }

    /// SENTINEL RESET: resets the masters whose names match a pattern, and returns their number.
    pub fn reset_matching(&mut self, pattern: &[u8], now: i64) -> usize {
        let names: Vec<String> =
            self.masters.keys().filter(|name| matches(pattern, name.as_bytes())).cloned().collect();
        for name in &names {
            let Some(mut master) = self.masters.remove(name) else { continue };
            self.reset(now, &mut master);
            self.masters.insert(name.clone(), master);
        }
        names.len()
    }

    /// SENTINEL SET: sets options of a master, in order, up to the first wrong one.
    ///
    /// # Errors
    /// Returns the error reply.
    pub fn set(&mut self, name: &str, mut words: &[&str]) -> Result<(), String> {
        let Some(mut master) = self.masters.remove(name) else { return Err(NAME_UNKNOWN.into()) };
        let mut outcome = Ok(());
        let mut changed = false;
        while let [option, rest @ ..] = words {
            let lower = option.to_ascii_lowercase();
            let (values, rest) = rest.split_at(rest.len().min(1 + usize::from(lower == "rename-command")));
            let unknown = || format!("ERR Unknown option or number of arguments for SENTINEL SET '{option}'");
            let known = [
                "down-after-milliseconds",
                "failover-timeout",
                "parallel-syncs",
                "quorum",
                "auth-pass",
                "auth-user",
                "master-reboot-down-after-period",
                "rename-command",
            ];
            if !known.contains(&&*lower) || values.len() != 1 + usize::from(lower == "rename-command") {
                outcome = Err(unknown());
                break;
            }
            if file::set(&mut master.settings, &lower, values).is_err() {
                let value = values.last().copied().unwrap_or_default();
                outcome = Err(format!("ERR Invalid argument '{value}' for SENTINEL SET '{option}'"));
                break;
            }
            changed = true;
            if lower.starts_with("auth-") {
                for who in master.everyone() {
                    if !matches!(who, Who::Sentinel(_)) {
                        self.close_link(&mut master, &who);
                    }
                }
            }
            let shown = if lower == "auth-pass" { "******".into() } else { values.join(" ") };
            self.tell("+set", format!("{} {lower} {shown}", master.named(&Who::Master)));
            words = rest;
        }
        if changed {
            self.save();
        }
        self.masters.insert(name.to_owned(), master);
        outcome
    }

    /// The options of SENTINEL CONFIG with their values.
    pub fn options(&self) -> [(&'static str, String); 6] {
        let yes = |set: bool| if set { "yes" } else { "no" }.to_owned();
        let settings = &self.settings;
        [
            ("resolve-hostnames", yes(settings.resolve_hostnames)),
            ("announce-hostnames", yes(settings.announce_hostnames)),
            ("announce-ip", settings.announce_ip.clone()),
            ("announce-port", settings.announce_port.to_string()),
            ("sentinel-user", settings.sentinel_user.clone()),
            ("sentinel-pass", settings.sentinel_pass.clone()),
        ]
    }

    /// Sets an option of SENTINEL CONFIG. Returns `None` for an unknown option, else true if the
    /// value is valid.
    pub fn set_option(&mut self, option: &str, value: &str) -> Option<bool> {
        let settings = &mut self.settings;
        let flag = match value {
            "yes" => Some(true),
            "no" => Some(false),
            _ => None,
        };
        match option {
            "resolve-hostnames" => settings.resolve_hostnames = flag.unwrap_or(settings.resolve_hostnames),
            "announce-hostnames" => settings.announce_hostnames = flag.unwrap_or(settings.announce_hostnames),
            "announce-ip" => value.clone_into(&mut settings.announce_ip),
            "announce-port" => match value.parse() {
                Ok(port) => settings.announce_port = port,
                Err(_) => return Some(false),
            },
            "sentinel-user" => value.clone_into(&mut settings.sentinel_user),
            "sentinel-pass" => value.clone_into(&mut settings.sentinel_pass),
            _ => return None,
        }
        if option.ends_with("-hostnames") && flag.is_none() {
            return Some(false);
        }
        if option.starts_with("sentinel-") {
            for id in self.peers.keys().cloned().collect::<Vec<_>>() {
                self.close_peer(&id);
            }
        }
        self.save();
        Some(true)
    }

    /// The times that SENTINEL DEBUG changes, with their names.
    pub fn times(&mut self) -> [(&'static str, &mut i64); 13] {
        self.settings.times.named()
    }

    /// SENTINEL FLUSHCONFIG: requests that the configuration file is written.
    pub fn flush(&mut self) {
        self.save();
    }

    /// SENTINEL SIMULATE-FAILURE: ends the process at a point of the next failover.
    pub fn crash_at(&mut self, after_election: bool, after_promotion: bool) {
        (self.crash_after_election, self.crash_after_promotion) = (after_election, after_promotion);
    }

    fn map(&self, master: &Master, who: &Who, now: i64) -> Reply {
        let mut fields = Vec::new();
        if let Some(instance) = master.instance(who) {
            fields = self.common(master, who, instance, now);
            match instance.kind {
                Kind::Master => fields.extend(of_master(master)),
                Kind::Replica => fields.extend(of_replica(instance)),
                Kind::Sentinel => fields.extend(of_sentinel(instance, now)),
            }
        }
        Reply::Map(fields.into_iter().map(|(name, value)| (Reply::bulk(name), Reply::bulk(value))).collect())
    }

    fn common(&self, master: &Master, who: &Who, instance: &Instance, now: i64) -> Vec<Field> {
        let name = match who {
            Who::Master => master.name.clone(),
            Who::Replica(address) => address.to_string(),
            Who::Sentinel(id) => id.clone(),
        };
        let Some(link) = self.link(master, who) else { return Vec::new() };
        let mut fields = vec![
            ("name", name),
            ("ip", instance.address.ip.clone()),
            ("port", instance.address.port.to_string()),
            ("runid", instance.run_id.clone()),
            ("flags", flags(instance, link)),
            ("link-pending-commands", link.asked.len().to_string()),
            ("link-refcount", self.users_of(master, who).to_string()),
        ];
        if instance.kind == Kind::Master && master.stage != Stage::None {
            fields.push(("failover-state", master.stage.name().into()));
        }
        let unanswered = if link.act_ping == 0 { 0 } else { now - link.act_ping };
        fields.extend([
            ("last-ping-sent", unanswered.to_string()),
            ("last-ok-ping-reply", (now - link.last_avail).to_string()),
            ("last-ping-reply", (now - link.last_pong).to_string()),
        ]);
        if instance.is(Flags::S_DOWN) {
            fields.push(("s-down-time", (now - instance.s_down_since).to_string()));
        }
        if instance.is(Flags::O_DOWN) {
            fields.push(("o-down-time", (now - instance.o_down_since).to_string()));
        }
        fields.push(("down-after-milliseconds", master.settings.down_after.to_string()));
        if instance.kind != Kind::Sentinel {
            let refresh = if instance.info_refresh == 0 { 0 } else { now - instance.info_refresh };
            fields.extend([
                ("info-refresh", refresh.to_string()),
                ("role-reported", instance.role_reported.name().into()),
                ("role-reported-time", (now - instance.role_reported_time).to_string()),
            ]);
        }
        fields
    }
}

/// The flags of an instance as words, separated by commas.
fn flags(instance: &Instance, link: &Link) -> String {
    let mut words = Vec::new();
    let mut add = |holds: bool, word| words.extend(holds.then_some(word));
    add(instance.is(Flags::S_DOWN), "s_down");
    add(instance.is(Flags::O_DOWN), "o_down");
    add(true, instance.kind.name());
    add(link.disconnected, "disconnected");
    add(instance.is(Flags::MASTER_DOWN), "master_down");
    add(instance.is(Flags::FAILOVER_IN_PROGRESS), "failover_in_progress");
    add(instance.is(Flags::PROMOTED), "promoted");
    add(instance.is(Flags::RECONF_SENT), "reconf_sent");
    add(instance.is(Flags::RECONF_INPROG), "reconf_inprog");
    add(instance.is(Flags::RECONF_DONE), "reconf_done");
    add(instance.is(Flags::FORCE_FAILOVER), "force_failover");
    add(instance.is(Flags::COORDINATED_FAILOVER), "coordinated_failover");
    add(instance.is(Flags::SCRIPT_KILL_SENT), "script_kill_sent");
    words.join(",")
}

type Field = (&'static str, String);

fn of_master(master: &Master) -> Vec<Field> {
    vec![
        ("config-epoch", master.config_epoch.to_string()),
        ("num-slaves", master.replicas.len().to_string()),
        ("num-other-sentinels", master.sentinels.len().to_string()),
        ("quorum", master.settings.quorum.to_string()),
        ("failover-timeout", master.settings.failover_timeout.to_string()),
        ("parallel-syncs", master.settings.parallel_syncs.to_string()),
    ]
}

fn of_replica(instance: &Instance) -> Vec<Field> {
    let facts = &instance.replica;
    let status = if facts.link_up && instance.role_reported == Role::Slave { "ok" } else { "err" };
    vec![
        ("master-link-down-time", facts.link_down_time.to_string()),
        ("master-link-status", status.into()),
        ("master-host", facts.master.as_ref().map_or("?".into(), |master| master.ip.clone())),
        ("master-port", facts.master.as_ref().map_or(0, |master| master.port).to_string()),
        ("slave-priority", facts.priority.to_string()),
        ("slave-repl-offset", facts.offset.to_string()),
        ("replica-announced", u8::from(facts.announced).to_string()),
    ]
}

fn of_sentinel(instance: &Instance, now: i64) -> Vec<Field> {
    let peer = &instance.peer;
    vec![
        ("last-hello-message", (now - peer.last_hello).to_string()),
        ("voted-leader", peer.leader.clone().unwrap_or_else(|| "?".into())),
        ("voted-leader-epoch", peer.leader_epoch.to_string()),
    ]
}
