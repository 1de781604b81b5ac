//! How long a blocking command waits for one of its keys.

use std::time::Duration;

use super::{Ctx, Error, double, ranged};
use crate::time::Monotonic;

/// The timeout of a blocking command, read.
#[derive(Debug, Clone, Copy)]
pub struct Wait {
    /// When it gives up; `None` for never.
    pub(super) deadline: Option<Monotonic>,
}

impl Wait {
    /// Reads a timeout in seconds, which may have a fraction; 0 is forever.
    ///
    /// # Errors
    /// That it is no number, or negative. One too large for 64 bits of milliseconds counts as
    /// negative, as in Redis.
    pub fn parse(ctx: &Ctx<'_>, text: &[u8]) -> Result<Wait, Error> {
        let seconds = double(text).map_err(|_| Error::of("ERR timeout is not a float or out of range"))?;
        let ms = (seconds * 1000.0).ceil();
        if ms < 0.0 || ms >= i64::MAX as f64 {
            return Err(Error::of("ERR timeout is negative"));
        }
        Ok(Wait::of_ms(ctx, ms as u64))
    }

    /// Reads a timeout in whole milliseconds; 0 is forever.
    ///
    /// # Errors
    /// That it is no number, or negative.
    pub fn parse_ms(ctx: &Ctx<'_>, text: &[u8]) -> Result<Wait, Error> {
        let wrong = Error::of("ERR timeout is not an integer or out of range");
        let ms = ranged(text, i64::MIN, i64::MAX, wrong)?;
        let ms = u64::try_from(ms).map_err(|_| Error::of("ERR timeout is negative"))?;
        Ok(Wait::of_ms(ctx, ms))
    }

    fn of_ms(ctx: &Ctx<'_>, ms: u64) -> Wait {
        let deadline = (ms > 0).then(|| ctx.env.monotonic + Duration::from_millis(ms));
        Wait { deadline }
    }
}
