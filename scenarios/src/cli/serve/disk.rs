//! The files of the machine that a served node is told by name: its configuration, its users.

use std::{fs, io, io::Write, path::Path};

use lockstorm_sim::env::Files;

/// The machine's own files.
#[derive(Debug, Clone, Copy)]
pub(super) struct Disk;

impl Files for Disk {
    fn read(&self, path: &str) -> io::Result<String> {
        fs::read_to_string(path)
    }

    fn write(&self, path: &str, text: &str) -> io::Result<()> {
        // Beside the file and then in its place, so that whoever reads finds the old text or the new one.
        let path = Path::new(path);
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(format!(".{}.tmp", std::process::id()));
        let beside = path.with_file_name(name);
        let written = fs::File::create(&beside)
            .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&beside, path));
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
        written
    }
}
