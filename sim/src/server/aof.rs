//! The node's use of its disk: appends commands to the AOF, syncs it, and begins snapshots at the
//! save points.

use std::time::Duration;

use super::Server;
use crate::{
    config::Fsync,
    durability::{Disk, LogState},
    effect::{Framing, Propagated},
    env::Env,
    generation::Feature,
    log::Level,
    node::{Node, Persistence},
    replication::{Backlog, MasterLink, encode_batch},
    time::{Monotonic, Wall},
};

/// Seconds between a failed save and the next attempt.
const RETRY_SECS: i64 = 6;

impl Node {
    /// Returns the present fsync policy. With `no-appendfsync-on-rewrite` the operating system
    /// decides while a background job runs.
    fn fsync_policy(&self) -> Fsync {
        let rests = self.writes_aside() && self.config.aof.no_appendfsync_on_rewrite;
        if rests { Fsync::No } else { self.config.aof.appendfsync }
    }

    /// Returns true if WAITAOF takes written bytes for synced as soon as a turn of the event loop
    /// has appended nothing: an error of Valkey with `appendfsync everysec`.
    fn syncs_early(&self) -> bool {
        let aof = &self.persistence.aof;
        aof.state == LogState::On
            && aof.unwritten.is_empty()
            && self.config.aof.appendfsync != Fsync::No
            && self.config.generation.has(Feature::EarlySynced)
    }

    /// Writes pending bytes to the append-only file, and syncs it as `appendfsync` says. A write
    /// error with `appendfsync always` ends the node: it could no longer keep that promise.
    pub(super) fn write_log(&mut self, env: &mut Env) {
        let had_failed = self.persistence.aof.failed.is_some();
        let policy = self.fsync_policy();
        let Persistence { disk, aof, .. } = &mut self.persistence;
        match aof.write(disk, env.folder.as_deref(), policy, env.wall.as_secs()) {
            Ok(()) if had_failed => {
                env.log(Level::Warning, || "AOF write error looks solved, Redis can write again.".into());
            }
            Ok(()) => {}
            Err(error) => {
                if !had_failed {
                    env.log(Level::Warning, || format!("Error writing to the AOF file: {error}"));
                }
                if self.config.aof.appendfsync == Fsync::Always {
                    self.abort();
                }
            }
        }
    }
}

impl Server {
    /// Ends the node as a loss of power does. Returns the disk with the data that was synced.
    pub fn crash(self) -> Disk {
        self.node.persistence.disk.after_power_loss()
    }

    /// Ends the node as `kill -9` does. Returns the disk with all data that was written.
    pub fn kill(self) -> Disk {
        self.node.persistence.disk.after_kill()
    }

    /// Follows the master that the configuration names, if any.
    pub(super) fn follow_configured(&mut self, env: &mut Env) {
        let Some((host, port)) = self.node.config.replication.replicaof.clone() else { return };
        let replication = &mut self.node.replication;
        // Data loaded with its replication position can be continued from there. Without a position
        // a full resynchronization is needed.
        let resume = replication.loaded_db.take();
        if resume.is_some() {
            let (size, offset) = (self.node.config.replication.backlog_size, replication.history.offset);
            replication.backlog = Some(Backlog::new(size, offset));
        }
        replication.master = Some(MasterLink::new(host, port, resume, env.wall.as_secs()));
    }

    /// Appends a batch to the append-only file, unless it is off.
    pub(super) fn append_batch(&mut self, commands: &[Propagated], framing: Framing, now_secs: i64) {
        let gathers = match self.node.persistence.aof.state {
            LogState::Off => false,
            // The first base will contain the changes made before its rewrite begins.
            LogState::Waiting => self.node.rewrites_log(),
            LogState::On => true,
        };
        if !gathers || commands.is_empty() {
            return;
        }
        // Published messages are for the subscribers of replicas, and are not appended.
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
        let Node { persistence, config, .. } = &mut *self.node;
        let Persistence { disk, aof: log, .. } = persistence;
        let full = disk.fault.is_some() || !log.unwritten.is_empty() || log.state == LogState::Waiting;
        let file = disk.log.as_mut().filter(|_| !full);
        let out = file.map_or(&mut log.unwritten, |file| &mut file.commands);
        if config.aof.timestamps && now_secs > log.stamped {
            log.stamped = now_secs;
            out.extend_from_slice(format!("#TS:{now_secs}\r\n").as_bytes());
        }
        encode_batch(commands, framing, &mut log.selected, out);
        log.appended = true;
    }

    /// Begins a turn of the event loop. Until now the node may have slept through ticks of its
    /// cron, in which a server writes nothing.
    pub(super) fn begin_turn(&mut self, env: &Env) {
        let has_ticked = self.early_sync_due().is_some_and(|tick| env.monotonic >= tick);
        let offset = self.node.replication.history.offset;
        let aof = &mut self.node.persistence.aof;
        if has_ticked {
            aof.synced_offset = Some(offset);
        }
        aof.quiet = true;
    }

    /// Returns the next tick of the cron, if it makes WAITAOF take all written bytes for synced.
    fn early_sync_due(&self) -> Option<Monotonic> {
        let Node { persistence: Persistence { aof, .. }, replication, .. } = &*self.node;
        let is_behind = aof.synced_offset < Some(replication.history.offset) && !aof.appended;
        (is_behind && self.node.syncs_early()).then(|| self.tick_after(aof.appended_at))
    }

    /// Does the disk work of a step, before replies are sent.
    pub(super) fn run_disk(&mut self, env: &mut Env) {
        let now_secs = env.wall.as_secs();
        if self.node.loading.is_some() {
            return;
        }
        if self.node.config.aof.appendonly && self.node.persistence.aof.state == LogState::Off {
            // The append-only file begins with the node.
            if let Err(error) = self.node.rewrite_log(env) {
                env.log(Level::Warning, || format!("The append-only file cannot be begun: {error}"));
                self.node.persistence.aof.state = LogState::Waiting;
                self.node.persistence.rewrite_scheduled = true;
            }
        }
        self.node.write_log(env);
        let (policy, syncs_early) = (self.node.fsync_policy(), self.node.syncs_early());
        let offset = self.node.replication.history.offset;
        let Node { persistence, config, .. } = &mut *self.node;
        let Persistence { disk, aof, rewrite_scheduled, .. } = persistence;
        let mut wants_rewrite = *rewrite_scheduled;
        if aof.state == LogState::On {
            let took = Duration::from_millis(config.aof.fsync_ms);
            match &mut disk.log {
                Some(log) => aof.sync(log, policy, took, env.wall, env.monotonic, offset),
                None => aof.note_offset(offset),
            }
            if std::mem::take(&mut aof.appended) {
                (aof.appended_at, aof.quiet) = (env.monotonic, false);
            } else if aof.quiet && syncs_early {
                aof.synced_offset = Some(offset);
            }
            let (percentage, min) = (config.aof.rewrite_percentage, config.aof.rewrite_min_size);
            wants_rewrite |= aof.wants_rewrite(disk, percentage, min);
        }
        self.sweep_log(env);
        if self.node.busy.is_some() {
            // In the middle of a script the data is not consistent.
            return;
        }
        let failures = self.node.stats.rewrites_failed;
        if wants_rewrite
            && !self.node.writes_aside()
            && self.node.persistence.aof.retry.may_try(failures, now_secs)
            && let Err(error) = self.node.begin_rewrite(env)
        {
            self.node.persistence.aof.retry.failed(now_secs);
            env.log(Level::Warning, || format!("The append-only file cannot be rewritten: {error}"));
        }
        if self.save_due_secs().is_some_and(|due| now_secs >= due) && !self.node.writes_aside() {
            self.node.begin_snapshot(env);
        }
    }

    /// Removes files that are no longer part of the append-only file.
    fn sweep_log(&mut self, env: &mut Env) {
        let Node { persistence: Persistence { aof, .. }, config, .. } = &mut *self.node;
        let (Some(parts), Some(folder)) = (&mut aof.parts, &env.folder) else { return };
        if parts.has_history()
            && !config.aof.disable_auto_gc
            && let Err(error) = parts.sweep(&**folder)
        {
            env.log(Level::Warning, || format!("Old append-only files cannot be removed: {error}"));
        }
    }

    /// Writes and syncs everything before an orderly exit.
    pub(super) fn close_disk(&mut self, env: &mut Env) {
        if env.folder.is_some() {
            self.node.write_log(env);
            self.node.persistence.aof.close(env.folder.as_deref());
        }
        self.node.persistence.disk = std::mem::take(&mut self.node.persistence.disk).after_kill();
    }

    /// Returns the wall-clock second at which the next snapshot is due: because a save point is
    /// reached with the present number of changes, or because a client has asked for one.
    fn save_due_secs(&self) -> Option<i64> {
        let dirty = self.node.stats.dirty;
        let scheduled = self.node.persistence.save_scheduled.then_some(i64::MIN);
        let reached =
            self.node.config.persistence.save.iter().filter(|(_, changes)| dirty > 0 && dirty >= *changes);
        // More than that many seconds must have passed: add one.
        reached
            .map(|(seconds, _)| {
                let seconds = i64::try_from(*seconds).unwrap_or(i64::MAX);
                self.node.persistence.saved_at.saturating_add(seconds).saturating_add(1)
            })
            .chain(scheduled)
            .min()
            // After a failure the next attempt waits for some seconds.
            .map(|due| {
                if self.node.persistence.save_failed {
                    due.max(self.node.persistence.save_tried_at + RETRY_SECS)
                } else {
                    due
                }
            })
    }

    /// Returns the next time at which the AOF or a save point has work that no write triggers.
    pub(super) fn disk_due(&self, env: &Env) -> Option<Monotonic> {
        if self.node.loading.is_some() {
            return None;
        }
        let aof = &self.node.persistence.aof;
        let retry = aof.retry.due_secs().filter(|_| self.node.persistence.rewrite_scheduled);
        // Nothing begins while a background job runs; its end checks the disk work, too.
        let aside = self.node.persistence.background.is_some();
        let begins = [self.save_due_secs(), retry].into_iter().flatten().min().filter(|_| !aside);
        let begins = begins.map(|due| env.monotonic + Wall::from_secs(due).since(env.wall));
        let policy = self.node.fsync_policy();
        let log = self.node.persistence.disk.log.as_ref().filter(|_| aof.state == LogState::On);
        let sync = log.and_then(|log| aof.due(log, policy, env.wall, env.monotonic));
        let folder = aof.folder_due(policy, env.wall, env.monotonic);
        let is_awaited = !self.node.replication.waiting.is_empty();
        let early = self.early_sync_due().filter(|_| is_awaited);
        [begins, sync, folder, early].into_iter().flatten().min()
    }
}

/// Returns true for a published message.
pub(super) fn is_message(command: &Propagated) -> bool {
    let name = command.args.first().map_or(&b""[..], |name| name);
    name.eq_ignore_ascii_case(b"publish") || name.eq_ignore_ascii_case(b"spublish")
}
