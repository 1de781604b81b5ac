//! Hello messages: they introduce Sentinels to each other, and spread new configurations.

use super::{
    Address, HELLO, Sentinel,
    instance::Who,
    link::{Asked, Link},
    master::{Master, OTHERS_MAX},
};

/// The fields of a hello message.
struct Hello<'a> {
    from: Address,
    id: &'a str,
    current_epoch: u64,
    master: &'a str,
    address: Address,
    config_epoch: u64,
}

impl<'a> Hello<'a> {
    fn parse(text: &'a str) -> Option<Hello<'a>> {
        let fields: Vec<&str> = text.split(',').collect();
        let &[ip, port, id, epoch, master, master_ip, master_port, config_epoch] = &fields[..] else {
            return None;
        };
        Some(Hello {
            from: Address::new(ip, port.parse().ok()?),
            id,
            current_epoch: epoch.parse().ok()?,
            master,
            address: Address::new(master_ip, master_port.parse().ok()?),
            config_epoch: config_epoch.parse().ok()?,
        })
    }
}

impl Sentinel {
    /// Publishes a hello on an instance.
    pub(super) fn send_hello(&mut self, master: &mut Master, who: &Who) {
        let local = self.link(master, who).and_then(Link::local_ip);
        let announced = Some(&*self.settings.announce_ip).filter(|ip| !ip.is_empty());
        let Some(ip) = announced.or(local) else { return };
        let port = if self.settings.announce_port == 0 { self.port } else { self.settings.announce_port };
        let Address { ip: master_ip, port: master_port } = master.current_address();
        let (id, epoch, name, config_epoch) =
            (&self.my_id, self.current_epoch, &master.name, master.config_epoch);
        let hello = format!("{ip},{port},{id},{epoch},{name},{master_ip},{master_port},{config_epoch}");
        self.ask(master, who, &["PUBLISH", HELLO, &hello], Asked::Hello);
    }

    /// Makes a hello due for every instance of a group.
    pub(super) fn hasten_hellos(&self, master: &mut Master) {
        let period = self.settings.times.publish;
        for who in master.everyone() {
            if let Some(instance) = master.instance_mut(&who) {
                instance.last_hello_sent = instance.last_hello_sent.saturating_sub(period + 1);
            }
        }
    }

    /// Handles a hello from a subscription, where this Sentinel's own hellos arrive as well.
    pub(super) fn hear_hello(&mut self, now: i64, text: &str) {
        if Hello::parse(text).is_some_and(|hello| hello.id != self.my_id) {
            self.take_hello(now, text);
        }
    }

    /// Handles a hello that came by PUBLISH. If another Sentinel announces this one's address, this
    /// one sends hellos to itself, and records itself as a peer.
    pub fn take_hello(&mut self, now: i64, text: &str) {
        let Some(hello) = Hello::parse(text) else { return };
        if hello.id.len() != 40 || hello.from.port == 0 || hello.address.port == 0 {
            return;
        }
        if !self.masters.contains_key(hello.master) {
            return;
        }
        self.meet(now, &hello);
        let Some(mut master) = self.masters.remove(hello.master) else { return };
        if hello.current_epoch > self.current_epoch {
            self.current_epoch = hello.current_epoch;
            self.save();
            self.tell("+new-epoch", hello.current_epoch.to_string());
        }
        let from = Who::Sentinel(hello.id.to_owned());
        if hello.config_epoch > master.config_epoch {
            master.config_epoch = hello.config_epoch;
            if hello.address != master.own.address {
                self.tell_of("+config-update-from", &master, &from);
                self.tell_switch(&master, &hello.address);
                self.switch(now, &mut master, hello.address.clone());
            }
        }
        if let Some(peer) = master.sentinels.get_mut(hello.id) {
            peer.peer.last_hello = now;
        }
        self.masters.insert(master.name.clone(), master);
    }

    /// Records the sender of a hello, if its id or address is new.
    fn meet(&mut self, now: i64, hello: &Hello<'_>) {
        let Some(master) = self.masters.get(hello.master) else { return };
        if master.sentinels.get(hello.id).is_some_and(|peer| peer.address == hello.from) {
            return;
        }
        if master.sentinels.len() >= OTHERS_MAX {
            return;
        }
        let moved = master.sentinels.contains_key(hello.id);
        let usurped = master.sentinels.iter().find(|(_, peer)| peer.address == hello.from);
        let usurped = usurped.map(|(id, _)| id.clone());
        if moved {
            let (master, Address { ip, port }) = (master.named(&Who::Master), &hello.from);
            self.tell("+sentinel-address-switch", format!("{master} ip {ip} port {port} for {}", hello.id));
            self.forget_sentinel(hello.master, hello.id);
        } else if let Some(id) = usurped {
            let message = master.named(&Who::Sentinel(id.clone()));
            self.tell("+sentinel-invalid-addr", message);
            for name in self.masters.keys().cloned().collect::<Vec<_>>() {
                self.forget_sentinel(&name, &id);
            }
        }
        let Some(master) = self.masters.get_mut(hello.master) else { return };
        Sentinel::join(&mut self.peers, master, hello.id, hello.from.clone(), now);
        let message = master.named(&Who::Sentinel(hello.id.to_owned()));
        if !moved {
            self.tell("+sentinel", message);
        } else {
            // If another master shares the link, it leads to the old address.
            self.close_peer(hello.id);
            let others = self.masters.values_mut().filter(|master| master.name != hello.master);
            let mut count = 0;
            // Other masters keep their records, with the new address: their times still decide what
            // is due.
            for peer in others.filter_map(|master| master.sentinels.get_mut(hello.id)) {
                peer.address = hello.from.clone();
                count += 1;
            }
            if count > 0 {
                self.tell(
                    "+sentinel-address-update",
                    format!("{message} {count} additional matching instances"),
                );
            }
        }
        self.save();
    }

    fn forget_sentinel(&mut self, master: &str, id: &str) {
        if self.masters.get_mut(master).is_some_and(|master| master.sentinels.remove(id).is_some()) {
            self.leave(master, id);
        }
    }
}
