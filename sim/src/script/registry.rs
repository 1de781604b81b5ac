//! Lua functions held by Rust.

use mlua::{Function, Lua, RegistryKey};

/// Keeps a function in Lua's registry: outside of it, Rust can hold only a few thousand values.
pub(super) fn keep(lua: &Lua, function: Function) -> mlua::Result<RegistryKey> {
    // Free the values whose registry key has been dropped.
    lua.expire_registry_values();
    lua.create_registry_value(function)
}
