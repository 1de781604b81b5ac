//! The node and its disk: appending what was done, syncing it, snapshots at the save points, and starting from what is there.

use std::time::Duration;

use super::Server;
use crate::{
    commands::{Ctx, Origin, access::load_configured, find, integer, run},
    config::{Config, Fsync},
    durability::{Disk, rdb},
    effect::{Effects, Propagated},
    env::Env,
    event::ConnId,
    log::Level,
    node::{Node, Purpose},
    replication::{Backlog, MasterLink, encode_batch},
    resp::{Decoder, Limits},
    session::Session,
    time::{Monotonic, Wall},
};

/// Seconds between a save that failed and the next.
const RETRY_SECS: i64 = 6;

/// Stands for the file while it is read: commands run for a connection.
const FILE: ConnId = ConnId(u64::MAX);

impl Server {
    /// A node that starts with what an earlier run has left on its disk.
    ///
    /// With `appendonly` it reads the append-only file, otherwise the snapshot, of which a master leaves out the keys that have
    /// expired by its wall clock. A file that cannot be read stops the start of a real server; here it counts as empty, because
    /// nothing but this node writes it.
    pub fn restart(config: Config, disk: Disk, env: &mut Env) -> Server {
        let mut server = Server::new(
            Config {
                appendonly: false,
                replicaof: None,
                aclfile: String::new(),
                users: Vec::new(),
                ..config.clone()
            },
            env,
        );
        server.node.config = config;
        server.node.disk = disk;
        load_configured(&mut server.node, env);
        if server.node.config.appendonly {
            server.load_log(env);
        } else {
            server.load_snapshot(env);
        }
        server.node.stats.dirty = 0;
        let (keys, len) = (server.node.keys_len(), server.node.disk.data_len());
        let (now, now_secs) = (env.monotonic, env.wall.as_secs());
        if !server.node.begin_loading(keys, len, Purpose::Start, now, now_secs) {
            server.follow_configured(env);
        }
        server.run_disk(env);
        server.settle_peers(env);
        server.set_alarm(env);
        server
    }

    /// Ends the node as a loss of power does: its disk is left with what was synced.
    pub fn crash(self) -> Disk {
        self.node.disk.after_power_loss()
    }

    /// Ends the node as `kill -9` does: its disk is left with all that was written.
    pub fn kill(self) -> Disk {
        self.node.disk.after_kill()
    }

    /// Becomes the replica that the configuration wants it to be from the start.
    pub(super) fn follow_configured(&mut self, env: &mut Env) {
        let Some((host, port)) = self.node.config.replicaof.clone() else { return };
        let replication = &mut self.node.replication;
        // Data that came with its position in a stream can be continued from; without one, all is to be sent.
        let resume = replication.loaded_db.take();
        if resume.is_some() {
            let (size, offset) = (self.node.config.repl_backlog_size, replication.history.offset);
            replication.backlog = Some(Backlog::new(size, offset));
        }
        replication.master = Some(MasterLink::new(host, port, resume, env.wall.as_secs()));
    }

    fn load_snapshot(&mut self, env: &mut Env) {
        let Some(snapshot) = self.node.disk.snapshot.clone() else { return };
        let replica = self.node.config.replicaof.is_some();
        let now_ms = env.wall.as_millis();
        let Ok(opened) = rdb::open(&snapshot, &self.node.config, now_ms, replica) else { return };
        if self.node.take_in(opened.dbs, &opened.libraries).is_err() {
            return;
        }
        let Some((id, offset, db)) = opened.replication else { return };
        let size = self.node.config.repl_backlog_size;
        let replication = &mut self.node.replication;
        if replica {
            replication.history.adopt(id, offset);
            replication.loaded_db = Some(db);
        } else {
            // Its replicas may know the stream under the name it had before.
            replication.history.offset = offset;
            let new_id = std::mem::replace(&mut replication.history.id, id);
            replication.history.fork(new_id);
            replication.backlog = Some(Backlog::new(size, offset));
            replication.no_replicas_since = env.wall.as_secs();
        }
    }

    pub(super) fn load_log(&mut self, env: &mut Env) {
        let Some(log) = self.node.disk.log.clone() else { return };
        // Expired keys stay: the commands behind the base still work on them.
        let Ok(opened) = rdb::open(&log.base, &self.node.config, env.wall.as_millis(), true) else { return };
        if self.node.take_in(opened.dbs, &opened.libraries).is_err() {
            return;
        }
        let session = Session::new(FILE, String::new(), String::new(), env.monotonic);
        self.node.sessions.insert(session);
        let mut decoder = Decoder::default();
        decoder.feed(&log.commands);
        let limits = Limits { bulk_len_max: usize::MAX / 4, ..Limits::default() };
        let mut batch = None;
        while let Ok(Some(args)) = decoder.next(&limits) {
            match (&args[0].to_ascii_lowercase()[..], &mut batch) {
                (b"multi", batch @ None) => *batch = Some(Vec::new()),
                (b"exec", batch @ Some(_)) => {
                    batch.take().unwrap_or_default().iter().for_each(|args: &Vec<_>| self.redo(env, args));
                }
                // A transaction without its end was never finished, and is not begun.
                (_, Some(batch)) => batch.push(args),
                (_, None) => self.redo(env, &args),
            }
        }
        self.node.sessions.remove(FILE);
        self.node.append_log.resume(env.wall.as_secs());
    }

    fn redo(&mut self, env: &mut Env, args: &[bytes::Bytes]) {
        let session = self.node.sessions.get_mut(FILE).expect("the file is being read");
        if args[0].eq_ignore_ascii_case(b"select") {
            let db = args.get(1).and_then(|db| usize::try_from(integer(db).ok()?).ok());
            session.db = db.filter(|&db| db < self.node.dbs.len()).unwrap_or(session.db);
            return;
        }
        let db = session.db;
        let Ok(spec) = find(args) else { return };
        let mut effects = Effects::default();
        let now_ms = env.wall.as_millis();
        let mut ctx = Ctx::new(&mut self.node, env, &mut effects, FILE, db, Origin::Replication, now_ms);
        run(&mut ctx, spec, args);
    }

    /// Appends a batch to the append-only file, if one is written.
    pub(super) fn append_batch(&mut self, commands: &[Propagated]) {
        if !self.node.append_log.open || commands.is_empty() {
            return;
        }
        // A message is for replicas' subscribers, and is nothing to remember.
        let is_message = |command: &Propagated| {
            let name = command.args.first().map_or(&b""[..], |name| name);
            name.eq_ignore_ascii_case(b"publish") || name.eq_ignore_ascii_case(b"spublish")
        };
        let lasting: Vec<Propagated>;
        let commands = if commands.iter().any(is_message) {
            lasting = commands.iter().filter(|command| !is_message(command)).cloned().collect();
            &lasting
        } else {
            commands
        };
        if commands.is_empty() {
            return;
        }
        let Node { disk, append_log: log, .. } = &mut *self.node;
        let full = disk.full || !log.unwritten.is_empty();
        if let Some(file) = disk.log.as_mut().filter(|_| !full) {
            encode_batch(commands, &mut log.selected, &mut file.commands);
        } else {
            encode_batch(commands, &mut log.selected, &mut log.unwritten);
        }
    }

    /// What a step leaves to do with the disk, before replies go out.
    pub(super) fn run_disk(&mut self, env: &mut Env) {
        let now_secs = env.wall.as_secs();
        if self.node.loading.is_some() {
            return;
        }
        if self.node.config.appendonly && !self.node.append_log.open {
            // Where there is no room for it, it begins when there is.
            self.node.append_log.open = self.node.rewrite_log(now_secs).is_ok();
        } else if self.node.append_log.open && !self.node.config.appendonly {
            self.node.append_log.close();
        }
        self.write_log(env);
        if self.node.append_log.open
            && let Some(log) = &mut self.node.disk.log
        {
            let (policy, took) = (self.node.config.appendfsync, self.node.config.fsync_ms);
            let took = Duration::from_millis(took);
            self.node.append_log.sync(log, policy, took, env.wall, env.monotonic);
            if self.node.append_log.wants_rewrite(log) {
                // It is wanted again with the next step, as long as it fails.
                let _ = self.node.rewrite_log(now_secs);
            }
        }
        if self.save_due_secs().is_some_and(|due| now_secs >= due) {
            self.node.save_in_background(env);
        }
    }

    /// Writes what the append-only file has not taken yet. With `appendfsync always` a server has promised too much to go on
    /// without.
    fn write_log(&mut self, env: &mut Env) {
        let had_failed = self.node.append_log.failed;
        let Node { disk, append_log, .. } = &mut *self.node;
        match append_log.write(disk) {
            Ok(()) if had_failed => {
                env.log(Level::Warning, || "AOF write error looks solved, Redis can write again.".into());
            }
            Ok(()) => {}
            Err(full) => {
                if !had_failed {
                    env.log(Level::Warning, || format!("Error writing to the AOF file: {full}"));
                }
                if self.node.config.appendfsync == Fsync::Always {
                    self.node.abort();
                }
            }
        }
    }

    /// The wall-clock second at which the next save point is reached, as the changes are now.
    fn save_due_secs(&self) -> Option<i64> {
        let dirty = self.node.stats.dirty;
        if dirty == 0 {
            return None;
        }
        let reached = self.node.config.save.iter().filter(|(_, changes)| dirty >= *changes);
        // More than so many seconds must have passed: the next whole one.
        reached
            .map(|(seconds, _)| {
                let seconds = i64::try_from(*seconds).unwrap_or(i64::MAX);
                self.node.saved_at.saturating_add(seconds).saturating_add(1)
            })
            .min()
            // After a failure it is tried again when some seconds have passed, and not all the time.
            .map(
                |due| if self.node.save_failed { due.max(self.node.save_tried_at + RETRY_SECS) } else { due },
            )
    }

    /// When the disk next wants something that no write brings.
    pub(super) fn disk_due(&self, env: &Env) -> Option<Monotonic> {
        let save = self.save_due_secs().map(|due| env.monotonic + Wall::from_secs(due).since(env.wall));
        let log = self.node.disk.log.as_ref().filter(|_| self.node.append_log.open);
        let sync = log.and_then(|log| {
            let policy = self.node.config.appendfsync;
            self.node.append_log.due(log, policy, env.wall, env.monotonic)
        });
        save.into_iter().chain(sync).min()
    }
}
