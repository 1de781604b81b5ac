//! The sockets that a served node listens on.

use std::{
    fs, io,
    os::unix::fs::{FileTypeExt, PermissionsExt},
    path::PathBuf,
};

use lockstorm_sim::{config::Config, drive::bind, log::Level};
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use tokio::net::{TcpListener, UnixListener};

use super::log::Log;

/// Listens on each address, as [`bind`] does.
pub(super) fn tcp(addresses: &str, port: u16, backlog: u32, log: &Log) -> Result<Vec<TcpListener>> {
    let passed_over = |host: &str, error: &io::Error| {
        log.line(Level::Notice, &format!("Not listening on {host}: {error}"));
    };
    let addresses = addresses.split_ascii_whitespace();
    let listeners = bind(addresses, port, backlog, passed_over).map_err(|error| miette!("{error}"))?;
    listeners.into_iter().map(|listener| TcpListener::from_std(listener).into_diagnostic()).collect()
}

/// The most free ports that are tried until the port of their cluster bus is free, too.
const TRIES: usize = 100;

/// Listens for clients and, in cluster mode, on the bus for other nodes.
pub(super) fn with_bus(
    addresses: &str,
    config: &Config,
    free_port: bool,
    log: &Log,
) -> Result<(Vec<TcpListener>, Vec<TcpListener>)> {
    let backlog = config.network.tcp_backlog;
    let mut tries = if free_port { TRIES } else { 1 };
    loop {
        let listeners = tcp(addresses, config.network.port, backlog, log)?;
        let Some(first) = listeners.first().filter(|_| config.cluster.enabled) else {
            return Ok((listeners, Vec::new()));
        };
        let port = first.local_addr().into_diagnostic()?.port();
        let bus = config.clone().with(|config| config.network.port = port).bus_port().ok_or_else(|| {
            miette!("the port {port} is too high for a cluster node: its bus needs the port 10000 above")
        });
        let bus = bus.and_then(|bus| tcp(addresses, bus, backlog, log));
        tries -= 1;
        match bus {
            Ok(bus) => return Ok((listeners, bus)),
            Err(_) if tries > 0 => {}
            Err(error) => return Err(error).wrap_err("the cluster bus has no port"),
        }
    }
}

/// Removes the file of a Unix socket on drop.
#[derive(Debug)]
pub(super) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Listens on a Unix socket with these permissions (octal, or 0 for those of the process). Replaces
/// the file that an earlier process has left.
pub(super) fn unix(path: &str, mode: &str) -> Result<(UnixListener, SocketFile)> {
    let left = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if left {
        fs::remove_file(path).into_diagnostic().wrap_err_with(|| format!("cannot replace {path}"))?;
    }
    let listener = UnixListener::bind(path).map_err(|error| match error.kind() {
        // `bind` refuses a path as invalid input only if it does not fit into an address.
        io::ErrorKind::InvalidInput => {
            let length = path.len();
            miette!(
                help = "give a path relative to the folder in which the server starts, or a shorter one",
                "cannot listen at {path}: {length} bytes are too many for the path of a Unix socket"
            )
        }
        _ => miette!("cannot listen at {path}: {error}"),
    })?;
    let file = SocketFile(path.into());
    let mode = u32::from_str_radix(mode, 8).unwrap_or(0);
    if mode != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
            .into_diagnostic()
            .wrap_err_with(|| format!("cannot set the permissions of {path}"))?;
    }
    Ok((listener, file))
}
