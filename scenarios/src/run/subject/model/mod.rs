//! Small models of other lock algorithms: the lock of `SET key token NX PX`, over one node or a
//! quorum of them, and its relatives that count, queue, share or hand out permits, and the
//! count-down latch and the rate limiter. Each behaves as its
//! [traits](crate::file::scenario::traits) say.
//!
//! Models exist only to be judged: by the claims about their mistakes, and by the tests that prove
//! that every checker can raise its alarm.

mod commands;
mod evalsha;
mod hold;
mod latch;
mod lock;
mod rate;
mod wire;

use lockstorm_client::Env;

use crate::{file::scenario::traits::ClockName, judge::history::Deadline, run::bridge::HostEnv};

pub(super) use lock::make;

impl ClockName {
    /// Returns the time of the clock in nanoseconds.
    fn now(self, env: &HostEnv) -> i64 {
        let reading = match self {
            ClockName::Boottime => env.boottime().0,
            ClockName::Monotonic => env.now().0,
            ClockName::Wall => env.wall().0,
        };
        i64::try_from(reading.as_nanos()).unwrap_or(i64::MAX)
    }

    /// Converts a time of the clock to the form of the history.
    fn deadline(self, nanos: i64) -> Deadline {
        use lockstorm_world::time;
        match self {
            ClockName::Boottime => time::Boottime::from_nanos(nanos).into(),
            ClockName::Monotonic => time::Monotonic::from_nanos(nanos).into(),
            ClockName::Wall => time::Wall::from_nanos(nanos).into(),
        }
    }
}
