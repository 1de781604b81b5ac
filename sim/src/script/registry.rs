//! Lua functions that Rust keeps.

use mlua::{Function, Lua, RegistryKey};

/// Keeps a function within Lua: outside of it only some thousands of values can be held at once.
pub(super) fn keep(lua: &Lua, function: Function) -> mlua::Result<RegistryKey> {
    // Frees the values whose registry key has been dropped.
    lua.expire_registry_values();
    lua.create_registry_value(function)
}
