//! Dials instances, sends commands, and handles replies.

use bytes::Bytes;

use super::{
    HELLO, Sentinel,
    instance::{Flags, Kind, Route, Who},
    link::{Asked, Channel, Line, Request, lose},
    master::{Master, Stage},
};
use crate::{
    event::{Action, ConnId},
    replication::encode,
    resp::Reply,
};

impl Sentinel {
    /// Dials the missing connections of a link, at most once in each PING period.
    pub(super) fn reconnect(&mut self, now: i64, master: &mut Master, who: &Who) {
        let period = self.settings.times.ping;
        let Some(instance) = master.instance(who) else { return };
        let (kind, address) = (instance.kind, instance.address.clone());
        let Some(link) = self.link_mut(master, who) else { return };
        if !link.disconnected || now - link.dialed < period {
            return;
        }
        link.dialed = now;
        if link.commands.is_none() {
            let conn = self.dial(&master.name, who, Channel::Commands, &address);
            let link = self.link_mut(master, who).expect("it was there");
            link.commands = Some(Line::new(conn, now));
            link.asked.clear();
            self.introduce(master, who, conn, Channel::Commands);
            self.ping(now, master, who);
        }
        let link = self.link_mut(master, who).expect("it was there");
        if kind != Kind::Sentinel && link.pubsub.is_none() {
            let conn = self.dial(&master.name, who, Channel::Pubsub, &address);
            let link = self.link_mut(master, who).expect("it was there");
            (link.pubsub, link.pubsub_heard) = (Some(Line::new(conn, now)), now);
            self.introduce(master, who, conn, Channel::Pubsub);
            self.write(conn, &["SUBSCRIBE", HELLO]);
        }
        let link = self.link_mut(master, who).expect("it was there");
        link.disconnected = link.commands.is_none() || (kind != Kind::Sentinel && link.pubsub.is_none());
    }

    fn dial(&mut self, master: &str, who: &Who, channel: Channel, to: &super::Address) -> ConnId {
        self.dialed += 1;
        let conn = ConnId(ConnId::DIALED + self.dialed);
        self.routes.insert(conn, Route { master: master.into(), who: who.clone(), channel });
        let (host, port) = (to.ip.clone(), to.port);
        self.out.actions.push(Action::Dial { conn, host, port, from: None });
        conn
    }

    /// Authenticates a connection and gives it a name.
    fn introduce(&mut self, master: &mut Master, who: &Who, conn: ConnId, channel: Channel) {
        let (user, password) = match who {
            Who::Sentinel(_) if !self.settings.sentinel_pass.is_empty() => {
                (self.settings.sentinel_user.clone(), self.settings.sentinel_pass.clone())
            }
            Who::Sentinel(_) => (String::new(), self.requirepass.clone()),
            _ => (master.settings.auth_user.clone(), master.settings.auth_pass.clone()),
        };
        let mut sent = 0;
        if !password.is_empty() {
            let auth = self.renamed(master, who, "AUTH");
            let words = [&auth[..], &user, &password];
            self.write(conn, &words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>());
            sent += 1;
        }
        let end = if channel == Channel::Commands { "cmd" } else { "pubsub" };
        let name = format!("sentinel-{}-{end}", &self.my_id[..8.min(self.my_id.len())]);
        let client = self.renamed(master, who, "CLIENT");
        self.write(conn, &[&client, "SETNAME", &name]);
        sent += 1;
        let of = master.name.clone();
        let Some(link) = self.link_mut(master, who) else { return };
        match (channel, &mut link.pubsub) {
            (Channel::Commands, _) => {
                let request = || Request { of: of.clone(), asked: Asked::Nothing };
                link.asked.extend(std::iter::repeat_with(request).take(sent));
            }
            (Channel::Pubsub, Some(line)) => line.introductions = sent,
            (Channel::Pubsub, None) => {}
        }
    }

    /// Returns the name to send for a command, which `rename-command` may change for a master or
    /// replica.
    fn renamed(&self, master: &Master, who: &Who, command: &str) -> String {
        let renames = &master.settings.renames;
        let new = renames.get(&command.to_ascii_lowercase()).filter(|_| !matches!(who, Who::Sentinel(_)));
        new.map_or_else(|| command.to_owned(), String::clone)
    }

    fn write(&mut self, conn: ConnId, words: &[&str]) {
        let mut bytes = Vec::new();
        encode(words, &mut bytes);
        self.out.actions.push(Action::Send { conn, bytes: Bytes::from(bytes) });
    }

    /// Sends a command if the link has a connection for commands; returns true if it does.
    pub(super) fn ask(&mut self, master: &mut Master, who: &Who, words: &[&str], asked: Asked) -> bool {
        let name = self.renamed(master, who, words[0]);
        let of = master.name.clone();
        let Some(link) = self.link_mut(master, who) else { return false };
        let Some(line) = &link.commands else { return false };
        let conn = line.conn;
        link.asked.push_back(Request { of, asked });
        let words: Vec<&str> = [&name[..]].into_iter().chain(words[1..].iter().copied()).collect();
        self.write(conn, &words);
        true
    }

    pub(super) fn ping(&mut self, now: i64, master: &mut Master, who: &Who) {
        if self.ask(master, who, &["PING"], Asked::Ping)
            && let Some(link) = self.link_mut(master, who)
        {
            link.last_ping = now;
            if link.act_ping == 0 {
                link.act_ping = now;
            }
        }
    }

    /// Sends INFO, PING and hello, as far as they are due.
    pub(super) fn send_periodic(&mut self, now: i64, master: &mut Master, who: &Who) {
        let times = self.settings.times;
        let urgent = master.own.is(Flags::O_DOWN | Flags::FAILOVER_IN_PROGRESS);
        // A master that pauses for a coordinated failover would hold back a hello, and with it all
        // later commands of the connection.
        let is_quiet = *who == Who::Master
            && master.own.is(Flags::COORDINATED_FAILOVER)
            && master.stage < Stage::ReconfSlaves;
        let down_after = master.settings.down_after;
        let pending_max = self.pending_max(master, who);
        let (Some(instance), Some(link)) = (master.instance(who), self.link(master, who)) else { return };
        if link.disconnected || link.asked.len() >= pending_max {
            return;
        }
        let is_replica = instance.kind == Kind::Replica;
        let info_period =
            if is_replica && (urgent || instance.replica.link_down_time != 0) { 1_000 } else { times.info };
        let ping_period = down_after.min(times.ping);
        let wants_info = instance.kind != Kind::Sentinel
            && (instance.info_refresh == 0 || now - instance.info_refresh > info_period);
        let wants_ping = now - link.last_pong > ping_period && now - link.last_ping > ping_period / 2;
        let wants_hello = now - instance.last_hello_sent > times.publish && !is_quiet;
        if wants_info {
            self.ask(master, who, &["INFO"], Asked::Info);
        }
        if wants_ping {
            self.ping(now, master, who);
        }
        if wants_hello {
            self.send_hello(master, who);
        }
    }

    /// Closes connections that were silent for long, so that they are dialed again.
    pub(super) fn recycle(&mut self, now: i64, master: &mut Master, who: &Who) {
        let times = self.settings.times;
        let half = master.settings.down_after / 2;
        let Some(link) = self.link(master, who) else { return };
        let is_old =
            |line: &Option<Line>| line.as_ref().is_some_and(|line| now - line.since > times.min_link);
        let silent = link.act_ping != 0 && now - link.act_ping > half && now - link.last_pong > half;
        let commands = is_old(&link.commands) && silent;
        let pubsub = is_old(&link.pubsub) && now - link.pubsub_heard > times.publish * 3;
        for (closes, channel) in [(commands, Channel::Commands), (pubsub, Channel::Pubsub)] {
            if closes {
                self.close(master, who, channel);
            }
        }
    }

    pub(super) fn close(&mut self, master: &mut Master, who: &Who, channel: Channel) {
        let Some(link) = self.link_mut(master, who) else { return };
        if let Some(conn) = lose(link, channel) {
            self.hang_up(conn);
        }
    }

    /// Closes both connections of a link.
    pub(super) fn close_link(&mut self, master: &mut Master, who: &Who) {
        self.close(master, who, Channel::Commands);
        self.close(master, who, Channel::Pubsub);
    }

    /// Closes a connection that no record holds any more.
    pub(super) fn hang_up(&mut self, conn: ConnId) {
        if self.routes.remove(&conn).is_some() {
            // The peer needs none of the output that it has not read: do not wait for it.
            self.out.actions.push(Action::Kill { conn, discard: false });
        }
    }

    /// Records that a connection is established; returns true if it belongs to this Sentinel.
    pub fn connected(&mut self, conn: ConnId, local: &str) -> bool {
        let Some(route) = self.routes.get(&conn).cloned() else { return false };
        if let Some(line) = self.line(&route) {
            line.local = Some(local.to_owned());
        }
        true
    }

    fn line(&mut self, route: &Route) -> Option<&mut Line> {
        let link = self.link_of(route)?;
        match route.channel {
            Channel::Commands => link.commands.as_mut(),
            Channel::Pubsub => link.pubsub.as_mut(),
        }
    }

    /// Removes a connection that has ended; returns true if it belonged to this Sentinel.
    pub fn disconnected(&mut self, conn: ConnId) -> bool {
        let Some(route) = self.routes.remove(&conn) else { return false };
        if let Some(link) = self.link_of(&route) {
            lose(link, route.channel);
        }
        true
    }

    /// Handles received bytes; returns true if the connection belongs to this Sentinel.
    pub fn received(&mut self, env: &mut crate::env::Env, conn: ConnId, bytes: &[u8]) -> bool {
        let Some(route) = self.routes.get(&conn).cloned() else { return false };
        if let Some(line) = self.line(&route) {
            line.answers.feed(bytes);
        }
        // Look the connection up for each reply: the reply before may have ended it.
        while self.routes.contains_key(&conn) {
            let Some(line) = self.line(&route) else { break };
            match line.answers.next() {
                Ok(None) => break,
                Ok(Some(reply)) => self.heard(env, &route, reply),
                Err(_) => self.give_up(&route),
            }
        }
        true
    }

    /// Closes a connection after a protocol error or a refused subscription.
    fn give_up(&mut self, route: &Route) {
        let conn = self.link_of(route).and_then(|link| lose(link, route.channel));
        conn.into_iter().for_each(|conn| self.hang_up(conn));
    }

    fn heard(&mut self, env: &mut crate::env::Env, route: &Route, reply: Reply) {
        let now = env.wall.as_millis();
        match route.channel {
            Channel::Pubsub => {
                let refused = self.link_of(route).is_some_and(|link| {
                    link.pubsub_heard = now;
                    let line = link.pubsub.as_mut();
                    line.is_some_and(|line| match line.introductions.checked_sub(1) {
                        Some(left) => {
                            line.introductions = left;
                            false
                        }
                        None => reply.is_error(),
                    })
                });
                if refused {
                    // A link without a subscription is broken: drop the connection, to dial again.
                    self.give_up(route);
                }
                // The hello may be about any master.
                if let Some(hello) = hello_of(&reply) {
                    self.hear_hello(now, &hello);
                }
            }
            Channel::Commands => {
                let request = self.link_of(route).and_then(|link| link.asked.pop_front());
                let Some(Request { of, asked }) = request else { return };
                let Some(mut master) = self.masters.remove(&of) else { return };
                self.answered(now, &mut master, &route.who, asked, &reply);
                self.masters.insert(of, master);
            }
        }
    }

    fn answered(&mut self, now: i64, master: &mut Master, who: &Who, asked: Asked, reply: &Reply) {
        match asked {
            Asked::Ping => self.ponged(now, master, who, reply),
            Asked::Info => {
                if let Reply::Bulk(text) = reply {
                    let text = String::from_utf8_lossy(text).into_owned();
                    self.take_info(now, master, who, text);
                }
            }
            Asked::Hello if !reply.is_error() => {
                if let Some(instance) = master.instance_mut(who) {
                    instance.last_hello_sent = now;
                }
            }
            Asked::IsMasterDown => {
                if let Who::Sentinel(id) = who {
                    Sentinel::take_opinion(now, master, id, reply);
                }
            }
            Asked::Hello | Asked::Nothing => {}
        }
    }

    fn ponged(&mut self, now: i64, master: &mut Master, who: &Who, reply: &Reply) {
        let (Reply::Status(text) | Reply::Error(text)) = reply else { return };
        let accepted = ["PONG", "LOADING", "MASTERDOWN"].iter().any(|start| text.starts_with(start));
        let Some(link) = self.link_mut(master, who) else { return };
        if accepted {
            (link.last_avail, link.act_ping) = (now, 0);
        }
        link.last_pong = now;
        let Some(instance) = master.instance_mut(who) else { return };
        if text.starts_with("PONG") {
            instance.flags.remove(Flags::MASTER_REBOOT);
        }
        let busy = text.starts_with("BUSY") && instance.is(Flags::S_DOWN);
        if busy && !instance.is(Flags::SCRIPT_KILL_SENT) {
            instance.flags.insert(Flags::SCRIPT_KILL_SENT);
            self.ask(master, who, &["SCRIPT", "KILL"], Asked::Nothing);
        }
    }
}

/// Extracts the hello from a message of the subscription.
fn hello_of(reply: &Reply) -> Option<String> {
    let Reply::Array(items) = reply else { return None };
    match &items[..] {
        [Reply::Bulk(kind), _, Reply::Bulk(message)] if kind[..] == *b"message" => {
            Some(String::from_utf8_lossy(message).into_owned())
        }
        _ => None,
    }
}
