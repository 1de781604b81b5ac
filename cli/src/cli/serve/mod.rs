//! `lockstorm serve`: serves the simulated Redis on a real port, for redis-cli and other clients.

mod descriptors;
mod disk;
mod listen;
mod log;
mod memory;
mod parent;
mod sentinel;

use std::{
    path::{Path, PathBuf},
    process,
    task::Poll,
};

use bytes::Bytes;
use clap::{
    Args, ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser},
};
use lockstorm_sim::{
    commands::{
        access::{Table, configured},
        check_renames,
    },
    config::{Config, file, options},
    drive::{DrivenNode, tokio::Machine},
    env::Files,
    event::Signal,
    generation::Generation,
    log::Level,
    server::Server,
};
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use tokio::{
    signal::unix::{SignalKind, signal},
    task::LocalSet,
};

use super::{Exit, out::outln};
use disk::{DataFolder, Disk};
use log::Log;

/// Serve the simulated Redis on a real port
///
/// The server keeps its data in memory only, and each start is empty, unless --data names a folder.
#[derive(Debug, Args)]
pub(super) struct Serve {
    /// Server to imitate
    #[arg(long = "as", value_name = "SERVER", value_parser = generations())]
    #[arg(default_value = Generation::default().name())]
    generation: Generation,
    /// TCP port to listen on, or 0 for any free port [default: 6379]
    #[arg(long)]
    port: Option<u16>,
    /// Address to listen on; may be repeated [default: all addresses; clients of other hosts are
    /// refused unless a password is set or protected-mode is off]
    #[arg(long, value_name = "ADDRESS")]
    bind: Vec<String>,
    /// Unix socket to listen on, besides the TCP port
    #[arg(long, value_name = "PATH")]
    unixsocket: Option<String>,
    /// Permissions of the Unix socket, such as 700
    #[arg(long, value_name = "MODE")]
    unixsocketperm: Option<String>,
    /// Password that clients must authenticate with
    #[arg(long, value_name = "PASSWORD")]
    requirepass: Option<String>,
    /// Configuration file in the syntax of redis.conf; options of the command line override it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Run as a Sentinel [default port: 26379]; --config names its file, in the syntax of
    /// sentinel.conf, to which it also writes its state
    #[arg(long, requires = "config", conflicts_with_all = ["data", "clock"])]
    sentinel: bool,
    /// Set an option of redis.conf; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    option: Vec<String>,
    /// Keep the data in this folder, in the formats of redis-server: dump.rdb is loaded at the
    /// start, and written by SAVE, by BGSAVE, at save points and at the end; with `appendonly yes`
    /// an append-only file is written too, and loaded instead
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// Lowest level of lines to log: debug, verbose, notice or warning [default: notice]
    #[arg(long, value_name = "LEVEL")]
    loglevel: Option<String>,
    /// Append the log to this file instead of standard error; a relative path starts in the folder
    /// of --data
    #[arg(long, value_name = "FILE")]
    logfile: Option<String>,
    /// Clock of the node
    #[arg(long, value_enum, default_value_t = Clock::Real)]
    clock: Clock,
    /// Seed of the server's PRNG, which draws evicted keys and random members; run and replication
    /// IDs differ at each start, whatever the seed [default: 0; for a Sentinel or a cluster node
    /// its process ID, so that several do not start an election at the same instant]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Exit immediately when standard input is closed, as happens when the parent process ends, so
    /// that a killed test leaves no server behind
    #[arg(long)]
    end_with_stdin: bool,
}

/// Parses the name of a generation of servers.
fn generations() -> impl TypedValueParser<Value = Generation> {
    let names = Generation::ALL.map(Generation::name);
    PossibleValuesParser::new(names)
        .map(|name| Generation::named(&name).expect("a possible value is a generation"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Clock {
    /// The machine's clock.
    Real,
    /// A clock that moves only when a client sends DEBUG CLOCK ADVANCE <milliseconds>.
    Manual,
}

impl Serve {
    pub(super) fn run(self) -> Result<Exit> {
        let mut config = self.configured()?;
        let folder = self.data.as_deref().map(|folder| data_folder(&mut config, folder)).transpose()?;
        let files = Disk {
            folder: match &folder {
                Some(folder) => folder.path().to_owned(),
                // A Sentinel has no data, but a folder for its log.
                None if self.sentinel => PathBuf::from(&config.persistence.dir),
                None => PathBuf::new(),
            },
        };
        let read = |path: &str| files.read(path).map(Bytes::from).map_err(|error| format!("{path}: {error}"));
        let of = if self.sentinel { Table::Sentinel } else { Table::Data };
        let table = of(config.generation);
        configured(&config, table, read)
            .map_err(|wrong| miette!("{wrong}"))
            .wrap_err("the ACL users cannot be created")?;
        check_renames(&config).map_err(|wrong| miette!("{wrong}"))?;
        if config.cluster.enabled && config.replication.replicaof.is_some() {
            return Err(miette!("replicaof directive not allowed in cluster mode"));
        }
        let log = Log::open(&files.folder, &config.server.logfile, config.server.loglevel)?;
        descriptors::raise(&mut config, &log);
        if self.end_with_stdin {
            parent::end_with_stdin().into_diagnostic()?;
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().into_diagnostic()?;
        LocalSet::new().block_on(&runtime, async {
            let mut machine = Machine::new().descriptors(descriptors::make_room);
            let free_port = self.port == Some(0);
            let unixsocket = config.network.unixsocket.clone();
            if config.network.port != 0 || free_port || unixsocket.is_empty() {
                let addresses = config.network.bind.clone();
                let (listeners, bus) = listen::with_bus(&addresses, &config, free_port, &log)?;
                for listener in bus {
                    machine = machine.listen_bus(listener);
                }
                if listeners.is_empty() && unixsocket.is_empty() {
                    return Err(miette!("there is no address to listen on"));
                }
                for listener in listeners {
                    let address = listener.local_addr().into_diagnostic()?;
                    config.network.port = address.port();
                    outln!("listening on {address}; try: redis-cli -p {}", address.port());
                    log.line(Level::Notice, &format!("Listening on {address}"));
                    machine = machine.listen(listener);
                }
            }
            // The guard removes the socket file on drop.
            let mut file = None;
            if !unixsocket.is_empty() {
                let (listener, guard) =
                    listen::unix(&unixsocket, &config.network.unixsocketperm.to_string())?;
                outln!("listening on {unixsocket}; try: redis-cli -s {unixsocket}");
                log.line(Level::Notice, &format!("Listening on {unixsocket}"));
                machine = machine.listen_unix(listener);
                file = Some(guard);
            }
            if self.clock == Clock::Manual {
                machine = machine.manual_clock();
                log.line(Level::Notice, "Time stands still; DEBUG CLOCK ADVANCE <milliseconds> moves it");
            }
            let mut terminate = signal(SignalKind::terminate()).into_diagnostic()?;
            let mut interrupt = signal(SignalKind::interrupt()).into_diagnostic()?;
            if let Some(folder) = folder {
                machine = machine.folder(folder);
            }
            let node = DrivenNode::new();
            let (mut asked, teller, asked_node) = (false, log.clone(), node.clone());
            let machine = machine.files(files.clone()).log(log.sink(node.clone())).signals(move |cx| {
                let which = match (terminate.poll_recv(cx), interrupt.poll_recv(cx)) {
                    (Poll::Ready(_), _) => Signal::Terminate,
                    (_, Poll::Ready(_)) => Signal::Interrupt,
                    _ => return Poll::Pending,
                };
                // Exit at the second signal if the node is still shutting down or is stalled. A
                // node that refused the first shutdown gets the second one as a new request.
                let pending = asked_node
                    .look(|server| server.node().shutdown.is_some() || server.node().stalled_until.is_some());
                if std::mem::replace(&mut asked, true) && pending == Some(true) {
                    teller.line(Level::Warning, "Asked a second time: exiting at once");
                    process::exit(1);
                }
                Poll::Ready(which)
            });
            let server = if self.generation.is_valkey() { "Valkey" } else { "Redis" };
            let version = self.generation.version();
            let about = format!("lockstorm {}, answering as {server} {version}", env!("CARGO_PKG_VERSION"));
            log.line(Level::Notice, &format!("{about}, starts with PID: {}", process::id()));
            let giving_back = tokio::task::spawn_local(memory::give_back());
            let votes = self.sentinel || config.cluster.enabled;
            let seed = self.seed.unwrap_or(if votes { process::id().into() } else { 0 });
            let (is_sentinel, start) = (self.sentinel, files.clone());
            let served = machine
                .try_run(node, seed, move |env| {
                    if is_sentinel {
                        sentinel::start(config, &start, env)
                    } else {
                        Ok(Server::open(config, env)?)
                    }
                })
                .await;
            giving_back.abort();
            drop(file);
            if let Err(error) = served {
                log.line(Level::Warning, &error.to_string());
                return Ok(Exit::Usage);
            }
            log.line(Level::Notice, "All connections are closed");
            Ok(Exit::Expected)
        })
    }

    /// Reads the configuration: the options of the file, overridden by those of the command line.
    fn configured(&self) -> Result<Config> {
        let mut config = Config::of(self.generation).with(|config| config.server.process_id = process::id());
        if self.sentinel {
            config.network.port = 26379;
            config.persistence.dir.clear();
        }
        // Make the path absolute: CONFIG REWRITE needs it, and the working directory may change.
        let path = self.config.as_ref().map(std::path::absolute).transpose().into_diagnostic()?;
        let path = path.map(|path| path.to_string_lossy().into_owned());
        let option = |option: &'_ String| {
            option
                .split_once('=')
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .ok_or_else(|| miette!("--option takes NAME=VALUE, and {option:?} has no `=`"))
        };
        let more = self.option.iter().map(option).collect::<Result<Vec<_>>>()?;
        let more: Vec<(&str, &str)> = more.iter().map(|(name, value)| (&**name, &**value)).collect();
        let disk = Disk::default();
        let read = match self.sentinel {
            true => file::read(path.as_deref(), &more, &sentinel::OtherLines(disk), &mut config),
            false => file::read(path.as_deref(), &more, &disk, &mut config),
        };
        read.map_err(|wrong| match wrong {
            file::Wrong::Line(mistake) => {
                miette!("{mistake}").wrap_err("the configuration file is not valid")
            }
            file::Wrong::Option(why) => miette!("{why}"),
        })?;
        let mut set = |name: &str, value: &str| {
            options::set_at_start(&mut config, name, value).map_err(|why| miette!("{why}"))
        };
        let named = [
            ("unixsocket", &self.unixsocket),
            ("unixsocketperm", &self.unixsocketperm),
            ("requirepass", &self.requirepass),
            ("loglevel", &self.loglevel),
            ("logfile", &self.logfile),
        ];
        for (name, value) in named {
            if let Some(value) = value {
                set(name, value)?;
            }
        }
        if let Some(port) = self.port {
            set("port", &port.to_string())?;
        }
        if !self.bind.is_empty() {
            set("bind", &self.bind.join(" "))?;
        }
        Ok(config)
    }
}

/// Opens the folder of `--data`, and sets `dir` to it.
fn data_folder(config: &mut Config, folder: &Path) -> Result<DataFolder> {
    let folder = folder.canonicalize().into_diagnostic();
    let folder = folder.wrap_err("the folder of --data must exist")?;
    config.persistence.dir = folder.to_string_lossy().into_owned();
    Ok(DataFolder::new(folder))
}
