//! Error replies as scripts see them: tables with the text in `err`.

use mlua::{Lua, Table, Value};

use super::word::Word;
use crate::resp::quoted;

/// The field that says of an error reply that it has been counted. The name is Redis's own, for
/// scripts can see it.
const COUNTED: &str = "ignore_error_stats_update";

/// An error reply that has not been counted.
pub(super) fn reply_table(lua: &Lua, text: &str) -> mlua::Result<Table> {
    let table = lua.create_table_with_capacity(0, 3)?;
    table.raw_set("err", Word(&quoted(text)))?;
    Ok(table)
}

/// The error reply of a command that was called, as a script sees it.
pub(super) fn counted_table(lua: &Lua, text: &str) -> mlua::Result<Table> {
    let table = reply_table(lua, text)?;
    table.raw_set(COUNTED, true)?;
    Ok(table)
}

/// Whether the error reply in a table has been counted.
pub(super) fn is_counted(table: &Table) -> mlua::Result<bool> {
    Ok(matches!(table.raw_get(COUNTED)?, Value::Boolean(true)))
}
