//! Snapshots and AOF rewrites: written immediately, or in the background.
//!
//! In the background Redis uses a child process. Here its output is computed at the beginning. It
//! is put on the disk at the first periodic work after the time that `rdb-key-save-delay` gives,
//! which is when a server notices the end of its child. A node that goes down before has written
//! nothing.

use std::time::Duration;

use bytes::Bytes;

use super::{Server, loading::key_time};
use crate::{
    durability::{self, LogState, Parts, SaveError, rdb},
    env::{Env, Folder},
    event::DiskFault,
    log::Level,
    node::{Background, Job, Node},
    time::Monotonic,
};

/// The time after which a node notices that a snapshot could not be written: the period of its
/// cron.
const FAILURE_NOTICED: Duration = Duration::from_millis(100);

impl Node {
    /// Returns the origin fields of a snapshot of this node.
    pub fn snapshot_origin(&self, now_secs: i64, aof_base: bool) -> rdb::Origin {
        // No replica resumes from the base of an AOF.
        let db = match &self.replication.master {
            _ if aof_base => None,
            Some(link) => link.resume,
            None => self.replication.backlog.is_some().then(|| self.replication.selected.unwrap_or(0)),
        };
        let history = &self.replication.history;
        let replication = db.map(|db| (history.id.clone(), history.offset, db));
        rdb::Origin { created: now_secs, replication, aof_base, version: None }
    }

    fn snapshot(&self, now_secs: i64) -> Bytes {
        rdb::write(&self.dbs, &self.libraries, &self.snapshot_origin(now_secs, false), &self.config)
    }

    /// Saves a snapshot to disk, before it returns.
    ///
    /// # Errors
    /// If the disk does not take it.
    pub fn save(&mut self, env: &Env) -> Result<(), SaveError> {
        let now_secs = env.wall.as_secs();
        self.keep_snapshot(env, self.snapshot(now_secs))?;
        self.persistence.saved_at = now_secs;
        self.persistence.save_failed = false;
        self.stats.dirty = 0;
        Ok(())
    }

    /// Replaces the snapshot on the disk.
    ///
    /// # Errors
    /// If the disk does not take it.
    pub fn keep_snapshot(&mut self, env: &Env, snapshot: Bytes) -> Result<(), SaveError> {
        self.persistence.disk.keep_snapshot(
            snapshot,
            env.folder.as_deref(),
            &self.config.persistence.dbfilename,
        )
    }

    /// Keeps a snapshot that was written in the background; `dirty` is the number of its changes
    /// that counted towards the next save point. Returns true if the disk has taken it.
    fn keep_written(&mut self, env: &mut Env, snapshot: Bytes, dirty: u64) -> bool {
        let kept = self.keep_snapshot(env, snapshot);
        self.persistence.save_failed = kept.is_err();
        match kept {
            Ok(()) => {
                self.persistence.saved_at = env.wall.as_secs();
                self.stats.dirty = self.stats.dirty.saturating_sub(dirty);
                env.log(Level::Notice, || "Background saving terminated with success".into());
                true
            }
            Err(error) => {
                env.log(Level::Warning, || format!("Background saving error: {error}"));
                false
            }
        }
    }

    /// Returns the snapshot on the disk, if there is one.
    pub fn kept_snapshot(&self, env: &Env) -> Option<Bytes> {
        match &env.folder {
            Some(folder) => folder.read(&self.config.persistence.dbfilename).ok(),
            None => self.persistence.disk.snapshot.clone(),
        }
    }

    /// Begins to save a snapshot in the background. The caller does not see a failure; later writes
    /// get MISCONF instead.
    pub fn begin_snapshot(&mut self, env: &mut Env) {
        let now_secs = env.wall.as_secs();
        self.persistence.save_tried_at = now_secs;
        self.persistence.save_scheduled = false;
        self.stats.saves += 1;
        let job = Job::Snapshot { snapshot: self.snapshot(now_secs), dirty: self.stats.dirty };
        env.log(Level::Notice, || "Background saving started".into());
        self.begin_background(env, job);
    }

    /// Begins to write a snapshot for replicas, through a file if `file` is given. Returns the time
    /// at which all of it is written.
    pub fn begin_snapshot_for_replicas(&mut self, env: &Env, file: Option<Bytes>) -> Monotonic {
        if file.is_some() {
            self.stats.saves += 1;
            self.persistence.save_tried_at = env.wall.as_secs();
        }
        let job = Job::ForReplicas { file: file.map(|file| (file, self.stats.dirty)), fails: false };
        self.begin_background(env, job)
    }

    /// Begins a snapshot for replicas that cannot be written. Returns the time at which the node
    /// notices.
    pub fn fail_snapshot_for_replicas(&mut self, env: &Env) -> Monotonic {
        let until = self.begin_background(env, Job::ForReplicas { file: None, fails: true });
        let noticed = until.max(env.monotonic + FAILURE_NOTICED);
        if let Some(background) = &mut self.persistence.background {
            background.until = noticed;
        }
        noticed
    }

    fn begin_background(&mut self, env: &Env, job: Job) -> Monotonic {
        self.stats.forks += 1;
        let keys = self.keys_len();
        let (began, since) = (env.monotonic, env.wall.as_secs());
        let until = began + key_time(self.config.persistence.rdb_key_save_delay, keys);
        self.persistence.background = Some(Background { job, began, since, until, keys });
        until
    }

    /// Gives up the snapshot being written in the background, if any. Replicas that wait for it
    /// must ask again.
    pub fn give_up_snapshot(&mut self, env: &mut Env) {
        let is_snapshot = |background: &mut Background| !matches!(background.job, Job::Rewrite { .. });
        let Some(given_up) = self.persistence.background.take_if(is_snapshot) else { return };
        self.stats.save_secs = Some(env.wall.as_secs() - given_up.since);
        env.log(Level::Warning, || "Background saving terminated by signal 10".into());
        if matches!(given_up.job, Job::ForReplicas { .. }) {
            self.replication.give_up_snapshots();
        }
    }

    /// Gives up a snapshot when the last of its replicas is gone, if it goes through a file that
    /// the node does not need itself. A broken connection shows only when it is written to, which
    /// is mostly at the end.
    pub fn give_up_deserted_snapshot(&mut self, env: &mut Env) {
        let job = self.persistence.background.as_ref().map(|background| &background.job);
        let is_for_them = matches!(job, Some(Job::ForReplicas { file: Some(_), .. }))
            && self.config.persistence.save.is_empty();
        if is_for_them && self.replication.saved_at().is_none() {
            self.give_up_snapshot(env);
        }
    }

    /// Returns true if a snapshot is being written.
    pub fn writes_snapshot(&self) -> bool {
        self.persistence.background.is_some() && !self.rewrites_log()
    }

    /// Returns true if the AOF is being rewritten in the background.
    pub fn rewrites_log(&self) -> bool {
        self.persistence
            .background
            .as_ref()
            .is_some_and(|background| matches!(background.job, Job::Rewrite { .. }))
    }

    /// Returns true if a background job runs; there is at most one.
    pub fn writes_aside(&self) -> bool {
        self.persistence.background.is_some()
    }

    /// Turns the append-only file on, with the present data as its base. If it must begin `later`,
    /// or a snapshot is being written, the rewrite is scheduled. The old files stay until then, and
    /// writes made during the rewrite are appended to the new base.
    ///
    /// # Errors
    /// If the disk does not take a file.
    pub fn start_log(&mut self, env: &mut Env, later: bool) -> Result<(), SaveError> {
        self.persistence.aof.state = LogState::Waiting;
        if later || self.writes_snapshot() {
            self.persistence.rewrite_scheduled = true;
            env.log(Level::Warning, || {
                "The append-only file is to be written: an AOF background was scheduled to begin when it can"
                    .into()
            });
            return Ok(());
        }
        // A rewrite that is already running does not cover the writes after its beginning.
        self.persistence.background = None;
        let begun = self.begin_rewrite(env);
        if begun.is_err() {
            self.persistence.aof.state = LogState::Off;
        }
        begun
    }

    /// Turns the append-only file off. It is complete and durable then, as far as the disk takes
    /// it.
    pub fn stop_log(&mut self, env: &mut Env) {
        self.write_log(env);
        self.persistence.aof.close(env.folder.as_deref());
        self.persistence.rewrite_scheduled = false;
        if self.rewrites_log() {
            self.persistence.background = None;
            env.log(Level::Warning, || "Killing AOF child: nothing is written any more".into());
        }
    }

    /// Begins to rewrite the AOF in the background.
    ///
    /// # Errors
    /// If the disk does not take the pending commands, or a file for the commands during the
    /// rewrite.
    pub fn begin_rewrite(&mut self, env: &mut Env) -> Result<(), SaveError> {
        let now_secs = env.wall.as_secs();
        self.write_log(env);
        let extended = self.extend_log(env);
        self.persistence.aof.rewrite_failed |= extended.is_err();
        extended?;
        self.persistence.aof.selected = None;
        if self.persistence.aof.state == LogState::Waiting {
            // The base will contain the changes made so far.
            self.persistence.aof.unwritten.clear();
        }
        self.stats.rewrites += 1;
        self.persistence.rewrite_scheduled = false;
        let behind = match (self.persistence.aof.state, &self.persistence.disk.log) {
            (LogState::On, Some(log)) => log.commands.len(),
            _ => 0,
        };
        let (base, extension) = self.log_base(env.folder.is_some(), now_secs);
        env.log(Level::Notice, || "Background append only file rewriting started".into());
        self.begin_background(env, Job::Rewrite { base, extension, behind });
        Ok(())
    }

    /// Begins a new file for the commands from here on, if the append-only file is on.
    fn extend_log(&mut self, env: &Env) -> Result<(), SaveError> {
        if self.persistence.aof.state == LogState::On && !self.persistence.aof.unwritten.is_empty() {
            let fault = self.persistence.disk.fault.unwrap_or(DiskFault::Full);
            return Err(SaveError::Disk(fault));
        }
        let Some(folder) = env.folder.as_deref() else { return Ok(()) };
        let state = self.persistence.aof.state;
        let parts = self.parts(folder)?;
        let extended = match state {
            LogState::On => parts.extend(folder),
            LogState::Waiting => parts.probe(folder),
            LogState::Off => Ok(()),
        };
        extended.map_err(|error| SaveError::File(error.to_string()))
    }

    /// Replaces the files of the AOF by a new base.
    fn rebase_log(
        &mut self,
        env: &Env,
        base: Bytes,
        extension: &str,
        behind: usize,
    ) -> Result<(), SaveError> {
        let now_secs = env.wall.as_secs();
        let state = self.persistence.aof.state;
        if let Some(folder) = env.folder.as_deref() {
            let parts = self.parts(folder)?;
            let rebased = parts.rewrite(folder, &base, extension, state);
            rebased.map_err(|error| SaveError::File(error.to_string()))?;
        } else if let Some(fault) = self.persistence.disk.fault {
            return Err(SaveError::Disk(fault));
        } else {
            self.persistence.aof.rebase(&mut self.persistence.disk, base, behind);
        }
        if state == LogState::Waiting {
            self.persistence.aof.begin(now_secs);
        }
        Ok(())
    }

    /// Rewrites the AOF before it returns, with the present data as its base. Later writes are
    /// appended to it.
    ///
    /// # Errors
    /// If the disk is full or does not take it; the file is unchanged then.
    pub fn rewrite_log(&mut self, env: &mut Env) -> Result<(), SaveError> {
        self.persistence.aof.state = LogState::Waiting;
        self.persistence.aof.unwritten.clear();
        self.persistence.aof.selected = None;
        let (base, extension) = self.log_base(env.folder.is_some(), env.wall.as_secs());
        let rewritten = self.rebase_log(env, base, extension, 0);
        if rewritten.is_err() {
            self.persistence.aof.state = LogState::Off;
        }
        rewritten
    }

    fn parts(&mut self, folder: &dyn Folder) -> Result<&mut Parts, SaveError> {
        let parts = match self.persistence.aof.parts.take() {
            Some(parts) => parts,
            None => Parts::find(folder, &self.config).map_err(|error| SaveError::File(error.to_string()))?.0,
        };
        Ok(self.persistence.aof.parts.insert(parts))
    }

    /// Returns all data in the format of an AOF base, and the extension of its file name.
    fn log_base(&self, in_folder: bool, now_secs: i64) -> (Bytes, &'static str) {
        if !in_folder || self.config.aof.use_rdb_preamble {
            let origin = self.snapshot_origin(now_secs, true);
            return (rdb::write(&self.dbs, &self.libraries, &origin, &self.config), "rdb");
        }
        let mut text = Vec::new();
        if self.config.aof.timestamps {
            text.extend_from_slice(format!("#TS:{now_secs}\r\n").as_bytes());
        }
        text.append(&mut durability::base(&self.dbs, &self.libraries));
        (text.into(), "aof")
    }
}

impl Server {
    /// Puts the result of an ended background job on the disk.
    pub(super) fn end_background(&mut self, env: &mut Env) {
        self.end_background_if(env, |_| true);
    }

    /// Like [`Server::end_background`], but only for a snapshot for replicas, which get it
    /// immediately.
    pub(super) fn end_snapshot_for_replicas(&mut self, env: &mut Env) {
        self.end_background_if(env, |job| matches!(job, Job::ForReplicas { .. }));
    }

    fn end_background_if(&mut self, env: &mut Env, ends: impl Fn(&Job) -> bool) {
        let over = |background: &mut Background| background.until <= env.monotonic && ends(&background.job);
        let Some(ended) = self.node.persistence.background.take_if(over) else { return };
        let took_secs = env.wall.as_secs() - ended.since;
        match ended.job {
            Job::Snapshot { snapshot, dirty } => {
                self.node.stats.save_secs = Some(took_secs);
                self.node.keep_written(env, snapshot, dirty);
            }
            Job::ForReplicas { fails: true, .. } => {
                self.node.stats.save_secs = Some(took_secs);
                env.log(Level::Warning, || "SYNC failed. BGSAVE child returned an error".into());
                self.node.replication.give_up_snapshots();
            }
            Job::ForReplicas { file, fails: false } => {
                self.node.stats.save_secs = Some(took_secs);
                let kept = file.is_none_or(|(snapshot, dirty)| self.node.keep_written(env, snapshot, dirty));
                self.send_written_snapshots(env, kept);
            }
            Job::Rewrite { base, extension, behind } => {
                self.node.stats.rewrite_secs = Some(took_secs);
                let rebased = self.node.rebase_log(env, base, extension, behind);
                self.node.persistence.aof.rewrite_failed = rebased.is_err();
                let failures = &mut self.node.stats.rewrites_failed;
                match rebased {
                    Ok(()) => {
                        *failures = 0;
                        env.log(Level::Notice, || "Background AOF rewrite terminated with success".into());
                    }
                    Err(error) => {
                        *failures += 1;
                        self.node.persistence.aof.retry.failed(env.wall.as_secs());
                        // Without a base there is no file: the gathered commands will be in the
                        // next base.
                        self.node.persistence.rewrite_scheduled |=
                            self.node.persistence.aof.state == LogState::Waiting;
                        env.log(Level::Warning, || {
                            format!("Background AOF rewrite terminated with error: {error}")
                        });
                    }
                }
            }
        }
        // Replicas may have waited for the end of the job.
        self.start_due_snapshots(env);
    }
}
