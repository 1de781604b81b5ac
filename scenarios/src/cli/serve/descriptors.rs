//! As many file descriptors as `maxclients` asks for.

use lockstorm_sim::{config::Config, log::Level};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::log::Log;

/// What the process needs beside its clients, as Redis reckons (`CONFIG_MIN_RESERVED_FDS`).
const RESERVED: u64 = 32;

/// Raises the limit of the process as far as it may; what it may not have is taken off `maxclients`.
pub(super) fn raise(config: &mut Config, log: &Log) {
    let wanted = config.maxclients as u64 + RESERVED;
    let limit = getrlimit(Resource::Nofile);
    // Without a limit there is nothing to raise.
    let Some(current) = limit.current.filter(|current| *current < wanted) else { return };
    let reachable = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(reachable), ..limit });
    let reached = if raised.is_ok() { reachable } else { current };
    if reached < wanted {
        config.maxclients = usize::try_from(reached.saturating_sub(RESERVED).max(1)).unwrap_or(usize::MAX);
        let text = format!(
            "The system allows {reached} open files, {wanted} are needed: maxclients is {} now",
            config.maxclients
        );
        log.line(Level::Warning, &text);
    }
}
