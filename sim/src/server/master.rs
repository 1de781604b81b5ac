//! The master's side of replication: sends snapshots and the stream to its replicas.

use bytes::Bytes;

use super::{Server, aof::is_message};
use crate::{
    config::Config,
    durability::{LogState, rdb},
    effect::{Framing, PropagateTo, Propagated},
    env::Env,
    event::ConnId,
    generation::Feature,
    log::Level,
    node::{Job, Node},
    replication::{Feed, ReplicaLink, encode, encode_batch},
};

impl Server {
    /// Appends a batch to the stream, if this node has a stream of its own.
    pub(super) fn feed_batch(&mut self, commands: &[Propagated], framing: Framing, now_ms: i64) {
        if commands.is_empty() {
            return;
        }
        if !self.node.replication.streams() {
            return self.count_unsent(commands);
        }
        let mut bytes = Vec::new();
        let relative: Vec<Propagated>;
        let sent = if self.node.config.mutations.replicate_in_part { 1 } else { commands.len() };
        let commands = &commands[..sent];
        let Config { generation, mutations, .. } = &self.node.config;
        let is_relative = mutations.replicate_relative_ttl || !generation.has(Feature::ReplicatedExpiryTimes);
        let commands = if is_relative {
            relative = commands.iter().map(|command| with_relative_ttl(command, now_ms)).collect();
            &relative
        } else {
            commands
        };
        encode_batch(commands, framing, &mut self.node.replication.selected, &mut bytes);
        self.stream(&bytes);
    }

    /// Counts commands that go to the append-only file only, because there are no replicas: WAITAOF
    /// needs an offset for each. A transaction has two more commands, MULTI and EXEC.
    fn count_unsent(&mut self, commands: &[Propagated]) {
        let Node { replication, persistence, config, .. } = &mut *self.node;
        if persistence.aof.state == LogState::Off
            || replication.master.is_some()
            || !config.generation.has(Feature::SyncedOffsets)
        {
            return;
        }
        let appended =
            commands.iter().filter(|command| command.to == PropagateTo::All && !is_message(command));
        let frame = if commands.len() > 1 { 2 } else { 0 };
        replication.history.offset += frame + appended.count() as u64;
    }

    /// Asks every replica for its offset, in the stream itself.
    pub(super) fn ask_for_acknowledgements(&mut self) {
        self.feed_words(&["REPLCONF", "GETACK", "*"]);
    }

    fn feed_words(&mut self, words: &[&str]) {
        if self.node.replication.streams() {
            let mut bytes = Vec::new();
            encode(words, &mut bytes);
            self.stream(&bytes);
        } else if self.node.config.generation.has(Feature::SyncedOffsets) {
            // The offset counts a request for acknowledgements even if no replica receives it.
            self.node.replication.history.offset += 1;
        }
    }

    pub(super) fn feed_periodically(&mut self, env: &mut Env, periods: u64) {
        let now_secs = env.wall.as_secs();
        let config = &self.node.config;
        let (timeout, lag_max) = (config.replication.timeout as i64, config.replication.min_replicas_max_lag);
        let (pending_max, offset) =
            (config.clients.output_limits[1].hard, self.node.replication.history.offset);
        let pings = periods.is_multiple_of(config.replication.ping_period.max(1));
        if self.node.replication.attached().next().is_some() {
            let waits =
                self.node.replication.failover.as_ref().is_some_and(|failover| failover.deadline.is_some());
            let waits = waits || self.node.cluster.as_ref().is_some_and(|cluster| cluster.pauses_writes());
            if pings && !waits && self.node.replication.master.is_none() {
                self.feed_words(&["PING"]);
            }
            let mut waiting = Vec::new();
            let mut stuck = Vec::new();
            let mut late = Vec::new();
            for (&conn, replica) in self.node.replication.attached() {
                match &replica.feed {
                    Feed::WaitingForSnapshot { .. } => waiting.push(conn),
                    feed if pending_max > 0
                        && feed
                            .waits_from()
                            .is_some_and(|from| offset.saturating_sub(from) > pending_max) =>
                    {
                        stuck.push(conn);
                    }
                    Feed::Saving { mark: None, .. } => waiting.push(conn),
                    _ if !replica.pre_psync && replica.lag_secs(now_secs) > timeout => late.push(conn),
                    _ => {}
                }
            }
            // A line break shows the replica that the master is alive before the snapshot begins.
            waiting.into_iter().for_each(|conn| self.node.clients.send_raw(conn, b"\n"));
            self.node.replication.to_close.extend(stuck);
            for conn in late {
                let address = self.node.replica_name(conn);
                env.log(Level::Warning, || {
                    format!("Disconnecting timedout replica (streaming sync): {address}")
                });
                self.node.replication.to_close.push(conn);
            }
        }
        self.node.replication.count_good(now_secs, lag_max);
    }

    /// Begins to write a snapshot for the replicas that have waited long enough for others to share
    /// it.
    pub(super) fn start_due_snapshots(&mut self, env: &mut Env) {
        self.share_snapshot(env);
        // In the middle of a script the data is not consistent.
        if self.node.persistence.background.is_some() || self.node.busy.is_some() {
            return;
        }
        let now_secs = env.wall.as_secs();
        let diskless = self.node.config.replication.diskless_sync;
        let delay = self.node.config.replication.diskless_sync_delay as i64;
        let waiting =
            self.node.replication.replicas.iter().filter_map(|(&conn, replica)| match replica.feed {
                Feed::WaitingForSnapshot { since, .. } => Some((conn, replica, since)),
                _ => None,
            });
        // Replicas that want another kind of snapshot are served after this one.
        let mut waiting: Vec<_> = waiting.collect();
        let generation = self.node.config.generation;
        let wanted = |replica: &ReplicaLink| (replica.libraries_only, replica.rdb_version(generation));
        let Some((libraries_only, version)) = waiting.first().map(|(_, replica, _)| wanted(replica)) else {
            return;
        };
        waiting.retain(|(_, replica, _)| wanted(replica) == (libraries_only, version));
        // A snapshot without an end mark goes through a file, which needs no delay.
        let longest = waiting
            .iter()
            .map(|(_, replica, since)| if replica.eof && diskless { now_secs - since } else { delay });
        let longest = longest.max().unwrap_or(0);
        // With this many replicas the snapshot need not wait for more.
        let enough = self.node.config.replication.diskless_sync_max_replicas;
        let in_company = enough > 0 && waiting.len() >= enough;
        if longest < delay && !in_company {
            return;
        }
        let marked = (diskless || libraries_only) && waiting.iter().all(|(_, replica, _)| replica.eof);
        let waiting: Vec<ConnId> = waiting.into_iter().map(|(conn, ..)| conn).collect();
        // A replica that reads the stream from here on has no database selected yet.
        self.node.replication.selected = None;
        let origin = rdb::Origin { version: Some(version), ..self.node.snapshot_origin(now_secs, false) };
        let dbs = if libraries_only { &[][..] } else { &self.node.dbs[..] };
        if let Some(db) = rdb::unwritable(dbs, version, &self.node.config) {
            env.log(Level::Warning, || format!("Can't store key (db {db}) in RDB version {version}"));
            let until = self.node.fail_snapshot_for_replicas(env);
            let offset = self.node.replication.history.offset;
            for conn in waiting {
                self.promise(env, conn, Feed::Saving { until, snapshot: Bytes::new(), mark: None, offset });
            }
            return self.node.replication.keep_for_replicas();
        }
        let snapshot = rdb::write(dbs, &self.node.libraries, &origin, &self.node.config);
        let until = self.node.begin_snapshot_for_replicas(env, (!marked).then(|| snapshot.clone()));
        let offset = self.node.replication.history.offset;
        for conn in waiting {
            let mark = env.random_id();
            let snapshot = snapshot.clone();
            self.promise(env, conn, Feed::Saving { until, snapshot, mark: marked.then_some(mark), offset });
        }
        self.node.replication.keep_for_replicas();
    }

    /// Lets a replica that has just come share a snapshot that is being written through a file,
    /// together with the first replica it is for. The newcomer must have all of that replica's
    /// capabilities and want the same content.
    fn share_snapshot(&mut self, env: &mut Env) {
        let job = self.node.persistence.background.as_ref().map(|background| &background.job);
        let is_file = matches!(job, Some(Job::ForReplicas { file: Some(_), .. }));
        let replicas = &mut self.node.replication.replicas;
        let mut come: Vec<ConnId> = Vec::new();
        for (&conn, replica) in replicas.iter_mut() {
            if let Feed::WaitingForSnapshot { may_share, .. } = &mut replica.feed
                && std::mem::take(may_share)
                && is_file
            {
                come.push(conn);
            }
        }
        let generation = self.node.config.generation;
        for conn in come {
            let replicas = &self.node.replication.replicas;
            let comer = &replicas[&conn];
            let suits = |replica: &&ReplicaLink| {
                matches!(replica.feed, Feed::Saving { .. }) && (!replica.snapshot_only || comer.snapshot_only)
            };
            let Some(first) = replicas.values().find(suits) else { continue };
            let can_all = (comer.eof || !first.eof)
                && (comer.psync2 || !first.psync2)
                && comer.rdb_version(generation) == first.rdb_version(generation);
            if can_all && comer.libraries_only == first.libraries_only {
                let shared = first.feed.clone();
                self.promise(env, conn, shared);
            }
        }
    }

    /// Announces to a replica the offset at which the stream continues after the snapshot.
    fn promise(&mut self, env: &mut Env, conn: ConnId, feed: Feed) {
        let Feed::Saving { ref mark, offset, .. } = feed else { return };
        let promise = format!("+FULLRESYNC {} {offset}\r\n", self.node.replication.history.id);
        let begin = mark.as_ref().map(|mark| format!("$EOF:{mark}\r\n"));
        let name = self.node.replica_name(conn);
        env.log(Level::Notice, || format!("Starting full sync with replica {name}"));
        let Some(replica) = self.node.replication.replicas.get_mut(&conn) else { return };
        replica.acked_at = env.wall.as_secs();
        let pre_psync = replica.pre_psync;
        replica.feed = feed;
        if !pre_psync {
            self.node.clients.send_raw(conn, promise.as_bytes());
        }
        if let Some(begin) = begin {
            self.node.clients.send_raw(conn, begin.as_bytes());
        }
    }

    /// Sends the written snapshot to the replicas that wait for it. If its file could not be
    /// written, those replicas are disconnected.
    pub(super) fn send_written_snapshots(&mut self, env: &mut Env, kept: bool) {
        let now_secs = env.wall.as_secs();
        let Node { replication, .. } = &mut *self.node;
        let mut written = Vec::new();
        for (&conn, replica) in &mut replication.replicas {
            match &mut replica.feed {
                Feed::Saving { mark: None, .. } if !kept => {
                    replica.feed = Feed::Introduced;
                    replication.to_close.push(conn);
                }
                Feed::Saving { snapshot, mark, offset, .. } => {
                    written.push((conn, std::mem::take(snapshot), mark.take(), *offset));
                }
                _ => {}
            }
        }
        for (conn, snapshot, mark, offset) in written {
            let Some(replica) = self.node.replication.replicas.get_mut(&conn) else { continue };
            replica.acked_at = now_secs;
            // A replica that asked for only a snapshot gets no stream.
            replica.feed = match mark {
                _ if replica.snapshot_only => Feed::Introduced,
                Some(_) => Feed::Loading { offset },
                None => Feed::Online,
            };
            let (online, follows) = (replica.is_online(), replica.feed == Feed::Online);
            if mark.is_none() {
                self.node.clients.send_raw(conn, format!("${}\r\n", snapshot.len()).as_bytes());
            }
            self.node.clients.send_raw(conn, &snapshot);
            self.node.clients.send_raw(conn, mark.unwrap_or_default().as_bytes());
            if follows {
                let backlog = self.node.replication.backlog.as_ref();
                let since = backlog.and_then(|backlog| backlog.since(offset + 1));
                self.node.clients.send_raw(conn, &since.expect("the backlog holds what a replica waits for"));
            }
            if online {
                let name = self.node.replica_name(conn);
                env.log(Level::Notice, || format!("Synchronization with replica {name} succeeded"));
            }
        }
        self.node.replication.keep_for_replicas();
        self.node.replication.count_good(now_secs, self.node.config.replication.min_replicas_max_lag);
    }
}

/// Rewrites an absolute expiry to a relative TTL, as before Redis 7.
fn with_relative_ttl(command: &Propagated, now_ms: i64) -> Propagated {
    let mut args = command.args.clone();
    let left = |when: &Bytes| {
        let when: Option<i64> = std::str::from_utf8(when).ok().and_then(|text| text.parse().ok());
        when.map(|when| Bytes::from(when.saturating_sub(now_ms).max(1).to_string()))
    };
    match args.first().map(|name| name.to_ascii_lowercase()).as_deref() {
        Some(b"pexpireat") => {
            if let Some(left) = args.get(2).and_then(left) {
                args[0] = Bytes::from_static(b"PEXPIRE");
                args[2] = left;
            }
        }
        Some(b"set") => {
            let at = args.iter().position(|word| word.eq_ignore_ascii_case(b"PXAT"));
            if let Some((at, left)) = at.and_then(|at| Some((at, args.get(at + 1).and_then(left)?))) {
                args[at] = Bytes::from_static(b"PX");
                args[at + 1] = left;
            }
        }
        _ => {}
    }
    Propagated { db: command.db, args, to: command.to }
}
