//! Connecting, sending, and taking in replies.

use bytes::Bytes;

use super::{
    HELLO, Sentinel,
    instance::{Flags, Kind, Route, Who},
    link::{Asked, Channel, Line, PENDING_MAX, lose},
    master::Master,
};
use crate::{
    event::{Action, ConnId},
    replication::encode,
    resp::Reply,
};

impl Sentinel {
    /// Dials what is missing of a link, not more often than once in the period of PING.
    pub(super) fn reconnect(&mut self, now: i64, master: &mut Master, who: &Who) {
        let period = self.settings.times.ping;
        let Some(instance) = master.instance_mut(who) else { return };
        if !instance.link.disconnected || now - instance.link.dialed < period {
            return;
        }
        instance.link.dialed = now;
        let (kind, address) = (instance.kind, instance.address.clone());
        if instance.link.commands.is_none() {
            let conn = self.dial(&master.name, who, Channel::Commands, &address);
            let link = &mut master.instance_mut(who).expect("it was there").link;
            link.commands = Some(Line::new(conn, now));
            link.asked.clear();
            self.introduce(master, who, conn, Channel::Commands);
            self.ping(now, master, who);
        }
        let link = &master.instance_mut(who).expect("it was there").link;
        if kind != Kind::Sentinel && link.pubsub.is_none() {
            let conn = self.dial(&master.name, who, Channel::Pubsub, &address);
            let link = &mut master.instance_mut(who).expect("it was there").link;
            (link.pubsub, link.pubsub_heard) = (Some(Line::new(conn, now)), now);
            self.introduce(master, who, conn, Channel::Pubsub);
            self.write(conn, &["SUBSCRIBE", HELLO]);
        }
        let link = &mut master.instance_mut(who).expect("it was there").link;
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

    /// Authenticates, and gives the connection a name.
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
        let Some(instance) = master.instance_mut(who) else { return };
        match (channel, &mut instance.link.pubsub) {
            (Channel::Commands, _) => instance.link.asked.extend(std::iter::repeat_n(Asked::Nothing, sent)),
            (Channel::Pubsub, Some(line)) => line.introductions = sent,
            (Channel::Pubsub, None) => {}
        }
    }

    /// The name to send instead of a command of a master or replica.
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

    /// Sends a command, if the link stands; answers whether it does.
    pub(super) fn ask(&mut self, master: &mut Master, who: &Who, words: &[&str], asked: Asked) -> bool {
        let name = self.renamed(master, who, words[0]);
        let Some(instance) = master.instance_mut(who) else { return false };
        let Some(line) = &instance.link.commands else { return false };
        let conn = line.conn;
        instance.link.asked.push_back(asked);
        let words: Vec<&str> = [&name[..]].into_iter().chain(words[1..].iter().copied()).collect();
        self.write(conn, &words);
        true
    }

    pub(super) fn ping(&mut self, now: i64, master: &mut Master, who: &Who) {
        if self.ask(master, who, &["PING"], Asked::Ping)
            && let Some(instance) = master.instance_mut(who)
        {
            let link = &mut instance.link;
            link.last_ping = now;
            if link.act_ping == 0 {
                link.act_ping = now;
            }
        }
    }

    /// INFO, PING and hello, as far as they are due.
    pub(super) fn send_periodic(&mut self, now: i64, master: &mut Master, who: &Who) {
        let times = self.settings.times;
        let urgent = master.own.is(Flags::O_DOWN | Flags::FAILOVER_IN_PROGRESS);
        let down_after = master.settings.down_after;
        let Some(instance) = master.instance_mut(who) else { return };
        if instance.link.disconnected || instance.link.asked.len() >= PENDING_MAX {
            return;
        }
        let is_replica = instance.kind == Kind::Replica;
        let info_period =
            if is_replica && (urgent || instance.replica.link_down_time != 0) { 1_000 } else { times.info };
        let ping_period = down_after.min(times.ping);
        let wants_info = instance.kind != Kind::Sentinel
            && (instance.info_refresh == 0 || now - instance.info_refresh > info_period);
        let wants_ping =
            now - instance.link.last_pong > ping_period && now - instance.link.last_ping > ping_period / 2;
        let wants_hello = now - instance.last_hello_sent > times.publish;
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

    /// Closes connections that have brought nothing for long, so that they are dialed anew.
    pub(super) fn recycle(&mut self, now: i64, master: &mut Master, who: &Who) {
        let times = self.settings.times;
        let half = master.settings.down_after / 2;
        let Some(instance) = master.instance_mut(who) else { return };
        let link = &instance.link;
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

    /// Closes one of the two connections.
    pub(super) fn close(&mut self, master: &mut Master, who: &Who, channel: Channel) {
        let Some(instance) = master.instance_mut(who) else { return };
        if let Some(conn) = lose(&mut instance.link, channel) {
            self.hang_up(conn);
        }
    }

    /// Closes both connections.
    pub(super) fn close_link(&mut self, master: &mut Master, who: &Who) {
        self.close(master, who, Channel::Commands);
        self.close(master, who, Channel::Pubsub);
    }

    /// Closes a connection that no record has any more.
    pub(super) fn hang_up(&mut self, conn: ConnId) {
        if self.routes.remove(&conn).is_some() {
            // Nothing that the peer has not read by now is worth waiting for.
            self.out.actions.push(Action::Kill { conn, discard: false });
        }
    }

    /// A connection stands; answers whether it is one of this Sentinel's.
    pub fn connected(&mut self, conn: ConnId, local: &str) -> bool {
        let Some(route) = self.routes.get(&conn).cloned() else { return false };
        if let Some(line) = self.line(&route) {
            line.local = Some(local.to_owned());
        }
        true
    }

    fn line(&mut self, route: &Route) -> Option<&mut Line> {
        let link = &mut self.masters.get_mut(&route.master)?.instance_mut(&route.who)?.link;
        match route.channel {
            Channel::Commands => link.commands.as_mut(),
            Channel::Pubsub => link.pubsub.as_mut(),
        }
    }

    /// A connection is gone; answers whether it was one of this Sentinel's.
    pub fn disconnected(&mut self, conn: ConnId) -> bool {
        let Some(route) = self.routes.remove(&conn) else { return false };
        let master = self.masters.get_mut(&route.master);
        if let Some(instance) = master.and_then(|master| master.instance_mut(&route.who)) {
            lose(&mut instance.link, route.channel);
        }
        true
    }

    /// Bytes came; answers whether the connection is one of this Sentinel's.
    pub fn received(&mut self, env: &mut crate::env::Env, conn: ConnId, bytes: &[u8]) -> bool {
        let Some(route) = self.routes.get(&conn).cloned() else { return false };
        if let Some(line) = self.line(&route) {
            line.answers.feed(bytes);
        }
        // What one reply brings may end the connection that the next one came by.
        while self.routes.contains_key(&conn) {
            let Some(line) = self.line(&route) else { break };
            match line.answers.next() {
                Ok(None) => break,
                Ok(Some(reply)) => self.heard(env, &route, reply),
                Err(_) => {
                    if let Some(mut master) = self.masters.remove(&route.master) {
                        self.close(&mut master, &route.who, route.channel);
                        self.masters.insert(route.master.clone(), master);
                    }
                }
            }
        }
        true
    }

    fn heard(&mut self, env: &mut crate::env::Env, route: &Route, reply: Reply) {
        let now = env.wall.as_millis();
        let Some(mut master) = self.masters.remove(&route.master) else { return };
        let hello = match route.channel {
            Channel::Pubsub => {
                let refused = master.instance_mut(&route.who).is_some_and(|instance| {
                    instance.link.pubsub_heard = now;
                    let line = instance.link.pubsub.as_mut();
                    line.is_some_and(|line| match line.introductions.checked_sub(1) {
                        Some(left) => {
                            line.introductions = left;
                            false
                        }
                        None => reply.is_error(),
                    })
                });
                if refused {
                    // Without a subscription the link counts as broken, and is tried anew.
                    self.close(&mut master, &route.who, Channel::Pubsub);
                }
                hello_of(&reply)
            }
            Channel::Commands => {
                let asked = master.instance_mut(&route.who).and_then(|at| at.link.asked.pop_front());
                self.answered(now, &mut master, &route.who, asked, &reply);
                None
            }
        };
        self.masters.insert(route.master.clone(), master);
        // A hello may be about any master.
        if let Some(hello) = hello {
            self.hear_hello(now, &hello);
        }
    }

    fn answered(&mut self, now: i64, master: &mut Master, who: &Who, asked: Option<Asked>, reply: &Reply) {
        match asked {
            Some(Asked::Ping) => self.ponged(now, master, who, reply),
            Some(Asked::Info) => {
                if let Reply::Bulk(text) = reply {
                    let text = String::from_utf8_lossy(text).into_owned();
                    self.take_info(now, master, who, text);
                }
            }
            Some(Asked::Hello) if !reply.is_error() => {
                if let Some(instance) = master.instance_mut(who) {
                    instance.last_hello_sent = now;
                }
            }
            Some(Asked::IsMasterDown) => {
                if let Who::Sentinel(id) = who {
                    Sentinel::take_opinion(now, master, id, reply);
                }
            }
            _ => {}
        }
    }

    fn ponged(&mut self, now: i64, master: &mut Master, who: &Who, reply: &Reply) {
        let (Reply::Status(text) | Reply::Error(text)) = reply else { return };
        let Some(instance) = master.instance_mut(who) else { return };
        let accepted = ["PONG", "LOADING", "MASTERDOWN"].iter().any(|start| text.starts_with(start));
        if accepted {
            (instance.link.last_avail, instance.link.act_ping) = (now, 0);
            if text.starts_with("PONG") {
                instance.flags.remove(Flags::MASTER_REBOOT);
            }
        }
        instance.link.last_pong = now;
        let busy = text.starts_with("BUSY") && instance.is(Flags::S_DOWN);
        if busy && !instance.is(Flags::SCRIPT_KILL_SENT) {
            instance.flags.insert(Flags::SCRIPT_KILL_SENT);
            self.ask(master, who, &["SCRIPT", "KILL"], Asked::Nothing);
        }
    }
}

/// The hello in a message of the subscription.
fn hello_of(reply: &Reply) -> Option<String> {
    let Reply::Array(items) = reply else { return None };
    match &items[..] {
        [Reply::Bulk(kind), _, Reply::Bulk(message)] if kind[..] == *b"message" => {
            Some(String::from_utf8_lossy(message).into_owned())
        }
        _ => None,
    }
}
