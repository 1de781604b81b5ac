//! Timeout of a blocking command.

use std::time::Duration;

use super::{Ctx, Error, double, ranged};
use crate::time::Monotonic;

/// A parsed timeout.
#[derive(Debug, Clone, Copy)]
pub struct Wait {
    /// Time at which the wait ends; `None` for never.
    pub(super) deadline: Option<Monotonic>,
}

impl Wait {
    /// Parses a timeout in seconds, possibly with a fraction; 0 waits forever.
    ///
    /// # Errors
    /// If it is not a number, or negative. As in Redis, a timeout above 64 bits of milliseconds
    /// counts as negative.
    pub fn parse(ctx: &Ctx<'_>, text: &[u8]) -> Result<Wait, Error> {
        let seconds = double(text).map_err(|_| Error::of("ERR timeout is not a float or out of range"))?;
        let ms = (seconds * 1000.0).ceil();
        if ms < 0.0 || ms >= i64::MAX as f64 {
            return Err(Error::of("ERR timeout is negative"));
        }
        Ok(Wait::of_ms(ctx, ms as u64))
    }

    /// Parses a timeout in whole milliseconds; 0 waits forever.
    ///
    /// # Errors
    /// If it is not a number, or negative.
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
