//! The multi-part AOF in a folder: reads, creates, replaces and removes its files.

use std::io;

use bytes::Bytes;

use super::{Manifest, ManifestError};
use crate::{
    config::Config,
    durability::{LogState, rdb},
    env::Folder,
};

/// The files of an AOF, as the writing node knows them.
#[derive(Debug, Clone)]
pub struct Parts {
    /// `appenddirname`: the folder within the data folder.
    folder: String,
    /// `appendfilename`: the prefix of the names of all files.
    filename: String,
    manifest: Manifest,
    /// Number of bytes of all files. Until the next rewrite it includes those that a start has cut
    /// off, as in Redis.
    pub len: u64,
    /// Number of bytes after the last rewrite; growth is measured from it.
    pub base_len: u64,
    /// The part of `len` that is not in the last file.
    last_begins: u64,
}

/// The reason why an AOF cannot be read. File names are relative to the data folder.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The manifest is invalid.
    #[error("{why}: line {line} of {file}")]
    Manifest {
        /// The path of the manifest.
        file: String,
        /// The line, from 1; 0 for an empty file.
        line: usize,
        /// The mistake in the line.
        why: ManifestError,
    },
    /// A file cannot be read, or cannot be written although it must be.
    #[error("the append-only file {file} cannot be opened: {error}")]
    File {
        /// The path of the file that was opened or written.
        file: String,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The RDB preamble of a file is damaged.
    #[error("Bad file format reading the append only file {file}: {error}")]
    Snapshot {
        /// The path of the file with the preamble.
        file: String,
        /// The mistake in the snapshot.
        error: rdb::RdbError,
    },
    /// Bytes that are not a command.
    #[error(
        "Bad file format reading the append only file {file} at byte {at}; redis-check-aof --fix cuts it off there"
    )]
    Damaged {
        /// The path of the damaged file.
        file: String,
        /// The offset at which a command should begin.
        at: usize,
    },
    /// A file ends in the middle of a command or of a transaction, where that is not allowed.
    #[error(
        "Unexpected end of file reading the append only file {file}: what begins at byte {at} is not whole. Where this is \
         the last file, aof-load-truncated lets a start do without it, and redis-check-aof --fix cuts it off"
    )]
    Short {
        /// The path of the incomplete file.
        file: String,
        /// The offset at which the command or the transaction begins.
        at: usize,
    },
    /// An unknown command.
    #[error("Unknown command '{command}' reading the append only file {file} at byte {at}")]
    Unknown {
        /// The name of the command.
        command: String,
        /// The path of the file with the command.
        file: String,
        /// The offset at which the command begins.
        at: usize,
    },
}

impl Parts {
    /// Finds the AOF in a folder, which may be empty. A single file, as versions before 7.0 wrote
    /// it, becomes the base; returns true if it did.
    ///
    /// # Errors
    /// If the manifest cannot be read or is invalid, or a file cannot be moved.
    pub fn find(folder: &dyn Folder, config: &Config) -> Result<(Parts, bool), LogError> {
        let (dir, filename) = (config.aof.appenddirname.clone(), config.aof.appendfilename.clone());
        let mut parts = Parts {
            folder: dir,
            filename,
            manifest: Manifest::default(),
            len: 0,
            base_len: 0,
            last_begins: 0,
        };
        let file = parts.manifest_path();
        match folder.read(&file) {
            Ok(text) => {
                let parsed = Manifest::parse(&text);
                parts.manifest = parsed.map_err(|(why, line)| LogError::Manifest { file, line, why })?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(LogError::File { file, error }),
        }
        let moved = parts.adopt(folder)?;
        Ok((parts, moved))
    }

    /// Upgrades a single file, or continues an interrupted upgrade. Returns true if it moved the
    /// file.
    fn adopt(&mut self, folder: &dyn Folder) -> Result<bool, LogError> {
        let wanted = Manifest::of_single(&self.filename);
        let (old, new) = (self.filename.clone(), self.path(&self.filename));
        let begun = self.manifest == wanted && !folder.has(&new);
        let none = self.manifest == Manifest::default();
        if !(none || begun) || !folder.has(&old) {
            return Ok(false);
        }
        self.manifest = wanted;
        let moved = self.keep_manifest(folder).and_then(|()| folder.rename(&old, &new));
        moved.map(|()| true).map_err(|error| LogError::File { file: old, error })
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }

    fn manifest_path(&self) -> String {
        self.path(&format!("{}.manifest", self.filename))
    }

    /// Returns true if there is no file to read.
    pub fn is_empty(&self) -> bool {
        self.manifest.is_empty()
    }

    /// Reads the files in order, each with its name relative to the data folder.
    ///
    /// # Errors
    /// If one of them cannot be read.
    pub fn read(&mut self, folder: &dyn Folder) -> Result<Vec<(String, Bytes)>, LogError> {
        let mut files = Vec::new();
        self.len = 0;
        self.base_len = 0;
        for part in self.manifest.read_order() {
            let file = self.path(&part.name);
            let bytes = folder.read(&file).map_err(|error| LogError::File { file: file.clone(), error })?;
            self.last_begins = self.len;
            self.len += bytes.len() as u64;
            if self.manifest.base.as_ref() == Some(part) {
                self.base_len = bytes.len() as u64;
            }
            files.push((file, bytes));
        }
        Ok(files)
    }

    /// Truncates the last file at an offset. `len` and `base_len` remain: Redis 7.0 takes both
    /// before it truncates.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn cut(&mut self, folder: &dyn Folder, file: &str, bytes: &[u8], at: usize) -> Result<(), LogError> {
        self.last_begins += (bytes.len() - at) as u64;
        let cut = folder.put(file, &bytes[..at]);
        cut.map_err(|error| LogError::File { file: file.into(), error })
    }

    /// Creates a file to append to if there is none.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn open(&mut self, folder: &dyn Folder) -> io::Result<()> {
        if self.manifest.incremental.is_empty() { self.extend(folder) } else { Ok(()) }
    }

    /// The file to append to; `None` if there is none yet.
    pub fn last(&self) -> Option<String> {
        self.manifest.incremental.last().map(|part| self.path(&part.name))
    }

    /// Appends to the last file.
    ///
    /// # Errors
    /// If not all bytes can be written.
    pub fn append(&mut self, folder: &dyn Folder, bytes: &[u8]) -> io::Result<()> {
        let file = self.last().ok_or(io::ErrorKind::NotFound)?;
        folder.append(&file, bytes)?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Adds a new file to append to, after the others.
    ///
    /// # Errors
    /// If it cannot be created. Nothing has changed in that case.
    pub fn extend(&mut self, folder: &dyn Folder) -> io::Result<()> {
        let mut manifest = self.manifest.clone();
        self.add_file(folder, &mut manifest)?;
        self.replace_manifest(folder, manifest)?;
        self.last_begins = self.len;
        Ok(())
    }

    fn add_file(&self, folder: &dyn Folder, manifest: &mut Manifest) -> io::Result<()> {
        let name = manifest.extend(&self.filename);
        // An earlier run may have left a file of this name, which is in no manifest: empty it.
        folder.put(&self.path(&name), b"")
    }

    /// Checks that a file can be created.
    ///
    /// # Errors
    /// If it cannot.
    pub fn probe(&self, folder: &dyn Folder) -> io::Result<()> {
        let file = self.path(&format!("temp-{}.incr", self.filename));
        folder.put(&file, b"")?;
        folder.remove(&file)
    }

    /// Replaces all files by a base, except the last one if commands are appended to it already. If
    /// commands will be appended from now on, they get a new file.
    ///
    /// # Errors
    /// If a file cannot be written. Nothing has changed in that case.
    pub fn rewrite(
        &mut self,
        folder: &dyn Folder,
        base: &[u8],
        extension: &str,
        state: LogState,
    ) -> io::Result<()> {
        let mut manifest = self.manifest.clone();
        if state == LogState::Waiting {
            self.add_file(folder, &mut manifest)?;
        }
        let behind = if state == LogState::On { self.len - self.last_begins } else { 0 };
        let name = manifest.rebase(&self.filename, extension, usize::from(state != LogState::Off));
        folder.put(&self.path(&name), base)?;
        self.replace_manifest(folder, manifest)?;
        self.last_begins = base.len() as u64;
        self.len = self.last_begins + behind;
        self.base_len = self.len;
        Ok(())
    }

    /// Returns true if there are history files.
    pub fn has_history(&self) -> bool {
        !self.manifest.history.is_empty()
    }

    /// Removes the history files.
    ///
    /// # Errors
    /// If the manifest cannot be written. A file that cannot be removed stays in the folder, but in
    /// no manifest.
    pub fn sweep(&mut self, folder: &dyn Folder) -> io::Result<()> {
        let mut manifest = self.manifest.clone();
        let history = std::mem::take(&mut manifest.history);
        self.replace_manifest(folder, manifest)?;
        for part in history {
            let _ = folder.remove(&self.path(&part.name));
        }
        Ok(())
    }

    fn replace_manifest(&mut self, folder: &dyn Folder, manifest: Manifest) -> io::Result<()> {
        let old = std::mem::replace(&mut self.manifest, manifest);
        let kept = self.keep_manifest(folder);
        if kept.is_err() {
            self.manifest = old;
        }
        kept
    }

    fn keep_manifest(&self, folder: &dyn Folder) -> io::Result<()> {
        folder.put(&self.manifest_path(), self.manifest.to_string().as_bytes())
    }
}
