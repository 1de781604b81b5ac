//! Real time, by which the simulator's clock follows the real server.

use std::time::{Duration, Instant, SystemTime};

/// Measures real time from the start of an episode.
pub(crate) struct Stopwatch {
    wall_ms: i64,
    last: Instant,
}

impl Stopwatch {
    #[expect(
        clippy::disallowed_methods,
        reason = "the clock of a real server, which the simulator is compared with"
    )]
    pub(crate) fn start() -> Stopwatch {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Stopwatch { wall_ms: wall.as_millis() as i64, last: Instant::now() }
    }

    /// The wall clock at the start, in milliseconds since the Unix epoch.
    pub(crate) fn wall_ms(&self) -> i64 {
        self.wall_ms
    }

    /// The real time since the previous call.
    #[expect(
        clippy::disallowed_methods,
        reason = "the clock of a real server, which the simulator is compared with"
    )]
    pub(crate) fn lap(&mut self) -> Duration {
        let now = Instant::now();
        now - std::mem::replace(&mut self.last, now)
    }
}
