//! Timeout of a blocking command.

use std::time::Duration;

use super::{Ctx, Error, double, ranged};
use crate::time::Monotonic;

const NEGATIVE: Error = Error::of("ERR timeout is negative");
const OUT_OF_RANGE: Error = Error::of("ERR timeout is out of range");

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
    /// If it is not a number, negative, or out of range. Before Redis 7.2, a timeout above 64 bits
    /// of milliseconds counts as negative.
    pub fn parse(ctx: &Ctx<'_>, text: &[u8]) -> Result<Wait, Error> {
        let seconds = double(text).map_err(|_| Error::of("ERR timeout is not a float or out of range"))?;
        let ms = (seconds * 1000.0).ceil();
        if ms < 0.0 {
            return Err(NEGATIVE);
        }
        if ms >= i64::MAX as f64 {
            return Err(if ctx.node.config.generation.is_before_7_2() { NEGATIVE } else { OUT_OF_RANGE });
        }
        Wait::of_ms(ctx, ms as i64)
    }

    /// Parses a timeout in whole milliseconds; 0 waits forever.
    ///
    /// # Errors
    /// If it is not a number, negative, or from Redis 7.2 on beyond the end of time.
    pub fn parse_ms(ctx: &Ctx<'_>, text: &[u8]) -> Result<Wait, Error> {
        let wrong = Error::of("ERR timeout is not an integer or out of range");
        let ms = ranged(text, i64::MIN, i64::MAX, wrong)?;
        Wait::of_ms(ctx, ms)
    }

    /// Makes a timeout of some milliseconds.
    ///
    /// # Errors
    /// As [`Wait::parse_ms`].
    pub(super) fn of_ms(ctx: &Ctx<'_>, ms: i64) -> Result<Wait, Error> {
        let unsigned = u64::try_from(ms).map_err(|_| NEGATIVE)?;
        if !ctx.node.config.generation.is_before_7_2() {
            ctx.wall_ms().checked_add(ms).ok_or(OUT_OF_RANGE)?;
        }
        let deadline = (ms > 0).then(|| ctx.env.monotonic + Duration::from_millis(unsigned));
        Ok(Wait { deadline })
    }
}
