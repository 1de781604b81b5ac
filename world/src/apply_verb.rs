//! Executes each verb.

use std::time::Duration;

use crate::{
    cause::Cause,
    clock::ClockId,
    condition::Condition,
    control::Verb,
    fabric::Fabric,
    link::Link,
    lock::lock,
    timeline::{World, WorldError},
    trace::Event,
};

impl World {
    pub(crate) fn apply_due_verbs(&mut self) -> Result<(), WorldError> {
        while let Some(verb) = self.shared.control.take_due(self.now()) {
            self.step()?;
            let text = verb.to_string();
            lock(&self.shared.trace).push(self.now(), None, Event::Fault { verb: text });
            self.carry_out(verb)?;
            self.call_hooks();
        }
        Ok(())
    }

    fn host(&self, name: &str, verb: &Verb) -> Result<usize, WorldError> {
        self.hosts.iter().position(|host| *host.machine.name == *name).ok_or_else(|| {
            WorldError::UnknownHost {
                host: name.to_owned(),
                verb: verb.to_string(),
                known: self.hosts.iter().map(|host| &*host.machine.name).collect::<Vec<_>>().join(", "),
            }
        })
    }

    fn link(&self, from: &str, to: &str, verb: &Verb) -> Result<usize, WorldError> {
        Ok(self.host(from, verb)? * self.hosts.len() + self.host(to, verb)?)
    }

    fn carry_out(&mut self, verb: Verb) -> Result<(), WorldError> {
        if let Fabric::Real = self.fabric
            && verb.bends_clock_of().is_some_and(|host| self.is_process(host))
        {
            return Err(WorldError::Impossible { verb: verb.to_string() });
        }
        match &verb {
            Verb::Begin { cause, condition } => self.begin(&verb, cause, condition)?,
            Verb::End { cause, condition } => self.end_of(&verb, cause, condition)?,
            Verb::Kill { host } => {
                let host = self.host(host, &verb)?;
                if self.hosts[host].is_up() {
                    self.end(host, "kill");
                }
            }
            Verb::Stop { host } => {
                let host = self.host(host, &verb)?;
                if self.hosts[host].is_up() {
                    self.hosts[host].ask_to_stop();
                    self.stopping = true;
                }
            }
            Verb::Restart { host } => {
                let host = self.host(host, &verb)?;
                if self.hosts[host].is_up() {
                    self.crash(host);
                }
                self.hosts[host].crashes.clear();
                self.come_up(host);
            }
            Verb::Reset { one, other } => {
                let (there, back) = (self.link(one, other, &verb)?, self.link(other, one, &verb)?);
                let (one, other) = (self.host(one, &verb)?, self.host(other, &verb)?);
                self.collect();
                self.links[there].clear();
                self.links[back].clear();
                let (one_address, other_address) = (self.hosts[one].address, self.hosts[other].address);
                self.abort_connections(one, |peer| peer == other_address);
                self.abort_connections(other, |peer| peer == one_address);
            }
            Verb::Point { address, host } => {
                host.iter().try_for_each(|host| self.host(host, &verb).map(drop))?;
                let mut addresses = lock(&self.shared.addresses);
                match host {
                    Some(host) => drop(addresses.insert(address.clone(), host.clone())),
                    None => drop(addresses.remove(address)),
                }
            }
            Verb::Latency { from, to, latency } => {
                let link = self.link(from, to, &verb)?;
                self.links[link].latency = *latency;
            }
            Verb::ClockStep { host, by_nanos } => {
                let host = self.host(host, &verb)?;
                self.hosts[host].machine.change_clock(|clock, now| clock.step(now, *by_nanos));
            }
            Verb::ClockSlew { host, by_nanos, over } => {
                let host = self.host(host, &verb)?;
                self.hosts[host].machine.change_clock(|clock, now| clock.slew(now, *by_nanos, *over));
            }
            Verb::ClockRate { host, clock_id, rate } => {
                let host = self.host(host, &verb)?;
                clock_ids(clock_id)
                    .iter()
                    .for_each(|clock_id| self.hosts[host].clocks.own[*clock_id as usize] = *rate);
                self.set_clocks(host);
            }
            Verb::Calm => self.calm(),
            Verb::Finish => self.finished = true,
        }
        Ok(())
    }

    /// Returns true if this host stands for a real server process.
    fn is_process(&self, host: &str) -> bool {
        let real = lock(&self.shared.real);
        real.listeners.iter().any(|((of, _), listener)| of == host && listener.is_server)
    }

    fn begin(&mut self, verb: &Verb, cause: &Cause, condition: &Condition) -> Result<(), WorldError> {
        let cause = cause.clone();
        match condition {
            Condition::Down { host } => {
                let host = self.host(host, verb)?;
                self.hosts[host].crashes.insert(cause);
                if !self.hosts[host].crashed {
                    self.crash(host);
                }
            }
            Condition::Paused { host } => {
                let host = self.host(host, verb)?;
                self.hosts[host].pauses.insert(cause);
                self.note_state(host);
            }
            Condition::Blocked { host } => {
                let host = self.host(host, verb)?;
                self.hosts[host].blocks.insert(cause);
                self.note_state(host);
            }
            Condition::Suspended { host } => {
                let host = self.host(host, verb)?;
                self.hosts[host].suspensions.insert(cause);
                self.hosts[host].machine.change_clock(|clock, now| clock.suspend(now, true));
                self.note_state(host);
            }
            Condition::Cut { from, to } => {
                let link = self.link(from, to, verb)?;
                self.links[link].cut(cause);
            }
            Condition::Slow { from, to, by } => {
                let link = self.link(from, to, verb)?;
                self.links[link].slow(cause, *by);
            }
            Condition::Lossy { from, to, per_million } => {
                let link = self.link(from, to, verb)?;
                self.links[link].lose(cause, *per_million);
            }
            Condition::ClockRate { host, clock_id, rate } => {
                let host = self.host(host, verb)?;
                self.hosts[host].clocks.rates.insert((cause, *clock_id), *rate);
                self.set_clocks(host);
            }
            Condition::ClockFrozen { host, clock_id } => {
                let host = self.host(host, verb)?;
                self.hosts[host].clocks.freezes.insert((cause, *clock_id));
                self.set_clocks(host);
            }
            Condition::Rule(rule) => lock(&self.shared.rules).add(cause, rule.clone()),
        }
        Ok(())
    }

    /// Ends a condition for this cause.
    fn end_of(&mut self, verb: &Verb, cause: &Cause, condition: &Condition) -> Result<(), WorldError> {
        match condition {
            Condition::Down { host } => {
                let host = self.host(host, verb)?;
                let crashes = &mut self.hosts[host].crashes;
                // A host that was restarted explicitly is already up.
                if crashes.remove(cause) && crashes.is_empty() {
                    self.come_up(host);
                }
            }
            Condition::Paused { host } => {
                let host = self.host(host, verb)?;
                self.hosts[host].pauses.remove(cause);
                self.resume(host);
            }
            Condition::Blocked { host } => {
                let host = self.host(host, verb)?;
                self.hosts[host].blocks.remove(cause);
                self.resume(host);
            }
            Condition::Suspended { host } => {
                let host = self.host(host, verb)?;
                if self.hosts[host].suspensions.remove(cause) {
                    self.awaken(host);
                }
            }
            Condition::Cut { from, to } => {
                let link = self.link(from, to, verb)?;
                self.links[link].heal(cause);
                self.reopen(link);
            }
            Condition::Slow { from, to, .. } => {
                let link = self.link(from, to, verb)?;
                self.links[link].slow(cause.clone(), Duration::ZERO);
            }
            Condition::Lossy { from, to, .. } => {
                let link = self.link(from, to, verb)?;
                self.links[link].lose(cause.clone(), 0);
            }
            Condition::ClockRate { host, clock_id, .. } => {
                let host = self.host(host, verb)?;
                self.hosts[host].clocks.rates.remove(&(cause.clone(), *clock_id));
                self.set_clocks(host);
            }
            Condition::ClockFrozen { host, clock_id } => {
                let host = self.host(host, verb)?;
                self.hosts[host].clocks.freezes.remove(&(cause.clone(), *clock_id));
                self.set_clocks(host);
            }
            Condition::Rule(rule) => lock(&self.shared.rules).remove(cause, rule),
        }
        Ok(())
    }

    fn calm(&mut self) {
        lock(&self.shared.rules).clear();
        self.links.iter_mut().for_each(Link::calm);
        for host in 0..self.hosts.len() {
            self.hosts[host].pauses.clear();
            self.hosts[host].blocks.clear();
            self.hosts[host].suspensions.clear();
            self.awaken(host);
        }
        (0..self.links.len()).for_each(|link| self.reopen(link));
    }

    /// Applies all conditions to the host's clocks.
    fn set_clocks(&mut self, host: usize) {
        let host = &self.hosts[host];
        let clock_ids = ClockId::ALL.map(|clock_id| (clock_id, host.clocks.of(clock_id)));
        host.machine.change_clock(|clock, now| {
            for (clock_id, (rate, frozen)) in clock_ids {
                clock.set_rate(now, &[clock_id], rate);
                clock.freeze(now, &[clock_id], frozen);
            }
        });
    }

    /// Lets a host run again after a condition that stopped it has ended.
    fn resume(&mut self, host: usize) {
        self.hosts[host].catch_up();
        self.note_state(host);
    }

    /// Resumes a suspended host, unless another cause suspends it.
    fn awaken(&mut self, host: usize) {
        if self.hosts[host].suspensions.is_empty() {
            self.hosts[host].machine.change_clock(|clock, now| clock.suspend(now, false));
            self.resume(host);
            self.reopen_all_to(host);
        }
    }

    /// Powers a host off. Its connections are aborted first, without notice to their peers, so that
    /// its kernel drops them instead of closing them. Packets that its destructors still send are
    /// lost.
    fn crash(&mut self, host: usize) {
        self.collect();
        self.hosts[host].crashed = true;
        self.abort_connections(host, |_| true);
        self.forget_waiting_from(host);
        if self.hosts[host].is_up() {
            self.end(host, "crash");
        }
        self.collect();
    }

    /// Starts the software of a host that is down; conditions such as a pause still hold.
    fn come_up(&mut self, host: usize) {
        self.start(host);
        self.reopen_all_to(host);
    }
}

fn clock_ids(clock_id: &Option<ClockId>) -> &[ClockId] {
    clock_id.as_ref().map_or(&ClockId::ALL, std::slice::from_ref)
}
