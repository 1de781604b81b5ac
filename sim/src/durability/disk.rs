//! A node's disk: the files that its next run finds.

use bytes::Bytes;

use crate::{env::Folder, event::DiskFault};

/// The files of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Disk {
    /// The reason why nothing more can be written; `None` for a healthy disk. The files can still
    /// be read.
    pub fault: Option<DiskFault>,
    /// `dump.rdb`: the last snapshot, durable from the moment it is complete.
    pub snapshot: Option<Bytes>,
    /// The users that ACL SAVE wrote (`aclfile`).
    pub users: Option<Bytes>,
    /// The AOF; `None` if there never was one.
    pub log: Option<LogFile>,
    /// The state of a node of a cluster (`cluster-config-file`).
    pub nodes: Option<String>,
    /// The configuration file with all options; `None` until CONFIG REWRITE writes it.
    pub config: Option<String>,
}

/// The AOF in memory: a base, and the commands after it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogFile {
    /// The base, in the form of a snapshot.
    pub base: Bytes,
    /// The commands, in the form of the replication stream.
    pub commands: Vec<u8>,
    /// Number of bytes of `commands` that are durable; the rest is in the page cache.
    pub synced: usize,
}

/// A failure to save a snapshot or a base.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SaveError {
    /// The node's own disk takes nothing.
    #[error(transparent)]
    Disk(DiskFault),
    /// The file cannot be written.
    #[error("{0}")]
    File(String),
}

impl SaveError {
    /// Returns the operating system's message without its error number.
    pub fn words(&self) -> String {
        let whole = self.to_string();
        whole.split(" (os error").next().unwrap_or_default().to_owned()
    }
}

impl Disk {
    /// Replaces the snapshot: in `folder` under `name`, or in memory.
    ///
    /// # Errors
    /// If the disk takes nothing, or the file cannot be written. The old snapshot stays in that
    /// case.
    pub fn keep_snapshot(
        &mut self,
        snapshot: Bytes,
        folder: Option<&dyn Folder>,
        name: &str,
    ) -> Result<(), SaveError> {
        if let Some(fault) = self.fault {
            return Err(SaveError::Disk(fault));
        }
        match folder {
            Some(folder) => {
                folder.put(name, &snapshot).map_err(|error| SaveError::File(error.to_string()))?;
            }
            None => self.snapshot = Some(snapshot),
        }
        Ok(())
    }

    /// Number of bytes that a start reads.
    pub fn data_len(&self) -> usize {
        let log = self.log.as_ref().map(|log| log.base.len() + log.commands.len());
        log.or_else(|| self.snapshot.as_ref().map(Bytes::len)).unwrap_or(0)
    }

    /// Returns the disk after a power loss: only synced bytes are left.
    pub fn after_power_loss(mut self) -> Disk {
        if let Some(log) = &mut self.log {
            log.commands.truncate(log.synced);
        }
        self
    }

    /// Returns the disk after a kill of the process: the operating system still stores everything
    /// that was written.
    pub fn after_kill(mut self) -> Disk {
        if let Some(log) = &mut self.log {
            log.synced = log.commands.len();
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A start that finds an AOF does not read the snapshot.
    #[test]
    fn what_is_read_at_startup_is_the_aof_or_else_the_snapshot() {
        let snapshot = Some(Bytes::from_static(b"snapshot"));
        let log = LogFile { base: Bytes::from_static(b"base"), commands: b"commands".to_vec(), synced: 3 };
        let log = Some(log);
        for (disk, len) in [
            (Disk::default(), 0),
            (Disk { snapshot: snapshot.clone(), ..Disk::default() }, 8),
            (Disk { log: log.clone(), ..Disk::default() }, 12),
            (Disk { snapshot, log, ..Disk::default() }, 12),
        ] {
            assert_eq!(disk.data_len(), len, "{disk:?}");
        }
    }
}
