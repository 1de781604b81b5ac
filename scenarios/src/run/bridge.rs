//! Implements the client's seam for a host of the world. No other file knows both.

use std::{io, time::Duration};

use lockstorm_client::{Boottime, BoxFuture, BoxStream, Env, Monotonic, Wall};
use lockstorm_world::{ClockId, HostCtx, time};
use tokio::io::BufReader;

/// The clocks, PRNG, connections and tasks of one host, through the production client's seam.
#[derive(Debug, Clone)]
pub(crate) struct HostEnv {
    ctx: HostCtx,
    /// The clock that replaces boottime.
    lease_clock: ClockId,
}

impl HostEnv {
    /// Creates the environment of code on this host.
    pub(crate) fn new(ctx: HostCtx) -> HostEnv {
        HostEnv { ctx, lease_clock: ClockId::Boottime }
    }

    /// Creates the environment of a platform without a clock that continues while the machine is
    /// suspended.
    pub(crate) fn without_boottime(ctx: HostCtx) -> HostEnv {
        HostEnv { ctx, lease_clock: ClockId::Monotonic }
    }

    /// Returns the clock whose time the client gets as boottime.
    pub(crate) fn lease_clock(&self) -> ClockId {
        self.lease_clock
    }
}

/// The number of bytes that one read from a connection may return. The simulated socket clears the
/// whole buffer before it fills a part. The client allocates a new buffer for every reply; this one
/// is cleared once.
const READ: usize = 16 << 10;

/// Converts a time to a duration. A clock of the world may be set before its origin, which the
/// client's types cannot represent, so it becomes zero.
fn since_origin(nanos: i64) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
}

impl Env for HostEnv {
    fn now(&self) -> Monotonic {
        Monotonic(since_origin(self.ctx.monotonic().as_nanos()))
    }

    fn boottime(&self) -> Boottime {
        Boottime(since_origin(match self.lease_clock {
            ClockId::Monotonic => self.ctx.monotonic().as_nanos(),
            _ => self.ctx.boottime().as_nanos(),
        }))
    }

    fn wall(&self) -> Wall {
        Wall(since_origin(self.ctx.wall().as_nanos()))
    }

    fn sleep_until(&self, deadline: Monotonic) -> BoxFuture<'static, ()> {
        let nanos = i64::try_from(deadline.0.as_nanos()).unwrap_or(i64::MAX);
        Box::pin(self.ctx.sleep_until(time::Monotonic::from_nanos(nanos)))
    }

    fn random(&self) -> u64 {
        self.ctx.random()
    }

    fn dial(&self, host: &str, port: u16) -> BoxFuture<'static, io::Result<BoxStream>> {
        let (ctx, host) = (self.ctx.clone(), host.to_owned());
        Box::pin(async move {
            let stream = ctx.dial(&host, port).await?;
            Ok(Box::new(BufReader::with_capacity(READ, stream)) as BoxStream)
        })
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.ctx.spawn(task);
    }
}
