//! A Sentinel on a real port. Its file has directives of its own, and stores its state.

use std::{error::Error, io};

use lockstorm_sim::{
    config::Config,
    env::{Env, Files},
    sentinel::without_directives,
    server::Server,
};

use super::disk::Disk;

/// Reads files without Sentinel's directives, which the parser of redis.conf does not know.
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

/// Starts a Sentinel from its file.
pub(super) fn start(config: Config, files: &Disk, env: &mut Env) -> Result<Server, Box<dyn Error>> {
    let path = config.server.config_file.clone();
    let text = files.read(&path).map_err(|error| format!("{path}: {error}"))?;
    // Check that the file is writable: otherwise the state and the votes would be lost with the
    // process.
    files.write(&path, &text).map_err(|error| format!("{path} must be writable: {error}"))?;
    Server::sentinel(config, &text, env).map_err(|mistake| format!("{path}: {mistake}").into())
}
