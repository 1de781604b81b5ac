//! Wall clocks of real processes that a row can step: `clock.c` is preloaded into each process and
//! adds the offset in a file to the machine's clock.

use std::{
    fs::{self, OpenOptions},
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
    process::Command,
};

/// The compiled library and its offset files. Dropping this deletes the library.
pub(crate) struct Clocks {
    /// One folder for each process.
    folder: PathBuf,
    library: PathBuf,
}

impl Clocks {
    /// Compiles the library for the rig whose files are in this folder. The C compiler is the one
    /// that links Rust programs.
    ///
    /// # Errors
    /// There is no `cc`, or it refuses the source.
    pub(crate) fn compile(folder: &Path) -> io::Result<Clocks> {
        // The system may not allow a process to load code from a folder in memory.
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.so"));
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/topology/clock.c");
        let compiled =
            Command::new("cc").args(["-O2", "-shared", "-fPIC", "-o"]).arg(&library).arg(source).output()?;
        if compiled.status.success() {
            return Ok(Clocks { folder: folder.to_owned(), library });
        }
        Err(io::Error::other(format!("cc {source}: {}", String::from_utf8_lossy(&compiled.stderr))))
    }

    /// Checks that a process has loaded the library: without it, a test of steps would pass
    /// although no step happened.
    ///
    /// # Errors
    /// The process has not loaded it, like a statically linked program.
    pub(crate) fn is_kept_by(&self, process: u32) -> io::Result<()> {
        let maps = fs::read_to_string(format!("/proc/{process}/maps"))?;
        if maps.contains(&*self.library.to_string_lossy()) {
            return Ok(());
        }
        Err(io::Error::other(format!("process {process} has not loaded {}", self.library.display())))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name).join("clock")
    }

    /// Gives the process of this name a clock of its own. A restarted process keeps the steps of
    /// its clock.
    pub(crate) fn keep(&self, name: &str, command: &mut Command) -> io::Result<()> {
        let file = self.file(name);
        if !file.exists() {
            fs::write(&file, 0_i64.to_ne_bytes())?;
        }
        command.env("LD_PRELOAD", &self.library).env("LOCKSTORM_CLOCK", file);
        Ok(())
    }

    /// Steps a clock by `by` milliseconds.
    pub(crate) fn step(&self, name: &str, by: i64) -> io::Result<()> {
        // Written in place, because the process has mapped the file.
        let mut file = OpenOptions::new().read(true).write(true).open(self.file(name))?;
        let mut ahead = [0; 8];
        file.read_exact(&mut ahead)?;
        file.rewind()?;
        file.write_all(&(i64::from_ne_bytes(ahead) + by).to_ne_bytes())
    }
}

impl Drop for Clocks {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.library);
    }
}
