//! The append-only file as the running node writes it: when what was appended becomes durable.

use std::time::Duration;

use bytes::Bytes;

use super::disk::{Disk, DiskFull, LogFile};
use crate::{
    config::Fsync,
    time::{Monotonic, Wall},
};

/// A file smaller than this is not rewritten by itself (`auto-aof-rewrite-min-size`).
const REWRITE_LEN_MIN: usize = 64 << 20;

/// The writer of the append-only file.
#[derive(Debug, Default)]
pub struct AppendLog {
    /// Whether the file is being written (`appendonly yes`).
    pub open: bool,
    /// The database that the commands so far have selected.
    pub selected: Option<usize>,
    /// What the disk has not taken yet; empty unless it is full.
    pub unwritten: Vec<u8>,
    /// The last write failed: writes of clients are refused until the disk has taken what is left.
    pub failed: bool,
    /// The last rewrite failed.
    pub rewrite_failed: bool,
    /// The wall-clock second of the last sync in the background.
    synced_at: i64,
    /// A sync under way: how many bytes it covers, and when it is done.
    under_way: Option<(usize, Monotonic)>,
}

impl AppendLog {
    /// Begins a file whose base holds everything so far, in place of the one there was.
    pub fn begin(&mut self, base: Bytes, now_secs: i64) -> LogFile {
        *self = AppendLog { open: true, synced_at: now_secs, ..AppendLog::default() };
        LogFile { base, commands: Vec::new(), synced: 0 }
    }

    /// Goes on with a file that an earlier run has left.
    pub fn resume(&mut self, now_secs: i64) {
        *self = AppendLog { open: true, synced_at: now_secs, ..AppendLog::default() };
    }

    /// Stops writing the file.
    pub fn close(&mut self) {
        *self = AppendLog { rewrite_failed: self.rewrite_failed, ..AppendLog::default() };
    }

    /// Appends to the file what it has not taken yet, if there is room.
    ///
    /// # Errors
    /// When the disk is full.
    pub fn write(&mut self, disk: &mut Disk) -> Result<(), DiskFull> {
        if self.unwritten.is_empty() {
            return Ok(());
        }
        self.failed = disk.full;
        if disk.full {
            return Err(DiskFull);
        }
        if let Some(file) = &mut disk.log {
            file.commands.append(&mut self.unwritten);
        }
        Ok(())
    }

    /// Whether the file has outgrown its base (`auto-aof-rewrite-percentage 100`).
    pub fn wants_rewrite(&self, file: &LogFile) -> bool {
        let len = file.base.len() + file.commands.len();
        len >= REWRITE_LEN_MIN && len >= 2 * file.base.len()
    }

    /// Syncs what `policy` wants synced by now. `took` is how long a sync in the background takes.
    ///
    /// Once a second means: with the first write, or the first look, in each new second of the wall clock. So the first write
    /// after a quiet second is durable at once, and what follows in the same second is not until the next. While one sync is
    /// under way no other begins, so that a slow disk loses more than a second.
    pub fn sync(&mut self, file: &mut LogFile, policy: Fsync, took: Duration, wall: Wall, now: Monotonic) {
        if let Some((covers, _)) = self.under_way.take_if(|(_, done)| now >= *done) {
            file.synced = file.synced.max(covers);
        }
        if file.synced == file.commands.len() {
            return;
        }
        match policy {
            Fsync::Always => file.synced = file.commands.len(),
            Fsync::EverySecond => {
                // A clock that was set back stops the syncing until it has caught up, in Redis 7.0 as well.
                if self.under_way.is_none() && wall.as_secs() > self.synced_at {
                    self.synced_at = wall.as_secs();
                    if took.is_zero() {
                        file.synced = file.commands.len();
                    } else {
                        self.under_way = Some((file.commands.len(), now + took));
                    }
                }
            }
            Fsync::No => {}
        }
    }

    /// When there is next something to sync that no write brings.
    pub fn due(&self, file: &LogFile, policy: Fsync, wall: Wall, now: Monotonic) -> Option<Monotonic> {
        if let Some((_, done)) = self.under_way {
            return Some(done);
        }
        (policy == Fsync::EverySecond && file.synced < file.commands.len())
            .then(|| now + Wall::from_secs(wall.as_secs().max(self.synced_at) + 1).since(wall))
    }
}
