//! Replies to Lua values and back, with Redis's truncations.
//!
//! Source: the conversion rules of "Redis Lua API reference" on redis.io, and the replies of `redis-server` 7.0.

use bytes::Bytes;
use mlua::{IntoLua, Lua, LuaString, Table, Value};

use crate::resp::{Protocol, Reply, format_double};

/// Replies nest at most so deep when a script returns them; tables can contain themselves.
const DEPTH_MAX: usize = 256;
/// And hold at most so many elements: tables that share tables describe more than memory holds.
const ELEMENTS_MAX: usize = 1 << 22;
const TOO_DEEP: Reply = Reply::Error(std::borrow::Cow::Borrowed("ERR reached lua stack limit"));

pub(super) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Bytes as a Lua string.
pub(super) struct Word<'a>(pub(super) &'a [u8]);

impl IntoLua for Word<'_> {
    fn into_lua(self, lua: &Lua) -> mlua::Result<Value> {
        lua.create_string(self.0).map(Value::String)
    }
}

/// An argument of `redis.call` as Redis sends it: strings as they are, numbers with all their digits.
pub(super) fn argument(value: &Value) -> Option<Bytes> {
    match value {
        Value::String(text) => Some(Bytes::copy_from_slice(&text.as_bytes())),
        // Lua has doubles only; beyond seventeen digits they are written as such.
        Value::Integer(n) if n.unsigned_abs() < 100_000_000_000_000_000 => Some(Bytes::from(n.to_string())),
        Value::Integer(n) => Some(Bytes::from(format_double(*n as f64))),
        // C prints the sign that 0/0 has on this processor family, and nothing else makes a NaN here.
        Value::Number(n) if n.is_nan() => {
            Some(Bytes::from_static(if n.is_sign_negative() { b"-nan" } else { b"nan" }))
        }
        Value::Number(n) => Some(Bytes::from(format_double(*n))),
        _ => None,
    }
}

/// A reply as a script sees it, by the protocol it chose with `redis.setresp`.
pub(super) fn to_lua(lua: &Lua, reply: Reply, protocol: Protocol) -> mlua::Result<Value> {
    let resp3 = protocol == Protocol::Resp3;
    let field = |name: &str, value: Value| -> mlua::Result<Value> {
        let table = lua.create_table_with_capacity(0, 1)?;
        table.raw_set(name, value)?;
        Ok(Value::Table(table))
    };
    Ok(match reply {
        Reply::Integer(n) => Value::Number(n as f64),
        Reply::Bulk(bytes) => Word(&bytes).into_lua(lua)?,
        Reply::Status(text) => field("ok", Word(text.as_bytes()).into_lua(lua)?)?,
        Reply::Error(text) => field("err", Word(text.as_bytes()).into_lua(lua)?)?,
        Reply::Null | Reply::NullArray if resp3 => Value::Nil,
        Reply::Null | Reply::NullArray | Reply::Silence => Value::Boolean(false),
        Reply::Array(items) | Reply::Push(items) | Reply::Several(items) => sequence(lua, items, protocol)?,
        Reply::Set(items) if resp3 => {
            let set = lua.create_table_with_capacity(0, items.len())?;
            for item in items {
                set.raw_set(to_lua(lua, item, protocol)?, true)?;
            }
            field("set", Value::Table(set))?
        }
        Reply::Set(items) => sequence(lua, items, protocol)?,
        Reply::Map(pairs) if resp3 => {
            let map = lua.create_table_with_capacity(0, pairs.len())?;
            for (key, value) in pairs {
                map.raw_set(to_lua(lua, key, protocol)?, to_lua(lua, value, protocol)?)?;
            }
            field("map", Value::Table(map))?
        }
        Reply::Pairs(pairs) if resp3 => {
            let pairs = pairs.into_iter().map(|(first, second)| Reply::Array(vec![first, second]));
            sequence(lua, pairs.collect(), protocol)?
        }
        Reply::Map(pairs) | Reply::Pairs(pairs) => {
            sequence(lua, pairs.into_iter().flat_map(|(key, value)| [key, value]).collect(), protocol)?
        }
        Reply::Double(n) if resp3 => field("double", Value::Number(n))?,
        Reply::Double(n) => Word(format_double(n).as_bytes()).into_lua(lua)?,
        Reply::Boolean(yes) if resp3 => Value::Boolean(yes),
        Reply::Boolean(yes) => Value::Number(f64::from(u8::from(yes))),
        Reply::Verbatim(format, text) if resp3 => {
            let verbatim = lua.create_table_with_capacity(0, 2)?;
            verbatim.raw_set("format", format)?;
            verbatim.raw_set("string", Word(&text))?;
            field("verbatim_string", Value::Table(verbatim))?
        }
        Reply::Verbatim(_, text) => Word(&text).into_lua(lua)?,
        Reply::BigNumber(digits) if resp3 => field("big_number", Word(&digits).into_lua(lua)?)?,
        Reply::BigNumber(digits) => Word(&digits).into_lua(lua)?,
    })
}

fn sequence(lua: &Lua, items: Vec<Reply>, protocol: Protocol) -> mlua::Result<Value> {
    let table = lua.create_table_with_capacity(items.len(), 0)?;
    for (at, item) in items.into_iter().enumerate() {
        table.raw_set(at + 1, to_lua(lua, item, protocol)?)?;
    }
    Ok(Value::Table(table))
}

/// What a script returned, as a reply. `protocol` is the one that the script chose: it decides what booleans become.
pub(super) fn to_reply(value: &Value, protocol: Protocol) -> mlua::Result<Reply> {
    Returned { protocol, elements: 0 }.reply(value, 0)
}

/// The conversion of one returned value.
struct Returned {
    protocol: Protocol,
    elements: usize,
}

impl Returned {
    fn reply(&mut self, value: &Value, depth: usize) -> mlua::Result<Reply> {
        self.elements += 1;
        Ok(match value {
            Value::String(text) => Reply::Bulk(bytes(text)),
            Value::Integer(n) => Reply::Integer(*n),
            Value::Number(n) => Reply::Integer(truncated(*n)),
            Value::Boolean(yes) if self.protocol == Protocol::Resp3 => Reply::Boolean(*yes),
            Value::Boolean(true) => Reply::Integer(1),
            Value::Table(_) if depth > DEPTH_MAX || self.elements > ELEMENTS_MAX => TOO_DEEP,
            Value::Table(table) => self.table(table, depth)?,
            _ => Reply::Null,
        })
    }

    fn table(&mut self, table: &Table, depth: usize) -> mlua::Result<Reply> {
        if let Some(text) = text_field(table, "err")? {
            return Ok(Reply::Error(lossy(&text).into()));
        }
        if let Some(text) = text_field(table, "ok")? {
            return Ok(Reply::Status(lossy(&text).into()));
        }
        if let Value::Integer(_) | Value::Number(_) = table.raw_get("double")? {
            return Ok(Reply::Double(table.raw_get("double")?));
        }
        if let Value::Table(map) = table.raw_get("map")? {
            let mut pairs = Vec::new();
            for pair in map.pairs::<Value, Value>() {
                let (key, value) = pair?;
                pairs.push((self.reply(&key, depth + 1)?, self.reply(&value, depth + 1)?));
            }
            return Ok(Reply::Map(pairs));
        }
        if let Value::Table(set) = table.raw_get("set")? {
            let mut items = Vec::new();
            for pair in set.pairs::<Value, Value>() {
                items.push(self.reply(&pair?.0, depth + 1)?);
            }
            return Ok(Reply::Set(items));
        }
        if let Some(digits) = text_field(table, "big_number")? {
            return Ok(Reply::BigNumber(digits));
        }
        if let Value::Table(verbatim) = table.raw_get("verbatim_string")?
            && let (Some(format), Some(text)) =
                (text_field(&verbatim, "format")?, text_field(&verbatim, "string")?)
        {
            return Ok(Reply::Verbatim(if &format[..] == b"mkd" { "mkd" } else { "txt" }, text));
        }
        let mut items = Vec::with_capacity(table.raw_len().min(1024));
        for at in 1.. {
            match table.raw_get::<Value>(at)? {
                Value::Nil => break,
                value => items.push(self.reply(&value, depth + 1)?),
            }
        }
        Ok(Reply::Array(items))
    }
}

fn bytes(text: &LuaString) -> Bytes {
    Bytes::copy_from_slice(&text.as_bytes())
}

/// A double as C casts it to a 64-bit integer on x86-64: whatever does not fit is the smallest integer.
fn truncated(n: f64) -> i64 {
    // Both bounds are doubles, so the comparison is exact.
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&n) { n as i64 } else { i64::MIN }
}

/// A field that holds text; Lua counts numbers as such.
pub(super) fn text_field(table: &Table, name: &str) -> mlua::Result<Option<Bytes>> {
    Ok(match table.raw_get(name)? {
        Value::String(text) => Some(bytes(&text)),
        value @ (Value::Integer(_) | Value::Number(_)) => Some(Bytes::from(value.to_string()?)),
        _ => None,
    })
}
