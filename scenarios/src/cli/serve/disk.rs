//! The files of the machine that a served node is told by name: its configuration, its users, a snapshot of its data.

use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
};

use lockstorm_sim::env::Files;

/// The machine's own files.
#[derive(Debug, Clone, Default)]
pub(super) struct Disk {
    /// Where snapshots are kept, if they are.
    pub(super) snapshot: Option<PathBuf>,
}

impl Files for Disk {
    fn read(&self, path: &str) -> io::Result<String> {
        fs::read_to_string(path)
    }

    fn write(&self, path: &str, text: &str) -> io::Result<()> {
        replace(Path::new(path), text.as_bytes())
    }

    fn keep_snapshot(&self, snapshot: &[u8]) -> io::Result<()> {
        self.snapshot.as_ref().map_or(Ok(()), |path| replace(path, snapshot))
    }
}

/// Writes beside a file and then in its place, so that whoever reads finds what was there or what is new.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.tmp", std::process::id()));
    let beside = path.with_file_name(name);
    let written = fs::File::create(&beside)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}
