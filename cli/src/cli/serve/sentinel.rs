//! A Sentinel behind a real port: its file has lines of its own, and is where it keeps its state.

use std::{error::Error, io};

use lockstorm_sim::{
    config::Config,
    env::{Env, Files},
    sentinel::without_directives,
    server::Server,
};

use super::disk::Disk;

/// Files without the lines that are about Sentinel, which no other server knows.
#[derive(Debug)]
pub(super) struct OtherLines(pub(super) Disk);

impl Files for OtherLines {
    fn read(&self, path: &str) -> io::Result<String> {
        self.0.read(path).map(|text| without_directives(&text))
    }

    fn write(&self, path: &str, text: &str) -> io::Result<()> {
        self.0.write(path, text)
    }
}

/// A Sentinel that starts from its file.
pub(super) fn start(config: Config, files: &Disk, env: &mut Env) -> Result<Server, Box<dyn Error>> {
    let path = config.config_file.clone();
    let text = files.read(&path).map_err(|error| format!("{path}: {error}"))?;
    // A state that it cannot write would be lost with the process, and so would be what it has
    // voted for.
    files.write(&path, &text).map_err(|error| format!("{path} must be writable: {error}"))?;
    Server::sentinel(config, &text, env).map_err(|mistake| format!("{path}: {mistake}").into())
}
