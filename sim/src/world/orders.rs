//! What each verb does to the world.

use std::time::Duration;

use super::{
    clock::Face,
    control::Verb,
    fabric::Fabric,
    machine::lock,
    timeline::{World, WorldError},
    trace::Event,
};

impl World {
    pub(super) fn carry_out_orders(&mut self) -> Result<(), WorldError> {
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
            && !verb.works_on_real_hosts()
        {
            return Err(WorldError::Impossible { verb: verb.to_string() });
        }
        match &verb {
            Verb::Pause { host } => {
                let host = self.host(host, &verb)?;
                self.hosts[host].pauses += 1;
            }
            Verb::Resume { host } => {
                let host = self.host(host, &verb)?;
                self.hosts[host].pauses = self.hosts[host].pauses.saturating_sub(1);
                self.hosts[host].catch_up();
            }
            Verb::Suspend { host } => {
                let host = self.host(host, &verb)?;
                self.hosts[host].suspensions += 1;
                self.hosts[host].machine.change_clock(|clock, now| clock.suspend(now, true));
            }
            Verb::Wake { host } => {
                let host = self.host(host, &verb)?;
                self.hosts[host].suspensions = self.hosts[host].suspensions.saturating_sub(1);
                self.awaken(host);
            }
            Verb::Crash { host } => {
                let host = self.host(host, &verb)?;
                self.crash(host);
            }
            Verb::Kill { host } => {
                let host = self.host(host, &verb)?;
                if self.hosts[host].is_up() {
                    self.hosts[host].pauses = 0;
                    self.end(host, "kill");
                }
            }
            Verb::Stop { host } => {
                let host = self.host(host, &verb)?;
                if self.hosts[host].is_up() {
                    self.hosts[host].ask_to_stop();
                }
            }
            Verb::Restart { host } => {
                let host = self.host(host, &verb)?;
                if self.hosts[host].is_up() {
                    self.crash(host);
                }
                self.start(host);
                self.reopen_all_to(host);
            }
            Verb::Cut { from, to } => {
                let link = self.link(from, to, &verb)?;
                self.links[link].cuts += 1;
            }
            Verb::Heal { from, to } => {
                let link = self.link(from, to, &verb)?;
                self.links[link].cuts = self.links[link].cuts.saturating_sub(1);
                self.reopen(link);
            }
            Verb::Hold { from, to } => {
                let link = self.link(from, to, &verb)?;
                self.links[link].holds += 1;
            }
            Verb::Release { from, to } => {
                let link = self.link(from, to, &verb)?;
                self.links[link].holds = self.links[link].holds.saturating_sub(1);
                self.reopen(link);
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
            Verb::Latency { from, to, latency } => {
                let link = self.link(from, to, &verb)?;
                self.links[link].latency = *latency;
            }
            Verb::Delay { from, to, by } => {
                let link = self.link(from, to, &verb)?;
                self.links[link].delay = *by;
            }
            Verb::Loss { from, to, per_million } => {
                let link = self.link(from, to, &verb)?;
                self.links[link].loss_per_million = *per_million;
            }
            Verb::ClockStep { host, by_nanos } => {
                let host = self.host(host, &verb)?;
                self.hosts[host].machine.change_clock(|clock, now| clock.step(now, *by_nanos));
            }
            Verb::ClockSlew { host, by_nanos, over } => {
                let host = self.host(host, &verb)?;
                self.hosts[host].machine.change_clock(|clock, now| clock.slew(now, *by_nanos, *over));
            }
            Verb::ClockRate { host, face, rate } => {
                let host = self.host(host, &verb)?;
                self.hosts[host].machine.change_clock(|clock, now| clock.set_rate(now, faces(face), *rate));
            }
            Verb::ClockFreeze { host, face } | Verb::ClockUnfreeze { host, face } => {
                let host = self.host(host, &verb)?;
                let frozen = matches!(verb, Verb::ClockFreeze { .. });
                self.hosts[host].machine.change_clock(|clock, now| clock.freeze(now, faces(face), frozen));
            }
            Verb::AddRule(rule) => lock(&self.shared.rules).add(rule.clone()),
            Verb::RemoveRule { name } => lock(&self.shared.rules).remove(name),
            Verb::Calm => self.calm(),
            Verb::Finish => self.finished = true,
        }
        Ok(())
    }

    fn calm(&mut self) {
        lock(&self.shared.rules).clear();
        for link in &mut self.links {
            (link.cuts, link.holds, link.loss_per_million, link.delay) = (0, 0, 0, Duration::ZERO);
        }
        for host in 0..self.hosts.len() {
            (self.hosts[host].pauses, self.hosts[host].suspensions) = (0, 0);
            self.awaken(host);
        }
        (0..self.links.len()).for_each(|link| self.reopen(link));
    }

    /// Ends what a suspension did, if no other suspends the host.
    fn awaken(&mut self, host: usize) {
        if self.hosts[host].suspensions == 0 {
            self.hosts[host].machine.change_clock(|clock, now| clock.suspend(now, false));
            self.hosts[host].catch_up();
            self.reopen_all_to(host);
        }
    }

    /// Turns the power of a host off. Its connections are aborted first and without a word to their peers, so that its
    /// kernel forgets them instead of closing them politely; what its destructors still send goes nowhere.
    fn crash(&mut self, host: usize) {
        self.collect();
        self.hosts[host].crashed = true;
        (self.hosts[host].pauses, self.hosts[host].suspensions) = (0, 0);
        self.hosts[host].machine.change_clock(|clock, now| clock.suspend(now, false));
        self.abort_connections(host, |_| true);
        self.forget_waiting_from(host);
        if self.hosts[host].is_up() {
            self.end(host, "crash");
        }
        self.collect();
    }
}

fn faces(face: &Option<Face>) -> &[Face] {
    face.as_ref().map_or(&Face::ALL, std::slice::from_ref)
}
