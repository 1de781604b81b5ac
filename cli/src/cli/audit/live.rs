//! Audits the masters of a group while they run, and follows failovers.

use std::time::Duration;

use lockstorm::{
    audit::{self, Audit, Certificates, Deployment, Gentle, Master, Stop},
    run::real,
};
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::mpsc,
    task::JoinHandle,
    time::{MissedTickBehavior, interval, sleep, timeout},
};

use super::{
    line::Line,
    view::{self, View},
};

/// The interval between two looks at the clock and for Ctrl-C.
const TICK: Duration = Duration::from_millis(100);

/// The number of ticks between two updates of the output.
const TICKS_OF_OUTPUT: u64 = 10;

/// The shortest interval of reads.
pub(super) const POLL_MIN: Duration = TICK;

/// The longest time for connecting and logging in.
const PATIENCE: Duration = Duration::from_secs(10);

/// The interval at which Sentinels or nodes of a cluster are asked for the masters.
const SCAN: Duration = Duration::from_secs(1);

/// The audit ends when it is this far behind: the server keeps in memory all that is not read yet.
const BEHIND_MAX_US: i64 = 5_000_000;

/// The most bytes of a line that are kept.
const LINE_MAX: usize = 1 << 20;

/// A former master is followed for this long, or until it follows another master.
const FORMER_MAX: Duration = Duration::from_secs(60);

/// The most reads of all servers that wait to be audited.
const WAITING_MAX: usize = 64;

/// The limits of an audit of servers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Manner {
    /// The audit ends after this time.
    pub(super) length: Option<Duration>,
    /// The interval of reads, of an audit without MONITOR.
    pub(super) poll: Option<Duration>,
}

/// Audits a group for a time, or until Ctrl-C or the end of all connections.
pub(super) fn watch(
    audit: &mut Audit,
    urls: &[String],
    certificates: &Certificates,
    manner: Manner,
    options: &view::Options,
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().into_diagnostic()?;
    runtime.block_on(async {
        let group =
            audit::open(urls, certificates).map_err(|error| miette!("the address of the server: {error}"))?;
        let view = View::new(options)?;
        Watch::new(audit, group.fails_over(), manner, view).run(group).await
    })
}

/// An event of the group.
enum News {
    /// The present masters, or the reason why no one names them.
    Masters(Result<Vec<Master>, String>),
    /// Bytes from a node: the replies to the requests, then lines.
    Bytes(usize, Vec<u8>),
    /// The connection to a node is open, and this number of requests was sent.
    Opened(usize, usize),
    /// The connection to a node broke or could not be made.
    Ended(usize, String),
}

/// A node that is or was a master.
struct Node {
    master: Master,
    name: String,
    /// Its number in the audit.
    number: usize,
    stream: Stream,
    /// The task that reads its commands; `None` while it is not followed.
    task: Option<JoinHandle<()>>,
    /// Set while it is one of the masters.
    is_master: bool,
    /// The time since which it is not, while its clients may still be there.
    left: Option<Duration>,
    /// Set since its commands arrive, until the connection breaks.
    is_open: bool,
    /// The state of a connection without MONITOR, the way to it, and the time of the last requests.
    gentle: Option<Gentle>,
    requests: Option<mpsc::Sender<Vec<u8>>>,
    asked: Duration,
    /// Set once it refused a request that a gentle audit cannot do without. It is not asked again.
    is_refused: bool,
    /// Set if it sends too few events for a gentle audit.
    is_silent: bool,
}

/// An audit of a group.
struct Watch<'a> {
    audit: &'a mut Audit,
    nodes: Vec<Node>,
    fails_over: bool,
    view: View,
    manner: Manner,
    /// The time since the beginning.
    passed: Duration,
    send: mpsc::Sender<News>,
    news: mpsc::Receiver<News>,
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.nodes.iter_mut().filter_map(|node| node.task.take()).for_each(|task| task.abort());
    }
}

impl<'a> Watch<'a> {
    fn new(audit: &'a mut Audit, fails_over: bool, manner: Manner, view: View) -> Watch<'a> {
        let (send, news) = mpsc::channel(WAITING_MAX);
        let (nodes, passed) = (Vec::new(), Duration::ZERO);
        Watch { audit, nodes, fails_over, view, manner, passed, send, news }
    }

    async fn run(mut self, group: Deployment) -> Result<()> {
        let (mut ticks, mut count, begun) = (interval(TICK), 0_u64, real::wall());
        // After a pause of this process there is nothing to catch up with.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let scout = spawn(scout(group, self.fails_over, self.send.clone()));
        let done = loop {
            tokio::select! {
                biased;
                _ = ticks.tick() => {
                    self.passed = real::wall().since(begun);
                    if real::interrupted() || self.manner.length.is_some_and(|length| self.passed >= length) {
                        break Ok(());
                    }
                    self.poll();
                    self.leave_former();
                    let silent = self.nodes.iter().find(|node| node.task.is_some() && !node.is_open);
                    if let Some(silent) = silent.filter(|_| !self.fails_over && self.passed > PATIENCE) {
                        break Err(miette!("{} does not answer", silent.name));
                    }
                    count += 1;
                    if count.is_multiple_of(TICKS_OF_OUTPUT) {
                        self.show();
                    }
                }
                Some(news) = self.news.recv() => {
                    match self.take(news) {
                        Ok(true) => {}
                        Ok(false) => break Ok(()),
                        Err(error) => break Err(error),
                    }
                }
            }
        };
        scout.abort();
        self.show();
        done
    }

    /// Shows the events since the last call, and the present state.
    fn show(&mut self) {
        let now_us = real::wall().as_micros();
        let is_gentle = self.manner.poll.is_some();
        let line = |node: &Node| Line {
            name: node.name.clone(),
            number: node.number,
            is_open: node.is_open,
            // A node that is gone gets the present time, too: its leases end, and its waiters give
            // up.
            present_us: match is_gentle {
                // Events have the time of this machine.
                true => Some(now_us),
                false => node.stream.nearest_us.map(|nearest| now_us - nearest),
            },
            lag_us: node.stream.lag_us,
            read_bytes: node.stream.bytes,
        };
        let lines: Vec<Line> = self.nodes.iter().map(line).collect();
        self.view.show(self.audit, &lines);
    }

    /// Takes an event. Returns false if no more will come.
    fn take(&mut self, news: News) -> Result<bool> {
        match news {
            News::Masters(Ok(masters)) => self.masters(masters),
            News::Masters(Err(why)) if self.nodes.is_empty() => return Err(miette!("{why}")),
            // The audit continues with the masters that it knows.
            News::Masters(Err(_)) => {}
            News::Opened(at, replies) => self.opened(at, replies),
            // Ignore bytes of a node that the audit has left.
            News::Bytes(at, _) if self.nodes[at].task.is_none() => {}
            News::Bytes(at, bytes) if self.nodes[at].gentle.is_some() => return self.events(at, &bytes),
            News::Bytes(at, bytes) if !self.nodes[at].is_master => self.former(at, &bytes)?,
            News::Bytes(at, bytes) => {
                let Node { stream, number, name, is_open, .. } = &mut self.nodes[at];
                stream.take(self.audit, *number, &bytes, &[]).wrap_err_with(|| name.clone())?;
                if stream.replies == 0 && !*is_open {
                    *is_open = true;
                    if self.fails_over {
                        self.audit.changed(*number, real::wall().as_micros(), "is followed");
                    }
                }
            }
            News::Ended(at, why) => return self.ended(at, &why),
        }
        Ok(true)
    }

    /// Begins to read a connection.
    fn opened(&mut self, at: usize, replies: usize) {
        let node = &mut self.nodes[at];
        node.stream = Stream { replies, ..node.stream.renewed() };
        if self.manner.poll.is_some() {
            let (gentle, bytes) = Gentle::begin(self.audit, node.number);
            (node.gentle, node.asked) = (Some(gentle), self.passed);
            node.request(bytes);
        }
    }

    /// Takes events and replies of a node without MONITOR. Returns false if no more will come.
    fn events(&mut self, at: usize, bytes: &[u8]) -> Result<bool> {
        let node = &mut self.nodes[at];
        let Some(gentle) = &mut node.gentle else { return Ok(true) };
        node.stream.bytes += bytes.len() as u64;
        let now_us = real::wall().as_micros();
        match gentle.take(self.audit, bytes, now_us) {
            Ok(()) => {}
            Err(Stop::Broken(why)) if self.fails_over => {
                node.task.take().inspect(JoinHandle::abort);
                return self.ended(at, &why);
            }
            Err(stop) => return self.refused(at, &stop.to_string()),
        }
        if node.is_open || !gentle.is_ready() {
            return Ok(true);
        }
        node.is_open = true;
        let lacks = gentle.lacks().map(str::to_owned);
        if let Some(lacks) = lacks {
            let (number, name) = (node.number, node.name.clone());
            node.is_silent = true;
            // A node that becomes a master later is audited by reads alone.
            if self.passed < PATIENCE && !self.has_usable() {
                return Err(miette!("{name}: {lacks}"));
            }
            self.audit.changed(number, now_us, "sends no events of locks");
            let what = "its locks were seen by reads only, and ends of holds were missed";
            self.audit.lacks(number, "events", &lacks, what);
        }
        if self.fails_over {
            self.audit.changed(self.nodes[at].number, now_us, "is followed");
        }
        Ok(true)
    }

    /// Returns true if a master may show its locks to a gentle audit.
    fn has_usable(&self) -> bool {
        self.nodes.iter().any(|node| node.is_master && !node.is_refused && !node.is_silent)
    }

    /// Leaves a node that refuses what a gentle audit needs. Returns false if no other master is
    /// left to be seen, and an error if the audit has seen nothing by then.
    fn refused(&mut self, at: usize, why: &str) -> Result<bool> {
        self.leave(at, &format!("is left: {why}"));
        self.nodes[at].is_refused = true;
        if self.nodes.iter().any(|node| node.is_master && !node.is_refused) {
            return Ok(true);
        }
        let has_seen = self.nodes.iter().any(|node| self.audit.changes_of(node.number) > 0);
        if has_seen { Ok(false) } else { Err(miette!("{}: {why}", self.nodes[at].name)) }
    }

    /// Asks the nodes without MONITOR for the keys that changed.
    fn poll(&mut self) {
        let Some(poll) = self.manner.poll else { return };
        for node in self.nodes.iter_mut().filter(|node| node.is_open) {
            let Some(gentle) = &mut node.gentle else { continue };
            if self.passed.saturating_sub(node.asked) >= poll {
                node.asked = self.passed;
                let bytes = gentle.poll(self.audit);
                node.request(bytes);
            }
        }
    }

    /// Takes the lines of a former master, which serves its clients until it learns of the new one.
    fn former(&mut self, at: usize, bytes: &[u8]) -> Result<()> {
        let masters: Vec<String> =
            self.nodes.iter().filter(|node| node.is_master).map(|node| node.name.clone()).collect();
        let Node { stream, number, name, .. } = &mut self.nodes[at];
        let before = self.audit.changes_of(*number);
        let follows = stream.take(self.audit, *number, bytes, &masters).wrap_err_with(|| name.clone())?;
        let now_us = real::wall().as_micros();
        if self.audit.changes_of(*number) > before && !std::mem::replace(&mut stream.is_noted, true) {
            self.audit.changed(*number, now_us, "still runs commands of clients on locks");
        }
        if let Some(master) = follows {
            self.leave(at, &format!("is left: it follows {master}"));
        }
        Ok(())
    }

    /// Leaves former masters that have not ended their connections.
    fn leave_former(&mut self) {
        for at in 0..self.nodes.len() {
            let is_over = |since: Duration| self.passed.saturating_sub(since) > FORMER_MAX;
            if self.nodes[at].task.is_some() && self.nodes[at].left.is_some_and(is_over) {
                self.leave(at, "is left");
            }
        }
    }

    fn leave(&mut self, at: usize, what: &str) {
        let node = &mut self.nodes[at];
        node.is_open = false;
        (node.left, node.gentle, node.requests) = (None, None, None);
        node.task.take().inspect(JoinHandle::abort);
        self.audit.changed(node.number, real::wall().as_micros(), what);
    }

    fn ended(&mut self, at: usize, why: &str) -> Result<bool> {
        let node = &mut self.nodes[at];
        (node.task, node.gentle, node.requests, node.left) = (None, None, None, None);
        let was_open = std::mem::take(&mut node.is_open);
        if !self.fails_over {
            if !was_open {
                return Err(miette!("{}: {why}", node.name));
            }
            return Ok(self.nodes.iter().any(|node| node.task.is_some()));
        }
        if was_open {
            self.audit.gap(node.number);
            self.audit.changed(node.number, real::wall().as_micros(), format!("is gone: {why}"));
        }
        Ok(true)
    }

    /// Follows the masters that are new, and leaves those that are masters no longer.
    fn masters(&mut self, masters: Vec<Master>) {
        let now_us = real::wall().as_micros();
        let is_listed = |node: &Node| masters.iter().any(|master| master.name() == node.name);
        let left: Vec<usize> = (0..self.nodes.len())
            .filter(|at| self.nodes[*at].is_master && !is_listed(&self.nodes[*at]))
            .collect();
        for at in &left {
            let node = &mut self.nodes[*at];
            node.is_master = false;
            self.audit.changed(node.number, now_us, "is no master any more");
            // Sentinels let a former master serve its clients for seconds.
            if self.manner.poll.is_none() && node.is_open {
                node.left = Some(self.passed);
                node.stream.is_noted = false;
                continue;
            }
            node.is_open = false;
            (node.gentle, node.requests) = (None, None);
            node.task.take().inspect(JoinHandle::abort);
        }
        for master in masters {
            let name = master.name();
            let known = self.nodes.iter().position(|node| node.name == name);
            let at = known.unwrap_or_else(|| {
                let (number, stream) = (self.audit.node(&name), Stream::default());
                let (master, task) = (master.clone(), None);
                self.nodes.push(Node {
                    master,
                    name,
                    number,
                    stream,
                    task,
                    is_master: false,
                    left: None,
                    is_open: false,
                    gentle: None,
                    requests: None,
                    asked: Duration::ZERO,
                    is_refused: false,
                    is_silent: false,
                });
                self.nodes.len() - 1
            });
            if !self.nodes[at].is_master {
                if known.is_some() {
                    self.audit.gap(self.nodes[at].number);
                }
                // In a cluster, the former master is the one that had the first of these slots.
                let had = |one: &&usize| match master.slots().first() {
                    Some(slots) => {
                        self.nodes[**one].master.slots().iter().any(|had| had.contains(slots.start()))
                    }
                    None => true,
                };
                if let Some(old) = left.iter().find(had) {
                    self.audit.replaced(self.nodes[*old].number, self.nodes[at].number, now_us);
                }
            }
            let send = self.send.clone();
            let node = &mut self.nodes[at];
            (node.is_master, node.master, node.left) = (true, master.clone(), None);
            if node.task.is_none() && !node.is_refused {
                let (requests, from) = mpsc::channel(WAITING_MAX);
                node.requests = Some(requests);
                let is_gentle = self.manner.poll.is_some();
                node.task = Some(spawn(read(at, master, is_gentle, send, from)));
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "servers in production have ambient tasks")]
fn spawn(task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    tokio::spawn(task)
}

/// Asks for the masters: once, or again and again if they change.
#[expect(clippy::disallowed_methods, reason = "groups in production change in real time")]
async fn scout(group: Deployment, fails_over: bool, send: mpsc::Sender<News>) {
    loop {
        let masters = group.masters().await.map_err(|error| error.to_string());
        if send.send(News::Masters(masters)).await.is_err() || !fails_over {
            return;
        }
        sleep(SCAN).await;
    }
}

impl Node {
    /// Sends requests. A connection that does not take them is about to end.
    fn request(&self, bytes: Vec<u8>) {
        if let Some(requests) = self.requests.as_ref().filter(|_| !bytes.is_empty()) {
            let _ = requests.try_send(bytes);
        }
    }
}

/// Reads the commands or events of a master until the connection ends.
async fn read(
    at: usize,
    master: Master,
    is_gentle: bool,
    send: mpsc::Sender<News>,
    requests: mpsc::Receiver<Vec<u8>>,
) {
    let why = match reading(at, &master, is_gentle, &send, requests).await {
        Ok(()) => "it closed the connection".to_owned(),
        Err(why) => why,
    };
    // The other side is gone only when the audit has ended.
    let _ = send.send(News::Ended(at, why)).await;
}

#[expect(clippy::disallowed_methods, reason = "servers in production answer in real time")]
async fn reading(
    at: usize,
    master: &Master,
    is_gentle: bool,
    send: &mpsc::Sender<News>,
    mut requests: mpsc::Receiver<Vec<u8>>,
) -> Result<(), String> {
    let login = master.login().await.map_err(|error| error.to_string())?;
    let dialed = timeout(PATIENCE, master.dial()).await.map_err(|_| "it does not answer".to_owned())?;
    let mut stream = dialed.map_err(|error| error.to_string())?;
    let first = if is_gentle { vec![audit::hello(&login)] } else { audit::requests(&login) };
    stream.write_all(&first.concat()).await.map_err(|error| error.to_string())?;
    stream.flush().await.map_err(|error| error.to_string())?;
    let mut news = News::Opened(at, first.len());
    let mut buffer = vec![0; 1 << 16];
    loop {
        if send.send(news).await.is_err() {
            return Ok(());
        }
        news = loop {
            tokio::select! {
                biased;
                read = stream.read(&mut buffer) => {
                    match read.map_err(|error| format!("the connection broke: {error}"))? {
                        0 => return Ok(()),
                        count => break News::Bytes(at, buffer[..count].to_vec()),
                    }
                }
                Some(bytes) = requests.recv() => {
                    stream.write_all(&bytes).await.map_err(|error| error.to_string())?;
                    stream.flush().await.map_err(|error| error.to_string())?;
                }
            }
        };
    }
}

/// The state of the stream of lines.
#[derive(Debug, Default)]
struct Stream {
    /// The number of replies that come before the first line of MONITOR.
    replies: usize,
    /// The line that has not ended.
    line: Vec<u8>,
    number: u64,
    /// Set once the audit has noted that clients still use a former master.
    is_noted: bool,
    /// The least difference between the clock here and the server's, in microseconds.
    nearest_us: Option<i64>,
    /// The amount by which the difference is greater at the last command, in microseconds.
    lag_us: i64,
    /// The number of bytes of all connections.
    bytes: u64,
}

impl Stream {
    /// Returns the state for a new connection, which goes on to count lines.
    fn renewed(&self) -> Stream {
        Stream { number: self.number, bytes: self.bytes, ..Stream::default() }
    }

    /// Takes bytes from the server. Returns the one of `masters` that the server follows, if a
    /// command came from there.
    fn take(
        &mut self,
        audit: &mut Audit,
        node: usize,
        bytes: &[u8],
        masters: &[String],
    ) -> Result<Option<String>> {
        let is_new = self.replies > 0;
        self.bytes += bytes.len() as u64;
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LINE_MAX.saturating_sub(self.line.len());
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            if part.last() != Some(&b'\n') {
                continue;
            }
            let mut line = std::mem::take(&mut self.line);
            while matches!(line.last(), Some(b'\r' | b'\n')) {
                line.pop();
            }
            if self.replies > 0 {
                self.replies -= 1;
                // A server may forbid CLIENT SETNAME, but neither the login nor MONITOR.
                let is_needed = self.replies != 1;
                if line.first() == Some(&b'-') && is_needed {
                    return Err(miette!("the server refuses: {}", String::from_utf8_lossy(&line[1..])));
                }
            } else {
                let follows = masters.iter().find(|master| audit::is_from(&line, master));
                if let Some(master) = follows {
                    return Ok(Some(master.clone()));
                }
                self.number += 1;
                audit.take_text(node, self.number, &line);
            }
            line.clear();
            self.line = line;
        }
        // The last line may be from before the connection.
        if !is_new {
            self.is_near(audit, node)?;
        }
        Ok(None)
    }

    /// Returns an error if the audit falls behind the server.
    fn is_near(&mut self, audit: &Audit, node: usize) -> Result<()> {
        let Some(at_us) = audit.now_us(node) else { return Ok(()) };
        let apart_us = real::wall().as_micros() - at_us;
        let nearest_us = self.nearest_us.map_or(apart_us, |nearest| nearest.min(apart_us));
        self.nearest_us = Some(nearest_us);
        self.lag_us = apart_us - nearest_us;
        match self.lag_us > BEHIND_MAX_US {
            true => Err(miette!(
                "the server runs more commands than this audit can follow; it was left alone, \
                 because it keeps in memory what a monitor has not read"
            )),
            false => Ok(()),
        }
    }
}
