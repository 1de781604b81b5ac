//! The client of a rig, the same on simulated hosts and on this machine: its watches and its
//! commands.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    future::Future,
    io,
    rc::Rc,
};

use lockstorm_sim::{
    cluster::key_slot,
    resp::{Reply, ReplyReader},
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::{
    cluster,
    row::{Act, Rig, Row, Watch},
    seen::{Log, Seen, UNREAD},
};

/// Milliseconds between two commands of a watch.
pub(crate) const PERIOD: i64 = 20;

/// [`Watch::Floods`] sends `AT_ONCE` writes together, every `FLOOD_PERIOD` milliseconds.
const AT_ONCE: i64 = 20;
const FLOOD_PERIOD: i64 = 10;

/// The environment of a client: its clock, and connections to others.
pub(crate) trait Place: Clone + 'static {
    type Stream: AsyncRead + AsyncWrite + Unpin + 'static;

    /// Connects to a node or Sentinel.
    fn dial(&self, host: &str) -> impl Future<Output = io::Result<Self::Stream>>;
    /// Milliseconds since the row's zero.
    fn now(&self) -> i64;
    /// Waits until `at` milliseconds after zero.
    fn until(&self, at: i64) -> impl Future<Output = ()>;
    /// The address of the host at the other end.
    fn peer(&self, stream: &Self::Stream) -> io::Result<String>;
    /// The name of the rig's host with this address; `None` for others.
    fn host_at(&self, address: &str) -> Option<String>;
    /// The address of a host.
    fn address(&self, host: &str) -> String {
        host.to_owned()
    }
    /// Replaces addresses by names in a text.
    fn named(&self, text: &str) -> String {
        text.to_owned()
    }
}

/// A connection for commands and their replies.
pub(crate) struct Asking<S> {
    stream: S,
    answers: ReplyReader,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Asking<S> {
    pub(crate) async fn ask(&mut self, command: &str) -> io::Result<Reply> {
        self.stream.write_all(format!("{command}\r\n").as_bytes()).await?;
        self.next().await
    }
}

impl<S: AsyncRead + Unpin> Asking<S> {
    pub(crate) fn new(stream: S) -> Asking<S> {
        Asking { stream, answers: ReplyReader::default() }
    }

    /// The next reply or pushed message.
    pub(crate) async fn next(&mut self) -> io::Result<Reply> {
        loop {
            if let Some(reply) = self.answers.next().map_err(io::Error::other)? {
                return Ok(reply);
            }
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                len => self.answers.feed(&bytes[..len]),
            }
        }
    }
}

/// The text of a reply as rows write it.
pub(crate) fn text(reply: &Reply) -> String {
    match reply {
        Reply::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Reply::Status(text) | Reply::Error(text) => text.to_string(),
        Reply::Integer(number) => number.to_string(),
        Reply::Array(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(" ")),
        Reply::Null => "nil".to_owned(),
        other => format!("{other:?}"),
    }
}

/// A client in its environment, and the log of its observations.
pub(crate) struct Client<P> {
    place: P,
    log: Log,
    /// The nodes of a cluster: names by ID, and addresses by name.
    pub(crate) ids: Rc<RefCell<BTreeMap<String, String>>>,
    pub(crate) addresses: Rc<RefCell<BTreeMap<String, String>>>,
    /// The numbers whose writes were refused.
    refused: Rc<RefCell<BTreeSet<String>>>,
}

impl<P: Clone> Clone for Client<P> {
    fn clone(&self) -> Client<P> {
        Client {
            place: self.place.clone(),
            log: self.log.clone(),
            ids: self.ids.clone(),
            addresses: self.addresses.clone(),
            refused: self.refused.clone(),
        }
    }
}

impl<P: Place> Client<P> {
    pub(crate) fn new(place: P, log: Log) -> Client<P> {
        Client { place, log, ids: Rc::default(), addresses: Rc::default(), refused: Rc::default() }
    }

    pub(crate) fn place(&self) -> &P {
        &self.place
    }

    pub(crate) fn note(&self, by: &str, event: &str, message: &str) {
        let (at, mut message) = (self.place.now(), self.place.named(message));
        for (name, address) in self.addresses.borrow().iter() {
            message = message.replace(&format!("{address}:"), &format!("{name}:"));
        }
        self.log.borrow_mut().push(Seen { at, by: by.into(), event: event.into(), message });
    }

    /// Runs the watches and commands of a row until its end; then finds out which writes survived.
    pub(crate) async fn play(&self, row: &Row) {
        let mut tasks = Vec::new();
        if row.rig.masters > 0 && row.rig.starts_at_zero {
            let (client, rig) = (self.clone(), row.rig);
            tasks.push(tokio::task::spawn_local(async move { cluster::make(&client, &rig).await }));
        } else if row.rig.masters > 0 && self.ids.borrow().is_empty() {
            cluster::make(self, &row.rig).await;
        }
        self.place.until(-1_000).await;
        let sentinels = row.rig.sentinels();
        let mut go = |task: std::pin::Pin<Box<dyn Future<Output = ()>>>| {
            tasks.push(tokio::task::spawn_local(task));
        };
        for watch in row.watches {
            let client = Rc::new(self.clone());
            match *watch {
                Watch::Writes(node) | Watch::Confirms(node) => {
                    let (key, confirms) = (list_of(&row.rig, node), matches!(watch, Watch::Confirms(_)));
                    go(Box::pin(async move { client.write(node, &key, confirms).await }));
                }
                Watch::Floods(node) => {
                    let key = list_of(&row.rig, node);
                    go(Box::pin(async move { client.flood(node, &key).await }));
                }
                Watch::Views => {
                    for node in row.rig.nodes() {
                        let client = client.clone();
                        go(Box::pin(async move { cluster::view(&client, &node).await }));
                    }
                }
                Watch::Asks => {
                    for sentinel in sentinels.clone() {
                        let (client, informed, of) = (client.clone(), client.clone(), sentinel.clone());
                        go(Box::pin(async move { client.ask_for_master(&sentinel).await }));
                        go(Box::pin(async move { informed.ask_for_info(&of).await }));
                    }
                }
                Watch::Holds(node) => {
                    for (kind, first) in [("client", "PING"), ("subscriber", "SUBSCRIBE x")] {
                        let client = client.clone();
                        go(Box::pin(async move { client.hold(node, kind, first).await }));
                    }
                }
                Watch::Links(node) => go(Box::pin(async move { client.look_at_links(node).await })),
                Watch::Monitors(node) => go(Box::pin(async move { client.monitor(node).await })),
            }
        }
        for (at, act) in row.acts {
            if let Act::Run(hosts, command) = *act {
                for host in hosts.split(' ') {
                    let (client, at) = (self.clone(), *at);
                    go(Box::pin(async move {
                        client.place.until(at).await;
                        let given = client.with_addresses(command);
                        let reply = client.give(host, &given).await;
                        if let (Ok(Reply::Integer(left @ 0..)), true) = (&reply, given.contains("PTTL")) {
                            let (by, event, message) = (host.into(), "expires".into(), String::new());
                            let seen = Seen { at: client.place.now() + left, by, event, message };
                            client.log.borrow_mut().push(seen);
                        }
                        let reply = reply.map_or_else(|error| error.kind().to_string(), |reply| text(&reply));
                        client.note(host, command, &reply);
                    }));
                }
            }
        }
        self.place.until(row.lasts).await;
        tasks.into_iter().for_each(|task| task.abort());
        self.find_lost(row).await;
    }

    /// A command with addresses in place of `{m}` and the like, and IDs in place of `<A>`.
    fn with_addresses(&self, command: &str) -> String {
        let mut parts = command.split(['{', '}']);
        let mut given = parts.next().unwrap_or_default().to_owned();
        while let (Some(host), Some(rest)) = (parts.next(), parts.next()) {
            let known = self.addresses.borrow().get(host).cloned();
            given += &(known.unwrap_or_else(|| self.place.address(host)) + rest);
        }
        let named = |given: String, (id, name): (&String, &String)| given.replace(&format!("<{name}>"), id);
        self.ids.borrow().iter().fold(given, named)
    }

    /// Sends commands separated by `; ` and returns the reply to the last one.
    async fn give(&self, host: &str, commands: &str) -> io::Result<Reply> {
        let mut asking = Asking::new(self.place.dial(host).await?);
        let mut reply = Reply::Null;
        for command in commands.split("; ") {
            reply = asking.ask(command).await?;
        }
        if text(&reply).starts_with("UNBLOCKED") && asking.next().await.is_err() {
            self.note(host, "disconnected", commands);
        }
        Ok(reply)
    }

    async fn write(&self, node: &str, key: &str, confirms: bool) {
        let mut number = 0;
        loop {
            if let Ok(stream) = self.place.dial(node).await {
                let mut asking = Asking::new(stream);
                loop {
                    number += 1;
                    let begun = self.place.now();
                    let Ok(reply) = asking.ask(&format!("RPUSH {key} {number}")).await else { break };
                    self.note_write(number, &reply);
                    if confirms && !matches!(reply, Reply::Error(_)) {
                        let Ok(reply) = asking.ask("WAIT 1 1000").await else { break };
                        if matches!(reply, Reply::Integer(1..)) {
                            self.note("writes", "confirmed", &number.to_string());
                        }
                    }
                    self.place.until(begun + PERIOD).await;
                }
            }
            self.place.until(self.place.now() + PERIOD).await;
        }
    }

    fn note_write(&self, number: i64, reply: &Reply) {
        match reply {
            Reply::Error(error) => {
                self.refused.borrow_mut().insert(number.to_string());
                self.note("writes", "refused", error);
            }
            _ => self.note("writes", "accepted", &number.to_string()),
        }
    }

    async fn flood(&self, node: &str, key: &str) {
        let Ok(stream) = self.place.dial(node).await else { return };
        let (reading, mut writing) = tokio::io::split(stream);
        let begun = self.place.now();
        let write = async {
            for round in 0.. {
                let numbers = round * AT_ONCE + 1..=(round + 1) * AT_ONCE;
                let writes: String = numbers.map(|number| format!("RPUSH {key} {number}\r\n")).collect();
                if writing.write_all(writes.as_bytes()).await.is_err() {
                    return;
                }
                self.place.until(begun + (round + 1) * FLOOD_PERIOD).await;
            }
        };
        let read = async {
            let mut asking = Asking::new(reading);
            for number in 1.. {
                let Ok(reply) = asking.next().await else { return };
                self.note_write(number, &reply);
            }
        };
        tokio::join!(write, read);
    }

    async fn ask_for_master(&self, sentinel: &str) {
        let (by, mut last) = (format!("asks {sentinel}"), String::new());
        loop {
            if let Ok(stream) = self.place.dial(sentinel).await {
                let mut asking = Asking::new(stream);
                while let Ok(reply) = asking.ask("SENTINEL GET-MASTER-ADDR-BY-NAME main").await {
                    let answer = text(&reply);
                    if answer != last {
                        self.note(&by, "answers", &answer);
                        last = answer;
                    }
                    self.place.until(self.place.now() + PERIOD).await;
                }
            }
            self.place.until(self.place.now() + PERIOD).await;
        }
    }

    /// `master0:name=main,status=ok,address=10.0.0.1:6379,slaves=2,sentinels=3`
    async fn ask_for_info(&self, sentinel: &str) {
        let mut last = [("status", String::new()), ("address", String::new())];
        loop {
            if let Ok(stream) = self.place.dial(sentinel).await {
                let mut asking = Asking::new(stream);
                while let Ok(reply) = asking.ask("INFO sentinel").await {
                    let info = text(&reply);
                    let line = info.lines().find(|line| line.starts_with("master0:")).unwrap_or_default();
                    for (field, last) in &mut last {
                        let value =
                            line.split(',').find_map(|pair| pair.strip_prefix(*field)?.strip_prefix('='));
                        if let Some(value) = value.filter(|value| value != last) {
                            self.note(sentinel, &format!("INFO {field}"), value);
                            value.clone_into(last);
                        }
                    }
                    self.place.until(self.place.now() + PERIOD).await;
                }
            }
            self.place.until(self.place.now() + PERIOD).await;
        }
    }

    /// `id=7 addr=10.0.0.1:5000 .. name=sentinel-1c2d3e4f-cmd ..`
    async fn look_at_links(&self, node: &str) {
        let mut known: BTreeMap<(String, &str), u64> = BTreeMap::new();
        loop {
            if let Ok(stream) = self.place.dial(node).await {
                let mut asking = Asking::new(stream);
                while let Ok(reply) = asking.ask("CLIENT LIST").await {
                    for line in text(&reply).lines() {
                        let field = |name: &str| {
                            line.split(' ').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
                        };
                        let name = field("name").filter(|name| name.starts_with("sentinel-"));
                        let kinds = ["cmd", "pubsub"];
                        let kind =
                            kinds.into_iter().find(|kind| name.is_some_and(|name| name.ends_with(kind)));
                        let ip = field("addr").and_then(|addr| addr.rsplit_once(':')).map(|(ip, _)| ip);
                        let by = ip.and_then(|ip| self.place.host_at(ip));
                        let id = field("id").and_then(|id| id.parse::<u64>().ok());
                        let (Some(by), Some(kind), Some(id)) = (by, kind, id) else { continue };
                        let before = known.entry((by.clone(), kind)).or_insert(id);
                        if std::mem::replace(before, id.max(*before)) < id {
                            self.note(&by, "linked", &format!("{node} {kind}"));
                        }
                    }
                    self.place.until(self.place.now() + PERIOD).await;
                }
            }
            self.place.until(self.place.now() + PERIOD).await;
        }
    }

    async fn hold(&self, node: &str, kind: &str, first: &str) {
        loop {
            if let Ok(stream) = self.place.dial(node).await {
                let mut asking = Asking::new(stream);
                if asking.ask(first).await.is_ok() {
                    while asking.next().await.is_ok() {}
                    self.note(kind, "closed", node);
                }
            }
            self.place.until(self.place.now() + PERIOD).await;
        }
    }

    async fn monitor(&self, node: &str) {
        let Ok(stream) = self.place.dial(node).await else { return };
        let mut asking = Asking::new(stream);
        let mut reply = asking.ask("MONITOR").await;
        while let Ok(line) = reply {
            // 1700000000.123456 [0 10.0.0.1:5000] "PING"
            let line = text(&line);
            let mut parts = line.splitn(4, ' ');
            let (address, command) = (parts.nth(2), parts.next());
            let by = address
                .and_then(|address| address.rsplit_once(':'))
                .and_then(|(ip, _)| self.place.host_at(ip));
            if let (Some(by), Some(command)) = (by, command) {
                self.note(&by, command.split('"').nth(1).unwrap_or_default(), node);
            }
            reply = asking.next().await;
        }
    }

    /// Logs the accepted writes that are missing at the current master, and the writes that should
    /// not be there. The first Sentinel to reply names the master; in a cluster it is the node that
    /// serves the slot.
    async fn find_lost(&self, row: &Row) {
        if !self.log.borrow().iter().any(|seen| seen.event == "accepted") {
            return;
        }
        let rig = &row.rig;
        let mut kept = None;
        for node in rig.nodes().iter().filter(|_| rig.masters > 0) {
            let written = row.watches.iter().find_map(|watch| match watch {
                Watch::Writes(node) | Watch::Confirms(node) | Watch::Floods(node) => Some(list_of(rig, node)),
                _ => None,
            });
            let Ok(stream) = self.place.dial(node).await else { continue };
            let read = format!("LRANGE {} 0 -1", written.unwrap_or_default());
            if let Ok(Reply::Array(numbers)) = Asking::new(stream).ask(&read).await {
                kept = Some(numbers.iter().map(text).collect::<Vec<String>>());
                break;
            }
        }
        for sentinel in rig.sentinels() {
            let Ok(stream) = self.place.dial(&sentinel).await else { continue };
            let Ok(reply) = Asking::new(stream).ask("SENTINEL GET-MASTER-ADDR-BY-NAME main").await else {
                continue;
            };
            let answer = self.place.named(&text(&reply));
            let Some(master) = answer.trim_start_matches('[').split(' ').next() else { continue };
            let Ok(stream) = self.place.dial(master).await else { continue };
            if let Ok(Reply::Array(numbers)) = Asking::new(stream).ask("LRANGE w 0 -1").await {
                kept = Some(numbers.iter().map(text).collect::<Vec<String>>());
                break;
            }
        }
        let Some(kept) = kept else { return self.note("writes", UNREAD, "") };
        let mut once = BTreeSet::new();
        for number in &kept {
            if !once.insert(number) {
                self.note("writes", "doubled", number);
            }
            if self.refused.borrow().contains(number) {
                self.note("writes", "refused and kept", number);
            }
        }
        let mut log = self.log.borrow_mut();
        let lost = log.iter().filter(|seen| !once.contains(&seen.message)).filter_map(|seen| {
            let event = match &*seen.event {
                "accepted" => "lost",
                "confirmed" => "confirmed and lost",
                _ => return None,
            };
            Some(Seen { event: event.into(), ..seen.clone() })
        });
        let lost: Vec<Seen> = lost.collect();
        log.extend(lost);
    }
}

/// The list to which the client writes at a node; in a cluster, a list in one of that node's slots.
fn list_of(rig: &Rig, node: &str) -> String {
    let slots = if rig.masters > 0 { rig.slots_of(node) } else { None };
    let is_there = |key: &String| {
        slots.is_none_or(|(first, last)| (first..=last).contains(&usize::from(key_slot(key.as_bytes()))))
    };
    ["w".to_owned()].into_iter().chain((0..).map(|at| format!("w{at}"))).find(is_there).expect("endless")
}
