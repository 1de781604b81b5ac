//! Wall clocks of real processes that a row can step: `clock.c` is preloaded into each, and adds to the machine's clock what a file says.

use std::{
    fs::{self, OpenOptions},
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
    process::Command,
};

/// The library, compiled, and the files that it reads.
pub(crate) struct Clocks {
    folder: PathBuf,
    library: PathBuf,
}

impl Clocks {
    /// Compiles the library into this folder. The C compiler is the one that links programs of Rust.
    ///
    /// # Errors
    /// There is no `cc`, or it refuses the source.
    pub(crate) fn compile(folder: &Path) -> io::Result<Clocks> {
        let library = folder.join("clock.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/topology/clock.c");
        let compiled =
            Command::new("cc").args(["-O2", "-shared", "-fPIC", "-o"]).arg(&library).arg(source).output()?;
        if compiled.status.success() {
            return Ok(Clocks { folder: folder.to_owned(), library });
        }
        Err(io::Error::other(format!("cc {source}: {}", String::from_utf8_lossy(&compiled.stderr))))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name).join("clock")
    }

    /// Has a process keep a clock of its own, by this name. Where it was stepped before, it stays so.
    pub(crate) fn keep(&self, name: &str, command: &mut Command) -> io::Result<()> {
        let file = self.file(name);
        if !file.exists() {
            fs::write(&file, 0_i64.to_ne_bytes())?;
        }
        command.env("LD_PRELOAD", &self.library).env("LOCKSTORM_CLOCK", file);
        Ok(())
    }

    /// Steps a clock by so many milliseconds.
    pub(crate) fn step(&self, name: &str, by: i64) -> io::Result<()> {
        // Written in place, for the process has mapped the file.
        let mut file = OpenOptions::new().read(true).write(true).open(self.file(name))?;
        let mut ahead = [0; 8];
        file.read_exact(&mut ahead)?;
        file.rewind()?;
        file.write_all(&(i64::from_ne_bytes(ahead) + by).to_ne_bytes())
    }
}
