//! Replies to Lua values and back, with Redis's truncations.
//!
//! Source: the conversion rules of "Redis Lua API reference" on redis.io, and the replies of
//! `redis-server` 7.0.

use std::rc::Rc;

use bytes::Bytes;
use mlua::{IntoLua, Lua, LuaString, Table, Value};

use super::{
    context::ScriptContext,
    error_table::{counted_table, is_counted},
    word::Word,
};
use crate::{
    generation::Generation,
    resp::{Protocol, Reply, format_double, quotable, quoted, short_double},
    script::ScriptErrors,
};

/// Number of slots of Lua's stack for converting a script's return value; Redis's interpreter has
/// 8,000. An array takes one slot, a map or a set three, and a key of a map one more. The limit
/// also ends tables that contain themselves.
const PLACES_MAX: usize = 7_995;
/// A reply is a tree in memory up to this depth; a deeper part is encoded already. Code that
/// recurses into the tree uses the process's stack, which has less room.
const DEPTH_MAX: usize = 256;
/// Maximum number of elements of a reply: tables that share tables can describe more than fits in
/// memory.
const ELEMENTS_MAX: usize = 1 << 23;

pub(super) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Converts an argument of `redis.call` like Redis: strings as they are, numbers with all their
/// digits, which are as few as possible if `has_short`.
pub(super) fn argument(value: &Value, has_short: bool) -> Option<Bytes> {
    match value {
        Value::String(text) => Some(Bytes::copy_from_slice(&text.as_bytes())),
        // Lua has only doubles; beyond seventeen digits, format the number as a double.
        Value::Integer(n) if n.unsigned_abs() < 100_000_000_000_000_000 => Some(Bytes::from(n.to_string())),
        Value::Integer(n) if has_short => Some(Bytes::from(short_double(*n as f64))),
        Value::Integer(n) => Some(Bytes::from(format_double(*n as f64))),
        // C prints the sign of a NaN. Here only 0/0 makes one, with the sign of this processor
        // family.
        Value::Number(n) if n.is_nan() => {
            Some(Bytes::from_static(if n.is_sign_negative() { b"-nan" } else { b"nan" }))
        }
        // The sign of zero is lost with that of other whole numbers.
        Value::Number(n) if has_short && *n == 0.0 => Some(Bytes::from_static(b"0")),
        Value::Number(n) if has_short => Some(Bytes::from(short_double(*n))),
        Value::Number(n) => Some(Bytes::from(format_double(*n))),
        _ => None,
    }
}

/// Converts a reply to the value that a script sees, by the protocol it chose with `redis.setresp`.
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
        // Only EXEC makes encoded replies, and no script calls it.
        Reply::Written(bytes) => Word(&bytes).into_lua(lua)?,
        Reply::Status(text) => field("ok", Word(&quoted(&text)).into_lua(lua)?)?,
        Reply::Error(text) => Value::Table(counted_table(lua, &text)?),
        // Scripts do not see attributes.
        Reply::Several(mut replies) if matches!(replies[..], [Reply::Attribute(_), _]) => {
            to_lua(lua, replies.pop().unwrap_or(Reply::Silence), protocol)?
        }
        Reply::Null | Reply::NullArray if resp3 => Value::Nil,
        Reply::Null | Reply::NullArray | Reply::Silence | Reply::Attribute(_) => Value::Boolean(false),
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
        Reply::Decimal(digits) if resp3 => {
            let number = std::str::from_utf8(&digits).ok().and_then(|digits| digits.parse().ok());
            field("double", Value::Number(number.unwrap_or(f64::NAN)))?
        }
        Reply::Decimal(digits) => Word(&digits).into_lua(lua)?,
        Reply::Boolean(yes) if resp3 => Value::Boolean(yes),
        Reply::Boolean(yes) => Value::Number(f64::from(u8::from(yes))),
        Reply::Verbatim(format, text) if resp3 => {
            let verbatim = lua.create_table_with_capacity(0, 2)?;
            verbatim.raw_set("format", Word(&format))?;
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

/// Converts a script's return value to a reply; returns the errors in it as well. `protocol` is the
/// one that the script chose: it decides how to convert booleans. `client_protocol` is the protocol
/// of the client that gets the reply.
pub(super) fn to_reply(
    lua: &Lua,
    value: &Value,
    protocol: Protocol,
    client_protocol: Protocol,
) -> mlua::Result<(Reply, ScriptErrors)> {
    let context = lua.app_data_ref::<Rc<ScriptContext>>();
    let is_old = context.is_some_and(|context| context.generation.get() == Generation::Redis62);
    let mut course = Course { room: ELEMENTS_MAX, errors: ScriptErrors::default(), is_old };
    let mut stack = Stack { open: Vec::new(), parked: None };
    let mut converted = begin(lua, value, protocol, 0, &mut course)?;
    loop {
        // A complete reply goes into the innermost open table. A table that begins becomes the
        // innermost open table.
        match converted {
            Converted::Whole(reply) => match stack.open.last_mut() {
                None => return Ok((reply, course.errors)),
                Some(around) => around.done.push(reply),
            },
            Converted::Begun(kind, table) => stack.push(lua, kind, table)?,
        }
        let places = stack.places();
        converted = match stack.next()? {
            Some(value) => begin(lua, &value, protocol, places, &mut course)?,
            None => {
                let whole = stack.pop()?;
                let deep = !stack.open.is_empty() && stack.open.len().is_multiple_of(DEPTH_MAX);
                Converted::Whole(if deep { whole.written(client_protocol) } else { whole })
            }
        };
    }
}

/// The tables being converted, each inside the one before. This is a separate stack, because a
/// script may nest tables deeper than the process's stack allows.
struct Stack {
    open: Vec<Open>,
    /// Holds the outer tables while a deep inner one is converted, because Rust can hold only a few
    /// thousand Lua values at once. `None` until needed.
    parked: Option<Table>,
}

/// A table being converted.
struct Open {
    kind: Kind,
    /// The table with elements from 1 on; `None` while it is parked.
    table: Option<Table>,
    /// Number of elements taken.
    taken: usize,
    done: Vec<Reply>,
    /// Slots of Lua's stack in use when the table begins.
    places: usize,
}

#[derive(Clone, Copy)]
enum Kind {
    Array,
    /// Keys and values, alternating.
    Map,
    Set,
}

enum Converted {
    Whole(Reply),
    Begun(Kind, Table),
}

impl Stack {
    /// From this depth on, Rust holds only the innermost table.
    const PARKED_FROM: usize = 100;

    /// Returns the slots of Lua's stack in use when the next element begins.
    fn places(&self) -> usize {
        self.open.last().map_or(0, Open::places)
    }

    fn push(&mut self, lua: &Lua, kind: Kind, table: Table) -> mlua::Result<()> {
        let (depth, places) = (self.open.len(), self.places());
        if let Some(around) = self.open.last_mut().filter(|_| depth > Self::PARKED_FROM) {
            let parked = match self.parked.take() {
                Some(parked) => parked,
                None => lua.create_table()?,
            };
            parked.raw_set(depth, around.table.take())?;
            self.parked = Some(parked);
        }
        self.open.push(Open { kind, table: Some(table), taken: 0, done: Vec::new(), places });
        Ok(())
    }

    /// Takes the next element of the innermost table. The first nil ends the table.
    fn next(&mut self) -> mlua::Result<Option<Value>> {
        let Some(inner) = self.open.last_mut() else { return Ok(None) };
        let Some(table) = &inner.table else { return Ok(None) };
        inner.taken += 1;
        Ok(Some(table.raw_get::<Value>(inner.taken)?).filter(|value| !value.is_nil()))
    }

    /// Removes the innermost table, which is complete, and returns its reply.
    fn pop(&mut self) -> mlua::Result<Reply> {
        let whole = self.open.pop().expect("one is open until the last is whole").close();
        let depth = self.open.len();
        if let (Some(parked), Some(around)) = (&self.parked, self.open.last_mut())
            && around.table.is_none()
        {
            around.table = parked.raw_get(depth)?;
        }
        Ok(whole)
    }
}

impl Open {
    fn places(&self) -> usize {
        self.places
            + match self.kind {
                Kind::Array => 1,
                Kind::Map if self.done.len().is_multiple_of(2) => 4,
                Kind::Map | Kind::Set => 3,
            }
    }

    fn close(self) -> Reply {
        match self.kind {
            Kind::Array => Reply::Array(self.done),
            Kind::Set => Reply::Set(self.done),
            Kind::Map => {
                let mut done = self.done.into_iter();
                let mut pairs = Vec::new();
                while let (Some(key), Some(value)) = (done.next(), done.next()) {
                    pairs.push((key, value));
                }
                Reply::Map(pairs)
            }
        }
    }
}

/// Begins to convert a value. Tables count against the limit of the whole conversion.
fn begin(
    lua: &Lua,
    value: &Value,
    protocol: Protocol,
    places: usize,
    course: &mut Course,
) -> mlua::Result<Converted> {
    Ok(Converted::Whole(match value {
        _ if places >= PLACES_MAX => course.too_deep(),
        Value::String(text) => bytes(text).into(),
        Value::Integer(n) => Reply::Integer(*n),
        Value::Number(n) => Reply::Integer(truncated(*n)),
        Value::Boolean(yes) if protocol == Protocol::Resp3 => Reply::Boolean(*yes),
        Value::Boolean(true) => Reply::Integer(1),
        Value::Table(table) => return begin_table(lua, table, course),
        _ => Reply::Null,
    }))
}

/// Remaining limit of a conversion, and the errors found so far.
struct Course {
    /// Number of elements that may still be made.
    room: usize,
    errors: ScriptErrors,
    /// Set on Redis 6.2, where scripts cannot reply with big numbers and verbatim strings.
    is_old: bool,
}

impl Course {
    /// Subtracts elements from the limit; returns true if it is not used up.
    fn spend(&mut self, elements: usize) -> bool {
        self.room = self.room.saturating_sub(elements);
        self.room > 0
    }

    fn error(&mut self, text: String, is_counted: bool) -> Reply {
        self.errors.note(&text, is_counted);
        Reply::Error(text.into())
    }

    fn too_deep(&mut self) -> Reply {
        self.error("ERR reached lua stack limit".into(), false)
    }
}

fn begin_table(lua: &Lua, table: &Table, course: &mut Course) -> mlua::Result<Converted> {
    if let Value::String(text) = table.raw_get("err")? {
        let text = quotable(until_zero(&text.as_bytes()));
        return Ok(Converted::Whole(course.error(text, is_counted(table)?)));
    }
    if let Value::String(text) = table.raw_get("ok")? {
        return Ok(Converted::Whole(Reply::Status(quotable(until_zero(&text.as_bytes())).into())));
    }
    if let Value::Integer(_) | Value::Number(_) = table.raw_get("double")? {
        return Ok(Converted::Whole(Reply::Double(table.raw_get("double")?)));
    }
    if let Value::String(digits) = table.raw_get("big_number")?
        && !course.is_old
    {
        // The digits must stay on one line on the wire.
        let digits = digits.as_bytes();
        let line = digits.iter().map(|&b| if b == b'\r' || b == b'\n' { b' ' } else { b });
        return Ok(Converted::Whole(Reply::BigNumber(line.collect())));
    }
    if let Value::Table(verbatim) = table.raw_get("verbatim_string")?
        && !course.is_old
        && let Value::String(text) = verbatim.raw_get("string")?
        && let Value::String(format) = verbatim.raw_get("format")?
    {
        // A format has three letters: pad a shorter one, cut a longer one.
        let mut letters = [b' '; 3];
        letters.iter_mut().zip(format.as_bytes().iter()).for_each(|(letter, &given)| *letter = given);
        return Ok(Converted::Whole(Reply::Verbatim(letters, bytes(&text))));
    }
    if let Value::Table(map) = table.raw_get("map")? {
        return flat(lua, &map, Kind::Map, course);
    }
    if let Value::Table(set) = table.raw_get("set")? {
        return flat(lua, &set, Kind::Set, course);
    }
    Ok(if course.spend(table.raw_len() + 1) {
        Converted::Begun(Kind::Array, table.clone())
    } else {
        Converted::Whole(course.too_deep())
    })
}

/// Copies the keys of a table, for a map each followed by its value, into a new sequence.
fn flat(lua: &Lua, table: &Table, kind: Kind, course: &mut Course) -> mlua::Result<Converted> {
    let elements = lua.create_table()?;
    let mut len = 0;
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair?;
        if !course.spend(2) {
            return Ok(Converted::Whole(course.too_deep()));
        }
        len += 1;
        elements.raw_set(len, key)?;
        if let Kind::Map = kind {
            len += 1;
            elements.raw_set(len, value)?;
        }
    }
    Ok(Converted::Begun(kind, elements))
}

/// Cuts text at its first zero byte, as C does.
fn until_zero(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn bytes(text: &LuaString) -> Bytes {
    Bytes::copy_from_slice(&text.as_bytes())
}

/// Converts a double like a C cast to a 64-bit integer on x86-64: a value that does not fit becomes
/// the smallest integer.
pub(super) fn truncated(n: f64) -> i64 {
    // Both bounds are doubles, so the comparison is exact.
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&n) { n as i64 } else { i64::MIN }
}

/// Returns a text field. Like Lua, counts a number as text.
pub(super) fn text_field(table: &Table, name: &str) -> mlua::Result<Option<Bytes>> {
    Ok(match table.raw_get(name)? {
        Value::String(text) => Some(bytes(&text)),
        value @ (Value::Integer(_) | Value::Number(_)) => Some(Bytes::from(value.to_string()?)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns only the reply, for a client with the protocol that the script chose.
    fn converted(lua: &Lua, value: &Value, protocol: Protocol) -> Reply {
        to_reply(lua, value, protocol, protocol).expect("there is memory").0
    }

    /// Replies that a script passes on unchanged: no nulls, which end arrays, and no integers
    /// beyond a double's precision.
    fn kept() -> impl Strategy<Value = Reply> {
        let leaf = prop_oneof![
            (-(1i64 << 53)..=1 << 53).prop_map(Reply::Integer),
            proptest::collection::vec(any::<u8>(), 0..20).prop_map(Reply::bulk),
            "[a-zA-Z ]{0,12}".prop_map(|text| Reply::Status(text.into())),
            "[A-Z]{1,6} [a-z ]{0,12}".prop_map(|text| Reply::Error(text.into())),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| proptest::collection::vec(inner, 0..6).prop_map(Reply::Array))
    }

    proptest! {
        #[test]
        fn what_a_script_passes_on_is_what_it_got(reply in kept()) {
            let lua = Lua::new();
            for protocol in [Protocol::Resp2, Protocol::Resp3] {
                let value = to_lua(&lua, reply.clone(), protocol).expect("there is memory");
                prop_assert_eq!(&converted(&lua, &value, protocol), &reply);
            }
        }

        #[test]
        fn a_number_loses_its_fraction_and_nothing_else(n in -1e15f64..1e15) {
            let reply = converted(&Lua::new(), &Value::Number(n), Protocol::Resp2);
            prop_assert_eq!(reply, Reply::Integer(n.trunc() as i64));
        }

        #[test]
        fn an_argument_keeps_every_digit(n in any::<f64>().prop_filter("a number", |n| !n.is_nan())) {
            for has_short in [false, true] {
                let text = argument(&Value::Number(n), has_short).expect("numbers are arguments");
                let text = std::str::from_utf8(&text).expect("in ASCII");
                prop_assert_eq!(text.parse::<f64>().expect("that read back"), n);
            }
        }

        #[test]
        fn an_array_ends_at_its_first_null(before in 0usize..5, after in 0usize..5) {
            let lua = Lua::new();
            let table = lua.create_table().expect("there is memory");
            for at in (1..=before).chain(before + 2..before + 2 + after) {
                table.raw_set(at, at).expect("there is memory");
            }
            let reply = converted(&lua, &Value::Table(table), Protocol::Resp2);
            let expected = (1..=before).map(|at| Reply::Integer(at as i64)).collect();
            prop_assert_eq!(reply, Reply::Array(expected));
        }
    }

    #[test]
    fn a_table_that_holds_itself_ends_in_an_error_and_one_that_shares_tables_ends_at_all() {
        let lua = Lua::new();
        let run = |body: &str| converted(&lua, &lua.load(body).eval().expect("valid Lua"), Protocol::Resp2);
        let itself = run("local t = {} t[1] = t return t");
        let mut bytes = Vec::new();
        itself.encode(Protocol::Resp2, &mut bytes);
        // `redis-server` replies with the same number of levels.
        let text = String::from_utf8(bytes).expect("only digits and letters");
        assert_eq!(text, format!("{}-ERR reached lua stack limit\r\n", "*1\r\n".repeat(7_995)));
        run("local t = {1} for _ = 1, 30 do t = {t, t} end return t");
        // Rust can hold only a few thousand Lua values at once.
        for table in ["{map = t}", "{set = t}", "t"] {
            let body = format!("local t = {{}} for n = 1, 10000 do t[n] = {{'x' .. n}} end return {table}");
            let mut bytes = Vec::new();
            run(&body).encode(Protocol::Resp3, &mut bytes);
            assert!(bytes.starts_with(match table {
                "{map = t}" => b"%10000",
                "{set = t}" => b"~10000",
                _ => b"*10000",
            }));
        }
    }
}
