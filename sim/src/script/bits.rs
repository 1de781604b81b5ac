//! The library `bit`: operations on 32 bits, after Mike Pall's Lua BitOp, whose documentation
//! states the semantics.

use mlua::{Lua, MultiValue, Table, Value};

use super::args::Args;

/// Converts a number to 32 bits: adds a constant so large that the lowest bit of the double's
/// mantissa counts units, and takes the low bits. So whole numbers wrap around, fractions round to
/// the nearest even number, and larger numbers give arbitrary bits.
fn bits(args: &Args<'_>, at: usize) -> mlua::Result<u32> {
    const UNITS: f64 = 6_755_399_441_055_744.0;
    Ok((args.number(at)? + UNITS).to_bits() as u32)
}

fn number(bits: u32) -> Value {
    Value::Number(f64::from(bits as i32))
}

fn fold(args: &Args<'_>, with: fn(u32, u32) -> u32) -> mlua::Result<u32> {
    let mut folded = bits(args, 0)?;
    for at in 1..args.values.len() {
        folded = with(folded, bits(args, at)?);
    }
    Ok(folded)
}

fn shifted(args: &Args<'_>, with: fn(u32, u32) -> u32) -> mlua::Result<u32> {
    // Only the lower five bits of the distance count.
    Ok(with(bits(args, 0)?, bits(args, 1)? & 31))
}

fn tohex(args: &Args<'_>) -> mlua::Result<Value> {
    let value = bits(args, 0)?;
    let digits = match args.values.get(1) {
        None => 8,
        Some(_) => bits(args, 1)? as i32,
    };
    let text = if digits < 0 { format!("{value:08X}") } else { format!("{value:08x}") };
    let keep = digits.unsigned_abs().min(8) as usize;
    args.lua.create_string(&text[8 - keep..]).map(Value::String)
}

/// Makes the table `bit`.
pub(super) fn library(lua: &Lua) -> mlua::Result<Table> {
    type Operation = fn(&Args<'_>) -> mlua::Result<u32>;
    let table = lua.create_table()?;
    let operations: [(&'static str, Operation); 11] = [
        ("tobit", |args| bits(args, 0)),
        ("bnot", |args| Ok(!bits(args, 0)?)),
        ("bswap", |args| Ok(bits(args, 0)?.swap_bytes())),
        ("band", |args| fold(args, |a, b| a & b)),
        ("bor", |args| fold(args, |a, b| a | b)),
        ("bxor", |args| fold(args, |a, b| a ^ b)),
        ("lshift", |args| shifted(args, |a, by| a << by)),
        ("rshift", |args| shifted(args, |a, by| a >> by)),
        ("arshift", |args| shifted(args, |a, by| ((a as i32) >> by) as u32)),
        ("rol", |args| shifted(args, u32::rotate_left)),
        ("ror", |args| shifted(args, u32::rotate_right)),
    ];
    for (name, operation) in operations {
        let function =
            move |lua: &Lua, values: MultiValue| operation(&Args { lua, function: name, values }).map(number);
        table.raw_set(name, lua.create_function(function)?)?;
    }
    let function = |lua: &Lua, values: MultiValue| tohex(&Args { lua, function: "tohex", values });
    table.raw_set("tohex", lua.create_function(function)?)?;
    Ok(table)
}
