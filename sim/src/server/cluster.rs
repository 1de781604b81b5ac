//! The server as a cluster node: passes events of the bus to the state machine, and carries out the
//! state machine's requests.

use super::{Server, StartError, finish::Finished};
use crate::{
    cluster::{Cluster, News},
    commands::{Flags, find_in},
    effect::Effects,
    env::{Env, Observation},
    event::Event,
    keyspace::Db,
    log::Level,
    node::clients::BlockedOn,
    resp::Reply,
    time::Monotonic,
};

impl Server {
    /// Starts the cluster state machine if the configuration says so, from the node's own cluster
    /// file.
    pub(super) fn start_cluster(&mut self, env: &mut Env) -> Result<(), StartError> {
        if !self.node.config.cluster.enabled {
            return Ok(());
        }
        let file = self.node.config.cluster.config_file.clone();
        let text = match &env.folder {
            Some(folder) if folder.has(&file) => {
                let unread = |error| StartError::File { file: file.clone(), error };
                let bytes = folder.read(&file).map_err(unread)?;
                String::from_utf8_lossy(&bytes).into_owned()
            }
            Some(_) => String::new(),
            None => self.node.persistence.disk.nodes.clone().unwrap_or_default(),
        };
        self.node.cluster = Some(Box::new(Cluster::new(env)));
        let started = self.node.with_cluster(env, |cluster, env, around| {
            *cluster = Cluster::start(&text, around, env)?;
            Ok(cluster.master_address())
        });
        match started.expect("it was just made") {
            Ok(master) => self.node.config.replication.replicaof = master,
            Err(corrupted) => return Err(StartError::Nodes(corrupted)),
        }
        Ok(())
    }

    /// Compares the slots of the cluster with the keys that were loaded.
    pub(super) fn verify_cluster(&mut self, env: &mut Env) -> Result<(), StartError> {
        if self.node.cluster.is_none() {
            return Ok(());
        }
        if !self.node.dbs[1..].iter().all(Db::is_empty) {
            return Err(StartError::OtherDatabases);
        }
        self.node.with_cluster(env, |cluster, _, around| cluster.verify(around));
        self.carry_out_wants(env);
        Ok(())
    }

    /// Processes an event of a bus connection; returns any other event.
    pub(super) fn take_for_cluster(&mut self, env: &mut Env, event: Event) -> Option<Event> {
        let conn = match &event {
            Event::Connected { conn, .. }
            | Event::Dialed { conn, .. }
            | Event::Bytes { conn, .. }
            | Event::Closed { conn }
            | Event::Unsent { conn, .. } => *conn,
            _ => return Some(event),
        };
        if !conn.is_bus() {
            return Some(event);
        }
        let loads = self.node.loading.is_some() && !self.node.is_replica();
        self.node.with_cluster(env, |cluster, env, around| match event {
            // A master that is still loading must not answer the bus: only part of its data is in
            // memory.
            Event::Connected { .. } if loads => cluster.refuse(conn),
            Event::Connected { peer, local, .. } => cluster.connected(conn, &peer, local, around.now),
            Event::Dialed { local, .. } => cluster.dialed(env, around, conn, local),
            Event::Bytes { bytes, .. } => cluster.received(env, around, conn, &bytes),
            Event::Closed { .. } => cluster.disconnected(around, conn),
            Event::Unsent { bytes, .. } => cluster.unsent(conn, bytes),
            _ => {}
        });
        self.carry_out_wants(env);
        None
    }

    /// Does the periodic work of the cluster if it is due, and the rest of the step's cluster work.
    pub(super) fn run_cluster(&mut self, env: &mut Env) {
        if self.node.cluster.is_none() {
            return;
        }
        let ticks = self.cluster_ticks();
        let ticked = self.node.with_cluster(env, |cluster, env, around| {
            cluster.end_pause(env.monotonic);
            let ticked = ticks && cluster.run_due(env, around);
            cluster.settle(env, around);
            ticked
        });
        self.carry_out_wants(env);
        if ticked == Some(true) {
            // A master that has just lost its slots is now a replica. Its clients get the
            // unblocking error of a replica, not a redirection.
            self.settle_role(env);
            self.end_foreign_waits(env);
            self.read_from_sources(env);
        }
    }

    /// Returns true if the periodic work of the cluster runs. A server that loads its data does
    /// nothing else.
    fn cluster_ticks(&self) -> bool {
        self.node.busy.is_none() && self.node.loading.is_none() && !self.node.debug.cron_paused
    }

    /// Returns the next time at which the cluster has work that nothing else triggers.
    pub(super) fn cluster_due(&self) -> Option<Monotonic> {
        let cluster = self.node.cluster.as_ref()?;
        let tick = self.cluster_ticks().then(|| cluster.next_tick());
        [tick, cluster.pause_ends()].into_iter().flatten().min()
    }

    pub(super) fn carry_out_wants(&mut self, env: &mut Env) {
        let mut effects = Effects::default();
        self.node.carry_out_for_cluster(env, &mut effects);
        self.settle(env, effects);
    }

    /// Replies to the clients that wait for keys which other nodes serve by now.
    fn end_foreign_waits(&mut self, env: &mut Env) {
        let waits = self.node.clients.sessions.iter().filter_map(|session| {
            let blocked = session.blocked.as_ref().filter(|blocked| blocked.on == BlockedOn::Keys)?;
            let reads = find_in(&self.node.config, &blocked.args)
                .is_ok_and(|spec| spec.flags.contains(Flags::READONLY));
            Some((session.id, blocked.keys.clone(), reads && session.readonly))
        });
        let waits: Vec<_> = waits.collect();
        for (conn, keys, reads_here) in waits {
            let foreign = self.node.with_cluster(env, |cluster, _, around| {
                cluster.unblocks(around, keys.iter().map(|key| &key[..]), reads_here)
            });
            let Some(elsewhere) = foreign.flatten() else { continue };
            let Some(blocked) = self.node.clients.stop_waiting(conn) else { continue };
            let text = elsewhere.text();
            self.node.stats.note_error(&text);
            let reply = Reply::Error(text.into());
            self.finish(env, conn, Finished { args: blocked.args, effects: None, reply, waited: true });
        }
    }

    /// Writes the cluster file before the messages are sent: no node learns of a vote or an epoch
    /// that a crash could undo.
    pub(super) fn carry_out_for_cluster(&mut self, env: &mut Env) {
        let Some(cluster) = &mut self.node.cluster else { return };
        let out = cluster.take_outbox();
        for line in out.log {
            env.log(Level::Notice, || line);
        }
        if env.observing {
            let news = out.news.into_iter();
            env.observations.extend(news.map(|News { event, about }| Observation::Cluster { event, about }));
        }
        if out.unsaved {
            let text = cluster.file();
            let file = self.node.config.cluster.config_file.clone();
            let written = match &env.folder {
                Some(folder) => folder.put(&file, text.as_bytes()),
                None => {
                    self.node.persistence.disk.nodes = Some(text);
                    Ok(())
                }
            };
            if let Err(error) = written {
                env.log(Level::Warning, || {
                    format!("Fatal: can't update cluster config file {file}: {error}")
                });
                return self.node.abort();
            }
        }
        env.outbox.extend(out.actions);
    }
}
