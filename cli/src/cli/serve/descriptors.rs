//! As many file descriptors as `maxclients` asks for.

use lockstorm_sim::{config::Config, log::Level};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::log::Log;

/// The descriptors that the process needs besides its clients, as in Redis
/// (`CONFIG_MIN_RESERVED_FDS`).
const RESERVED: u64 = 32;

/// Raises the limit of the process as far as it may and as so many clients need, and answers for
/// how many it is enough.
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

/// Makes room for `maxclients` before the start; what there is no room for is taken off it.
pub(super) fn raise(config: &mut Config, log: &Log) {
    let wanted = config.maxclients;
    config.maxclients = make_room(wanted);
    if config.maxclients < wanted {
        let text = format!(
            "The system allows {} open files, {} are needed: maxclients is {} now",
            config.maxclients as u64 + RESERVED,
            wanted as u64 + RESERVED,
            config.maxclients
        );
        log.line(Level::Warning, &text);
    }
}
