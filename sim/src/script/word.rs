//! Conversion of bytes to Lua strings.

use mlua::{IntoLua, Lua, Value};

/// Bytes that become a Lua string.
pub(super) struct Word<'a>(pub(super) &'a [u8]);

impl IntoLua for Word<'_> {
    fn into_lua(self, lua: &Lua) -> mlua::Result<Value> {
        lua.create_string(self.0).map(Value::String)
    }
}
