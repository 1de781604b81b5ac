//! The shutdown of the process: requested by SHUTDOWN or a signal, delayed while replicas catch up,
//! then carried out.

use std::time::Duration;

use super::Server;
use crate::{
    commands::Error,
    durability::LogState,
    env::Env,
    event::{ConnId, Signal},
    log::Level,
    node::{
        Node, Shutdown,
        clients::{Blocked, BlockedOn},
    },
    time::Monotonic,
};

impl Node {
    /// Cancels the shutdown, and sends an error to the clients that asked for it.
    pub fn refuse_shutdown(&mut self) {
        self.shutdown = None;
        let asks = |blocked: &mut Blocked| blocked.on == BlockedOn::Shutdown;
        let sessions = self.clients.sessions.iter_mut();
        let mut asked: Vec<ConnId> =
            sessions.filter_map(|session| session.blocked.take_if(asks).map(|_| session.id)).collect();
        asked.sort_unstable();
        for conn in asked {
            self.stats.note_error(&Error::NO_SHUTDOWN.0);
            self.answer_waited(conn, &Error::NO_SHUTDOWN.into());
        }
    }

    /// Logs the replicas that do not have the whole stream when the process ends.
    fn log_lagging_replicas(&self, env: &mut Env) {
        let (offset, now_secs) = (self.replication.history.offset, env.wall.as_secs());
        let [mut all, mut in_sync] = [0; 2];
        for (&conn, replica) in self.replication.attached() {
            all += 1;
            if replica.acked >= offset {
                in_sync += 1;
                continue;
            }
            let (name, behind) = (self.replica_name(conn), offset.saturating_sub(replica.acked));
            let (lag, state) = (replica.lag_secs(now_secs), replica.state());
            env.log(Level::Warning, || {
                format!("Lagging replica {name}: {behind} bytes behind, lag={lag}, state={state}")
            });
        }
        if all > 0 {
            env.log(Level::Notice, || format!("{in_sync} of {all} replicas are in sync at the end"));
        }
    }
}

impl Server {
    /// Requests a shutdown as `shutdown-on-sigterm` and `shutdown-on-sigint` say for the signal.
    pub(super) fn signalled(&mut self, env: &mut Env, signal: Signal) {
        env.log(Level::Warning, || format!("{} came: shutting down", signal.name()));
        let how = match signal {
            Signal::Interrupt => &self.node.config.server.shutdown_on_sigint,
            Signal::Terminate => &self.node.config.server.shutdown_on_sigterm,
        };
        let mut shutdown = Shutdown { signalled: true, ..Shutdown::default() };
        for word in how.split(' ') {
            match word {
                "save" => shutdown.save = Some(true),
                "nosave" => shutdown.save = Some(false),
                "now" => shutdown.now = true,
                "force" => shutdown.force = true,
                _ => {}
            }
        }
        self.node.shutdown.get_or_insert(shutdown);
    }

    /// Continues a shutdown.
    pub(super) fn run_shutdown(&mut self, env: &mut Env) {
        let Some(shutdown) = self.node.shutdown else { return };
        // The periodic work handles signals.
        if (self.node.debug.cron_paused && shutdown.signalled) || self.shutdown_waits_for_script(env) {
            return;
        }
        match shutdown.deadline {
            None => {
                let patience = Duration::from_secs(self.node.config.server.shutdown_timeout);
                if !shutdown.now && !patience.is_zero() && !self.replicas_have_all() {
                    env.log(Level::Notice, || "Waiting for replicas before the end".into());
                    let deadline = Some(env.monotonic + patience);
                    self.node.shutdown = Some(Shutdown { deadline, ..shutdown });
                    return;
                }
            }
            Some(deadline) if env.monotonic < deadline && !self.replicas_have_all() => return,
            Some(_) => {}
        }
        self.node.log_lagging_replicas(env);
        self.node.give_up_snapshot(env);
        if self.node.rewrites_log() && self.node.persistence.aof.state == LogState::Waiting && !shutdown.force
        {
            env.log(Level::Warning, || "Writing initial AOF, can't exit.".into());
            return self.give_up_shutdown(env);
        }
        // The existing files hold everything.
        if self.node.rewrites_log() {
            self.node.persistence.background = None;
        }
        let saves = shutdown.save.unwrap_or(!self.node.config.persistence.save.is_empty());
        // Partly loaded data must not replace its source.
        if saves && self.node.loading.is_none() {
            env.log(Level::Notice, || "Saving a last snapshot".into());
            let saved = self.node.save(env);
            if saved.is_err() && !shutdown.force {
                env.log(Level::Warning, || "Error trying to save the DB, can't exit.".into());
                return self.give_up_shutdown(env);
            }
        }
        env.log(Level::Warning, || "Redis is now ready to exit, bye bye".into());
        self.node.exiting = true;
    }

    fn give_up_shutdown(&mut self, env: &mut Env) {
        env.log(Level::Warning, || "Errors trying to shut down: the process goes on".into());
        self.node.refuse_shutdown();
    }

    /// Returns true if a script must end first, because half of its changes would be saved. Without
    /// a clock an endless script never ends. SHUTDOWN NOSAVE need not wait.
    fn shutdown_waits_for_script(&self, env: &Env) -> bool {
        let saves_nothing =
            self.node.shutdown.is_some_and(|shutdown| !shutdown.signalled && shutdown.save == Some(false));
        self.node.busy.is_some() && env.script_clock.is_some() && !saves_nothing
    }

    /// Returns the deadline of the wait for replicas, if there is one.
    pub(super) fn shutdown_due(&self, env: &Env) -> Option<Monotonic> {
        self.node.shutdown?.deadline.filter(|_| !self.shutdown_waits_for_script(env))
    }

    /// Returns true if every replica has acknowledged the whole stream.
    fn replicas_have_all(&self) -> bool {
        let replication = &self.node.replication;
        // Replicas that still wait for a snapshot have acknowledged nothing.
        replication.attached().all(|(_, replica)| replica.acked >= replication.history.offset)
    }
}
