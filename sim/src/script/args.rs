//! Arguments of library functions, with Lua's coercions and complaints.

use bytes::Bytes;
use mlua::{Lua, MultiValue, Value};

use super::failure::Failure;

/// The arguments of one call of a library function.
pub(super) struct Args<'a> {
    pub(super) lua: &'a Lua,
    pub(super) function: &'static str,
    pub(super) values: MultiValue,
}

impl Args<'_> {
    /// The error for the argument at `at`, counted from 0.
    pub(super) fn error(&self, at: usize, why: impl std::fmt::Display) -> mlua::Error {
        let text = format!("bad argument #{} to '{}' ({why})", at + 1, self.function);
        Failure::library(self.lua, text)
    }

    fn expected(&self, at: usize, kind: &str) -> mlua::Error {
        let got = match self.values.get(at) {
            None => "no value",
            Some(Value::Integer(_)) => "number",
            Some(value) => value.type_name(),
        };
        self.error(at, format!("{kind} expected, got {got}"))
    }

    /// A number, or text that is one.
    pub(super) fn number(&self, at: usize) -> mlua::Result<f64> {
        let value = self.values.get(at).cloned().unwrap_or(Value::Nil);
        self.lua.coerce_number(value)?.ok_or_else(|| self.expected(at, "number"))
    }

    /// The same, or `default` where there is no argument.
    pub(super) fn number_or(&self, at: usize, default: f64) -> mlua::Result<f64> {
        match self.values.get(at) {
            None | Some(Value::Nil) => Ok(default),
            Some(_) => self.number(at),
        }
    }

    /// Text, or a number written as such.
    pub(super) fn text(&self, at: usize) -> mlua::Result<Bytes> {
        let value = self.values.get(at).cloned().unwrap_or(Value::Nil);
        let text = self.lua.coerce_string(value)?.ok_or_else(|| self.expected(at, "string"))?;
        Ok(Bytes::copy_from_slice(&text.as_bytes()))
    }
}
