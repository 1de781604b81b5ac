//! Starts a node from the data of an earlier run: a snapshot or an append-only file, on a disk in
//! memory or in a folder.

use std::io;

use bytes::Bytes;

use super::Server;
use crate::{
    cluster::Corrupted,
    commands::{Ctx, Origin, access::load_configured, find, integer, run},
    config::{ClusterOptions, Config, file},
    durability::{Commands, Disk, LogError, Parts, Unread, rdb},
    effect::{Effects, Framing, PropagateTo, Propagated},
    env::Env,
    event::ConnId,
    keyspace::Db,
    log::Level,
    node::{Purpose, clients::Session, lazy_free::deletion},
    replication::Backlog,
    resp::quotable,
};

/// The connection in whose name the commands of a file run.
const FILE: ConnId = ConnId(u64::MAX);

/// The first bytes of a file that begins with a snapshot.
const SNAPSHOT: &[u8] = b"REDIS";

/// Data from which a node cannot start. Starting without it would lose it.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The snapshot is damaged.
    #[error(
        "Fatal error loading the DB from {file}: {error}. Terminating server after rdb file reading failure."
    )]
    Snapshot {
        /// The file's name.
        file: String,
        /// The mistake that was found in it.
        error: rdb::RdbError,
    },
    /// The file of the snapshot cannot be read.
    #[error("Fatal error loading the DB from {file}: {error}")]
    File {
        /// The file's name.
        file: String,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The append-only file cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The file with the node's view of its cluster is corrupted.
    #[error(transparent)]
    Nodes(#[from] Corrupted),
    /// The data has keys in a database other than 0, which cluster nodes do not have.
    #[error("You can't have keys in a DB different than DB 0 when in Cluster mode. Exiting.")]
    OtherDatabases,
}

/// The reason why the replay of an AOF stops.
#[derive(Debug)]
enum Stop {
    Unread(Unread),
    Unknown(String),
}

impl Server {
    /// Returns a node that starts with the data of an earlier run on its disk.
    ///
    /// With `appendonly` it reads the append-only file, otherwise the snapshot. From a snapshot a
    /// master leaves out the keys that have expired by its wall clock. An unreadable file stops the
    /// start of a real server; here it counts as empty, because only this node writes it. CONFIG
    /// REWRITE on the disk overrides the options of `config`.
    pub fn restart(mut config: Config, disk: Disk, env: &mut Env) -> Server {
        if let Some(text) = &disk.config {
            file::read_rewritten(text, &mut config).expect("a node has written the file itself");
        }
        let mut server = Server::unread(config, disk, env);
        // A node wrote the file itself, so it is valid.
        let _ = server.start_cluster(env);
        if server.node.config.aof.appendonly {
            if server.load_log(env) {
                server.node.persistence.aof.resume(env.wall.as_secs());
            }
        } else if let Some(snapshot) = server.node.persistence.disk.snapshot.clone() {
            let _ = server.load_snapshot(env, &snapshot);
        }
        let _ = server.verify_cluster(env);
        let len = server.node.persistence.disk.data_len();
        server.begin(env, len);
        server
    }

    /// Returns a node that starts with the data in its folder ([`Env::folder`]) and keeps its data
    /// there: with `appendonly` in an append-only file, otherwise in snapshots. Missing files count
    /// as empty.
    ///
    /// # Errors
    /// If an existing file cannot be read.
    pub fn open(config: Config, env: &mut Env) -> Result<Server, StartError> {
        let mut server = Server::unread(config, Disk::default(), env);
        server.start_cluster(env)?;
        let len = if server.node.config.aof.appendonly {
            server.open_log(env)?
        } else {
            server.open_snapshot(env)?
        };
        server.verify_cluster(env)?;
        server.begin(env, len);
        Ok(server)
    }

    /// Returns a node that has read its configuration and its users, but no data.
    fn unread(config: Config, disk: Disk, env: &mut Env) -> Server {
        let mut server = Server::new(
            config.clone().with(|config| {
                config.aof.appendonly = false;
                config.replication.replicaof = None;
                config.security.aclfile = String::new();
                config.security.users = Vec::new();
                config.cluster = ClusterOptions::default();
            }),
            env,
        );
        (server.node.config, server.node.persistence.disk) = (config, disk);
        // The start logs at the level that the node is configured for.
        env.logging = env.logging.map(|_| server.node.config.server.loglevel);
        load_configured(&mut server.node, env);
        server
    }

    /// Begins to serve the data, which was read from `len` bytes.
    fn begin(&mut self, env: &mut Env, len: usize) {
        self.node.stats.dirty = 0;
        let keys = self.node.keys_len();
        let (now, now_secs) = (env.monotonic, env.wall.as_secs());
        if !self.node.begin_loading(keys, len, Purpose::Start, now, now_secs) {
            self.started(env);
        }
        self.run_disk(env);
        self.settle_peers(env);
        self.carry_out_for_cluster(env);
        self.set_alarm(env);
        self.tell_stall(env);
    }

    /// Continues after all data is loaded.
    pub(super) fn started(&mut self, env: &mut Env) {
        env.log(Level::Notice, || "Ready to accept connections".into());
        self.follow_configured(env);
    }

    fn open_snapshot(&mut self, env: &mut Env) -> Result<usize, StartError> {
        let file = self.node.config.persistence.dbfilename.clone();
        let Some(folder) = &env.folder else { return Ok(0) };
        let snapshot = match folder.read(&file) {
            Ok(snapshot) => snapshot,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(StartError::File { file, error }),
        };
        self.load_snapshot(env, &snapshot).map_err(|error| StartError::Snapshot { file, error })?;
        Ok(snapshot.len())
    }

    fn load_snapshot(&mut self, env: &mut Env, snapshot: &[u8]) -> Result<(), rdb::RdbError> {
        let replica = self.node.config.replication.replicaof.is_some();
        let opened = rdb::open(snapshot, &self.node.config, env.wall.as_millis(), replica)?;
        for key in &opened.empty {
            env.log(Level::Notice, || format!("skipping empty key: {}", quotable(key)));
        }
        if !opened.empty.is_empty() {
            env.log(Level::Notice, || format!("empty keys skipped: {}", opened.empty.len()));
        }
        self.node.stats.loaded = (opened.dbs.iter().map(Db::len).sum(), opened.expired.len());
        self.node.take_in(opened.dbs, &opened.libraries)?;
        let Some((id, offset, db)) = opened.replication else { return Ok(()) };
        let size = self.node.config.replication.backlog_size;
        let replication = &mut self.node.replication;
        if replica {
            replication.history.adopt(id, offset);
            replication.loaded_db = Some(db);
        } else {
            // Its replicas may know the stream under its earlier id.
            replication.history.offset = offset;
            let new_id = std::mem::replace(&mut replication.history.id, id);
            replication.history.fork(new_id);
            replication.backlog = Some(Backlog::new(size, offset));
            replication.no_replicas_since = env.wall.as_secs();
            // Replicas that resume from the position of the snapshot still have the keys that have
            // expired since.
            for (db, key) in opened.expired {
                let args = deletion(self.node.config.memory.lazy_free.expire, &key);
                let command = Propagated { db, args, to: PropagateTo::All };
                self.feed_batch(&[command], Framing::default(), env.wall.as_millis());
            }
        }
        Ok(())
    }

    /// Reads the append-only file of the disk in memory, even if it is no longer written. Returns
    /// false if there is none that can be read.
    pub(super) fn load_log(&mut self, env: &mut Env) -> bool {
        let Some(log) = self.node.persistence.disk.log.clone() else { return false };
        // Expired keys stay: the commands after the base still access them.
        let Ok(opened) = rdb::open(&log.base, &self.node.config, env.wall.as_millis(), true) else {
            return false;
        };
        if self.node.take_in(opened.dbs, &opened.libraries).is_err() {
            return false;
        }
        // A command that a loss of power has cut off is ignored.
        let _ = self.repeat_file(env, log.commands.into(), 0);
        true
    }

    /// Loads the AOF of the folder, and opens it for appending.
    fn open_log(&mut self, env: &mut Env) -> Result<usize, LogError> {
        let len = self.read_parts(env)?;
        let is_new = self.node.persistence.aof.parts.as_ref().is_none_or(Parts::is_empty);
        let ready = match (&mut self.node.persistence.aof.parts, &env.folder) {
            (Some(parts), Some(folder)) if !is_new => parts.open(&**folder),
            _ => self.node.rewrite_log(env).map_err(io::Error::other),
        };
        let file = self.node.config.aof.appenddirname.clone();
        ready.map_err(|error| LogError::File { file, error })?;
        self.node.persistence.aof.resume(env.wall.as_secs());
        Ok(len)
    }

    /// Reads the files of the AOF in the folder, beginning with the manifest. Returns their total
    /// length in bytes.
    pub(super) fn read_parts(&mut self, env: &mut Env) -> Result<usize, LogError> {
        let Some(folder) = &env.folder else { return Ok(0) };
        let (mut parts, moved) = Parts::find(&**folder, &self.node.config)?;
        let files = parts.read(&**folder)?;
        if moved {
            env.log(Level::Notice, || "The append-only file of an older version is a base now".into());
        }
        let mut len = 0;
        let last = files.len().saturating_sub(1);
        for (at, (file, bytes)) in files.into_iter().enumerate() {
            len += bytes.len();
            let behind = self.load_head(env, &file, &bytes)?;
            let Err((stop, begun)) = self.repeat_file(env, bytes.clone(), behind) else { continue };
            let truncated = self.node.config.aof.load_truncated;
            match stop {
                Stop::Unread(Unread::Short) if at == last && truncated => {
                    env.log(Level::Warning, || {
                        format!("The append-only file {file} ends within what begins at byte {begun}, and is cut off there")
                    });
                    if let Some(folder) = &env.folder {
                        parts.cut(&**folder, &file, &bytes, begun)?;
                    }
                }
                Stop::Unread(Unread::Short) => return Err(LogError::Short { file, at: begun }),
                Stop::Unread(Unread::Damaged) => return Err(LogError::Damaged { file, at: begun }),
                Stop::Unknown(command) => return Err(LogError::Unknown { command, file, at: begun }),
            }
        }
        self.node.persistence.aof.parts = Some(parts);
        Ok(len)
    }

    /// Reads the snapshot that a file may begin with. Returns the position at which its commands
    /// begin.
    fn load_head(&mut self, env: &Env, file: &str, bytes: &Bytes) -> Result<usize, LogError> {
        if !bytes.starts_with(SNAPSHOT) {
            return Ok(0);
        }
        // Expired keys stay: the following commands still access them.
        let opened = rdb::open(bytes, &self.node.config, env.wall.as_millis(), true);
        let taken = opened.and_then(|opened| {
            self.node.take_in(opened.dbs, &opened.libraries)?;
            Ok(opened.len)
        });
        taken.map_err(|error| LogError::Snapshot { file: file.into(), error })
    }

    /// Replays the commands of an AOF from an offset on. On failure returns the position at which
    /// valid commands end.
    fn repeat_file(&mut self, env: &mut Env, bytes: Bytes, at: usize) -> Result<(), (Stop, usize)> {
        let session = Session::new(FILE, String::new(), String::new(), env.monotonic);
        self.node.clients.sessions.insert(session);
        let repeated = self.repeat_commands(env, &mut Commands::new(bytes, at));
        self.node.clients.sessions.remove(FILE);
        repeated
    }

    fn repeat_commands(&mut self, env: &mut Env, commands: &mut Commands) -> Result<(), (Stop, usize)> {
        let mut batch: Option<(usize, Vec<Vec<Bytes>>)> = None;
        while let Some(read) = commands.next() {
            let begun = commands.begun();
            let args = read.map_err(|unread| {
                // A transaction without its end was never finished, and is not applied.
                let cut = batch.as_ref().map_or(begun, |(multi, _)| *multi);
                (Stop::Unread(unread), if unread == Unread::Short { cut } else { begun })
            })?;
            if find(self.node.config.generation, &args[..1]).is_err() {
                return Err((Stop::Unknown(quotable(&args[0])), begun));
            }
            match (&args[0].to_ascii_lowercase()[..], &mut batch) {
                (b"multi", batch @ None) => *batch = Some((begun, Vec::new())),
                (b"exec", batch @ Some(_)) => {
                    let (_, commands) = batch.take().unwrap_or_default();
                    commands.iter().for_each(|args| self.redo(env, args));
                }
                (_, Some((_, batch))) => batch.push(args),
                (_, None) => self.redo(env, &args),
            }
        }
        batch.map_or(Ok(()), |(begun, _)| Err((Stop::Unread(Unread::Short), begun)))
    }

    fn redo(&mut self, env: &mut Env, args: &[Bytes]) {
        let session = self.node.clients.sessions.get_mut(FILE).expect("the file is being read");
        if args[0].eq_ignore_ascii_case(b"select") {
            // A cluster node refuses any other database than the first; later commands are applied
            // to the first.
            let dbs = if self.node.cluster.is_some() { 1 } else { self.node.dbs.len() };
            let db = args.get(1).and_then(|db| usize::try_from(integer(db).ok()?).ok());
            session.db = db.filter(|&db| db < dbs).unwrap_or(session.db);
            return;
        }
        let db = session.db;
        let Ok(spec) = find(self.node.config.generation, args) else { return };
        let mut effects = Effects::default();
        let now_ms = env.wall.as_millis();
        let mut ctx = Ctx::new(&mut self.node, env, &mut effects, FILE, db, Origin::Replication, now_ms);
        run(&mut ctx, spec, args);
    }
}
