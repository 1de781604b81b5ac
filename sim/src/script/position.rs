//! Where in a script an error happened, and how a script sees an error that Rust raised.

use mlua::{Lua, Value};

use super::{
    desk::{Desk, Tail},
    error_table::{counted_table, reply_table},
    failure::{Failure, KILLED, fault},
};
use crate::resp::quotable;

impl Failure {
    /// A library's error, with the position of the script's call before it.
    pub(super) fn library(lua: &Lua, text: impl std::fmt::Display) -> mlua::Error {
        let position = lua.inspect_stack(called_at(lua) + 1, |debug| {
            let (source, line) = (debug.source(), debug.current_line());
            match (source.short_src, line) {
                (Some(source), Some(line)) => format!("{source}:{line}: "),
                (Some(source), None) if source == TAIL_CALL => {
                    let Tail { chunk, line } = Desk::of(lua).tail.get();
                    format!("{chunk}:{line}: ")
                }
                _ => String::new(),
            }
        });
        mlua::Error::external(Failure::Library(format!("{}{text}", position.unwrap_or_default())))
    }
}

/// The level of the function that a script called, from the function of ours that runs: more than 0
/// where the sandbox stands between.
fn called_at(lua: &Lua) -> usize {
    let is_sandbox = |debug: &mlua::debug::Debug<'_>| debug.source().short_src.as_deref() == Some(SANDBOX);
    (0..3).find(|level| lua.inspect_stack(level + 1, is_sandbox) != Some(true)).unwrap_or(0)
}

/// How a script called a function of a library.
#[derive(Default)]
pub(super) struct Caller {
    /// The name it used, where there is one.
    pub(super) name: Option<String>,
    /// Whether it was a method of an object.
    pub(super) is_method: bool,
    /// Whether the caller has ended with it (`return f()`), which leaves nothing to see of the
    /// call.
    pub(super) is_tail: bool,
}

impl Caller {
    /// The call of the function that runs.
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

/// The chunk name of the sandbox, whose frames are not the script's.
pub(super) const SANDBOX: &str = "sandbox";

/// What Lua calls the frames that tail calls have replaced, as the sandbox's wrappers are by what
/// they wrap.
const TAIL_CALL: &str = "(tail call)";

/// `rust.explain(err)`: what a script is to see of an error that Rust raised, and whether it must
/// not be caught.
pub(super) fn explain(lua: &Lua, err: Value) -> mlua::Result<(Value, bool)> {
    let Value::Error(err) = err else { return Ok((err, false)) };
    Ok(match fault(&err) {
        Failure::Reply(text) => (Value::Table(reply_table(lua, &text)?), false),
        Failure::Called(text) => (Value::Table(counted_table(lua, &text)?), false),
        Failure::Library(text) => (Value::String(lua.create_string(text)?), false),
        Failure::Killed => (Value::Nil, true),
    })
}

/// `rust.locate(err)`: the handler that runs where the error happened. Answers a table with the
/// text and the place.
pub(super) fn locate(lua: &Lua, err: Value) -> mlua::Result<Value> {
    // Level 0 is this function. A C function above it was called by the script, one level up.
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
    // `return load(...)` leaves no frame of the script: the wrapper in the sandbox has taken its
    // place. Redis's functions are C, which Lua never does that to, so it still knows the line;
    // here it is the last one that such a call can stand on.
    let place = place.unwrap_or_else(|| {
        let Tail { chunk, line } = Desk::of(lua).tail.get();
        (format!("@{chunk}"), chunk.to_owned(), line)
    });
    let table = match err {
        Value::Table(table) => table,
        Value::Error(err) => match fault(&err) {
            Failure::Reply(text) => reply_table(lua, &text)?,
            Failure::Called(text) => counted_table(lua, &text)?,
            Failure::Library(text) => reply_table(lua, &format!("ERR {text}"))?,
            Failure::Killed => reply_table(lua, KILLED)?,
        },
        other => {
            let mut text = match &other {
                Value::String(text) => quotable(&text.as_bytes()),
                other => other.to_string()?,
            };
            // A library function that the sandbox wraps was called by the sandbox; the mistake is
            // the script's.
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
