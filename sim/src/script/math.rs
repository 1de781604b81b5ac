//! `math.random` and `math.randomseed`.

use mlua::{Lua, MultiValue, Value};

use super::{args::bad_argument, failure::Failure, random::Random};

/// `math.random([low,] [high])`.
pub(super) fn random(prng: &Random, lua: &Lua, args: &MultiValue) -> mlua::Result<f64> {
    const MAX: i32 = i32::MAX;
    let fraction = f64::from(prng.next() % MAX) / f64::from(MAX);
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
pub(super) fn randomseed(prng: &Random, lua: &Lua, args: &MultiValue) -> mlua::Result<()> {
    prng.seed(number(lua, args, 0, "randomseed")? as i64 as i32);
    Ok(())
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

    fn drawn(prng: &Random, args: &[i64]) -> f64 {
        let args = args.iter().map(|&n| Value::Integer(n)).collect();
        random(prng, &Lua::new(), &args).expect("the interval is not empty")
    }

    #[test]
    fn the_numbers_are_those_of_a_real_server() {
        // redis-server 7.0.15, freshly started, over several scripts.
        let prng = Random::default();
        assert!((0.0..1.0).contains(&drawn(&prng, &[])));
        assert_eq!(format!("{:.14}", drawn(&prng, &[])), "0.84048536971234");
        let next = [drawn(&prng, &[100]), drawn(&prng, &[100]), drawn(&prng, &[5, 10])];
        assert_eq!(next, [36.0, 45.0, 6.0]);
        prng.seed(42);
        assert_eq!([(); 2].map(|()| drawn(&prng, &[1_000_000])), [744_526.0, 342_702.0]);
    }
}
