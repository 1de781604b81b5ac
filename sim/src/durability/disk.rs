//! A node's disk: the files that the next run finds.

use bytes::Bytes;

/// The files of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Disk {
    /// `dump.rdb`: the last snapshot, durable from the moment it is complete.
    pub snapshot: Option<Bytes>,
    /// The users that ACL SAVE has written (`aclfile`).
    pub users: Option<Bytes>,
    /// The append-only file, if there ever was one.
    pub log: Option<LogFile>,
}

/// The append-only file: a snapshot to begin with, and the commands since.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogFile {
    /// The base, in the form of a snapshot.
    pub base: Bytes,
    /// The commands, in the form of the replication stream.
    pub commands: Vec<u8>,
    /// How many bytes of `commands` are durable; the rest is in the operating system's hands.
    pub synced: usize,
}

impl Disk {
    /// What a loss of power leaves: nothing that was not synced.
    pub fn after_power_loss(mut self) -> Disk {
        if let Some(log) = &mut self.log {
            log.commands.truncate(log.synced);
        }
        self
    }

    /// What the death of the process alone leaves: all that it had written, which the operating system goes on to store.
    pub fn after_kill(mut self) -> Disk {
        if let Some(log) = &mut self.log {
            log.synced = log.commands.len();
        }
        self
    }
}
