//! The replica's side of replication: dials the master, shakes hands, loads the snapshot, and
//! applies the stream.

use std::collections::VecDeque;

use bytes::{Buf, Bytes};

use super::{Server, execute::critical};
use crate::{
    commands::{Ctx, Flags, Origin, find, integer, permit, run},
    durability::{LogState, rdb},
    effect::Effects,
    env::Env,
    event::{Action, ConnId},
    generation::Feature,
    keyspace::Db,
    log::Level,
    node::{
        Purpose,
        clients::{Role, Session},
    },
    replication::{Answer, Backlog, Payload, Stage, encode},
    resp::{Limits, Reply},
};

/// A larger snapshot is refused: no node of a simulation holds so much.
const PAYLOAD_LEN_MAX: usize = 1 << 30;

/// The log line at the beginning of loading the master's data.
const LOADING: &str = "MASTER <-> REPLICA sync: Loading DB in memory";

/// The link cannot continue.
#[derive(Debug)]
struct Broken;

impl Server {
    pub(super) fn follow_periodically(&mut self, env: &mut Env) {
        let now_secs = env.wall.as_secs();
        let timeout = self.node.config.replication.timeout as i64;
        let Some(link) = &mut self.node.replication.master else { return };
        let silent = now_secs.saturating_sub(link.last_io_secs) > timeout;
        match &link.stage {
            Stage::Down { .. } => self.dial_master(env),
            stage if silent && self.node.loading.is_none() => {
                let what = match stage {
                    Stage::Transfer { .. } => "Timeout receiving the snapshot from MASTER",
                    Stage::Connected => "MASTER timeout: neither data nor PING received",
                    _ => "Timeout connecting to the MASTER",
                };
                env.log(Level::Warning, || format!("{what} for {timeout} seconds (repl-timeout)"));
                self.give_up_link(env, true);
            }
            Stage::Connected => self.acknowledge(),
            _ => {}
        }
    }

    pub(super) fn dial_master(&mut self, env: &mut Env) {
        let conn = self.node.next_dialed();
        let Some(link) = &mut self.node.replication.master else { return };
        link.conn = Some(conn);
        link.stage = Stage::Connecting;
        link.last_io_secs = env.wall.as_secs();
        let address = format!("{}:{}", link.host, link.port);
        env.log(Level::Notice, || format!("Connecting to MASTER {address}"));
        let from = self.node.config.network.bind_source_addr.parse().ok();
        env.outbox.push(Action::Dial { conn, host: link.host.clone(), port: link.port, from });
    }

    /// Closes the link. With `redial` the next attempt follows immediately, otherwise with the next
    /// periodic run.
    fn give_up_link(&mut self, env: &mut Env, redial: bool) {
        let Some(link) = &mut self.node.replication.master else { return };
        let conn = link.lost(env.wall.as_secs());
        link.stage = Stage::Down { redial };
        self.node.replication.to_close.extend(conn);
    }

    /// Begins the handshake on a new connection to the master.
    pub(super) fn dialed(&mut self, env: &mut Env, conn: ConnId) {
        if !self.is_master_link(conn) {
            // The link was given up during the dialing.
            return env.outbox.push(Action::Close { conn });
        }
        let Some(link) = &mut self.node.replication.master else { return };
        link.stage = Stage::Pinging;
        link.last_io_secs = env.wall.as_secs();
        let mut session =
            Session::new(conn, format!("{}:{}", link.host, link.port), String::new(), env.monotonic);
        session.role = Role::Master;
        self.node.clients.sessions.insert(session);
        env.log(Level::Notice, || "MASTER <-> REPLICA sync started".into());
        self.tell_master(&["PING"]);
    }

    fn tell_master(&mut self, words: &[&str]) {
        let Some(conn) = self.node.replication.master.as_ref().and_then(|link| link.conn) else { return };
        let mut bytes = Vec::new();
        encode(words, &mut bytes);
        self.node.clients.send_raw(conn, &bytes);
    }

    /// Acknowledges to the master the offset that this node has applied, and the offset up to which
    /// its append-only file is synced.
    pub(super) fn acknowledge(&mut self) {
        let offset = self.node.replication.history.offset.to_string();
        let says_synced = self.node.config.generation.has(Feature::SyncedOffsets);
        match self.node.persistence.aof.synced_offset.filter(|_| says_synced) {
            Some(synced) => {
                self.tell_master(&["REPLCONF", "ACK", &offset, "FACK", &synced.to_string()]);
            }
            None => self.tell_master(&["REPLCONF", "ACK", &offset]),
        }
    }

    /// Processes bytes from the master as far as possible.
    pub(super) fn read_from_master(&mut self, env: &mut Env, bytes: &[u8]) {
        let Some(link) = &mut self.node.replication.master else { return };
        link.last_io_secs = env.wall.as_secs();
        link.buffer.extend_from_slice(bytes);
        if link.is_up() {
            link.decoder.feed(bytes);
        }
        self.resume_master_stream(env);
    }

    /// Processes the buffered bytes of the master as far as possible.
    pub(super) fn resume_master_stream(&mut self, env: &mut Env) {
        loop {
            // Input that arrives during the loading of the snapshot waits for its end, and likewise
            // for that of a running script.
            if self.node.loading.is_some() || self.node.busy.is_some() {
                return;
            }
            let Some(link) = &self.node.replication.master else { return };
            let went_on = match &link.stage {
                Stage::Connected => self.repeat_stream(env).map(|()| false),
                Stage::Transfer { .. } => self.receive_snapshot(env),
                Stage::Pinging | Stage::Introducing(_) | Stage::Asking => self.shake_hands(env),
                Stage::Down { .. } | Stage::Connecting => Ok(false),
            };
            match went_on {
                Ok(true) => {}
                Ok(false) => return,
                Err(Broken) => return self.give_up_link(env, false),
            }
        }
    }

    /// Processes one line of the handshake; returns false if the line is incomplete.
    fn shake_hands(&mut self, env: &mut Env) -> Result<bool, Broken> {
        let Some(link) = &mut self.node.replication.master else { return Ok(false) };
        let Some(line) = link.line().map_err(|_| Broken)? else { return Ok(false) };
        // Empty lines only show that the master is alive.
        if line.is_empty() {
            return Ok(true);
        }
        let refused = line.starts_with('-');
        match &mut link.stage {
            Stage::Pinging => {
                let alive = ["+", "-NOAUTH", "-NOPERM", "-ERR operation not permitted"];
                if !alive.iter().any(|start| line.starts_with(start)) {
                    env.log(Level::Warning, || format!("Error reply to PING from MASTER: {line}"));
                    return Err(Broken);
                }
                self.introduce();
            }
            Stage::Introducing(answers) => {
                if answers.pop_front() == Some(Answer::Auth) && refused {
                    env.log(Level::Warning, || format!("Unable to AUTH to MASTER: {line}"));
                    return Err(Broken);
                }
                if answers.is_empty() {
                    link.stage = Stage::Asking;
                    let next = (self.node.replication.history.offset + 1).to_string();
                    let id = self.node.replication.history.id.clone();
                    let resumes =
                        self.node.replication.master.as_ref().is_some_and(|link| link.resume.is_some());
                    let mut words = vec!["PSYNC"];
                    words.extend(if resumes { [&id[..], &next[..]] } else { ["?", "-1"] });
                    words.extend(self.node.replication.failover.as_ref().map(|_| "FAILOVER"));
                    self.tell_master(&words);
                }
            }
            Stage::Asking => return self.answered(env, &line).map(|()| true),
            _ => {}
        }
        Ok(true)
    }

    fn introduce(&mut self) {
        let config = &self.node.config;
        let port = if config.replication.announce.port == 0 {
            config.network.port
        } else {
            config.replication.announce.port
        };
        let (port, ip) = (port.to_string(), config.replication.announce.ip.clone());
        let (auth, user) = (config.replication.masterauth.clone(), config.replication.masteruser.clone());
        let mut answers = VecDeque::new();
        if !auth.is_empty() {
            // Without a name the password is that of the default user.
            let words = ["AUTH", &user, &auth];
            self.tell_master(&words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>());
            answers.push_back(Answer::Auth);
        }
        self.tell_master(&["REPLCONF", "listening-port", &port]);
        if !ip.is_empty() {
            self.tell_master(&["REPLCONF", "ip-address", &ip]);
            answers.push_back(Answer::Introduction);
        }
        self.tell_master(&["REPLCONF", "capa", "eof", "capa", "psync2"]);
        answers.extend([Answer::Introduction, Answer::Introduction]);
        let generation = self.node.config.generation;
        if generation.is_valkey() {
            self.tell_master(&["REPLCONF", "version", generation.version()]);
            answers.push_back(Answer::Introduction);
        }
        if let Some(link) = &mut self.node.replication.master {
            link.stage = Stage::Introducing(answers);
        }
    }

    /// Processes the master's answer to PSYNC.
    fn answered(&mut self, env: &mut Env, line: &str) -> Result<(), Broken> {
        let now_secs = env.wall.as_secs();
        if self.node.replication.failover.is_some() {
            if !line.starts_with("+FULLRESYNC") && !line.starts_with("+CONTINUE") {
                env.log(Level::Notice, || {
                    "Failover target rejected psync request: the failover is called off".into()
                });
                self.node.abort_failover(env);
                return Ok(());
            }
            self.node.replication.failover = None;
        }
        let Some(link) = &mut self.node.replication.master else { return Ok(()) };
        let mut words = line.split(' ');
        match words.next() {
            Some("+FULLRESYNC") => {
                let position = words.next().filter(|id| id.len() == 40).zip(words.next());
                let (id, offset) = position.ok_or(Broken)?;
                let offset = offset.parse().map_err(|_| Broken)?;
                env.log(Level::Notice, || format!("Full resync from master: {id}:{offset}"));
                link.stage = Stage::Transfer {
                    position: Some((id.to_owned(), offset)),
                    payload: Payload::Unannounced,
                };
            }
            Some("+CONTINUE") => {
                let Some(db) = link.resume else { return Err(Broken) };
                link.stage = Stage::Connected;
                link.down_since = None;
                env.log(Level::Notice, || "Successful partial resynchronization with master".into());
                let rest = link.buffer.clone();
                link.decoder.feed(&rest);
                if let Some(session) = link.conn.and_then(|conn| self.node.clients.sessions.get_mut(conn)) {
                    session.db = db;
                }
                let (size, history) =
                    (self.node.config.replication.backlog_size, &mut self.node.replication.history);
                if let Some(id) = words.next().filter(|id| id.len() == 40 && *id != history.id) {
                    history.fork(id.to_owned());
                    self.node.replication.drop_replicas();
                }
                let offset = self.node.replication.history.offset;
                self.node.replication.backlog.get_or_insert_with(|| Backlog::new(size, offset));
            }
            // Not possible now: the master has lost its own master, or is loading.
            Some("-NOMASTERLINK" | "-LOADING") => {
                env.log(Level::Notice, || format!("MASTER is currently unable to PSYNC: {line}"));
                return Err(Broken);
            }
            _ => {
                link.stage = Stage::Transfer { position: None, payload: Payload::Unannounced };
                self.tell_master(&["SYNC"]);
            }
        }
        if let Some(link) = &mut self.node.replication.master {
            link.last_io_secs = now_secs;
        }
        Ok(())
    }

    /// Receives the snapshot; returns false if it is incomplete.
    fn receive_snapshot(&mut self, env: &mut Env) -> Result<bool, Broken> {
        let loads_as_it_comes = self.node.receiving().is_some();
        let Some(link) = &mut self.node.replication.master else { return Ok(false) };
        let Stage::Transfer { position, payload } = &mut link.stage else { return Ok(false) };
        let (len, mark_len) = match payload {
            Payload::Unannounced => {
                let (position, mut announced) = (position.take(), Payload::Unannounced);
                let Some(line) = link.line().map_err(|_| Broken)? else {
                    link.stage = Stage::Transfer { position, payload: announced };
                    return Ok(false);
                };
                if let Some(mark) = line.strip_prefix("$EOF:") {
                    announced = Payload::Marked(mark.as_bytes().try_into().map_err(|_| Broken)?);
                } else if let Some(len) = line.strip_prefix('$') {
                    let len = len.parse().ok().filter(|&len| len <= PAYLOAD_LEN_MAX).ok_or(Broken)?;
                    announced = Payload::Sized(len);
                } else if !line.is_empty() {
                    return Err(Broken);
                }
                link.stage = Stage::Transfer { position, payload: announced };
                if self.node.receiving().is_some() {
                    env.log(Level::Notice, || LOADING.into());
                }
                return Ok(true);
            }
            Payload::Sized(len) if link.buffer.len() >= *len => (*len, 0),
            // The master sends nothing after the mark until the replica acknowledges that it has
            // loaded the snapshot.
            Payload::Marked(mark) if link.buffer.ends_with(mark) => {
                (link.buffer.len() - mark.len(), mark.len())
            }
            _ if link.buffer.len() > PAYLOAD_LEN_MAX => return Err(Broken),
            _ => return Ok(false),
        };
        let position = position.take();
        if !std::mem::take(&mut link.read) {
            let snapshot = link.buffer.clone();
            if !loads_as_it_comes {
                env.log(Level::Notice, || LOADING.into());
            }
            if self.wait_for_snapshot(env, &snapshot[..len]) {
                let link = self.node.replication.master.as_mut().expect("it was there before");
                if let Stage::Transfer { position: place, .. } = &mut link.stage {
                    *place = position;
                }
                return Ok(false);
            }
        }
        let Some(link) = &mut self.node.replication.master else { return Ok(false) };
        let snapshot = link.buffer.split_to(len);
        link.buffer.advance(mark_len);
        self.load_from_master(env, &snapshot, position, mark_len > 0)?;
        Ok(true)
    }

    /// Begins to load the snapshot if that takes time. The old data is dropped immediately.
    fn wait_for_snapshot(&mut self, env: &Env, snapshot: &[u8]) -> bool {
        if self.node.load_time(usize::MAX).is_zero() {
            return false;
        }
        let Ok(opened) = rdb::open(snapshot, &self.node.config, env.wall.as_millis(), true) else {
            return false;
        };
        let keys = opened.dbs.iter().map(Db::len).sum();
        let (now, now_secs) = (env.monotonic, env.wall.as_secs());
        let begun = self.node.begin_loading(keys, snapshot.len(), Purpose::Master, now, now_secs);
        if let Some(link) = self.node.replication.master.as_mut().filter(|_| begun) {
            // The data that could be continued from is gone.
            link.resume = None;
        }
        begun
    }

    fn load_from_master(
        &mut self,
        env: &mut Env,
        snapshot: &[u8],
        position: Option<(String, u64)>,
        acknowledge: bool,
    ) -> Result<(), Broken> {
        // A replica keeps keys that have expired by its own clock: only its master deletes them.
        let opened = match rdb::open(snapshot, &self.node.config, env.wall.as_millis(), true) {
            Ok(opened) => opened,
            Err(error) => {
                env.log(Level::Warning, || format!("Failed trying to load the MASTER's snapshot: {error}"));
                return Err(Broken);
            }
        };
        // The snapshot replaces the file on disk. A background snapshot of the old data must not
        // overwrite it.
        self.node.give_up_snapshot(env);
        let file = Bytes::copy_from_slice(snapshot);
        if let Err(error) = self.node.keep_snapshot(env, file) {
            env.log(Level::Warning, || format!("The snapshot of the master cannot be written: {error}"));
            return Err(Broken);
        }
        self.node.take_in(opened.dbs, &opened.libraries).map_err(|_| Broken)?;
        self.node.data_replaced();
        self.node.invalidate_all(None);
        // The replication id changes, so sub-replicas must resynchronize as well.
        self.node.replication.drop_replicas();
        let (id, offset) = position.unwrap_or_else(|| (env.random_id(), 0));
        self.node.replication.history.adopt(id, offset);
        self.node.replication.backlog = Some(Backlog::new(self.node.config.replication.backlog_size, offset));
        let Some(link) = &mut self.node.replication.master else { return Ok(()) };
        let db = opened.replication.map_or(0, |(_, _, db)| db);
        link.resume = Some(db);
        link.stage = Stage::Connected;
        link.down_since = None;
        let rest = link.buffer.clone();
        link.decoder.feed(&rest);
        if let Some(session) = link.conn.and_then(|conn| self.node.clients.sessions.get_mut(conn)) {
            session.db = db;
        }
        env.log(Level::Notice, || "MASTER <-> REPLICA sync: Finished with success".into());
        if acknowledge {
            self.acknowledge();
        }
        if self.node.persistence.aof.state != LogState::Off {
            self.node.stop_log(env);
            if let Err(error) = self.node.start_log(env, false) {
                env.log(Level::Warning, || format!("The append-only file cannot be begun: {error}"));
                let _ = self.node.start_log(env, true);
            }
        }
        Ok(())
    }

    /// Applies the commands of the stream, and propagates each to this node's own replicas.
    fn repeat_stream(&mut self, env: &mut Env) -> Result<(), Broken> {
        let limits = Limits { bulk_len_max: PAYLOAD_LEN_MAX, ..Limits::default() };
        loop {
            // A pause stops all changes of the data, so the stream waits until it ends.
            if self.node.paused.is_some() {
                return Ok(());
            }
            let Some(link) = self.node.replication.master.as_mut().filter(|link| link.is_up()) else {
                return Ok(());
            };
            let Some(args) = link.decoder.next(&limits).map_err(|_| Broken)? else { return Ok(()) };
            let name = args[0].to_ascii_lowercase();
            match (&name[..], &mut link.batch) {
                (b"multi", batch @ None) => {
                    *batch = Some(Vec::new());
                    continue;
                }
                (b"exec", batch @ Some(_)) => {
                    let commands = batch.take().unwrap_or_default();
                    self.repeat(env, &commands);
                }
                // An incomplete transaction counts as nothing: until EXEC has come, the position
                // stays before MULTI.
                (_, Some(batch)) => {
                    batch.push(args);
                    continue;
                }
                (b"replconf", None) => {
                    if args.get(1).is_some_and(|option| option.eq_ignore_ascii_case(b"getack")) {
                        self.acknowledge();
                    }
                }
                (_, None) => self.repeat(env, &[args]),
            }
            let Some(link) = &mut self.node.replication.master else { return Ok(()) };
            let applied = link.buffer.len() - link.decoder.unread();
            let bytes = link.buffer.split_to(applied).freeze();
            self.stream(&bytes);
        }
    }

    /// Runs commands of the stream as one batch.
    fn repeat(&mut self, env: &mut Env, commands: &[Vec<Bytes>]) {
        let Some(conn) = self.node.replication.master.as_ref().and_then(|link| link.conn) else { return };
        let mut effects = Effects::default();
        let now_ms = env.wall.as_millis();
        for args in commands {
            let Some(session) = self.node.clients.sessions.get_mut(conn) else { return };
            session.last_active = env.monotonic;
            if args[0].eq_ignore_ascii_case(b"select") {
                let db = args.get(1).and_then(|db| usize::try_from(integer(db).ok()?).ok());
                if let Some(db) = db.filter(|&db| db < self.node.dbs.len()) {
                    session.db = db;
                    if let Some(link) = &mut self.node.replication.master {
                        link.resume = Some(db);
                    }
                }
                continue;
            }
            let db = session.db;
            // A command that this node does not know is logged and skipped, unless `diverge` ends
            // the node.
            let spec = match find(self.node.config.generation, args) {
                Ok(spec) => spec,
                Err(error) => {
                    if !self.diverge(env, &error.0, "<unknown>") {
                        return;
                    }
                    continue;
                }
            };
            if spec.flags.contains(Flags::WRITE)
                && permit::disk(&self.node).is_err()
                && !self.node.config.replication.replica_ignore_disk_write_errors
            {
                env.log(Level::Warning, || "Replica was unable to write command to disk.".into());
                return self.node.abort();
            }
            let mut ctx = Ctx::new(&mut self.node, env, &mut effects, conn, db, Origin::Replication, now_ms);
            if let Reply::Error(error) = run(&mut ctx, spec, args)
                && !self.diverge(env, &error, spec.name)
            {
                return;
            }
        }
        // The link to the master neither subscribes nor tracks, so it gets no pushes.
        self.settle_for(env, conn, effects);
    }

    /// Records that a command of the master has failed here: the data may differ from now on.
    /// Returns true if the node continues nevertheless (`propagation-error-behavior`).
    fn diverge(&mut self, env: &mut Env, error: &str, command: &str) -> bool {
        self.node.stats.unexpected_errors += 1;
        env.log(Level::Warning, || {
            critical("This replica is sending an error to its master", error, command)
        });
        let goes_on = self.node.config.replication.propagation_error_behavior == "ignore";
        if self.node.config.replication.replica_read_only && !goes_on {
            self.node.abort();
            return false;
        }
        true
    }
}
