//! The real files of a served node: its configuration and ACL users, and the folder of its data.

use std::{
    cell::RefCell,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use bytes::Bytes;
use lockstorm_sim::env::{Files, Folder};

/// The machine's files.
#[derive(Debug, Clone, Default)]
pub(super) struct Disk {
    /// The folder of relative paths; the working directory if empty.
    pub(super) folder: PathBuf,
}

impl Files for Disk {
    fn read(&self, path: &str) -> io::Result<String> {
        fs::read_to_string(self.folder.join(path))
    }

    fn write(&self, path: &str, text: &str) -> io::Result<()> {
        replace(&self.folder.join(path), text.as_bytes())
    }
}

/// A folder of the machine in which a node keeps its data.
#[derive(Debug)]
pub(super) struct DataFolder {
    path: PathBuf,
    /// The last file to which bytes were appended.
    open: RefCell<Option<Appended>>,
    /// A thread is syncing the appended bytes.
    syncing: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Appended {
    name: String,
    file: File,
    len: u64,
}

impl DataFolder {
    pub(super) fn new(path: PathBuf) -> DataFolder {
        DataFolder { path, open: RefCell::default(), syncing: Arc::default() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Closes the file of this name, which is replaced or removed.
    fn forget(&self, name: &str) {
        self.open.borrow_mut().take_if(|open| open.name == name);
    }
}

impl Folder for DataFolder {
    fn read(&self, name: &str) -> io::Result<Bytes> {
        fs::read(self.path.join(name)).map(Bytes::from)
    }

    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.forget(name);
        let path = self.path.join(name);
        if let Some(folder) = path.parent().filter(|folder| !folder.exists()) {
            fs::create_dir(folder)?;
        }
        replace(&path, bytes)
    }

    fn append(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut open = self.open.borrow_mut();
        let appended = match &mut *open {
            Some(appended) if appended.name == name => appended,
            open => {
                let file = OpenOptions::new().create(true).append(true).open(self.path.join(name))?;
                let len = file.metadata()?.len();
                open.insert(Appended { name: name.to_owned(), file, len })
            }
        };
        let written = appended.file.write_all(bytes);
        if written.is_err() {
            // Truncate a partial write: a reader would take half a command for a truncated file.
            appended.file.set_len(appended.len)?;
        } else {
            appended.len += bytes.len() as u64;
        }
        written
    }

    fn sync(&self, name: &str, soon: bool) -> io::Result<bool> {
        let open = self.open.borrow();
        // Only the last appended file can have bytes that are not durable.
        let Some(appended) = open.as_ref().filter(|open| open.name == name) else { return Ok(true) };
        if !soon {
            return appended.file.sync_data().map(|()| true);
        }
        if self.syncing.swap(true, Ordering::AcqRel) {
            return Ok(false);
        }
        let (file, syncing) = (appended.file.try_clone()?, self.syncing.clone());
        thread::spawn(move || {
            let _ = file.sync_data();
            syncing.store(false, Ordering::Release);
        });
        Ok(true)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.forget(from);
        self.forget(to);
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.forget(name);
        fs::remove_file(self.path.join(name))
    }

    fn has(&self, name: &str) -> bool {
        self.path.join(name).exists()
    }
}

/// Writes a temporary file and renames it, so that a reader finds either the old or the new
/// content.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.tmp", std::process::id()));
    let beside = path.with_file_name(name);
    let written = File::create(&beside)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written?;
    // Sync the folder: without it the new name is not durable.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all())
}
