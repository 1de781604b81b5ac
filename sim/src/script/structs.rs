//! The library `struct`: converts values to and from the bytes of C structures, after Roberto
//! Ierusalimschy's library, whose documentation states the format.

use std::iter::Peekable;

use mlua::{Lua, MultiValue, Table, Value};

use super::{
    args::{Args, bad_argument},
    convert::truncated,
    failure::Failure,
};

/// Maximum bytes of an integer in a format.
const INTEGER_SIZE_MAX: usize = 32;
/// Maximum bytes that a format describes.
const SIZE_MAX: usize = 64 << 20;
/// `!` without a number: the alignment of a double.
const ALIGN_DEFAULT: usize = 8;

/// A field of a format.
struct Field {
    kind: u8,
    size: usize,
    /// Bytes of padding before the field.
    padding: usize,
}

/// Reads a format field by field, while the offset advances.
struct Format<'a> {
    lua: &'a Lua,
    function: &'static str,
    rest: Peekable<std::slice::Iter<'a, u8>>,
    big_endian: bool,
    align: usize,
}

impl<'a> Format<'a> {
    fn new(args: &Args<'a>, text: &'a [u8]) -> Format<'a> {
        let (lua, function) = (args.lua, args.function);
        Format { lua, function, rest: text.iter().peekable(), big_endian: false, align: 1 }
    }

    fn number_or(&mut self, default: usize) -> mlua::Result<usize> {
        let mut number: Option<usize> = None;
        while let Some(&&digit) = self.rest.peek()
            && digit.is_ascii_digit()
        {
            self.rest.next();
            let more = number.unwrap_or(0) * 10 + usize::from(digit - b'0');
            if more > i32::MAX as usize {
                return Err(Failure::library(self.lua, "integral size overflow"));
            }
            number = Some(more);
        }
        Ok(number.unwrap_or(default))
    }

    /// Returns the next field, which begins at `offset` plus its padding. `None` at the end.
    fn next(&mut self, offset: usize) -> mlua::Result<Option<Field>> {
        while let Some(&kind) = self.rest.next() {
            let size = match kind {
                b'b' | b'B' | b'x' => 1,
                b'h' | b'H' => 2,
                b'f' => 4,
                b'l' | b'L' | b'T' | b'd' => 8,
                b'c' => self.number_or(1)?,
                b's' => 0,
                b'i' | b'I' => {
                    let size = self.number_or(4)?;
                    if size > INTEGER_SIZE_MAX {
                        let text = format!("integral size {size} is larger than limit of {INTEGER_SIZE_MAX}");
                        return Err(Failure::library(self.lua, text));
                    }
                    size
                }
                b' ' => continue,
                b'>' => {
                    self.big_endian = true;
                    continue;
                }
                b'<' => {
                    self.big_endian = false;
                    continue;
                }
                b'!' => {
                    let align = self.number_or(ALIGN_DEFAULT)?;
                    if !align.is_power_of_two() {
                        return Err(Failure::library(
                            self.lua,
                            format!("alignment {align} is not a power of 2"),
                        ));
                    }
                    self.align = align;
                    continue;
                }
                // `struct.size` ignores unknown letters; the other functions report them.
                other if other.is_ascii_alphanumeric() && self.function == "size" => 0,
                other => {
                    let option = char::from(other);
                    let why = format!("invalid format option '{option}'");
                    return Err(bad_argument(self.lua, self.function, 0, why));
                }
            };
            let padding = if size == 0 || kind == b'c' {
                0
            } else {
                let to = size.min(self.align);
                // Like the original, align a size that is not a power of two by its bits.
                to.wrapping_sub(offset & (to - 1)) & (to - 1)
            };
            return Ok(Some(Field { kind, size, padding }));
        }
        Ok(None)
    }
}

/// Converts a double like a C cast to 64 bits on x86-64: negative numbers wrap around, and a number
/// that is too large becomes 0.
fn unsigned(n: f64) -> u64 {
    const HALF: f64 = 9_223_372_036_854_775_808.0;
    if n >= HALF { truncated(n - HALF) as u64 ^ 1 << 63 } else { truncated(n) as u64 }
}

fn pack(args: &Args<'_>) -> mlua::Result<MultiValue> {
    // The original pushes a nil after the last argument, and errors mention that nil.
    let text = args.text(0)?;
    let mut args = Args { lua: args.lua, function: args.function, values: args.values.clone() };
    args.values.push_back(Value::Nil);
    let args = &args;
    let mut format = Format::new(args, &text);
    let (mut out, mut arg) = (Vec::new(), 1);
    while let Some(Field { kind, size, padding }) = format.next(out.len())? {
        if size > SIZE_MAX || out.len() > SIZE_MAX {
            return Err(Failure::library(args.lua, "too long"));
        }
        out.resize(out.len() + padding, 0);
        match kind {
            b'x' => out.push(0),
            b'f' => {
                let n = args.number(arg)? as f32;
                out.extend(if format.big_endian { n.to_be_bytes() } else { n.to_le_bytes() });
                arg += 1;
            }
            b'd' => {
                let n = args.number(arg)?;
                out.extend(if format.big_endian { n.to_be_bytes() } else { n.to_le_bytes() });
                arg += 1;
            }
            b'c' | b's' => {
                let text = args.text(arg)?;
                let size = if size == 0 { text.len() } else { size };
                let text = text.get(..size).ok_or_else(|| args.error(arg + 1, "string too short"))?;
                out.extend_from_slice(text);
                if kind == b's' {
                    out.push(0);
                }
                arg += 1;
            }
            _ => {
                let n = args.number(arg)?;
                let mut value = unsigned(n);
                let start = out.len();
                for _ in 0..size {
                    out.push(value as u8);
                    value >>= 8;
                }
                if format.big_endian {
                    out[start..].reverse();
                }
                arg += 1;
            }
        }
    }
    Ok([args.lua.create_string(out).map(Value::String)?].into_iter().collect())
}

fn unpack(args: &Args<'_>) -> mlua::Result<MultiValue> {
    let (text, data) = (args.text(0)?, args.text(1)?);
    // C converts a negative offset to a very large one.
    let start = truncated(args.number_or(2, 1.0)?) as usize;
    if start == 0 {
        return Err(args.error(2, "offset must be 1 or greater"));
    }
    let short = || args.error(1, "data string too short");
    let mut format = Format::new(args, &text);
    let mut at = start - 1;
    let mut values = MultiValue::new();
    while let Some(Field { kind, size, padding }) = format.next(at)? {
        at = at.checked_add(padding).ok_or_else(short)?;
        let mut bytes = data.get(at..).and_then(|rest| rest.get(..size)).ok_or_else(short)?;
        match kind {
            b'x' => {}
            b'f' | b'd' => {
                let mut le = [0; 8];
                le[..size].copy_from_slice(bytes);
                if format.big_endian {
                    le[..size].reverse();
                }
                let [a, b, c, d, ..] = le;
                let single = || f64::from(f32::from_le_bytes([a, b, c, d]));
                values.push_back(Value::Number(if kind == b'f' { single() } else { f64::from_le_bytes(le) }));
            }
            b'c' => {
                if size == 0 {
                    let previous = values.pop_back().unwrap_or(Value::Nil);
                    let Some(size) = args.lua.coerce_number(previous)? else {
                        return Err(Failure::library(args.lua, "format 'c0' needs a previous size"));
                    };
                    bytes = data.get(at..).and_then(|rest| rest.get(..size as usize)).ok_or_else(short)?;
                }
                values.push_back(Value::String(args.lua.create_string(bytes)?));
            }
            b's' => {
                let rest = &data[at..];
                let Some(len) = rest.iter().position(|&b| b == 0) else {
                    return Err(Failure::library(args.lua, "unfinished string in data"));
                };
                values.push_back(Value::String(args.lua.create_string(&rest[..len])?));
                at += len + 1;
            }
            _ => {
                let mut value = 0u64;
                let shift = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
                value = if format.big_endian {
                    bytes.iter().fold(value, shift)
                } else {
                    bytes.iter().rev().fold(value, shift)
                };
                let unused = 64 - 8 * size.min(8) as u32;
                let signed = kind.is_ascii_lowercase() && size > 0;
                let n = if signed { ((value << unused) as i64 >> unused) as f64 } else { value as f64 };
                values.push_back(Value::Number(n));
            }
        }
        if kind != b's' {
            at += bytes.len();
        }
    }
    values.push_back(Value::Number(at as f64 + 1.0));
    Ok(values)
}

fn size(args: &Args<'_>) -> mlua::Result<MultiValue> {
    let text = args.text(0)?;
    let mut format = Format::new(args, &text);
    let mut at = 0usize;
    while let Some(Field { kind, size, padding }) = format.next(at)? {
        match kind {
            b's' => return Err(args.error(0, "option 's' has no fixed size")),
            b'c' if size == 0 => return Err(args.error(0, "option 'c0' has no fixed size")),
            _ => at = at.saturating_add(padding).saturating_add(size),
        }
    }
    Ok([Value::Number(at as f64)].into_iter().collect())
}

/// Makes the table `struct`.
pub(super) fn library(lua: &Lua) -> mlua::Result<Table> {
    type Operation = fn(&Args<'_>) -> mlua::Result<MultiValue>;
    let table = lua.create_table()?;
    let operations: [(&'static str, Operation); 3] = [("pack", pack), ("unpack", unpack), ("size", size)];
    for (name, operation) in operations {
        let function = move |lua: &Lua, values: MultiValue| operation(&Args { lua, function: name, values });
        table.raw_set(name, lua.create_function(function)?)?;
    }
    Ok(table)
}
