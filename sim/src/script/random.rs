//! `math.random` and `math.randomseed`: the 48-bit linear congruential generator of POSIX `lrand48`, so that scripts draw the
//! same numbers on every machine. As in Redis 7 the state is the process's: a script goes on where the last one stopped.

use std::cell::Cell;

use mlua::{Lua, MultiValue, Value};

use super::{args::bad_argument, failure::Failure};

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const INCREMENT: u64 = 0xB;
const MASK: u64 = (1 << 48) - 1;

/// The state before anything was seeded, which POSIX leaves open and the BSD generator sets to this.
const UNSEEDED: u64 = 0x1234_ABCD_330E;

/// The generator's state.
#[derive(Debug)]
pub(super) struct Random(Cell<u64>);

impl Default for Random {
    fn default() -> Random {
        Random(Cell::new(UNSEEDED))
    }
}

impl Random {
    /// `srand48`.
    fn seed(&self, seed: i32) {
        self.0.set(u64::from(seed as u32) << 16 | 0x330E);
    }

    /// `lrand48`: 31 bits.
    fn next(&self) -> i32 {
        let next = self.0.get().wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT) & MASK;
        self.0.set(next);
        (next >> 17) as i32
    }

    /// `math.random([low,] [high])`.
    pub(super) fn draw(&self, lua: &Lua, args: &MultiValue) -> mlua::Result<f64> {
        const MAX: i32 = i32::MAX;
        let fraction = f64::from(self.next() % MAX) / f64::from(MAX);
        let bound = |at: usize| -> mlua::Result<f64> {
            // Lua's own truncation of an argument that must be an integer.
            Ok(f64::from(number(lua, args, at, "random")? as i64 as i32))
        };
        let (low, high, at) = match args.len() {
            0 => return Ok(fraction),
            1 => (1.0, bound(0)?, 1),
            2 => (bound(0)?, bound(1)?, 2),
            _ => return Err(Failure::library(lua, "wrong number of arguments")),
        };
        if low > high {
            return Err(bad_argument(lua, "random", at - 1, "interval is empty"));
        }
        Ok((fraction * (high - low + 1.0)).floor() + low)
    }

    /// `math.randomseed(seed)`.
    pub(super) fn reseed(&self, lua: &Lua, args: &MultiValue) -> mlua::Result<()> {
        self.seed(number(lua, args, 0, "randomseed")? as i64 as i32);
        Ok(())
    }
}

fn number(lua: &Lua, args: &MultiValue, at: usize, function: &str) -> mlua::Result<f64> {
    let arg = args.get(at).unwrap_or(&Value::Nil);
    lua.coerce_number(arg.clone())?.ok_or_else(|| {
        let got = if at < args.len() { arg.type_name() } else { "no value" };
        bad_argument(lua, function, at, format!("number expected, got {got}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(random: &Random, args: &[i64]) -> f64 {
        let args = args.iter().map(|&n| Value::Integer(n)).collect();
        random.draw(&Lua::new(), &args).expect("the interval is not empty")
    }

    #[test]
    fn the_numbers_are_those_of_a_real_server() {
        // redis-server 7.0.15, freshly started, over several scripts.
        let random = Random::default();
        assert!((0.0..1.0).contains(&drawn(&random, &[])));
        assert_eq!(format!("{:.14}", drawn(&random, &[])), "0.84048536971234");
        let next = [drawn(&random, &[100]), drawn(&random, &[100]), drawn(&random, &[5, 10])];
        assert_eq!(next, [36.0, 45.0, 6.0]);
        random.seed(42);
        assert_eq!([(); 2].map(|()| drawn(&random, &[1_000_000])), [744_526.0, 342_702.0]);
    }
}
