//! Raises the limit of file descriptors for `maxclients`.

use lockstorm_sim::{config::Config, log::Level};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::log::Log;

/// The descriptors that the process needs besides its clients, as in Redis
/// (`CONFIG_MIN_RESERVED_FDS`).
const RESERVED: u64 = 32;

/// Raises the limit of the process for this number of clients, as far as it may. Returns the number
/// of clients for which the limit suffices.
pub(super) fn make_room(clients: usize) -> usize {
    let wanted = clients as u64 + RESERVED;
    let limit = getrlimit(Resource::Nofile);
    // Without a limit there is nothing to raise.
    let Some(current) = limit.current.filter(|current| *current < wanted) else { return clients };
    let reachable = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(reachable), ..limit });
    let reached = if raised.is_ok() { reachable } else { current };
    usize::try_from(reached.saturating_sub(RESERVED).max(1)).unwrap_or(usize::MAX)
}

/// Raises the limit for `maxclients` before the start, or else lowers `maxclients`.
pub(super) fn raise(config: &mut Config, log: &Log) {
    let wanted = config.clients.maxclients;
    config.clients.maxclients = make_room(wanted);
    if config.clients.maxclients < wanted {
        let text = format!(
            "The system allows {} open files, {} are needed: maxclients is {} now",
            config.clients.maxclients as u64 + RESERVED,
            wanted as u64 + RESERVED,
            config.clients.maxclients
        );
        log.line(Level::Warning, &text);
    }
}
