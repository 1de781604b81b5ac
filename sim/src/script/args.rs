//! Arguments of library functions, with Lua's coercions and error texts.

use bytes::Bytes;
use mlua::{Lua, LuaString, MultiValue, Value};

use super::{failure::Failure, position::Caller};

/// Makes the error for argument `at` of `function`, counted from 0. Like Lua, uses the caller's
/// name for the function, and does not count the object of a method.
pub(super) fn bad_argument(lua: &Lua, function: &str, at: usize, why: impl std::fmt::Display) -> mlua::Error {
    let Caller { name, is_method, is_tail } = Caller::of(lua);
    let name = name.as_deref().unwrap_or(if is_tail { function } else { "?" });
    let text = match at + usize::from(!is_method) {
        0 => format!("calling '{name}' on bad self ({why})"),
        number => format!("bad argument #{number} to '{name}' ({why})"),
    };
    Failure::library(lua, text)
}

/// Arguments of one call of a library function.
pub(super) struct Args<'a> {
    pub(super) lua: &'a Lua,
    pub(super) function: &'static str,
    pub(super) values: MultiValue,
}

impl Args<'_> {
    /// Makes the error for the argument at `at`, counted from 0.
    pub(super) fn error(&self, at: usize, why: impl std::fmt::Display) -> mlua::Error {
        bad_argument(self.lua, self.function, at, why)
    }

    /// Makes the error for a missing argument, which one library numbers 0.
    pub(super) fn error_before_the_first(&self, why: &str) -> mlua::Error {
        let name = Caller::of(self.lua).name.unwrap_or_else(|| "?".into());
        Failure::library(self.lua, format!("bad argument #0 to '{name}' ({why})"))
    }

    fn expected(&self, at: usize, kind: &str) -> mlua::Error {
        let got = match self.values.get(at) {
            None => "no value",
            Some(Value::Integer(_)) => "number",
            Some(value) => value.type_name(),
        };
        self.error(at, format!("{kind} expected, got {got}"))
    }

    /// Returns a number; converts text that is one.
    pub(super) fn number(&self, at: usize) -> mlua::Result<f64> {
        let value = self.values.get(at).cloned().unwrap_or(Value::Nil);
        self.lua.coerce_number(value)?.ok_or_else(|| self.expected(at, "number"))
    }

    /// Returns a number, or `default` if the argument is missing.
    pub(super) fn number_or(&self, at: usize, default: f64) -> mlua::Result<f64> {
        match self.values.get(at) {
            None | Some(Value::Nil) => Ok(default),
            Some(_) => self.number(at),
        }
    }

    /// Returns text; converts a number to text.
    pub(super) fn string(&self, at: usize) -> mlua::Result<LuaString> {
        let value = self.values.get(at).cloned().unwrap_or(Value::Nil);
        self.lua.coerce_string(value)?.ok_or_else(|| self.expected(at, "string"))
    }

    /// Returns a copy of the text.
    pub(super) fn text(&self, at: usize) -> mlua::Result<Bytes> {
        Ok(Bytes::copy_from_slice(&self.string(at)?.as_bytes()))
    }

    /// Returns true if the argument exists and is neither nil nor false.
    pub(super) fn truth(&self, at: usize) -> bool {
        !matches!(self.values.get(at), None | Some(Value::Nil | Value::Boolean(false)))
    }
}
