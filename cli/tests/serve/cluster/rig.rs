//! Nodes of a cluster, named a, b, ..; each is a process of Redis or of lockstorm at its own port.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{ErrorKind, Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU16, Ordering},
    thread,
    time::{Duration, Instant},
};

use lockstorm_sim::{
    generation::Generation,
    resp::{Reply, ReplyReader},
};

use crate::served::{INSTALLED, PATIENCE, folder, program};

/// `cluster-node-timeout`: longer than the pauses of a busy machine, after which the others would
/// elect another master; and short, because views spread by pings every half of this time.
const NODE_TIMEOUT_MS: u32 = 4_000;

/// Difference between the port of the bus and the client port.
const BUS: u16 = 10_000;

/// The implementation of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The `redis-server` on the PATH.
    Redis,
    /// The simulated server of its generation.
    Ours,
    /// The real server of a generation.
    RealOf(Generation),
    /// The simulated server of a generation.
    OursAs(Generation),
}

#[expect(clippy::disallowed_methods, reason = "it waits for real processes")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "a real process comes round in its own time")]
pub(crate) fn wait() {
    thread::sleep(Duration::from_millis(20));
}

/// Waits until `told` succeeds; panics with its last error otherwise.
#[track_caller]
pub(crate) fn until(what: &str, mut told: impl FnMut() -> Result<(), String>) {
    let began = now();
    loop {
        match told() {
            Ok(()) => return,
            Err(last) => assert!(began.elapsed() < PATIENCE, "in vain: {what}: {last}"),
        }
        wait();
    }
}

/// A free port whose bus port is free as well, outside the range of outgoing connections.
pub(crate) fn free_port() -> u16 {
    static TRIED: AtomicU16 = AtomicU16::new(0);
    let first = 11_000 + (std::process::id() % 1_000) as u16 * 10;
    for _ in 0..1_000 {
        let port = 11_000 + (first - 11_000 + TRIED.fetch_add(1, Ordering::Relaxed)) % 10_000;
        let free = [port, port + BUS].map(|port| TcpListener::bind(("127.0.0.1", port)));
        if free.iter().all(Result::is_ok) {
            return port;
        }
    }
    panic!("there is no free port");
}

/// A connection for commands.
pub(crate) struct Line {
    stream: TcpStream,
    answers: ReplyReader,
}

impl Line {
    pub(crate) fn to(port: u16) -> std::io::Result<Line> {
        #[expect(clippy::disallowed_methods, reason = "a client on the real network")]
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Line { stream, answers: ReplyReader::default() })
    }

    pub(crate) fn send(&mut self, words: &[String]) {
        let mut bytes = format!("*{}\r\n", words.len());
        for word in words {
            bytes += &format!("${}\r\n{word}\r\n", word.len());
        }
        self.stream.write_all(bytes.as_bytes()).expect("open");
    }

    /// The next reply or message.
    pub(crate) fn receive(&mut self) -> Reply {
        loop {
            if let Some(reply) = self.answers.next().expect("replies") {
                return reply;
            }
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Reply::Error("closed".into()),
                Ok(len) => self.answers.feed(&bytes[..len]),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Reply::Error("nothing".into());
                }
                Err(error) => return Reply::Error(error.to_string().into()),
            }
        }
    }
}

/// A reply in one line.
pub(crate) fn text(reply: &Reply) -> String {
    let all = |items: &[Reply]| items.iter().map(text).collect::<Vec<_>>().join(" ");
    let quoted = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).replace('\r', "\\r").replace('\n', "\\n");
        format!("\"{text}\"")
    };
    match reply {
        Reply::Status(text) => format!("+{text}"),
        Reply::Error(text) => format!("-{text}"),
        Reply::Integer(number) => format!(":{number}"),
        Reply::Bulk(bytes) => quoted(bytes),
        Reply::Verbatim(_, bytes) => quoted(bytes),
        Reply::Array(items) | Reply::Push(items) | Reply::Set(items) => format!("[{}]", all(items)),
        Reply::Map(pairs) => {
            let pairs = pairs.iter().map(|(key, value)| format!("{}={}", text(key), text(value)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(" "))
        }
        Reply::Null | Reply::NullArray => "nil".to_owned(),
        other => format!("{other:?}"),
    }
}

/// A node of the cluster.
pub(crate) struct Node {
    pub(crate) whose: Whose,
    pub(crate) port: u16,
    pub(crate) id: String,
    node_timeout_ms: u32,
    folder: PathBuf,
    child: Child,
    lines: BTreeMap<String, Line>,
}

impl Node {
    fn start(whose: Whose, node_timeout_ms: u32, folder: PathBuf) -> Node {
        fs::create_dir_all(&folder).expect("a folder");
        for _ in 0..5 {
            let port = free_port();
            if let Some(child) = run(whose, port, node_timeout_ms, &folder) {
                let (id, lines) = (String::new(), BTreeMap::new());
                let mut node = Node { whose, port, id, node_timeout_ms, folder, child, lines };
                node.id = node.ask("CLUSTER MYID").trim_matches('"').to_owned();
                return node;
            }
        }
        panic!("{whose:?} does not start: {}", log(&folder));
    }

    /// Kills the process.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.lines.clear();
    }

    /// Starts it again in its folder, perhaps with the other implementation.
    pub(crate) fn start_as(&mut self, whose: Whose) {
        self.kill();
        self.whose = whose;
        let started = run(whose, self.port, self.node_timeout_ms, &self.folder);
        self.child = started.unwrap_or_else(|| panic!("it does not start again: {}", log(&self.folder)));
    }

    /// The connection of this name; opens it at its first use.
    pub(crate) fn line(&mut self, name: &str) -> &mut Line {
        let port = self.port;
        self.lines.entry(name.to_owned()).or_insert_with(|| Line::to(port).expect("it listens"))
    }

    /// The reply to a command line, whose words are separated by blanks.
    pub(crate) fn ask(&mut self, command: &str) -> String {
        let line = self.line("");
        line.send(&command.split(' ').map(str::to_owned).collect::<Vec<_>>());
        text(&line.receive())
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(crate) fn log(folder: &Path) -> String {
    fs::read_to_string(folder.join("log")).unwrap_or_default()
}

/// Spawns a process in a folder; its output goes to the file `log`.
pub(crate) fn spawn(command: &mut Command, folder: &Path) -> Child {
    let log = File::options().create(true).append(true).open(folder.join("log")).expect("a log");
    command
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(log.try_clone().expect("a log"))
        .stderr(log)
        .spawn()
        .expect("it runs")
}

/// Starts a process; `None` if it does not begin to listen.
fn run(whose: Whose, port: u16, node_timeout_ms: u32, folder: &Path) -> Option<Child> {
    let timeout = node_timeout_ms.to_string();
    let options = [
        ("cluster-enabled", "yes"),
        ("cluster-node-timeout", timeout.as_str()),
        ("repl-diskless-sync-delay", "0"),
        ("save", ""),
        ("enable-debug-command", "yes"),
    ];
    let mut command = match whose {
        Whose::Ours | Whose::OursAs(_) => {
            let mut command = Command::new(env!("CARGO_BIN_EXE_lockstorm"));
            command.args(["serve", "--end-with-stdin", "--data", "."]);
            let generation = if let Whose::OursAs(generation) = whose { generation } else { INSTALLED };
            command.args(["--as", generation.name()]);
            for (name, value) in options {
                command.args(["--option", &format!("{name}={value}")]);
            }
            command
        }
        Whose::Redis | Whose::RealOf(_) => {
            let mut command = match whose {
                Whose::RealOf(generation) => Command::new(program(generation).expect("it is installed")),
                _ => Command::new("redis-server"),
            };
            // Redis 6.2 allows DEBUG, and has no option for it.
            let is_known = |name: &str| match whose {
                Whose::RealOf(Generation::Redis62) => name != "enable-debug-command",
                _ => true,
            };
            for (name, value) in options.into_iter().filter(|(name, _)| is_known(name)) {
                command.args([&format!("--{name}"), value]);
            }
            command
        }
    };
    let mut child = spawn(command.args(["--port", &port.to_string()]), folder);
    let began = now();
    while child.try_wait().expect("a child").is_none() && began.elapsed() < PATIENCE {
        if Line::to(port).is_ok() {
            return Some(child);
        }
        wait();
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}

/// Nodes by name: the masters `a`, `b` and `c`, and their replicas `d`, `e` and `f`, unless
/// `redis-cli` assigns these roles.
pub(crate) struct Group {
    pub(crate) nodes: BTreeMap<char, Node>,
    node_timeout_ms: u32,
    folder: PathBuf,
}

impl Group {
    /// Starts nodes that do not know each other.
    pub(crate) fn apart(name: &str, whose: &[Whose]) -> Group {
        Group::apart_within(name, whose, NODE_TIMEOUT_MS)
    }

    fn apart_within(name: &str, whose: &[Whose], node_timeout_ms: u32) -> Group {
        let folder = folder(&format!("cluster_{name}"));
        let mut group = Group { nodes: BTreeMap::new(), node_timeout_ms, folder };
        for (name, whose) in ('a'..).zip(whose) {
            group.add(name, *whose);
        }
        group
    }

    /// Starts three masters with a replica each.
    pub(crate) fn together(name: &str, whose: [Whose; 6]) -> Group {
        Group::together_within(name, &whose, NODE_TIMEOUT_MS)
    }

    /// Starts three masters, and replicas of the first ones, with this node timeout.
    pub(crate) fn together_within(name: &str, whose: &[Whose], node_timeout_ms: u32) -> Group {
        let mut group = Group::apart_within(name, whose, node_timeout_ms);
        let replicas: Vec<char> = ('d'..).take(whose.len() - 3).collect();
        let slots = [(0, 5460), (5461, 10922), (10923, 16383)];
        for ((name, epoch), (first, last)) in ('a'..).zip(1..).zip(slots) {
            let node = group.node(name);
            // Redis 6.2 has no ADDSLOTSRANGE.
            let slots: Vec<String> = (first..=last).map(|slot: u16| slot.to_string()).collect();
            assert_eq!(node.ask(&format!("CLUSTER ADDSLOTS {}", slots.join(" "))), "+OK");
            assert_eq!(node.ask(&format!("CLUSTER SET-CONFIG-EPOCH {epoch}")), "+OK");
        }
        // Masters without epochs would draw them.
        for (name, epoch) in replicas.iter().zip(4..) {
            assert_eq!(group.node(*name).ask(&format!("CLUSTER SET-CONFIG-EPOCH {epoch}")), "+OK");
        }
        let ports: Vec<u16> = group.nodes.values().map(|node| node.port).collect();
        for port in &ports[1..] {
            assert_eq!(group.node('a').ask(&format!("CLUSTER MEET 127.0.0.1 {port}")), "+OK");
        }
        group.until_all("CLUSTER NODES", |nodes| {
            nodes.matches("connected").count() == whose.len()
                && !nodes.contains("handshake")
                && !nodes.contains("disconnected")
        });
        for (master, replica) in ('a'..).zip(&replicas) {
            let id = group.nodes[&master].id.clone();
            assert_eq!(group.node(*replica).ask(&format!("CLUSTER REPLICATE {id}")), "+OK");
        }
        group.until_ok();
        group.until_all("CLUSTER NODES", |nodes| nodes.matches("slave").count() == replicas.len());
        group
    }

    pub(crate) fn add(&mut self, name: char, whose: Whose) {
        let node = Node::start(whose, self.node_timeout_ms, self.folder.join(name.to_string()));
        self.nodes.insert(name, node);
    }

    pub(crate) fn node(&mut self, name: char) -> &mut Node {
        self.nodes.get_mut(&name).expect("a node of this group")
    }

    /// Waits until each node gives such a reply.
    #[track_caller]
    pub(crate) fn until_all(&mut self, command: &str, is: impl Fn(&str) -> bool) {
        for (name, node) in &mut self.nodes {
            until(&format!("{command} of {name}"), || {
                let answer = node.ask(command);
                if is(&answer) { Ok(()) } else { Err(answer) }
            });
        }
    }

    /// Waits until the cluster is healthy in every node's view, and all replicas are linked.
    #[track_caller]
    pub(crate) fn until_ok(&mut self) {
        self.until_all("CLUSTER INFO", |info| info.contains("cluster_state:ok"));
        self.until_all("INFO replication", |info| {
            info.contains("role:master") || info.contains("master_link_status:up")
        });
    }

    /// Replaces IDs, addresses and ports by names in a text.
    pub(crate) fn named(&self, text: &str) -> String {
        self.nodes.iter().fold(text.to_owned(), |text, (name, node)| {
            let bus = format!("@{}", node.port + BUS);
            text.replace(&node.id, &format!("<{name}>"))
                .replace(&node.address(), &name.to_string())
                .replace(&bus, &format!("@bus-{name}"))
                .replace(&format!(":{}", node.port), &format!(":port-{name}"))
                .replace(&format!("\"{}\"", node.port), &format!("\"port-{name}\""))
                .replace(&format!("master_port:{}", node.port), &format!("master_port:port-{name}"))
        })
    }

    /// The value of a transcript's word: IDs and ports in place of names.
    pub(crate) fn meant(&self, word: &str) -> String {
        self.nodes.iter().fold(word.to_owned(), |word, (name, node)| {
            let word = word.replace(&format!("<{name}>"), &node.id);
            if word == format!("port-{name}") { node.port.to_string() } else { word }
        })
    }
}
