//! The replication work of a node: the periodic work once a second, and the requests of commands
//! and of lost links.
//!
//! `server/replica.rs` is the replica's side of a link, `server/master.rs` the master's.

use std::time::Duration;

use super::Server;
use crate::{
    commands::{find_in, routing},
    env::{Env, Observation},
    event::{Action, ConnId},
    generation::Feature,
    log::Level,
    node::clients::{BlockedOn, Session},
    replication::{Feed, Stage},
    resp::Reply,
    time::{Monotonic, Wall},
};

impl Server {
    /// Returns the time at which replication next has work, if it has any.
    pub(super) fn peers_due(&self, env: &Env) -> Option<Monotonic> {
        let waits = |session: &Session| {
            let blocked = session.blocked.as_ref()?;
            blocked.on.awaits_offset().then_some(blocked.deadline)?
        };
        let deadlines = self.node.replication.waiting.iter();
        let deadline = deadlines.filter_map(|conn| waits(self.node.clients.sessions.get(*conn)?)).min();
        let deadline = [deadline, self.node.replication.saved_at()].into_iter().flatten().min();
        if self.node.debug.cron_paused {
            return deadline;
        }
        let backlog = self.backlog_ends().map(|at| env.monotonic + Wall::from_secs(at).since(env.wall));
        [self.node.replication.cron_due, deadline, backlog].into_iter().flatten().min()
    }

    /// Returns the wall-clock second at which a master without replicas forgets its backlog.
    fn backlog_ends(&self) -> Option<i64> {
        let (replication, ttl) = (&self.node.replication, self.node.config.replication.backlog_ttl);
        let kept = replication.backlog.is_some() && replication.master.is_none() && ttl > 0;
        let alone = kept && replication.attached().next().is_none();
        alone.then(|| replication.no_replicas_since.saturating_add(ttl as i64).saturating_add(1))
    }

    /// Forgets the backlog if the node has been without replicas for long enough. Writes are no
    /// longer kept, so the history continues under a new replication id.
    fn forget_backlog(&mut self, env: &mut Env) {
        if self.backlog_ends().is_some_and(|at| env.wall.as_secs() >= at) {
            env.log(Level::Notice, || "The replication backlog is freed: there are no replicas".into());
            let id = env.random_id();
            self.node.replication.history.restart(id);
            self.node.replication.backlog = None;
        }
    }

    /// Runs the periodic work if it is due. Its phase is that of the node's start, so that an idle
    /// node needs no alarm.
    pub(super) fn run_peers_due(&mut self, env: &mut Env) {
        if self.node.debug.cron_paused {
            return;
        }
        self.forget_backlog(env);
        if self.node.replication.cron_due.is_none_or(|due| env.monotonic < due) {
            return;
        }
        self.node.replication.cron_due = None;
        let periods = env.monotonic.since(self.node.started).as_secs();
        self.follow_periodically(env);
        self.feed_periodically(env, periods);
    }

    /// Does the replication work of the step, before replies are sent.
    pub(super) fn settle_peers(&mut self, env: &mut Env) {
        if self.node.replication.is_idle() {
            self.node.replication.cron_due = None;
            return;
        }
        self.settle_role(env);
        self.close_peers(env);
        let redial = |stage: &Stage| *stage == Stage::Down { redial: true };
        if self.node.replication.master.as_ref().is_some_and(|link| redial(&link.stage)) {
            self.dial_master(env);
        }
        self.start_due_snapshots(env);
        self.end_snapshot_for_replicas(env);
        self.close_peers(env);
        // The request would make the stream longer, which must not happen during a pause.
        if self.node.replication.ack_wanted && !self.node.is_paused() {
            self.node.replication.ack_wanted = false;
            if self.node.replication.master.is_none() {
                self.ask_for_acknowledgements();
            }
        }
        self.wake_waiting_for_replicas(env);
        if self.node.replication.is_idle() {
            self.node.replication.cron_due = None;
        } else if self.node.replication.cron_due.is_none() {
            let periods = env.monotonic.since(self.node.started).as_secs();
            self.node.replication.cron_due = Some(self.node.started + Duration::from_secs(periods + 1));
        }
    }

    /// Carries out the consequences of a role change, if there was one.
    pub(super) fn settle_role(&mut self, env: &mut Env) {
        if !std::mem::take(&mut self.node.replication.role_changed) {
            return;
        }
        let is_replica = self.node.is_replica();
        if env.observing {
            let role = if is_replica { "replica" } else { "master" };
            env.observations.push(Observation::Role { role });
        }
        if !is_replica {
            return;
        }
        // The data or acknowledgements that they wait for cannot come any more.
        let blocked = self.node.clients.sessions.iter().filter(|session| {
            session
                .blocked
                .as_ref()
                .is_some_and(|blocked| blocked.on == BlockedOn::Keys || blocked.on.awaits_offset())
        });
        let blocked: Vec<(ConnId, bool)> = blocked
            .map(|session| {
                let redirects = session.redirects
                    && self.node.config.generation.has(Feature::RedirectBlocked)
                    && session.blocked.as_ref().is_some_and(|blocked| blocked.on == BlockedOn::Keys);
                (session.id, redirects)
            })
            .collect();
        for (conn, redirects) in blocked {
            if redirects {
                self.redirect_blocked(conn);
                continue;
            }
            let text = "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)";
            self.node.stats.note_error(text);
            self.node.send(conn, &Reply::Error(text.into()));
            self.node.clients.close(conn);
        }
    }

    /// Sends a client that waits for keys to the master, unless it may read here.
    fn redirect_blocked(&mut self, conn: ConnId) {
        let Some(session) = self.node.clients.sessions.get(conn) else { return };
        let Some(blocked) = &session.blocked else { return };
        let Ok(spec) = find_in(&self.node.config, &blocked.args) else { return };
        let Some(error) = routing::master_for(&self.node, conn, spec.flags) else { return };
        self.node.stats.calls_of(spec.name).rejected += 1;
        self.node.stats.note_error(&error.0);
        if self.node.clients.stop_waiting(conn).is_some() {
            self.node.answer_waited(conn, &error.into());
        }
    }

    fn close_peers(&mut self, env: &mut Env) {
        for conn in std::mem::take(&mut self.node.replication.to_close) {
            self.close_peer(env, conn);
        }
    }

    /// Closes a connection to a peer, which may still be dialing.
    fn close_peer(&mut self, env: &mut Env, conn: ConnId) {
        self.peer_gone(env, conn);
        if self.node.clients.sessions.contains(conn) {
            self.node.clients.close(conn);
        } else if conn.0 >= ConnId::DIALED {
            env.outbox.push(Action::Close { conn });
        }
    }

    /// Removes a connection from replication; called for every connection that ends.
    pub(super) fn peer_gone(&mut self, env: &mut Env, conn: ConnId) {
        let now_secs = env.wall.as_secs();
        let receiving = self.node.receiving().is_some();
        let replication = &mut self.node.replication;
        if let Some(link) = replication.master.as_mut().filter(|link| link.conn == Some(conn)) {
            if link.is_up() {
                env.log(Level::Warning, || "Connection with master lost".into());
            } else if receiving {
                let what = "MASTER <-> REPLICA sync: the snapshot ends early: Internal error in RDB";
                env.log(Level::Warning, || what.into());
            }
            link.lost(now_secs);
        }
        if self.node.replication.replicas.contains_key(&conn) {
            env.log(Level::Warning, || {
                format!("Connection with replica {} lost", self.node.replica_name(conn))
            });
        }
        let replication = &mut self.node.replication;
        if let Some(gone) = replication.replicas.remove(&conn) {
            if replication.attached().next().is_none() {
                replication.no_replicas_since = now_secs;
            }
            replication.count_good(now_secs, self.node.config.replication.min_replicas_max_lag);
            replication.keep_for_replicas();
            // A replica that this node has disconnected is `Introduced`: it may have waited for the
            // snapshot.
            if matches!(gone.feed, Feed::Saving { .. } | Feed::Introduced) {
                self.node.give_up_deserted_snapshot(env);
            }
        }
    }

    /// Answers WAIT and WAITAOF for clients with enough acknowledgements or a passed deadline.
    pub(super) fn wake_waiting_for_replicas(&mut self, env: &mut Env) {
        let mut awake = Vec::new();
        for conn in self.node.replication.waiting.clone() {
            let blocked = self.node.clients.sessions.get(conn).and_then(|session| session.blocked.as_ref());
            let found = blocked.and_then(|blocked| match blocked.on {
                BlockedOn::Replicas { replicas, offset } => {
                    let reached = self.node.replication.acknowledged(offset);
                    Some((blocked.deadline, reached >= replicas, Reply::from(reached)))
                }
                BlockedOn::Files { local, replicas, offset } => {
                    let synced = self.node.synced(offset);
                    Some((blocked.deadline, synced.suffices(local, replicas), Reply::from(synced)))
                }
                _ => None,
            });
            let Some((deadline, suffices, reply)) = found else {
                self.node.replication.waiting.remove(&conn);
                continue;
            };
            if suffices || deadline.is_some_and(|deadline| env.monotonic >= deadline) {
                awake.push((conn, reply));
            }
        }
        for (conn, reply) in awake {
            self.node.replication.waiting.remove(&conn);
            if let Some(session) = self.node.clients.sessions.get_mut(conn) {
                session.blocked = None;
            }
            self.node.answer_waited(conn, &reply);
        }
    }

    /// Returns true if the connection is this node's link to its master.
    pub(super) fn is_master_link(&self, conn: ConnId) -> bool {
        self.node.replication.master.as_ref().is_some_and(|link| link.conn == Some(conn))
    }

    /// Sends replicas the next bytes of the stream, and keeps them in the backlog for reconnecting
    /// ones.
    pub(super) fn stream(&mut self, bytes: &[u8]) {
        let replication = &mut self.node.replication;
        replication.history.offset += bytes.len() as u64;
        if let Some(backlog) = &mut replication.backlog {
            backlog.push(bytes);
        }
        let mut online = Vec::new();
        for (&conn, replica) in &replication.replicas {
            match &replica.feed {
                Feed::Online => online.push(conn),
                Feed::Introduced
                | Feed::WaitingForSnapshot { .. }
                | Feed::Saving { .. }
                | Feed::Loading { .. } => {}
            }
        }
        online.into_iter().for_each(|conn| self.node.clients.send_raw(conn, bytes));
    }
}
