//! Private deployments of each topology: `redis-server` and `redis-sentinel` processes on loopback
//! ports.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use lockstorm_client::{Builder, Client};
use redis::Value;

use crate::support::program::Program;
use crate::support::{RedisServer, comes_up, eventually, free_port};

/// The time in milliseconds after which a Sentinel or a cluster node counts as down.
const DOWN_AFTER_MS: &str = "1000";

/// The master's name in the Sentinels.
pub(crate) const MASTER: &str = "mymaster";

/// The topologies that a client supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Topology {
    Single,
    ReplicaSet,
    Sentinel,
    Cluster,
}

impl Topology {
    pub(crate) const ALL: [Self; 4] = [Self::Single, Self::ReplicaSet, Self::Sentinel, Self::Cluster];
}

/// A deployment; dropping it ends its processes.
pub(crate) enum Deployment {
    Single(RedisServer),
    ReplicaSet(Vec<RedisServer>),
    Sentinel(Watched),
    Cluster(Cluster),
}

impl Deployment {
    /// Starts a deployment; `None` if `redis-server` is not installed.
    pub(crate) async fn start(program: &Program, topology: Topology) -> Option<Self> {
        Some(match topology {
            Topology::Single => Self::Single(RedisServer::start_on(program, |_| Vec::new())?),
            Topology::ReplicaSet => Self::ReplicaSet(replicated(program, 1, &[]).await?),
            Topology::Sentinel => Self::Sentinel(Watched::start_on(program, &[]).await?),
            Topology::Cluster => Self::Cluster(Cluster::start_on(program, &[]).await?),
        })
    }

    /// The settings of a client of this deployment.
    pub(crate) fn client(&self) -> Builder {
        let builder = patient();
        match self {
            Self::Single(server) => builder.endpoint(server.url()),
            Self::ReplicaSet(servers) => {
                servers.iter().rev().fold(builder, |builder, server| builder.endpoint(server.url()))
            }
            Self::Sentinel(watched) => builder.endpoint(watched.url()),
            Self::Cluster(cluster) => builder.endpoint(cluster.url()),
        }
    }
}

/// Settings that repeat until a failover is over even on a busy machine, with short delays.
pub(crate) fn patient() -> Builder {
    Client::builder()
        .response_timeout(Duration::from_secs(2))
        .retry_attempts(60)
        .retry_delay(Duration::from_millis(100), Duration::from_millis(500))
        .call_timeout(Duration::from_secs(30))
        .subscription_timeout(Duration::from_secs(30))
}

/// Starts a master and this number of synchronized replicas.
pub(crate) async fn replicated(
    program: &Program,
    replicas: usize,
    options: &[&str],
) -> Option<Vec<RedisServer>> {
    let start = |options: &[&str]| {
        RedisServer::start_on(program, |_| options.iter().map(ToString::to_string).collect())
    };
    let mut servers = vec![start(options)?];
    let master = format!("127.0.0.1 {}", servers[0].port());
    for _ in 0..replicas {
        servers.push(start(&[&["--replicaof", &master], options].concat())?);
    }
    let count = replicas.to_string();
    eventually("the replicas are in step", async || {
        servers[0].command(&["WAIT", &count, "100"]).await == Value::Int(i64::try_from(replicas).unwrap())
    })
    .await;
    Some(servers)
}

/// A master with two replicas and three Sentinels.
pub(crate) struct Watched {
    pub(crate) nodes: Vec<RedisServer>,
    pub(crate) sentinels: Vec<Sentinel>,
    /// The part of its URL from the `?` on.
    pub(crate) login: String,
}

impl Watched {
    /// Starts the nodes with `options`.
    pub(crate) async fn start(options: &[&str]) -> Option<Self> {
        Self::start_on(&Program::Installed, options).await
    }

    /// Like [`Watched::start`], with another program.
    pub(crate) async fn start_on(program: &Program, options: &[&str]) -> Option<Self> {
        Self::start_each(program, options, "", "", "").await
    }

    /// Starts Sentinels without a default user: they log in to each other as `peer`, and clients as
    /// a user with these rules.
    pub(crate) async fn start_with_users(name: &str, password: &str, rules: &str) -> Option<Self> {
        let lines = format!(
            "user default off\nuser peer on >peers allkeys allchannels allcommands\n\
             user {name} on >{password} {rules}\nsentinel sentinel-user peer\nsentinel sentinel-pass peers\n"
        );
        let mut watched = Self::start_each(&Program::Installed, &[], "", &lines, "peer:peers@").await?;
        watched.login = format!("?sentinel_username={name}&sentinel_password={password}");
        Some(watched)
    }

    /// Starts nodes that require `node_password`, and Sentinels that require `sentinel_password` of
    /// clients.
    pub(crate) async fn start_with_passwords(node_password: &str, sentinel_password: &str) -> Option<Self> {
        let options = ["--requirepass", node_password, "--masterauth", node_password];
        let lines = format!("requirepass {sentinel_password}\nsentinel sentinel-pass {sentinel_password}\n");
        let login = format!(":{sentinel_password}@");
        let program = Program::Installed;
        let mut watched = Self::start_each(&program, &options, node_password, &lines, &login).await?;
        watched.login = format!("?sentinel_password={sentinel_password}");
        Some(watched)
    }

    /// Starts Sentinels with these lines in their files; `login` has all rights there.
    async fn start_each(
        program: &Program,
        options: &[&str],
        node_password: &str,
        lines: &str,
        login: &str,
    ) -> Option<Self> {
        let nodes = if node_password.is_empty() {
            replicated(program, 2, options).await?
        } else {
            let master = RedisServer::start_with(options)?;
            let of = format!("127.0.0.1 {}", master.port());
            let replica = || RedisServer::start_with(&[&["--replicaof", &of], options].concat());
            vec![replica()?, replica()?, master].into_iter().rev().collect()
        };
        let sentinels =
            (0..3).map(|_| Sentinel::start(program, nodes[0].port(), node_password, lines, login)).collect();
        let watched = Self { nodes, sentinels, login: String::new() };
        eventually("the Sentinels know each other and the replicas", async || {
            for sentinel in &watched.sentinels {
                let told = sentinel.command(&["SENTINEL", "MASTER", MASTER]).await;
                let told: BTreeMap<String, String> = redis::from_redis_value(told).expect("a map");
                if told["num-slaves"] != "2" || told["num-other-sentinels"] != "2" {
                    return false;
                }
            }
            true
        })
        .await;
        Some(watched)
    }

    pub(crate) fn url(&self) -> String {
        let at: Vec<_> =
            self.sentinels.iter().map(|sentinel| format!("127.0.0.1:{}", sentinel.port)).collect();
        self.url_by(&at)
    }

    /// Like [`Watched::url`], with these addresses, which lead to the Sentinels, in place of their
    /// own.
    pub(crate) fn url_by(&self, places: &[String]) -> String {
        format!("redis+sentinel://{}/{MASTER}{}", places.join(","), self.login)
    }

    /// The settings of a client that knows all Sentinels.
    pub(crate) fn client(&self) -> Builder {
        patient().endpoint(self.url())
    }

    /// Like [`Watched::client`], with another URL.
    pub(crate) fn client_of(&self, url: &str) -> Builder {
        patient().endpoint(url)
    }

    /// The port of the present master, as reported by the Sentinel of this number.
    pub(crate) async fn master_by(&self, sentinel: usize) -> u16 {
        let told = self.sentinels[sentinel].command(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER]).await;
        let (_, port): (String, u16) = redis::from_redis_value(told).expect("an address");
        port
    }

    /// Waits until all Sentinels name another master than `old`; returns its port.
    pub(crate) async fn replaced(&self, old: u16) -> u16 {
        eventually("all Sentinels know another master", async || {
            for sentinel in 0..self.sentinels.len() {
                if self.master_by(sentinel).await == old {
                    return false;
                }
            }
            true
        })
        .await;
        self.master_by(0).await
    }

    /// Completes when a grant of the lock `key` to `client` is on the master that the Sentinel of
    /// this number names.
    pub(crate) async fn is_followed(&self, client: &Client, key: &str, sentinel: usize) {
        let lock = client.lock(key);
        eventually("the client is at the new master", async || {
            // A request on its way to the old master may or may not have been executed.
            let Ok(guard) = lock.acquire().await else { return false };
            let new = self.master_by(sentinel).await;
            let is_there = self.node(new).command(&["EXISTS", key]).await == Value::Int(1);
            // Grants of the old master until then are lost.
            let released = guard.release().await;
            is_there && released.is_ok()
        })
        .await;
    }

    pub(crate) fn node(&self, port: u16) -> &RedisServer {
        self.nodes.iter().find(|node| node.port() == port).expect("one of the nodes")
    }
}

/// The folder for files that processes sync before they vote, in memory if possible. A slow disk
/// splits votes more often, and the next election comes much later.
fn folder() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() { memory } else { std::env::temp_dir() }
}

/// A private Sentinel; dropping it kills the process.
pub(crate) struct Sentinel {
    pub(crate) port: u16,
    program: Program,
    process: Child,
    file: PathBuf,
    login: String,
}

impl Sentinel {
    fn start(program: &Program, master: u16, node_password: &str, lines: &str, login: &str) -> Self {
        for _ in 0..20 {
            let port = free_port();
            let file = folder().join(format!("lockstorm-sentinel-{port}.conf"));
            let mut text = format!(
                "port {port}\nbind 127.0.0.1\nsentinel monitor {MASTER} 127.0.0.1 {master} 2\n\
                 sentinel down-after-milliseconds {MASTER} {DOWN_AFTER_MS}\nsentinel failover-timeout {MASTER} 5000\n"
            );
            if !node_password.is_empty() {
                text += &format!("sentinel auth-pass {MASTER} {node_password}\n");
            }
            text += lines;
            std::fs::write(&file, text).expect("a folder for temporary files");
            if let Some(process) = Self::launch(program, port, &file) {
                return Self { port, program: program.clone(), process, file, login: login.to_owned() };
            }
        }
        panic!("a Sentinel of {program} does not start");
    }

    fn launch(program: &Program, port: u16, file: &Path) -> Option<Child> {
        let mut process = program.sentinel(port, file).spawn().expect("a Sentinel can be started");
        comes_up(port, &mut process).then_some(process)
    }

    /// Starts it again after [`Sentinel::crash`], with its former state.
    pub(crate) fn restart(&mut self) {
        self.process =
            Self::launch(&self.program, self.port, &self.file).expect("it starts again on its port");
    }

    /// Kills the process without notice.
    pub(crate) fn crash(&mut self) {
        self.process.kill().expect("the Sentinel is ours to kill");
        self.process.wait().expect("a killed process ends");
    }

    /// Stops or continues the process; a stopped one neither reads nor replies.
    pub(crate) fn signal(&self, signal: &str) {
        let done = Command::new("kill").arg(format!("-{signal}")).arg(self.process.id().to_string()).status();
        assert!(done.expect("kill is installed").success());
    }

    /// Runs one command and returns its reply.
    pub(crate) async fn command(&self, parts: &[&str]) -> Value {
        let client = redis::Client::open(format!("redis://{}127.0.0.1:{}", self.login, self.port));
        let client = client.expect("a good URL");
        let mut connection = client.get_multiplexed_async_connection().await.expect("the Sentinel answers");
        redis::cmd(parts[0]).arg(&parts[1..]).query_async(&mut connection).await.expect("a good command")
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_file(&self.file);
    }
}

/// Three masters, each with a replica.
pub(crate) struct Cluster {
    pub(crate) nodes: Vec<RedisServer>,
    ids: Vec<String>,
    files: Vec<PathBuf>,
}

impl Cluster {
    const MASTERS: usize = 3;

    pub(crate) async fn start() -> Option<Self> {
        Self::start_on(&Program::Installed, &[]).await
    }

    /// Like [`Cluster::start`], with another program, whose nodes have further options.
    pub(crate) async fn start_on(program: &Program, more: &[&str]) -> Option<Self> {
        let (mut nodes, mut files, mut buses) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..2 * Self::MASTERS {
            let mut bus = 0;
            nodes.push(RedisServer::start_on(program, |port| {
                // Redis 6 has no option for it.
                bus = if program.is_before_7() { port + 10_000 } else { free_port() };
                let file = folder().join(format!("lockstorm-nodes-{bus}.conf"));
                files.push(file.clone());
                // The file of an earlier process would make the node a member of another cluster.
                let _ = std::fs::remove_file(&file);
                let file = file.to_str().expect("a folder with a plain name");
                let bus = bus.to_string();
                let mut options = vec!["--cluster-enabled", "yes", "--cluster-config-file", file];
                options.extend(["--cluster-node-timeout", DOWN_AFTER_MS]);
                if !program.is_before_7() {
                    options.extend(["--cluster-port", &bus]);
                }
                options.extend(more);
                options.into_iter().map(str::to_owned).collect()
            })?);
            buses.push(bus);
        }
        let mut ids = Vec::new();
        for (at, node) in nodes.iter().enumerate() {
            ids.push(redis::from_redis_value(node.command(&["CLUSTER", "MYID"]).await).expect("an id"));
            node.command(&["CLUSTER", "SET-CONFIG-EPOCH", &(at + 1).to_string()]).await;
        }
        let cluster = Self { nodes, ids, files };
        for (at, node) in cluster.nodes.iter().enumerate() {
            if at < Self::MASTERS {
                let slot = |at: usize| 16_384 * at / Self::MASTERS;
                let slots: Vec<String> = (slot(at)..slot(at + 1)).map(|slot| slot.to_string()).collect();
                let slots = slots.iter().map(String::as_str);
                node.command(&["CLUSTER", "ADDSLOTS"].into_iter().chain(slots).collect::<Vec<_>>()).await;
            }
            let (port, bus) = (cluster.nodes[0].port().to_string(), buses[0].to_string());
            if at > 0 {
                node.command(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]).await;
            }
        }
        let count = format!("cluster_known_nodes:{}", 2 * Self::MASTERS);
        cluster.all("know each other", |info| info.contains(&count)).await;
        for (at, node) in cluster.nodes.iter().enumerate().skip(Self::MASTERS) {
            let master = cluster.ids[at - Self::MASTERS].clone();
            eventually("it replicates", async || {
                node.try_command(&["CLUSTER", "REPLICATE", &master]).await.is_ok()
            })
            .await;
        }
        cluster.all("have all slots", |info| info.contains("cluster_state:ok")).await;
        for (at, node) in cluster.nodes.iter().enumerate() {
            eventually("the replicas are in step, and listed", async || {
                let slots = format!("{:?}", node.command(&["CLUSTER", "SLOTS"]).await);
                let lists = cluster.ids.iter().all(|id| slots.contains(id.as_str()));
                lists && (at >= Self::MASTERS || node.command(&["WAIT", "1", "100"]).await == Value::Int(1))
            })
            .await;
        }
        Some(cluster)
    }

    async fn all(&self, what: &str, holds: impl Fn(&str) -> bool) {
        eventually(&format!("all nodes {what}"), async || {
            for node in &self.nodes {
                let info: String =
                    redis::from_redis_value(node.command(&["CLUSTER", "INFO"]).await).expect("text");
                if !holds(&info) {
                    return false;
                }
            }
            true
        })
        .await;
    }

    /// The URL of a client that knows two of the nodes, one of them a replica.
    pub(crate) fn url(&self) -> String {
        let (first, replica) = (self.nodes[0].port(), self.nodes[Self::MASTERS].port());
        format!("redis+cluster://127.0.0.1:{replica},127.0.0.1:{first}")
    }

    pub(crate) fn client(&self) -> Builder {
        patient().endpoint(self.url())
    }

    /// The ID of a node.
    pub(crate) fn id(&self, at: usize) -> &str {
        &self.ids[at]
    }

    /// The numbers of the node that initially has `key`'s slot, and of its replica.
    pub(crate) fn home(&self, key: &str) -> (usize, usize) {
        let slot = usize::from(lockstorm_client::wire::Slot::of(key).0);
        let at = (0..Self::MASTERS).find(|at| slot < 16_384 * (at + 1) / Self::MASTERS).expect("a slot");
        (at, at + Self::MASTERS)
    }

    /// Begins to move the slot of `key` to another node: neither has it alone until
    /// [`Cluster::finish_move`].
    pub(crate) async fn begin_move(&self, key: &str, from: usize, to: usize) {
        let slot = lockstorm_client::wire::Slot::of(key).0.to_string();
        self.nodes[to].command(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &self.ids[from]]).await;
        self.nodes[from].command(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &self.ids[to]]).await;
    }

    /// Moves the existing keys of the slot; returns their number.
    pub(crate) async fn move_keys(&self, key: &str, from: usize, to: usize) -> usize {
        let slot = lockstorm_client::wire::Slot::of(key).0.to_string();
        let keys = self.nodes[from].command(&["CLUSTER", "GETKEYSINSLOT", &slot, "100"]).await;
        let keys: Vec<String> = redis::from_redis_value(keys).expect("names");
        if !keys.is_empty() {
            let port = self.nodes[to].port().to_string();
            let mut words = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
            words.extend(keys.iter().map(String::as_str));
            self.nodes[from].command(&words).await;
        }
        keys.len()
    }

    /// Assigns the slot to the other node, on both nodes; gossip informs the rest.
    pub(crate) async fn finish_move(&self, key: &str, from: usize, to: usize) {
        let slot = lockstorm_client::wire::Slot::of(key).0.to_string();
        for at in [to, from] {
            self.nodes[at].command(&["CLUSTER", "SETSLOT", &slot, "NODE", &self.ids[to]]).await;
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for file in &self.files {
            let _ = std::fs::remove_file(file);
        }
    }
}
