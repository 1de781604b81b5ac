//! Finds the position of an error in a script, and shows the script an error that Rust raised.

use mlua::{Lua, Value};

use super::{
    context::{ScriptContext, Tail},
    error_table::{counted_table, reply_table},
    failure::{Failure, fault},
};
use crate::{
    generation::Feature,
    resp::{quotable, quoted},
};

impl Failure {
    /// Makes a library's error that begins with the position of the script's call.
    pub(super) fn library(lua: &Lua, text: impl std::fmt::Display) -> mlua::Error {
        let position = lua.inspect_stack(called_at(lua) + 1, |debug| {
            let (source, line) = (debug.source(), debug.current_line());
            match (source.short_src, line) {
                (Some(source), Some(line)) => format!("{source}:{line}: "),
                (Some(source), None) if source == TAIL_CALL => {
                    let Tail { chunk, line } = ScriptContext::of(lua).tail.get();
                    format!("{chunk}:{line}: ")
                }
                _ => String::new(),
            }
        });
        mlua::Error::external(Failure::Library(format!("{}{text}", position.unwrap_or_default())))
    }
}

/// Returns a text behind the place of the running function's caller, as Redis 6.2 has it in errors.
/// Functions of Lua that call it have no place.
pub(super) fn behind_caller(lua: &Lua, text: &str) -> String {
    let place = lua.inspect_stack(1, |debug| {
        let source = debug.source();
        let is_own = source.what == "C" || source.short_src.as_deref() == Some(SANDBOX);
        (!is_own).then(|| {
            let line = debug.current_line().map_or(-1, |line| line as i64);
            format!("{}: {line}", source.source.unwrap_or_default())
        })
    });
    format!("{}: {text}", place.flatten().unwrap_or_else(|| "=[C]: -1".into()))
}

/// Returns the stack level of the function that the script called, relative to the running Rust
/// function: more than 0 if the sandbox is in between.
fn called_at(lua: &Lua) -> usize {
    let is_sandbox = |debug: &mlua::debug::Debug<'_>| debug.source().short_src.as_deref() == Some(SANDBOX);
    (0..3).find(|level| lua.inspect_stack(level + 1, is_sandbox) != Some(true)).unwrap_or(0)
}

/// A script's call of a library function.
#[derive(Default)]
pub(super) struct Caller {
    /// The name that the script used, if any.
    pub(super) name: Option<String>,
    /// Set if it was a method of an object.
    pub(super) is_method: bool,
    /// Set for a tail call (`return f()`), which leaves no frame of the caller.
    pub(super) is_tail: bool,
}

impl Caller {
    /// Inspects the call of the running function.
    pub(super) fn of(lua: &Lua) -> Caller {
        let at = called_at(lua);
        let is_tail =
            lua.inspect_stack(at + 1, |debug| debug.source().short_src.as_deref() == Some(TAIL_CALL));
        let called = lua.inspect_stack(at, |debug| {
            let names = debug.names();
            let name = names.name.map(std::borrow::Cow::into_owned);
            (name.filter(|name| !name.is_empty()), names.name_what == Some("method"))
        });
        let (name, is_method) = called.unwrap_or_default();
        Caller { name, is_method, is_tail: is_tail.unwrap_or_default() }
    }
}

/// Chunk name of the sandbox, whose frames are not the script's.
pub(super) const SANDBOX: &str = "sandbox";

/// Lua's name for a frame that a tail call replaced. The sandbox's wrappers tail-call the functions
/// they wrap.
const TAIL_CALL: &str = "(tail call)";

/// `rust.explain(err)`: returns the value that a script sees for an error that Rust raised, and
/// true if the script must not catch it.
pub(super) fn explain(lua: &Lua, err: Value) -> mlua::Result<(Value, bool)> {
    let Value::Error(err) = err else { return Ok((err, false)) };
    let has_tables = ScriptContext::of(lua).generation.get().has(Feature::ErrorTables);
    Ok(match fault(&err) {
        Failure::Reply(text) if !has_tables => {
            let text = text.strip_prefix("ERR ").unwrap_or(&text);
            (Value::String(lua.create_string(quoted(text))?), false)
        }
        Failure::Called(text) if !has_tables => (Value::String(lua.create_string(quoted(&text))?), false),
        Failure::Reply(text) => (Value::Table(reply_table(lua, &text)?), false),
        Failure::Called(text) => (Value::Table(counted_table(lua, &text)?), false),
        Failure::Library(text) => (Value::String(lua.create_string(text)?), false),
        Failure::Killed => (Value::Nil, true),
    })
}

/// `rust.locate(err)`: the handler that runs at the position of the error. Returns a table with the
/// text and the position.
pub(super) fn locate(lua: &Lua, err: Value) -> mlua::Result<Value> {
    // Level 0 is this function. If level 1 is a C function, the script called it, one level up.
    let mut place = None;
    for level in 1..=8 {
        let found = lua.inspect_stack(level, |debug| {
            let source = debug.source();
            let own = source.what == "C" || matches!(source.short_src.as_deref(), Some(SANDBOX | TAIL_CALL));
            (!own).then(|| {
                let text = source.source.map(|source| source.into_owned()).unwrap_or_default();
                let short = source.short_src.map(|short| short.into_owned()).unwrap_or_default();
                (text, short, debug.current_line().unwrap_or_default())
            })
        });
        match found {
            Some(Some(found)) => {
                place = Some(found);
                break;
            }
            Some(None) => {}
            None => break,
        }
    }
    // `return load(...)` leaves no frame of the script: the sandbox's wrapper replaced it. Redis's
    // functions are C functions, which never replace a caller, so Redis still knows the line. Here,
    // use the line of the script's last `return`.
    let place = place.unwrap_or_else(|| {
        let Tail { chunk, line } = ScriptContext::of(lua).tail.get();
        (format!("@{chunk}"), chunk.to_owned(), line)
    });
    let has_tables = ScriptContext::of(lua).generation.get().has(Feature::ErrorTables);
    let table = match err {
        // The handler of Redis 6.2 joins the place and the error, and fails if that is no text.
        Value::Table(_) | Value::Nil | Value::Boolean(_) if !has_tables => {
            let kind = err.type_name();
            let why = format!("attempt to concatenate local 'err' (a {kind} value)");
            let table = reply_table(lua, &format!("ERR err_handler_def:8: {why}"))?;
            table.raw_set("source", "@err_handler_def")?;
            table.raw_set("line", "8")?;
            return Ok(Value::Table(table));
        }
        Value::Table(table) => table,
        Value::Error(err) => match fault(&err) {
            Failure::Called(text) if !has_tables => reply_table(lua, &format!("ERR {text}"))?,
            Failure::Reply(text) => reply_table(lua, &text)?,
            Failure::Called(text) => counted_table(lua, &text)?,
            Failure::Library(text) => reply_table(lua, &format!("ERR {text}"))?,
            Failure::Killed => reply_table(lua, ScriptContext::of(lua).killed_text())?,
        },
        other => {
            let mut text = match &other {
                Value::String(text) => quotable(&text.as_bytes()),
                other => other.to_string()?,
            };
            // The sandbox called the library function that it wraps; the mistake is the script's,
            // so give the script's position.
            if [SANDBOX, TAIL_CALL].iter().any(|own| text.starts_with(own))
                && let Some((_, rest)) = text.split_once(": ")
            {
                text = format!("{}:{}: {rest}", place.1, place.2);
            }
            reply_table(lua, &format!("ERR {text}"))?
        }
    };
    let (source, _, line) = place;
    table.raw_set("source", source)?;
    table.raw_set("line", line.to_string())?;
    Ok(Value::Table(table))
}
