//! Writes the AOF of a running node, and decides when appended bytes become durable.

use std::time::Duration;

use bytes::Bytes;

use super::Parts;
use crate::{
    config::Fsync,
    durability::disk::{Disk, LogFile, SaveError},
    env::Folder,
    time::{Monotonic, Wall},
};

/// The state of the AOF: off, on, or waiting for its first base.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogState {
    /// Commands are not logged (`appendonly no`).
    #[default]
    Off,
    /// It will be written once its first base exists: until then commands are buffered, to be
    /// appended after the base.
    Waiting,
    /// Commands are logged as they are executed.
    On,
}

/// The delays of retries of failed rewrites of the AOF: a second after the first two consecutive
/// failures; minutes from the third failure on, twice as many each time up to an hour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retry {
    /// The wall-clock second of the last failure.
    failed_at: Option<i64>,
    /// The last delay, in minutes.
    minutes: i64,
    /// The wall-clock second at which the delay of minutes is over.
    rests_until: Option<i64>,
}

impl Retry {
    /// Number of consecutive failures without a delay of minutes.
    const FAILURES_MAX: u64 = 2;
    const MINUTES_MAX: i64 = 60;

    /// Records a failure.
    pub fn failed(&mut self, now_secs: i64) {
        self.failed_at = Some(now_secs);
    }

    /// Returns true if another attempt may begin after `failures` consecutive failures.
    ///
    /// ```
    /// use lockstorm_sim::durability::Retry;
    /// let mut retry = Retry::default();
    /// retry.failed(10);
    /// assert_eq!([10, 11].map(|now_secs| retry.may_try(1, now_secs)), [false, true]);
    /// retry.failed(12);
    /// assert_eq!([12, 71, 72].map(|now_secs| retry.may_try(3, now_secs)), [false, false, true]);
    /// ```
    pub fn may_try(&mut self, failures: u64, now_secs: i64) -> bool {
        if failures <= Retry::FAILURES_MAX {
            (self.minutes, self.rests_until) = (0, None);
        } else if self.rests_until.is_none() && self.failed_at.is_some() {
            self.minutes = (self.minutes * 2).clamp(1, Retry::MINUTES_MAX);
            self.rests_until = Some(now_secs + self.minutes * 60);
        }
        if self.due_secs().is_some_and(|due| now_secs < due) {
            return false;
        }
        (self.failed_at, self.rests_until) = (None, None);
        true
    }

    /// The wall-clock second of the next attempt; `None` if no failure delays it.
    pub fn due_secs(&self) -> Option<i64> {
        self.rests_until.or(self.failed_at.map(|second| second + 1))
    }
}

/// Collects the commands for the AOF, and knows the outcome of the last writes and rewrites.
#[derive(Debug, Default)]
pub struct AofWriter {
    /// The state of writing the file (`appendonly yes`).
    pub state: LogState,
    /// The database that the commands so far have selected.
    pub selected: Option<usize>,
    /// The wall-clock second of the last timestamp annotation (`aof-timestamp-enabled`).
    pub stamped: i64,
    /// Bytes that are not written yet. In a folder, these are the bytes of this step; in memory,
    /// none unless the disk takes nothing. Before the first base is written, these are all commands
    /// that follow it.
    pub unwritten: Vec<u8>,
    /// The message of the last write if it failed: client writes are refused until the rest is
    /// written.
    pub failed: Option<String>,
    /// True if the last rewrite failed.
    pub rewrite_failed: bool,
    /// The retry delay of failed rewrites.
    pub retry: Retry,
    /// The files; `None` in memory, and before the folder was searched for them.
    pub parts: Option<Parts>,
    /// The length of the in-memory file after its last rewrite, including the commands that came
    /// during it.
    rewritten_len: u64,
    /// True if some written bytes are not durable yet.
    unsynced: bool,
    /// The wall-clock second of the last background sync.
    synced_at: i64,
    /// The sync in progress.
    under_way: Option<UnderWay>,
    /// The replication offset up to which the file is durable, as WAITAOF counts it; `None` unless
    /// the file is written.
    pub synced_offset: Option<u64>,
    /// True if commands were appended after the last disk work.
    pub appended: bool,
    /// The time of the last turn of the event loop that appended commands.
    pub appended_at: Monotonic,
    /// True if this turn has appended nothing so far.
    pub quiet: bool,
}

/// A sync in progress.
#[derive(Debug)]
struct UnderWay {
    /// The number of bytes that it covers.
    covers: usize,
    /// The replication offset of these bytes; `None` if some commands before it are unwritten.
    offset: Option<u64>,
    /// The time at which it is done.
    done: Monotonic,
}

impl AofWriter {
    /// Begins to append to the first base, which exists now, starting with the buffered commands.
    pub fn begin(&mut self, now_secs: i64) {
        self.state = LogState::On;
        self.synced_at = now_secs;
    }

    /// Continues an existing file.
    pub fn resume(&mut self, now_secs: i64) {
        let parts = self.parts.take();
        *self = AofWriter { state: LogState::On, synced_at: now_secs, parts, ..AofWriter::default() };
    }

    /// Replaces the base in memory, and the commands before the offset `behind`; later commands
    /// follow the new base. Unless the AOF is on, replaces all commands.
    pub fn rebase(&mut self, disk: &mut Disk, base: Bytes, behind: usize) {
        let mut file = disk.log.take().unwrap_or_default();
        let replaced = if self.state == LogState::On { behind } else { file.commands.len() };
        file.base = base;
        file.commands.drain(..replaced);
        file.synced = file.synced.saturating_sub(replaced);
        if let Some(sync) = &mut self.under_way {
            sync.covers = sync.covers.saturating_sub(replaced);
        }
        self.rewritten_len = (file.base.len() + file.commands.len()) as u64;
        disk.log = Some(file);
    }

    /// Stops writing the file. In a folder, all written bytes are durable afterwards.
    pub fn close(&mut self, folder: Option<&dyn Folder>) {
        if let Some(folder) = folder.filter(|_| self.unsynced) {
            let _ = self.last().map(|file| folder.sync(&file, false));
        }
        let parts = self.parts.take();
        *self = AofWriter { rewrite_failed: self.rewrite_failed, parts, ..AofWriter::default() };
    }

    fn last(&self) -> Option<String> {
        self.parts.as_ref().and_then(Parts::last)
    }

    /// Writes the pending bytes, if the disk takes them. In a folder, `policy` decides when they
    /// become durable.
    ///
    /// # Errors
    /// If the disk takes nothing, or the file cannot be written.
    pub fn write(
        &mut self,
        disk: &mut Disk,
        folder: Option<&dyn Folder>,
        policy: Fsync,
        now_secs: i64,
    ) -> Result<(), SaveError> {
        if !self.unwritten.is_empty() && self.state == LogState::On {
            let written = match (&mut self.parts, folder) {
                (Some(parts), Some(folder)) => {
                    parts.append(folder, &self.unwritten).map_err(|error| SaveError::File(error.to_string()))
                }
                _ => match disk.fault {
                    Some(fault) => Err(SaveError::Disk(fault)),
                    None => {
                        if let Some(file) = &mut disk.log {
                            file.commands.extend_from_slice(&self.unwritten);
                        }
                        Ok(())
                    }
                },
            };
            self.failed = written.as_ref().err().map(SaveError::words);
            written?;
            self.unwritten.clear();
            self.unsynced = folder.is_some();
        }
        match folder {
            Some(folder) if self.unsynced => self.sync_folder(folder, policy, now_secs),
            _ => Ok(()),
        }
    }

    fn sync_folder(&mut self, folder: &dyn Folder, policy: Fsync, now_secs: i64) -> Result<(), SaveError> {
        let soon = match policy {
            Fsync::Always => false,
            Fsync::EverySecond if now_secs > self.synced_at => true,
            Fsync::EverySecond | Fsync::No => return Ok(()),
        };
        self.synced_at = now_secs;
        let Some(file) = self.last() else { return Ok(()) };
        let synced = folder.sync(&file, soon).map_err(|error| SaveError::File(error.to_string()));
        self.failed = synced.as_ref().err().map(SaveError::words);
        self.unsynced = !synced?;
        Ok(())
    }

    /// Returns true if the file has outgrown its base (`auto-aof-rewrite-percentage`,
    /// `auto-aof-rewrite-min-size`).
    pub fn wants_rewrite(&self, disk: &Disk, percentage: u64, min: u64) -> bool {
        let (len, base) = self.lens(disk);
        percentage > 0 && len > min && len.saturating_mul(100) / base.max(1) >= percentage.saturating_add(100)
    }

    /// Returns the bytes of the file, and its bytes after the last rewrite.
    pub fn lens(&self, disk: &Disk) -> (u64, u64) {
        match (&self.parts, &disk.log) {
            (Some(parts), _) => (parts.len, parts.base_len),
            (None, Some(log)) => {
                let base = log.base.len() as u64;
                (base + log.commands.len() as u64, base.max(self.rewritten_len))
            }
            (None, None) => (0, 0),
        }
    }

    /// Syncs the bytes that `policy` requires to be durable by now. `took` is the duration of a
    /// background sync, `offset` the replication offset of the commands so far.
    ///
    /// Once a second means: with the first write, or the first check, in each new second of the
    /// wall clock. So the first write after a quiet second is durable at once, and later writes of
    /// the same second only with the next second. No sync begins while another one is in progress,
    /// so that a slow disk loses more than a second.
    pub fn sync(
        &mut self,
        file: &mut LogFile,
        policy: Fsync,
        took: Duration,
        wall: Wall,
        now: Monotonic,
        offset: u64,
    ) {
        if let Some(sync) = self.under_way.take_if(|sync| now >= sync.done) {
            file.synced = file.synced.max(sync.covers);
            self.synced_offset = self.synced_offset.max(sync.offset);
        }
        self.sync_rest(file, policy, took, wall, now, offset);
        if file.synced == file.commands.len() && self.unwritten.is_empty() {
            self.synced_offset = Some(offset);
        }
    }

    fn sync_rest(
        &mut self,
        file: &mut LogFile,
        policy: Fsync,
        took: Duration,
        wall: Wall,
        now: Monotonic,
        offset: u64,
    ) {
        if file.synced == file.commands.len() {
            return;
        }
        match policy {
            Fsync::Always => file.synced = file.commands.len(),
            Fsync::EverySecond => {
                // A clock that was set back stops the syncing until it has caught up, as in Redis
                // 7.0.
                if self.under_way.is_none() && wall.as_secs() > self.synced_at {
                    self.synced_at = wall.as_secs();
                    if took.is_zero() {
                        file.synced = file.commands.len();
                    } else {
                        let offset = self.unwritten.is_empty().then_some(offset);
                        self.under_way =
                            Some(UnderWay { covers: file.commands.len(), offset, done: now + took });
                    }
                }
            }
            Fsync::No => {}
        }
    }

    /// Notes the replication offset of the commands so far, if the file in the folder is synced. A
    /// sync in the background counts from its beginning.
    pub fn note_offset(&mut self, offset: u64) {
        if !self.unsynced && self.unwritten.is_empty() {
            self.synced_offset = Some(offset);
        }
    }

    /// The time at which the next sync is due without a write; `None` if no sync is needed.
    pub fn due(&self, file: &LogFile, policy: Fsync, wall: Wall, now: Monotonic) -> Option<Monotonic> {
        if let Some(sync) = &self.under_way {
            return Some(sync.done);
        }
        (policy == Fsync::EverySecond && file.synced < file.commands.len())
            .then(|| now + Wall::from_secs(wall.as_secs().max(self.synced_at) + 1).since(wall))
    }

    /// The time at which the next sync of a file in a folder is due without a write; `None` if no
    /// sync is needed.
    pub fn folder_due(&self, policy: Fsync, wall: Wall, now: Monotonic) -> Option<Monotonic> {
        (policy == Fsync::EverySecond && self.unsynced)
            .then(|| now + Wall::from_secs(wall.as_secs().max(self.synced_at) + 1).since(wall))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sync comes with the next second of the wall clock; a clock that was set back must catch
    /// up first.
    #[test]
    fn a_file_in_a_folder_is_synced_with_the_next_second() {
        let now = Monotonic::from_secs(7);
        for (policy, unsynced, wall_ms, wanted_ms) in [
            (Fsync::EverySecond, true, 100_250, Some(750)),
            (Fsync::EverySecond, true, 105_500, Some(500)),
            (Fsync::EverySecond, true, 90_000, Some(11_000)),
            (Fsync::EverySecond, false, 100_250, None),
            (Fsync::Always, true, 100_250, None),
            (Fsync::No, true, 100_250, None),
        ] {
            let aof = AofWriter { unsynced, synced_at: 100, ..AofWriter::default() };
            let due = aof.folder_due(policy, Wall::from_millis(wall_ms), now);
            let wanted = wanted_ms.map(|after| now + Duration::from_millis(after));
            assert_eq!(due, wanted, "{policy:?}, unsynced: {unsynced}, at {wall_ms} ms");
        }
    }

    /// The delays of `redis-server`: a second, and from the third failure on minutes, which double
    /// up to an hour.
    #[test]
    fn a_rewrite_that_fails_is_tried_again_ever_later() {
        let mut retry = Retry::default();
        let mut now_secs = 1_000;
        let failures = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1, 3];
        let delays = failures.map(|failures| {
            let failed_at = now_secs;
            retry.failed(failed_at);
            while !retry.may_try(failures, now_secs) {
                assert_eq!(
                    retry.due_secs().map(|due| due > now_secs),
                    Some(true),
                    "after {failures} failures"
                );
                now_secs += 1;
            }
            assert_eq!(retry.due_secs(), None, "after {failures} failures");
            now_secs - failed_at
        });
        assert_eq!(delays, [1, 1, 60, 120, 240, 480, 960, 1_920, 3_600, 3_600, 1, 60]);
        // Failures before the start of the node delay nothing.
        assert!(Retry::default().may_try(3, now_secs));
    }
}
