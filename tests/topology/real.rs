//! A rig of real processes in real time: `redis-server` and `redis-sentinel`, with relays between
//! them.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    fs,
    io::{self, BufRead, BufReader},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    process::{Child, Command, Stdio},
    rc::Rc,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::net::TcpStream;

use crate::{
    client::{Asking, Client, Place, text},
    clock::Clocks,
    cluster,
    relay::{self, Addresses, BEHIND, Cuts, Relays},
    row::{Act, Row},
    seen::{Log, Seen},
    simulated::{hosts, phase},
};

/// Difference between the port of the cluster bus and the client port.
const BUS: u16 = 10_000;

/// Time limit for the start of a rig.
const PATIENCE: Duration = Duration::from_secs(40);

#[expect(clippy::disallowed_methods, reason = "real processes are measured by real time")]
fn instant() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "real processes run in real time")]
async fn sleep(length: Duration) {
    tokio::time::sleep(length).await;
}

/// The result of `work`, or `None` if it is not done within `length`.
#[expect(clippy::disallowed_methods, reason = "real processes run in real time")]
async fn within<T>(length: Duration, work: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(length, work).await.ok()
}

fn port(host: &str) -> u16 {
    if host.starts_with('s') { 26379 } else { 6379 }
}

/// The client's environment on this machine.
#[derive(Clone)]
struct Machine {
    zero: Instant,
    addresses: Rc<Addresses>,
}

impl Machine {
    fn at(&self, instant: Instant) -> i64 {
        let after = instant.saturating_duration_since(self.zero).as_millis() as i64;
        let before = self.zero.saturating_duration_since(instant).as_millis() as i64;
        after - before
    }
}

impl Place for Machine {
    type Stream = TcpStream;

    async fn dial(&self, host: &str) -> io::Result<TcpStream> {
        relay::dial(self.addresses.of("client"), SocketAddr::new(self.addresses.of(host), port(host))).await
    }

    fn now(&self) -> i64 {
        self.at(instant())
    }

    async fn until(&self, at: i64) {
        sleep(Duration::from_millis((at - self.now()).max(0).unsigned_abs())).await;
    }

    fn peer(&self, stream: &TcpStream) -> io::Result<String> {
        Ok(stream.peer_addr()?.ip().to_string())
    }

    fn host_at(&self, address: &str) -> Option<String> {
        self.addresses.name(address.parse().ok()?).map(str::to_owned)
    }

    fn address(&self, host: &str) -> String {
        self.addresses.of(host).to_string()
    }

    fn named(&self, text: &str) -> String {
        self.addresses.named(text)
    }
}

/// Lines of logs: the process, the time and the text.
type Lines = Arc<Mutex<Vec<(String, Instant, String)>>>;

/// The processes of a rig. Dropping this kills them and deletes their folder.
struct Processes {
    folder: PathBuf,
    commands: BTreeMap<String, Vec<String>>,
    children: BTreeMap<String, Child>,
    lines: Lines,
    /// Set if the row steps a wall clock.
    clocks: Option<Clocks>,
}

impl Processes {
    fn start(&mut self, name: &str) -> io::Result<()> {
        let program = if name.starts_with('s') { "redis-sentinel" } else { "redis-server" };
        let mut command = Command::new(program);
        command.args(&self.commands[name]).current_dir(self.folder.join(name));
        if let Some(clocks) = &self.clocks {
            clocks.keep(name, &mut command)?;
        }
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let (out, lines, by) = (child.stdout.take().expect("a pipe"), self.lines.clone(), name.to_owned());
        thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                lines.lock().unwrap_or_else(PoisonError::into_inner).push((by.clone(), instant(), line));
            }
        });
        self.children.insert(name.to_owned(), child);
        Ok(())
    }

    fn signal(&self, name: &str, signal: Signal) {
        if let Some(child) = self.children.get(name) {
            // The process may have ended by itself.
            let _ = kill_process(Pid::from_child(child), signal);
        }
    }

    fn kill(&mut self, name: &str) {
        if let Some(mut child) = self.children.remove(name) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// The events in the Sentinels' logs.
    fn events(&self, place: &Machine) -> Vec<Seen> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let event = |(by, at, line): &(String, Instant, String)| {
            // 1:X 01 Jan 2024 00:00:00.000 # +sdown master main ..
            let said = line.splitn(7, ' ').nth(6).filter(|_| by.starts_with('s'))?;
            let (event, message) = said.split_once(' ').unwrap_or((said, ""));
            let is_event = event.starts_with(['+', '-']) && event.len() > 2;
            let seen = || Seen {
                at: place.at(*at),
                by: by.clone(),
                event: event.to_owned(),
                message: place.addresses.named(message),
            };
            is_event.then(seen)
        };
        lines.iter().filter_map(event).collect()
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for name in self.children.keys().cloned().collect::<Vec<_>>() {
            self.kill(&name);
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Plays a row once.
///
/// # Errors
/// The reason why the rig did not start.
pub(crate) fn play(row: &Row, run: u64) -> Result<Vec<Seen>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    tokio::task::LocalSet::new().block_on(&runtime, play_here(row, run))
}

/// Addresses that no other rig of this machine has: one network for each test process, and in it
/// one for each rig.
fn addresses(row: &Row) -> Addresses {
    static RIGS: AtomicU8 = AtomicU8::new(0);
    let process = (std::process::id() % 200) as u8 + 20;
    let rig = RIGS.fetch_add(1, Ordering::Relaxed);
    let names = row.rig.nodes().into_iter().chain(row.rig.sentinels()).chain(["client".to_owned()]);
    let address = |number: u8| IpAddr::V4(Ipv4Addr::new(127, process, rig, 11 + number));
    Addresses((0..).zip(names).map(|(number, name)| (name, address(number))).collect())
}

/// The folder for the processes' files, in memory if possible. A Sentinel fsyncs its state before
/// it asks for votes and before it gives one, and reads nothing during the fsync: on a slow disk
/// votes are split more often.
fn folder() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    match std::env::var_os("LOCKSTORM_TOPOLOGY_FOLDER") {
        Some(folder) => folder.into(),
        None if memory.is_dir() => memory,
        None => std::env::temp_dir(),
    }
}

async fn play_here(row: &Row, run: u64) -> Result<Vec<Seen>, String> {
    let addresses = Rc::new(addresses(row));
    let why = |error: io::Error| error.to_string();
    let name = format!("lockstorm-topology-{}-{}", std::process::id(), addresses.of(&row.rig.nodes()[0]));
    let mut processes = Processes {
        folder: folder().join(name),
        commands: BTreeMap::new(),
        children: BTreeMap::new(),
        lines: Lines::default(),
        clocks: None,
    };
    let cuts = Cuts::default();
    let mut relays = Relays::new(cuts.clone());
    let (nodes, sentinels) = (row.rig.nodes(), row.rig.sentinels());
    for name in nodes.iter().chain(&sentinels) {
        let at = addresses.of(name);
        fs::create_dir_all(processes.folder.join(name)).map_err(why)?;
        let bus = (row.rig.masters > 0).then(|| port(name) + BUS);
        let ports = [port(name)].into_iter().chain(bus);
        relays.open(name, ports.map(|port| SocketAddr::new(at, port)).collect()).map_err(why)?;
        let own = (port(name) + BEHIND).to_string();
        let at = at.to_string();
        let mut file = format!("port {own}\nbind {at}\nbind-source-addr {at}\nloglevel verbose\n");
        if name.starts_with('s') {
            file += &row.rig.file(&at, &addresses.of("m").to_string());
        } else if row.rig.masters > 0 {
            let timeout = row.rig.node_timeout;
            file += &format!(
                "cluster-enabled yes\ncluster-node-timeout {timeout}\ncluster-announce-ip {at}\ncluster-announce-port 6379\n\
                 cluster-announce-bus-port 16379\nprotected-mode no\nsave \"\"\nrepl-diskless-sync-delay 0\n"
            );
            for (option, value) in row.rig.options_of(name) {
                file += &format!("{option} {value}\n");
            }
        } else {
            file += &format!(
                "replica-announce-ip {at}\nreplica-announce-port 6379\nprotected-mode no\nsave \"\"\nrepl-diskless-sync-delay 0\n"
            );
            if name != "m" {
                file += &format!("replicaof {} 6379\n", addresses.of("m"));
            }
            for (option, value) in row.rig.options_of(name) {
                file += &format!("{option} {value}\n");
            }
        }
        fs::write(processes.folder.join(name).join("own.conf"), file).map_err(why)?;
        processes.commands.insert(name.clone(), vec!["own.conf".into()]);
    }
    if row.acts.iter().any(|(_, act)| matches!(act, Act::Step(..))) {
        processes.clocks = Some(Clocks::compile(&processes.folder).map_err(why)?);
    }
    let begun = instant();
    let place = Machine { zero: begun, addresses: addresses.clone() };
    for name in &nodes {
        processes.start(name).map_err(why)?;
    }
    for name in &nodes {
        until(&place, begun, name, "PING", |pong| pong == "PONG").await?;
    }
    for name in nodes.iter().skip(1).filter(|_| row.rig.masters == 0) {
        until(&place, begun, name, "INFO replication", |info| info.contains("master_link_status:up")).await?;
    }
    let started = instant();
    for name in &sentinels {
        processes.start(name).map_err(why)?;
    }
    let log: Log = Rc::new(RefCell::new(Vec::new()));
    let making = Client::new(place.clone(), log.clone());
    let zero = if row.rig.starts_at_zero {
        started
    } else if row.rig.masters > 0 {
        within(PATIENCE, cluster::make(&making, &row.rig)).await.ok_or("the cluster is not made")?;
        instant() + Duration::from_millis(2_100 + phase(run) as u64)
    } else {
        let (replicas, others) = (row.rig.replicas, row.rig.sentinels - 1);
        for name in &sentinels {
            let knows = |map: String| {
                let is = |key: &str, value: usize| map.contains(&format!("{key} {value} "));
                is("num-slaves", replicas)
                    && is("num-other-sentinels", others)
                    && map.contains("flags master ")
            };
            until(&place, begun, name, "SENTINEL MASTER main", knows).await?;
        }
        instant() + Duration::from_millis(1_100 + phase(run) as u64)
    };
    if let Some(clocks) = &processes.clocks {
        processes.children.values().try_for_each(|child| clocks.is_kept_by(child.id())).map_err(why)?;
    }
    let place = Machine { zero, addresses: addresses.clone() };
    let mut client = Client::new(place.clone(), log.clone());
    (client.ids, client.addresses) = (making.ids, making.addresses);
    let played = *row;
    let watching = tokio::task::spawn_local(async move { client.play(&played).await });
    for (at, act) in row.acts {
        place.until(*at).await;
        let seen = processes.events(&place);
        perform(act, &seen, &mut processes, &mut relays, &cuts, &addresses).map_err(why)?;
        // Let the closed relays stop before the next act.
        tokio::task::yield_now().await;
    }
    watching.await.map_err(|error| error.to_string())?;
    let mut seen = log.take();
    seen.extend(processes.events(&place).into_iter().filter(|seen| seen.at <= row.lasts));
    seen.sort_by_key(|seen| seen.at);
    Ok(seen)
}

/// Waits until a process gives this reply.
async fn until(
    place: &Machine,
    begun: Instant,
    host: &str,
    command: &str,
    is: impl Fn(String) -> bool,
) -> Result<(), String> {
    let mut last = String::new();
    while begun.elapsed() < PATIENCE {
        if let Ok(stream) = place.dial(host).await
            && let Ok(reply) = Asking::new(stream).ask(command).await
        {
            last = text(&reply);
            if is(last.clone()) {
                return Ok(());
            }
        }
        sleep(Duration::from_millis(20)).await;
    }
    Err(format!("{host} does not come up: {command} is answered with {last:?}"))
}

fn perform(
    act: &Act,
    seen: &[Seen],
    processes: &mut Processes,
    relays: &mut Relays,
    cuts: &Cuts,
    addresses: &Addresses,
) -> io::Result<()> {
    let set_one_way = |from: &str, to: &str, cut: bool| {
        for one in hosts(from, seen) {
            for other in hosts(to, seen) {
                cuts.set(addresses.of(&one), addresses.of(&other), cut);
            }
        }
    };
    let set = |one: &str, other: &str, cut: bool| {
        set_one_way(one, other, cut);
        set_one_way(other, one, cut);
    };
    match *act {
        Act::Kill(names) => {
            for name in hosts(names, seen) {
                relays.close(&name);
                processes.kill(&name);
            }
        }
        Act::Start(names) => {
            for name in hosts(names, seen) {
                // It may have ended by itself: kill it anyway before the restart.
                processes.kill(&name);
                relays.reopen(&name)?;
                processes.start(&name)?;
            }
        }
        Act::Freeze(names) => {
            hosts(names, seen).iter().for_each(|name| processes.signal(name, Signal::STOP));
        }
        Act::Thaw(names) => hosts(names, seen).iter().for_each(|name| processes.signal(name, Signal::CONT)),
        Act::Cut(from, to) => set(from, to, true),
        Act::Heal(from, to) => set(from, to, false),
        Act::CutOneWay(from, to) => set_one_way(from, to, true),
        Act::HealOneWay(from, to) => set_one_way(from, to, false),
        Act::Slow(from, to, by) => {
            for one in hosts(from, seen) {
                for other in hosts(to, seen) {
                    cuts.slow(addresses.of(&one), addresses.of(&other), Duration::from_millis(by));
                }
            }
        }
        // The client sends commands itself.
        Act::Run(..) => {}
        Act::Step(names, by) => {
            let clocks = processes.clocks.as_ref().expect("a row that steps has clocks");
            for name in hosts(names, seen) {
                clocks.step(&name, by)?;
            }
        }
    }
    Ok(())
}
