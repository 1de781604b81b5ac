//! The library `cjson`: reads and writes JSON like lua-cjson 2.1, as its manual describes.

use std::{cell::RefCell, rc::Rc};

use mlua::{Function, Lua, MultiValue, Table, Value};

use super::{
    args::Args,
    context::ScriptContext,
    convert::{lossy, truncated},
    failure::Failure,
    json_decode::decode,
    json_settings::{Invalid, Settings, allowed},
};

type Shared = Rc<RefCell<Settings>>;

/// A table being written, with the position reached.
struct Open {
    table: Table,
    place: Place,
}

enum Place {
    Array { at: i64, len: i64 },
    Object { key: Value },
}

struct Encoder<'a> {
    lua: &'a Lua,
    /// Lua's `next`.
    next: &'a Function,
    settings: &'a Settings,
    out: Vec<u8>,
}

impl Encoder<'_> {
    fn error(&self, text: impl std::fmt::Display) -> mlua::Error {
        Failure::library(self.lua, text)
    }

    /// Writes a value with everything in it. The tables being written are on a separate stack,
    /// because a script may nest them deeper than the process's stack allows.
    fn document(&mut self, value: &Value) -> mlua::Result<()> {
        let (context, mut open) = (ScriptContext::of(self.lua), Vec::<Open>::new());
        if let Some(table) = self.scalar(value)? {
            self.begin(&mut open, table)?;
        }
        while let Some(Open { table, place }) = open.last_mut() {
            context.charge(1)?;
            if self.out.len() > OUTPUT_MAX {
                return Err(self.error("not enough memory"));
            }
            let (value, first) = match place {
                Place::Array { at, len } if at == len => {
                    self.out.push(b']');
                    open.pop();
                    continue;
                }
                Place::Array { at, .. } => {
                    *at += 1;
                    (table.raw_get(*at)?, *at == 1)
                }
                Place::Object { key } => {
                    let first = key.is_nil();
                    let (next, value): (Value, Value) = self.next.call((&*table, &*key))?;
                    if next.is_nil() {
                        self.out.push(b'}');
                        open.pop();
                        continue;
                    }
                    *key = next;
                    (value, first)
                }
            };
            if !first {
                self.out.push(b',');
            }
            if let Place::Object { key } = place {
                self.key(key)?;
            }
            if let Some(table) = self.scalar(&value)? {
                self.begin(&mut open, table)?;
            }
        }
        Ok(())
    }

    /// Writes a value that is not a table; returns a table unwritten.
    fn scalar(&mut self, value: &Value) -> mlua::Result<Option<Table>> {
        match value {
            Value::String(text) => self.string(&text.as_bytes()),
            Value::Integer(n) => self.number(*n as f64)?,
            Value::Number(n) => self.number(*n)?,
            Value::Boolean(yes) => self.out.extend_from_slice(if *yes { b"true" } else { b"false" }),
            Value::Nil => self.out.extend_from_slice(b"null"),
            Value::LightUserData(null) if null.0.is_null() => self.out.extend_from_slice(b"null"),
            Value::Table(table) => return Ok(Some(table.clone())),
            other => {
                let kind = other.type_name();
                return Err(self.error(format!("Cannot serialise {kind}: type not supported")));
            }
        }
        Ok(None)
    }

    fn key(&mut self, key: &Value) -> mlua::Result<()> {
        match key {
            Value::String(text) => self.string(&text.as_bytes()),
            Value::Integer(_) | Value::Number(_) => {
                self.out.push(b'"');
                self.scalar(key)?;
                self.out.push(b'"');
            }
            other => {
                let kind = other.type_name();
                let text = format!("Cannot serialise {kind}: table key must be a number or string");
                return Err(self.error(text));
            }
        }
        self.out.push(b':');
        Ok(())
    }

    fn begin(&mut self, open: &mut Vec<Open>, table: Table) -> mlua::Result<()> {
        let depth = open.len() + 1;
        if depth > allowed(self.settings.encode_depth_max) {
            return Err(self.error(format!("Cannot serialise, excessive nesting ({depth})")));
        }
        let place = match self.array_len(&table)? {
            Some(len) => Place::Array { at: 0, len },
            None => Place::Object { key: Value::Nil },
        };
        self.out.push(if let Place::Array { .. } = place { b'[' } else { b'{' });
        open.push(Open { table, place });
        Ok(())
    }

    fn number(&mut self, n: f64) -> mlua::Result<()> {
        if !n.is_finite() {
            match self.settings.encode_invalid {
                Invalid::Refused => {
                    return Err(self.error("Cannot serialise number: must not be NaN or Inf"));
                }
                Invalid::Null => {
                    self.out.extend_from_slice(b"null");
                    return Ok(());
                }
                Invalid::Written => {}
            }
        }
        self.out.extend_from_slice(general(n, self.settings.precision).as_bytes());
        Ok(())
    }

    fn string(&mut self, text: &[u8]) {
        self.out.push(b'"');
        for &byte in text {
            let short = match byte {
                b'"' | b'\\' | b'/' => byte,
                8 => b'b',
                9 => b't',
                10 => b'n',
                12 => b'f',
                13 => b'r',
                0..0x20 | 0x7f => {
                    self.out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
                    continue;
                }
                _ => {
                    self.out.push(byte);
                    continue;
                }
            };
            self.out.extend_from_slice(&[b'\\', short]);
        }
        self.out.push(b'"');
    }

    /// Returns the length of a table that is an array; `None` for an object.
    fn array_len(&self, table: &Table) -> mlua::Result<Option<i64>> {
        let (mut max, mut items) = (0i64, 0i64);
        for pair in table.pairs::<Value, Value>() {
            match pair?.0 {
                Value::Integer(n) if n > 0 => (max, items) = (max.max(n), items + 1),
                _ => return Ok(None),
            }
        }
        let settings = self.settings;
        let sparse = settings.sparse_ratio > 0
            && max > items.saturating_mul(settings.sparse_ratio.into())
            && max > settings.sparse_safe.into();
        if sparse && !settings.sparse_convert {
            return Err(self.error("Cannot serialise table: excessively sparse array"));
        }
        Ok((!sparse && max > 0).then_some(max))
    }
}

/// Maximum bytes that one call writes: a sparse array can have a length that exceeds all memory.
const OUTPUT_MAX: usize = 64 << 20;

/// Formats a number like C's `%.{precision}g`.
fn general(n: f64, precision: usize) -> String {
    if n.is_nan() {
        return if n.is_sign_negative() { "-nan".into() } else { "nan".into() };
    }
    if n.is_infinite() {
        return if n > 0.0 { "inf".into() } else { "-inf".into() };
    }
    let scientific = format!("{n:.*e}", precision - 1);
    let (mantissa, exponent) = scientific.split_once('e').expect("`{:e}` writes an exponent");
    let exponent: i32 = exponent.parse().expect("and a decimal one");
    let trimmed = |text: &str| -> String {
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text.into() }
    };
    if exponent < -4 || exponent >= precision as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs());
    }
    let decimals = (precision as i32 - 1 - exponent) as usize;
    trimmed(&format!("{n:.decimals$}"))
}

fn encode(args: &Args<'_>, settings: &Settings, next: &Function) -> mlua::Result<Value> {
    if args.values.len() != 1 {
        return Err(args.error(0, "expected 1 argument"));
    }
    let mut encoder = Encoder { lua: args.lua, next, settings, out: Vec::new() };
    encoder.document(&args.values[0])?;
    args.lua.create_string(encoder.out).map(Value::String)
}

/// Returns a new value for a setting, if given: a whole number within bounds. Like C, keeps its
/// lower 32 bits.
fn whole(args: &Args<'_>, at: usize, min: i32, max: i32) -> mlua::Result<Option<i32>> {
    if matches!(args.values.get(at), None | Some(Value::Nil)) {
        return Ok(None);
    }
    let n = truncated(args.number(at)?) as i32;
    if !(min..=max).contains(&n) {
        // The error always names the first argument.
        return Err(args.error(0, format!("expected integer between {min} and {max}")));
    }
    Ok(Some(n))
}

/// Returns the index of the given option. A boolean selects the first or the second.
fn option(args: &Args<'_>, at: usize, options: &[&str]) -> mlua::Result<Option<usize>> {
    match args.values.get(at) {
        None | Some(Value::Nil) => Ok(None),
        Some(Value::Boolean(yes)) => Ok(Some(usize::from(*yes))),
        Some(_) => {
            let text = args.text(at)?;
            let option = options.iter().position(|option| option.as_bytes() == text);
            let wrong = || args.error(at, format!("invalid option '{}'", lossy(&text)));
            option.map(Some).ok_or_else(wrong)
        }
    }
}

/// The words for false and true.
const OFF_ON: [&str; 2] = ["off", "on"];

fn one(value: impl Into<Value>) -> MultiValue {
    [value.into()].into_iter().collect()
}

fn count(n: i32) -> Value {
    Value::Number(n.into())
}

type Setter = fn(&Args<'_>, &mut Settings) -> mlua::Result<MultiValue>;

/// The functions that change settings, each with its maximum number of arguments.
const SETTERS: [(&str, usize, Setter); 7] = [
    ("encode_sparse_array", 3, |args, settings| {
        if let Some(convert) = option(args, 0, &OFF_ON)? {
            settings.sparse_convert = convert == 1;
        }
        if let Some(ratio) = whole(args, 1, 0, i32::MAX)? {
            settings.sparse_ratio = ratio;
        }
        if let Some(safe) = whole(args, 2, 0, i32::MAX)? {
            settings.sparse_safe = safe;
        }
        let numbers = [settings.sparse_ratio, settings.sparse_safe].map(count);
        Ok([Value::Boolean(settings.sparse_convert)].into_iter().chain(numbers).collect())
    }),
    ("encode_max_depth", 1, |args, settings| {
        if let Some(depth) = whole(args, 0, 1, i32::MAX)? {
            settings.encode_depth_max = depth;
        }
        Ok(one(count(settings.encode_depth_max)))
    }),
    ("decode_max_depth", 1, |args, settings| {
        if let Some(depth) = whole(args, 0, 1, i32::MAX)? {
            settings.decode_depth_max = depth;
        }
        Ok(one(count(settings.decode_depth_max)))
    }),
    ("encode_number_precision", 1, |args, settings| {
        if let Some(precision) = whole(args, 0, 1, 14)? {
            settings.precision = precision as usize;
        }
        Ok(one(Value::Number(settings.precision as f64)))
    }),
    ("encode_keep_buffer", 1, |args, settings| {
        if let Some(keep) = option(args, 0, &OFF_ON)? {
            settings.keep_buffer = keep == 1;
        }
        Ok(one(Value::Boolean(settings.keep_buffer)))
    }),
    ("encode_invalid_numbers", 1, |args, settings| {
        if let Some(option) = option(args, 0, &["off", "on", "null"])? {
            settings.encode_invalid = [Invalid::Refused, Invalid::Written, Invalid::Null][option];
        }
        match settings.encode_invalid {
            Invalid::Null => Ok(one(Value::String(args.lua.create_string("null")?))),
            other => Ok(one(Value::Boolean(other == Invalid::Written))),
        }
    }),
    ("decode_invalid_numbers", 1, |args, settings| {
        if let Some(accept) = option(args, 0, &OFF_ON)? {
            settings.decode_invalid = accept == 1;
        }
        Ok(one(Value::Boolean(settings.decode_invalid)))
    }),
];

/// Makes the table `cjson`, with its own settings.
pub(super) fn library(lua: &Lua, next: &Function) -> mlua::Result<Table> {
    let settings = Shared::default();
    let table = lua.create_table()?;
    let (of, through) = (Rc::clone(&settings), next.clone());
    let function = move |lua: &Lua, values: MultiValue| {
        encode(&Args { lua, function: "encode", values }, &of.borrow(), &through)
    };
    table.raw_set("encode", lua.create_function(function)?)?;
    let of = Rc::clone(&settings);
    let function =
        move |lua: &Lua, values: MultiValue| decode(&Args { lua, function: "decode", values }, &of.borrow());
    table.raw_set("decode", lua.create_function(function)?)?;
    for (name, most, setter) in SETTERS {
        let of = Rc::clone(&settings);
        let function = move |lua: &Lua, values: MultiValue| {
            let args = Args { lua, function: name, values };
            if args.values.len() > most {
                return Err(args.error(most, "found too many arguments"));
            }
            setter(&args, &mut of.borrow_mut())
        };
        table.raw_set(name, lua.create_function(function)?)?;
    }
    let next = next.clone();
    table.raw_set("new", lua.create_function(move |lua, ()| library(lua, &next))?)?;
    table.raw_set("null", Value::NULL)?;
    table.raw_set("_NAME", "cjson")?;
    table.raw_set("_VERSION", "2.1.0")?;
    Ok(table)
}
